// The code of a package as users get it: the modules of the build in a few files, without comments but those that
// say where a part comes from. A file costs a start about a millisecond, and the build has hundreds.
//
// Names are kept as they are, so a stack trace reads as the sources do. Each part begins with the name of its file.
import { existsSync } from 'node:fs';
import { dirname, join, posix, relative } from 'node:path';
import { rolldown } from 'rolldown';

/**
 * Modules that a start needs together become one file: all that the files in `of` import, unless an earlier group has
 * it. Without groups, each set of modules that the same entries share is a file of its own.
 */
const groups = {
  incumbent: [
    { name: 'core', of: ['dist/index.js'] },
    {
      name: 'lease',
      of: [
        'dist/mechanisms/lease/backend.js',
        'dist/record/candidate-entry.js',
        'dist/base/in-parallel.js',
      ],
    },
  ],
  '@incumbent/cli': [
    { name: 'start', of: ['dist/bin.js'] },
    // Before the rest is read, `run` starts its guard.
    { name: 'begin', of: ['dist/run/begin.js'] },
    {
      name: 'election',
      of: ['dist/commands/run.js', 'dist/open-store.js', 'dist/file/directory.js'],
    },
  ],
};

/**
 * @param {string} directory of the package
 * @param {{ name: string, entries: string[], inlined: string[], into: string }} options entries: relative to
 *   `directory`, each of which is a file of its own; inlined: packages that become part of this one
 */
export async function bundle(directory, { name, entries, inlined, into }) {
  const path = (file) => join(directory, file);
  const bundler = await rolldown({
    cwd: directory,
    input: Object.fromEntries(
      entries.map((file) => [file.slice('dist/'.length, -'.js'.length), path(file)]),
    ),
    external: (id, importer) =>
      /^[^./\0]/.test(id) && !inlined.includes(id) && !isUnused(id, importer),
    platform: 'node',
    plugins: [filesOfPackage(directory), withoutSubprocesses],
    // It would warn of a slow machine.
    checks: { bundlerTimings: false },
    onLog(level, log) {
      if (level === 'warn') throw new Error(`${name}: ${log.message}`);
    },
  });
  try {
    await bundler.write({
      dir: join(into, 'dist'),
      format: 'esm',
      entryFileNames: '[name].js',
      chunkFileNames: 'chunks/[name].js',
      comments: { legal: false, annotation: true, jsdoc: false },
      codeSplitting: {
        groups: (groups[name] ?? []).map(({ name: debugName, of }, i, { length }) => ({
          debugName,
          priority: length - i,
          name: nameIfReached(debugName, of.map(path)),
        })),
      },
    });
  } finally {
    await bundler.close();
  }
}

/** An entry stays a file of its own, which exports what it exported. */
function nameIfReached(name, files) {
  let reached;
  return (id, graph) => {
    reached ??= reachedFrom([...files], graph);
    return reached.has(id) && !graph.getModuleInfo(id)?.isEntry ? name : null;
  };
}

function reachedFrom(waiting, graph) {
  const reached = new Set();
  for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
    if (reached.has(id)) continue;
    reached.add(id);
    waiting.push(...(graph.getModuleInfo(id)?.importedIds ?? []));
  }
  return reached;
}

/** `new URL('../../guard/guard.cjs', import.meta.url)` names the same file from wherever the code ends up. */
function filesOfPackage(directory) {
  const mark = '<package>/';
  return {
    name: 'files-of-package',
    transform(code, id) {
      if (!id.startsWith(directory) || !code.includes('import.meta.url')) return undefined;
      return code.replace(/(new URL\(['"`])((?:\.\.?\/)+)/g, (_, start, dots) => {
        const from = relative(directory, join(dirname(id), dots)).replaceAll('\\', '/');
        return `${start}${mark}${from === '' ? '' : `${from}/`}`;
      });
    },
    renderChunk(code, { fileName }) {
      if (!code.includes(mark)) return null;
      for (const [, , file] of code.matchAll(/(['"])<package>\/([^'"]+)\1/g)) {
        if (!existsSync(join(directory, file))) throw new Error(`${fileName}: there is no ${file}`);
      }
      const up = posix.relative(posix.dirname(`dist/${fileName}`), '.');
      return { code: code.replaceAll(mark, `${up}/`), map: null };
    },
  };
}

/** Commander can run commands that are programs of their own. Ours are not, and node:child_process takes 3 ms. */
const isUnused = (id, importer) => id === 'node:child_process' && importer?.includes('/commander/');

const withoutSubprocesses = {
  name: 'without-subprocesses',
  resolveId: (id, importer) => (isUnused(id, importer) ? '\0without-subprocesses' : null),
  load: (id) => (id === '\0without-subprocesses' ? 'export {};' : null),
};
