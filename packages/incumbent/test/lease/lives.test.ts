/** A store that forgets mostly goes back: an older record is there again, and only its life tells. */
import { expect, test } from 'vitest';
import type { CandidateStatus, NotElectedReason } from '../../src/index.ts';
import type { LeaseStore, Reading } from '../../src/mechanisms/lease/store.ts';
import { SimulatedClock } from '../../src/testing/index.ts';
import { candidate, leaseMs, waitsThenWins } from '../support/scripted-candidate.ts';
import { ScriptedStore } from '../support/scripted-store.ts';

const clockStepMs = 2_000;

/** The memory of a store that forgets, as it describes it. */
interface Memory {
  life: string;
  bornAtMs: number;
  writtenAtMs: number;
}

function stage(says: Partial<LeaseStore> = {}) {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  const memory: Memory = { life: 'first', bornAtMs: -1e6, writtenAtMs: -1e6 };
  store.onRead = async (apply): Promise<Reading> => {
    const nowMs = clock.monotonicMs();
    const ages = { ageMs: nowMs - memory.writtenAtMs, lifeAgeMs: nowMs - memory.bornAtMs };
    const { life } = memory;
    return { ...apply(), life, ...(says.clockStepMs === undefined ? {} : ages) };
  };
  const election = candidate(store, clock, { forgets: true, ...says });
  return { clock, store, memory, election };
}

/** The server was started again, or a copy took over: with another record and a new version. */
function beginAnew({ clock, store, memory }: ReturnType<typeof stage>): void {
  store.version += 1;
  memory.life = 'second';
  memory.bornAtMs = clock.monotonicMs();
}

test('a record that comes back is not as old as when it was seen first', async () => {
  const all = stage({ hintsWork: true });
  const { clock, store, election } = all;
  store.hold('a', 7n, leaseMs);
  const campaign = election.campaign();
  // All of these confirmations are lost. With hints that work, no candidate has looked meanwhile.
  await clock.advance(9_500);
  beginAnew(all);
  expect(await waitsThenWins(all, campaign, leaseMs - 100)).toBe(8n);
});

test('a record that comes back is not as old as its store’s clock makes it', async () => {
  const all = stage({ clockStepMs });
  const { clock, store, memory, election } = all;
  store.hold('a', 7n, leaseMs);
  beginAnew(all);
  memory.writtenAtMs = clock.monotonicMs() - 60_000;
  const campaign = election.campaign();
  await waitsThenWins(all, campaign, leaseMs - 100);
});

test('a vacant seat that comes back may have been taken in between', async () => {
  for (const says of [{}, { clockStepMs }]) {
    const all = stage(says);
    const { store, election } = all;
    store.hold('a', 6n, leaseMs);
    store.record = { ...store.record!, holding: undefined };
    // Another candidate has won 7 since, and this one starts after that was lost.
    beginAnew(all);
    const campaign = election.campaign();
    await waitsThenWins(all, campaign, leaseMs - 100, clockStepMs + 3_000);
  }
});

test('where a store has lost nothing for a lease by its own clock, nobody waits', async () => {
  for (const [ageMs, wins] of [
    [leaseMs + clockStepMs, true],
    [leaseMs + clockStepMs - 1, false],
  ] as const) {
    const { clock, memory, election } = stage({ clockStepMs });
    memory.bornAtMs = clock.monotonicMs() - ageMs;
    const campaign = election.campaign({ wait: 0, settle: false });
    if (wins) await (await campaign)[Symbol.asyncDispose]();
    else await expect(campaign).rejects.toMatchObject({ why: { kind: 'settling' } });
    await election.close();
  }
});

test('a leader whose own older record comes back leads on', async () => {
  const all = stage({ clockStepMs });
  const { clock, store, memory, election } = all;
  memory.bornAtMs = clock.monotonicMs() - 60_000;
  const term = await election.campaign();
  const { record } = store;
  await clock.advance(5_000);
  store.record = record;
  beginAnew(all);
  await clock.advance(leaseMs);
  expect(term.isLeading()).toBe(true);
  expect(store.record?.token).toBe(term.token);
  await term[Symbol.asyncDispose]();
  await election.close();
});

