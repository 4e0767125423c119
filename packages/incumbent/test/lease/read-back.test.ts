/** A write without an answer: a candidate may believe only the record that it reads afterwards. */
import { expect, test } from 'vitest';
import type { Election } from '../../src/index.ts';
import { createElection } from '../../src/index.ts';
import type { SimulatedConnection } from '../../src/testing/index.ts';
import { SimulatedClock, SimulatedLeaseStore } from '../../src/testing/index.ts';

// D 15 s: H 12 s, R 3 s, X 2.5 s.
const operationTimeoutMs = 2_500;

function setUp() {
  const clock = new SimulatedClock();
  const store = new SimulatedLeaseStore({ clock });
  const elect = (id: string, connection: SimulatedConnection = store.connect()) => {
    const { backend } = connection;
    return createElection({ name: 'jobs', backend, clock, candidate: { id }, random: () => 0 });
  };
  /** A candidate whose first winning write is done, and never answered. */
  const winWithoutAnswer = async () => {
    const connection = store.connect();
    connection.next('swap', { lose: 'reply' });
    const election = elect('a', connection);
    const stop = new AbortController();
    const campaign = election.campaign({ signal: stop.signal });
    campaign.catch(() => {});
    await clock.advance(0);
    expect(store.record('jobs')?.holding?.candidate.id).toBe('a');
    return { connection, election, campaign, stop };
  };
  /** An operator's action over another connection to the store. */
  const operate = async (act: (operator: Election<bigint>) => Promise<unknown>) => {
    const operator = elect('operator');
    await act(operator);
    await operator.close();
  };
  return { clock, store, elect, winWithoutAnswer, operate };
}

test('a win that was vacated by force before it was read back is not believed', async () => {
  const { clock, store, winWithoutAnswer, operate } = setUp();
  const { election, campaign } = await winWithoutAnswer();
  await operate((operator) => operator.vacate({ force: true }));
  expect(store.record('jobs')).toMatchObject({ token: 1n, holding: { revoked: true } });
  await clock.advance(operationTimeoutMs);
  // No candidate has led with token 1, and none does.
  const term = await campaign;
  expect(term.token).toBe(2n);
  expect(store.record('jobs')).toMatchObject({ token: 2n, holding: { revoked: false } });
  await term[Symbol.asyncDispose]();
  await election.close();
});

test('what an operator writes before a win is read back stays in the record', async () => {
  const { clock, store, winWithoutAnswer, operate } = setUp();
  const { election, campaign } = await winWithoutAnswer();
  const drain = { id: 'x', untilUnixMs: clock.wallMs() + 3_600_000 };
  await operate((operator) => operator.drain(drain.id, new Date(drain.untilUnixMs)));
  await clock.advance(operationTimeoutMs);
  const term = await campaign;
  expect(term.token).toBe(1n);
  await clock.advance(2 * election.timing.renewEveryMs);
  expect(store.record('jobs')?.drains).toEqual([drain]);
  await term[Symbol.asyncDispose]();
  expect(store.record('jobs')?.drains).toEqual([drain]);
  await election.close();
});

test.each<readonly [string, (operator: Election<bigint>, clock: SimulatedClock) => unknown]>([
  ['to vacate', (operator) => operator.vacate()],
  ['to drain it', (operator, clock) => operator.drain('a', new Date(clock.wallMs() + 5_000))],
])('a request %s that came before the win was read back ends that term at once', async (_, ask) => {
  const { clock, store, winWithoutAnswer, operate } = setUp();
  const { election, campaign } = await winWithoutAnswer();
  await operate(async (operator) => ask(operator, clock));
  await clock.advance(operationTimeoutMs);
  expect(store.record('jobs')).toMatchObject({ token: 1n, holding: undefined });
  await clock.advance(10_000);
  const term = await campaign;
  expect(term.token).toBe(2n);
  expect(term.isLeading()).toBe(true);
  await term[Symbol.asyncDispose]();
  await election.close();
});

