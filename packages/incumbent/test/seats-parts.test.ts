// An election with several seats, on seats that do as the test says.
import { getEventListeners, setMaxListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import type { CandidateInfo } from '../src/base/candidate.ts';
import {
  ElectionEndedError,
  InvalidOptionError,
  RefusedError,
  StoreUnavailableError,
} from '../src/base/errors.ts';
import type { NotElectedReason } from '../src/base/not-elected.ts';
import { resolveTiming } from '../src/base/timing.ts';
import { Deferred, onAbort } from '../src/base/wait.ts';
import type {
  AdminRequest,
  AdminResult,
  Backend,
  Candidacy,
  Contest,
  ElectionBackend,
  Scope,
  Seat,
  SeatWrite,
  Snapshot,
  WaitMode,
} from '../src/core/contest.ts';
import { openSeats, requireSeatless, seatOf } from '../src/core/seats.ts';
import { SimulatedClock } from '../src/testing/index.ts';
import { collectWarnings } from './support/warnings.ts';

const candidate: CandidateInfo = { id: 'a', incarnation: 'i', addresses: [], metadata: {} };
const never = new AbortController().signal;
setMaxListeners(0, never);
const result: AdminResult = {
  changed: false,
  view: { state: 'vacant', sinceUnixMs: 0 },
  asked: { state: 'vacant', sinceUnixMs: 0 },
};

/** A campaign for one seat, which ends as the test says. */
interface Running {
  readonly candidacy: Candidacy;
  readonly waitMode: WaitMode;
  readonly signal: AbortSignal;
  readonly wins: () => void;
  readonly isRefused: () => void;
  readonly fails: (error: unknown) => void;
}

/** One seat. */
class Part {
  readonly scope: Scope;
  readonly asked: string[] = [];
  looks = 0;
  leader: CandidateInfo | undefined;
  waiting: readonly CandidateInfo[] = [];
  seats: number | undefined;
  /** The error of each question, if there is one. */
  trouble: unknown;
  changes = false;
  /** Waited for by each question. */
  until: Promise<void> = Promise.resolve();
  presented: CandidateInfo | undefined;
  running: Running | undefined;
  /** A campaign that is stopped has left only after this. */
  leaves: Promise<void> = Promise.resolve();

  constructor(scope: Scope) {
    this.scope = scope;
  }

  async #answer<T>(what: string, value: T): Promise<T> {
    await this.until;
    if (this.trouble !== undefined) throw this.trouble;
    this.asked.push(what);
    return value;
  }

  open(): ElectionBackend<string> {
    const snapshot = (): Snapshot => ({
      view:
        this.leader === undefined
          ? { state: 'vacant', sinceUnixMs: 0 }
          : { state: 'led', sinceUnixMs: 0, leader: this.leader, token: 1n },
      ...{ history: [], drains: [], unfenced: [], request: undefined, leaseMs: undefined },
      holderGone: false,
      ...(this.seats !== undefined && { seats: this.seats }),
    });
    return {
      canListCandidates: true,
      contest: () => this.#contest(),
      async *observe() {},
      inspect: () => {
        this.looks += 1;
        return this.#answer('look', snapshot());
      },
      administer: ({ kind }: AdminRequest, signal) => {
        signal.addEventListener('abort', () => {});
        return this.#answer(kind, { ...result, changed: this.changes });
      },
      candidates: () =>
        this.#answer('candidates', [...(this.leader ? [this.leader] : []), ...this.waiting]),
      init: () => this.#answer('init', undefined),
      close: () => this.#answer('close', undefined),
    };
  }

  #contest(): Contest<string> {
    return {
      standAsideMs: 1_234,
      present: (given) => {
        this.presented = given;
      },
      describe: async ({ pid }) => ({ pid, of: this.scope.election }),
      campaign: (candidacy, waitMode, signal) =>
        new Promise((resolve, reject) => {
          const forget = onAbort(signal, () => {
            void this.leaves.then(() => reject(signal.reason));
          });
          this.running = {
            ...{ candidacy, waitMode, signal, fails: reject },
            wins: () => {
              forget();
              resolve({ token: 1n } as Seat<string>);
            },
            isRefused: () => resolve(undefined),
          };
        }),
    };
  }
}

