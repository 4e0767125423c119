// A winning write without an answer is taken back: in which life of the store, and how often it is tried.
import { expect, test } from 'vitest';
import type { SwapResult } from '../../src/lease/store.ts';
import { SimulatedClock } from '../../src/testing/index.ts';
import { candidate, leaseMs } from '../support/scripted-candidate.ts';
import { lost, ScriptedStore } from '../support/scripted-store.ts';

/** A candidate that was told to stop while its winning write is on its way. */
async function stopped(life?: string) {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  const memory = { life };
  store.onRead = async (apply) => ({
    ...apply(),
    ...(memory.life === undefined ? {} : { life: memory.life }),
  });
  const election = candidate(store, clock);
  let land: () => SwapResult = () => ({ outcome: 'conflict' });
  const { onSwap } = store;
  store.onSwap = (apply) => {
    land = apply;
    store.onSwap = onSwap;
    return lost();
  };
  const stop = new AbortController();
  const campaign = election.campaign({ signal: stop.signal });
  campaign.catch(() => {});
  await clock.advance(100);
  expect(store.swaps).toBe(1);
  stop.abort(new Error('enough'));
  const { operationTimeoutMs, retryBackoffMs, pollEveryMs } = election.timing;
  expect({ retryBackoffMs, pollEveryMs }).toEqual({ retryBackoffMs: 500, pollEveryMs: 2_000 });
  /** The write is given up. */
  const giveUp = () => clock.advance(operationTimeoutMs);
  return { clock, store, memory, election, campaign, giveUp, land: () => land() };
}

test.each([undefined, 'only'])('it cannot land any more: in the life %s', async (life) => {
  const { store, election, campaign, giveUp, land } = await stopped(life);
  await giveUp();
  await expect(campaign).rejects.toThrow('enough');
  expect(land()).toEqual({ outcome: 'conflict' });
  expect(store.record?.holding).toBeUndefined();
  await election.close();
});

test('nothing is written against it in another life of the store, where it conflicts anyway', async () => {
  const { store, memory, election, campaign, giveUp } = await stopped('first');
  memory.life = 'second';
  await giveUp();
  await expect(campaign).rejects.toThrow('enough');
  expect(store.swaps).toBe(1);
  await election.close();
});

test('where the store does not answer it is tried for one lease, less and less often', async () => {
  const { clock, store, election, campaign, giveUp } = await stopped();
  const triesMs: number[] = [];
  store.onRead = async () => {
    triesMs.push(clock.monotonicMs());
    throw new Error('no route');
  };
  await giveUp();
  await expect(campaign).rejects.toThrow('enough');
  await clock.advance(3 * leaseMs);
  const pauses = triesMs.map((ms, i) => Math.round(ms - (triesMs[i - 1] ?? ms))).slice(1);
  expect(pauses).toEqual([500, 1_000, 2_000, 2_000, 2_000, 2_000, 2_000]);
  await election.close();
});
