// A winning write without an answer is taken back: in which life of the store, and how often it is tried.
import { expect, test } from 'vitest';
import type { Timer } from '../../src/base/clock.ts';
import type { ElectionOptions } from '../../src/index.ts';
import type { SwapResult } from '../../src/mechanisms/lease/store.ts';
import type { LeaseRecord } from '../../src/record/lease-record.ts';
import { SimulatedClock } from '../../src/testing/index.ts';
import { candidate, leaseMs } from '../support/scripted-candidate.ts';
import { lost, ScriptedStore } from '../support/scripted-store.ts';
import { vacantRecord } from '../support/vacant-record.ts';

/** A clock that notes the timers which keep the process alive. */
class NotingClock extends SimulatedClock {
  readonly alive: number[] = [];

  override setTimer(callback: () => void, delayMs: number, background?: boolean): Timer {
    if (background !== true) this.alive.push(Math.round(delayMs));
    return super.setTimer(callback, delayMs);
  }
}

interface Setting {
  readonly life?: string;
  readonly options?: Partial<ElectionOptions<bigint>>;
  /** The record in the store before. */
  readonly before?: LeaseRecord;
}

/** A candidate that was told to stop while its winning write is on its way. */
async function stopped({ life, options = {}, before }: Setting = {}) {
  const clock = new NotingClock();
  const store = new ScriptedStore();
  store.record = before;
  const trouble: string[] = [];
  const onTrouble = ({ what }: { readonly what: string }) => void trouble.push(what);
  const memory = { life };
  store.onRead = async (apply) => ({
    ...apply(),
    ...(memory.life === undefined ? {} : { life: memory.life }),
  });
  const election = candidate(store, clock, {}, { onTrouble, ...options });
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
  trouble.length = 0;
  const { operationTimeoutMs } = election.timing;
  /** The write is given up. */
  const giveUp = () => clock.advance(operationTimeoutMs);
  return { clock, store, memory, election, campaign, trouble, giveUp, land: () => land() };
}

test.each([{}, { life: 'only' }])('it cannot land any more: %j', async (setting) => {
  const { clock, store, election, campaign, giveUp, land } = await stopped(setting);
  await giveUp();
  await expect(campaign).rejects.toThrow('enough');
  expect(land()).toEqual({ outcome: 'conflict' });
  expect(store.record?.holding).toBeUndefined();
  // One look to begin with, one to take it back, and that is all.
  expect([store.reads, store.swaps]).toEqual([2, 2]);
  await clock.advance(3 * leaseMs);
  expect([store.reads, store.swaps]).toEqual([2, 2]);
  // It is forgotten then: the next campaign that ends without a write takes nothing back.
  store.hold('x', 7n, leaseMs);
  const stop = new AbortController();
  const next = election.campaign({ signal: stop.signal });
  next.catch(() => {});
  await clock.advance(10);
  stop.abort(new Error('enough'));
  await clock.advance(10);
  await expect(next).rejects.toThrow('enough');
  expect([store.reads, store.swaps]).toEqual([3, 2]);
  await election.close();
});

test('nothing is written against it in another life of the store, where it conflicts anyway', async () => {
  const { clock, store, memory, election, campaign, giveUp } = await stopped({ life: 'first' });
  memory.life = 'second';
  await giveUp();
  await expect(campaign).rejects.toThrow('enough');
  await clock.advance(3 * leaseMs);
  expect([store.reads, store.swaps]).toEqual([2, 1]);
  await election.close();
});

test('one that has landed leaves what stood before it, under a name of its own', async () => {
  const reservation = { for: 'b', reserveMs: 60_000, untilUnixMs: 4e12 };
  const before = { ...vacantRecord('jobs', 'before'), reservation };
  const { store, election, campaign, giveUp, land } = await stopped({ before });
  expect(land()).toMatchObject({ outcome: 'ok' });
  const { nonce } = store.record!;
  expect(store.record).toMatchObject({ holding: { candidate: { id: 'b' } } });
  await giveUp();
  await expect(campaign).rejects.toThrow('enough');
  expect(store.record).toMatchObject({ token: before.token + 1n, reservation, unfenced: [] });
  expect(store.record?.holding).toBeUndefined();
  expect(store.record?.nonce).not.toBe(nonce);
  await election.close();
});

test('where others are faster it is tried five times, and again after a pause', async () => {
  const { clock, store, election, campaign, giveUp } = await stopped();
  const { onSwap } = store;
  // A transaction that lost against a neighbour's: no new version.
  store.onSwap = async () => ({ outcome: 'conflict' });
  await giveUp();
  await expect(campaign).rejects.toThrow('enough');
  expect(store.swaps).toBe(1 + 5);
  store.onSwap = onSwap;
  await clock.advance(election.timing.retryBackoffMs + 10);
  expect(store.swaps).toBe(1 + 5 + 1);
  expect(store.record).toMatchObject({ token: 0n, holding: undefined });
  await clock.advance(3 * leaseMs);
  expect(store.swaps).toBe(1 + 5 + 1);
  await election.close();
});

const lease = 12_000;
test.each([
  // After one lease exactly it is over.
  [{ lease, retryBackoff: 1_000, pollEvery: 1_000 }, new Array(11).fill(1_000)],
  [
    { lease, retryBackoff: 500, pollEvery: 2_000 },
    [1_000, 2_000, 2_000, 2_000, 2_000, 2_000, 2_000],
  ],
])(
  'where the store does not answer it is tried for one lease, less and less often: %j',
  async (options, expected) => {
    const { clock, store, election, campaign, trouble, giveUp } = await stopped({ options });
    const triesMs: number[] = [];
    store.onRead = async () => {
      triesMs.push(Math.round(clock.monotonicMs()));
      throw new Error('no route');
    };
    await giveUp();
    await expect(campaign).rejects.toThrow('enough');
    clock.alive.length = 0;
    await clock.advance(3 * lease);
    const pauses = triesMs.map((ms, i) => ms - (triesMs[i - 1] ?? ms)).slice(1);
    expect(pauses).toEqual([options.retryBackoff, ...expected]);
    expect(trouble).toEqual(triesMs.map(() => 'taking back a write'));
    // Only the operations keep the process alive.
    expect(new Set(clock.alive)).toEqual(new Set([election.timing.operationTimeoutMs]));
    await election.close();
  },
);

test('a handle that is closed goes on with it no more, and tells of no trouble', async () => {
  const { clock, store, election, campaign, trouble, giveUp } = await stopped();
  store.onRead = () => lost();
  await giveUp();
  await clock.advance(election.timing.operationTimeoutMs + election.timing.retryBackoffMs + 10);
  await expect(campaign).rejects.toThrow('enough');
  // It has asked again, and waits for the answer.
  const { reads } = store;
  expect([reads, trouble.length]).toEqual([3, 1]);
  await election.close();
  await clock.advance(3 * leaseMs);
  expect([store.reads, trouble.length]).toEqual([reads, 1]);
});
