// A term by itself: when it confirms its seat, in which order it ends, and which
// listeners it tells.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { Belief } from '../src/base/belief.ts';
import { readClocks } from '../src/base/clock.ts';
import type { Deadline } from '../src/base/deadline.ts';
import { LeftBehindError } from '../src/base/errors.ts';
import { resolveTiming } from '../src/base/timing.ts';
import { onAbort } from '../src/base/wait.ts';
import type {
  Confirmation,
  Contest,
  Scope,
  Seat,
  SeatEnd,
  SeatState,
} from '../src/core/contest.ts';
import type { HeldTermOptions } from '../src/core/held-term.ts';
import { HeldTerm } from '../src/core/held-term.ts';
import { runWork } from '../src/core/run-work.ts';
import { ToldBelief } from '../src/core/told-belief.ts';
import type { Watchdog } from '../src/core/watchdog.ts';
import { SimulatedClock } from '../src/testing/index.ts';
import { collectWarnings } from './support/warnings.ts';

/** D is 15 s: H is 12 s, G 2 s, R 3 s, X 2.5 s, the pause after a failure 750 ms. */
const timing = resolveTiming();
const { beliefMs, stopMarginMs, renewEveryMs } = timing;

type Told = { readonly atMs: number; readonly endMs: number | undefined };

/** A term on a seat that does as the test says. */
function setUp(
  options: Partial<HeldTermOptions> = {},
  seatSays: Partial<Seat<bigint>> = {},
  contest: Partial<Contest<bigint>> = { standAsideMs: 1_000, describe: async () => undefined },
) {
  const clock = new SimulatedClock();
  const confirmed: number[] = [];
  const events: string[] = [];
  const released: SeatEnd[] = [];
  const trouble: string[] = [];
  const belief: Told[] = [];
  const watched: Told[] = [];
  const state: SeatState = { announced: true, actors: null, addresses: [], metadata: {} };
  const told = (list: Told[]) => (deadline: Deadline | undefined) => {
    list.push({ atMs: clock.monotonicMs(), endMs: deadline?.monotonicMs });
  };
  const script = {
    confirm: async (want: SeatState, _signal: AbortSignal): Promise<Confirmation> => ({
      outcome: 'confirmed',
      sentAt: readClocks(clock),
      state: want,
    }),
  };
  const sentAt = readClocks(clock);
  const seat: Seat<bigint> = {
    token: 7n,
    guard: 7n,
    sentAt,
    belief: new Belief(clock, beliefMs, sentAt),
    state,
    predecessor: undefined,
    unfenced: [],
    waitBeforeAnnounceMs: 0,
    attach: () => void events.push('attached'),
    confirm: (want, signal) => {
      confirmed.push(clock.monotonicMs());
      return script.confirm(want, signal);
    },
    release: async (end) => {
      events.push('released');
      released.push(end);
      return true;
    },
    abandon: async () => void events.push('abandoned'),
    ...seatSays,
  };
  const watchdog: Watchdog = { update: told(watched), close: () => {} };
  const term = new HeldTerm(seat, contest as Contest<bigint>, {
    scope: {
      election: 'jobs',
      clock,
      timing,
      random: () => 0.5,
      uniqueId: () => 'id',
      onTrouble: (what) => trouble.push(what),
    },
    candidate: { id: 'a', incarnation: 'of a', addresses: [], metadata: {} },
    actors: 'self',
    readiness: undefined,
    onBelief: told(belief),
    watchdog,
    ...options,
  });
  const fail = () => {
    script.confirm = () => Promise.reject(new Error('no route'));
  };
  return { clock, term, script, fail, confirmed, events, released, trouble, belief, watched };
}

/** Ends a term whose work has nothing left to do. */
async function end({ clock, term }: ReturnType<typeof setUp>) {
  const disposed = term[Symbol.asyncDispose]();
  await clock.advance(20_000);
  await disposed;
  return term.ended;
}

