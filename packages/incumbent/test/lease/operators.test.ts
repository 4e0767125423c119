/** Operators' writes beside a leader reach the intended term, and are never lost. */
import { expect, test } from 'vitest';
import { createElection } from '../../src/index.ts';
import type { SimulatedConnection } from '../../src/testing/index.ts';
import { SimulatedClock, SimulatedLeaseStore } from '../../src/testing/index.ts';
import { candidate, leaseMs } from '../support/scripted-candidate.ts';
import { ScriptedStore } from '../support/scripted-store.ts';

function setUp() {
  const clock = new SimulatedClock();
  const store = new SimulatedLeaseStore({ clock });
  const elect = (id: string, connection: SimulatedConnection = store.connect()) => {
    const { backend } = connection;
    return createElection({ name: 'jobs', backend, clock, candidate: { id }, random: () => 0 });
  };
  return { clock, store, elect };
}

// Both wait for the same answer. The outcome of the first write is another matter.
test.each([
  ['vacate', 'was done'],
  ['vacate', 'was not done'],
  ['transfer', 'was done'],
  ['transfer', 'was not done'],
] as const)(
  'a request to %s that %s, without an answer, is not meant for the next term',
  async (kind, done) => {
    const { clock, store, elect } = setUp();
    const [a, b, c] = [elect('a'), elect('b'), elect('c')];
    const connection = store.connect();
    const operator = elect('operator', connection);
    const first = await a.campaign();
    const campaigns = [b.campaign(), c.campaign()];
    await clock.advance(0);
    connection.next('swap', { lose: done === 'was done' ? 'reply' : 'request' });
    const asking = kind === 'vacate' ? operator.vacate() : operator.transfer('c');
    await clock.advance(0);
    // The leader hears of it, or goes by itself, and the next one leads before the operator asks again.
    first.resign();
    await first[Symbol.asyncDispose]();
    await clock.advance(0);
    const second = await Promise.race(campaigns);
    await clock.advance(a.timing.operationTimeoutMs);
    // It may have been done, for all that the operator can know.
    expect(await asking).toMatchObject({ changed: true });
    await clock.advance(10_000);
    expect(second.isLeading()).toBe(true);
    expect(second.signal.aborted).toBe(false);
    expect(store.record('jobs')).toMatchObject({ token: 2n, holding: { request: undefined } });
    await second[Symbol.asyncDispose]();
    await clock.advance(5_000);
    for (const term of await Promise.all(campaigns)) await term[Symbol.asyncDispose]();
    await Promise.all([a, b, c, operator].map((election) => election.close()));
  },
);

test('a transfer whose answer was lost, and that the leader has heard and obeyed, was recorded', async () => {
  const { clock, store, elect } = setUp();
  const [connection, cutOff] = [store.connect(), store.connect()];
  const [a, b, operator] = [elect('a'), elect('b', cutOff), elect('operator', connection)];
  const term = await a.campaign();
  b.campaign().catch(() => {});
  await clock.advance(0);
  // It cannot come for the seat before the operator looks again.
  cutOff.outage = 'silent';
  connection.next('swap', { lose: 'reply' });
  const asking = operator.transfer('b');
  await clock.advance(0);
  await term[Symbol.asyncDispose]();
  expect(store.record('jobs')?.holding).toBeUndefined();
  await clock.advance(2 * a.timing.operationTimeoutMs);
  expect(await asking).toMatchObject({ changed: true });
  const closed = Promise.all([a.close(), b.close(), operator.close()]);
  await clock.advance(10 * a.timing.operationTimeoutMs);
  await closed;
});

test('a request that its leader died with is not for the next one', async () => {
  const { clock, store, elect } = setUp();
  const connection = store.connect();
  const [a, b] = [elect('a', connection), elect('b')];
  const first = await a.campaign();
  connection.outage = 'silent';
  const campaign = b.campaign();
  await b.vacate({ force: true });
  await clock.advance(20_000);
  const second = await campaign;
  expect(second.token).toBe(2n);
  await clock.advance(20_000);
  expect(second.isLeading()).toBe(true);
  expect(store.record('jobs')?.holding).toMatchObject({ request: undefined, revoked: false });
  await first[Symbol.asyncDispose]();
  await second[Symbol.asyncDispose]();
  await Promise.all([a.close(), b.close()]);
});

test('a leader that leaves overwrites nothing of what an operator wrote meanwhile', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  // No hints: the leader does not hear of it before it gives the seat back.
  const [election, operator] = [candidate(store, clock), candidate(store, clock)];
  const term = await election.campaign();
  const drain = { id: 'x', untilUnixMs: clock.wallMs() + 3_600_000 };
  await operator.drain(drain.id, new Date(drain.untilUnixMs));
  const disposed = term[Symbol.asyncDispose]();
  await clock.advance(1_000);
  await disposed;
  expect(await term.ended).toMatchObject({ released: true });
  expect(store.record).toMatchObject({ holding: undefined, drains: [drain] });
  await Promise.all([election.close(), operator.close()]);
});

test('a seat that was given back without an answer was given back', async () => {
  const { clock, store, elect } = setUp();
  const connection = store.connect();
  const election = elect('a', connection);
  const term = await election.campaign();
  connection.next('swap', { lose: 'reply' });
  const disposed = term[Symbol.asyncDispose]();
  await clock.advance(0);
  expect(store.record('jobs')?.holding).toBeUndefined();
  const version = store.version('jobs');
  await clock.advance(3 * election.timing.operationTimeoutMs);
  await disposed;
  expect(await term.ended).toMatchObject({ reason: 'resigned', released: true });
  expect(store.version('jobs')).toBe(version);
  await election.close();
});

test('a request that others are faster than is tried twenty times', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  store.onSwap = async () => ({ outcome: 'conflict' });
  const operator = candidate(store, clock);
  const asking = operator.drain('x', new Date(clock.wallMs() + 60_000));
  asking.catch(() => {});
  await clock.advance(10_000);
  await expect(asking).rejects.toThrow('could not be recorded in 20 attempts');
  expect(store.swaps).toBe(20);
  await operator.close();
});

test('a candidate whose write met an operator’s looks again within 5 ms', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  store.hold('a', 1n, leaseMs);
  store.record = { ...store.record!, holding: undefined };
  // The longest of all random times.
  const election = candidate(store, clock, {}, { random: () => 1 });
  const { onSwap } = store;
  store.onSwap = async (apply) => {
    store.version += 1;
    store.onSwap = onSwap;
    return apply();
  };
  const campaign = election.campaign();
  await clock.advance(4);
  expect(store.swaps).toBe(1);
  await clock.advance(1);
  expect(store.swaps).toBe(2);
  const term = await campaign;
  expect(term.token).toBe(2n);
  await term[Symbol.asyncDispose]();
  await election.close();
});

test.each([
  ['asked', false],
  ['forced', true],
])('a leader that was %s to go already is not asked again', async (_, force) => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  store.hold('a', 1n, leaseMs);
  const election = candidate(store, clock);
  expect(await election.vacate({ force })).toMatchObject({ changed: true });
  const { swaps, record } = store;
  expect(await election.vacate({ force })).toMatchObject({ changed: false });
  // An operator that has forced the leader out need not ask it.
  expect(await election.vacate()).toMatchObject({ changed: false });
  expect(store.swaps).toBe(swaps);
  expect(store.record).toBe(record);
  // One that has only asked may force it.
  expect(await election.vacate({ force: true })).toMatchObject({ changed: !force });
  expect(store.record?.holding).toMatchObject({ revoked: true });
  await election.close();
});
