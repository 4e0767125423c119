/**
 * Defects of vimeo/leaderelection. Their ids are those of docs/coming-from/index.md, which names
 * the other tests.
 */
import { expect, test } from 'vitest';
import type { CandidateStatus, Term, View } from '../src/index.ts';
import {
  createElection,
  formatDuration,
  NotLeadingError,
  resolveTiming,
  StoreUnavailableError,
  TermEndedError,
} from '../src/index.ts';
import { SimulatedClock, settle } from '../src/testing/index.ts';
import { candidate, leaseMs } from './support/scripted-candidate.ts';
import { lost, ScriptedStore } from './support/scripted-store.ts';

// D 10 s: H 8 s, R 2 s, a look every 2 s.

function setUp() {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  return { clock, store, election: candidate(store, clock) };
}

/** Work that ends `afterMs` after it was told to stop. */
const stopsAfter = (clock: SimulatedClock, afterMs: number) => (term: Term<bigint>) =>
  new Promise<void>((resolve) => {
    term.signal.addEventListener('abort', () => clock.setTimer(resolve, afterMs));
  });

test('VB1: the longest belief that a refusal names is kept, and any longer one is refused', () => {
  for (const lease of [1_000, 2_001, 15_000, 3_600_000]) {
    const longest = (lease * 0.95) / 1.05;
    expect(resolveTiming({ lease, belief: longest }).beliefMs).toBe(longest);
    for (const belief of [longest + 1, lease, 2 * lease]) {
      expect(() => resolveTiming({ lease, belief })).toThrow(
        `it is ${formatDuration(lease)}: lengthen the lease or shorten the belief to ` +
          formatDuration(longest),
      );
    }
  }
});

test('VB6: who withdraws gives the seat back, and the next one leads without waiting a lease out', async () => {
  const { clock, store, election } = setUp();
  const other = candidate(store, clock, {}, { candidate: { id: 'c' } });
  const stop = new AbortController();
  const leading = election.lead(stopsAfter(clock, 0), { signal: stop.signal });
  leading.catch(() => {});
  await clock.advance(1_000);
  const following = other.campaign();
  await clock.advance(leaseMs);
  stop.abort(new Error('not any more'));
  await clock.advance(1);
  await expect(leading).rejects.toThrow('not any more');
  expect(store.record?.holding).toBe(undefined);
  // Seen at its next look.
  await clock.advance(other.timing.pollEveryMs);
  const next = await following;
  expect(next.predecessor).toMatchObject({ id: 'b', clean: true });
  await next[Symbol.asyncDispose]();
  await Promise.all([election.close(), other.close()]);
});

test('VB7: when a win is told, everybody is told of the winner and not of whoever was before', async () => {
  const { clock, store, election } = setUp();
  store.hold('old', 7n, leaseMs);
  const stop = new AbortController();
  const views: View[] = [];
  const watching = (async () => {
    for await (const view of election.observe({ signal: stop.signal })) views.push(view);
  })();
  // It has seen the old leader before the candidate has, and so sees its lease run out first.
  await clock.advance(1);
  const told: unknown[] = [];
  const onStatus = ({ role, candidateId }: CandidateStatus) => {
    if (role === 'leader') told.push([candidateId, store.record?.holding?.candidate.id]);
  };
  const asked: View[] = [];
  const leading = election.lead(
    async (term) => {
      asked.push(await election.leader());
      await stopsAfter(clock, 0)(term);
    },
    { onStatus, signal: stop.signal },
  );
  leading.catch(() => {});
  await clock.advance(2 * leaseMs);
  expect(told).toEqual([['b', 'b']]);
  expect(asked).toMatchObject([{ state: 'led', leader: { id: 'b' }, token: 8n }]);
  expect(views.map(({ state, leader }) => leader?.id ?? state)).toEqual(['old', 'vacant', 'b']);
  stop.abort();
  await clock.advance(1_000);
  await watching;
  await leading.catch(() => {});
  await election.close();
});

test('VB12: a term has one token however often it is confirmed, and the work is given it', async () => {
  const { clock, store, election } = setUp();
  const seen: bigint[] = [];
  const stop = new AbortController();
  const leading = election.lead(
    (term) => {
      seen.push(term.token);
      return stopsAfter(clock, 0)(term);
    },
    { signal: stop.signal },
  );
  leading.catch(() => {});
  await clock.advance(60_000);
  expect(store.version).toBeGreaterThan(25);
  expect([store.record?.token, ...seen]).toEqual([1n, 1n]);
  stop.abort();
  await clock.advance(1_000);
  await leading.catch(() => {});
  await election.close();
});