function open(count: number, more: Partial<Scope> = {}) {
  const clock = new SimulatedClock();
  const trouble: string[] = [];
  const parts: Part[] = [];
  const scope: Scope = {
    ...{ election: 'jobs', clock, timing: resolveTiming({ lease: '10s' }), random: () => 0 },
    ...{ uniqueId: () => 'id', onTrouble: (what: string) => trouble.push(what) },
    ...more,
  };
  const backend = {
    kind: 'parts',
    description: 'parts of a test',
    open(each: Scope) {
      const part = new Part(each);
      parts.push(part);
      return part.open();
    },
  } as Backend<string>;
  const opened = openSeats(backend, scope, count);
  return { clock, scope, trouble, parts, opened };
}

/** A candidate that campaigns for all seats of an election that has a leader or had one. */
function campaigning(count: number, waitMode: WaitMode = 'wait', more: Partial<Scope> = {}) {
  const all = open(count, more);
  const { opened, parts } = all;
  const reasons: NotElectedReason[] = [];
  const writes: SeatWrite[] = [];
  const candidacy: Candidacy = {
    stateAtWin: () => ({ announced: true, actors: null, addresses: [], metadata: {} }),
    onQueuePosition() {
      throw new Error('it has a place in each of the queues');
    },
    onWaiting: (why) => reasons.push(why),
    onWrite: (write) => writes.push(write),
  };
  const contest = opened.contest(candidate);
  const stop = new AbortController();
  const begin = () => {
    const outcome: { seat?: Seat<string> | undefined; error?: unknown; isOver: boolean } = {
      isOver: false,
    };
    contest.campaign(candidacy, waitMode, stop.signal).then(
      (seat) => Object.assign(outcome, { seat, isOver: true }),
      (error: unknown) => Object.assign(outcome, { error, isOver: true }),
    );
    return outcome;
  };
  const running = (seat: number) => parts[seat - 1]?.running as Running;
  const entered = () => parts.filter((part) => part.running !== undefined).length;
  /** The record of the first seat says how many there are. */
  const agree = () => {
    for (const part of parts) part.seats = count;
  };
  return { ...all, contest, stop, reasons, writes, begin, running, entered, agree };
}

describe('the seats', () => {
  test('are up to a hundred elections, and each knows how many there are', () => {
    const { parts, opened } = open(100);
    expect(parts.map(({ scope }) => scope.election)).toEqual([
      'jobs',
      ...Array.from({ length: 99 }, (_, index) => `jobs.seat-${index + 2}`),
    ]);
    expect(new Set(parts.map(({ scope }) => scope.seats))).toEqual(new Set([100]));
    expect(() => seatOf(opened, 100)).not.toThrow();
    expect(() => seatOf(opened, 101)).toThrow(InvalidOptionError);
    expect(() => open(101)).toThrow('seats must be a whole number from 1 to 100, not 101');
  });

  test('are made ready one after the other, and all of them are closed', async () => {
    const { parts, opened } = open(3);
    await opened.init(never);
    await opened.close();
    expect(parts.map(({ asked }) => asked)).toEqual(Array(3).fill(['init', 'close']));
  });

  test('are presented one candidate, and the first speaks for all', async () => {
    const { contest, parts } = campaigning(3);
    contest.present({ ...candidate, id: 'b' });
    expect(parts.map(({ presented }) => presented?.id)).toEqual(['b', 'b', 'b']);
    expect(contest.standAsideMs).toBe(1_234);
    expect(await contest.describe({ pid: 7 })).toEqual({ pid: 7, of: 'jobs' });
  });
});

describe('a request for the whole election', () => {
  test('has changed something if it has in any seat', async () => {
    const { parts, opened } = open(3);
    const end = () => opened.administer({ kind: 'end' }, never);
    expect(await end()).toEqual(result);
    const last = parts[2] as Part;
    last.changes = true;
    expect(await end()).toEqual({ ...result, changed: true });
    expect(parts.map(({ asked }) => asked)).toEqual(Array(3).fill(['end', 'end']));
  });

  test('reaches every seat before it says that one of them cannot be asked', async () => {
    const { clock, parts, opened } = open(3);
    const [first, , last] = parts as [Part, Part, Part];
    first.trouble = new StoreUnavailableError('away');
    const answer = new Deferred<void>();
    last.until = answer.promise;
    let error: unknown;
    opened.administer({ kind: 'end' }, never).catch((thrown: unknown) => {
      error = thrown;
    });
    await clock.advance(0);
    expect(error).toBeUndefined();
    answer.resolve();
    await clock.advance(0);
    expect(error).toBe(first.trouble);
    expect(parts.map(({ asked }) => asked)).toEqual([[], ['end'], ['end']]);
  });

  test('may be made of a hundred seats: Node.js warns of no leak', async () => {
    const warnings = collectWarnings();
    const { opened } = open(100);
    const { signal } = new AbortController();
    await opened.administer({ kind: 'end' }, signal);
    await new Promise(setImmediate);
    expect(warnings).toEqual([]);
  });

  test('lists each candidate once, and the leaders first', async () => {
    const { parts, opened } = open(3);
    const named = (id: string) => ({ ...candidate, id, incarnation: `of ${id}` });
    for (const [index, part] of parts.entries()) {
      part.leader = index === 1 ? undefined : named(`leader-${index + 1}`);
      part.waiting = [named('w'), named('x')];
    }
    const ids = (await opened.candidates(never)).map(({ id }) => id);
    expect(ids).toEqual(['leader-1', 'w', 'leader-3', 'x']);
  });
});