describe('a term that has to become ready', () => {
  const readiness = { timeoutMs: 60_000 };
  const state: SeatState = {
    ...{ announced: true, actors: null, addresses: [], metadata: {} },
    ready: false,
  };

  test('ends if the record cannot be made to show it, though the work has said so', async () => {
    const all = setUp({ readiness }, { state });
    const { clock, term, script } = all;
    await term.announce();
    // The seat is confirmed, and the record stays as it is: a right is missing.
    script.confirm = async () => ({ outcome: 'confirmed', sentAt: readClocks(clock), state });
    const ready = term.ready();
    ready.catch(() => {});
    await clock.advance(59_000);
    expect(term.state).toBe('leading');
    await clock.advance(1_000);
    await expect(ready).rejects.toMatchObject({ reason: 'not-ready' });
    expect((await end(all)).reason).toBe('not-ready');
  });

  test('does not become ready while it is renewed for work that was told to stop', async () => {
    const all = setUp({ readiness }, { state });
    const { clock, term, script, fail } = all;
    await term.announce();
    const { confirm } = script;
    fail();
    term.ready().catch(() => {});
    await clock.advance(1_000);
    expect(term.isReady).toBe(true);
    term.resign();
    expect(term.isReady).toBe(false);
    // The store answers again, and the work has not settled.
    const shown: unknown[] = [];
    script.confirm = (want, signal) => {
      shown.push(want.ready);
      return confirm(want, signal);
    };
    await clock.advance(10_000);
    expect(new Set(shown)).toEqual(new Set([false]));
    expect((await end(all)).reason).toBe('resigned');
  });

  test('goes on once the record shows it', async () => {
    const all = setUp({ readiness }, { state });
    const { clock, term, confirmed } = all;
    await term.announce();
    await clock.advance(1_000);
    const ready = term.ready();
    await clock.advance(0);
    await ready;
    expect(confirmed).toEqual([1_000]);
    await clock.advance(120_000);
    expect(term.state).toBe('leading');
    expect((await end(all)).reason).toBe('resigned');
  });
});

describe('a term confirms its seat', () => {
  test('every R, from the sending of the last confirmation', async () => {
    const all = setUp();
    const { clock, confirmed, script } = all;
    await clock.advance(2 * renewEveryMs);
    expect(confirmed).toEqual([renewEveryMs, 2 * renewEveryMs]);
    // The next one is a second old when it comes: it was shared.
    script.confirm = async (state) => {
      const { monotonicMs, wallMs } = readClocks(clock);
      const sentAt = { monotonicMs: monotonicMs - 1_000, wallMs: wallMs - 1_000 };
      return { outcome: 'confirmed', sentAt, state };
    };
    await clock.advance(2 * renewEveryMs - 1_000);
    expect(confirmed.slice(2)).toEqual([3 * renewEveryMs, 4 * renewEveryMs - 1_000]);
    await end(all);
  });

  test('after a pause when it has failed, and is uncertain meanwhile', async () => {
    const all = setUp();
    const { clock, term, confirmed, fail, script } = all;
    await term.announce();
    const { confirm } = script;
    fail();
    await clock.advance(renewEveryMs + 2_000);
    expect(confirmed).toEqual([3_000, 3_750, 4_500]);
    expect(term.state).toBe('uncertain');
    expect(term.isLeading()).toBe(true);
    script.confirm = confirm;
    await clock.advance(250);
    expect(term.state).toBe('leading');
    await end(all);
  });

  test('after a pause when nothing was learnt', async () => {
    const all = setUp();
    const { clock, confirmed, script } = all;
    script.confirm = async () => ({ outcome: 'unresolved' });
    await clock.advance(renewEveryMs + 800);
    expect(confirmed).toEqual([3_000, 3_750]);
    await end(all);
  });

  test('at once on a hint, and when there is something to show', async () => {
    const all = setUp();
    const { clock, term, confirmed } = all;
    await clock.advance(1_000);
    term.onHint();
    await clock.advance(500);
    const shown = term.proclaim({ addresses: ['10.0.0.7:80'] });
    await clock.advance(0);
    await shown;
    expect(confirmed).toEqual([1_000, 1_500]);
    await end(all);
  });

  test('once more at once, when there is something new to show while a confirmation is under way', async () => {
    const all = setUp();
    const { clock, term, confirmed, script } = all;
    const { confirm } = script;
    let answer = () => {};
    script.confirm = (state) =>
      new Promise((resolve) => {
        answer = () => resolve({ outcome: 'confirmed', sentAt: readClocks(clock), state });
      });
    await clock.advance(renewEveryMs);
    const shown = term.proclaim({ addresses: ['10.0.0.7:80'] });
    script.confirm = confirm;
    await clock.advance(500);
    expect(confirmed).toEqual([3_000]);
    answer();
    await clock.advance(0);
    await shown;
    expect(confirmed).toEqual([3_000, 3_500]);
    await end(all);
  });

  test('until its work has settled, if it was asked to go', async () => {
    const all = setUp();
    const { clock, term, confirmed, events } = all;
    await term.announce();
    await clock.advance(1_000);
    term.resign();
    expect(term.signal.aborted).toBe(true);
    await clock.advance(10_000);
    expect(term.state).toBe('stopping');
    expect(term.isLeading()).toBe(true);
    expect(confirmed).toEqual([3_000, 6_000, 9_000]);
    expect(events).toEqual(['attached']);
    term.settle();
    await clock.advance(0);
    expect(term.isLeading()).toBe(false);
    expect(await term.ended).toEqual({ reason: 'resigned', released: true, overrunMs: 0 });
    expect(events).toEqual(['attached', 'released']);
  });

  test('and for 30 s at the longest: then its belief runs out, and the seat is left', async () => {
    const all = setUp();
    const { clock, term, confirmed, events } = all;
    await term.announce();
    term.resign();
    // Confirmed for the last time after 27 s.
    await clock.advance(39_000);
    expect(confirmed.at(-1)).toBe(27_000);
    expect(events).toEqual(['attached', 'abandoned']);
    expect(term.isLeading()).toBe(false);
    await clock.advance(5_000);
    term.settle();
    await clock.advance(0);
    const { overrunMs, ...outcome } = await term.ended;
    expect(outcome).toEqual({ reason: 'resigned', released: false });
    expect(overrunMs).toBe(5_000);
  });
});

