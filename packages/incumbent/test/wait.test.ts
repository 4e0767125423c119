import { getEventListeners } from 'node:events';
import { Worker } from 'node:worker_threads';
import { describe, expect, test, vi } from 'vitest';
import type { Timer } from '../src/base/clock.ts';
import { systemClock } from '../src/base/clock.ts';
import { OperationTimeoutError } from '../src/base/errors.ts';
import { anyOf, bounded, Deferred, onAbort, sleep, Wakeup } from '../src/base/wait.ts';
import { SimulatedClock } from '../src/testing/index.ts';
import { collectWarnings } from './support/warnings.ts';

const never = new AbortController().signal;

/** Answers each message while this thread stands still. */
const echo = `
  const { parentPort } = require('node:worker_threads');
  parentPort.on('message', ({ received }) => {
    Atomics.store(received, 0, 1);
    parentPort.postMessage('answer');
    Atomics.store(received, 0, 2);
    Atomics.notify(received, 0);
  });`;

test('an answer that came while the process stood still counts, though the time is over', async () => {
  const server = new Worker(echo, { eval: true });
  try {
    const received = new Int32Array(new SharedArrayBuffer(4));
    const asked = bounded(systemClock, 'asking', 1, never, () => {
      const answer = new Promise((resolve) => server.once('message', resolve));
      server.postMessage({ received });
      return answer;
    });
    await Promise.resolve();
    // Until the answer is on its way, and for longer than the operation may take.
    while (Atomics.load(received, 0) < 2) Atomics.wait(received, 0, Atomics.load(received, 0), 100);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    expect(await asked).toBe('answer');
  } finally {
    await server.terminate();
  }
});

test('an operation that is not answered is given up', async () => {
  const pending = bounded(systemClock, 'asking', 1, never, () => new Promise(() => {}));
  await expect(pending).rejects.toThrow(OperationTimeoutError);
});

test('an answer that comes when the time is just over counts, and no timer is left', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'clearImmediate'] });
  try {
    for (const passedMs of [0, 1]) {
      let answer: (value: string) => void = () => {};
      let told: AbortSignal | undefined;
      const asked = bounded(systemClock, 'asking', 1, never, (operation) => {
        told = operation;
        return new Promise<string>((resolve) => {
          answer = resolve;
        });
      });
      await Promise.resolve();
      if (passedMs > 0) vi.advanceTimersToNextTimer();
      answer('answer');
      expect(await asked).toBe('answer');
      expect(vi.getTimerCount()).toBe(0);
      expect(told?.aborted).toBe(false);
    }
  } finally {
    vi.useRealTimers();
  }
});

/** A clock that notes which timers it was asked for. */
class NotingClock extends SimulatedClock {
  readonly asked: { readonly delayMs: number; readonly background: boolean | undefined }[] = [];
  /** How much too early its next timer fires. */
  earlyMs = 0;

  override setTimer(callback: () => void, delayMs: number, background?: boolean): Timer {
    this.asked.push({ delayMs, background });
    const { earlyMs } = this;
    this.earlyMs = 0;
    return super.setTimer(callback, Math.max(0, delayMs - earlyMs));
  }
}

/** The outcome of a promise so far. */
function watch(promise: Promise<unknown>): { outcome: unknown } {
  const seen: { outcome: unknown } = { outcome: 'pending' };
  promise.then(
    (value) => {
      seen.outcome = value;
    },
    (error) => {
      seen.outcome = error;
    },
  );
  return seen;
}

/** The waiting has left nothing behind. */
function expectNothingLeft(clock: SimulatedClock, signal: AbortSignal): void {
  expect(clock.pendingTimers).toBe(0);
  expect(getEventListeners(signal, 'abort')).toEqual([]);
}

describe('sleep', () => {
  const { signal } = new AbortController();

  test.each([0, 1, 250, 40 * 24 * 3_600_000])('takes %d ms, and leaves nothing', async (ms) => {
    const clock = new NotingClock();
    await clock.advance(1_234);
    const slept = watch(sleep(clock, ms, signal));
    if (ms > 0) {
      await clock.advance(ms / 2);
      await clock.advance(ms / 2 - 0.5);
      expect(slept.outcome).toBe('pending');
      await clock.advance(0.5);
    } else {
      await clock.advance(0);
    }
    expect(slept.outcome).toBeUndefined();
    expectNothingLeft(clock, signal);
  });

  test('is over at once for a time that has passed', async () => {
    const clock = new NotingClock();
    const slept = watch(sleep(clock, -5, signal));
    await clock.advance(0);
    expect(slept.outcome).toBeUndefined();
  });

  test('takes its time also where a timer fires early', async () => {
    const clock = new NotingClock();
    clock.earlyMs = 3;
    const slept = watch(sleep(clock, 10, signal));
    await clock.advance(9);
    expect(slept.outcome).toBe('pending');
    await clock.advance(1);
    expect(slept.outcome).toBeUndefined();
  });

  test('ends with the reason when it is aborted, and leaves nothing', async () => {
    const clock = new NotingClock();
    const stop = new AbortController();
    const slept = watch(sleep(clock, 10, stop.signal));
    const reason = new Error('enough');
    stop.abort(reason);
    await clock.advance(0);
    expect(slept.outcome).toBe(reason);
    expectNothingLeft(clock, stop.signal);
    await expect(sleep(clock, 10, stop.signal)).rejects.toBe(reason);
    expectNothingLeft(clock, stop.signal);
  });

  test('keeps the process alive unless it is told not to', () => {
    const clock = new NotingClock();
    void sleep(clock, 1, signal);
    void sleep(clock, 1, signal, true);
    expect(clock.asked.map(({ background }) => background)).toEqual([false, true]);
  });
});

