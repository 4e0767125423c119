/** The limits of one call: its time, its caller's signal, the life of the client. */
import { getEventListeners } from 'node:events';
import { describe, expect, test, vi } from 'vitest';
import { Bounds, TimeUp } from '../../src/client/bound.ts';
import { ChangeTeller } from '../../src/client/change-teller.ts';
import type { Picture } from '../../src/client/view.ts';
import { atRest, HandClock, watch } from '../support/hand-clock.ts';

const reason = new Error('enough');

function begin({ ms = 100, signal }: { ms?: number; signal?: AbortSignal } = {}) {
  const clock = new HandClock();
  const bounds = new Bounds(clock);
  return { clock, bounds, bound: bounds.begin(ms, signal) };
}

describe('a call is over', () => {
  test('when its time is', async () => {
    const { clock, bound } = begin();
    await clock.pass(99);
    expect([bound.isOver, bound.reason]).toEqual([false, undefined]);
    await clock.pass(1);
    expect([bound.isOver, bound.reason]).toEqual([true, expect.any(TimeUp)]);
  });

  test('when its signal aborts, meanwhile or before', () => {
    const controller = new AbortController();
    const { clock, bound } = begin({ signal: controller.signal });
    controller.abort(reason);
    expect([bound.isOver, bound.reason]).toEqual([true, reason]);
    expect(clock.timers).toBe(0);
    const late = begin({ signal: controller.signal });
    expect([late.bound.isOver, late.bound.reason]).toEqual([true, reason]);
    expect(late.clock.timers).toBe(0);
  });

  test('when the client is closed, also if it begins later; the first reason stays', () => {
    const { bounds, bound } = begin();
    bounds.close(reason);
    bounds.close(new Error('again'));
    expect(bound.reason).toBe(reason);
    expect(bounds.begin(100, undefined).reason).toBe(reason);
  });

  test('once: what comes afterwards changes nothing', async () => {
    const controller = new AbortController();
    const { clock, bound, bounds } = begin({ signal: controller.signal });
    const listener = vi.fn();
    bound.onOver(listener);
    bound.end(reason);
    bound.end(new Error('again'));
    controller.abort(new Error('again'));
    bounds.close(new Error('again'));
    await clock.pass(100);
    expect(bound.reason).toBe(reason);
    expect(listener).toHaveBeenCalledTimes(1);
  });

  test('or done with: nothing is left of it, and a close does not end it', async () => {
    const { signal } = new AbortController();
    const { clock, bound, bounds } = begin({ signal });
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    bound[Symbol.dispose]();
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
    expect(clock.timers).toBe(0);
    bounds.close(reason);
    expect(bound.isOver).toBe(false);
  });
});

describe('a waiter', () => {
  test('is told in the order of the waiters, unless it was removed', () => {
    const { bound } = begin();
    const told: string[] = [];
    bound.onOver(() => told.push('first'));
    const forget = bound.onOver(() => told.push('second'));
    bound.onOver(() => told.push('third'));
    forget();
    bound.end(reason);
    expect(told).toEqual(['first', 'third']);
  });

  test('has what the promise gives', async () => {
    const { bound } = begin();
    expect(await bound.race(Promise.resolve(1))).toBe(1);
    await expect(bound.race(Promise.reject(reason))).rejects.toBe(reason);
  });

  test('has the reason when it is over first, before or meanwhile', async () => {
    const { bound } = begin();
    const meanwhile = watch(bound.race(new Promise(() => {})));
    bound.end(reason);
    const after = watch(bound.race(Promise.resolve(1)));
    await atRest();
    expect(meanwhile.now).toEqual({ state: 'rejected', error: reason });
    expect(after.now).toEqual({ state: 'rejected', error: reason });
    // Its later result is dropped.
    await expect(bound.race(Promise.reject(new Error('late')))).rejects.toBe(reason);
  });

  test('is forgotten when the promise has come to something', async () => {
    const { bound } = begin();
    const forgets = vi.fn();
    const { onOver } = bound;
    bound.onOver = (listener) => {
      const forget = onOver.call(bound, listener);
      return () => {
        forgets();
        return forget();
      };
    };
    await bound.race(Promise.resolve(1));
    expect(forgets).toHaveBeenCalledTimes(1);
    await bound.race(Promise.reject(reason)).catch(() => {});
    expect(forgets).toHaveBeenCalledTimes(2);
  });

  test('may have a signal: one for all, made when it is asked for', () => {
    const { bound } = begin();
    const { signal } = bound;
    expect(bound.signal).toBe(signal);
    expect(signal.aborted).toBe(false);
    bound.end(reason);
    expect([signal.aborted, signal.reason]).toEqual([true, reason]);
    const late = begin().bound;
    late.end(reason);
    expect([late.signal.aborted, late.signal.reason]).toEqual([true, reason]);
  });
});

describe('a change is told', () => {
  function teller() {
    const picture = { primary: 'a:1' as string | undefined, replicas: [], unavailable: [] };
    const all = { ...picture, term: 1 };
    const changes = new ChangeTeller(() => ({ ...all }));
    const told: (string | undefined)[] = [];
    const listener = ({ primary }: Picture) => told.push(primary);
    return { all, changes, told, listener };
  }

  test('once for what comes in one turn: the latest', async () => {
    const { all, changes, told, listener } = teller();
    changes.add(listener);
    all.primary = undefined;
    changes.look();
    all.primary = 'b:2';
    changes.look();
    expect(told).toEqual([]);
    await atRest();
    expect(told).toEqual(['b:2']);
    all.primary = 'c:3';
    changes.look();
    await atRest();
    expect(told).toEqual(['b:2', 'c:3']);
  });

  test('only where something is another than before', async () => {
    const { all, changes, told, listener } = teller();
    changes.add(listener);
    changes.look();
    await atRest();
    all.primary = 'b:2';
    changes.look();
    await atRest();
    changes.look();
    await atRest();
    expect(told).toEqual(['b:2']);
  });

  test('to each listener, also twice the same function, until it is taken away', async () => {
    const { all, changes, told, listener } = teller();
    const stop = changes.add(listener);
    changes.add(listener);
    all.primary = 'b:2';
    changes.look();
    await atRest();
    stop();
    all.primary = 'c:3';
    changes.look();
    await atRest();
    expect(told).toEqual(['b:2', 'b:2', 'c:3']);
  });

  test('to the others, whatever one of them throws or rejects with', async () => {
    const { all, changes, told, listener } = teller();
    changes.add(() => {
      throw reason;
    });
    changes.add(() => Promise.reject(reason));
    changes.add(listener);
    all.primary = 'b:2';
    changes.look();
    await atRest();
    expect(told).toEqual(['b:2']);
  });

  test('to no listener once it is closed, not even what is on its way', async () => {
    const { all, changes, told, listener } = teller();
    changes.add(listener);
    all.primary = 'b:2';
    changes.look();
    changes.close();
    await atRest();
    changes.look();
    await atRest();
    expect(told).toEqual([]);
  });
});
