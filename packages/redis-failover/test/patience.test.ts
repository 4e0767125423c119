import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '@incumbent/zookeeper';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { setPatience } from '../src/redis/patience.ts';

/** Blocks the process, as if it got no processor: no timer runs, no socket is read. */
function standStill(ms: number): void {
  const untilMs = performance.now() + ms;
  while (performance.now() < untilMs);
}

describe('patience', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  test('ends after the time that was waited for', async () => {
    vi.useFakeTimers();
    const giveUp = vi.fn();
    setPatience(500, giveUp);
    await vi.advanceTimersByTimeAsync(499);
    expect(giveUp).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(2);
    expect(giveUp).toHaveBeenCalledTimes(1);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(giveUp).toHaveBeenCalledTimes(1);
  });

  test('does not count the time in which this process stood still', async () => {
    const giveUp = vi.fn();
    const cancel = setPatience(300, giveUp);
    standStill(900);
    // Timers, then sockets, then this: data that arrived meanwhile are read first.
    await nextTurn();
    await nextTurn();
    expect(giveUp).not.toHaveBeenCalled();
    cancel();
  });

  test('by a clock that is given ends in its last timer: nothing has to be read before', () => {
    const due: [callback: () => void, ms: number][] = [];
    const clock: Clock = {
      monotonicMs: () => 0,
      wallMs: () => 0,
      setTimer(callback, ms) {
        due.push([callback, ms]);
        return { cancel: () => {} };
      },
    };
    const giveUp = vi.fn();
    setPatience(500, giveUp, clock);
    for (let step = 0; step < 5; step += 1) {
      expect(giveUp).not.toHaveBeenCalled();
      expect(due).toHaveLength(step + 1);
      expect(due[step]?.[1]).toBe(100);
      due[step]?.[0]();
    }
    expect(giveUp).toHaveBeenCalledTimes(1);
    expect(due).toHaveLength(5);
  });

  test('can be cancelled when what has arrived is being seen', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const giveUp = vi.fn();
    const cancel = setPatience(500, giveUp);
    vi.advanceTimersByTime(500);
    cancel();
    await nextTurn();
    await nextTurn();
    expect(giveUp).not.toHaveBeenCalled();
  });

  test('can be cancelled in each of its steps', async () => {
    vi.useFakeTimers();
    for (let step = 0; step < 5; step += 1) {
      const giveUp = vi.fn();
      const cancel = setPatience(500, giveUp);
      await vi.advanceTimersByTimeAsync(step * 100 + 50);
      cancel();
      await vi.advanceTimersByTimeAsync(5_000);
      expect(giveUp).not.toHaveBeenCalled();
    }
  });
});
