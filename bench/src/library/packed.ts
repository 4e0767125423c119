import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder stands beside `src` and beside `dist`. */
const stageFile = fileURLToPath(new URL('../../../scripts/stage.mjs', import.meta.url));

/** The packages as users install them, in `directory`. They reach no package that they depend on. */
export class PackedPackages {
  readonly cliFile: string;

  constructor(directory: string) {
    const { status, stderr } = spawnSync(process.execPath, [stageFile, '--into', directory], {
      encoding: 'utf8',
    });
    if (status !== 0) throw new Error(`the packages could not be made: ${stderr}`);
    this.cliFile = join(directory, 'node_modules/@incumbent/cli/dist/bin.js');
  }
}
