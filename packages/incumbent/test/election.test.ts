// The duties of a handle to its callers, on a backend that does as the test says.
import { getEventListeners } from 'node:events';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { memory } from '../src/backends/memory/index.ts';
import { Belief } from '../src/base/belief.ts';
import { readClocks, systemClock } from '../src/base/clock.ts';
import { StoreUnsuitableError } from '../src/base/errors.ts';
import type {
  Backend,
  Contest,
  ElectionBackend,
  Scope,
  Seat,
  Snapshot,
} from '../src/core/contest.ts';
import { noListing } from '../src/core/listing.ts';
import type { CandidateStatus, Election, ElectionOptions, View } from '../src/index.ts';
import { createElection, NotElectedError, TakeoverFailedError } from '../src/index.ts';
import { SimulatedClock, SimulatedLeaseStore } from '../src/testing/index.ts';
import { LockStage } from './lock/stage.ts';
import { Stage } from './queue/support.ts';
import { lost, ScriptedStore } from './support/scripted-store.ts';

const snapshot: Snapshot = {
  view: { state: 'vacant', sinceUnixMs: 0 },
  history: [],
  drains: [],
  request: undefined,
  leaseMs: undefined,
  unfenced: [],
  holderGone: false,
};

function setUp(says: Partial<ElectionBackend<bigint>>) {
  const clock = new SimulatedClock();
  const backend: Backend<bigint> = {
    kind: 'told',
    description: 'what the test says',
    ...noListing('this test lists nothing'),
    open: () =>
      ({
        canListCandidates: true,
        inspect: async () => snapshot,
        close: async () => {},
        ...says,
      }) as ElectionBackend<bigint>,
  };
  const trouble: string[] = [];
  const election = createElection({
    name: 'jobs',
    backend,
    clock,
    onTrouble: ({ what }) => trouble.push(what),
  });
  return { clock, election, trouble };
}

/** The outcome of a promise, awaited later. */
function outcomeOf(promise: Promise<unknown>) {
  const seen: { error?: unknown; isOver: boolean } = { isOver: false };
  promise.then(
    () => {
      seen.isOver = true;
    },
    (error) => {
      seen.isOver = true;
      seen.error = error;
    },
  );
  return seen;
}

describe('a request', () => {
  test('is given up after six operation timeouts', async () => {
    const { clock, election } = setUp({ inspect: lost, administer: lost, init: lost });
    const asked = [election.leader(), election.vacate(), election.init()].map(outcomeOf);
    const mostMs = 6 * election.timing.operationTimeoutMs;
    await clock.advance(mostMs - 1);
    expect(asked.map(({ isOver }) => isOver)).toEqual([false, false, false]);
    await clock.advance(1);
    for (const { error } of asked) expect(error).toMatchObject({ code: 'OPERATION_TIMEOUT' });
  });

  test('is given up when its caller, or the handle, wants no more', async () => {
    const { clock, election } = setUp({ inspect: lost });
    const stop = new AbortController();
    const one = outcomeOf(election.leader({ signal: stop.signal }));
    const other = outcomeOf(election.leader());
    await clock.advance(1);
    stop.abort(new Error('enough'));
    await clock.advance(0);
    expect(one.error).toMatchObject({ message: 'enough' });
    expect(other.isOver).toBe(false);
    await election.close();
    await clock.advance(0);
    expect(other.error).toMatchObject({ code: 'CLOSED' });
  });

  test('listens to the signal of its caller for no longer than it takes', async () => {
    const { clock, election } = setUp({ inspect: lost });
    const { signal } = new AbortController();
    const asked = outcomeOf(election.leader({ signal }));
    await clock.advance(1);
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    await clock.advance(6 * election.timing.operationTimeoutMs);
    expect(asked.isOver).toBe(true);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
    await election.close();
  });
});

