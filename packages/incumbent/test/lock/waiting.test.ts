// The leader that a candidate for the lock waits for, for how long, and what it leaves behind.
import { describe, expect, it } from 'vitest';
import type { SimulatedQueueSession } from '../../src/testing/index.ts';
import { waitMs } from '../queue/support.ts';
import { inCopies } from '../support/copies.ts';
import { LockStage } from './stage.ts';

/** The holder hears and says nothing any more, and its lock is deleted. */
function cutOff(stage: LockStage, session: SimulatedQueueSession): void {
  session.outage = 'silent';
  stage.store.deletePlace(stage.store.places('jobs')[0] as string);
}

describe('whoever follows an unclean holder of the lock', () => {
  it('waits all of its belief, and not a tenth of a renewal less', async () => {
    const stage = new LockStage();
    const [a, b] = [stage.candidate('a'), stage.candidate('b')];
    const first = await stage.soon(a.election.campaign());
    const next = b.election.campaign();
    await stage.clock.advance(10);
    cutOff(stage, a.session);
    const waitedMs = await stage.handOver(first, next);
    expect(waitedMs).toBeGreaterThanOrEqual(waitMs);
    // And not longer.
    expect(waitedMs).toBeLessThan(waitMs + 20);
    await stage.soon((await next)[Symbol.asyncDispose]());
  });

  it.each([
    ['another process that had its own name', {}],
    ['a copy of itself', { incarnation: 'copied' }],
  ])('waits for and fences also %s', async (_, drawn) => {
    const stage = new LockStage();
    const [a, again] = [1, 2].map(() => {
      const session = stage.store.connect();
      const backend = inCopies(stage.backendOf(session), drawn);
      return { session, election: stage.elect(session, 'host-1', { backend }) };
    }) as [ReturnType<LockStage['candidate']>, ReturnType<LockStage['candidate']>];
    const first = await stage.soon(a.election.campaign());
    const fenced: bigint[] = [];
    const next = again.election.campaign({ onUnclean: ({ token }) => void fenced.push(token) });
    await stage.clock.advance(10);
    cutOff(stage, a.session);
    expect(await stage.handOver(first, next)).toBeGreaterThanOrEqual(waitMs);
    expect(fenced).toEqual([first.token]);
    expect((await next).predecessor).toMatchObject({ id: 'host-1', clean: false });
    await stage.soon((await next)[Symbol.asyncDispose]());
  });

  it('waits, also if the record is deleted by hand, and an operator writes another', async () => {
    const stage = new LockStage();
    const [a, b, operator] = [stage.candidate('a'), stage.candidate('b'), stage.candidate('o')];
    const first = await stage.soon(a.election.campaign());
    const next = b.election.campaign();
    await stage.clock.advance(10);
    a.session.outage = 'silent';
    stage.wipe();
    await operator.election.drain('x', new Date(stage.clock.wallMs() + 3_600_000));
    stage.store.deletePlace(stage.store.places('jobs')[0] as string);
    expect(await stage.handOver(first, next)).toBeGreaterThanOrEqual(waitMs);
    await stage.soon((await next)[Symbol.asyncDispose]());
  });
});

it('a candidate that cannot make the lock, although nobody has it, pauses', async () => {
  const stage = new LockStage();
  const session = stage.store.connect();
  let tries = 0;
  const open = session.open.bind(session);
  session.open = (name) => {
    const store = open(name);
    const enter: typeof store.enter = async (...args) => {
      const place = await store.enter(...args);
      tries += 1;
      // A bound, so that a hot loop ends.
      if (tries <= 1_000) stage.store.deletePlace(place.name);
      return place;
    };
    return { ...store, enter };
  };
  const stop = new AbortController();
  const campaign = stage.elect(session, 'a').campaign({ signal: stop.signal });
  campaign.catch(() => {});
  await stage.clock.advance(10_000);
  expect(tries).toBeGreaterThan(2);
  expect(tries).toBeLessThan(40);
  stop.abort(new Error('enough'));
  await expect(stage.soon(campaign)).rejects.toThrow('enough');
});