test('a seat is handed over only to a candidate that leads no other', async () => {
  const { parts, opened } = open(3);
  const [first, second] = parts as [Part, Part];
  second.leader = candidate;
  const asked = (seat?: number) => requireSeatless(opened, 'a', seat, never);
  await expect(asked(3)).rejects.toThrow(RefusedError);
  await expect(asked()).rejects.toThrow('"a" leads seat 2: a candidate has one seat at most');
  // The seat itself says that it leads there already.
  await asked(2);
  [first.leader, second.leader] = [candidate, undefined];
  await asked();
  await expect(asked(2)).rejects.toThrow('"a" leads seat 1');
  await requireSeatless(opened, 'b', 2, never);
  const { parts: only, opened: one } = open(1);
  await requireSeatless(one, 'a', 2, never);
  expect(only[0]?.looks).toBe(0);
});

describe('a candidate for several seats', () => {
  test('enters the first alone until the number is agreed, and looks for that once a second', async () => {
    const { clock, parts, begin, entered, agree } = campaigning(3);
    const { timing } = campaigning(3).scope;
    expect(timing.pollEveryMs).toBeGreaterThan(1_000);
    begin();
    await clock.advance(0);
    expect(entered()).toBe(1);
    await clock.advance(999);
    expect(parts.map(({ looks }) => looks)).toEqual([1, 1, 1]);
    await clock.advance(1);
    expect(parts.map(({ looks }) => looks)).toEqual([2, 2, 2]);
    agree();
    await clock.advance(999);
    expect(entered()).toBe(1);
    await clock.advance(1);
    expect(entered()).toBe(3);
    // Nothing is left to find out.
    await clock.advance(60_000);
    expect(parts.map(({ looks }) => looks)).toEqual([3, 3, 3]);
  });

  test('looks as often as it polls where that is more often', async () => {
    const timing = resolveTiming({ lease: '10s', pollEvery: 300 });
    const { clock, parts, begin } = campaigning(2, 'wait', { timing });
    begin();
    await clock.advance(900);
    expect(parts[0]?.looks).toBe(4);
  });

  test('that has won leaves the other lines, and its seat has a number', async () => {
    const { clock, stop, begin, running, agree } = campaigning(3);
    agree();
    const outcome = begin();
    await clock.advance(0);
    running(2).wins();
    await clock.advance(0);
    expect(outcome.seat).toMatchObject({ token: 1n, number: 2 });
    // Its own campaign for the seat was not told to stop.
    expect(running(2).signal.aborted).toBe(false);
    expect(getEventListeners(stop.signal, 'abort')).toEqual([]);
  });

  test('attempts one seat at a time, and after a win no other one', async () => {
    const { clock, parts, begin, running, agree } = campaigning(3);
    agree();
    begin();
    await clock.advance(0);
    const { turns } = (parts[0] as Part).scope;
    const attempts: string[] = [];
    const answer = new Deferred<object>();
    const take = (seat: number, verdict: Promise<object>) =>
      turns
        ?.take(
          () => {
            attempts.push(`begins ${seat}`);
            return verdict;
          },
          running(seat).signal,
          false,
        )
        .catch((error: Error) => attempts.push(`${seat}: ${error.message}`));
    void take(1, answer.promise);
    void take(2, Promise.resolve({ kind: 'won' }));
    void take(3, Promise.resolve({ kind: 'wait' }));
    await clock.advance(0);
    expect(attempts).toEqual(['begins 1']);
    answer.resolve({ kind: 'wait' });
    await clock.advance(0);
    expect(attempts).toEqual(['begins 1', 'begins 2', '3: another seat is won']);
    expect([1, 2, 3].map((seat) => running(seat).signal.aborted)).toEqual([true, false, true]);
  });

  test('takes the turns of its backend for each attempt', async () => {
    const taken: boolean[] = [];
    const turns: Scope['turns'] = {
      take(attempt, _signal, isInLine) {
        taken.push(isInLine);
        return attempt();
      },
    };
    const { parts } = open(2, { turns });
    const attempt = () => Promise.resolve('done');
    const gate = (parts[1] as Part).scope.turns;
    expect(await gate?.take(attempt, never, true)).toBe('done');
    expect(await gate?.take(attempt, never, false)).toBe('done');
    expect(taken).toEqual([true, false]);
  });

  test('campaigns again only when it has left all lines of the last time', async () => {
    const { clock, parts, opened, begin, running, agree } = campaigning(2);
    agree();
    begin();
    await clock.advance(0);
    const left = new Deferred<void>();
    const [first, second] = parts as [Part, Part];
    second.leaves = left.promise;
    const before = running(1);
    void first.scope.turns?.take(async () => ({ kind: 'won' }), before.signal, false);
    before.wins();
    await clock.advance(0);
    expect(running(2).signal.aborted).toBe(true);
    begin();
    const closing = opened.close();
    await clock.advance(5_000);
    expect(running(1)).toBe(before);
    expect(first.asked).not.toContain('close');
    left.resolve();
    await clock.advance(0);
    expect(running(1)).not.toBe(before);
    await closing;
  });

  test('that is withdrawn leaves all lines, and says why', async () => {
    const { clock, stop, begin, running, agree } = campaigning(3);
    agree();
    const outcome = begin();
    await clock.advance(0);
    const reason = new Error('enough');
    stop.abort(reason);
    await clock.advance(0);
    expect(outcome.error).toBe(reason);
    expect([1, 2, 3].map((seat) => running(seat).signal.reason)).toEqual(Array(3).fill(reason));
    // It begins no more, however late it hears of that.
    expect(begin()).toEqual({ isOver: false });
    await clock.advance(0);
    expect(getEventListeners(stop.signal, 'abort')).toEqual([]);
  });

  test('that was withdrawn before it began asks the store nothing', async () => {
    const { clock, parts, stop, begin } = campaigning(2);
    stop.abort(new Error('enough'));
    const outcome = begin();
    await clock.advance(0);
    expect(outcome.error).toBe(stop.signal.reason);
    expect(parts.map(({ looks }) => looks)).toEqual([0, 0]);
  });

  test('that finds the election ended for one seat waits for no other', async () => {
    const { clock, begin, running, agree } = campaigning(3);
    agree();
    const outcome = begin();
    await clock.advance(0);
    const error = new ElectionEndedError('jobs');
    running(2).fails(error);
    await clock.advance(0);
    expect(outcome.error).toBe(error);
    expect(running(3).signal.aborted).toBe(true);
  });

  test('that fails as it is withdrawn says that it was withdrawn', async () => {
    const { clock, stop, begin, running, agree } = campaigning(2);
    agree();
    const outcome = begin();
    await clock.advance(0);
    stop.abort(new Error('enough'));
    running(1).fails(new StoreUnavailableError('away'));
    await clock.advance(0);
    expect(outcome.error).toBe(stop.signal.reason);
  });

  test('that wins as its other campaign fails has won', async () => {
    const { clock, begin, running, agree } = campaigning(2);
    agree();
    const outcome = begin();
    await clock.advance(0);
    running(1).wins();
    running(2).fails(new StoreUnavailableError('away'));
    await clock.advance(0);
    expect(outcome.seat).toMatchObject({ number: 1 });
  });

  test('is refused when any record names another number', async () => {
    const { clock, parts, begin, entered, agree } = campaigning(3);
    agree();
    (parts[2] as Part).seats = 5;
    const outcome = begin();
    await clock.advance(0);
    expect(outcome.error).toBeInstanceOf(InvalidOptionError);
    expect(String(outcome.error)).toContain('election "jobs.seat-3" has 5 seats');
    expect(entered()).toBe(0);
  });
});

