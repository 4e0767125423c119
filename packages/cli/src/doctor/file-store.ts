/** Findings about a file store on its disk. */
import { rm, rmdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { ElectionFiles } from 'incumbent/file';
import { examineElection } from 'incumbent/file';
import { fileSystemFindings, readFileSystem } from './file-system.ts';
import type { Finding } from './finding.ts';

export async function fileStoreFindings(
  directory: string,
  election: string | undefined,
): Promise<Finding[]> {
  const fileSystem = fileSystemFindings(await readFileSystem(directory));
  if (election === undefined) return fileSystem;
  return [...fileSystem, ...electionFilesFindings(await examineElection(directory, election))];
}

export function electionFilesFindings(files: ElectionFiles): Finding[] {
  const { path, exists, records, temporaries, foreign, damaged } = files;
  if (!exists) {
    return [{ check: 'files', level: 'note', message: `${path} is not there: never used` }];
  }
  const findings = damaged.map(
    ({ isNewest, error }): Finding => ({
      check: 'files',
      // Candidates read only the newest record.
      level: isNewest ? 'broken' : 'warn',
      message: error.message,
      data: { code: error.code },
    }),
  );
  if (foreign.length > 0) {
    const shown = foreign.slice(0, 10).map((name) => JSON.stringify(name));
    const more = foreign.length > shown.length ? ` and ${foreign.length - shown.length} more` : '';
    findings.push({
      check: 'files',
      level: 'warn',
      message: `${path} has files that are not ours: ${shown.join(', ')}${more}`,
      data: { foreign },
    });
  }
  if (findings.length === 0) {
    findings.push({
      check: 'files',
      level: 'ok',
      message: `${path}: ${records} records, nothing foreign, nothing damaged`,
      data: { path, records, temporaries },
    });
  }
  return findings;
}

/** Removes an election that only this process knows. */
export async function removeElection(directory: string, election: string): Promise<void> {
  await rm(join(directory, election), { recursive: true, force: true, maxRetries: 3 });
}

/** The uppermost directory that has to be made for this one; undefined when it is there. */
export async function firstMissing(directory: string): Promise<string | undefined> {
  let missing: string | undefined;
  for (let path = directory; ; path = dirname(path)) {
    try {
      await stat(path);
      return missing;
    } catch (error) {
      // A directory that we may not look at may exist, so we do not create it.
      const isGone = error instanceof Error && 'code' in error && error.code === 'ENOENT';
      if (!isGone) return missing;
    }
    missing = path;
  }
}

/** Removes `directory` and those above it up to `upTo`, as long as they are empty. */
export async function removeEmpty(directory: string, upTo: string): Promise<void> {
  for (let path = directory; ; path = dirname(path)) {
    await rmdir(path);
    if (path === upTo) return;
  }
}