test('VB12: a record that is deleted does not make whoever knew it count from the start', async () => {
  const { clock, store, election } = setUp();
  store.hold('a', 41n, leaseMs);
  const first = election.campaign();
  await clock.advance(leaseMs + 1_000);
  const term = await first;
  expect(term.token).toBe(42n);
  store.record = undefined;
  store.version += 1;
  await clock.advance(3_000);
  expect((term.signal.reason as TermEndedError).reason).toBe('record-gone');
  await term[Symbol.asyncDispose]();
  const second = election.campaign();
  await clock.advance(2 * leaseMs);
  expect((await second).token).toBe(43n);
  await (await second)[Symbol.asyncDispose]();
  await election.close();
});

test.for(['429 Too Many Requests', '503 Service Unavailable'])(
  'VB13: a store that answers %s ends neither a campaign nor, for as long as it is believed, a term',
  async (answer) => {
    const { clock, store, election } = setUp();
    const refuse = async (): Promise<never> => {
      throw new StoreUnavailableError(answer);
    };
    const allow = () => {
      store.onRead = async (apply) => apply();
      store.onSwap = async (apply) => apply();
    };
    store.onRead = refuse;
    const campaign = election.campaign();
    await clock.advance(30_000);
    store.onRead = async (apply) => apply();
    store.onSwap = refuse;
    await clock.advance(30_000);
    allow();
    await clock.advance(5_000);
    const term = await campaign;
    store.onRead = refuse;
    store.onSwap = refuse;
    await clock.advance(6_000);
    expect(term.state).toBe('uncertain');
    allow();
    await clock.advance(leaseMs);
    expect(term.state).toBe('leading');
    await term[Symbol.asyncDispose]();
    await election.close();
  },
);

test('VB14: a term that is over answers every question, and throws nothing but what is said', async () => {
  const { clock, store, election } = setUp();
  const term = await election.campaign();
  store.onSwap = () => lost();
  await clock.advance(leaseMs);
  for (let twice = 0; twice < 2; twice += 1) {
    expect([term.isLeading(), term.remaining()]).toEqual([false, 0]);
    expect(() => term.assertLeading()).toThrow(NotLeadingError);
    await expect(term.proclaim({ metadata: {} })).rejects.toThrow(TermEndedError);
    term.resign();
    const disposed = term[Symbol.asyncDispose]();
    await clock.advance(leaseMs);
    await disposed;
  }
  expect(term.state).toBe('ended');
  await election.close();
});

test('VB16: that a term has ended is told, and the next one begins, when its work has settled', async () => {
  const { clock, store, election } = setUp();
  const log: string[] = [];
  let terms = 0;
  const leading = election.lead(
    async (term) => {
      terms += 1;
      log.push(`work ${term.token} begins`);
      if (terms === 2) return;
      await stopsAfter(clock, 20_000)(term);
      log.push(`work ${term.token} ends`);
    },
    { onStatus: ({ role }) => log.push(role) },
  );
  await settle();
  log.length = 0;
  store.hold('other', 9n, 1_000);
  await clock.advance(5_000);
  expect(log).toEqual([]);
  await clock.advance(30_000);
  await leading;
  const [settled, told, ...rest] = log;
  expect([settled, told]).toEqual(['work 1 ends', 'none']);
  expect(rest).toContain('work 10 begins');
  await election.close();
});

test('V19: candidates of which the clocks are an hour apart take turns as if they were not', async () => {
  const store = new ScriptedStore();
  const clocks = [0, 3_600_000, -3_600_000].map((offsetMs) => {
    const clock = new SimulatedClock();
    clock.stepWall(offsetMs);
    return clock;
  });
  const advance = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 100) {
      for (const clock of clocks) await clock.advance(100);
    }
  };
  const [a, b, c] = clocks.map((clock, index) =>
    createElection({
      ...{ name: 'jobs', backend: store.backend(), clock, lease: leaseMs, random: () => 0 },
      candidate: { id: 'abc'[index]! },
    }),
  );
  const first = await a!.campaign();
  const following = [b!.campaign(), c!.campaign()];
  await advance(3 * leaseMs);
  expect(first.isLeading()).toBe(true);
  expect(store.record?.token).toBe(1n);
  await first[Symbol.asyncDispose]();
  await advance(3_000);
  const second = await Promise.race(following);
  expect([second.token, second.isLeading()]).toEqual([2n, true]);
  await second[Symbol.asyncDispose]();
  await advance(3_000);
  for (const term of await Promise.all(following)) await term[Symbol.asyncDispose]();
  await Promise.all([a, b, c].map((election) => election!.close()));
});
