/** Operators open a seat that is only held: at once when its holder is dead, else when they insist. */
import { describe, expect, test } from 'vitest';
import { holdOf, reservationOf } from '../src/core/holds.ts';
import type { Election } from '../src/index.ts';
import { NotElectedError } from '../src/index.ts';
import type { LeaseStore, Reading } from '../src/mechanisms/lease/store.ts';
import { SimulatedClock } from '../src/testing/index.ts';
import { end, inArena, until } from './lock/support.ts';
import { Stage } from './queue/support.ts';
import { candidate, leaseMs } from './support/scripted-candidate.ts';
import { lost, ScriptedStore } from './support/scripted-store.ts';

const holdMs = 3_600_000;
const holdAtLeast = holdMs;

/** A job that is done, and holds the seat. `die` ends its process as far as the store can see. */
async function held(says: Partial<LeaseStore> = {}) {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  let isDead = false;
  let isSilent = false;
  let writtenAtMs = 0;
  store.onRead = async (apply): Promise<Reading> => {
    const ageMs = clock.monotonicMs() - writtenAtMs;
    return says.clockStepMs === undefined ? apply() : { ...apply(), ageMs };
  };
  store.onSwap = async (apply) => {
    const result = apply();
    if (result.outcome === 'ok') writtenAtMs = clock.monotonicMs();
    return result;
  };
  const { read, swap } = store.open();
  const ways: Partial<LeaseStore> = {
    read: (signal) => (isSilent ? lost() : read(signal)),
    swap: (...given) => (isSilent ? lost() : swap(...given)),
  };
  const holder = candidate(store, clock, { ...says, ...ways }, { candidate: { id: 'a' } });
  const ran: string[] = [];
  const untilUnixMs = clock.wallMs() + holdMs;
  const job = holder.lead(() => void ran.push('a'), { holdAtLeast });
  job.catch(() => {});
  await clock.advance(100);
  expect(store.record?.holding?.held).toMatchObject({ untilUnixMs });
  const open = (id: string) =>
    candidate(
      store,
      clock,
      { provesGone: () => isDead, ...says },
      { candidate: { id }, pollEvery: '500ms' },
    );
  const run = (election: Election<bigint>, id: string) =>
    election.lead(() => void ran.push(id), { wait: 0 }).catch((error: unknown) => error);
  return {
    ...{ clock, store, open, run, ran, untilUnixMs, holder, job },
    /** Nothing of the holder reaches the store any more. */
    silence() {
      isSilent = true;
    },
    die() {
      isSilent = true;
      isDead = true;
    },
  };
}

