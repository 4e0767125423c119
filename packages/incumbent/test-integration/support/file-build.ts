import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const repository = fileURLToPath(new URL('../../../..', import.meta.url));

/** A fresh directory, and a function that removes it. */
export function temporaryDirectory(parent: string = tmpdir()): {
  readonly path: string;
  readonly remove: () => void;
} {
  const path = mkdtempSync(join(parent, 'incumbent-file-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/**
 * Compiles the file store into `directory`, for processes that run without vitest.
 * @returns the arguments for node that start support/file-process.mjs on it
 */
export function buildFileProcess(directory: string): readonly string[] {
  return [
    fileURLToPath(new URL('./file-process.mjs', import.meta.url)),
    ...compile(directory, ['backends/file/store.ts']),
  ];
}

/**
 * Compiles sources of the library and all that they import into `directory`.
 * @param files below `src`
 * @returns what became of them
 */
export function compile(directory: string, files: readonly string[]): string[] {
  const source = join(repository, 'packages/incumbent/src');
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, 'package.json'), '{"type":"module"}');
  writeFileSync(
    join(directory, 'tsconfig.json'),
    JSON.stringify({
      extends: join(repository, 'packages/incumbent/tsconfig.json'),
      compilerOptions: {
        composite: false,
        tsBuildInfoFile: null,
        declarationMap: false,
        isolatedDeclarations: false,
        // `npm run check` looks at types.
        noCheck: true,
        rootDir: source,
        outDir: directory,
        typeRoots: [join(repository, 'node_modules/@types')],
      },
      include: [],
      files: files.map((file) => join(source, file)),
    }),
  );
  const compiler = join(repository, 'node_modules/typescript/bin/tsc');
  execFileSync(process.execPath, [compiler, '-p', directory], { encoding: 'utf8' });
  return files.map((file) => join(directory, file.replace(/\.ts$/, '.js')));
}