describe('a term that cannot be confirmed', () => {
  test('leaves its seat when its belief is over, also if it was asked to go before', async () => {
    const all = setUp();
    const { clock, term, fail, events } = all;
    await term.announce();
    fail();
    term.resign();
    await clock.advance(beliefMs - 1);
    expect(events).toEqual(['attached']);
    expect(term.isLeading()).toBe(true);
    await clock.advance(2);
    expect(events).toEqual(['attached', 'abandoned']);
    term.settle();
    await clock.advance(0);
    expect(await term.ended).toMatchObject({ reason: 'resigned', released: false });
  });

  test.each([
    ['renewal-failed', true],
    ['stalled', false],
  ])('ends as %s, G before its belief', async (reason, fails) => {
    const all = setUp();
    const { clock, term, fail, script } = all;
    await term.announce();
    if (fails) fail();
    // Not answered, before it is given up.
    else script.confirm = (_, signal) => new Promise((_resolve, reject) => onAbort(signal, reject));
    await clock.advance(beliefMs - stopMarginMs - 1);
    expect(term.signal.aborted).toBe(false);
    // Its timer looks again a little before that, and then after a millisecond at the least.
    await clock.advance(2);
    expect(term.signal.reason).toMatchObject({ reason });
    expect(term.isLeading()).toBe(true);
    expect(term.remaining()).toBe(stopMarginMs - 1);
    await clock.advance(stopMarginMs);
    expect(term.isLeading()).toBe(false);
    term.settle();
    await clock.advance(0);
    expect(await term.ended).toMatchObject({ reason, released: false });
  });

  test.each([
    ['superseded', true],
    ['record-gone', true],
    ['session-expired', true],
    ['election-ended', true],
    ['disconnected', false],
    ['renewal-failed', false],
  ] as const)('is lost as %s: its belief is over at once: %s', async (reason, isOver) => {
    const all = setUp();
    const { clock, term, events, released } = all;
    await term.announce();
    await clock.advance(10);
    term.onLost(reason);
    expect(term.signal.reason).toMatchObject({ reason });
    expect(term.isLeading()).toBe(!isOver);
    term.settle();
    await clock.advance(0);
    const takesSeat = ['superseded', 'record-gone', 'session-expired'].includes(reason);
    // A seat that is not ours is not given back.
    expect(events).toEqual(['attached', takesSeat ? 'abandoned' : 'released']);
    expect(released).toHaveLength(takesSeat ? 0 : 1);
    expect(await term.ended).toMatchObject({ reason, released: !takesSeat });
  });

  test('is stopped G before its belief, also if its seat cannot be kept for a defect', async () => {
    const { setTimer } = SimulatedClock.prototype;
    const spy = vi.spyOn(SimulatedClock.prototype, 'setTimer');
    onTestFinished(() => spy.mockRestore());
    spy.mockImplementation(function (this: SimulatedClock, callback, delayMs) {
      if (delayMs === renewEveryMs) throw new Error('a defect');
      return setTimer.call(this, callback, delayMs);
    });
    const { clock, term, confirmed, trouble } = setUp();
    await term.announce();
    await clock.advance(beliefMs - stopMarginMs + 1);
    expect(trouble).toEqual(['keeping a term']);
    expect(confirmed).toEqual([]);
    expect(term.signal.reason).toMatchObject({ reason: 'stalled' });
    term.settle();
    await clock.advance(beliefMs);
    await term.ended;
  });

  test('gives the confirmation that is under way up when its work has settled, and says nothing of it', async () => {
    const unconfirmed: unknown[] = [];
    const note = (message: unknown) => void unconfirmed.push(message);
    subscribe('incumbent:unconfirmed', note);
    onTestFinished(() => void unsubscribe('incumbent:unconfirmed', note));
    const { clock, term, script, confirmed } = setUp();
    await term.announce();
    script.confirm = (_, signal) => new Promise((_resolve, reject) => onAbort(signal, reject));
    await clock.advance(renewEveryMs);
    expect(confirmed).toEqual([renewEveryMs]);
    term.resign();
    term.settle();
    await clock.advance(0);
    expect(await term.ended).toMatchObject({ reason: 'resigned', released: true });
    expect(unconfirmed).toEqual([]);
  });

  test('may be lost once more, and then nobody believes', async () => {
    const all = setUp();
    const { clock, term } = all;
    await term.announce();
    term.onLost('renewal-failed');
    expect(term.isLeading()).toBe(true);
    term.onLost('superseded');
    expect(term.isLeading()).toBe(false);
    term.settle();
    await clock.advance(0);
    expect((await term.ended).reason).toBe('renewal-failed');
  });
});

