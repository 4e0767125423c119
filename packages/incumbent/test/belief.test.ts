import type { Deadline, Election, Term } from 'incumbent';
import { createElection } from 'incumbent';
import { memory } from 'incumbent/memory';
import { SimulatedClock } from 'incumbent/testing';
import { describe, expect, test } from 'vitest';
import { Belief } from '../src/base/belief.ts';
import { readClocks } from '../src/base/clock.ts';
import { Countdown, deadlineAfter } from '../src/base/deadline.ts';
import { lost, ScriptedStore } from './support/scripted-store.ts';

// The law itself is shown in packages/cli/test/two-clock-law.test.ts, for all its copies.

function believing() {
  const clock = new SimulatedClock();
  return { clock, belief: new Belief(clock, 12_000, readClocks(clock)) };
}

async function closed(clock: SimulatedClock, term: Term<unknown>, election: Election) {
  const disposed = term[Symbol.asyncDispose]();
  await clock.advance(10_000);
  await disposed;
  await election.close();
}

describe('what one look has found lost stays lost', () => {
  test('a suspension, although the wall clock is set back after it', async () => {
    const { clock, belief } = believing();
    await clock.advance(1_000);
    clock.suspend(6_000);
    expect(belief.remainingMs()).toBe(5_000);
    clock.stepWall(-6_000);
    expect(belief.remainingMs()).toBe(5_000);
    await clock.advance(5_000);
    expect(belief.remainingMs()).toBe(0);
  });

  test('a suspension after the wall clock was set back', () => {
    const { clock, belief } = believing();
    clock.stepWall(-60_000);
    expect(belief.remainingMs()).toBe(12_000);
    clock.suspend(12_001);
    expect(belief.remainingMs()).toBeLessThan(0);
  });

  test('also for a confirmation that was under way', async () => {
    const { clock, belief } = believing();
    await clock.advance(1_000);
    const sentAt = readClocks(clock);
    await clock.advance(10);
    clock.suspend(6_000);
    expect(belief.remainingMs()).toBe(4_990);
    clock.stepWall(-6_000);
    await clock.advance(10);
    expect(belief.extend(sentAt)).toBe(true);
    // Sent 6.02 s ago.
    expect(belief.remainingMs()).toBe(5_980);
  });

  test('a suspension that makes up for a wall clock set back, while a confirmation was under way', async () => {
    const { clock, belief } = believing();
    await clock.advance(1_000);
    const sentAt = readClocks(clock);
    await clock.advance(10);
    clock.stepWall(-6_000);
    expect(belief.remainingMs()).toBe(10_990);
    // Now the wall clock agrees with the monotonic one again, and both are 6 s behind.
    clock.suspend(6_000);
    expect(belief.remainingMs()).toBe(4_990);
    expect(belief.extend(sentAt)).toBe(true);
    // Sent 6.01 s ago.
    expect(belief.remainingMs()).toBe(5_990);
  });

  test('a suspension after the reply, when the wall clock was set back while that was under way', () => {
    const law = new Countdown();
    law.set(deadlineAfter({ monotonicMs: 0, wallMs: 100_000 }, 12_000));
    expect(law.look({ monotonicMs: 1_010, wallMs: 95_010 })).toBe(10_990);
    law.set(deadlineAfter({ monotonicMs: 1_000, wallMs: 101_000 }, 12_000));
    // The host was suspended for 6 s before the next look.
    expect(law.look({ monotonicMs: 1_010, wallMs: 101_010 })).toBe(5_990);
  });

  test('a suspension after a confirmation was sent, which makes up for a wall clock set back before', () => {
    const law = new Countdown();
    law.set(deadlineAfter({ monotonicMs: 0, wallMs: 100_000 }, 12_000));
    // The wall clock is set back by 6 s, and no look comes. The next confirmation is sent.
    const sentAt = { monotonicMs: 1_000, wallMs: 95_000 };
    // The host is suspended for 6 s. A look finds the clocks as they were before both.
    expect(law.look({ monotonicMs: 1_010, wallMs: 101_010 })).toBe(10_990);
    law.set(deadlineAfter(sentAt, 12_000));
    // Sent 6.01 s ago.
    expect(law.look({ monotonicMs: 1_010, wallMs: 101_010 })).toBe(5_990);
  });

  test('and each deadline says how much it is, for another judge of the same clocks', () => {
    const law = new Countdown();
    law.set(deadlineAfter({ monotonicMs: 0, wallMs: 100_000 }, 12_000));
    expect(law.look({ monotonicMs: 1_000, wallMs: 101_000 })).toBe(11_000);
    // The host was suspended for 2 s.
    expect(law.look({ monotonicMs: 1_010, wallMs: 103_010 })).toBe(8_990);
    expect(law.deadline).toMatchObject({ monotonicMs: 10_000, lostMs: 2_000 });
    // Sent before that, and after it.
    law.set(deadlineAfter({ monotonicMs: 1_000, wallMs: 101_000 }, 12_000));
    expect(law.deadline).toMatchObject({ monotonicMs: 11_000, lostMs: 2_000 });
    law.set(deadlineAfter({ monotonicMs: 1_020, wallMs: 103_020 }, 12_000));
    expect(law.deadline).toMatchObject({ monotonicMs: 13_020, lostMs: 0 });
  });
});

