// The types of a package as users get them: in a few files, without those that no entry leads to.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { rolldown } from 'rolldown';
import { dts } from 'rolldown-plugin-dts';

/** Types of the library of the language that are newer than most projects' target. */
const disposable = '/// <reference lib="esnext.disposable" preserve="true" />\n';
const usesDisposable = /\bAsyncDispos|\bDisposable\b|\bSymbol\.(asyncD|d)ispose\b/;

/**
 * @param {string} directory of the package; it is built
 * @param {{ name: string, entries: string[], into: string }} options entries: the `.d.ts` below `dist`, each of
 *   which is a file of its own
 */
export async function bundleTypes(directory, { name, entries, into }) {
  const bundler = await rolldown({
    cwd: directory,
    input: Object.fromEntries(
      entries.map((file) => [file.slice('dist/'.length, -'.d.ts'.length), join(directory, file)]),
    ),
    external: (id) => /^[^./\0]/.test(id),
    plugins: [dts({ dtsInput: true, sourcemap: false })],
    // It would warn of a slow machine.
    checks: { bundlerTimings: false },
    onLog(level, log) {
      if (level === 'warn') throw new Error(`${name}: ${log.message}`);
    },
  });
  try {
    const { output } = await bundler.write({
      dir: join(into, 'dist'),
      format: 'esm',
      entryFileNames: '[name].d.ts',
      chunkFileNames: 'chunks/[name].d.ts',
    });
    for (const { fileName } of output) {
      const file = join(into, 'dist', fileName);
      const text = readFileSync(file, 'utf8');
      // References do not survive bundling.
      if (usesDisposable.test(text)) writeFileSync(file, disposable + text);
    }
  } finally {
    await bundler.close();
  }
}