describe('what operators ask for', () => {
  test('the leader goes, and hands over to the named candidate', async () => {
    const all = setUp();
    const { clock, term, released } = all;
    await term.announce();
    term.onRequest({ kind: 'transfer', to: 'b', nonce: 'x' });
    term.onRequest({ kind: 'vacate', nonce: 'y' });
    term.settle();
    await clock.advance(0);
    expect((await term.ended).reason).toBe('handed-over');
    expect(released).toMatchObject([{ reservedFor: 'b', reserveMs: 15_000 }]);
  });

  test.each([
    ['vacated', (term: HeldTerm<bigint>) => term.onRequest({ kind: 'vacate', nonce: 'x' })],
    ['vacated', (term: HeldTerm<bigint>) => term.onDrained()],
    ['election-ended', (term: HeldTerm<bigint>) => term.onElectionEnded()],
    ['disconnected', (term: HeldTerm<bigint>) => term.onDisconnected()],
  ])('it ends as %s', async (reason, ask) => {
    const all = setUp();
    const { clock, term, released } = all;
    await term.announce();
    await clock.advance(100);
    ask(term);
    // In order: its work may still settle.
    expect(term.isLeading()).toBe(true);
    term.settle();
    await clock.advance(0);
    expect((await term.ended).reason).toBe(reason);
    expect(released).toMatchObject([{ reason, hasLed: true }]);
    expect(released[0]).not.toHaveProperty('reserveMs');
  });
});

