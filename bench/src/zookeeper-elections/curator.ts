import { execFile } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const source = fileURLToPath(new URL('../../zookeeper/CuratorCandidate.java', import.meta.url));
/** Of Debian's packages. */
const jarFolder = '/usr/share/java';
const jars = ['curator-recipes', 'slf4j-nop', 'zookeeper'].map(
  (name) => `${jarFolder}/${name}.jar`,
);

export interface Curator {
  readonly version: string;
  readonly command: readonly string[];
}

/**
 * Compiles its candidate against Debian's jars.
 * @throws Error that says what is missing
 */
export async function compileCurator(directory: string): Promise<Curator> {
  const missing = jars.filter((jar) => !existsSync(jar));
  if (missing.length > 0) throw new Error(`there is no ${missing.join(', ')}`);
  const run = promisify(execFile);
  await run('javac', ['-cp', jars.join(':'), '-d', directory, source]);
  return {
    version: versionIn(jarFolder),
    command: [
      ...['java', '-Xmx64m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1'],
      ...['-cp', [directory, ...jars].join(':'), 'CuratorCandidate'],
    ],
  };
}

/** Beside each jar is a link with the version in its name. */
function versionIn(folder: string): string {
  const links = readdirSync(folder).map((name) => /^curator-recipes-(.+)\.jar$/.exec(name)?.[1]);
  return links.find((version) => version !== undefined) ?? 'of unknown version';
}
