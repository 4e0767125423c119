import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import * as ensemble from '../src/ensemble/broken.ts';
import { breakCandidates, brokenCandidates } from '../src/file-store/broken.ts';
import * as stores from '../src/stores/broken.ts';

/** Whole packages are copied. */
const copiesMs = 60_000;
let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'incumbent-broken-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

// Each changes lines of what was built: one that is gone would leave a candidate that is not broken.
it.each(Object.keys(brokenCandidates) as (keyof typeof brokenCandidates)[])(
  'can still break candidates: %s',
  (name) => {
    expect(breakCandidates(name, directory)).toMatch(/\.js$/);
  },
  copiesMs,
);

it.each(Object.keys(ensemble.brokenCandidates) as ensemble.Broken[])(
  'can still break candidates on an ensemble: %s',
  (name) => {
    const file = ensemble.commandOf(name, directory);
    if (file === undefined) expect(ensemble.brokenCandidates[name].parameters).toBeDefined();
    else if (file.startsWith(directory)) expect(existsSync(file)).toBe(true);
  },
  copiesMs,
);

it.each(Object.keys(stores.brokenCandidates) as stores.Broken[])(
  'can still break candidates on the stores: %s',
  (name) => {
    const file = stores.commandOf(name, directory);
    if (file?.startsWith(directory)) expect(existsSync(file)).toBe(true);
  },
  copiesMs,
);