describe('a seat that is given back', () => {
  test('says from when to when it was led, and which leaders are still to be fenced', async () => {
    const unclean = { id: 'x', incarnation: 'of x', token: 1n, addresses: [], metadata: {} };
    const stopped = setUp({}, { unfenced: [unclean] });
    const wonMs = stopped.clock.wallMs();
    await stopped.clock.advance(50);
    stopped.term.stop('takeover-failed');
    stopped.term.settle();
    await stopped.clock.advance(0);
    expect(stopped.released).toEqual([
      {
        reason: 'takeover-failed',
        hasLed: false,
        fromUnixMs: wonMs,
        toUnixMs: wonMs + 50,
        unfenced: [unclean],
      },
    ]);
    const led = setUp({}, { unfenced: [unclean] });
    await led.clock.advance(50);
    await led.term.announce();
    await led.clock.advance(50);
    await end(led);
    expect(led.released).toMatchObject([
      { hasLed: true, fromUnixMs: wonMs + 50, toUnixMs: wonMs + 100, unfenced: [] },
    ]);
  });

  test('stays closed for the rest of a hold, by either clock', async () => {
    const all = setUp();
    const { clock, term, released } = all;
    await term.announce();
    const untilUnixMs = clock.wallMs() + 60_000;
    term.holdUntil(untilUnixMs, 60_000);
    await clock.advance(20_000);
    await end(all);
    expect(released).toMatchObject([{ reserveMs: 40_000 }]);
    const back = setUp();
    await back.term.announce();
    back.term.holdUntil(back.clock.wallMs() + 60_000, 60_000);
    back.clock.stepWall(-10_000);
    await end(back);
    expect(back.released).toMatchObject([{ reserveMs: 60_000 }]);
  });

  test('by a term that was asked to go: its hold is written with that, and not before', async () => {
    const all = setUp();
    const { clock, term, confirmed, released } = all;
    await term.announce();
    term.resign();
    term.holdUntil(clock.wallMs() + 60_000, 60_000);
    await clock.advance(10);
    expect(confirmed).toEqual([]);
    await end(all);
    expect(released).toMatchObject([{ reserveMs: 59_990 }]);
  });

  test('is open again when its hold is over', async () => {
    const all = setUp();
    await all.term.announce();
    all.term.holdUntil(all.clock.wallMs() + 5_000, 5_000);
    await all.clock.advance(5_000);
    await end(all);
    expect(all.released[0]).not.toHaveProperty('reserveMs');
  });

  test('is waited for three operation timeouts, and one more if it heeds nothing', async () => {
    let told: AbortSignal | undefined;
    const all = setUp(
      {},
      {
        release: (_end, signal) => {
          told = signal;
          return new Promise(() => {});
        },
      },
    );
    const { clock, term, trouble } = all;
    await term.announce();
    void term[Symbol.asyncDispose]();
    await clock.advance(7_499);
    expect(told?.aborted).toBe(false);
    await clock.advance(1);
    expect(told?.aborted).toBe(true);
    let isOver = false;
    void term.ended.then(() => {
      isOver = true;
    });
    await clock.advance(2_499);
    expect(isOver).toBe(false);
    await clock.advance(1);
    expect(await term.ended).toEqual({ reason: 'resigned', released: false, overrunMs: 0 });
    expect(trouble).toEqual(['releasing']);
    expect(clock.pendingTimers).toBe(0);
  });

  test('or is left behind: a caller that asks is told so', async () => {
    const error = new LeftBehindError('p-1');
    const all = setUp({}, { release: () => Promise.reject(error) });
    await all.term.announce();
    expect(await end(all)).toEqual({ reason: 'resigned', released: false, overrunMs: 0, error });
    const other = setUp({}, { release: () => Promise.reject(new Error('no route')) });
    expect(await end(other)).toEqual({ reason: 'resigned', released: false, overrunMs: 0 });
    const theirs = setUp({}, { release: async () => false });
    expect(await end(theirs)).toMatchObject({ released: false });
  });
});

