import { getEventListeners, setMaxListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import { Deferred } from '../src/base/wait.ts';
import { Turns } from '../src/core/turns.ts';
import { SimulatedClock } from '../src/testing/index.ts';
import { candidate } from './support/scripted-candidate.ts';
import { lost, ScriptedStore } from './support/scripted-store.ts';

const atOnce = 50;
const never = new AbortController().signal;
// Many wait with it at one time.
setMaxListeners(0, never);

/** Attempts that are answered one by one, in the order in which they began. */
function stand() {
  const clock = new SimulatedClock();
  const turns = new Turns(clock);
  const begun: string[] = [];
  const answers: (() => void)[] = [];
  const ask = (name: string, signal = never, isInLine = false) =>
    turns.take(
      async () => {
        begun.push(name);
        await new Promise<void>((resolve) => answers.push(resolve));
        return name;
      },
      signal,
      isInLine,
    );
  const askMany = (count: number) => {
    for (let i = 0; i < count; i += 1) void ask(`${i}`);
  };
  const answer = async (index: number) => {
    answers[index]?.();
    await clock.advance(0);
  };
  return { clock, turns, begun, ask, askMany, answer };
}

describe('attempts of many candidates', () => {
  test('begin at once while few are under way', async () => {
    const { clock, begun, askMany } = stand();
    askMany(atOnce);
    expect(begun.length).toBe(atOnce);
    await clock.advance(0);
  });

  test('wait for their turn when many are, and begin in order as others end', async () => {
    const { begun, askMany, answer } = stand();
    askMany(atOnce + 2);
    expect(begun.length).toBe(atOnce);
    await answer(7);
    expect(begun.slice(atOnce)).toEqual([`${atOnce}`]);
    await answer(3);
    expect(begun.slice(atOnce)).toEqual([`${atOnce}`, `${atOnce + 1}`]);
  });

  test('a candidate that is in line already goes before those that enter', async () => {
    const { begun, ask, askMany, answer } = stand();
    askMany(atOnce + 1);
    void ask('in line', never, true);
    await answer(0);
    expect(begun.at(-1)).toBe('in line');
    await answer(1);
    expect(begun.at(-1)).toBe(`${atOnce}`);
  });

  test('a store that is silent holds the next ones up for a second, and not for all that wait', async () => {
    const { clock, begun, askMany } = stand();
    askMany(3 * atOnce);
    await clock.advance(999);
    expect(begun.length).toBe(atOnce);
    await clock.advance(1);
    expect(begun.length).toBe(atOnce + 25);
    await clock.advance(1_000);
    expect(begun.length).toBe(atOnce + 25 + 12);
    await clock.advance(2_000);
    expect(begun.length).toBe(atOnce + 25 + 12 + 10 + 10);
    await clock.advance(60_000);
    expect(begun.length).toBe(3 * atOnce);
  });

  test('a store that was slow gets one more with each attempt that ends soon', async () => {
    const { clock, begun, askMany, answer } = stand();
    askMany(6 * atOnce);
    await clock.advance(4_000);
    const slow = begun.length;
    expect(slow).toBe(atOnce + 25 + 12 + 10 + 10);
    // Those of the last second.
    for (let i = slow - 10; i < slow; i += 1) await answer(i);
    expect(begun.length).toBe(slow + 20);
    for (let i = slow; i < slow + 20; i += 1) await answer(i);
    expect(begun.length).toBe(slow + 20 + 40);
  });

  test('a turn that has lasted too long is not given twice when it ends at last', async () => {
    const { clock, begun, askMany, answer } = stand();
    askMany(3 * atOnce);
    await clock.advance(1_000);
    expect(begun.length).toBe(atOnce + 25);
    for (let i = 0; i < atOnce; i += 1) await answer(i);
    expect(begun.length).toBe(atOnce + 25);
    await answer(atOnce);
    // Its own turn, and one more because it has ended soon.
    expect(begun.length).toBe(atOnce + 25 + 2);
  });

  test('one that is given up before its turn never begins, and leaves its turn to the next', async () => {
    const { begun, ask, askMany, answer } = stand();
    askMany(atOnce);
    const stop = new AbortController();
    const given = ask('given up', stop.signal);
    void ask('next');
    stop.abort(new Error('done'));
    await expect(given).rejects.toThrow('done');
    await expect(ask('late', stop.signal)).rejects.toThrow('done');
    await answer(0);
    expect(begun.slice(atOnce)).toEqual(['next']);
  });

  test('one that fails gives its turn on', async () => {
    const { turns, begun, ask, askMany } = stand();
    askMany(atOnce - 1);
    let fail = (_error: Error) => {};
    const failing = turns.take(
      () =>
        new Promise((_resolve, reject) => {
          fail = reject;
        }),
      never,
      false,
    );
    void ask('next');
    expect(begun.length).toBe(atOnce - 1);
    fail(new Error('refused'));
    await expect(failing).rejects.toThrow('refused');
    expect(begun.at(-1)).toBe('next');
  });
});

describe('the turns of a backend', () => {
  test('are never more than fifty, however many attempts have ended soon', async () => {
    const { clock, turns, begun, askMany } = stand();
    for (let i = 0; i < 10; i += 1) await turns.take(async () => {}, never, false);
    askMany(2 * atOnce);
    await clock.advance(0);
    expect(begun.length).toBe(atOnce);
  });

  test('are halved by an attempt that took a second, also where no other waited', async () => {
    const { clock, begun, askMany, answer } = stand();
    askMany(1);
    await clock.advance(1_000);
    await answer(0);
    askMany(2 * atOnce);
    await clock.advance(0);
    expect(begun.length).toBe(1 + atOnce / 2);
  });

  test('are halved once for all attempts that were slow together', async () => {
    const { clock, begun, askMany, answer } = stand();
    askMany(3);
    await clock.advance(1_000);
    for (const index of [0, 1, 2]) await answer(index);
    askMany(2 * atOnce);
    await clock.advance(0);
    expect(begun.length).toBe(3 + atOnce / 2);
  });

  test('go to none that has given up before it asked', async () => {
    const { begun, ask, askMany, answer } = stand();
    askMany(atOnce);
    await expect(ask('late', AbortSignal.abort(new Error('done')))).rejects.toThrow('done');
    void ask('next');
    void ask('after that');
    await answer(0);
    await answer(1);
    expect(begun.slice(atOnce)).toEqual(['next', 'after that']);
  });

  test('leave no timer and no listener behind, and keep no process alive', async () => {
    const kept: boolean[] = [];
    class NotingClock extends SimulatedClock {
      override setTimer(callback: () => void, delayMs: number, background = false) {
        kept.push(!background);
        return super.setTimer(callback, delayMs);
      }
    }
    const clock = new NotingClock();
    const turns = new Turns(clock);
    const answer = new Deferred<void>();
    const { signal } = new AbortController();
    setMaxListeners(0, signal);
    const all = Array.from({ length: 2 * atOnce }, () =>
      turns.take(() => answer.promise, signal, false),
    );
    await clock.advance(0);
    expect(clock.pendingTimers).toBe(1);
    expect(getEventListeners(signal, 'abort').length).toBe(atOnce);
    answer.resolve();
    await Promise.all(all);
    expect(clock.pendingTimers).toBe(0);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
    expect(new Set(kept)).toEqual(new Set([false]));
  });
});

test('elections of one backend share their turns, and each clock has its own', () => {
  const [clock, other] = [new SimulatedClock(), new SimulatedClock()];
  const [backend, another] = [{}, {}];
  expect(Turns.of(backend, clock)).toBe(Turns.of(backend, clock));
  expect(Turns.of(backend, clock)).not.toBe(Turns.of(backend, other));
  expect(Turns.of(backend, clock)).not.toBe(Turns.of(another, clock));
});

test('a term is confirmed in time while many others begin on a store that answers none of them', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  const backend = store.backend();
  const election = candidate(store, clock, {}, { backend });
  const term = await election.campaign();
  store.onRead = () => lost();
  const stop = new AbortController();
  const others = Array.from({ length: 3 * atOnce }, (_, index) => {
    const other = candidate(
      store,
      clock,
      {},
      {
        backend,
        name: `other-${index}`,
        onTrouble: () => {},
      },
    );
    other.campaign({ signal: stop.signal }).catch(() => {});
    return other;
  });
  const readsBefore = store.reads;
  await clock.advance(0);
  // Those that wait for their turn have sent nothing.
  expect(store.reads - readsBefore).toBe(atOnce);
  await clock.advance(20_000);
  expect(term.isLeading()).toBe(true);
  stop.abort(new Error('done'));
  await clock.advance(0);
  await term[Symbol.asyncDispose]();
  await Promise.all([...others, election].map((each) => each.close()));
});

test('a process that ends gives its seats back in turn, and after a while all the same', async () => {
  const clock = new SimulatedClock();
  const stores = Array.from({ length: 2 * atOnce }, () => new ScriptedStore());
  const backend = stores[0]?.backend() as ReturnType<ScriptedStore['backend']>;
  let next = 0;
  // Each election has a store of its own, and all have one backend.
  const shared = {
    ...backend,
    open: (scope: never) => (stores[next++] as ScriptedStore).backend().open(scope),
  };
  const elections = stores.map((store) => candidate(store, clock, {}, { backend: shared }));
  const terms = await Promise.all(elections.map((election) => election.campaign()));
  for (const store of stores) store.onSwap = () => lost();
  const swaps = () => stores.reduce((sum, store) => sum + store.swaps, 0);
  const before = swaps();
  const ended = terms.map((term) => term[Symbol.asyncDispose]());
  await clock.advance(0);
  expect(swaps() - before).toBe(atOnce);
  // The others have waited for one operation timeout.
  await clock.advance(2_000);
  expect(swaps() - before).toBeGreaterThanOrEqual(2 * atOnce);
  await clock.advance(60_000);
  await Promise.all(ended);
  await Promise.all(elections.map((election) => election.close()));
});
