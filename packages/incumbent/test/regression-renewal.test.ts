/** Defects of other systems that concern renewing and belief; ids as in docs/coming-from/index.md. */
import { expect, test } from 'vitest';
import type { TermEndedError } from '../src/index.ts';
import { createElection, NotLeadingError } from '../src/index.ts';
import { SimulatedClock, settle } from '../src/testing/index.ts';
import { lost, ScriptedStore } from './support/scripted-store.ts';

// D 15 s: H 12 s, G 2 s, R 3 s, X 2.5 s.
const lease = '15s';

async function leading() {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  const election = createElection({ name: 'jobs', backend: store.backend(), clock, lease });
  const term = await election.campaign();
  const end = async () => {
    const disposed = term[Symbol.asyncDispose]();
    await clock.advance(120_000);
    await disposed;
    await election.close();
  };
  return { clock, store, election, term, end };
}

test('a hung renewal: told to stop before the deadline, not leading at the deadline (VB3, VB4)', async () => {
  const { clock, store, term, end } = await leading();
  store.onSwap = () => lost();
  store.onRead = () => lost();
  await clock.advance(9_999);
  expect(term.signal.aborted).toBe(false);
  expect(term.state).toBe('uncertain');
  await clock.advance(2);
  expect(term.signal.aborted).toBe(true);
  expect((term.signal.reason as TermEndedError).reason).toBe('renewal-failed');
  expect(term.isLeading()).toBe(true);
  await clock.advance(1_998);
  expect(clock.monotonicMs()).toBe(11_999);
  expect(term.isLeading()).toBe(true);
  await clock.advance(1);
  expect(term.isLeading()).toBe(false);
  expect(term.remaining()).toBe(0);
  expect(() => term.assertLeading()).toThrow(NotLeadingError);
  await end();
});

test('a failing store for a whole term sees a bounded number of writes (VB5)', async () => {
  const { clock, store, term, end } = await leading();
  store.swaps = 0;
  store.onSwap = async () => {
    throw new Error('the store is down');
  };
  await clock.advance(12_000);
  expect(term.isLeading()).toBe(false);
  // One renewal every R/4 = 0.75 s from 3 s to 10 s.
  expect(store.swaps).toBeGreaterThanOrEqual(5);
  expect(store.swaps).toBeLessThanOrEqual(12);
  await end();
});

test('a failing store sees a bounded number of reads from who waits (VB5)', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  store.onRead = async () => {
    throw new Error('the store is down');
  };
  const election = createElection({ name: 'jobs', backend: store.backend(), clock, lease });
  const stop = new AbortController();
  const campaign = election.campaign({ signal: stop.signal });
  campaign.catch(() => {});
  await clock.advance(60_000);
  expect(store.reads).toBeLessThanOrEqual(45);
  stop.abort(new Error('enough'));
  await expect(campaign).rejects.toThrow('enough');
  await election.close();
});

test('a store that takes no writes sees a bounded number of them from who knows the leader dead', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  store.hold('dead', 1n, 600_000);
  store.record = { ...store.record!, holding: { ...store.record!.holding!, actors: [{ pid: 7 }] } };
  store.onSwap = async () => {
    throw new Error('the disk is full');
  };
  const backend = store.backend({ provesGone: () => true });
  const election = createElection({ name: 'jobs', backend, clock, lease });
  const stop = new AbortController();
  const campaign = election.campaign({ signal: stop.signal });
  campaign.catch(() => {});
  await clock.advance(60_000);
  // Its death is noticed every 100 ms. The pause between two attempts goes up to 3 s all the same.
  expect(store.swaps).toBeGreaterThanOrEqual(10);
  expect(store.swaps).toBeLessThanOrEqual(45);
  stop.abort(new Error('enough'));
  await expect(campaign).rejects.toThrow('enough');
  await election.close();
});

test('a renewal that was applied but never answered is found again by its nonce (VB13)', async () => {
  const { clock, store, term, end } = await leading();
  let swallow = true;
  store.onSwap = (apply) => {
    const result = apply();
    if (!swallow) return Promise.resolve(result);
    swallow = false;
    return lost();
  };
  await clock.advance(60_000);
  expect(term.isLeading()).toBe(true);
  expect(term.state).toBe('leading');
  await end();
});

