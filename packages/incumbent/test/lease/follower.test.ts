/** How often a follower looks at the store, and for how long it lets others go first. */
import { expect, test } from 'vitest';
import { InvalidOptionError } from '../../src/base/errors.ts';
import { resolveTiming } from '../../src/base/timing.ts';
import type { Scope } from '../../src/core/contest.ts';
import { LeaseRace } from '../../src/mechanisms/lease/race.ts';
import { SimulatedClock } from '../../src/testing/index.ts';
import { candidate, leaseMs } from '../support/scripted-candidate.ts';
import { ScriptedStore } from '../support/scripted-store.ts';

/** The times at which a follower reads, and at which it writes, in ms from its beginning. */
async function following(random: number, ofHolderMs: number = leaseMs) {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  store.hold('one', 1n, ofHolderMs);
  const read: number[] = [];
  const wrote: number[] = [];
  store.onRead = async (apply) => {
    read.push(clock.monotonicMs());
    return apply();
  };
  store.onSwap = async (apply) => {
    wrote.push(clock.monotonicMs());
    return apply();
  };
  const election = candidate(store, clock, {}, { random: () => random });
  const winning = election.campaign();
  for (let ms = 0; ms < ofHolderMs + 3_000; ms += 10) await clock.advance(10);
  const term = await winning;
  await term[Symbol.asyncDispose]();
  await election.close();
  return { read, wrote, timing: election.timing };
}

test.each([0, 0.5])(
  'it looks every `pollEvery`, and by chance up to a tenth of `renewEvery` later (%d)',
  async (random) => {
    const { read, wrote, timing } = await following(random);
    const { pollEveryMs, renewEveryMs } = timing;
    const laterMs = random * 0.1 * renewEveryMs;
    const expected = [0];
    // The last wait is that for the rest of the lease.
    for (let ms = 0; ms < leaseMs; ) {
      ms += Math.min(pollEveryMs, leaseMs - ms) + laterMs;
      expected.push(ms);
    }
    expect(read.slice(0, expected.length)).toEqual(expected);
    expect(wrote[0]).toBe(expected.at(-1));
  },
);

test.each([
  ['a second where it is woken by hints', true, () => 1_000],
  [
    'a look of the others and a tenth, and the time to answer it, where it is not',
    false,
    ({ pollEveryMs, operationTimeoutMs }: Scope['timing']) =>
      1.1 * pollEveryMs + operationTimeoutMs,
  ],
])('a candidate that gave its seat up stays out for %s', (_, isWoken, expectedMs) => {
  const clock = new SimulatedClock();
  const scope: Scope = {
    ...{ election: 'jobs', clock, timing: resolveTiming({ lease: '20s' }), random: () => 0 },
    ...{ uniqueId: () => 'id', onTrouble: () => {} },
  };
  const store = {
    ...new ScriptedStore().open(),
    ...(isWoken ? { watch: () => () => {} } : {}),
  };
  const who = { id: 'b', incarnation: 'i', addresses: [], metadata: {} };
  const race = new LeaseRace(store, scope, who, (token) => token);
  expect(expectedMs(scope.timing)).toBeGreaterThanOrEqual(1_000);
  expect(race.standAsideMs).toBe(expectedMs(scope.timing));
});

test('it stays out for a second at least, however often the others look', () => {
  const clock = new SimulatedClock();
  const timing = resolveTiming({ lease: '2s', pollEvery: 100, operationTimeout: 100 });
  const scope: Scope = {
    ...{ election: 'jobs', clock, timing, random: () => 0 },
    ...{ uniqueId: () => 'id', onTrouble: () => {} },
  };
  const who = { id: 'b', incarnation: 'i', addresses: [], metadata: {} };
  const race = new LeaseRace(new ScriptedStore().open(), scope, who, (token) => token);
  expect(race.standAsideMs).toBe(1_000);
});

test('a process that cannot be an actor is refused by name; other trouble only proves no death', async () => {
  const clock = new SimulatedClock();
  const trouble: string[] = [];
  const wrong = new InvalidOptionError('there is no process 71');
  const describe = async ({ pid }: { readonly pid: number }) => {
    if (pid === 71) throw wrong;
    if (pid === 72) throw new Error('no /proc');
    return { pid };
  };
  const store = new ScriptedStore();
  const onTrouble = ({ what }: { readonly what: string }) => void trouble.push(what);
  const election = candidate(store, clock, { describe }, { onTrouble });
  const term = await election.campaign({ actors: 'declared' });
  await expect(term.declareActors([{ pid: 71 }])).rejects.toBe(wrong);
  expect(trouble).toEqual([]);
  const declared = term.declareActors([{ pid: 72 }]);
  await clock.advance(100);
  await declared;
  expect(store.record?.holding?.actors).toBe(null);
  expect(trouble).toEqual(['describing a process']);
  await term[Symbol.asyncDispose]();
  await election.close();
});
