import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface LogDirectory {
  readonly path: string;
  /** Removes it. */
  remove(): void;
  /** Says where it is, and with which seed the run can be played again. */
  keep(): void;
}

/**
 * The directory of a run's logs. It is kept when something failed, and when a signal ends the run:
 * servers and candidates end with this process.
 * @param say prints a line
 */
export function makeLogDirectory(
  name: string,
  seed: number,
  say: (line: string) => void = console.log,
): LogDirectory {
  const path = realpathSync(mkdtempSync(join(tmpdir(), `incumbent-${name}-`)));
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => {
      console.log(`stopped by ${signal}; the logs are kept in ${path}`);
      process.exit(1);
    });
  }
  return {
    path,
    remove: () => rmSync(path, { recursive: true, force: true, maxRetries: 3 }),
    keep: () => say(`seed ${seed}; the logs are kept in ${path}`),
  };
}
