import { describe, expect, it } from 'vitest';
import { Tally } from '../src/counters.ts';
import { encode, JuteReader } from '../src/protocol/jute.ts';
import { pathMessage } from '../src/protocol/messages.ts';
import { requests } from '../src/protocol/requests.ts';
import { PendingRequest } from '../src/session/pending-request.ts';
import { Pipeline } from '../src/session/pipeline.ts';

const limits = {
  maxQueuedRequests: 10,
  maxQueuedBytes: 10_000,
  maxInFlight: 4,
  maxRequestBytes: 1_000,
  requestTimeoutMs: 1_000,
};

function setup({ firstXid = 1, maxInFlight = limits.maxInFlight } = {}) {
  let nowMs = 0;
  const clock = {
    monotonicMs: () => nowMs,
    wallMs: () => nowMs,
    setTimer: () => ({ cancel() {} }),
  };
  const tally = new Tally();
  const pipeline = new Pipeline({ ...limits, maxInFlight }, clock, tally, () => {}, firstXid);
  const written: Buffer[] = [];
  const sink = {
    write(bytes: Uint8Array, done: () => void) {
      written.push(Buffer.from(bytes));
      done();
      return true;
    },
  };
  const settled: string[] = [];
  const call = (path: string, kind: 'sync' | 'delete' = 'sync') => {
    const request = new PendingRequest(
      requests[kind],
      path,
      { complete: () => path },
      (result) => settled.push(`${result}`),
      (error) => settled.push(`${path}: ${(error as { code: string }).code}`),
    );
    pipeline.submit(request, kind === 'sync' ? { path } : { path, version: -1 });
    return request;
  };
  const turn = () => new Promise<void>((resolve) => process.nextTick(resolve));
  /** The xids and paths of everything written. */
  const sent = () => {
    const all = Buffer.concat(written);
    const found: [number, string][] = [];
    for (let at = 0; at < all.length; at += 4 + all.readInt32BE(at)) {
      const reader = new JuteReader(all, at + 4, at + 4 + all.readInt32BE(at));
      const xid = reader.int32();
      reader.int32();
      found.push([xid, reader.ustring() ?? '']);
    }
    return found;
  };
  const answer = (xid: number, path: string) => {
    pipeline.checkNext(xid);
    pipeline.onReply(1n, 0, new JuteReader(encode(pathMessage, { path })), nowMs);
  };
  return {
    pipeline,
    sink,
    tally,
    call,
    turn,
    sent,
    answer,
    settled,
    written,
    advance: (ms: number) => {
      nowMs += ms;
    },
  };
}

