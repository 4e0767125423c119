/** A record that vanishes says nothing of its last leader. */
import { expect, test } from 'vitest';
import { SimulatedClock } from '../../src/testing/index.ts';
import { candidate, leaseMs, waitsThenWins } from '../support/scripted-candidate.ts';
import { ScriptedStore } from '../support/scripted-store.ts';

function lose(store: ScriptedStore): void {
  store.record = undefined;
  store.version += 1;
}

/** A candidate that has campaigned for `forMs` while another one holds term 7. */
async function campaigning(heldLeaseMs: number, forMs = 5_000) {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  store.hold('a', 7n, heldLeaseMs);
  const election = candidate(store, clock);
  const campaign = election.campaign();
  await clock.advance(forMs);
  return { clock, store, election, campaign };
}

test('a record that vanishes is waited for as long as its leader may believe', async () => {
  const { clock, store, election, campaign } = await campaigning(30_000);
  lose(store);
  // It is noticed at the next look, and then the record's lease counts, which is longer than ours.
  expect(await waitsThenWins({ clock, store, election }, campaign, 29_900)).toBe(8n);
});

test('a record that goes back to an older term is waited for, and tokens do not go back', async () => {
  const { clock, store, election, campaign } = await campaigning(leaseMs);
  // A copy that lagged behind has taken over: there the seat is free.
  store.hold('x', 3n, leaseMs);
  store.record = { ...store.record!, holding: undefined };
  expect(await waitsThenWins({ clock, store, election }, campaign, leaseMs - 100)).toBe(8n);
});

test('a record that goes back may be old, but it has come back just now', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  let ageMs = 0;
  store.onRead = async (apply) => ({ ...apply(), ageMs });
  store.hold('a', 7n, leaseMs);
  const election = candidate(store, clock, { clockStepMs: 2_000 });
  const campaign = election.campaign();
  await clock.advance(5_000);
  // Written an hour ago by the clock of the store: that says nothing of when term 7 was lost.
  store.hold('x', 3n, leaseMs);
  store.record = { ...store.record!, holding: undefined };
  ageMs = 3_600_000;
  expect(await waitsThenWins({ clock, store, election }, campaign, leaseMs - 100)).toBe(8n);
});

test('a record that goes back, and back again, is waited for from the last time', async () => {
  const { clock, store, election, campaign } = await campaigning(leaseMs);
  store.hold('x', 3n, leaseMs);
  await clock.advance(8_000);
  // The leader with token 3 may have confirmed that until now.
  store.hold('y', 2n, leaseMs);
  store.record = { ...store.record!, holding: undefined };
  expect(await waitsThenWins({ clock, store, election }, campaign, leaseMs - 100)).toBe(8n);
});

test('where the store forgets, the first to win waits one lease, and again after every loss', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  const election = candidate(store, clock, { forgets: true });
  const campaign = election.campaign();
  await clock.advance(leaseMs - 1_000);
  expect(store.swaps).toBe(0);
  // Another leader came and was lost without a look in between. Only the version tells.
  store.version += 1;
  expect(await waitsThenWins({ clock, store, election }, campaign, leaseMs - 1_000, 3_500)).toBe(
    1n,
  );
});

test('where the store forgets but knows how long nothing has been there, that counts', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  store.onRead = async (apply) => ({ ...apply(), ageMs: clock.monotonicMs() + 60_000 });
  const election = candidate(store, clock, { forgets: true, clockStepMs: 2_000 });
  const term = await election.campaign({ wait: 0 });
  expect(term.token).toBe(1n);
  await term[Symbol.asyncDispose]();
  await election.close();
});

test('an operator’s request on an empty store that forgets makes no vacant seat', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  const election = candidate(store, clock, { forgets: true });
  await election.drain('x', new Date(clock.wallMs() + 60_000));
  await expect(election.campaign({ wait: 0, settle: false })).rejects.toMatchObject({
    why: { kind: 'settling' },
  });
  const campaign = election.campaign();
  await clock.advance(leaseMs - 100);
  expect(store.swaps).toBe(1);
  await clock.advance(3_000);
  await (await campaign)[Symbol.asyncDispose]();
  await election.close();
});

test('no term has the token of the floor or a lower one', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  for (const token of [501n, 502n]) {
    const election = candidate(store, clock, { tokenFloor: 500n });
    const term = await election.campaign();
    expect(term.token).toBe(token);
    await term[Symbol.asyncDispose]();
    await election.close();
  }
});

test('a leader that was seen may come again unseen: its longer lease counts when the record is lost', async () => {
  const { clock, store, election, campaign } = await campaigning(600_000);
  store.record = { ...store.record!, holding: undefined, nonce: 'released' };
  const reservation = { for: 'x', reserveMs: 60_000, untilUnixMs: clock.wallMs() + 60_000 };
  store.record = { ...store.record, reservation };
  store.version += 1;
  await clock.advance(5_000);
  // Between two looks "a" was elected again, and the store lost that.
  lose(store);
  expect(await waitsThenWins({ clock, store, election }, campaign, 599_900)).toBe(8n);
});

