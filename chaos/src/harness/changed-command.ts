/** A copy of the built command line with a few lines changed: a candidate that is broken on purpose. */
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { cliFile } from '@incumbent/cli/trial';

export interface Change {
  /** From the directory of the packages. */
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

/** @returns the file of a copy of the built command line with these changes */
export function changedCommand(
  broken: string,
  changes: readonly Change[],
  directory: string,
): string {
  const packages = dirname(dirname(dirname(cliFile)));
  const copies = join(directory, 'packages');
  for (const path of ['cli/dist', 'cli/guard', 'cli/package.json']) {
    cpSync(join(packages, path), join(copies, path), { recursive: true });
  }
  for (const path of ['incumbent/dist', 'incumbent/package.json']) {
    cpSync(join(packages, path), join(copies, path), { recursive: true });
  }
  // Their imports: the copy of the library, and the rest from where it is.
  const modules = join(copies, 'cli/node_modules');
  cpSync(join(copies, 'incumbent'), join(modules, 'incumbent'), { recursive: true });
  for (const name of dependenciesOf(join(packages, 'cli'))) {
    if (name === 'incumbent') continue;
    mkdirSync(dirname(join(modules, name)), { recursive: true });
    symlinkSync(directoryOf(name), join(modules, name));
  }
  for (const { file, from, to } of changes) {
    const path = join(copies, file.replace(/^incumbent\//, 'cli/node_modules/incumbent/'));
    const text = readFileSync(path, 'utf8');
    if (!text.includes(from)) throw new Error(`${broken}: ${file} has no ${JSON.stringify(from)}`);
    writeFileSync(
      path,
      text.replace(from, () => to),
    );
  }
  return join(copies, 'cli/dist/bin.js');
}

function dependenciesOf(directory: string): readonly string[] {
  const text = readFileSync(join(directory, 'package.json'), 'utf8');
  const { dependencies } = JSON.parse(text) as { readonly dependencies: Record<string, string> };
  return Object.keys(dependencies);
}

/** Where the command line finds a package. Not every package lets its package.json be resolved. */
function directoryOf(name: string): string {
  const places = createRequire(cliFile).resolve.paths(name) ?? [];
  const found = places.map((place) => join(place, name)).find((path) => existsSync(path));
  if (found === undefined) throw new Error(`${name} is not installed`);
  return found;
}
