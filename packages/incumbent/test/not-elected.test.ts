/** A candidate that is not elected hears what stood in the way: the one reason, with its facts. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { describe, expect, test } from 'vitest';
import type { CampaignOnceOptions, CandidateStatus, NotElectedReason } from '../src/index.ts';
import { createElection, describeNotElected, NotElectedError } from '../src/index.ts';
import type { SimulatedQueueSession } from '../src/testing/index.ts';
import { SimulatedClock, SimulatedQueueStore } from '../src/testing/index.ts';
import { candidate, leaseMs } from './support/scripted-candidate.ts';
import { lost, ScriptedStore } from './support/scripted-store.ts';

/** The error of a campaign that is refused. Time passes until then. */
async function refusalOf(
  clock: SimulatedClock,
  campaign: Promise<unknown>,
  ms = 1_000,
): Promise<NotElectedError> {
  const refused = campaign.then(
    () => {
      throw new Error('it was elected');
    },
    (error: unknown) => error,
  );
  await clock.advance(ms);
  const error = await refused;
  expect(error).toBeInstanceOf(NotElectedError);
  return error as NotElectedError;
}

function setUp() {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  return { clock, store, atMs: clock.wallMs() };
}

type Stage = ReturnType<typeof setUp>;

interface Case {
  readonly name: string;
  readonly stage: (stage: Stage) => CampaignOnceOptions;
  readonly forgets?: boolean;
  readonly why: (stage: Stage) => object;
  readonly says: RegExp;
}

const cases: Case[] = [
  {
    name: 'another candidate leads',
    stage: ({ store }) => {
      store.hold('one', 3n, 600_000);
      return {};
    },
    why: () => ({ kind: 'led', id: 'one', token: 3n }),
    says: /: "one" leads with token 3$/,
  },
  {
    name: 'the seat is reserved for somebody',
    stage: ({ store, atMs }) => {
      store.hold('one', 3n, leaseMs);
      const reservation = { for: 'c', reserveMs: 60_000, untilUnixMs: atMs + 50_000 };
      store.record = { ...store.record!, holding: undefined, reservation };
      return {};
    },
    why: ({ atMs }) => ({ kind: 'reserved', for: 'c', untilUnixMs: atMs + 50_000 }),
    says: /: the seat is reserved for "c" until \d\d:\d\d:\d\d$/,
  },
  {
    name: 'the seat is reserved for nobody',
    stage: ({ store, atMs }) => {
      store.hold('one', 3n, leaseMs);
      const reservation = { for: undefined, reserveMs: 60_000, untilUnixMs: atMs + 86_400_000 };
      store.record = { ...store.record!, holding: undefined, reservation };
      return {};
    },
    why: ({ atMs }) => ({ kind: 'reserved', untilUnixMs: atMs + 60_000 }),
    says: /: the seat is reserved until \d\d:\d\d:\d\d$/,
  },
  {
    name: 'a job is done and its seat is held',
    stage: ({ store, atMs }) => {
      store.hold('one', 3n, leaseMs);
      const { holding } = store.record!;
      const held = { ms: 200_000_000, untilUnixMs: atMs + 100_000_000 };
      store.record = { ...store.record!, holding: { ...holding!, held } };
      return {};
    },
    why: ({ atMs }) => ({ kind: 'held', by: 'one', untilUnixMs: atMs + 100_000_000 }),
    says: /: "one" has done its work and holds the seat until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/,
  },
  {
    name: 'this candidate is drained',
    stage: ({ store, atMs }) => {
      store.hold('one', 3n, leaseMs);
      const drains = [{ id: 'b', untilUnixMs: atMs + 7_000 }];
      store.record = { ...store.record!, drains };
      return {};
    },
    why: ({ atMs }) => ({ kind: 'drained', untilUnixMs: atMs + 7_000 }),
    says: /: this candidate is drained until \d\d:\d\d:\d\d$/,
  },
  {
    name: 'the health check fails',
    stage: () => ({
      health: {
        check: () => {
          throw new Error('ECONNREFUSED :8080');
        },
      },
    }),
    why: () => ({ kind: 'unhealthy', error: new Error('ECONNREFUSED :8080') }),
    says: /: the health check fails: ECONNREFUSED :8080$/,
  },
  {
    name: 'the health check says no',
    stage: () => ({ health: { check: () => false } }),
    why: () => ({ kind: 'unhealthy', error: undefined }),
    says: /: the health check fails$/,
  },
  {
    name: 'the store is new, and may have forgotten a leader',
    forgets: true,
    stage: () => ({}),
    why: ({ atMs }) => ({
      kind: 'settling',
      after: 'restart',
      sinceUnixMs: atMs,
      untilUnixMs: atMs + leaseMs,
    }),
    says: /: the store was restarted, or the election is new there \((0ms|300ms) ago\); a leader that it forgot may still believe for (10|9\.7)s$/,
  },
  {
    name: 'the store cannot be read',
    stage: ({ store }) => {
      store.onRead = async () => {
        throw new Error('ENOTDIR: not a directory');
      };
      return {};
    },
    why: () => ({ kind: 'unreachable', cause: new Error('ENOTDIR: not a directory') }),
    says: /: the store cannot be used: ENOTDIR: not a directory$/,
  },
];

