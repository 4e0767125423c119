import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { onAbort } from '../src/on-abort.ts';

const listeners = (signal: AbortSignal) => getEventListeners(signal, 'abort').length;

describe('onAbort', () => {
  it('calls everybody once, in the order of the calls, with one listener on the signal', () => {
    const abort = new AbortController();
    const told: number[] = [];
    for (let i = 0; i < 20; i += 1) onAbort(abort.signal, () => told.push(i));
    expect(listeners(abort.signal)).toBe(1);
    abort.abort();
    abort.signal.dispatchEvent(new Event('abort'));
    expect(told).toEqual(Array.from({ length: 20 }, (_, i) => i));
  });

  it('leaves nothing on the signal when the last one has stopped', () => {
    const { signal } = new AbortController();
    const stops = [1, 2, 3].map(() => onAbort(signal, () => {}));
    stops[0]!();
    stops[0]!();
    stops[1]!();
    expect(listeners(signal)).toBe(1);
    stops[2]!();
    expect(listeners(signal)).toBe(0);
  });

  it('takes the same function twice, and stops one of the two', () => {
    const abort = new AbortController();
    let calls = 0;
    const callback = () => {
      calls += 1;
    };
    const stop = onAbort(abort.signal, callback);
    onAbort(abort.signal, callback);
    stop();
    abort.abort();
    expect(calls).toBe(1);
  });

  it('begins anew on a signal that everybody had left', () => {
    const abort = new AbortController();
    let calls = 0;
    const stop = onAbort(abort.signal, () => {});
    stop();
    onAbort(abort.signal, () => {
      calls += 1;
    });
    // An earlier stop does not remove a later callback.
    stop();
    expect(listeners(abort.signal)).toBe(1);
    abort.abort();
    expect(calls).toBe(1);
  });

  it('never calls at once, and nothing without a signal', () => {
    let calls = 0;
    const count = () => {
      calls += 1;
    };
    onAbort(AbortSignal.abort(), count)();
    onAbort(undefined, count)();
    expect(calls).toBe(0);
  });
});
