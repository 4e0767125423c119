// Makes the packages as they are published: bundled, without comments, with the types that an import leads to.
//
//   npm run stage                  # each into its folder `packed`, which `npx changeset publish` publishes
//   npm run stage -- --into DIR    # all into DIR/node_modules, to be imported and run from there
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { publicPackages, stagedFor } from './lib/pack.mjs';
import { root } from './lib/run.mjs';
import { stage } from './lib/stage.mjs';

const { values: options } = parseArgs({ options: { into: { type: 'string' } } });
for (const path of publicPackages) {
  const { name } = JSON.parse(readFileSync(join(root, path, 'package.json'), 'utf8'));
  const { into } = options;
  await stage(
    path,
    into === undefined ? stagedFor(path) : join(resolve(into), 'node_modules', name),
  );
}