test('a conflict that is our own earlier success is a success, from its send time (VB13)', async () => {
  const { clock, store, term, end } = await leading();
  // A client library that retries: the first try is applied, its answer is lost, and
  // the retry conflicts.
  store.onSwap = async (apply) => {
    apply();
    return apply();
  };
  await clock.advance(60_000);
  expect(term.isLeading()).toBe(true);
  await end();
});

test('a write that is delivered twice does no harm', async () => {
  const { clock, store, term, end } = await leading();
  store.onSwap = async (apply) => {
    const first = apply();
    apply();
    return first;
  };
  await clock.advance(30_000);
  expect(term.isLeading()).toBe(true);
  await end();
});

test('a reply that comes too late is judged by when it was sent, and revives nothing', async () => {
  const { clock, store, term, end } = await leading();
  let answer = () => {};
  store.onSwap = (apply) =>
    new Promise((resolve) => {
      const result = apply();
      answer = () => resolve(result);
    });
  store.onRead = () => lost();
  await clock.advance(3_000);
  clock.stall(12_000);
  answer();
  await settle();
  expect(term.isLeading()).toBe(false);
  await clock.advance(1);
  expect(term.signal.aborted).toBe(true);
  await end();
});

test.each(['a timer', 'a microtask', 'I/O'])(
  'after a stall longer than belief, %s that runs first is refused (5.4)',
  async (first) => {
    const { clock, term, end } = await leading();
    const seen: string[] = [];
    const check = () => {
      seen.push(term.signal.aborted ? 'aborted' : 'not aborted');
      try {
        term.assertLeading();
        seen.push('passed');
      } catch {
        seen.push('refused');
      }
    };
    if (first === 'a timer') clock.setTimer(check, 1);
    clock.stall(12_001);
    if (first === 'a microtask') await Promise.resolve().then(check);
    if (first === 'I/O') await new Promise<void>((resolve) => setImmediate(resolve)).then(check);
    await clock.advance(1);
    // The signal may be late, which is why the check exists.
    expect(seen).toEqual(['not aborted', 'refused']);
    expect(term.signal.aborted).toBe(true);
    expect((term.signal.reason as TermEndedError).reason).toBe('stalled');
    await end();
  },
);

test('a suspended host: the monotonic clock stood still, the wall clock ends the term (demand 16)', async () => {
  const { clock, term, end } = await leading();
  clock.suspend(11_999);
  expect(term.isLeading()).toBe(true);
  clock.suspend(1);
  expect(term.isLeading()).toBe(false);
  expect(() => term.assertLeading()).toThrow('is over: stop');
  await end();
});

test('a wall clock that is set back prolongs nothing, one that is set forward ends the term', async () => {
  const { clock, store, term, end } = await leading();
  store.onSwap = () => lost();
  clock.stepWall(-3_600_000);
  await clock.advance(12_000);
  expect(term.isLeading()).toBe(false);
  await end();
  const other = await leading();
  other.clock.stepWall(3_600_000);
  expect(other.term.isLeading()).toBe(false);
  await other.end();
});

test('the margin is read again at every use: check, sleep, act is impossible (RB1)', async () => {
  const { clock, store, term, end } = await leading();
  store.onSwap = () => lost();
  term.assertLeading(5_000);
  await clock.advance(7_500);
  expect(() => term.assertLeading(5_000)).toThrow(
    'term 1 of election "jobs" has 4500 ms of belief left, 5000 ms are needed',
  );
  term.assertLeading(4_000);
  for (const never of [Number.NaN, -1, 12_000]) {
    expect(() => term.assertLeading(never)).toThrow('less than the belief of 12000 ms');
  }
  await end();
});

test('superseded or deleted: the term ends at once, without waiting for its belief', async () => {
  for (const [change, reason] of [
    [(store: ScriptedStore) => store.hold('other', 9n, 15_000), 'superseded'],
    [
      (store: ScriptedStore) => {
        store.record = undefined;
        store.version += 1;
      },
      'record-gone',
    ],
  ] as const) {
    const { clock, store, term, end } = await leading();
    change(store);
    await clock.advance(3_000);
    expect(term.isLeading()).toBe(false);
    expect((term.signal.reason as TermEndedError).reason).toBe(reason);
    await end();
  }
});