describe('a backend', () => {
  const scopeOf = (more: Partial<ElectionOptions<bigint>> = {}) => {
    const scopes: Scope[] = [];
    const { backend } = setUp({}).election;
    const open = (scope: Scope) => {
      scopes.push(scope);
      return backend.open(scope);
    };
    createElection({ name: 'jobs', backend: { ...backend, open }, ...more });
    expect(scopes).toHaveLength(1);
    return scopes[0] as Scope;
  };

  test('is handed the clock, the durations and the random numbers of the handle', () => {
    const clock = new SimulatedClock();
    const random = () => 0.25;
    const scope = scopeOf({ clock, random, lease: '20s' });
    expect(scope).toMatchObject({ election: 'jobs', clock, random, timing: { leaseMs: 20_000 } });
    expect(scopeOf()).toMatchObject({ clock: systemClock, random: Math.random });
    expect(scope.uniqueId()).not.toBe(scope.uniqueId());
  });

  test.each<[ElectionOptions<bigint>['init'], boolean]>([
    ['auto', true],
    ['never', false],
    [undefined, false],
  ])('makes what is missing only where it may: init %s', (init, makesMissing) => {
    expect(scopeOf(init === undefined ? {} : { init }).makesMissing).toBe(makesMissing);
  });
});

describe.each([
  ['a lease', (init: () => Promise<void>) => new ScriptedStore().backend({ init })],
  ['a queue', (init: () => Promise<void>) => initialisedBy(init, new Stage())],
  ['a lock', (init: () => Promise<void>) => initialisedBy(init, new LockStage())],
])('the store of %s', (_, backendWith) => {
  test('is ready when `init` resolves, and not before; its error is that of the call', async () => {
    const clock = new SimulatedClock();
    let isReady = () => {};
    const made = () =>
      new Promise<void>((resolve) => {
        isReady = resolve;
      });
    const election = createElection({ name: 'jobs', backend: backendWith(made), clock });
    const asked = outcomeOf(election.init());
    await clock.advance(100);
    expect(asked.isOver).toBe(false);
    isReady();
    await clock.advance(0);
    expect(asked).toEqual({ isOver: true });
    const error = new StoreUnsuitableError('no right to make a table');
    const other = createElection({
      ...{ name: 'jobs', clock },
      backend: backendWith(() => Promise.reject(error)),
    });
    await expect(other.init()).rejects.toBe(error);
  });
});

/** A backend whose store has another `init`. */
function initialisedBy(init: () => Promise<void>, stage: Stage): Backend<bigint> {
  const session = stage.store.connect();
  const { open } = session;
  session.open = (election) => ({ ...open.call(session, election), init });
  return stage.backendOf(session);
}

test('a campaign that could not begin leaves the handle free for the next one', async () => {
  const { clock, candidate } = bound();
  const election = candidate('a');
  const wrong = { check: 'no function' as never };
  await expect(election.campaign({ health: wrong })).rejects.toThrow('health.check must be');
  const campaign = election.campaign();
  await expect(election.campaign()).rejects.toThrow('campaigns already');
  await clock.advance(10);
  const term = await campaign;
  await expect(election.campaign()).rejects.toThrow('campaigns already');
  const disposed = term[Symbol.asyncDispose]();
  await clock.advance(1_000);
  await disposed;
  const again = election.campaign();
  await clock.advance(10_000);
  const next = await again;
  await Promise.all([next[Symbol.asyncDispose](), clock.advance(1_000)]);
  await election.close();
});

describe('a handle that is closed', () => {
  test('waits for its store, for one operation timeout', async () => {
    const { clock, election, trouble } = setUp({ close: lost });
    const closed = outcomeOf(election.close());
    await clock.advance(election.timing.operationTimeoutMs - 1);
    expect(closed.isOver).toBe(false);
    await clock.advance(1);
    expect(closed).toEqual({ isOver: true });
    expect(trouble).toEqual(['closing the store']);
  });

  test('takes nothing more, also while its work still settles', async () => {
    const { clock, candidate } = bound();
    const election = candidate('a');
    let finish = () => {};
    const job = outcomeOf(
      election.lead(
        () =>
          new Promise<void>((resolve) => {
            finish = resolve;
          }),
      ),
    );
    await clock.advance(10);
    const closed = outcomeOf(election.close());
    await clock.advance(10);
    expect(closed.isOver).toBe(false);
    const observed = election.observe()[Symbol.asyncIterator]().next();
    for (const refused of [election.campaign(), election.leader(), election.end(), observed]) {
      await expect(refused).rejects.toMatchObject({ code: 'CLOSED' });
    }
    finish();
    await clock.advance(10);
    expect(closed).toEqual({ isOver: true });
    expect(job.error).toMatchObject({ code: 'CLOSED' });
  });
});

