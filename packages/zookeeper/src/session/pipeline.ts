/**
 * The requests of one session: those that wait, and those that were sent and are answered in order.
 *
 * A request is encoded when the call is made, so its data may change afterwards. On an open
 * connection it goes straight into the output of the current turn of the event loop. All requests
 * of a turn leave in one write, and the clocks are read once, before the first of them is encoded.
 * Otherwise the request waits in the queue as a frame.
 *
 * xids rise from 1 over all connections of the session. A reply must have the xid of the oldest
 * request in flight. Any other reply ends the connection, because no later reply could be
 * attributed.
 */
import type { Clock, Instant } from '../clock.ts';
import { readClocks } from '../clock.ts';
import type { Tally } from '../counters.ts';
import type { ErrorContext } from '../errors.ts';
import {
  ConnectionLossError,
  errorForCode,
  PacketTooLargeError,
  ProtocolError,
  QueueFullError,
  RequestTimeoutError,
} from '../errors.ts';
import { errorCodes } from '../protocol/constants.ts';
import type { JuteReader } from '../protocol/jute.ts';
import { JuteWriter, MalformedError } from '../protocol/jute.ts';
import { Deque } from './deque.ts';
import type { PendingRequest } from './pending-request.ts';

export interface PipelineLimits {
  readonly maxQueuedRequests: number;
  readonly maxQueuedBytes: number;
  readonly maxInFlight: number;
  readonly maxRequestBytes: number;
  readonly requestTimeoutMs: number;
}

export interface PipelineOptions extends PipelineLimits {
  readonly clock: Clock;
  /** For tests: the first number (default 1). */
  readonly firstXid?: number | undefined;
}

/** The receiver of a turn's output. */
export interface Sink {
  /** @returns false if no more should follow before `Pipeline.resume` */
  write(bytes: Uint8Array, done: () => void): boolean;
}

const maxXid = 0x7fff_ffff;
/** How many calls that were given up may stay in the queue before it is cleaned. */
const maxSettledInQueue = 1_000;
/** Longer output leaves at once, and its buffer is not kept. */
const maxKeptBytes = 256 * 1024;
const maxKeptBuffers = 4;
/** The size of a new output buffer, before it grows. */
const newBufferBytes = 16_384;

