import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { requests } from '../src/protocol/requests.ts';
import { PendingRequest } from '../src/session/pending-request.ts';

function setup(kind: 'sync' | 'delete' = 'delete') {
  const settled: unknown[] = [];
  const failed: boolean[] = [];
  const request = new PendingRequest(
    {
      kind: requests[kind],
      complete: () => {},
      failed: (mayBeDone) => failed.push(mayBeDone),
    },
    '/a',
    (result) => settled.push(result),
    (error) => settled.push(error),
  );
  const send = () => {
    request.sentAt = { monotonicMs: 5, wallMs: 6 };
  };
  return { request, settled, failed, send };
}

describe('PendingRequest', () => {
  it('is settled once, whatever comes later', () => {
    for (const first of ['succeed', 'fail'] as const) {
      const { request, settled, failed } = setup();
      if (first === 'succeed') request.succeed('first');
      else request.fail(() => 'first');
      expect(request.settled).toBe(true);
      request.succeed('second');
      request.fail(() => 'third');
      expect(settled).toEqual(['first']);
      expect(failed).toHaveLength(first === 'fail' ? 1 : 0);
    }
  });

  it.each(['succeed', 'fail'] as const)(
    'leaves no timer and no listener when it ends: %s',
    (how) => {
      const { request } = setup();
      const { signal } = new AbortController();
      let cancelled = 0;
      const timer = {
        cancel: () => {
          cancelled += 1;
        },
      };
      request.bind(signal, timer, () => {});
      expect(getEventListeners(signal, 'abort')).toHaveLength(1);
      if (how === 'succeed') request.succeed(1);
      else request.fail(() => 1);
      expect(getEventListeners(signal, 'abort')).toHaveLength(0);
      expect(cancelled).toBe(1);
    },
  );

  it('is given up when its signal aborts', () => {
    const { request } = setup();
    const stop = new AbortController();
    let abandoned = 0;
    request.bind(stop.signal, undefined, () => {
      abandoned += 1;
    });
    stop.abort();
    expect(abandoned).toBe(1);
  });

  it('may be done if it was sent, and no answer says otherwise', () => {
    for (const [sent, refused, mayBeDone] of [
      [false, undefined, false],
      [true, undefined, true],
      [true, false, true],
      [true, true, false],
    ] as const) {
      const { request, failed, send } = setup();
      if (sent) send();
      request.fail(() => 'error', refused);
      expect(failed).toEqual([mayBeDone]);
    }
  });

  it('may be applied if it is a write that was sent, and was not taken back', () => {
    const { request, send } = setup('delete');
    expect([request.wasSent, request.maybeApplied]).toEqual([false, false]);
    send();
    expect([request.wasSent, request.maybeApplied]).toEqual([true, true]);
    request.takeBack();
    expect([request.wasSent, request.maybeApplied]).toEqual([false, false]);
    const read = setup('sync');
    read.send();
    expect([read.request.wasSent, read.request.maybeApplied]).toEqual([true, false]);
    expect(request.context).toEqual({ path: '/a', operation: 'delete' });
  });
});