describe('a lease', () => {
  test('of a holder that is proved dead: the hold is lifted, and the job can be run at once', async () => {
    const stage = await held({ describe: async () => ({ pid: 1 }) });
    stage.die();
    const operator = stage.open('operator');
    expect(await stage.run(stage.open('b'), 'b')).toMatchObject({ why: { kind: 'held', by: 'a' } });
    expect(await operator.vacate()).toMatchObject({
      changed: true,
      view: { state: 'vacant', token: 1n },
      lifted: { by: 'a', untilUnixMs: stage.untilUnixMs },
    });
    await stage.run(stage.open('b'), 'b');
    expect(stage.ran).toEqual(['a', 'b']);
    expect(await operator.history()).toMatchObject([
      { id: 'a', why: 'unclean' },
      { id: 'b', why: 'work-finished' },
    ]);
    expect(await operator.vacate()).toMatchObject({ changed: false });
  });

  test('that is over by the clock of the store: the same, and not before', async () => {
    const stage = await held({ clockStepMs: 1_000 });
    stage.silence();
    const operator = stage.open('operator');
    await stage.clock.advance(leaseMs / 2);
    await expect(operator.vacate()).rejects.toMatchObject({
      code: 'REFUSED',
      message: expect.stringMatching(
        /^"a" has done its work and holds the seat until .*, and may be alive: its lease runs for .*--force/,
      ),
    });
    expect(stage.store.record?.holding?.held).toBeDefined();
    await stage.clock.advance(leaseMs / 2 + 1_500);
    expect(await operator.vacate()).toMatchObject({ changed: true, lifted: { by: 'a' } });
    const fenced: string[] = [];
    await stage.open('b').lead(() => void stage.ran.push('b'), {
      wait: 0,
      onUnclean: ({ id }) => void fenced.push(id),
    });
    expect(stage.ran).toEqual(['a', 'b']);
    expect(fenced).toEqual(['a']);
  });

  test('of a holder that has stopped to renew without a hold: the request names it as the leader', async () => {
    const clock = new SimulatedClock();
    const store = new ScriptedStore();
    store.hold('a', 1n, leaseMs);
    store.onRead = async (apply) => ({ ...apply(), ageMs: 2 * leaseMs + clock.monotonicMs() });
    const operator = candidate(store, clock, { clockStepMs: 1_000 });
    const asked = await operator.vacate();
    expect(asked).toMatchObject({ changed: true, view: { state: 'led', leader: { id: 'a' } } });
    await operator.close();
  });

  test('of a holder that is alive: refused, and nothing is changed', async () => {
    const stage = await held();
    const operator = stage.open('operator');
    await expect(operator.vacate()).rejects.toThrow('this store cannot show that it is dead');
    await stage.clock.advance(60_000);
    expect(stage.store.record?.holding).toMatchObject({ held: {}, revoked: false });
    expect(stage.store.record?.holding?.request).toBeUndefined();
    expect(stage.ran).toEqual(['a']);
  });

  test('of a holder that renews while it is asked: the write conflicts, and it is refused', async () => {
    const stage = await held({ clockStepMs: 0 });
    const { store, clock } = stage;
    const holder = store.record;
    stage.silence();
    await clock.advance(leaseMs + 10);
    const onSwap = store.onSwap;
    store.onSwap = async (apply, next) => {
      store.onSwap = onSwap;
      // It was late, and not dead.
      store.record = { ...holder!, nonce: 'renewed' };
      store.version += 1;
      store.onRead = async (read) => ({ ...read(), ageMs: 0 });
      return onSwap(apply, next);
    };
    const operator = stage.open('operator');
    const asked = operator.vacate().catch((error: unknown) => error);
    await clock.advance(1_000);
    expect(await asked).toMatchObject({ code: 'REFUSED' });
    expect(store.record).toMatchObject({ nonce: 'renewed', holding: { held: {} } });
  });

  test.each([false, true])(
    '--force lifts the hold of a live holder, which does not put it back (dies then: %s)',
    async (dies) => {
      const stage = await held();
      const { clock, store } = stage;
      const operator = stage.open('operator');
      if (dies) stage.silence();
      expect(await operator.vacate({ force: true })).toMatchObject({
        changed: true,
        view: { state: 'led', leader: { id: 'a' } },
        lifted: { by: 'a', untilUnixMs: stage.untilUnixMs },
      });
      const next = stage.open('b').lead(() => void stage.ran.push('b'));
      await clock.advance(leaseMs - 500);
      if (dies) expect(stage.ran).toEqual(['a']);
      await clock.advance(4_000);
      await next;
      expect(stage.ran).toEqual(['a', 'b']);
      expect(store.record?.reservation).toBeUndefined();
    },
  );

  test('a hold that its holder left behind is lifted, and says whose it was', async () => {
    const stage = await held();
    const closed = stage.holder.close();
    await stage.clock.advance(1_000);
    await closed;
    const operator = stage.open('operator');
    expect(await stage.run(stage.open('b'), 'b')).toBeInstanceOf(NotElectedError);
    const { lifted } = await operator.vacate();
    expect(lifted).toMatchObject({ by: 'a', untilUnixMs: stage.untilUnixMs });
    expect(lifted).not.toHaveProperty('for');
    await stage.run(stage.open('b'), 'b');
    expect(stage.ran).toEqual(['a', 'b']);
  });

  test('a lift without an answer is reported as the lift that it was', async () => {
    const stage = await held({ describe: async () => ({ pid: 1 }) });
    stage.die();
    const { store, clock } = stage;
    const onSwap = store.onSwap;
    store.onSwap = async (apply, next) => {
      store.onSwap = onSwap;
      await onSwap(apply, next);
      return new Promise(() => {});
    };
    const asked = stage.open('operator').vacate();
    await clock.advance(5_000);
    expect(await asked).toMatchObject({ changed: true, lifted: { by: 'a' } });
  });

  test('an end and a reopening leave a hold as it is', async () => {
    const stage = await held({ describe: async () => ({ pid: 1 }) });
    stage.die();
    const operator = stage.open('operator');
    await operator.end();
    await operator.reopen();
    expect(await stage.run(stage.open('b'), 'b')).toMatchObject({ why: { kind: 'held', by: 'a' } });
    await operator.vacate();
    await stage.run(stage.open('b'), 'b');
    expect(stage.ran).toEqual(['a', 'b']);
  });
});