test('an end of the election that came before the win was read back ends the campaign', async () => {
  const { clock, store, winWithoutAnswer, operate } = setUp();
  const { election, campaign } = await winWithoutAnswer();
  await operate((operator) => operator.end());
  await clock.advance(operationTimeoutMs);
  await expect(campaign).rejects.toMatchObject({ code: 'ELECTION_ENDED' });
  expect(store.record('jobs')?.holding).toBeUndefined();
  await election.close();
});

test('who gives up while its winning write has no answer takes the win back', async () => {
  const { clock, store, winWithoutAnswer } = setUp();
  const { election, campaign, stop } = await winWithoutAnswer();
  stop.abort(new Error('not any more'));
  await clock.advance(operationTimeoutMs);
  await expect(campaign).rejects.toThrow('not any more');
  expect(store.record('jobs')).toMatchObject({ token: 1n, holding: undefined });
  await election.close();
});

test('a candidate that gives up while it reads its winning write back takes the win back', async () => {
  const { clock, store, winWithoutAnswer } = setUp();
  const { connection, election, campaign, stop } = await winWithoutAnswer();
  connection.next('read', { lose: 'reply' });
  await clock.advance(operationTimeoutMs + 1);
  stop.abort(new Error('not any more'));
  await clock.advance(0);
  await expect(campaign).rejects.toThrow('not any more');
  expect(store.record('jobs')).toMatchObject({ token: 1n, holding: undefined });
  await election.close();
});

test('who gives up takes back nothing but its own win', async () => {
  const { clock, store, elect } = setUp();
  const a = store.connect();
  a.next('swap', { lose: 'request' });
  const giving = elect('a', a);
  const stop = new AbortController();
  const campaign = giving.campaign({ signal: stop.signal });
  campaign.catch(() => {});
  await clock.advance(0);
  const other = elect('b');
  const term = await other.campaign();
  const { nonce } = store.record('jobs')!;
  stop.abort(new Error('not any more'));
  await clock.advance(operationTimeoutMs);
  await expect(campaign).rejects.toThrow('not any more');
  expect(store.record('jobs')).toMatchObject({ nonce, holding: { candidate: { id: 'b' } } });
  await clock.advance(10_000);
  expect(term.isLeading()).toBe(true);
  await term[Symbol.asyncDispose]();
  await Promise.all([giving.close(), other.close()]);
});

test('a leader whose record has become another candidate’s, with the same token, is no leader', async () => {
  const { clock, store, elect } = setUp();
  const election = elect('a');
  const term = await election.campaign();
  const record = store.record('jobs')!;
  const holding = record.holding!;
  const candidate = { ...holding.candidate, incarnation: 'somebody else’s' };
  store.put('jobs', { ...record, nonce: 'theirs', holding: { ...holding, candidate } });
  await clock.advance(election.timing.renewEveryMs);
  expect(term.isLeading()).toBe(false);
  await term[Symbol.asyncDispose]();
  expect(await term.ended).toMatchObject({ reason: 'superseded', released: false });
  expect(store.record('jobs')?.nonce).toBe('theirs');
  await election.close();
});

test('a leader whose own record of an earlier term comes back is no leader', async () => {
  const { clock, store, elect } = setUp();
  const election = elect('a');
  const first = await election.campaign();
  const old = store.record('jobs')!;
  await first[Symbol.asyncDispose]();
  const campaign = election.campaign();
  await clock.advance(2_000);
  const second = await campaign;
  expect(second.token).toBe(2n);
  // The record is of this very handle, and yet it leads by none: term 1 is over, and term
  // 2 is lost.
  store.put('jobs', old);
  await clock.advance(election.timing.renewEveryMs);
  expect(second.isLeading()).toBe(false);
  expect(store.record('jobs')).toBe(old);
  await second[Symbol.asyncDispose]();
  expect(await second.ended).toMatchObject({ reason: 'superseded', released: false });
  const again = election.campaign();
  await clock.advance(40_000);
  expect((await again).token).toBe(3n);
  await (await again)[Symbol.asyncDispose]();
  await election.close();
});
