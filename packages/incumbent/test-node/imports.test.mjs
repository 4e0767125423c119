// Every public entry of the built package loads, by `import` and by `require()`, and exports
// something. Run under several releases of Node by `npm run test:node`.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { test } from 'node:test';

const require = createRequire(import.meta.url);
const { name, exports } = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
);
const entries = Object.keys(exports).filter((entry) => entry !== './package.json');

for (const entry of entries) {
  const specifier = name + entry.slice(1);

  test(`${specifier} can be imported and required, and both see the same`, async () => {
    const imported = await import(specifier);
    assert.notDeepEqual(Object.keys(imported), [], 'it exports nothing');

    // A top-level await anywhere below would make this throw ERR_REQUIRE_ASYNC_MODULE.
    const required = require(specifier);
    assert.deepEqual(Object.keys(required), Object.keys(imported));
  });
}

test(`${name}/package.json can be required`, () => {
  assert.equal(require(`${name}/package.json`).name, name);
});
