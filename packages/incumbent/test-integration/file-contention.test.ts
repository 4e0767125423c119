import { execFile } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { keptRecords, pruneEvery } from '../src/backends/file/pruning.ts';
import { openFileLeaseStore } from '../src/backends/file/store.ts';
import { buildFileProcess, temporaryDirectory } from './support/file-build.ts';

const run = promisify(execFile);
const build = temporaryDirectory();
let program: readonly string[] = [];

beforeAll(() => {
  program = buildFileProcess(build.path);
});
afterAll(() => build.remove());

const processes = 4;

/** A disk syncs some hundred times a second, memory does not care. */
const places = [
  { name: 'memory', parent: '/dev/shm', winsEach: 2_000 },
  // Not the one for temporary files, which `npm test` has in memory.
  { name: 'a directory on disk', parent: '/var/tmp', winsEach: 250 },
];

for (const { name, parent, winsEach } of places) {
  const all = processes * winsEach;
  test(`${all} contended swaps of ${processes} processes in ${name} have one winner each`, async (context) => {
    if (!existsSync(parent)) return context.skip(`${parent} is not there`);
    const place = temporaryDirectory(parent);
    try {
      const outcomes = await Promise.all(
        Array.from({ length: processes }, async () => {
          const args = [...program, 'contend', place.path, String(winsEach)];
          const { stdout } = await run(process.execPath, args, { maxBuffer: 1e8 });
          return JSON.parse(stdout) as { won: number[]; conflicts: number };
        }),
      );
      const won = outcomes.flatMap((outcome) => outcome.won).sort((a, b) => a - b);
      expect(won).toEqual(Array.from({ length: all }, (_, i) => i + 1));
      expect(outcomes.reduce((sum, { conflicts }) => sum + conflicts, 0)).toBeGreaterThan(0);
      const store = openFileLeaseStore(place.path, 'e');
      const { record } = await store.read(new AbortController().signal);
      expect(record?.token).toBe(BigInt(all));
      // Pruned all along. The last records stay, with the tombstone, and the wins since
      // the last pruning.
      const names = readdirSync(join(place.path, 'e'));
      expect(names.length).toBeLessThanOrEqual(keptRecords + pruneEvery + 1);
      expect(names.filter((entry) => !/^\d{16}$/.test(entry))).toEqual([]);
    } finally {
      place.remove();
    }
  });
}