describe('when belief ends', () => {
  test('is told at every extension, and that it is over; the watchdog until the work has settled', async () => {
    const all = setUp();
    const { clock, term, belief, watched } = all;
    await term.announce();
    await clock.advance(renewEveryMs);
    const extended = [
      { atMs: 0, endMs: beliefMs },
      { atMs: renewEveryMs, endMs: renewEveryMs + beliefMs },
    ];
    expect(belief).toEqual(extended);
    expect(watched).toEqual(extended);
    term.resign();
    term.settle();
    await clock.advance(0);
    const over = { atMs: renewEveryMs, endMs: undefined };
    expect(belief).toEqual([...extended, over]);
    expect(watched).toEqual([...extended, over]);
  });

  test('the watchdog is told of no belief any more once the work has settled', async () => {
    const clock = new SimulatedClock();
    const scope: Scope = {
      ...{ election: 'jobs', clock, timing, random: () => 0.5 },
      ...{ uniqueId: () => 'id', onTrouble: () => {} },
    };
    const told: (Deadline | undefined)[] = [];
    const watchdog = {
      update: (deadline: Deadline | undefined) => told.push(deadline),
      close() {},
    };
    const belief = new ToldBelief(new Belief(clock, beliefMs, readClocks(clock)), scope, {
      watchdog,
    });
    expect(told).toHaveLength(1);
    belief.onWorkSettled();
    await clock.advance(renewEveryMs);
    expect(belief.extend(readClocks(clock))).toBe(true);
    belief.end();
    expect(told.slice(1)).toEqual([undefined]);
  });

  test('while the work goes on, the watchdog still counts', async () => {
    const all = setUp();
    const { clock, term, belief, watched } = all;
    await term.announce();
    term.onLost('superseded');
    await clock.advance(100);
    // Belief is over at once, but the process must not be killed before its former end.
    expect(belief.at(-1)).toEqual({ atMs: 0, endMs: undefined });
    expect(watched).toEqual([{ atMs: 0, endMs: beliefMs }]);
    term.settle();
    expect(watched.at(-1)).toEqual({ atMs: 100, endMs: undefined });
    await clock.advance(0);
    expect((await term.ended).overrunMs).toBe(100);
  });

  test.each([
    [
      'throws',
      () => {
        throw new Error('no listener');
      },
    ],
    ['rejects', () => Promise.reject(new Error('no listener'))],
  ])('a listener that %s is trouble, and no end', async (_, onBelief) => {
    const all = setUp({ onBelief });
    await all.clock.advance(0);
    expect(all.trouble).toEqual(['onBelief']);
    await all.term.announce();
    expect(all.term.isLeading()).toBe(true);
    await end(all);
  });
});

test('a hook that goes on is work that has not settled', async () => {
  const { clock, term, events } = setUp();
  let settle = () => {};
  term.holdSettling(
    new Promise((resolve) => {
      settle = resolve;
    }),
  );
  term.stop('takeover-failed');
  term.settle();
  await clock.advance(1_000);
  expect(events).toEqual(['attached']);
  settle();
  await clock.advance(0);
  expect(events).toEqual(['attached', 'released']);
  expect((await term.ended).reason).toBe('takeover-failed');
});

test('work may give its signal to as many calls as it likes: Node.js does not warn', async () => {
  const all = setUp();
  const warnings = collectWarnings();
  for (let call = 0; call < 20; call += 1) all.term.signal.addEventListener('abort', () => {});
  await new Promise((resolve) => setImmediate(resolve));
  expect(warnings).toEqual([]);
  await end(all);
});

test('a term is announced only while it has more time than its work gets to stop', async () => {
  const late = setUp();
  // The host was suspended, and no timer has run since.
  late.clock.suspend(beliefMs - stopMarginMs);
  expect(late.term.marginMs()).toBe(0);
  await expect(late.term.announce()).rejects.toMatchObject({ reason: 'stalled' });
  expect(late.term.isLeading()).toBe(false);
  await end(late);
  const inTime = setUp();
  inTime.clock.suspend(beliefMs - stopMarginMs - 1);
  await inTime.term.announce();
  expect(inTime.term.isLeading()).toBe(true);
  await end(inTime);
});

test('a term that has not been announced does not lead', async () => {
  const all = setUp();
  const { term } = all;
  expect(term.isLeading()).toBe(false);
  expect(term.remaining()).toBe(0);
  expect(() => term.assertLeading()).toThrow('7');
  await term.announce();
  expect(term.remaining()).toBe(beliefMs);
  term.assertLeading();
  term.assertLeading(beliefMs - 1);
  await all.clock.advance(1);
  expect(() => term.assertLeading(beliefMs - 1)).toThrow();
  expect(() => term.assertLeading(beliefMs)).toThrow('less than the belief of 12000 ms');
  await end(all);
});