it('a candidate that gives up while it has no answer leaves no lock behind', async () => {
  const stage = new LockStage();
  const { session, election } = stage.candidate('a');
  session.next('enter', { lose: 'reply' });
  const stop = new AbortController();
  const campaign = election.campaign({ signal: stop.signal });
  campaign.catch(() => {});
  await stage.clock.advance(10);
  expect(stage.store.waiting('jobs')).toEqual(['a']);
  stop.abort(new Error('not any more'));
  await expect(stage.soon(campaign)).rejects.toThrow('not any more');
  expect(stage.store.waiting('jobs')).toEqual([]);
});

it('two candidates of one client: who gives up leaves the lock of the other one alone', async () => {
  const stage = new LockStage();
  const { session, election } = stage.candidate('a');
  const other = stage.elect(session, 'b');
  const term = await stage.soon(election.campaign());
  const stop = new AbortController();
  const campaign = other.campaign({ signal: stop.signal });
  campaign.catch(() => {});
  await stage.clock.advance(1_000);
  stop.abort(new Error('not any more'));
  await expect(stage.soon(campaign)).rejects.toThrow('not any more');
  await stage.clock.advance(10_000);
  expect(stage.store.waiting('jobs')).toEqual(['a']);
  expect(term.isLeading()).toBe(true);
  await stage.soon(term[Symbol.asyncDispose]());
});

it('close waits for a lock that is still taken meanwhile, and gives it back', async () => {
  const stage = new LockStage();
  const { session, election } = stage.candidate('a');
  session.hold('enter');
  const campaign = election.campaign();
  campaign.catch(() => {});
  await stage.clock.advance(10);
  expect(session.held).toHaveLength(1);
  let isClosed = false;
  const closed = election.close().then(() => {
    isClosed = true;
  });
  await stage.clock.advance(100);
  expect(isClosed).toBe(false);
  session.release('enter');
  await stage.soon(closed);
  expect(stage.store.waiting('jobs')).toEqual([]);
  await expect(campaign).rejects.toThrow('is closed');
});

