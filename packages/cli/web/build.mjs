// Bundles the pages of `incumbent dashboard` and `incumbent demo --web` into ../assets, which is served as it stands.
//
//   node build.mjs
import { copyFileSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const here = fileURLToPath(new URL('.', import.meta.url));
const assets = join(here, '../assets');
/** A folder for each page, with its entry and its HTML. */
const pages = ['dashboard', 'demo'];

// Made beside it and then moved: whoever serves the old ones is not disturbed for long.
const made = `${assets}.new-${process.pid}`;
mkdirSync(made, { recursive: true });
const bundle = await rolldown({
  input: Object.fromEntries(pages.map((page) => [page, join(here, page, `${page}.tsx`)])),
  cwd: here,
  platform: 'browser',
});
await bundle.write({
  dir: made,
  format: 'esm',
  minify: true,
  entryFileNames: '[name].js',
  chunkFileNames: 'shared-[hash].js',
});
await bundle.close();
for (const page of pages) {
  for (const file of readdirSync(join(here, page)).filter((name) => /\.(html|css)$/.test(name))) {
    copyFileSync(join(here, page, file), join(made, file));
  }
}
for (const file of ['base.css', 'icon.svg']) {
  copyFileSync(join(here, 'shared', file), join(made, file));
}
rmSync(assets, { recursive: true, force: true });
renameSync(made, assets);