describe('nothing is lost that was not', () => {
  test('a confirmation that was sent after the suspension counts in full', async () => {
    const { clock, belief } = believing();
    await clock.advance(1_000);
    clock.suspend(6_000);
    // No look has come yet.
    const sentAt = readClocks(clock);
    await clock.advance(10);
    expect(belief.extend(sentAt)).toBe(true);
    expect(belief.remainingMs()).toBe(11_990);
  });

  test('a suspension counts once for a confirmation that was under way', async () => {
    const { clock, belief } = believing();
    const sentAt = readClocks(clock);
    await clock.advance(1_000);
    const later = readClocks(clock);
    clock.suspend(2_000);
    await clock.advance(10);
    for (const each of [sentAt, later]) expect(belief.extend(each)).toBe(true);
    for (let looks = 0; looks < 10; looks += 1) expect(belief.remainingMs()).toBe(9_990);
  });

  test('a reply that is overtaken by a later one does not shorten the belief', async () => {
    const { clock, belief } = believing();
    await clock.advance(1_000);
    const sentAt = readClocks(clock);
    await clock.advance(1_000);
    const later = readClocks(clock);
    for (const each of [later, sentAt]) expect(belief.extend(each)).toBe(true);
    expect(belief.remainingMs()).toBe(12_000);
  });

  test.each([
    [5, 0],
    [6, 6],
  ])('%i ms that the wall clock is ahead and then not any more: %i ms', (aheadMs, lostMs) => {
    const { clock, belief } = believing();
    clock.stepWall(aheadMs);
    expect(belief.remainingMs()).toBe(12_000 - aheadMs);
    clock.stepWall(-aheadMs);
    expect(belief.remainingMs()).toBe(12_000 - lostMs);
  });

  test('rounding does not add up, however often it is looked', () => {
    let nowMs = 0;
    const clock = {
      monotonicMs: () => nowMs,
      wallMs: () => Math.floor(1_000_000 + nowMs),
      setTimer: () => ({ cancel: () => {} }),
    };
    const belief = new Belief(clock, 12_000, readClocks(clock));
    for (nowMs = 0; nowMs < 10_000; nowMs += 0.37) belief.remainingMs();
    expect(belief.remainingMs()).toBeGreaterThan(12_000 - nowMs - 2);
  });
});

test('a leader whose confirmation is under way in a suspension does not forget it', async () => {
  const clock = new SimulatedClock();
  const store = new ScriptedStore();
  const election = createElection({ name: 'jobs', backend: store.backend(), clock });
  const told: (Deadline | undefined)[] = [];
  const term = await election.campaign({ onBelief: (deadline) => told.push(deadline) });
  let answer = () => {};
  const { onSwap } = store;
  store.onSwap = async (apply) => {
    const result = apply();
    await new Promise<void>((resolve) => {
      answer = resolve;
    });
    return result;
  };
  await clock.advance(3_000);
  clock.suspend(6_000);
  expect(term.isLeading()).toBe(true);
  clock.stepWall(-6_000);
  store.onSwap = onSwap;
  answer();
  await clock.advance(0);
  // The confirmation was sent 6 s ago.
  expect(term.remaining()).toBe(6_000);
  expect(told.at(-1)).toMatchObject({ lostMs: 6_000 });
  await clock.advance(20_000);
  expect(term.isLeading()).toBe(true);
  await closed(clock, term, election);
});

describe('a seat that is found to be won by reading back does not forget a suspension before that', () => {
  function writing() {
    const clock = new SimulatedClock();
    const store = new ScriptedStore();
    const { onSwap } = store;
    const answers = () => {
      store.onSwap = onSwap;
    };
    const election = createElection({ name: 'jobs', backend: store.backend(), clock });
    store.onSwap = (apply) => {
      apply();
      return lost();
    };
    const campaign = election.campaign();
    return { clock, store, election, campaign, answers };
  }

  test('when the answer to the write is lost', async () => {
    const { clock, store, election, campaign, answers } = writing();
    await clock.advance(1_000);
    clock.suspend(6_000);
    let answer = () => {};
    store.onRead = async (apply) => {
      await new Promise<void>((resolve) => {
        answer = resolve;
      });
      return apply();
    };
    // The write is given up after 2.5 s, and the seat is read.
    await clock.advance(2_000);
    clock.stepWall(-6_000);
    answer();
    await clock.advance(0);
    const term = await campaign;
    expect(term.token).toBe(1n);
    expect(term.remaining()).toBe(12_000 - 6_000 - 3_000);
    answers();
    await closed(clock, term, election);
  });

  test('when the store cannot be read for a while', async () => {
    const { clock, store, election, campaign, answers } = writing();
    const { onRead } = store;
    await clock.advance(1_000);
    store.onRead = () => Promise.reject(new Error('no answer'));
    await clock.advance(2_000);
    clock.suspend(3_000);
    await clock.advance(1_000);
    clock.stepWall(-3_000);
    store.onRead = onRead;
    await clock.advance(1_000);
    const term = await campaign;
    expect(term.token).toBe(1n);
    expect(term.remaining()).toBe(12_000 - 3_000 - 5_000);
    answers();
    await closed(clock, term, election);
  });
});

test('the belief is reported again when a look finds that it ends sooner', async () => {
  const clock = new SimulatedClock();
  const election = createElection({ name: 'jobs', backend: memory(), clock });
  const told: (Deadline | undefined)[] = [];
  const term = await election.campaign({ onBelief: (deadline) => told.push(deadline) });
  clock.suspend(2_000);
  expect(term.remaining()).toBe(10_000);
  clock.stepWall(-2_000);
  // The next confirmation is due after 3 s, and it looks before it asks.
  await clock.advance(2_999);
  expect(told).toHaveLength(1);
  await clock.advance(1);
  expect(told[1]).toMatchObject({ monotonicMs: told[0]!.monotonicMs - 2_000, lostMs: 2_000 });
  await closed(clock, term, election);
});