describe('a candidate that waits for nobody', () => {
  test('is told no when every seat is taken, whatever the order of the answers', async () => {
    const { clock, begin, running, agree } = campaigning(3, 'none');
    agree();
    const outcome = begin();
    await clock.advance(0);
    expect([1, 2, 3].map((seat) => running(seat).waitMode)).toEqual(['none', 'none', 'none']);
    for (const seat of [3, 1, 2]) {
      expect(outcome.isOver).toBe(false);
      running(seat).isRefused();
      await clock.advance(0);
    }
    expect(outcome).toEqual({ isOver: true, seat: undefined });
  });

  test('that is refused the first seat looks once more: the others may be open by now', async () => {
    const { clock, parts, begin, running, entered, agree } = campaigning(2, 'settle');
    const outcome = begin();
    await clock.advance(0);
    agree();
    running(1).isRefused();
    await clock.advance(0);
    expect(entered()).toBe(2);
    running(2).isRefused();
    await clock.advance(0);
    expect(outcome).toEqual({ isOver: true, seat: undefined });
    expect(parts.map(({ looks }) => looks)).toEqual([2, 2]);
  });

  test('that is refused a seat which nobody has ever won looks only once more', async () => {
    const { clock, parts, begin, running } = campaigning(2, 'settle');
    const outcome = begin();
    await clock.advance(0);
    running(1).isRefused();
    await clock.advance(0);
    expect(outcome).toEqual({ isOver: true, seat: undefined });
    expect(parts.map(({ looks }) => looks)).toEqual([2, 2]);
  });

  test.each<WaitMode>(['none', 'settle'])('(%s) waits for no store either', async (waitMode) => {
    const { clock, trouble, parts, begin, reasons, entered } = campaigning(2, waitMode);
    const cause = new StoreUnavailableError('away');
    (parts[1] as Part).trouble = cause;
    const outcome = begin();
    await clock.advance(0);
    expect(outcome).toEqual({ isOver: true, seat: undefined });
    expect(reasons).toEqual([{ kind: 'unreachable', cause }]);
    expect(entered()).toBe(0);
    expect(trouble).toEqual([]);
  });
});