describe('when a term that has fenced is announced, the record names its actors', () => {
  const self = { pid: 4_711, startedAt: '7' };
  test.each([
    ['this process', 'self', self, [self]],
    ['nobody for certain, where the store cannot describe it', 'self', undefined, null],
    ['nobody for certain, before the work has declared it', 'declared', self, null],
  ] as const)('%s', async (_, actors, described, shown) => {
    const wanted: SeatState[] = [];
    const state: SeatState = { announced: false, actors: null, addresses: ['x:1'], metadata: {} };
    const contest = { standAsideMs: 1_000, describe: async () => described };
    const all = setUp({ actors }, { state }, contest);
    const { confirm } = all.script;
    all.script.confirm = (want, signal) => {
      wanted.push(want);
      return confirm(want, signal);
    };
    const announced = all.term.announce();
    await all.clock.advance(10);
    await announced;
    expect(wanted).toEqual([{ ...state, announced: true, actors: shown }]);
    await end(all);
  });
});

test('a proclamation is shown before it is answered, unless the term ends or the wait for it does', async () => {
  const all = setUp();
  const { clock, term, fail } = all;
  await term.announce();
  fail();
  const stop = new AbortController();
  const unheard = term.proclaim({ addresses: [] }, { signal: stop.signal });
  unheard.catch(() => {});
  const lost = term.proclaim({ addresses: [] });
  lost.catch(() => {});
  await clock.advance(10);
  stop.abort(new Error('enough'));
  await expect(unheard).rejects.toThrow('enough');
  term.resign();
  await expect(lost).rejects.toMatchObject({ reason: 'resigned' });
  await expect(term.proclaim({}, { signal: stop.signal })).rejects.toMatchObject({
    reason: 'resigned',
  });
  await end(all);
});

test('a caller that has given up already proclaims nothing', async () => {
  const all = setUp();
  await all.term.announce();
  const signal = AbortSignal.abort(new Error('enough'));
  const proclaimed = all.term.proclaim({ addresses: ['10.0.0.7:80'] }, { signal });
  await expect(proclaimed).rejects.toThrow('enough');
  const wanted: SeatState[] = [];
  const { confirm } = all.script;
  all.script.confirm = (want, stop) => {
    wanted.push(want);
    return confirm(want, stop);
  };
  await all.clock.advance(renewEveryMs - 1);
  expect(wanted).toEqual([]);
  await all.clock.advance(1);
  expect(wanted).toMatchObject([{ addresses: [] }]);
  await end(all);
});

describe('the work of lead', () => {
  const never = new AbortController().signal;
  const run = <T>({ clock, term }: ReturnType<typeof setUp>, work: () => T) =>
    runWork(term, work, { clock, holdAtLeastMs: 0, signal: never });

  test.each([
    ['returns', () => 42, { outcome: 'returned', value: 42 }],
    [
      'fails',
      () => {
        throw new Error('no disk');
      },
      { outcome: 'threw', error: new Error('no disk') },
    ],
  ])('%s: its caller hears of that when the seat has been given back', async (_, work, outcome) => {
    let giveBack = () => {};
    const release = () =>
      new Promise<boolean>((resolve) => {
        giveBack = () => resolve(true);
      });
    const all = setUp({}, { release });
    await all.term.announce();
    let isAnswered = false;
    const running = run<unknown>(all, work).finally(() => {
      isAnswered = true;
    });
    await all.clock.advance(10);
    expect(isAnswered).toBe(false);
    giveBack();
    await all.clock.advance(0);
    expect(isAnswered).toBe(true);
    expect(await running).toEqual(outcome);
  });

  test('has lost its term if the cause of its failure is that it leads no longer', async () => {
    const all = setUp();
    await all.term.announce();
    const running = run(all, () => {
      all.term.onLost('superseded');
      try {
        all.term.assertLeading();
      } catch (cause) {
        throw new Error('the write failed', { cause });
      }
    });
    await all.clock.advance(10);
    expect(await running).toEqual({ outcome: 'over', reason: 'superseded' });
  });

  test('has lost its term too if a call of it was cut short, for whatever reason that call was given', async () => {
    const all = setUp();
    await all.term.announce();
    const running = run(all, () => {
      all.term.onLost('superseded');
      throw new Error('the request failed', { cause: new DOMException('aborted', 'AbortError') });
    });
    await all.clock.advance(10);
    expect(await running).toEqual({ outcome: 'over', reason: 'superseded' });
  });

  test('may fail with errors that cause each other', async () => {
    const all = setUp();
    await all.term.announce();
    const first = new Error('first');
    const second = new Error('second', { cause: first });
    let looks = 0;
    Object.defineProperty(first, 'cause', {
      get() {
        looks += 1;
        if (looks > 10) throw new Error('it walks in circles');
        return second;
      },
    });
    const running = run(all, () => {
      all.term.resign();
      throw first;
    });
    await all.clock.advance(10);
    const worked = await running;
    expect(worked.outcome).toBe('threw');
    expect('error' in worked && worked.error === first).toBe(true);
  });
});