export class Pipeline {
  readonly #limits: PipelineLimits;
  readonly #clock: Clock;
  readonly #tally: Tally;
  readonly #onDeadline: (deadlineMs: number) => void;
  readonly #queue: Deque<PendingRequest> = new Deque();
  readonly #inFlight: Deque<PendingRequest> = new Deque();
  /** Encoded requests for the next session, which are not in the queue yet. */
  readonly #held: PendingRequest[] = [];
  /** Requests in the queue that are not settled, and the bytes of all requests there. */
  #queuedBytes = 0;
  #queued = 0;
  #nextXid: number;
  #sink: Sink | undefined;
  /** Whether requests may be sent: the handshake is over. */
  #open = false;
  #congested = false;
  #out: JuteWriter = new JuteWriter(newBufferBytes);
  #outSentAt: Instant | undefined;
  #flushScheduled = false;
  readonly #spare: JuteWriter[] = [];
  readonly #flush: () => void = () => {
    this.#flushScheduled = false;
    this.#writeOut();
  };
  /** When something was last handed to the connection. */
  lastSentMs: number = Number.NEGATIVE_INFINITY;
  /** The latest time of sending of anything that was answered. */
  confirmedMs: number = Number.NEGATIVE_INFINITY;

  /** @param onDeadline called with the deadline of every request that has no timer of its own */
  constructor(options: PipelineOptions, tally: Tally, onDeadline: (deadlineMs: number) => void) {
    this.#nextXid = options.firstXid ?? 1;
    this.#limits = options;
    this.#clock = options.clock;
    this.#tally = tally;
    this.#onDeadline = onDeadline;
  }

  get queued(): number {
    return this.#queued;
  }

  /** The length of the queue, with requests that were given up. */
  get queueLength(): number {
    return this.#queue.length;
  }

  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  /** The request whose reply is due next. */
  get oldest(): PendingRequest | undefined {
    return this.#inFlight.first;
  }

  get inFlight(): number {
    return this.#inFlight.length;
  }

  /** Takes a request: sends it with this turn's output, or lets it wait. */
  submit(request: PendingRequest, body: unknown): void {
    this.#tally.requests += 1;
    if (
      this.#open &&
      !this.#congested &&
      this.#queue.length === 0 &&
      this.#inFlight.length < this.#limits.maxInFlight
    ) {
      this.#encodeNow(request, body);
    } else {
      this.#enqueue(request, body);
    }
  }

  /**
   * Takes a request for the next session. It waits for `release`, and `failAll` does not fail it.
   */
  hold(request: PendingRequest, body: unknown): void {
    this.#tally.requests += 1;
    this.#enqueue(request, body, this.#held);
  }

  /** Moves the held requests into the queue. */
  release(): void {
    if (this.#held.length === 0) return;
    for (const request of this.#held.splice(0)) this.#queue.push(request);
    if (this.#open) this.#pump();
  }

  /** Ends a call before its reply. A reply that still comes is read and dropped. */
  abandon(request: PendingRequest, error: () => unknown): void {
    if (request.settled) return;
    if (request.frame !== undefined) this.#leaveQueue(request, request.frame);
    this.#failRequest(request, error);
  }

  // The connection ------------------------------------------------------------------------------

  /** Begins to use a connection. `detach` has removed everything of the last one. */
  attach(sink: Sink): void {
    this.#sink = sink;
  }

  /**
   * Writes a part of the handshake into this turn's output, in front of all requests.
   * @returns both clocks, as read before it
   */
  writeHandshake(write: (writer: JuteWriter) => void): Instant {
    const sentAt = this.#startTurn();
    write(this.#out);
    this.#scheduleFlush();
    return sentAt;
  }

  /**
   * Sends the reads at the front of the queue along with the handshake. Only reads: the server may
   * not answer, and a write that was sent to it would be in doubt.
   */
  rideAlong(): void {
    this.#pump((request) => request.kind.readOnly);
  }

  /** Sends a request that belongs to the handshake, past the queue. */
  sendInHandshake(request: PendingRequest, body: unknown): void {
    this.#tally.requests += 1;
    this.#encodeNow(request, body);
  }

  /** The handshake is over, so all waiting requests may be sent. */
  open(): void {
    if (this.#sink === undefined) return;
    this.#open = true;
    this.#pump();
  }

  /** The connection takes output again. */
  resume(): void {
    this.#congested = false;
    if (this.#open) this.#pump();
  }

  /**
   * The connection is gone. Unanswered requests are in doubt, and fail. If the handshake was not
   * over, only reads were sent, and they return to their places in the queue.
   */
  detach(cause: unknown): void {
    const wasOpen = this.#open;
    this.#sink = undefined;
    this.#open = false;
    this.#congested = false;
    this.#out.reset();
    this.#outSentAt = undefined;
    const unanswered: PendingRequest[] = [];
    for (let next = this.#inFlight.shift(); next !== undefined; next = this.#inFlight.shift()) {
      if (!next.settled) unanswered.push(next);
    }
    for (const request of unanswered.reverse()) {
      if (!wasOpen && request.frame !== undefined) {
        request.takeBack();
        this.#queue.unshift(request);
        this.#queued += 1;
        this.#queuedBytes += request.frame.length;
      }
    }
    for (const request of unanswered.reverse()) {
      if (request.wasSent) {
        this.#failRequest(
          request,
          () => new ConnectionLossError(request.maybeApplied, { ...request.context, cause }),
        );
      }
    }
  }

  /** Fails every call: the session is gone, or the client is closed. */
  failAll(error: (context: ErrorContext) => unknown): void {
    const all: PendingRequest[] = [];
    for (let next = this.#inFlight.shift(); next !== undefined; next = this.#inFlight.shift()) {
      all.push(next);
    }
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
      all.push(next);
    }
    this.#queued = 0;
    this.#queuedBytes = 0;
    for (const { frame } of this.#held) {
      if (frame === undefined) continue;
      this.#queued += 1;
      this.#queuedBytes += frame.length;
    }
    for (const request of all) {
      if (!request.settled) this.#failRequest(request, () => error(request.context));
    }
  }

  // Replies ---------------------------------------------------------------------------------------

  /** @throws ProtocolError unless the reply to the request `xid` is due next */
  checkNext(xid: number): void {
    const due = this.oldest?.xid;
    if (due !== xid) {
      throw new ProtocolError(
        `a reply to request ${xid} came where one to ${due ?? 'none'} was due`,
      );
    }
  }

  /**
   * Takes the reply that is due, whose header was read.
   * @throws MalformedError if the connection cannot go on
   */
  onReply(zxid: bigint, error: number, reader: JuteReader, nowMs: number): void {
    const head = this.#inFlight.shift();
    if (head === undefined) throw new ProtocolError('a reply to no request');
    const sentMs = head.sentAt.monotonicMs;
    // A ping that was sent later may have been answered earlier.
    this.confirmedMs = Math.max(this.confirmedMs, sentMs);
    this.#tally.replies += 1;
    const latencyMs = nowMs - sentMs;
    this.#tally.latencySumMs += latencyMs;
    this.#tally.latencyMaxMs = Math.max(this.#tally.latencyMaxMs, latencyMs);
    if (!head.settled) {
      head.zxid = zxid;
      this.#settle(head, error, reader);
    }
    if (this.#open) this.#pump();
  }

  #settle(request: PendingRequest, error: number, reader: JuteReader): void {
    let result: unknown;
    try {
      if (error === errorCodes.ok) {
        const response: unknown = request.kind.response.read(reader);
        reader.expectEnd(request.kind.name);
        result = request.handlers.complete(response, request);
      } else if (error === errorCodes.noNode && request.handlers.absent !== undefined) {
        result = request.handlers.absent(request);
      } else if (error === errorCodes.noWatcher && request.handlers.noWatcher !== undefined) {
        result = request.handlers.noWatcher(request);
      } else {
        const context = { ...request.context, zxid: request.zxid };
        this.#failRequest(request, () => errorForCode(error, context), true);
        return;
      }
    } catch (cause) {
      if (!(cause instanceof MalformedError)) {
        this.#failRequest(request, () => cause);
        return;
      }
      this.#failRequest(
        request,
        () => new ProtocolError(`the reply is malformed: ${cause.message}`, request.context),
      );
      throw cause;
    }
    this.#tally.succeeded += 1;
    request.succeed(result);
  }

  // Time --------------------------------------------------------------------------------------------

  /**
   * Fails requests that have waited longer than the common limit. @returns the next deadline, or
   * infinity
   */
  expireOverdue(nowMs: number): number {
    return Math.min(this.#expireIn(this.#inFlight, nowMs), this.#expireIn(this.#queue, nowMs));
  }

  #expireIn(requests: Deque<PendingRequest>, nowMs: number): number {
    // All requests without a timer of their own have the same timeout, so they are due in order.
    for (let i = 0; i < requests.length; i += 1) {
      const request = requests.at(i);
      if (request.settled || request.hasOwnTimer) continue;
      if (request.deadlineMs > nowMs) return request.deadlineMs;
      this.timeOut(request);
    }
    return Number.POSITIVE_INFINITY;
  }

  timeOut(request: PendingRequest): void {
    this.abandon(
      request,
      () => new RequestTimeoutError(request.timeoutMs, request.maybeApplied, request.context),
    );
  }

  // Inside ------------------------------------------------------------------------------------------

  #failRequest(request: PendingRequest, error: () => unknown, refused = false): void {
    this.#tally.failed += 1;
    request.fail(error, refused);
  }

  #encodeNow(request: PendingRequest, body: unknown): void {
    const sentAt = this.#startTurn();
    const out = this.#out;
    const start = out.length;
    let bytes: number;
    try {
      bytes = this.#writeFrame(out, request, body);
    } catch (error) {
      this.#takeBack(start);
      this.#failRequest(request, () => error);
      return;
    }
    if (bytes > this.#limits.maxRequestBytes) {
      this.#takeBack(start);
      this.#failTooLarge(request, bytes);
      return;
    }
    this.#setDeadline(request, sentAt.monotonicMs);
    this.#send(request, sentAt);
    if (out.length > maxKeptBytes) this.#writeOut();
    else this.#scheduleFlush();
  }

  #enqueue(
    request: PendingRequest,
    body: unknown,
    line: { push(request: PendingRequest): unknown } = this.#queue,
  ): void {
    const writer = new JuteWriter();
    let bytes: number;
    try {
      bytes = this.#writeFrame(writer, request, body);
    } catch (error) {
      this.#failRequest(request, () => error);
      return;
    }
    if (bytes > this.#limits.maxRequestBytes) {
      this.#failTooLarge(request, bytes);
      return;
    }
    if (
      !request.cleansUp &&
      (this.#queued >= this.#limits.maxQueuedRequests ||
        this.#queuedBytes + writer.length > this.#limits.maxQueuedBytes)
    ) {
      this.#failRequest(
        request,
        () => new QueueFullError(this.#queued, this.#queuedBytes, request.context),
      );
      return;
    }
    this.#sweepQueue();
    request.frame = writer.written();
    this.#queued += 1;
    this.#queuedBytes += request.frame.length;
    line.push(request);
    this.#setDeadline(request, this.#clock.monotonicMs());
  }

  #leaveQueue(request: PendingRequest, frame: Uint8Array): void {
    request.frame = undefined;
    // Requests that were sent along with the handshake have left the queue already.
    if (request.wasSent) return;
    this.#queued -= 1;
    this.#queuedBytes -= frame.length;
  }

  /**
   * Removes calls that were given up from the queue. They stay there until their turn comes, and
   * while nothing is sent their turn may never come.
   */
  #sweepQueue(): void {
    if (this.#queue.length > 2 * this.#queued + maxSettledInQueue) {
      this.#queue.filter((request) => !request.settled);
    }
  }

  /**
   * Writes a request with the next number. A request from the queue gets another number when it is
   * sent.
   * @returns its length
   */
  #writeFrame(writer: JuteWriter, request: PendingRequest, body: unknown): number {
    const start = writer.beginFrame();
    writer.int32(this.#nextXid);
    writer.int32(request.kind.opcode);
    request.kind.request.write(writer, body);
    return writer.endFrame(start);
  }

  #setDeadline(request: PendingRequest, nowMs: number): void {
    if (request.hasOwnTimer) return;
    request.timeoutMs = this.#limits.requestTimeoutMs;
    request.deadlineMs = nowMs + request.timeoutMs;
    this.#onDeadline(request.deadlineMs);
  }

  /** Moves requests from the queue into the output, as far as `admits` and the limits allow. */
  #pump(admits?: (request: PendingRequest) => boolean): void {
    for (;;) {
      const request = this.#queue.first;
      if (request === undefined || this.#congested) return;
      if (request.settled) {
        this.#queue.shift();
        continue;
      }
      if (this.#inFlight.length >= this.#limits.maxInFlight) return;
      if (admits !== undefined && !admits(request)) return;
      this.#queue.shift();
      const sentAt = this.#startTurn();
      const frame = request.frame as Uint8Array;
      const start = this.#out.length;
      this.#out.raw(frame);
      this.#out.patchInt32(start + 4, this.#nextXid);
      this.#queued -= 1;
      this.#queuedBytes -= frame.length;
      // The frame is kept during the handshake, because the request may have to be sent again.
      if (this.#open) request.frame = undefined;
      this.#send(request, sentAt);
      if (this.#out.length > maxKeptBytes) this.#writeOut();
      else this.#scheduleFlush();
    }
  }

  #send(request: PendingRequest, sentAt: Instant): void {
    request.xid = this.#nextXid;
    request.sentAt = sentAt;
    this.#nextXid = this.#nextXid === maxXid ? 1 : this.#nextXid + 1;
    this.#inFlight.push(request);
  }

  /**
   * Reads the clocks before anything of a turn is written: replies confirm the session for that
   * time.
   */
  #startTurn(): Instant {
    this.#outSentAt ??= readClocks(this.#clock);
    return this.#outSentAt;
  }

  /** Removes output again. A turn without output has not begun. */
  #takeBack(length: number): void {
    this.#out.reset(length);
    if (length === 0) this.#outSentAt = undefined;
  }

  #scheduleFlush(): void {
    if (this.#flushScheduled) return;
    this.#flushScheduled = true;
    // After the promises of this turn: requests of their callbacks go into the same write.
    process.nextTick(this.#flush);
  }

  #writeOut(): void {
    const out = this.#out;
    const sentAt = this.#outSentAt;
    this.#outSentAt = undefined;
    if (out.length === 0 || this.#sink === undefined || sentAt === undefined) return;
    this.#out = this.#spare.pop() ?? new JuteWriter(newBufferBytes);
    this.lastSentMs = sentAt.monotonicMs;
    this.#tally.bytesSent += out.length;
    const goOn = this.#sink.write(out.written(), () => {
      out.reset();
      if (out.capacity <= maxKeptBytes && this.#spare.length < maxKeptBuffers)
        this.#spare.push(out);
    });
    if (!goOn) this.#congested = true;
  }

  #failTooLarge(request: PendingRequest, bytes: number): void {
    const { maxRequestBytes } = this.#limits;
    this.#failRequest(
      request,
      () => new PacketTooLargeError(bytes, maxRequestBytes, request.context),
    );
  }
}