describe('a handle that is closed while its candidate wins the seat', () => {
  test('waits until the seat has been given back, and fences nobody', async () => {
    let win = (_seat: Seat<bigint>) => {};
    let giveBack = () => {};
    const contest: Partial<Contest<bigint>> = {
      ...{ standAsideMs: 0, present: () => {}, describe: async () => undefined },
      campaign: () =>
        new Promise((resolve) => {
          win = resolve;
        }),
    };
    const { clock, election } = setUp({ contest: () => contest as Contest<bigint> });
    let fenced = 0;
    const onUnclean = () => {
      fenced += 1;
      return lost<void>();
    };
    const campaign = outcomeOf(election.campaign({ onUnclean }));
    await clock.advance(10);
    const closed = outcomeOf(election.close());
    const sentAt = readClocks(clock);
    win({
      ...{ token: 7n, guard: 7n, sentAt, predecessor: undefined, waitBeforeAnnounceMs: 0 },
      belief: new Belief(clock, election.timing.beliefMs, sentAt),
      state: { announced: false, actors: null, addresses: [], metadata: {} },
      unfenced: [{ id: 'x', incarnation: 'of x', token: 6n, addresses: [], metadata: {} }],
      attach: () => {},
      confirm: lost,
      release: () =>
        new Promise((resolve) => {
          giveBack = () => resolve(true);
        }),
      abandon: async () => {},
    });
    await clock.advance(10);
    expect(closed.isOver).toBe(false);
    giveBack();
    await clock.advance(0);
    expect(closed).toEqual({ isOver: true });
    expect(campaign.error).toMatchObject({ code: 'CLOSED' });
    expect(fenced).toBe(0);
  });
});

describe('an observer', () => {
  test('is told no view twice in a row, and of none when it has ended', async () => {
    const leader = { id: 'a', incarnation: 'x', addresses: [], metadata: {} };
    const led: View = { state: 'led', leader, token: 1n, sinceUnixMs: 5 };
    const views: View[] = [
      { state: 'vacant', sinceUnixMs: 1 },
      { state: 'vacant', sinceUnixMs: 2 },
      led,
      { ...led, sinceUnixMs: 6 },
      { ...led, leader: { ...leader, addresses: ['x:1'] } },
      { ...led, leader: { ...leader, incarnation: 'y', addresses: ['x:1'] } },
    ];
    let isStopped = false;
    const { election } = setUp({
      observe: async function* (signal) {
        yield* views;
        if (!signal.aborted) await new Promise((r) => signal.addEventListener('abort', r));
        isStopped = true;
        // Too late.
        yield { state: 'vacant', sinceUnixMs: 9 };
      },
    });
    const seen: View[] = [];
    const stop = new AbortController();
    for await (const view of election.observe({ signal: stop.signal })) {
      seen.push({ ...view });
      if (seen.length === 4) stop.abort();
    }
    expect(seen).toEqual([views[0], views[2], views[4], views[5]]);
    expect(isStopped).toBe(true);
  });
});

/** Candidates on one lease. */
class Leases {
  readonly clock = new SimulatedClock();
  readonly store = new SimulatedLeaseStore({ clock: this.clock });

  candidate(id: string, options: Partial<ElectionOptions<bigint>> = {}) {
    const connection = this.store.connect();
    const { clock } = this;
    const common = { name: 'jobs', clock, candidate: { id }, random: () => 0 };
    return createElection<bigint>({ ...common, backend: connection.backend, ...options });
  }
}

