/** A candidate that does not wait for others waits for a store that may have forgotten a leader. */
import { expect, test } from 'vitest';
import type { LeadOptions } from '../../src/index.ts';
import { NotElectedError } from '../../src/index.ts';
import type { LeaseStore, Reading } from '../../src/mechanisms/lease/store.ts';
import { SimulatedClock } from '../../src/testing/index.ts';
import { candidate, leaseMs } from '../support/scripted-candidate.ts';
import { ScriptedStore } from '../support/scripted-store.ts';

const clockStepMs = 2_000;

/** A store that was started a second ago, by its own clock. */
function restarted(says: Partial<LeaseStore> = {}) {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  const memory = { life: 'first', bornAtMs: clock.monotonicMs() - 1_000 };
  store.onRead = async (apply): Promise<Reading> => {
    const lifeAgeMs = clock.monotonicMs() - memory.bornAtMs;
    return { ...apply(), life: memory.life, lifeAgeMs };
  };
  const restart = () => {
    store.version += 1;
    memory.life += ', the next';
    memory.bornAtMs = clock.monotonicMs();
  };
  const open = (id: string) =>
    candidate(store, clock, { forgets: true, clockStepMs, ...says }, { candidate: { id } });
  return { clock, store, open, restart };
}

type Stage = ReturnType<typeof restarted>;

/**
 * A copy of a job that does not wait, with the candidates that ran it, and the refusals
 * of the others.
 */
async function copy(
  stage: Stage,
  id: string,
  ran: string[],
  options: LeadOptions = {},
  workMs = 0,
) {
  const { clock } = stage;
  const election = stage.open(id);
  const work = async () => {
    ran.push(id);
    if (workMs > 0) await new Promise<void>((resolve) => clock.setTimer(resolve, workMs));
  };
  const outcome = election.lead(work, { wait: 0, ...options }).then(
    () => 'done' as const,
    (error: unknown) => error,
  );
  const heard = await outcome;
  await election.close();
  return heard;
}

test.each([0, 10, 60_000])(
  'of copies that begin together one runs the job, and the others hear who: it takes %i ms',
  async (workMs) => {
    const stage = restarted();
    const ran: string[] = [];
    stage.store.hold('before', 7n, leaseMs);
    stage.store.record = { ...stage.store.record!, holding: undefined };
    const copies = ['a', 'b', 'c'].map((id) => copy(stage, id, ran, {}, workMs));
    await stage.clock.advance(leaseMs - 1_000);
    expect(ran).toEqual([]);
    await stage.clock.advance(120_000);
    const outcomes = await Promise.all(copies);
    expect(ran).toHaveLength(1);
    const refused = outcomes.filter((outcome) => outcome !== 'done');
    expect(refused).toHaveLength(2);
    for (const error of refused) {
      expect(error).toBeInstanceOf(NotElectedError);
      expect(error).toMatchObject({ why: { kind: 'led', id: ran[0], token: 8n } });
    }
  },
);

test('a term that is over when the candidate looks again has done the job', async () => {
  const stage = restarted();
  const { clock, store } = stage;
  store.hold('before', 7n, leaseMs);
  store.record = { ...store.record!, holding: undefined };
  const ran: string[] = [];
  const late = copy(stage, 'late', ran);
  await clock.advance(leaseMs - 100);
  store.record = {
    ...store.record!,
    token: 8n,
    nonce: 'released',
    history: [
      {
        token: 8n,
        id: 'early',
        incarnation: 'its',
        fromUnixMs: clock.wallMs() - 10,
        toUnixMs: clock.wallMs(),
        why: 'work-finished',
      },
    ],
  };
  store.version += 1;
  await clock.advance(30_000);
  expect(await late).toMatchObject({
    why: { kind: 'led', id: 'early', token: 8n, over: true },
    message: expect.stringMatching(/"early" was elected meanwhile with token 8$/),
  });
  expect(ran).toEqual([]);
});

test('a token that rose without a term is nobody that has done the job', async () => {
  const stage = restarted();
  const { clock, store } = stage;
  const ran: string[] = [];
  const job = copy(stage, 'a', ran);
  await clock.advance(1_000);
  store.hold('other', 8n, leaseMs);
  store.record = { ...store.record!, holding: undefined };
  await clock.advance(30_000);
  expect(await job).toBe('done');
  expect(ran).toEqual(['a']);
});

test.each(['released', 'dead'])(
  'a term that was won before the first look and announced after it has done the job: %s',
  async (end) => {
    const stage = restarted();
    const { clock, store } = stage;
    // Its lease is over before the store has settled.
    store.hold('fencing', 8n, 2_000);
    const { holding } = store.record!;
    store.record = { ...store.record!, holding: { ...holding!, announced: false } };
    const ran: string[] = [];
    const job = copy(stage, 'a', ran);
    await clock.advance(1_000);
    store.record = { ...store.record!, nonce: 'announced', holding };
    store.version += 1;
    await clock.advance(4_000);
    if (end === 'released') {
      const { id, incarnation } = holding!.candidate;
      const [fromUnixMs, toUnixMs] = [clock.wallMs() - 4_000, clock.wallMs()];
      const history = [
        { token: 8n, id, incarnation, fromUnixMs, toUnixMs, why: 'work-finished' } as const,
      ];
      store.record = { ...store.record!, nonce: 'released', holding: undefined, history };
      store.version += 1;
    }
    await clock.advance(60_000);
    expect(await job).toMatchObject({ why: { kind: 'led', id: 'fencing', token: 8n } });
    expect(ran).toEqual([]);
  },
);