describe('a bounded operation', () => {
  const { signal } = new AbortController();

  test('that is answered is over, and leaves nothing', async () => {
    const clock = new SimulatedClock();
    const answers: boolean[] = [];
    const ask = bounded(
      clock,
      'asking',
      10,
      signal,
      async () => 'answer',
      (isAnswered) => answers.push(isAnswered),
    );
    expect(await ask).toBe('answer');
    expect(answers).toEqual([true]);
    expectNothingLeft(clock, signal);
  });

  test('that fails has failed, and was not answered', async () => {
    const clock = new SimulatedClock();
    const answers: boolean[] = [];
    const failure = new Error('refused');
    const ask = bounded(
      clock,
      'asking',
      10,
      signal,
      () => Promise.reject(failure),
      (isAnswered) => answers.push(isAnswered),
    );
    await expect(ask).rejects.toBe(failure);
    expect(answers).toEqual([]);
    expectNothingLeft(clock, signal);
  });

  test('that throws before it has begun to wait has failed', async () => {
    const clock = new SimulatedClock();
    const failure = new Error('refused');
    const ask = bounded(clock, 'asking', 10, signal, () => {
      throw failure;
    });
    await expect(ask).rejects.toBe(failure);
    expectNothingLeft(clock, signal);
  });

  test('that is not answered is given up when its time is over, and is told so', async () => {
    const clock = new SimulatedClock();
    let told: AbortSignal | undefined;
    const ask = watch(
      bounded(clock, 'asking', 10, signal, (operation) => {
        told = operation;
        return new Promise(() => {});
      }),
    );
    await clock.advance(9);
    expect(ask.outcome).toBe('pending');
    expect(told?.aborted).toBe(false);
    await clock.advance(1);
    expect(ask.outcome).toBeInstanceOf(OperationTimeoutError);
    expect(told?.reason).toBe(ask.outcome);
    expectNothingLeft(clock, signal);
  });

  test('is given up when nobody wants it any more, and is told so', async () => {
    const clock = new SimulatedClock();
    const stop = new AbortController();
    let told: AbortSignal | undefined;
    const ask = watch(
      bounded(clock, 'asking', 10, stop.signal, (operation) => {
        told = operation;
        return new Promise(() => {});
      }),
    );
    await clock.advance(5);
    const reason = new Error('enough');
    stop.abort(reason);
    await clock.advance(0);
    expect(ask.outcome).toBe(reason);
    expect(told?.reason).toBe(reason);
    expectNothingLeft(clock, stop.signal);
  });

  test('is not begun when nobody wants it any more', async () => {
    const clock = new SimulatedClock();
    const stop = new AbortController();
    let begun = 0;
    const begin = () => {
      begun += 1;
      return Promise.resolve();
    };
    const reason = new Error('enough');
    const ask = watch(bounded(clock, 'asking', 10, stop.signal, begin));
    stop.abort(reason);
    const again = watch(bounded(clock, 'asking', 10, stop.signal, begin));
    await clock.advance(20);
    expect([ask.outcome, again.outcome]).toEqual([reason, reason]);
    expect(begun).toBe(0);
    expectNothingLeft(clock, stop.signal);
  });
});

