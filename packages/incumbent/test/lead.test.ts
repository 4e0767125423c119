import { expect, test } from 'vitest';
import { memory } from '../src/backends/memory/index.ts';
import { createElection } from '../src/index.ts';
import { SimulatedClock } from '../src/testing/index.ts';

test('lead runs the work, releases, and resolves with its value', async () => {
  const clock = new SimulatedClock();
  const backend = memory();
  const election = createElection({ name: 'jobs', backend, clock });
  const seen: bigint[] = [];
  const result = election.lead((term) => {
    expect(term.isLeading()).toBe(true);
    seen.push(term.token);
    return 42;
  });
  expect(await result).toBe(42);
  expect(seen).toEqual([1n]);
  expect((await election.leader()).state).toBe('vacant');
  expect((await election.history()).map(({ token, why }) => [token, why])).toEqual([
    [1n, 'work-finished'],
  ]);
  await election.close();
});

test('a second candidate waits until the first one resigns, and is woken', async () => {
  const clock = new SimulatedClock();
  const backend = memory();
  const a = createElection({ name: 'jobs', backend, clock, candidate: { id: 'a' } });
  const b = createElection({ name: 'jobs', backend, clock, candidate: { id: 'b' } });
  const termA = await a.campaign();
  const waiting = b.campaign();
  await clock.advance(60_000);
  expect(termA.isLeading()).toBe(true);
  expect((await a.candidates()).map(({ id }) => id)).toEqual(['a', 'b']);
  await termA[Symbol.asyncDispose]();
  expect(termA.isLeading()).toBe(false);
  await clock.advance(100);
  const termB = await waiting;
  expect(termB.token).toBe(2n);
  expect(termB.predecessor).toMatchObject({ id: 'a', clean: true });
  await termB[Symbol.asyncDispose]();
  await b.close();
  await a.close();
});