describe('the lock is free, and not for everybody', () => {
  const hourMs = 3_600_000;

  it('handed over, it is for the one that is named', async () => {
    const stage = new LockStage();
    const [a, b, c] = [stage.candidate('a'), stage.candidate('b'), stage.candidate('c')];
    const first = await stage.soon(a.election.campaign());
    const campaigns = [b.election.campaign(), c.election.campaign()] as const;
    await stage.clock.advance(10);
    await b.election.transfer('c');
    await stage.clock.advance(10);
    expect(first.signal.aborted).toBe(true);
    await first[Symbol.asyncDispose]();
    expect((await b.election.inspect()).reservation).toMatchObject({ for: 'c' });
    const second = await stage.soon(campaigns[1]);
    expect(stage.store.waiting('jobs')).toEqual(['c']);
    await second[Symbol.asyncDispose]();
    await stage.soon((await stage.soon(campaigns[0]))[Symbol.asyncDispose]());
  });

  it('reserved for somebody who does not come, it is free when that time is over', async () => {
    const stage = new LockStage();
    const [a, b] = [stage.candidate('a'), stage.candidate('b')];
    const first = await stage.soon(a.election.campaign());
    await b.election.transfer('c');
    await stage.clock.advance(10);
    await first[Symbol.asyncDispose]();
    const { untilUnixMs } = stage.store.record('jobs')!.reservation!;
    await expect(b.election.campaign({ wait: 0 })).rejects.toMatchObject({
      why: { kind: 'reserved', for: 'c', untilUnixMs },
    });
    const next = b.election.campaign();
    await stage.clock.advance(untilUnixMs - stage.clock.wallMs() - 1);
    expect(stage.store.waiting('jobs')).toEqual([]);
    await stage.clock.advance(1);
    expect(stage.store.waiting('jobs')).toEqual(['b']);
    await (await stage.soon(next))[Symbol.asyncDispose]();
  });

  it('held by a job that is done, it is free when its time is over, and no clock makes it later', async () => {
    const stage = new LockStage();
    const [a, b] = [stage.candidate('a'), stage.candidate('b')];
    const startMs = stage.clock.wallMs();
    const job = a.election.lead(() => 'done', { holdAtLeast: '1m' });
    job.catch(() => {});
    await stage.clock.advance(2_000);
    // Its process dies, so the lock is not given back.
    cutOff(stage, a.session);
    const untilUnixMs = startMs + 60_000;
    await expect(b.election.campaign({ wait: 0 })).rejects.toMatchObject({
      why: { kind: 'held', by: 'a', untilUnixMs },
    });
    const next = b.election.campaign();
    await stage.clock.advance(1_000);
    // A clock that is set back does not keep it closed for longer than the job asked for.
    stage.clock.stepWall(-hourMs);
    await stage.clock.advance(58_000);
    expect(stage.store.waiting('jobs')).toEqual([]);
    await stage.clock.advance(5_000);
    expect(stage.store.waiting('jobs')).toEqual(['b']);
    await (await stage.soon(next))[Symbol.asyncDispose]();
  });

  it('a drained candidate stays out until then, and is told so', async () => {
    const stage = new LockStage();
    const { election } = stage.candidate('a');
    const untilUnixMs = stage.clock.wallMs() + 20_000;
    await election.drain('a', new Date(untilUnixMs));
    await expect(election.campaign({ wait: 0 })).rejects.toMatchObject({
      why: { kind: 'drained', untilUnixMs },
    });
    const campaign = election.campaign();
    await stage.clock.advance(19_999);
    expect(stage.store.waiting('jobs')).toEqual([]);
    await stage.clock.advance(1);
    expect(stage.store.waiting('jobs')).toEqual(['a']);
    await (await stage.soon(campaign))[Symbol.asyncDispose]();
  });

  it('of an election that was ended, it has no holder', async () => {
    const stage = new LockStage();
    const [a, b] = [stage.candidate('a'), stage.candidate('b')];
    const first = await stage.soon(a.election.campaign());
    const waiting = b.election.campaign();
    waiting.catch(() => {});
    await stage.clock.advance(10);
    await b.election.end();
    await stage.clock.advance(10);
    await first[Symbol.asyncDispose]();
    await expect(stage.soon(waiting)).rejects.toMatchObject({ code: 'ELECTION_ENDED' });
    expect(stage.store.waiting('jobs')).toEqual([]);
  });

  it('beside a record with a higher token than this store gives, it is left alone', async () => {
    const stage = new LockStage();
    const { election } = stage.candidate('a');
    const { clock } = stage;
    await election.drain('x', new Date(clock.wallMs() + hourMs));
    stage.store.put('jobs', { ...stage.store.record('jobs')!, token: 1_000_000n });
    const refused = { code: 'STORE_UNSUITABLE' };
    await expect(stage.soon(election.campaign())).rejects.toMatchObject(refused);
    expect(stage.store.waiting('jobs')).toEqual([]);
  });
});

it('no candidate waits for a leader that ended clean, nor for its own term', async () => {
  const stage = new LockStage();
  const [a, b] = [stage.candidate('a'), stage.candidate('b')];
  const first = await stage.soon(a.election.campaign());
  const next = b.election.campaign();
  await stage.clock.advance(10);
  await first[Symbol.asyncDispose]();
  const second = await next;
  expect(second.isLeading()).toBe(true);
  stage.store.deletePlace(stage.store.places('jobs')[0] as string);
  await stage.clock.advance(0);
  expect(second.signal.aborted).toBe(true);
  await second[Symbol.asyncDispose]();
  const fenced: string[] = [];
  const again = b.election.campaign({ onUnclean: ({ id }) => void fenced.push(id) });
  await stage.clock.advance(10);
  expect((await again).isLeading()).toBe(true);
  expect(fenced).toEqual([]);
  expect((await again).predecessor).toMatchObject({ id: 'b', clean: true });
  await (await again)[Symbol.asyncDispose]();
});

