import type { ShardTerm } from '@incumbent/shards';
import { expect, test } from 'vitest';
import { isHealthy } from '../src/run/shards-runner.ts';

const term = (state: ShardTerm['state'], leftMs = 9_000) => ({ state, remaining: () => leftMs });

test('a run of shards is healthy while all of its terms are confirmed', () => {
  const isHealthyWith = (...terms: ReturnType<typeof term>[]) => isHealthy(terms, 2_000);
  expect(isHealthyWith()).toBe(true);
  expect(isHealthyWith(term('leading'), term('stopping'))).toBe(true);
  expect(isHealthyWith(term('leading'), term('uncertain'))).toBe(false);
  // Told to stop since it could not be confirmed, and not by choice.
  expect(isHealthyWith(term('stopping', 2_000))).toBe(false);
  // Its programs have outlived it.
  expect(isHealthyWith(term('ended', 0), term('leading'))).toBe(false);
});