describe('a wakeup', () => {
  test('ends a wait when it is raised, once, and leaves nothing', async () => {
    const clock = new SimulatedClock();
    const { signal } = new AbortController();
    const wakeup = new Wakeup();
    const first = watch(wakeup.wait(clock, 10, signal));
    await clock.advance(5);
    expect(first.outcome).toBe('pending');
    wakeup.raise();
    await clock.advance(0);
    expect(first.outcome).toBe(true);
    expectNothingLeft(clock, signal);
    const second = watch(wakeup.wait(clock, 10, signal));
    await clock.advance(9);
    expect(second.outcome).toBe('pending');
    await clock.advance(1);
    expect(second.outcome).toBe(false);
    expectNothingLeft(clock, signal);
  });

  test.each([0, -5])('that nobody raises ends a wait of %d ms at once', async (ms) => {
    const clock = new SimulatedClock();
    const waited = watch(new Wakeup().wait(clock, ms));
    await clock.advance(0);
    expect(waited.outcome).toBe(false);
  });

  test('ends a wait that is longer than a timer can be too early, and not at once', async () => {
    const clock = new NotingClock();
    void new Wakeup().wait(clock, 2 ** 40);
    expect(clock.asked).toEqual([{ delayMs: 2 ** 31 - 1, background: false }]);
  });

  test('that is raised while nobody waits ends the next wait, and only that', async () => {
    const clock = new SimulatedClock();
    const wakeup = new Wakeup();
    wakeup.raise();
    wakeup.raise();
    expect(await wakeup.wait(clock, 10)).toBe(true);
    const second = watch(wakeup.wait(clock, 10));
    await clock.advance(9);
    expect(second.outcome).toBe('pending');
  });

  test('that is raised after a wait was over ends the next one', async () => {
    const clock = new SimulatedClock();
    const wakeup = new Wakeup();
    const first = watch(wakeup.wait(clock, 10));
    await clock.advance(10);
    expect(first.outcome).toBe(false);
    wakeup.raise();
    expect(await wakeup.wait(clock, 10)).toBe(true);
  });

  test('that is cleared has not been raised', async () => {
    const clock = new SimulatedClock();
    const wakeup = new Wakeup();
    wakeup.raise();
    wakeup.clear();
    const waited = watch(wakeup.wait(clock, 10));
    await clock.advance(9);
    expect(waited.outcome).toBe('pending');
    await clock.advance(1);
    expect(waited.outcome).toBe(false);
  });

  test('ends a wait with the reason when it is aborted, and leaves nothing', async () => {
    const clock = new SimulatedClock();
    const stop = new AbortController();
    const wakeup = new Wakeup();
    const waited = watch(wakeup.wait(clock, 10, stop.signal));
    const reason = new Error('enough');
    stop.abort(reason);
    await clock.advance(0);
    expect(waited.outcome).toBe(reason);
    expectNothingLeft(clock, stop.signal);
    wakeup.raise();
    await expect(wakeup.wait(clock, 10, stop.signal)).rejects.toBe(reason);
    expectNothingLeft(clock, stop.signal);
  });

  test('keeps the process alive unless it is told not to', () => {
    const clock = new NotingClock();
    void new Wakeup().wait(clock, 1);
    void new Wakeup().wait(clock, 1, undefined, true);
    expect(clock.asked.map(({ background }) => background)).toEqual([false, true]);
  });
});

describe('a deferred', () => {
  test('has the value of its first resolution, before and after it was asked for', async () => {
    const asked = new Deferred<number>();
    const waiting = asked.promise;
    for (const deferred of [asked, new Deferred<number>()]) {
      deferred.resolve(1);
      deferred.resolve(2);
      expect(await deferred.promise).toBe(1);
    }
    expect(await waiting).toBe(1);
  });
});

describe('a listener to an abort', () => {
  test('is called once, at once if that was before, and not when it was taken away', () => {
    const stop = new AbortController();
    const heard: string[] = [];
    onAbort(stop.signal, () => heard.push('before'));
    onAbort(stop.signal, () => heard.push('never'))();
    expect(heard).toEqual([]);
    stop.abort();
    expect(heard).toEqual(['before']);
    expect(getEventListeners(stop.signal, 'abort')).toEqual([]);
    onAbort(stop.signal, () => heard.push('after'))();
    expect(heard).toEqual(['before', 'after']);
    onAbort(undefined, () => heard.push('never'))();
    expect(heard).toEqual(['before', 'after']);
  });
});

describe('either of two signals', () => {
  test.each([0, 1])('aborts with the reason of number %d', (which) => {
    const stops = [new AbortController(), new AbortController()] as const;
    const [either, end] = anyOf(stops[0].signal, stops[1].signal);
    const reason = new Error('enough');
    expect(either.aborted).toBe(false);
    stops[which]?.abort(reason);
    expect(either.reason).toBe(reason);
    end();
    for (const { signal } of stops) expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  test('leaves nothing on them when it is ended, and does not abort any more', () => {
    const [first, second] = [new AbortController(), new AbortController()];
    const [either, end] = anyOf(first.signal, second.signal);
    end();
    for (const { signal } of [first, second]) {
      expect(getEventListeners(signal, 'abort')).toEqual([]);
    }
    first.abort();
    expect(either.aborted).toBe(false);
  });

  test('may be made of one signal any number of times: Node is not to warn', async () => {
    const warnings = collectWarnings();
    const { signal } = new AbortController();
    for (let i = 0; i < 12; i += 1) anyOf(signal, new AbortController().signal);
    // Warnings are told in the next tick.
    await new Promise(setImmediate);
    expect(warnings).toEqual([]);
  });

  test('is the second one where there is no first', () => {
    const { signal } = new AbortController();
    const [either, end] = anyOf(undefined, signal);
    expect(either).toBe(signal);
    end();
  });
});
