/**
 * Candidates that are broken on purpose: chaos that does not find them proves nothing. Each is a copy
 * of the built command line with a few lines changed, or a program in its place.
 */
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cliFile } from '@incumbent/cli/trial';

export type Broken = 'no-guard' | 'deaf-guard' | 'no-watchers' | 'rash-proof';

export interface Change {
  /** From the directory of the packages. */
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

const watcherOfSupervisor: Change = {
  file: 'cli/dist/guard/gate.js',
  from: '`{ read -r x; ',
  to: '`{ exit; read -r x; ',
};

export const brokenCandidates: Readonly<
  Record<Broken, { readonly about: string; readonly changes?: readonly Change[] }>
> = {
  'no-guard': { about: 'a supervisor starts its program itself, without a guard' },
  'deaf-guard': {
    about: 'guard and watchers ignore the end of belief',
    changes: [
      {
        file: 'cli/guard/guard.cjs',
        from: "if (!(leftMs > killMarginMs)) kill('belief-over');",
        to: 'if (leftMs !== leftMs);',
      },
      {
        file: 'cli/guard/guard.cjs',
        from: 'else if (!(leftMs > stopMarginMs)) stop(',
        to: 'else if (leftMs !== leftMs) stop(',
      },
      {
        file: 'cli/guard/guard.cjs',
        from: 'const seconds = (left(belief) - killMarginMs / 2 - lookMs) / 1000;',
        to: 'const seconds = 3600;',
      },
    ],
  },
  'no-watchers': {
    about: "the program's group has no watchers",
    changes: [watcherOfSupervisor, { file: 'cli/dist/guard/gate.js', from: '`exec ', to: '`: ' }],
  },
  'rash-proof': {
    about: 'a dead supervisor proves its term dead, although other processes still act for it',
    changes: [
      {
        file: 'incumbent/dist/backends/file/process-proof.js',
        from: 'actors.every((actor) => this.#isDead(actor)) &&',
        to: 'this.#isDead(actors[0]) ||',
      },
      // With it everybody dies so quickly that the mistake cannot show.
      watcherOfSupervisor,
    ],
  },
};

/** @returns the file to start in place of `incumbent` */
export function breakCandidates(broken: Broken, directory: string): string {
  const { changes } = brokenCandidates[broken];
  if (changes === undefined) return fileURLToPath(new URL(`./${broken}.js`, import.meta.url));
  return changedCommand(broken, changes, directory);
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
  // What they import: the copy of the library, and the rest from where it is.
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