for (const { name, stage, forgets = false, why, says } of cases) {
  test.each([0, 300])(`${name}: a candidate with wait %i hears that`, async (wait) => {
    const all = setUp();
    const options = stage(all);
    const election = candidate(all.store, all.clock, { forgets });
    const settle = wait === 0 ? { settle: false } : {};
    const error = await refusalOf(all.clock, election.campaign({ ...options, ...settle, wait }));
    expect(error.why).toEqual(why(all));
    expect(error.message).toMatch(says);
    expect(error.taken).toBe(['led', 'reserved', 'held'].includes(error.why.kind));
    expect(error.message).toContain(wait === 0 ? 'was not won:' : 'was not won within 300ms:');
    const { cause } = why(all) as { cause?: unknown };
    if (cause !== undefined) expect(error.cause).toEqual(cause);
    await election.close();
  });
}

test('a store that has not answered when the time is up is what is told', async () => {
  const { clock, store } = setUp();
  store.onRead = () => lost();
  const election = candidate(store, clock);
  const error = await refusalOf(clock, election.campaign({ wait: 100 }), 100);
  expect(error.message).toMatch(/within 100ms: the store cannot be used: it has not answered yet$/);
  const closed = election.close();
  await clock.advance(60_000);
  await closed;
});

test('a write that was refused is what stood in the way, although the seat is free', async () => {
  const { clock, store } = setUp();
  store.onSwap = async () => {
    throw new Error('READONLY');
  };
  const election = candidate(store, clock);
  const error = await refusalOf(clock, election.campaign({ wait: 0 }), 60_000);
  expect(error.why).toMatchObject({ kind: 'unreachable', cause: { message: 'READONLY' } });
  await election.close();
});

test('a candidate that is withdrawn while it fences hears that, and not that it was not elected', async () => {
  const { clock, store } = setUp();
  const election = candidate(store, clock);
  store.hold('one', 3n, leaseMs);
  const watching = election.campaign({ wait: leaseMs - 10 }).catch(() => {});
  await clock.advance(leaseMs - 10);
  await watching;
  await clock.advance(10);
  const stop = new AbortController();
  const onUnclean = () => stop.abort(new Error('enough'));
  const campaign = election.campaign({ wait: 0, signal: stop.signal, onUnclean });
  const outcome = campaign.catch((error: unknown) => error);
  await clock.advance(1_000);
  expect(await outcome).toBe(stop.signal.reason);
  await election.close();
});

test('a fence hook that fails is what stood in the way', async () => {
  const { clock, store } = setUp();
  const election = candidate(store, clock);
  store.hold('one', 3n, leaseMs);
  const watching = election.campaign({ wait: leaseMs - 10 }).catch(() => {});
  await clock.advance(leaseMs - 10);
  await watching;
  await clock.advance(10);
  const onUnclean = () => {
    throw new Error('no route to its power switch');
  };
  const error = await refusalOf(clock, election.campaign({ wait: 0, onUnclean }));
  expect(error.why.kind).toBe('lost');
  expect(error.message).toMatch(
    /the seat was won, and lost before the term began: taking over .*no route to its power switch|hook for "one" failed/,
  );
  await election.close();
});

test('a candidate that has just given the seat up hears that it lets others go first', async () => {
  const { clock, store } = setUp();
  const election = candidate(store, clock);
  const term = await election.campaign();
  term.resign();
  await term[Symbol.asyncDispose]();
  const error = await refusalOf(clock, election.campaign({ wait: 300 }));
  expect(error.why.kind).toBe('aside');
  expect(error.message).toMatch(
    /has just given the seat up and lets others go first for \d+(\.\d)?m?s$/,
  );
  await election.close();
});

