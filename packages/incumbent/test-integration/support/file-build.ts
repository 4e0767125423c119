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
      files: [join(source, 'backends/file/store.ts')],
    }),
  );
  const compiler = join(repository, 'node_modules/typescript/bin/tsc');
  execFileSync(process.execPath, [compiler, '-p', directory], { encoding: 'utf8' });
  return [
    fileURLToPath(new URL('./file-process.mjs', import.meta.url)),
    join(directory, 'backends/file/store.js'),
  ];
}
