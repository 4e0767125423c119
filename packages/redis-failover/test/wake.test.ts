import type { Clock } from '@incumbent/zookeeper';
import { expect, test } from 'vitest';
import { Wake } from '../src/manager/wake.ts';

/** The test fires its timers. */
function clockOf(timers: Set<() => void>): Clock {
  return {
    monotonicMs: () => 0,
    wallMs: () => 0,
    setTimer: (callback) => {
      timers.add(callback);
      return { cancel: () => void timers.delete(callback) };
    },
  };
}

const going = new AbortController().signal;

test('a wait ends at a call, and a call while there is no waiter ends the next wait only', async () => {
  const timers = new Set<() => void>();
  const wake = new Wake(clockOf(timers));
  const first = wake.wait(1_000, going);
  expect(timers.size).toBe(1);
  wake.call();
  await first;
  wake.call();
  await wake.wait(1_000, going);
  expect(timers.size).toBe(0);
  const third = wake.wait(1_000, going);
  const [end] = timers;
  end?.();
  await third;
});

test('a wait ends when the signal aborts, and does not begin after that', async () => {
  const timers = new Set<() => void>();
  const wake = new Wake(clockOf(timers));
  const ending = new AbortController();
  const wait = wake.wait(1_000, ending.signal);
  ending.abort();
  await wait;
  void wake.wait(1_000, ending.signal);
  expect(timers.size).toBe(0);
});