test('a waiting candidate is told once for each reason, and again when it is another one', async () => {
  const { clock, store } = setUp();
  const published: NotElectedReason[] = [];
  const listener = (message: unknown) => {
    published.push((message as { why: NotElectedReason }).why);
  };
  subscribe('incumbent:waiting-for', listener);
  const statuses: CandidateStatus[] = [];
  const election = candidate(store, clock, { forgets: true });
  const stop = new AbortController();
  const waiting = election.campaign({
    signal: stop.signal,
    onStatus: (status) => statuses.push(status),
  });
  waiting.catch(() => {});
  await clock.advance(5_000);
  store.hold('one', 3n, leaseMs);
  for (let renewals = 0; renewals < 10; renewals += 1) {
    await clock.advance(2_000);
    store.record = { ...store.record!, nonce: `renewal ${renewals}` };
    store.version += 1;
  }
  store.hold('two', 4n, leaseMs);
  await clock.advance(5_000);
  const told = ['settling', 'led one 3', 'led two 4'];
  const short = (why: NotElectedReason | undefined) =>
    why?.kind === 'led' ? `led ${why.id} ${why.token}` : why?.kind;
  expect(published.map(short)).toEqual(told);
  expect(statuses.map(({ waitingFor }) => short(waitingFor))).toEqual(told);
  expect(statuses.map(({ role }) => role)).toEqual(['follower', 'follower', 'follower']);
  stop.abort();
  await waiting.catch(() => {});
  unsubscribe('incumbent:waiting-for', listener);
  await election.close();
});

test('a reason says what it knows of times, and no more', () => {
  const at = new Date(2030, 4, 1, 14, 20, 5).getTime();
  const say = (why: NotElectedReason) => describeNotElected(why, at - 11_000);
  expect(say({ kind: 'reserved', for: 'b', untilUnixMs: at })).toBe(
    'the seat is reserved for "b" until 14:20:05',
  );
  expect(say({ kind: 'drained', untilUnixMs: at + 86_400_000 })).toBe(
    'this candidate is drained until 2030-05-02 14:20:05',
  );
  expect(say({ kind: 'drained', untilUnixMs: 1e300 })).toContain('no valid time');
  expect(say({ kind: 'led', id: 'a' })).toBe('"a" leads');
  expect(say({ kind: 'led', id: 'a', token: 4n, over: true })).toBe(
    '"a" was elected meanwhile with token 4',
  );
  const settling = { kind: 'settling', sinceUnixMs: at - 15_000, untilUnixMs: at } as const;
  expect(say({ ...settling, after: 'restart' })).toBe(
    'the store was restarted, or the election is new there (4s ago); a leader that it forgot may still believe for 11s',
  );
  expect(say({ ...settling, after: 'loss' })).toBe(
    'the record of an earlier leader was lost 4s ago; that leader may still believe for 11s',
  );
  expect(say({ ...settling, after: 'win' })).toBe(
    'the seat is won; the leader before may still believe for 11s',
  );
  // The clock was set, or the reason is read late.
  const past = { kind: 'settling', sinceUnixMs: at, untilUnixMs: at - 12_000 } as const;
  expect(say({ ...past, after: 'loss' })).toBe(
    'the record of an earlier leader was lost 0ms ago; that leader may still believe for 0ms',
  );
});

