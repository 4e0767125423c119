import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { orStopped, stoppable } from '../src/iterate.ts';

const listeners = (signal: AbortSignal) => getEventListeners(signal, 'abort').length;
const never = new Promise<number>(() => {});

/** Gives 1, then nothing until it is stopped. Notes that its `finally` has run. */
function waiting(outer: AbortSignal | undefined) {
  const ended = { was: false };
  const iterator = stoppable<number>(outer, async function* (stop) {
    try {
      yield 1;
      const next = await orStopped(never, stop);
      if (next !== undefined) yield next;
    } finally {
      ended.was = true;
    }
  });
  return { iterator, ended };
}

describe('stoppable', () => {
  it('ends by return while a next waits', async () => {
    const { iterator, ended } = waiting(undefined);
    expect(await iterator.next()).toEqual({ done: false, value: 1 });
    const waits = iterator.next();
    expect(await iterator.return()).toMatchObject({ done: true });
    expect(await waits).toMatchObject({ done: true });
    expect(ended.was).toBe(true);
    expect(await iterator.next()).toMatchObject({ done: true });
  });

  it('ends when the signal from outside aborts, and leaves nothing on it', async () => {
    const abort = new AbortController();
    const { iterator, ended } = waiting(abort.signal);
    const values: number[] = [];
    for await (const value of iterator) {
      values.push(value);
      abort.abort();
    }
    expect(values).toEqual([1]);
    expect(ended.was).toBe(true);
    expect(listeners(abort.signal)).toBe(0);
  });

  it('gives nothing more than it would when the signal has aborted before', async () => {
    const iterator = stoppable<number>(AbortSignal.abort(), async function* (stop) {
      while (!stop.aborted) yield 1;
    });
    expect(await iterator.next()).toMatchObject({ done: true });
  });

  it.each(['return', 'throw', 'end'] as const)(
    'leaves nothing on the signal after %s',
    async (how) => {
      const { signal } = new AbortController();
      const iterator = stoppable<number>(signal, async function* () {
        yield 1;
      });
      await iterator.next();
      expect(listeners(signal)).toBe(1);
      if (how === 'return') await iterator.return();
      else if (how === 'end') await iterator.next();
      else await expect(iterator.throw?.(new Error('mine'))).rejects.toThrow('mine');
      expect(listeners(signal)).toBe(0);
    },
  );

  it('may be left out of a loop', async () => {
    const { iterator, ended } = waiting(undefined);
    for await (const value of iterator) {
      expect(value).toBe(1);
      break;
    }
    expect(ended.was).toBe(true);
  });
});

describe('orStopped', () => {
  it('gives the value or the error, and leaves nothing on the signal', async () => {
    const { signal } = new AbortController();
    expect(await orStopped(Promise.resolve(7), signal)).toBe(7);
    await expect(orStopped(Promise.reject(new Error('mine')), signal)).rejects.toThrow('mine');
    await new Promise((resolve) => setImmediate(resolve));
    expect(listeners(signal)).toBe(0);
  });

  it('gives undefined when it is stopped, before or while it waits', async () => {
    const abort = new AbortController();
    const waits = orStopped(never, abort.signal);
    abort.abort();
    expect(await waits).toBeUndefined();
    expect(await orStopped(Promise.resolve(7), abort.signal)).toBeUndefined();
  });
});