describe('each campaign of a handle', () => {
  test('is that of the candidate that it was given', async () => {
    const { store, candidate } = bound();
    const election = candidate('a');
    await election.lead(() => {
      expect(store.record('jobs')?.holding?.candidate.id).toBe('a');
    });
    await election.lead(
      () => {
        expect(store.record('jobs')?.holding?.candidate).toMatchObject({
          id: 'b',
          addresses: ['x:1'],
        });
      },
      { candidate: { id: 'b', addresses: ['x:1'] } },
    );
    expect((await election.history()).map(({ id }) => id)).toEqual(['a', 'b']);
  });
});

function bound() {
  const leases = new Leases();
  return {
    clock: leases.clock,
    store: leases.store,
    candidate: (...args: Parameters<Leases['candidate']>) => leases.candidate(...args),
  };
}

describe('the work of lead', () => {
  test('does not begin if its candidate is told to stop when it has just become leader', async () => {
    const { store, candidate } = bound();
    const stop = new AbortController();
    let began = 0;
    const leading = candidate('a').lead(
      () => {
        began += 1;
      },
      {
        signal: stop.signal,
        onStatus: ({ role }) => {
          if (role === 'leader') stop.abort(new Error('enough'));
        },
      },
    );
    await expect(leading).rejects.toThrow('enough');
    expect(began).toBe(0);
    expect(store.record('jobs')?.holding).toBeUndefined();
  });
});

describe('a handle that campaigns again and again', () => {
  /**
   * Abort listeners that were added and not taken away, by signal. Those of aborted
   * signals are gone.
   */
  function countListeners() {
    const counts = new Map<AbortSignal, Set<unknown>>();
    const { addEventListener, removeEventListener } = EventTarget.prototype;
    const spies = [
      vi.spyOn(AbortSignal.prototype, 'addEventListener').mockImplementation(function (
        this: AbortSignal,
        ...given: Parameters<typeof addEventListener>
      ) {
        counts.set(this, (counts.get(this) ?? new Set()).add(given[1]));
        return addEventListener.apply(this, given);
      }),
      vi.spyOn(AbortSignal.prototype, 'removeEventListener').mockImplementation(function (
        this: AbortSignal,
        ...given: Parameters<typeof removeEventListener>
      ) {
        counts.get(this)?.delete(given[1]);
        return removeEventListener.apply(this, given);
      }),
    ];
    onTestFinished(() => {
      for (const spy of spies) spy.mockRestore();
    });
    return () => [...counts].map(([signal, listeners]) => (signal.aborted ? 0 : listeners.size));
  }

  test.each([
    [
      'campaign',
      async (election: Election<bigint>) => {
        const term = await election.campaign();
        await term[Symbol.asyncDispose]();
      },
    ],
    ['lead', (election: Election<bigint>) => election.lead(() => {})],
    [
      'terms',
      async (election: Election<bigint>) => {
        for await (const _ of election.terms()) break;
      },
    ],
  ])('keeps nothing of the terms that have ended: %s', async (_, once) => {
    const { clock, candidate } = bound();
    const election = candidate('a');
    const listeners = countListeners();
    for (let i = 0; i < 5; i += 1) {
      const over = once(election);
      await clock.advance(2_000);
      await over;
    }
    expect(Math.max(...listeners())).toBeLessThan(5);
    await election.close();
  });

  test('keeps nothing of them while its health check goes on', async () => {
    const clock = new SimulatedClock();
    const election = createElection({ name: 'jobs', backend: memory(), clock });
    const listeners = countListeners();
    const left: number[] = [];
    const done = election.lead(
      (term) => {
        left.push(listeners().reduce((sum, count) => sum + count, 0));
        if (left.length < 5) term.resign();
      },
      { health: { check: () => true } },
    );
    await clock.advance(60_000);
    await done;
    expect(left).toEqual(left.map(() => left[0]));
    expect(left).toHaveLength(5);
    await election.close();
  });
});

