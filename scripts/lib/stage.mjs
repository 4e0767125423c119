// A package as it is published, in a directory of its own. The package of the work tree stays as it is: others
// run it meanwhile, and the simulation changes single files of it.
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join, posix } from 'node:path';
import { bundle } from './bundle.mjs';
import { bundleTypes } from './bundle-types.mjs';
import { must, root } from './run.mjs';

/** Entries that no import leads to: other processes run them. */
const programs = { '@incumbent/cli': ['dist/run/give-seat-back.js', 'dist/trial/worker.js'] };
/** Packages that are needed for every start. Their licences are packed with them. */
const inlined = { '@incumbent/cli': ['commander'] };

/**
 * @param {string} path of the package in the repository; it is built
 * @param {string} into is emptied first
 */
export async function stage(path, into) {
  const directory = join(root, path);
  const manifest = JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8'));
  rmSync(into, { recursive: true, force: true });
  mkdirSync(into, { recursive: true });

  // The pages that commands serve.
  if (existsSync(join(directory, 'web/build.mjs'))) {
    await must([process.execPath, 'web/build.mjs'], { cwd: directory });
  }
  const { name } = manifest;
  const parts = inlined[name] ?? [];
  await bundle(directory, { name, entries: entriesOf(manifest), inlined: parts, into });
  await bundleTypes(directory, { name, entries: typesOf(manifest), into });
  const others = readdirSync(directory).filter((file) => /^(README|LICENSE|CHANGELOG)/.test(file));
  const folders = manifest.files.filter((file) => file !== 'dist' && !file.startsWith('!'));
  for (const file of [...others, ...folders]) copy(directory, into, file);
  const licences = parts.map((part) => copyLicence(directory, into, part));
  const text = JSON.stringify(
    manifestOf(manifest, parts, ['dist', ...folders, ...licences]),
    null,
    2,
  );
  writeFileSync(join(into, 'package.json'), `${text}\n`);
}

/** @returns {string[]} relative to the package: all files that somebody imports or runs by their name */
export function entriesOf({ name, exports, bin = {} }) {
  const files = [
    ...Object.values(exports).map((entry) => entry.default),
    ...Object.values(bin),
    ...(programs[name] ?? []),
  ];
  const inDist = files.flatMap((file) => (file === undefined ? [] : [posix.normalize(file)]));
  return [...new Set(inDist.filter((file) => file.startsWith('dist/')))];
}

function manifestOf(manifest, parts, files) {
  const { scripts: _, publishConfig, ...kept } = manifest;
  const { directory: __, ...publish } = publishConfig ?? {};
  const without = (object = {}, names) =>
    Object.fromEntries(Object.entries(object).filter(([key]) => !names.includes(key)));
  const exports = Object.entries(manifest.exports).map(([key, entry]) => [
    key,
    typeof entry === 'string' ? entry : without(entry, ['@incumbent/source']),
  ]);
  return {
    ...kept,
    files,
    exports: Object.fromEntries(exports),
    ...(manifest.dependencies && { dependencies: without(manifest.dependencies, parts) }),
    ...(Object.keys(publish).length > 0 && { publishConfig: publish }),
  };
}

/** The types of each entry. */
function typesOf({ exports }) {
  const files = Object.values(exports).flatMap(({ types }) => types ?? []);
  return [...new Set(files.map((file) => posix.normalize(file)))];
}

function copyLicence(directory, into, name) {
  const places = [directory, root].map((place) => join(place, 'node_modules', name, 'LICENSE'));
  const file = places.find((place) => existsSync(place));
  if (file === undefined) throw new Error(`${name} has no LICENSE to be packed with it`);
  const to = `LICENSE-${name.replaceAll('/', '-')}`;
  cpSync(file, join(into, to));
  return to;
}

function copy(directory, into, file) {
  cpSync(join(directory, file), join(into, file), { recursive: true });
}