test('a term that was won before the first look and never announced has done nothing', async () => {
  const stage = restarted();
  const { clock, store } = stage;
  store.hold('fencing', 8n, leaseMs);
  const holding = { ...store.record!.holding!, announced: false };
  store.record = { ...store.record!, holding };
  const ran: string[] = [];
  const job = copy(stage, 'a', ran);
  await clock.advance(1_000);
  store.record = { ...store.record!, nonce: 'released', holding: undefined };
  store.version += 1;
  await clock.advance(60_000);
  expect(await job).toBe('done');
  expect(ran).toEqual(['a']);
});

test('with settle: false it is refused at once, and says why and until when', async () => {
  const stage = restarted();
  const { clock, store } = stage;
  const ran: string[] = [];
  const error = await copy(stage, 'a', ran, { settle: false });
  expect(error).toMatchObject({
    why: {
      kind: 'settling',
      after: 'restart',
      sinceUnixMs: clock.wallMs() - 1_000,
      untilUnixMs: clock.wallMs() + leaseMs,
    },
  });
  expect(store.swaps).toBe(0);
});

test('it does not wait longer than about one lease, however often the store restarts', async () => {
  const stage = restarted();
  const { clock, restart } = stage;
  const ran: string[] = [];
  let error: unknown;
  void copy(stage, 'a', ran).then((outcome) => {
    error = outcome;
  });
  for (let restarts = 0; restarts < 3; restarts += 1) {
    await clock.advance(5_000);
    expect(error).toBe(undefined);
    restart();
  }
  await clock.advance(3_000);
  expect(error).toMatchObject({ why: { kind: 'settling' } });
  expect(ran).toEqual([]);
});

test('a store that fails while it settles is borne with, and one that fails at first is not', async () => {
  const stage = restarted();
  const { clock, store } = stage;
  const ran: string[] = [];
  const { onRead } = store;
  const fails = async () => {
    throw new Error('LOADING');
  };
  store.onRead = fails;
  expect(await copy(stage, 'a', ran)).toMatchObject({
    why: { kind: 'unreachable', cause: { message: 'LOADING' } },
  });
  store.onRead = onRead;
  const job = copy(stage, 'a', ran);
  await clock.advance(1_000);
  store.onRead = fails;
  await clock.advance(3_000);
  store.onRead = onRead;
  await clock.advance(20_000);
  expect(await job).toBe('done');
});

test('the reason of a refusal is a store that stays away while it settles, in bounds', async () => {
  const stage = restarted();
  const { clock, store } = stage;
  const ran: string[] = [];
  const job = copy(stage, 'a', ran);
  await clock.advance(1_000);
  store.onRead = async () => {
    throw new Error('ECONNREFUSED');
  };
  await clock.advance(20_000);
  expect(await job).toMatchObject({ why: { kind: 'unreachable' } });
});

test('another leader is not waited for, also after a restart', async () => {
  const stage = restarted();
  const ran: string[] = [];
  stage.store.hold('one', 7n, leaseMs);
  const job = copy(stage, 'a', ran);
  for (let renewals = 0; renewals < 12; renewals += 1) {
    await stage.clock.advance(1_000);
    stage.store.record = { ...stage.store.record!, nonce: `renewal ${renewals}` };
    stage.store.version += 1;
  }
  expect(await job).toMatchObject({ why: { kind: 'led', id: 'one', token: 7n } });
  expect(ran).toEqual([]);
});

test('settle: false is for candidates that do not wait', async () => {
  const { open } = restarted();
  const election = open('a');
  for (const options of [{ settle: false }, { settle: false, wait: '1s' }]) {
    await expect(election.campaign(options)).rejects.toThrow('give it together with wait: 0');
  }
  const settle = 'no' as unknown as boolean;
  await expect(election.campaign({ settle, wait: 0 })).rejects.toThrow('true or false, not "no"');
  await election.close();
});

test('without ages, settle: false elects a handle that has watched the store, and no new one', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  store.onRead = async (apply): Promise<Reading> => ({ ...apply(), life: 'an old one' });
  const election = candidate(store, clock, { forgets: true });
  const tried = { wait: 0, settle: false } as const;
  await expect(election.campaign(tried)).rejects.toMatchObject({ why: { kind: 'settling' } });
  await clock.advance(leaseMs);
  const term = await election.campaign(tried);
  await term[Symbol.asyncDispose]();
  await election.close();
});