describe('a job that is held', () => {
  test('keeps the seat until so long after its term began', async () => {
    const { clock, candidate } = bound();
    const startMs = clock.monotonicMs();
    let endedMs = Number.NaN;
    const job = candidate('a')
      .lead(() => clock.sleep('20s'), { holdAtLeast: '60s' })
      .then(() => {
        endedMs = clock.monotonicMs() - startMs;
      });
    await clock.advance(59_000);
    expect(endedMs).toBeNaN();
    await clock.advance(2_000);
    await job;
    expect(endedMs).toBe(60_000);
  });

  test('that takes longer than that is not held', async () => {
    const { clock, candidate } = bound();
    const job = candidate('a').lead(() => clock.sleep('20s'), { holdAtLeast: '10s' });
    const seen = outcomeOf(job);
    await clock.advance(20_100);
    expect(seen).toEqual({ isOver: true });
  });

  test('is held no longer than that, however the clock is set', async () => {
    const { clock, candidate } = bound();
    const job = outcomeOf(candidate('a').lead(() => {}, { holdAtLeast: '10s' }));
    await clock.advance(1);
    clock.stepWall(-3_600_000);
    await clock.advance(10_000);
    expect(job).toEqual({ isOver: true });
  });
});

describe('a candidate that waits so long', () => {
  test('is told then, and gives up', async () => {
    const { clock, candidate } = bound();
    const term = await candidate('a').campaign();
    const waiting = outcomeOf(candidate('b').campaign({ wait: '5s' }));
    await clock.advance(4_999);
    expect(waiting.isOver).toBe(false);
    await clock.advance(1);
    expect(waiting.error).toBeInstanceOf(NotElectedError);
    expect(waiting.error).toMatchObject({ why: { kind: 'led', id: 'a', token: 1n } });
    await term[Symbol.asyncDispose]();
  });

  test('does not when it was elected by then', async () => {
    const { clock, candidate } = bound();
    const term = await candidate('b').campaign({ wait: '5s' });
    await clock.advance(10_000);
    expect(term.isLeading()).toBe(true);
    await term[Symbol.asyncDispose]();
  });
});

test('a candidate that waits for nobody is told that it is out, after why it was not elected', async () => {
  const { candidate } = bound();
  const term = await candidate('a').campaign();
  const statuses: CandidateStatus[] = [];
  const trying = candidate('b').campaign({ wait: 0, onStatus: (status) => statuses.push(status) });
  await expect(trying).rejects.toBeInstanceOf(NotElectedError);
  expect(statuses).toMatchObject([
    { role: 'follower', waitingFor: { kind: 'led', id: 'a' } },
    { role: 'none' },
  ]);
  await term[Symbol.asyncDispose]();
});

test('a healthy candidate that finds the seat free is told of no reason to wait', async () => {
  const { clock, candidate } = bound();
  const statuses: CandidateStatus[] = [];
  const campaign = candidate('a').campaign({
    health: { check: () => true },
    onStatus: (status) => statuses.push({ ...status }),
  });
  await clock.advance(10);
  const term = await campaign;
  expect(statuses).toMatchObject([{ role: 'leader' }]);
  const disposed = term[Symbol.asyncDispose]();
  await clock.advance(1_000);
  await disposed;
});

describe('a candidate is told why its term ended', () => {
  async function told(endIt: (stage: Stage, stop: AbortController) => void) {
    const stage = new Stage();
    const { election } = stage.candidate('a');
    const statuses: CandidateStatus[] = [];
    const stop = new AbortController();
    const term = await stage.soon(
      election.campaign({ signal: stop.signal, onStatus: (status) => statuses.push(status) }),
    );
    expect(statuses.at(-1)).toMatchObject({ role: 'leader' });
    endIt(stage, stop);
    await stage.clock.advance(10);
    await stage.soon(term[Symbol.asyncDispose]());
    return statuses.at(-1) as CandidateStatus;
  }

  test('by whatever went wrong', async () => {
    const status = await told(({ store }) => store.deletePlace(store.places('jobs')[0] as string));
    expect(status).toMatchObject({ role: 'none', error: { reason: 'record-gone' } });
  });

  test('and not by its own wish', async () => {
    expect(await told((_, stop) => stop.abort(new Error('enough')))).not.toHaveProperty('error');
    expect(await told(() => {})).not.toHaveProperty('error');
  });
});