describe('Pipeline', () => {
  it('wraps its numbers from 2^31 - 1 to 1, and never uses those that mean something else', async () => {
    const { pipeline, sink, call, turn, sent, answer, settled } = setup({
      firstXid: 2 ** 31 - 2,
    });
    pipeline.attach(sink);
    pipeline.open();
    for (const path of ['/a', '/b', '/c']) call(path);
    await turn();
    expect(sent()).toEqual([
      [2 ** 31 - 2, '/a'],
      [2 ** 31 - 1, '/b'],
      [1, '/c'],
    ]);
    answer(2 ** 31 - 2, '/a');
    answer(2 ** 31 - 1, '/b');
    answer(1, '/c');
    expect(settled).toEqual(['/a', '/b', '/c']);
  });

  it('sends all calls of a turn in one write, and reads the clocks before the first', async () => {
    const { pipeline, sink, call, turn, written, advance } = setup();
    pipeline.attach(sink);
    pipeline.open();
    const first = call('/a');
    advance(5);
    const second = call('/b');
    await turn();
    expect(written).toHaveLength(1);
    expect([first.sentAt.monotonicMs, second.sentAt.monotonicMs]).toEqual([0, 0]);
  });

  it('lets reads ride with the handshake up to the first write, and takes them back', async () => {
    const { pipeline, sink, call, turn, sent, settled } = setup();
    call('/read');
    call('/write', 'delete');
    call('/behind');
    pipeline.attach(sink);
    pipeline.rideAlong();
    await turn();
    expect(sent()).toEqual([[1, '/read']]);
    pipeline.detach(new Error('no answer'));
    expect(pipeline.queued).toBe(3);
    expect(settled).toEqual([]);
    pipeline.attach(sink);
    pipeline.open();
    await turn();
    expect(sent().map(([, path]) => path)).toEqual(['/read', '/read', '/write', '/behind']);
  });

  it('fails what an open connection leaves unanswered, and says what may have happened', async () => {
    const { pipeline, sink, call, turn, settled, tally } = setup({ maxInFlight: 2 });
    pipeline.attach(sink);
    pipeline.open();
    const read = call('/read');
    const write = call('/write', 'delete');
    call('/waits', 'delete');
    await turn();
    expect([read.maybeApplied, write.maybeApplied]).toEqual([false, true]);
    pipeline.detach(new Error('cut'));
    expect(settled).toEqual(['/read: CONNECTION_LOSS', '/write: CONNECTION_LOSS']);
    expect([pipeline.queued, pipeline.inFlight]).toEqual([1, 0]);
    expect(tally).toMatchObject({ requests: 3, failed: 2 });
  });

  it('keeps the place of a call that was given up, so that its reply finds it', async () => {
    const { pipeline, sink, call, turn, answer, settled } = setup();
    pipeline.attach(sink);
    pipeline.open();
    const first = call('/a');
    call('/b');
    await turn();
    pipeline.abandon(first, () => ({ code: 'ABORTED' }));
    answer(1, '/a');
    answer(2, '/b');
    expect(settled).toEqual(['/a: ABORTED', '/b']);
  });

  it('does not keep calls that were given up while nothing is sent', () => {
    const { pipeline, call } = setup();
    for (let i = 0; i < 5_000; i += 1) {
      pipeline.abandon(call(`/${i}`), () => ({ code: 'ABORTED' }));
    }
    expect(pipeline.standing).toBeLessThan(1_100);
    expect([pipeline.queued, pipeline.queuedBytes]).toEqual([0, 0]);
  });

  it('refuses more than its bounds, and a request that the server would not take', () => {
    const { call, settled, tally } = setup();
    for (let i = 0; i < 11; i += 1) call(`/${i}`);
    call(`/${'x'.repeat(2_000)}`);
    expect(settled).toEqual(['/10: QUEUE_FULL', `/${'x'.repeat(2_000)}: PACKET_TOO_LARGE`]);
    expect(tally).toMatchObject({ requests: 12, failed: 2 });
  });

  it('does not date a turn by a request that was not sent', async () => {
    const { pipeline, sink, call, turn, advance } = setup();
    pipeline.attach(sink);
    pipeline.open();
    call(`/${'x'.repeat(2_000)}`);
    advance(2_000);
    const request = call('/a');
    await turn();
    expect(request.sentAt.monotonicMs).toBe(2_000);
  });

  it('times out in order, sent or not', () => {
    const { pipeline, sink, call, settled, advance } = setup({ maxInFlight: 1 });
    pipeline.attach(sink);
    pipeline.open();
    call('/sent', 'delete');
    advance(100);
    call('/waits');
    expect(pipeline.expireOverdue(999)).toBe(1_000);
    expect(pipeline.expireOverdue(1_000)).toBe(1_100);
    pipeline.expireOverdue(1_100);
    expect(settled).toEqual(['/sent: REQUEST_TIMEOUT', '/waits: REQUEST_TIMEOUT']);
  });

  it('refuses a reply that is not due', async () => {
    const { pipeline, sink, call, turn } = setup();
    pipeline.attach(sink);
    pipeline.open();
    call('/a');
    await turn();
    expect(() => pipeline.checkNext(2)).toThrow(/request 2 came where one to 1 was due/);
  });
});
