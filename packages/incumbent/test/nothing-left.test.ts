// Listeners on the signals of a caller, and timers: nothing of them stays when a call is over.
import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import { resolveTiming } from '../src/base/timing.ts';
import type { Backend } from '../src/core/contest.ts';
import { giveBackSeat } from '../src/core/give-back-seat.ts';
import { HealthGate } from '../src/core/health.ts';
import type { Term, View } from '../src/index.ts';
import { createElection } from '../src/index.ts';
import { SimulatedClock, SimulatedLeaseStore, SimulatedQueueStore } from '../src/testing/index.ts';

/** A clock that knows which of its timers would keep the process alive. */
class AliveClock extends SimulatedClock {
  keeping = 0;

  override setTimer(callback: () => void, delayMs: number, background = false) {
    if (background) return super.setTimer(callback, delayMs);
    this.keeping += 1;
    let isOver = false;
    const over = () => {
      if (!isOver) this.keeping -= 1;
      isOver = true;
    };
    const timer = super.setTimer(() => {
      over();
      callback();
    }, delayMs);
    return {
      cancel() {
        over();
        timer.cancel();
      },
    };
  }
}

const listeners = (signal: AbortSignal) => getEventListeners(signal, 'abort').length;
const failed = (error: unknown) => error;

describe.each([
  ['leases', (clock: AliveClock) => new SimulatedLeaseStore({ clock })],
  ['queues', (clock: AliveClock) => new SimulatedQueueStore({ clock })],
])('on a store of %s', (_kind, open) => {
  test.each([1, 2])('an election leaves nothing behind (%i seats)', async (seats) => {
    const clock = new AliveClock();
    const store = open(clock);
    const make = (id: string) =>
      createElection<bigint>({
        ...{ name: 'jobs', backend: store.connect().backend, clock, seats, candidate: { id } },
        ...{ random: () => 0.5, onTrouble: () => {} },
      });
    const signals: AbortController[] = [];
    const signal = () => {
      const controller = new AbortController();
      signals.push(controller);
      return controller.signal;
    };
    const soon = async <T>(promise: Promise<T>, ms = 5_000): Promise<T> => {
      promise.catch(() => {});
      await clock.advance(ms);
      return promise;
    };
    const elections = ['a', 'b', 'c', 'operator'].map(make) as [
      Election,
      Election,
      Election,
      Election,
    ];
    const [a, b, c, operator] = elections;
    const terms: Term<bigint>[] = [await soon(a.campaign({ signal: signal() }))];
    if (seats > 1) terms.push(await soon(b.campaign({ signal: signal(), wait: '10s' })));
    const health = { check: () => true };
    const work = async (term: Term<bigint>) => {
      terms.push(term);
      await new Promise((resolve) => term.signal.addEventListener('abort', resolve));
    };
    const waiting = c.lead(work, { signal: signal(), health }).catch(failed);
    const stopC = signals.at(-1) as AbortController;
    const views: View[] = [];
    const observing = signal();
    const stopObserver = signals.at(-1) as AbortController;
    const observed = (async () => {
      for await (const view of operator.observe({ signal: observing, seat: 1 })) views.push(view);
    })();
    await clock.advance(30_000);
    const seat = { seat: 1 };
    await soon(operator.leader({ ...seat, signal: signal() }));
    await soon(operator.leaders({ signal: signal() }));
    await soon(operator.candidates({ signal: signal() }));
    await soon(terms[0]?.proclaim({ metadata: { x: '1' } }, { signal: signal() }) as Promise<void>);
    await soon(operator.drain('z', new Date(clock.wallMs() + 60_000), { signal: signal() }));
    await soon(operator.vacate({ ...seat, signal: signal() }));
    await soon(terms[0]?.[Symbol.asyncDispose]() as Promise<void>, 10_000);
    await clock.advance(20_000);
    // It has won the seat that is free, and is told to stop.
    expect(terms.at(-1)?.candidate).toBe('c');
    stopC.abort(new Error('enough'));
    await soon(waiting, 20_000);
    if (seats > 1) await soon(terms[1]?.[Symbol.asyncDispose]() as Promise<void>, 10_000);
    expect(views.length).toBeGreaterThan(2);
    // Only the observer is left.
    expect(clock.keeping).toBe(0);
    expect(signals.map((each) => listeners(each.signal)).filter((count) => count > 0)).toEqual([1]);
    stopObserver.abort();
    await soon(observed);
    for (const election of elections) await soon(election.close());
    expect(signals.map((each) => listeners(each.signal)).every((count) => count === 0)).toBe(true);
    expect(clock.pendingTimers).toBe(0);
  });
});

type Election = ReturnType<typeof createElection<bigint>>;

test('a seat is given back for the dead on a store that is closed after it', async () => {
  const clock = new AliveClock();
  const { backend } = new SimulatedLeaseStore({ clock }).connect();
  const closed: string[] = [];
  const watched: Backend = {
    ...backend,
    open(scope) {
      const opened = backend.open(scope);
      const { close } = opened;
      opened.close = () => {
        closed.push(scope.election);
        return close.call(opened);
      };
      return opened;
    },
  };
  const seat = { id: 'a', incarnation: 'i', token: '7', nonces: ['n'] };
  const { signal } = new AbortController();
  const give = (name: string, more: object = {}) =>
    giveBackSeat({
      ...{ name, backend: watched, clock, hasWorkEnded: true, signal },
      seat: { ...seat, ...more },
    });
  const given = Promise.all([give('jobs'), give('jobs', { seat: 1 }), give('jobs', { seat: 3 })]);
  await clock.advance(5_000);
  expect(await given).toEqual([false, false, false]);
  expect(closed.sort()).toEqual(['jobs', 'jobs', 'jobs.seat-3']);
  await expect(give('')).rejects.toThrow('the election name must not be empty');
});

test('a caller that waits for a healthy process leaves nothing on its signal', async () => {
  const clock = new AliveClock();
  const scope = {
    ...{ election: 'jobs', clock, timing: resolveTiming(), random: () => 0.5 },
    ...{ uniqueId: () => 'id', onTrouble: () => {} },
  };
  let isWell = false;
  const gate = new HealthGate({ check: () => isWell, every: 100 }, scope, {
    ...{ election: 'jobs', candidate: 'a' },
  });
  const [run, one, other] = [new AbortController(), new AbortController(), new AbortController()];
  void gate.run(run.signal);
  const well = gate.until(true, one.signal);
  const given = gate.until(true, other.signal).catch(failed);
  await clock.advance(50);
  expect([listeners(one.signal), listeners(other.signal)]).toEqual([1, 1]);
  other.abort(new Error('enough'));
  expect(await given).toBe(other.signal.reason);
  isWell = true;
  await clock.advance(100);
  await well;
  expect(await gate.first(one.signal)).toBe(true);
  expect([listeners(one.signal), listeners(other.signal)]).toEqual([0, 0]);
  run.abort();
  await clock.advance(0);
  expect([clock.pendingTimers, listeners(run.signal)]).toEqual([0, 0]);
});