describe('a candidate for the lock that the store refuses', () => {
  // R is 1 s, so the first pause is 250 ms, less a quarter of it. None is longer than R.
  const pauses = [0, 187.5, 562.5, 1_312.5, 2_062.5];

  it('pauses twice as long after each failure, and begins anew when it was answered', async () => {
    const stage = new LockStage();
    const { clock } = stage;
    const first = await stage.soon(stage.candidate('a').election.campaign());
    const { session } = stage.candidate('b');
    const troubleMs: number[] = [];
    const startMs = clock.monotonicMs();
    const onTrouble = () => troubleMs.push(clock.monotonicMs() - startMs);
    const stop = new AbortController();
    session.outage = 'refuses';
    const campaign = stage.elect(session, 'b', { onTrouble }).campaign({ signal: stop.signal });
    campaign.catch(() => {});
    await clock.advance(2_100);
    expect(troubleMs).toEqual(pauses);
    session.outage = 'none';
    await clock.advance(3_000);
    expect(troubleMs).toEqual(pauses);
    // It watches the holder now. Two looks fail when that one has gone.
    session.next('read', { fail: 'before' }, 2);
    await first[Symbol.asyncDispose]();
    const term = await stage.soon(campaign);
    const [failedMs, againMs] = troubleMs.slice(pauses.length) as [number, number];
    expect(againMs - failedMs).toBe(187.5);
    await stage.soon(term[Symbol.asyncDispose]());
  });

  it.each([
    ['is there again', (session: SimulatedQueueSession) => session.restore()],
    ['has ended the session', (session: SimulatedQueueSession) => session.expire()],
  ])('tries again at once when the store %s', async (_, change) => {
    const stage = new LockStage();
    const { session, election } = stage.candidate('a');
    session.suspend();
    const campaign = election.campaign();
    await stage.clock.advance(1_000);
    const startMs = stage.clock.monotonicMs();
    change(session);
    session.restore();
    await stage.clock.advance(0);
    expect((await campaign).isLeading()).toBe(true);
    expect(stage.clock.monotonicMs()).toBe(startMs);
    await stage.soon((await campaign)[Symbol.asyncDispose]());
  });
});

it('a candidate that does not wait hears that another one on its client is about to take the lock', async () => {
  const stage = new LockStage();
  const { session, election } = stage.candidate('a');
  session.hold('enter');
  const campaign = election.campaign();
  await stage.clock.advance(10);
  const other = stage.elect(session, 'b');
  await expect(stage.soon(other.campaign({ wait: 0 }))).rejects.toMatchObject({
    why: {
      kind: 'unreachable',
      cause: { message: 'another candidate on this client takes the lock' },
    },
  });
  session.release('enter');
  await (await stage.soon(campaign))[Symbol.asyncDispose]();
});

describe('a candidate that has given the lock up lets others go first', () => {
  it.each([
    ['for a second, where all watch it', undefined, 1_000],
    ['until they have looked, and were answered', 50, 1_055],
    ['also where they look seldom', 2_000, 3_200],
  ])('%s', async (_, pollMs, asideMs) => {
    const stage = new LockStage();
    stage.settings = { pollMs };
    const { session } = stage.candidate('a');
    const scope = { election: 'jobs', timing: { operationTimeoutMs: 1_000 } } as never;
    const candidate = { id: 'a', incarnation: '', addresses: [], metadata: {} };
    const contest = stage.backendOf(session).open(scope).contest(candidate);
    expect(contest.standAsideMs).toBeCloseTo(asideMs, 6);
  });
});