/** The store's clock is set forward by a minute, far more than it was said to be. */
function stepForward({ memory }: ReturnType<typeof stage>): void {
  memory.writtenAtMs -= 60_000;
  memory.bornAtMs -= 60_000;
}

test('a clock set forward does not age a write that a candidate has seen, nor one that is new to it', async () => {
  for (const isNew of [false, true]) {
    const all = stage({ clockStepMs });
    const { clock, store, memory, election } = all;
    store.hold('a', 7n, leaseMs);
    memory.writtenAtMs = clock.monotonicMs();
    const campaign = election.campaign();
    await clock.advance(1_000);
    if (isNew) {
      store.hold('a', 7n, leaseMs);
      memory.writtenAtMs = clock.monotonicMs();
    }
    stepForward(all);
    expect(await waitsThenWins(all, campaign, leaseMs - 1_100)).toBe(8n);
  }
});

test('a clock set forward does not age a life that began while a candidate waited', async () => {
  for (const isKnown of [false, true]) {
    const all = stage({ clockStepMs });
    const { clock, store, memory, election } = all;
    store.hold('a', 7n, leaseMs);
    memory.writtenAtMs = clock.monotonicMs();
    const campaign = election.campaign();
    await clock.advance(1_000);
    store.record = { ...store.record!, holding: undefined };
    beginAnew(all);
    if (isKnown) await clock.advance(3_000);
    stepForward(all);
    await waitsThenWins(all, campaign, leaseMs - (isKnown ? 3_100 : 1_100));
  }
});

test.each(['restart', 'loss'] as const)(
  'a waiting candidate is told its reason: a %s',
  async (after) => {
    const all = stage({ clockStepMs });
    const { clock, store, memory, election } = all;
    store.hold('a', 7n, leaseMs);
    memory.writtenAtMs = clock.monotonicMs();
    const told: CandidateStatus[] = [];
    const stop = new AbortController();
    const campaign = election.campaign({
      signal: stop.signal,
      onStatus: (status) => told.push(status),
    });
    campaign.catch(() => {});
    await clock.advance(leaseMs / 2);
    store.record = undefined;
    if (after === 'restart') beginAnew(all);
    else store.version += 1;
    const { leaseMs: longMs, renewEveryMs } = election.timing;
    memory.writtenAtMs = clock.monotonicMs();
    const lostUnixMs = clock.wallMs();
    await clock.advance(2 * renewEveryMs);
    const { waitingFor } = told.at(-1) as {
      waitingFor: NotElectedReason & { sinceUnixMs: number; untilUnixMs: number };
    };
    expect(waitingFor).toMatchObject({ kind: 'settling', after });
    // It is noticed at the next look.
    const lateMs = waitingFor.untilUnixMs - lostUnixMs - longMs;
    expect(lateMs).toBeGreaterThanOrEqual(0);
    expect(lateMs).toBeLessThanOrEqual(renewEveryMs + clockStepMs);
    const { sinceUnixMs } = waitingFor;
    expect(sinceUnixMs).toBeGreaterThanOrEqual(lostUnixMs);
    expect(sinceUnixMs).toBeLessThanOrEqual(lostUnixMs + renewEveryMs + clockStepMs);
    stop.abort(new Error('enough'));
    await expect(campaign).rejects.toThrow('enough');
    await election.close();
  },
);

test('a candidate that waits for a store that has just begun anew says since when', async () => {
  const all = stage({ clockStepMs });
  const { clock, election } = all;
  await clock.advance(5_000);
  beginAnew(all);
  const sinceUnixMs = clock.wallMs();
  await expect(election.campaign({ wait: 0, settle: false })).rejects.toMatchObject({
    why: { kind: 'settling', after: 'restart', sinceUnixMs },
  });
  await election.close();
});