describe('a place in a queue', () => {
  async function line() {
    const stage = new Stage();
    const a = stage.candidate('a');
    const ran: string[] = [];
    const untilUnixMs = stage.clock.wallMs() + holdMs;
    const job = a.election.lead(() => void ran.push('a'), { holdAtLeast });
    job.catch(() => {});
    await stage.clock.advance(100);
    expect(stage.store.record('jobs')?.holding?.held).toMatchObject({ untilUnixMs });
    const operator = stage.candidate('operator').election;
    const b = stage.candidate('b').election;
    return { stage, a, b, operator, ran, job, untilUnixMs };
  }

  test('of a holder whose session is over: the hold is lifted, and its belief is waited out', async () => {
    const { stage, a, b, operator, ran, untilUnixMs } = await line();
    a.session.expire({ unheard: true });
    a.session.outage = 'silent';
    const fenced: string[] = [];
    const next = b.lead(() => void ran.push('b'), { onUnclean: ({ id }) => void fenced.push(id) });
    await stage.clock.advance(30_000);
    expect(ran).toEqual(['a']);
    expect(await stage.soon(operator.vacate())).toMatchObject({
      changed: true,
      view: { state: 'vacant' },
      lifted: { by: 'a', untilUnixMs },
    });
    await stage.soon(next);
    expect(ran).toEqual(['a', 'b']);
    expect(fenced).toEqual(['a']);
  });

  test('of a holder whose session is there: refused; --force lifts it, and it stays lifted', async () => {
    const { stage, b, operator, ran, job, untilUnixMs } = await line();
    await expect(stage.soon(operator.vacate())).rejects.toMatchObject({
      code: 'REFUSED',
      message: expect.stringMatching(
        /^"a" has done its work and holds the seat until .*its session is there; if it is dead, that ends within 10s/,
      ),
    });
    await stage.clock.advance(5_000);
    expect(stage.store.record('jobs')?.holding).toMatchObject({ held: {}, revoked: false });
    expect(await stage.soon(operator.vacate({ force: true }))).toMatchObject({
      changed: true,
      lifted: { by: 'a', untilUnixMs },
    });
    await stage.soon(job);
    await stage.soon(b.lead(() => void ran.push('b')));
    expect(ran).toEqual(['a', 'b']);
  });

  test('a hold that its holder left behind is lifted; an end and a reopening leave it', async () => {
    const { stage, a, b, operator, ran, untilUnixMs } = await line();
    await stage.soon(a.election.close());
    await stage.soon(operator.end());
    await stage.soon(operator.reopen());
    const refused = stage.soon(b.lead(() => void ran.push('b'), { wait: 0 }));
    await expect(refused).rejects.toMatchObject({ why: { kind: 'reserved' } });
    const { lifted } = await stage.soon(operator.vacate());
    expect(lifted).toMatchObject({ by: 'a', untilUnixMs });
    await stage.soon(b.lead(() => void ran.push('b'), { wait: 0 }));
    expect(ran).toEqual(['a', 'b']);
  });
});

describe('a lock', () => {
  inArena('of a holder whose session is over: the hold is lifted', async ({ arena, expect }) => {
    const { election: a, client } = await arena.member('a');
    const ran: string[] = [];
    const job = a.lead(() => void ran.push('a'), { holdAtLeast });
    job.catch(() => {});
    const { election: operator } = await arena.member('operator');
    const refusal = async () => operator.vacate().catch((error: unknown) => error);
    let refused: unknown;
    while (!(refused instanceof Error && refused.message.includes('"a" has done its work'))) {
      const { reservation } = await operator.inspect();
      if (reservation !== undefined) refused = await refusal();
    }
    expect(refused).toMatchObject({ code: 'REFUSED' });
    arena.fake.expireSession(client.session?.id as bigint);
    await job;
    await until(
      'the lock is free',
      () => arena.data('/hadoop-ha/ns1/ActiveStandbyElectorLock') === undefined,
    );
    const { election: b } = await arena.member('b');
    await expect(b.campaign({ wait: 0 })).rejects.toMatchObject({ why: { kind: 'held', by: 'a' } });
    expect(await operator.vacate()).toMatchObject({ changed: true, lifted: { by: 'a' } });
    await end(await b.campaign());
  });
});

test('a hold and a reservation are over at the very moment that they were set for', () => {
  const untilUnixMs = 1_000;
  const reservation = { for: 'b', reserveMs: 500, untilUnixMs };
  expect(holdOf('a', { untilUnixMs }, untilUnixMs - 1)).toEqual({ by: 'a', untilUnixMs });
  expect(holdOf('a', { untilUnixMs }, untilUnixMs)).toBeUndefined();
  expect(reservationOf(reservation, [], untilUnixMs - 1)).toEqual({ for: 'b', untilUnixMs });
  expect(reservationOf(reservation, [], untilUnixMs)).toBeUndefined();
});