describe('in a queue', () => {
  function queueSetUp() {
    const clock = new SimulatedClock();
    const store = new SimulatedQueueStore({ clock });
    const elect = (session: SimulatedQueueSession, id: string) =>
      createElection({ name: 'jobs', backend: session.backend, clock, candidate: { id } });
    const lead = async (id: string, session = store.connect()) => {
      const leading = elect(session, id).campaign();
      await clock.advance(1);
      return leading;
    };
    return { clock, store, elect, lead };
  }

  test.each([0, 300])('the leader is named, with wait %i', async (wait) => {
    const { clock, store, elect, lead } = queueSetUp();
    const { token } = await lead('one');
    const error = await refusalOf(clock, elect(store.connect(), 'b').campaign({ wait }));
    expect(error.why).toEqual({ kind: 'led', id: 'one', token });
  });

  test('the first in line that is about to lead is named, where no record names it yet', async () => {
    const { clock, store, elect, lead } = queueSetUp();
    const a = store.connect();
    await lead('one', a);
    const following = elect(store.connect(), 'two').campaign();
    await clock.advance(1);
    a.outage = 'cut-off';
    a.expire({ unheard: true });
    await clock.advance(10);
    const error = await refusalOf(clock, elect(store.connect(), 'b').campaign({ wait: 0 }), 10);
    expect(error.why).toMatchObject({ kind: 'led', id: 'two' });
    await clock.advance(10_000);
    expect((error.why as { token?: bigint }).token).toBe((await following).token);
  });

  test('a candidate that waits far behind is told of the present leader, not of the one it met', async () => {
    const { clock, store, elect, lead } = queueSetUp();
    const first = await lead('one');
    const second = elect(store.connect(), 'two').campaign();
    await clock.advance(1);
    const third = elect(store.connect(), 'b').campaign({ wait: 2_000 });
    third.catch(() => {});
    await clock.advance(1);
    // The one before it leads, and stays there: it is not woken by that.
    const disposing = first[Symbol.asyncDispose]();
    await clock.advance(1);
    await disposing;
    const { token } = await second;
    const error = await refusalOf(clock, third, 3_000);
    expect(error.why).toEqual({ kind: 'led', id: 'two', token });
  });

  test('the first in line that waits for a predecessor’s belief is told so', async () => {
    const { clock, store, elect, lead } = queueSetUp();
    const a = store.connect();
    await lead('one', a);
    a.outage = 'cut-off';
    a.expire({ unheard: true });
    const error = await refusalOf(
      clock,
      elect(store.connect(), 'b').campaign({ wait: 1_000 }),
      9_000,
    );
    expect(error.why).toMatchObject({ kind: 'settling', after: 'win' });
    // H, less what its candidate has seen of it.
    const { sinceUnixMs, untilUnixMs } = error.why as { sinceUnixMs: number; untilUnixMs: number };
    expect(untilUnixMs - sinceUnixMs).toBeGreaterThan(3_000);
    expect(untilUnixMs).toBeGreaterThan(clock.wallMs() - 9_000);
  });

  test('a reservation, a hold and a drain are told', async () => {
    const { clock, store, elect, lead } = queueSetUp();
    const term = await lead('one');
    await term[Symbol.asyncDispose]();
    await clock.advance(10);
    const untilUnixMs = clock.wallMs() + 60_000;
    const vacant = store.record('jobs')!;
    const refusal = async () =>
      (await refusalOf(clock, elect(store.connect(), 'b').campaign({ wait: 0 }))).why;
    store.put('jobs', { ...vacant, reservation: { for: 'c', reserveMs: 80_000, untilUnixMs } });
    expect(await refusal()).toEqual({ kind: 'reserved', for: 'c', untilUnixMs });
    const holding = {
      candidate: { id: 'one', incarnation: 'x', addresses: [], metadata: {} },
      place: 'gone',
      electedAtUnixMs: 0,
      leaseMs: 10_000,
      revoked: false,
      request: undefined,
      held: { ms: 80_000, untilUnixMs },
    };
    store.put('jobs', { ...vacant, holding });
    expect(await refusal()).toEqual({ kind: 'held', by: 'one', untilUnixMs });
    store.put('jobs', { ...vacant, drains: [{ id: 'b', untilUnixMs }] });
    expect(await refusal()).toEqual({ kind: 'drained', untilUnixMs });
  });

  test('a store that refuses is told', async () => {
    const { clock, store, elect } = queueSetUp();
    const session = store.connect();
    session.outage = 'refuses';
    const error = await refusalOf(clock, elect(session, 'b').campaign({ wait: 0 }));
    expect(error.why.kind).toBe('unreachable');
  });

  test('a term that was elected and is over between the first look and the win is told', async () => {
    const { clock, store, elect, lead } = queueSetUp();
    const b = store.connect();
    b.hold('enter');
    const refused = refusalOf(clock, elect(b, 'b').campaign({ wait: 0 }), 2_000);
    await clock.advance(1);
    const term = await lead('one');
    await term[Symbol.asyncDispose]();
    b.release('enter');
    expect((await refused).why).toEqual({ kind: 'led', id: 'one', token: term.token, over: true });
  });
});
