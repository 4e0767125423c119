/**
 * Copies of one process: a startup snapshot, a process restored by CRIU, a clone of a machine. They have
 * the same candidate id and the same incarnation, and each of them is a candidate of its own.
 */
import { expect, test } from 'vitest';
import type { Election, ElectionOptions, Term } from '../../src/index.ts';
import { createElection } from '../../src/index.ts';
import { SimulatedClock, SimulatedLeaseStore } from '../../src/testing/index.ts';
import { inCopies } from '../support/copies.ts';
import { candidate, leaseMs } from '../support/scripted-candidate.ts';
import { lost, ScriptedStore } from '../support/scripted-store.ts';

type Options = Partial<ElectionOptions<bigint>>;

function twoCopies(options: Options = {}) {
  const clock = new SimulatedClock();
  const store = new SimulatedLeaseStore({ clock });
  const copy = () => {
    const connection = store.connect();
    const backend = inCopies(connection.backend, { incarnation: 'copied' });
    const common = { name: 'jobs', backend, clock, lease: leaseMs, random: () => 0.5 };
    const election = createElection<bigint>({ ...common, candidate: { id: 'a' }, ...options });
    return { connection, election };
  };
  return { clock, store, first: copy(), second: copy() };
}

/** Campaigns for ever. @returns the terms that were won */
function campaignOn(election: Election<bigint>, terms: Term<bigint>[]): void {
  const leading = election.lead(async (term) => {
    terms.push(term);
    await new Promise((resolve) => term.signal.addEventListener('abort', resolve, { once: true }));
  });
  leading.catch(() => {});
}

test('two copies of one process never both lead, and none takes the seat from the other', async () => {
  const clock = new SimulatedClock();
  // The store sends no hints, so the superseded copy finds out at its next renewal.
  const backend = inCopies(new ScriptedStore().backend(), { incarnation: 'copied' });
  const copy = () => candidate(new ScriptedStore(), clock, {}, { backend });
  const [first, second] = [copy(), copy()];
  const terms: Term<bigint>[] = [];
  for (const election of [first, second]) campaignOn(election, terms);
  for (let i = 0; i < 600; i += 1) {
    await clock.advance(100);
    expect(terms.filter((term) => term.isLeading()).length).toBeLessThan(2);
  }
  expect(terms).toHaveLength(1);
  expect(terms[0]?.isLeading()).toBe(true);
  await Promise.all([first.close(), second.close()]);
});

test('a copy that follows its dead original waits for its lease, and fences it', async () => {
  const fenced: unknown[] = [];
  const { clock, first, second } = twoCopies();
  const term = await first.election.campaign();
  const following = second.election.campaign({
    onUnclean: ({ id, incarnation, token }) => void fenced.push({ id, incarnation, token }),
  });
  let next: Term<bigint> | undefined;
  void following.then((won) => {
    next = won;
  });
  await clock.advance(1);
  first.connection.outage = 'silent';
  const startMs = clock.monotonicMs();
  while (next === undefined) {
    await clock.advance(50);
    expect(term.isLeading() && next !== undefined).toBe(false);
    expect(clock.monotonicMs() - startMs).toBeLessThan(3 * leaseMs);
  }
  expect(clock.monotonicMs() - startMs).toBeGreaterThanOrEqual(leaseMs - 1);
  expect(fenced).toEqual([{ id: 'a', incarnation: 'copied', token: term.token }]);
  expect(next.predecessor).toMatchObject({ incarnation: 'copied', clean: false });
  await term[Symbol.asyncDispose]();
  await next[Symbol.asyncDispose]();
  await Promise.all([first.election.close(), second.election.close()]);
});

test('a record with our incarnation and our token is not ours if we did not send it', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  const election = candidate(store, clock);
  const term = await election.campaign();
  await clock.advance(1);
  // The copy had won the same token, in a memory of the store that was lost since.
  store.record = { ...store.record!, nonce: 'of the copy' };
  store.version += 1;
  await clock.advance(leaseMs / 2);
  expect(term.isLeading()).toBe(false);
  expect(store.record.nonce).toBe('of the copy');
  await term[Symbol.asyncDispose]();
  expect(await term.ended).toMatchObject({ reason: 'superseded' });
  expect(store.record.nonce).toBe('of the copy');
  await election.close();
});

test('a write of our own that lands late is taken over at once, under whatever incarnation', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  const election = candidate(store, clock);
  let land = () => {};
  let writes = 0;
  store.onSwap = async (apply) => {
    writes += 1;
    if (writes > 1) return apply();
    land = apply;
    return lost();
  };
  // The first campaign gives up on its write and never hears of it. The write lands after its end.
  store.onRead = async (apply) => (writes === 0 ? apply() : lost());
  const stop = new AbortController();
  const given = election.campaign({ signal: stop.signal });
  given.catch(() => {});
  await clock.advance(100);
  stop.abort(new Error('not any more'));
  await clock.advance(leaseMs);
  await expect(given).rejects.toThrow('not any more');
  store.onRead = async (apply) => apply();
  land();
  const landed = store.record?.holding?.candidate.incarnation;
  const fenced: unknown[] = [];
  const next = election.campaign({ onUnclean: (leader) => void fenced.push(leader) });
  await clock.advance(100);
  const term = await next;
  expect(fenced).toEqual([]);
  // No candidate has led.
  expect(term.predecessor).toBeUndefined();
  expect(store.record?.holding?.candidate.incarnation).not.toBe(landed);
  await term[Symbol.asyncDispose]();
  await election.close();
});

test('each campaign is an incarnation of its own, and the terms of one campaign share it', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  const election = candidate(store, clock);
  const incarnation = () => store.record?.holding?.candidate.incarnation;
  const seen: unknown[] = [];
  const work = async (term: Term<bigint>) => {
    seen.push(incarnation());
    if (seen.length === 1) term.resign();
  };
  const leading = election.lead(work);
  await clock.advance(leaseMs);
  await leading;
  expect(seen).toHaveLength(2);
  expect(seen[1]).toBe(seen[0]);
  const term = await election.campaign();
  expect(incarnation()).toMatch(/^[0-9a-f-]{36}$/);
  expect(incarnation()).not.toBe(seen[0]);
  await term[Symbol.asyncDispose]();
  await election.close();
});

test('the actors of a term are described when the seat is taken, and not when the waiting began', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  store.hold('old', 7n, leaseMs);
  // A process that CRIU has restored has another start time.
  let start = 'before';
  const election = candidate(store, clock, { describe: async ({ pid }) => ({ pid, start }) });
  const campaign = election.campaign();
  await clock.advance(leaseMs / 2);
  start = 'restored';
  await clock.advance(leaseMs);
  const term = await campaign;
  expect(store.record?.holding?.actors).toEqual([{ pid: process.pid, start: 'restored' }]);
  await term[Symbol.asyncDispose]();
  await election.close();
});