describe('a fence hook', () => {
  test.each([
    ['is told as much belief as is left before the work would have to stop', 0],
    ['that takes it all has ended too late: the term does not begin', 11_000],
  ])('%s', async (_, blocksMs) => {
    const { clock, store, candidate } = bound();
    const first = candidate('a');
    await first.campaign();
    const record = store.record('jobs')!;
    // Its leader is gone without a word.
    const second = candidate('b');
    const remaining: number[] = [];
    let led = 0;
    const leading = outcomeOf(
      second.lead(
        () => {
          led += 1;
        },
        {
          onUnclean: (predecessor, context) => {
            expect(predecessor).toMatchObject({ id: 'a', token: record.token });
            expect(context.election).toBe('jobs');
            expect(context.token).toBe(record.token + BigInt(remaining.length) + 1n);
            remaining.push(context.remaining());
            // The event loop stands still: no timer can say that it is over.
            if (remaining.length === 1 && blocksMs > 0) clock.stall(blocksMs);
          },
        },
      ),
    );
    store.put('jobs', { ...record, leaseMs: 1_000, nonce: 'somebody else' });
    await clock.advance(10_000);
    expect(remaining[0]).toBeGreaterThan(9_000);
    expect(remaining[0]).toBeLessThanOrEqual(10_000);
    expect(led).toBe(blocksMs === 0 ? 1 : 0);
    await clock.advance(60_000);
    expect(leading).toEqual({ isOver: true });
    expect(led).toBe(1);
    expect(remaining).toHaveLength(blocksMs === 0 ? 1 : 2);
  });

  const long = '🦊'.repeat(200);
  const secret = new Error('mysql -psecret: exit code 1');
  test.each([
    [
      'its words for operators',
      new TakeoverFailedError('jobs', `no\0route ${long}`),
      { why: `no route ${long.slice(18)}` },
    ],
    ['no other error, which may hold a secret', secret, {}],
  ])(
    'that fails: the record shows the candidate and %s, and the pauses grow up to a lease',
    async (_, thrown, shown) => {
      const { clock, store, candidate } = bound();
      await candidate('a').campaign();
      const record = store.record('jobs')!;
      const second = candidate('b');
      const triedAtMs: number[] = [];
      let isRepaired = false;
      const leading = second.lead(() => {}, {
        onUnclean: () => {
          triedAtMs.push(clock.monotonicMs());
          if (!isRepaired) throw thrown;
        },
      });
      store.put('jobs', { ...record, leaseMs: 1_000, nonce: 'somebody else' });
      await clock.advance(300_000);
      const snapshot = await second.inspect();
      expect(snapshot.unfenced).toMatchObject([{ id: 'a', token: record.token }]);
      expect(snapshot.unfenced[0]!.failure).toEqual({ by: 'b', ...shown });
      expect(JSON.parse(JSON.stringify(snapshot.unfenced[0]))).toMatchObject({ token: '1' });
      const gapsMs = triedAtMs.slice(1).map((at, index) => at - triedAtMs[index]!);
      expect(gapsMs[1]! / gapsMs[0]!).toBeGreaterThan(1.5);
      const { leaseMs, pollEveryMs } = second.timing;
      expect(gapsMs.at(-1)).toBeGreaterThanOrEqual(leaseMs);
      expect(Math.max(...gapsMs)).toBeLessThan(leaseMs + 2 * pollEveryMs);
      isRepaired = true;
      await clock.advance(leaseMs + 2 * pollEveryMs);
      await leading;
      expect((await second.inspect()).unfenced).toEqual([]);
    },
  );
});