describe('a listener may answer with another event', () => {
  test('a subscriber that ends an uncertain term: the others hear first that it is uncertain', async () => {
    const all = setUp();
    await all.term.announce();
    const heard: string[] = [];
    const resigns = (message: unknown) => {
      if ((message as { state: string }).state === 'uncertain') all.term.resign();
    };
    const listens = (message: unknown) => void heard.push((message as { state: string }).state);
    subscribe('incumbent:state', resigns);
    subscribe('incumbent:state', listens);
    all.term.onUncertain();
    unsubscribe('incumbent:state', resigns);
    unsubscribe('incumbent:state', listens);
    expect(heard).toEqual(['uncertain', 'stopping']);
    await end(all);
  });

  test('a seat that is lost while the work is told to stop is believed in no longer, at once', async () => {
    const { clock, term } = setUp();
    await term.announce();
    let leads: boolean | undefined;
    onAbort(term.signal, () => {
      term.onLost('session-expired');
      leads = term.isLeading();
    });
    term.resign();
    expect(leads).toBe(false);
    term.settle();
    await clock.advance(0);
    expect((await term.ended).reason).toBe('resigned');
  });

  test('a leader that resigns because belief is over has lost the term, and gives nothing back', async () => {
    const onBelief = (deadline: Deadline | undefined) => {
      if (deadline === undefined) term.resign();
    };
    const { clock, term, events } = setUp({ onBelief });
    await term.announce();
    term.onLost('superseded');
    term.settle();
    await clock.advance(0);
    expect((await term.ended).reason).toBe('superseded');
    expect(events).not.toContain('released');
  });

  test('a listener that fails keeps nobody from hearing of the end', async () => {
    const { clock, term, trouble } = setUp();
    await term.announce();
    term.onceEnded(() => {
      throw new Error('a defect');
    });
    term.resign();
    term.settle();
    await clock.advance(0);
    expect((await term.ended).reason).toBe('resigned');
    expect(trouble).toContain('finish of a term');
  });
});

test('a term that ends while it is announced does not wait to become ready', async () => {
  const { clock, term } = setUp({ readiness: { timeoutMs: 60_000 } });
  const resigns = () => term.resign();
  subscribe('incumbent:leading', resigns);
  onTestFinished(() => void unsubscribe('incumbent:leading', resigns));
  await term.announce();
  expect(term.signal.reason).toMatchObject({ reason: 'resigned' });
  term.settle();
  await clock.advance(0);
  expect(await term.ended).toMatchObject({ reason: 'resigned', released: true });
  expect(clock.pendingTimers).toBe(0);
});

test('a term that is lost once more leaves no timer behind, however long its work goes on', async () => {
  const { clock, term } = setUp();
  await term.announce();
  await clock.advance(0);
  term.checkMargin();
  term.onLost('disconnected');
  term.onLost('superseded');
  await clock.advance(0);
  expect(clock.pendingTimers).toBe(0);
  term.settle();
  await term.ended;
});

test('a place that stays behind while the work goes on is not why the term ended', async () => {
  const abandon = async () => {
    throw new LeftBehindError('/jobs/1');
  };
  const { clock, term } = setUp({}, { abandon });
  await term.announce();
  term.onLost('superseded');
  await clock.advance(beliefMs);
  term.settle();
  await clock.advance(0);
  expect(await term.ended).not.toHaveProperty('error');
});