test('a candidate asks a store that is away less and less often, and tells of each failure', async () => {
  const { clock, trouble, parts, begin, reasons, entered, agree, scope } = campaigning(2);
  const cause = new StoreUnavailableError('away');
  const first = parts[0] as Part;
  first.trouble = cause;
  const outcome = begin();
  const looksAtMs: number[] = [];
  const { retryBackoffMs, pollEveryMs } = scope.timing;
  for (let ms = 0; ms <= 4 * retryBackoffMs; ms += 10) {
    await clock.advance(ms === 0 ? 0 : 10);
    if (first.looks > looksAtMs.length) looksAtMs.push(ms);
  }
  const halfMs = retryBackoffMs / 2;
  expect(looksAtMs.slice(0, 3)).toEqual([
    0,
    halfMs,
    halfMs + Math.min(2 * halfMs, pollEveryMs / 2),
  ]);
  expect(trouble.length).toBe(first.looks);
  expect(new Set(trouble)).toEqual(new Set(['campaigning']));
  expect(new Set(reasons.map(({ kind }) => kind))).toEqual(new Set(['unreachable']));
  first.trouble = undefined;
  agree();
  await clock.advance(pollEveryMs);
  expect(entered()).toBe(2);
  expect(outcome.isOver).toBe(false);
});

describe('the reason why no seat is ours', () => {
  const led = (id: string): NotElectedReason => ({ kind: 'led', id, token: 1n });
  const held: NotElectedReason = { kind: 'held', by: 'b', untilUnixMs: 1 };

  async function told() {
    const all = campaigning(3);
    all.agree();
    all.begin();
    await all.clock.advance(0);
    return all;
  }

  test('is another leader only if all seats have one, with the number of seats', async () => {
    const { reasons, running } = await told();
    running(1).candidacy.onWaiting(led('x'));
    running(2).candidacy.onWaiting(held);
    running(3).candidacy.onWaiting(led('z'));
    expect(reasons).toEqual([{ ...led('x'), seats: 3 }, held, held]);
    running(2).candidacy.onWaiting(led('y'));
    expect(reasons.at(-1)).toEqual({ ...led('x'), seats: 3 });
  });

  test('is told with a place in a queue as well, and the place itself is not', async () => {
    const { reasons, running } = await told();
    const { candidacy } = running(2);
    candidacy.onQueuePosition({ place: 'p-2', following: 'p-1' }, held);
    candidacy.onQueuePosition({ place: 'p-2', following: 'p-1' }, undefined);
    expect(reasons).toEqual([held]);
  });

  test('is told no more once a seat is won', async () => {
    const { clock, reasons, parts, running } = await told();
    const { turns } = (parts[0] as Part).scope;
    void turns?.take(async () => ({ kind: 'won' }), running(1).signal, false);
    await clock.advance(0);
    running(2).candidacy.onWaiting(held);
    expect(reasons).toEqual([]);
  });

  test('is for people, and a witness is told the number of the seat with each write', async () => {
    const { writes, running } = await told();
    running(3).candidacy.onWrite?.({ token: 4n, nonce: 'n' });
    expect(writes).toEqual([{ token: 4n, nonce: 'n', seat: 3 }]);
  });
});
