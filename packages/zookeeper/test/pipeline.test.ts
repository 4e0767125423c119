import { describe, expect, it } from 'vitest';
import { Tally } from '../src/counters.ts';
import { encode, JuteReader } from '../src/protocol/jute.ts';
import { pathMessage } from '../src/protocol/messages.ts';
import { requests } from '../src/protocol/requests.ts';
import type { ReplyHandlers } from '../src/session/pending-request.ts';
import { PendingRequest } from '../src/session/pending-request.ts';
import type { PipelineLimits } from '../src/session/pipeline.ts';
import { Pipeline } from '../src/session/pipeline.ts';

const limits = {
  maxQueuedRequests: 10,
  maxQueuedBytes: 10_000,
  maxInFlight: 4,
  maxRequestBytes: 1_000,
  requestTimeoutMs: 1_000,
};

function setup({
  firstXid,
  ...given
}: Partial<PipelineLimits> & { firstXid?: number | undefined } = {}) {
  let nowMs = 0;
  const clock = {
    monotonicMs: () => nowMs,
    wallMs: () => nowMs,
    setTimer: () => ({ cancel() {} }),
  };
  const tally = new Tally();
  const deadlines: number[] = [];
  const pipeline = new Pipeline({ ...limits, ...given, clock, firstXid }, tally, (deadlineMs) =>
    deadlines.push(deadlineMs),
  );
  const written: Buffer[] = [];
  const sink = {
    takesMore: true,
    write(bytes: Uint8Array, done: () => void) {
      written.push(Buffer.from(bytes));
      done();
      return sink.takesMore;
    },
  };
  const settled: string[] = [];
  const errors: unknown[] = [];
  const make = (
    path: string,
    kind: 'sync' | 'delete' = 'sync',
    // biome-ignore lint/suspicious/noExplicitAny: as in PendingRequest
    handlers: ReplyHandlers<any, unknown> = { complete: () => path },
  ) =>
    new PendingRequest(
      { kind: requests[kind], ...handlers },
      path,
      (result) => settled.push(`${result}`),
      (error) => {
        errors.push(error);
        settled.push(`${path}: ${(error as { code: string }).code}`);
      },
    );
  const bodyOf = (path: string, kind: 'sync' | 'delete' = 'sync') =>
    kind === 'sync' ? { path } : { path, version: -1 };
  const submit = (request: PendingRequest, kind: 'sync' | 'delete' = 'sync') => {
    pipeline.submit(request, bodyOf(request.path as string, kind));
    return request;
  };
  const call = (path: string, kind: 'sync' | 'delete' = 'sync') => submit(make(path, kind), kind);
  const turn = () => new Promise<void>((resolve) => process.nextTick(resolve));
  /** The xids and paths of everything that was written. */
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
  const answer = (xid: number, path: string, error = 0) => {
    pipeline.checkNext(xid);
    const body = error === 0 ? encode(pathMessage, { path }) : new Uint8Array(0);
    pipeline.onReply(1n, error, new JuteReader(body), nowMs);
  };
  const open = () => {
    pipeline.attach(sink);
    pipeline.open();
  };
  return {
    pipeline,
    sink,
    tally,
    deadlines,
    make,
    submit,
    call,
    open,
    errors,
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
    expect(sent()).toEqual([
      [1, '/read'],
      [2, '/read'],
      [3, '/write'],
      [4, '/behind'],
    ]);
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

  it.each([0, 10])(
    'keeps few calls that were given up while nothing is sent, and all %d that wait',
    async (waiting) => {
      const { pipeline, call, open, turn, sent } = setup({ maxQueuedRequests: 20 });
      for (let i = 0; i < waiting; i += 1) call(`/waits-${i}`);
      const bytes = pipeline.queuedBytes;
      let most = 0;
      for (let i = 0; i < 5_000; i += 1) {
        pipeline.abandon(call(`/${i}`), () => ({ code: 'ABORTED' }));
        most = Math.max(most, pipeline.queueLength);
      }
      // A thousand, and twice those that wait. The next call cleans the queue.
      expect(most).toBe(1_001 + 2 * waiting);
      expect([pipeline.queued, pipeline.queuedBytes]).toEqual([waiting, bytes]);
      open();
      await turn();
      expect(sent().every(([, path]) => path.startsWith('/waits-'))).toBe(true);
      expect(sent()).toHaveLength(Math.min(waiting, limits.maxInFlight));
    },
  );

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

  it('tells of every deadline that the common bound makes, and of no other', async () => {
    const { open, make, submit, call, turn, advance, deadlines } = setup();
    advance(50);
    const waits = call('/waits');
    open();
    await turn();
    advance(50);
    const sent = call('/sent');
    const own = make('/own');
    Object.assign(own, { hasOwnTimer: true, timeoutMs: 7 });
    submit(own);
    expect(deadlines).toEqual([1_050, 1_100]);
    expect([waits.timeoutMs, sent.timeoutMs, own.timeoutMs]).toEqual([1_000, 1_000, 7]);
    expect(own.deadlineMs).toBe(Number.POSITIVE_INFINITY);
  });

  it('passes by what has ended or has a timer of its own when it looks for what is due', () => {
    const { pipeline, make, submit, call, advance, settled } = setup();
    const own = make('/own');
    own.hasOwnTimer = true;
    submit(own);
    advance(-10);
    const ended = call('/ended');
    advance(10);
    call('/first');
    advance(300);
    call('/second');
    pipeline.abandon(ended, () => ({ code: 'ABORTED' }));
    expect(pipeline.expireOverdue(0)).toBe(1_000);
    expect(pipeline.expireOverdue(1_200)).toBe(1_300);
    expect(pipeline.expireOverdue(1_300)).toBe(Number.POSITIVE_INFINITY);
    expect(settled).toEqual([
      '/ended: ABORTED',
      '/first: REQUEST_TIMEOUT',
      '/second: REQUEST_TIMEOUT',
    ]);
  });

  it('looks at the bound of what was sent and of what waits', async () => {
    const { pipeline, open, call, advance, answer } = setup({ maxInFlight: 1 });
    open();
    call('/sent');
    advance(100);
    call('/waits');
    advance(100);
    answer(1, '/sent');
    call('/behind');
    // The waiting request was sent. Its time still counts from the call.
    expect(pipeline.expireOverdue(200)).toBe(1_100);
    expect(pipeline.expireOverdue(1_100)).toBe(1_200);
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

describe('what waits', () => {
  it('is told by its number and size, from when it is called until it is sent', async () => {
    const { pipeline, open, call, turn, sent } = setup({ maxInFlight: 1 });
    expect([pipeline.queued, pipeline.queuedBytes, pipeline.queueLength]).toEqual([0, 0, 0]);
    call('/a');
    call('/bc');
    // Length, number, opcode, and a path behind its length.
    expect([pipeline.queued, pipeline.queuedBytes, pipeline.queueLength]).toEqual([2, 18 + 19, 2]);
    open();
    expect([pipeline.queued, pipeline.queuedBytes, pipeline.inFlight]).toEqual([1, 19, 1]);
    await turn();
    expect(sent()).toEqual([[1, '/a']]);
  });

  it('waits without a connection, though one was said to be open', async () => {
    const { pipeline, sink, call, turn, sent } = setup();
    pipeline.open();
    call('/a');
    expect([pipeline.queued, pipeline.inFlight]).toEqual([1, 0]);
    pipeline.attach(sink);
    await turn();
    expect(sent()).toEqual([]);
    pipeline.open();
    await turn();
    expect(sent()).toEqual([[1, '/a']]);
    pipeline.detach(new Error('cut'));
    pipeline.open();
    call('/b');
    await turn();
    expect(pipeline.queued).toBe(1);
    expect(sent()).toEqual([[1, '/a']]);
  });

  it('goes before what is called while a reply is being handled', async () => {
    const { open, make, submit, call, turn, answer, sent } = setup({ maxInFlight: 1 });
    open();
    submit(make('/a', 'sync', { complete: () => call('/inside') }));
    call('/waits');
    answer(1, '/a');
    await turn();
    answer(2, '/waits');
    await turn();
    expect(sent().map(([, path]) => path)).toEqual(['/a', '/waits', '/inside']);
  });

  it('keeps its bytes only until it is sent for good, or given up', () => {
    const { pipeline, sink, call } = setup();
    const [rides, writes, ends] = [call('/a'), call('/b', 'delete'), call('/c')];
    pipeline.attach(sink);
    pipeline.rideAlong();
    pipeline.abandon(ends!, () => ({ code: 'ABORTED' }));
    // A request that rides along may have to be sent again.
    expect([rides, writes, ends].map((one) => one!.frame?.length)).toEqual([18, 22, undefined]);
    pipeline.open();
    expect(writes!.frame).toBeUndefined();
  });

  it('keeps its place: a later call does not go by, also when it could be sent', async () => {
    const { pipeline, sink, open, call, turn, sent, answer } = setup({ maxInFlight: 2 });
    open();
    for (const path of ['/a', '/b', '/c']) call(path);
    await turn();
    answer(1, '/a');
    call('/d');
    answer(2, '/b');
    await turn();
    expect(sent().map(([, path]) => path)).toEqual(['/a', '/b', '/c', '/d']);
    // Also behind a request that cannot be sent because the connection takes no more.
    sink.takesMore = false;
    answer(3, '/c');
    call('/e');
    await turn();
    call('/f');
    sink.takesMore = true;
    pipeline.resume();
    call('/g');
    await turn();
    answer(4, '/d');
    answer(5, '/e');
    await turn();
    expect(sent().map(([, path]) => path)).toEqual(['/a', '/b', '/c', '/d', '/e', '/f', '/g']);
  });

  it('is never more in flight than it may be', async () => {
    const { pipeline, open, call, answer, turn, sent } = setup({ maxInFlight: 3 });
    call('/0');
    call('/1');
    open();
    for (let i = 2; i < 9; i += 1) call(`/${i}`);
    expect([pipeline.inFlight, pipeline.queued]).toEqual([3, 6]);
    answer(1, '/0');
    expect([pipeline.inFlight, pipeline.queued]).toEqual([3, 5]);
    await turn();
    expect(sent()).toHaveLength(4);
  });

  it('is taken out when it is given up, and is not sent', async () => {
    const { pipeline, open, call, turn, sent, settled, tally } = setup();
    const first = call('/a');
    call('/b');
    pipeline.abandon(first, () => ({ code: 'ABORTED' }));
    pipeline.abandon(first, () => ({ code: 'AGAIN' }));
    expect([pipeline.queued, pipeline.queuedBytes]).toEqual([1, 18]);
    open();
    await turn();
    expect(sent()).toEqual([[1, '/b']]);
    expect(settled).toEqual(['/a: ABORTED']);
    expect(tally.failed).toBe(1);
  });

  it('is not counted when it was given up while it rode along with the handshake', async () => {
    const { pipeline, sink, call, turn, settled, tally } = setup();
    const read = call('/read');
    call('/write', 'delete');
    pipeline.attach(sink);
    pipeline.rideAlong();
    const waiting = [pipeline.queued, pipeline.queuedBytes];
    pipeline.abandon(read, () => ({ code: 'ABORTED' }));
    expect([pipeline.queued, pipeline.queuedBytes]).toEqual(waiting);
    await turn();
    pipeline.detach(new Error('no answer'));
    expect([pipeline.queued, pipeline.queuedBytes]).toEqual(waiting);
    expect(settled).toEqual(['/read: ABORTED']);
    expect(tally.failed).toBe(1);
  });

  it('may take up its bounds to the last, and nothing beyond', () => {
    // A sync of '/x' takes 18 bytes, 14 behind its length.
    for (const [given, fits] of [
      [{ maxQueuedRequests: 3 }, 3],
      [{ maxQueuedBytes: 54 }, 3],
      [{ maxQueuedBytes: 53 }, 2],
      [{ maxRequestBytes: 14 }, 4],
      [{ maxRequestBytes: 13 }, 0],
    ] as const) {
      const { pipeline, call } = setup(given);
      for (let i = 0; i < 4; i += 1) call(`/${i}`);
      expect([given, pipeline.queued]).toEqual([given, fits]);
    }
  });

  it('refuses nothing that cleans up', () => {
    const { pipeline, make, submit, call, errors } = setup({ maxQueuedRequests: 1 });
    call('/a');
    const removal = make('/b');
    removal.cleansUp = true;
    submit(removal);
    call('/c');
    expect(pipeline.queued).toBe(2);
    expect(errors).toMatchObject([{ code: 'QUEUE_FULL', path: '/c', operation: 'sync' }]);
    expect((errors[0] as Error).message).toMatch(/\b2\b.*\b36\b/);
  });
});

describe('a connection', () => {
  it('that takes no more is given no more until it does', async () => {
    const { pipeline, sink, open, call, turn, sent } = setup();
    open();
    sink.takesMore = false;
    call('/a');
    await turn();
    call('/b');
    call('/c');
    await turn();
    expect(sent()).toEqual([[1, '/a']]);
    sink.takesMore = true;
    pipeline.resume();
    call('/d');
    await turn();
    expect(sent().map(([, path]) => path)).toEqual(['/a', '/b', '/c', '/d']);
  });

  it('that takes more again is given no write before the handshake is over', async () => {
    const { pipeline, sink, call, turn, sent } = setup();
    call('/write', 'delete');
    pipeline.attach(sink);
    pipeline.resume();
    await turn();
    expect(sent()).toEqual([]);
  });

  it('is given what waits only when the handshake is over, whatever is answered before', async () => {
    const { pipeline, sink, make, call, turn, sent, answer, tally, settled } = setup();
    call('/write', 'delete');
    pipeline.attach(sink);
    pipeline.sendInHandshake(make('/sasl'), { path: '/sasl' });
    await turn();
    answer(1, '/sasl');
    await turn();
    expect(sent()).toEqual([[1, '/sasl']]);
    expect(settled).toEqual(['/sasl']);
    expect(tally).toMatchObject({ requests: 2, succeeded: 1, replies: 1 });
    pipeline.open();
    await turn();
    expect(sent().map(([, path]) => path)).toEqual(['/sasl', '/write']);
  });

  it('that ends leaves nothing to the next: no output, no date, and no leave to send', async () => {
    const { pipeline, sink, open, call, turn, sent, advance } = setup();
    open();
    sink.takesMore = false;
    call('/a');
    await turn();
    sink.takesMore = true;
    pipeline.resume();
    // In the output of this turn, and then the connection is gone.
    call('/b');
    pipeline.detach(new Error('cut'));
    advance(700);
    call('/c');
    expect(pipeline.queued).toBe(1);
    pipeline.attach(sink);
    const { monotonicMs } = pipeline.writeHandshake((writer) => {
      for (const value of [12, 77, 0, -1]) writer.int32(value);
    });
    expect(monotonicMs).toBe(700);
    await turn();
    expect(sent().map(([xid]) => xid)).toEqual([1, 77]);
    expect(pipeline.queued).toBe(1);
    pipeline.open();
    await turn();
    expect(sent().slice(2)).toEqual([[3, '/c']]);
  });

  it('that ended while it took no more holds up nothing on the next', async () => {
    const { pipeline, sink, open, call, turn, sent } = setup();
    open();
    sink.takesMore = false;
    call('/a');
    await turn();
    pipeline.detach(new Error('cut'));
    sink.takesMore = true;
    open();
    call('/b');
    await turn();
    expect(sent().map(([, path]) => path)).toEqual(['/a', '/b']);
  });

  it('fails what rode along, once it was open: it may have been answered for others', async () => {
    const { pipeline, sink, call, settled, errors } = setup();
    const cause = new Error('cut');
    call('/read');
    pipeline.attach(sink);
    pipeline.rideAlong();
    pipeline.open();
    call('/write', 'delete');
    pipeline.detach(cause);
    expect(settled).toEqual(['/read: CONNECTION_LOSS', '/write: CONNECTION_LOSS']);
    expect(errors).toMatchObject([
      { path: '/read', operation: 'sync', maybeApplied: false, cause },
      { path: '/write', operation: 'delete', maybeApplied: true, cause },
    ]);
    expect(pipeline.queued).toBe(0);
  });

  it('counts what it takes back as it did before', async () => {
    const { pipeline, sink, call } = setup();
    call('/a');
    call('/b');
    const before = [pipeline.queued, pipeline.queuedBytes];
    pipeline.attach(sink);
    pipeline.rideAlong();
    expect([pipeline.queued, pipeline.queuedBytes]).toEqual([0, 0]);
    pipeline.detach(new Error('no answer'));
    expect([pipeline.queued, pipeline.queuedBytes]).toEqual(before);
  });
});

describe('the output of a turn', () => {
  it('is one write, whatever asks for it in between', async () => {
    const { open, call, written, turn } = setup();
    open();
    call('/a');
    process.nextTick(() => call('/c'));
    call('/b');
    process.nextTick(() => call('/d'));
    await turn();
    await turn();
    expect(written).toHaveLength(2);
  });

  it('has nothing of a call that could not be encoded, or is too large', async () => {
    const { pipeline, make, open, call, turn, sent, errors, tally } = setup();
    const wrong = () => pipeline.submit(make('/wrong'), { path: 5 });
    wrong();
    open();
    call('/a');
    wrong();
    call(`/${'x'.repeat(2_000)}`);
    call('/b');
    await turn();
    expect(sent()).toEqual([
      [1, '/a'],
      [2, '/b'],
    ]);
    expect(errors).toHaveLength(3);
    expect(errors[0]).toBeInstanceOf(TypeError);
    expect(errors[1]).toBeInstanceOf(TypeError);
    expect(errors[2]).toMatchObject({ code: 'PACKET_TOO_LARGE', operation: 'sync' });
    expect((errors[2] as Error).message).toMatch(/\b2013\b.*\b1000\b/);
    expect(tally).toMatchObject({ requests: 5, failed: 3 });
    expect(pipeline.inFlight).toBe(2);
  });

  it.each([
    [14, 3],
    [13, 0],
  ])('has calls of up to the %d bytes that one may have', async (maxRequestBytes, fits) => {
    const { open, call, turn, sent } = setup({ maxRequestBytes });
    open();
    for (const path of ['/a', '/b', '/c']) call(path);
    await turn();
    expect(sent()).toHaveLength(fits);
  });

  it('is sent, and dated by its first call, also where the last one has failed', async () => {
    const { pipeline, make, open, call, turn, sent, advance } = setup();
    open();
    call('/a');
    advance(5);
    pipeline.submit(make('/wrong'), { path: 5 });
    const next = call('/b');
    expect(next.sentAt.monotonicMs).toBe(0);
    await turn();
    call('/c');
    pipeline.submit(make('/wrong'), { path: 5 });
    await turn();
    expect(sent().map(([, path]) => path)).toEqual(['/a', '/b', '/c']);
  });

  it('is nothing where nothing was written', async () => {
    const { pipeline, sink, open, call, turn, written, advance } = setup();
    const { lastSentMs } = pipeline;
    pipeline.attach(sink);
    pipeline.writeHandshake(() => {});
    await turn();
    expect(written).toEqual([]);
    expect(pipeline.lastSentMs).toBe(lastSentMs);
    advance(5);
    open();
    const request = call('/a');
    await turn();
    expect(request.sentAt.monotonicMs).toBe(5);
    expect(pipeline.lastSentMs).toBe(5);
  });

  it('is counted', async () => {
    const { open, call, turn, tally } = setup();
    open();
    call('/a');
    call('/bc');
    await turn();
    expect(tally.bytesSent).toBe(18 + 19);
    call('/d');
    await turn();
    expect(tally.bytesSent).toBe(18 + 19 + 18);
  });

  const most = 256 * 1024;
  const large = { maxRequestBytes: 2 * most, maxQueuedBytes: 10 * most };
  /** The path of a sync that takes so many bytes. */
  const pathOf = (bytes: number) => `/${'x'.repeat(bytes - 17)}`;

  it.each([
    ['called now', false],
    ['that waited', true],
  ])('leaves at once where it has grown above 256 KiB: calls %s', async (_, first) => {
    const { pipeline, sink, call, turn, written } = setup(large);
    const calls = (...sizes: number[]) => {
      if (!first) pipeline.open();
      for (const size of sizes) call(pathOf(size));
      if (first) pipeline.open();
      const sizesNow = written.splice(0).map(({ length }) => length);
      pipeline.detach(new Error('cut'));
      pipeline.attach(sink);
      return sizesNow;
    };
    pipeline.attach(sink);
    expect(calls(most)).toEqual([]);
    expect(calls(most + 1)).toEqual([most + 1]);
    expect(calls(most - 18, 18)).toEqual([]);
    expect(calls(most - 18, 19, 100)).toEqual([most + 1]);
    await turn();
  });

  it('stops where the connection takes no more', async () => {
    const { sink, open, call, written } = setup(large);
    for (let i = 0; i < 3; i += 1) call(pathOf(most + 1));
    sink.takesMore = false;
    open();
    expect(written).toHaveLength(1);
  });

  it('is not written over before the connection has done with it', async () => {
    const { pipeline, call, turn } = setup();
    const taken: [bytes: Uint8Array, done: () => void][] = [];
    pipeline.attach({
      write(bytes, done) {
        taken.push([bytes, done]);
        return true;
      },
    });
    pipeline.open();
    call('/first');
    await turn();
    const copy = Buffer.from(taken[0]![0]);
    call('/other');
    await turn();
    expect(copy.equals(taken[0]![0])).toBe(true);
    expect(taken[1]![0]).toHaveLength(copy.length);
    taken[0]![1]();
    call('/third');
    await turn();
    expect(Buffer.from(taken[2]![0]).subarray(16).toString()).toBe('/third');
  });

  it('uses memory again, that of four buffers, none of them above 256 KiB', async () => {
    const { pipeline, call, turn, answer } = setup(large);
    const taken: [memory: unknown, done: () => void][] = [];
    pipeline.attach({
      write(bytes, done) {
        taken.push([bytes.buffer, done]);
        return true;
      },
    });
    pipeline.open();
    let xid = 0;
    const writes = async (...sizes: number[]) => {
      for (const size of sizes) {
        call(pathOf(size));
        await turn();
        xid += 1;
        answer(xid, '/');
      }
      return taken.splice(0);
    };
    const used = await writes(most + 1, most, 20, 20, 20, 20);
    // The next buffer is taken when the one before it is handed over.
    const memory = used.map(([buffer]) => buffer);
    for (const [, done] of used) done();
    const again = (await writes(20, 20, 20, 20, 20, 20)).map(([buffer]) => memory.indexOf(buffer));
    expect(again).toEqual([-1, 4, 3, 2, 1, -1]);
  });
});

describe('a reply', () => {
  const setUpOne = (handlers?: ReplyHandlers<unknown, unknown>) => {
    const world = setup();
    world.open();
    const request = world.submit(world.make('/a', 'sync', handlers));
    return { ...world, request };
  };

  it('dates what the server has confirmed, and never back', async () => {
    const { pipeline, open, call, answer, advance } = setup();
    open();
    expect(pipeline.confirmedMs).toBe(Number.NEGATIVE_INFINITY);
    advance(10);
    call('/a');
    call('/b');
    advance(20);
    answer(1, '/a');
    expect(pipeline.confirmedMs).toBe(10);
    // By the answer to a ping that was sent behind both.
    pipeline.confirmedMs = 25;
    answer(2, '/b');
    expect(pipeline.confirmedMs).toBe(25);
  });

  it('is counted, with how long it took', async () => {
    const { open, call, turn, answer, advance, tally } = setup();
    open();
    advance(1_000);
    for (const [path, tookMs] of [
      ['/a', 30],
      ['/b', 70],
      ['/c', 50],
    ] as const) {
      call(path);
      await turn();
      advance(tookMs);
      answer(tally.replies + 1, path);
    }
    expect(tally).toMatchObject({
      ...{ requests: 3, replies: 3, succeeded: 3, failed: 0 },
      ...{ latencySumMs: 150, latencyMaxMs: 70 },
    });
  });

  it('is known by its transaction and its sending', () => {
    const told: unknown[] = [];
    const { answer } = setUpOne({
      complete: (body, { zxid, sentAt }) => told.push(body, zxid, sentAt.monotonicMs),
    });
    answer(1, '/a');
    expect(told).toEqual([{ path: '/a' }, 1n, 0]);
  });

  it('that says no is an error, with code, path, operation and transaction', () => {
    const failed: boolean[] = [];
    const { answer, errors, tally } = setUpOne({
      complete: () => 'done',
      failed: (mayBeDone) => failed.push(mayBeDone),
    });
    answer(1, '', -102);
    expect(errors).toMatchObject([{ code: 'NO_AUTH', path: '/a', operation: 'sync', zxid: 1n }]);
    // The server has answered that it did not do it.
    expect(failed).toEqual([false]);
    expect(tally).toMatchObject({ succeeded: 0, failed: 1 });
  });

  const absent = () => 'absent';
  const noWatcher = () => 'no watcher';
  it.each([
    ['no node', -101, { absent }, 'absent'],
    ['no node', -101, { noWatcher }, '/a: NO_NODE'],
    ['no watcher', -121, { noWatcher }, 'no watcher'],
    ['no watcher', -121, { absent }, '/a: NO_WATCHER'],
    ['no leave', -102, { absent, noWatcher }, '/a: NO_AUTH'],
  ])('that says %s (%d) is an answer where one wants it: %o', (_, error, handlers, outcome) => {
    const { answer, settled, tally } = setUpOne({ complete: () => 'done', ...handlers });
    answer(1, '', error);
    expect(settled).toEqual([outcome]);
    expect(tally.succeeded).toBe(outcome.includes(':') ? 0 : 1);
  });

  it('whose handler throws fails its call with that', () => {
    const thrown = Object.assign(new Error('not what was asked for'), { code: 'ODD' });
    const failed: boolean[] = [];
    const { pipeline, answer, errors, tally } = setUpOne({
      complete: () => {
        throw thrown;
      },
      failed: (mayBeDone) => failed.push(mayBeDone),
    });
    answer(1, '/a');
    expect(errors).toEqual([thrown]);
    expect(failed).toEqual([true]);
    expect(tally).toMatchObject({ succeeded: 0, failed: 1 });
    expect(pipeline.inFlight).toBe(0);
  });

  it.each([
    ['too little', Uint8Array.of(0, 0), /2 are left/],
    ['too much', Uint8Array.of(0, 0, 0, 0, 9), /1 bytes too many after sync/],
  ])('that says %s fails its call, and ends the connection', (_, body, message) => {
    const { pipeline, errors, tally } = setUpOne();
    expect(() => pipeline.onReply(1n, 0, new JuteReader(body), 0)).toThrow(message);
    expect(errors).toMatchObject([{ code: 'PROTOCOL', path: '/a', operation: 'sync' }]);
    expect((errors[0] as Error).message).toMatch(message);
    expect(tally).toMatchObject({ succeeded: 0, failed: 1 });
  });

  it('to a call that was given up is read, and reaches no caller', () => {
    let completed = 0;
    const { pipeline, request, answer, settled, tally } = setUpOne({
      complete: () => {
        completed += 1;
      },
    });
    pipeline.abandon(request, () => ({ code: 'ABORTED' }));
    answer(1, '/a');
    expect(completed).toBe(0);
    expect(settled).toEqual(['/a: ABORTED']);
    expect(tally).toMatchObject({ replies: 1, succeeded: 0, failed: 1 });
  });

  it('where none is due is refused', () => {
    const { pipeline, call, open, answer } = setup();
    const none = /where one to none was due/;
    expect(pipeline.oldest).toBeUndefined();
    expect(() => pipeline.checkNext(1)).toThrow(none);
    open();
    const request = call('/a');
    expect(pipeline.oldest).toBe(request);
    answer(1, '/a');
    expect(pipeline.oldest).toBeUndefined();
    expect(() => pipeline.checkNext(1)).toThrow(none);
    const reader = new JuteReader(new Uint8Array(0));
    expect(() => pipeline.onReply(1n, 0, reader, 0)).toThrow(/a reply to no request/);
  });
});

describe('the end of a session', () => {
  it('fails all that was sent and all that waits, each once, and leaves nothing', async () => {
    const { pipeline, open, call, turn, answer, settled, errors, tally } = setup({
      maxInFlight: 2,
    });
    open();
    const paths = ['/a', '/b', '/c', '/d'];
    const calls = paths.map((path) => call(path, 'delete'));
    for (const at of [0, 2]) pipeline.abandon(calls[at]!, () => ({ code: 'ABORTED' }));
    pipeline.failAll((context) => ({ code: 'SESSION_EXPIRED', ...context }));
    expect(settled).toEqual([
      ...['/a: ABORTED', '/c: ABORTED'],
      ...['/b: SESSION_EXPIRED', '/d: SESSION_EXPIRED'],
    ]);
    expect(errors.slice(2)).toMatchObject([{ path: '/b', operation: 'delete' }, { path: '/d' }]);
    expect(tally).toMatchObject({ requests: 4, failed: 4 });
    const { queued, queuedBytes, queueLength, inFlight } = pipeline;
    expect({ queued, queuedBytes, queueLength, inFlight }).toEqual({
      ...{ queued: 0, queuedBytes: 0, queueLength: 0, inFlight: 0 },
    });
    // The next call belongs to the next session.
    await turn();
    call('/e');
    answer(3, '/e');
    expect(settled.at(-1)).toBe('/e');
  });
});