test('a lease longer than any of ours is forgotten with its leader', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  store.hold('go', 7n, 2 ** 31 - 1);
  const election = candidate(store, clock);
  const campaign = election.campaign();
  await clock.advance(5_000);
  store.hold('c', 8n, leaseMs);
  await clock.advance(5_000);
  lose(store);
  expect(await waitsThenWins({ clock, store, election }, campaign, leaseMs - 100)).toBe(9n);
});

test('a winner from a record that went back may be lost in its turn', async () => {
  const { clock, store, election, campaign } = await campaigning(leaseMs);
  // A candidate without knowledge of term 7 has won on the record that was left.
  store.hold('x', 4n, 40_000);
  await clock.advance(5_000);
  lose(store);
  expect(await waitsThenWins({ clock, store, election }, campaign, 39_900)).toBe(8n);
});

test('a lost record is waited for an hour at most, whatever lease it named', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  // A Lease of Kubernetes takes 2^31 - 1 s.
  store.hold('go', 7n, 2 ** 31 - 1);
  const election = candidate(store, clock);
  const campaign = election.campaign();
  await clock.advance(5_000);
  lose(store);
  expect(await waitsThenWins({ clock, store, election }, campaign, 3_599_000, 4_000)).toBe(8n);
});

test('a foreign lease on a record that went back is waited for an hour when it is lost in its turn', async () => {
  const { clock, store, election, campaign } = await campaigning(leaseMs);
  // A leader without knowledge of term 7 has taken the record that was left.
  store.hold('go', 3n, 2 ** 31 - 1);
  await clock.advance(5_000);
  lose(store);
  expect(await waitsThenWins({ clock, store, election }, campaign, 3_599_000, 4_000)).toBe(8n);
});

test('while it stands a record is waited for as long as it says', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  store.hold('go', 7n, 7_200_000);
  const election = candidate(store, clock);
  const campaign = election.campaign();
  expect(await waitsThenWins({ clock, store, election }, campaign, 7_199_000, 4_000)).toBe(8n);
});

/** Looks at others, with a lease as ours, for `ms`. */
async function seeOthers(clock: SimulatedClock, store: ScriptedStore, ms: number): Promise<void> {
  for (let seenMs = 0; seenMs < ms; seenMs += 5_000) {
    store.hold('c', store.record!.token, leaseMs);
    await clock.advance(5_000);
  }
}

test('a longer lease is forgotten when looks have shown others for longer than it lasts', async () => {
  const { clock, store, election, campaign } = await campaigning(600_000);
  await seeOthers(clock, store, 950_000);
  lose(store);
  expect(await waitsThenWins({ clock, store, election }, campaign, leaseMs - 100)).toBe(8n);
});

test('it counts for as long as it lasts, and for the drift of the clocks', async () => {
  const { clock, store, election, campaign } = await campaigning(600_000);
  await seeOthers(clock, store, 850_000);
  lose(store);
  // While that is waited out nothing is forgotten.
  expect(await waitsThenWins({ clock, store, election }, campaign, 599_900)).toBe(8n);
});

test('it still counts when looks have shown others for exactly so long', async () => {
  const { clock, store, election, campaign } = await campaigning(20_000, 0);
  // One and a half of its leases, and the last look falls on the end.
  await seeOthers(clock, store, 30_000);
  lose(store);
  expect(await waitsThenWins({ clock, store, election }, campaign, 19_900)).toBe(8n);
});

test('time in which the candidate could not look does not count', async () => {
  const { clock, store, election, campaign } = await campaigning(600_000);
  await seeOthers(clock, store, 100_000);
  store.onRead = async () => {
    throw new Error('cut off');
  };
  await clock.advance(3_600_000);
  store.onRead = async (apply) => apply();
  await seeOthers(clock, store, 100_000);
  lose(store);
  expect(await waitsThenWins({ clock, store, election }, campaign, 599_900)).toBe(8n);
});

test('when the longest lease is forgotten the next longer one counts', async () => {
  const { clock, store, election, campaign } = await campaigning(600_000);
  await seeOthers(clock, store, 850_000);
  store.hold('d', 7n, 300_000);
  await clock.advance(5_000);
  await seeOthers(clock, store, 200_000);
  lose(store);
  expect(await waitsThenWins({ clock, store, election }, campaign, 299_900)).toBe(8n);
});

test('of too many longer leases one counts as the next longer one', async () => {
  const { clock, store, election, campaign } = await campaigning(600_000);
  for (let i = 1; i < 8; i += 1) {
    store.hold('d', 7n, 600_000 - i * 1_000);
    await clock.advance(5_000);
  }
  for (let i = 0; i < 60; i += 1) {
    store.hold('e', 7n, 100_000);
    await clock.advance(5_000);
  }
  await seeOthers(clock, store, 700_000);
  lose(store);
  expect(await waitsThenWins({ clock, store, election }, campaign, 592_900)).toBe(8n);
});

test('a loss is over when a later leader is seen: the seat that this one gives back is free at once', async () => {
  const { clock, store, election, campaign } = await campaigning(leaseMs);
  lose(store);
  await clock.advance(2_500);
  store.hold('c', 8n, leaseMs);
  await clock.advance(2_500);
  store.record = { ...store.record!, holding: undefined, nonce: 'released' };
  store.version += 1;
  const { timing } = election;
  expect(await waitsThenWins({ clock, store, election }, campaign, 0, timing.pollEveryMs)).toBe(9n);
});
