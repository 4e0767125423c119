/**
 * Which mutants the compiler refuses: a mistake that cannot be compiled needs no test. Each mutant
 * is written into a file of its own beside a copy of the sources, and all are checked at once.
 */
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Mutant } from './mutants.ts';
import { applied } from './mutate-text.ts';

/** Of so many characters a batch: the compiler holds all of it in memory. */
const batchCharacters = 6_000_000;

export interface Sources {
  /** The repository. */
  readonly root: string;
  /** An empty directory below it, so that what the sources import is found. */
  readonly scratch: string;
  readonly read: (file: string) => string;
}

/** @returns the ids of those that are refused */
export async function refusedOf(
  mutants: readonly Mutant[],
  { root, scratch, read }: Sources,
): Promise<ReadonlySet<string>> {
  const packages = new Set(mutants.map(({ file }) => file.split('/').slice(0, 3).join('/')));
  for (const path of packages) cpSync(join(root, path), join(scratch, path), { recursive: true });
  const refused = new Set<string>();
  let batch: { mutant: Mutant; copy: string }[] = [];
  let characters = 0;
  const check = async () => {
    const failed = await compile(
      batch.map(({ copy }) => copy),
      root,
      scratch,
    );
    for (const { mutant, copy } of batch) if (failed.has(basename(copy))) refused.add(mutant.id);
    batch = [];
    characters = 0;
  };
  for (const [number, mutant] of mutants.entries()) {
    const text = applied(read(mutant.file), mutant.changes);
    const copy = join(dirname(mutant.file), `mutant-${number}.ts`);
    mkdirSync(dirname(join(scratch, copy)), { recursive: true });
    writeFileSync(join(scratch, copy), text);
    batch.push({ mutant, copy });
    characters += text.length;
    if (characters > batchCharacters) await check();
  }
  if (batch.length > 0) await check();
  return refused;
}

/** @returns the names of the files with errors */
async function compile(
  files: readonly string[],
  root: string,
  scratch: string,
): Promise<ReadonlySet<string>> {
  const config = join(scratch, 'tsconfig.json');
  const compilerOptions = {
    composite: false,
    isolatedDeclarations: false,
    declarationMap: false,
    noEmit: true,
  };
  writeFileSync(
    config,
    JSON.stringify({ extends: join(root, 'tsconfig.base.json'), compilerOptions, files }),
  );
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  const output = await new Promise<string>((resolve, reject) => {
    execFile(
      process.execPath,
      [tsc, '-p', config, '--pretty', 'false'],
      { cwd: scratch, maxBuffer: 2 ** 30 },
      (error, stdout) => {
        // It fails with code 1 or 2 where there are errors in the files, which is the point.
        if (error !== null && ![1, 2].includes(Number(error.code))) reject(error);
        else resolve(stdout);
      },
    );
  });
  return new Set(
    [...output.matchAll(/^(\S+)\(\d+,\d+\): error/gm)].map(([, file]) => basename(file ?? '')),
  );
}
