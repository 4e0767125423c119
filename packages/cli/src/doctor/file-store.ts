/** What there is to see on the disk of a file store. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
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
      // One that is not the newest is read by nobody any more.
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

/** Removes an election that nobody but us knows. */
export async function removeElection(directory: string, election: string): Promise<void> {
  await rm(join(directory, election), { recursive: true, force: true, maxRetries: 3 });
}
