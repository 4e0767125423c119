import { createRequire } from 'node:module';
import { expect, test } from 'vitest';
import { guardFile } from '../src/guard/group.ts';

interface Stat {
  readonly group: number;
  readonly session: number;
  readonly isSpent: boolean;
}
const { parseStat } = createRequire(import.meta.url)(guardFile) as {
  readonly parseStat: (stat: string) => Stat;
};

test('only a zombie whose threads were counted, and are none, is spent', () => {
  const stat = (state: string, threads: number) =>
    parseStat(`70 (a) Z) ${state} 1 60 50 0 -1 0 1 2 3 4 5 6 7 8 20 0 ${threads} 0 812 1\n`);
  expect(stat('Z', 1)).toEqual({ group: 60, session: 50, isSpent: true });
  for (const threads of [0, 2]) expect(stat('Z', threads).isSpent).toBe(false);
  for (const state of ['R', 'S', 'D', 'T', 't']) expect(stat(state, 1).isSpent).toBe(false);
});
