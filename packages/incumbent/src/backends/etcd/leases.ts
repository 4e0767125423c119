import type { Clock, Instant, Timer } from '../../base/clock.ts';
import { readClocks } from '../../base/clock.ts';
import { Countdown, deadlineAfter } from '../../base/deadline.ts';
import { StoreUnavailableError, StoreUnsuitableError } from '../../base/errors.ts';
import { bounded, Deferred, onAbort } from '../../base/wait.ts';
import type { CallStream, EtcdCalls } from './calls.ts';
import { ClientClosedError } from './errors.ts';
import type { LeaseKeepAliveRequest, LeaseKeepAliveResponse } from './messages.ts';
import { leaseGrant, leaseKeepAlive, leaseRevoke } from './methods.ts';

/** How often keep-alives are sent within a TTL. An answer may take as long as that interval. */
const keepAlivesPerTtl = 5;

/** All candidates wait for a grant. When its answer is lost, another member is asked again. */
const longestGrantMs = 5_000;

/** The longest pause after a stream that has failed. */
const longestReopenPauseMs = 250;

/** Events of the keeper. See `SessionEvent`. */
export type LeaseEvent = 'suspended' | 'restored' | 'over';

/** Leases that live and die together. */
export interface LeaseGroup {
  isOver: boolean;
  readonly leases: Lease[];
}

/** One lease. An election has one key on a lease, so the lease has one slot for each election. */
export interface Lease {
  readonly id: bigint;
  readonly group: LeaseGroup;
  /** As granted: servers raise a small one. */
  readonly ttlMs: number;
  /** When the last answered keep-alive was sent (or the grant), monotonic. */
  aliveMs: number;
  /**
   * A third of its TTL from that time, by both clocks: members of other programs wait
   * for no belief.
   */
  readonly fresh: Countdown;
  /** When the keep-alives were sent that have no answer yet. Answers come in this order. */
  readonly outstanding: Instant[];
  /** By the prefix of an election: the guid of the entry whose key it is. */
  readonly slots: Map<string, string>;
  /** Prefixes below which an unwanted put may still land. */
  readonly withheld: Set<string>;
  /** Resolves when the lease is over. */
  readonly over: Deferred<void>;
}

/**
 * Keeps the leases of one process: one for all elections, and another one where two candidates are
 * in the same election. They live and die together. Once one is over, by the server's word or by
 * our own clock, all are. The next ones are granted when a candidate asks.
 *
 * An answered keep-alive proves nothing about leading: a server that is cut off from its quorum may
 * answer from memory. It only keeps the lease.
 */
export class LeaseKeeper {
  readonly #calls: EtcdCalls;
  readonly #clock: Clock;
  readonly #ttlMs: number;
  readonly #tell: (event: LeaseEvent) => void;
  readonly #onTrouble: (what: string, error: unknown) => void;
  #group: LeaseGroup | undefined;
  #granting: Promise<void> | undefined;
  #stream: CallStream<LeaseKeepAliveRequest> | undefined;
  #opening: AbortController | undefined;
  /** When to open a stream again after one has failed, monotonic. */
  #reopenMs = 0;
  /** When to send keep-alives, monotonic. */
  #sendMs = 0;
  /** When the timer was to fire, monotonic. */
  #dueMs = 0;
  #timer: Timer | undefined;
  /** Streams that have failed since the last answer. */
  #failures = 0;
  #isSuspended = false;
  #isEnded = false;

  constructor(
    calls: EtcdCalls,
    clock: Clock,
    ttlMs: number,
    tell: (event: LeaseEvent) => void,
    onTrouble: (what: string, error: unknown) => void,
  ) {
    this.#calls = calls;
    this.#clock = clock;
    this.#ttlMs = ttlMs;
    this.#tell = tell;
    this.#onTrouble = onTrouble;
    calls.onMoved(() => this.#move());
  }

  get isSuspended(): boolean {
    return this.#isSuspended;
  }

  /**
   * A lease on which the key of this election is free, or belongs to this very entry. It is taken
   * until `free`, or until the lease is over.
   */
  async take(prefix: string, guid: string, signal: AbortSignal): Promise<Lease> {
    for (let isGranted = false; ; isGranted = true) {
      if (this.#isEnded) throw new ClientClosedError();
      // A lease that was granted slowly is old already, and another one would be no younger.
      if (!isGranted) this.#dropStale();
      const found = this.#group?.leases.find(
        ({ slots, withheld }) => (slots.get(prefix) ?? guid) === guid && !withheld.has(prefix),
      );
      if (found !== undefined) {
        found.slots.set(prefix, guid);
        this.#arm();
        return found;
      }
      this.#granting ??= this.#grant().finally(() => {
        this.#granting = undefined;
      });
      await orAborted(this.#granting, signal);
    }
  }

  free(lease: Lease, prefix: string): void {
    lease.slots.delete(prefix);
    this.#restIfIdle();
  }

  /** Frees the slot, and no entry takes it again: a put without an answer may still land there. */
  withhold(lease: Lease, prefix: string): void {
    lease.withheld.add(prefix);
    this.free(lease, prefix);
  }

  whenOver(lease: Lease): Promise<void> {
    return lease.over.promise;
  }

  /** The server says that there is no such lease. */
  lost(lease: Lease): void {
    if (lease.group === this.#group) this.#finish();
  }

  /** True when the lease was kept lately, so that its TTL is not about to run out. */
  isFresh({ fresh }: Lease): boolean {
    return fresh.look(readClocks(this.#clock)) >= 0;
  }

  /** Gives all leases back, in the background. */
  close(): void {
    this.#finish();
  }

  /** The clients are closed: no lease will come any more. */
  end(): void {
    this.#isEnded = true;
    this.#finish();
  }

  get #isIdle(): boolean {
    return this.#group === undefined || this.#group.leases.every(({ slots }) => slots.size === 0);
  }

  async #grant(): Promise<void> {
    const sentAt = readClocks(this.#clock);
    const request = { ttl: BigInt(this.#ttlMs / 1000) };
    // For all candidates that wait, so none of their signals may end it.
    const { id, ttl } = await bounded(
      this.#clock,
      'granting a lease',
      Math.min(this.#ttlMs / 2, longestGrantMs),
      new AbortController().signal,
      (operation) => this.#calls.call(leaseGrant, request, operation, { isUrgent: true }),
    );
    const grantedMs = Number(ttl) * 1000;
    if (grantedMs < this.#ttlMs) {
      throw new StoreUnsuitableError(
        `etcd has granted a lease of ${grantedMs} ms where ${this.#ttlMs} ms were asked for`,
      );
    }
    if (grantedMs > this.#ttlMs && this.#group === undefined) {
      this.#onTrouble(
        'granting a lease',
        new StoreUnavailableError(
          `etcd has raised the TTL of ${this.#ttlMs} ms to ${grantedMs} ms, the least that its ` +
            'election timeout allows: a crash is noticed that much later',
        ),
      );
    }
    if (this.#isEnded || this.#clock.monotonicMs() - sentAt.monotonicMs >= grantedMs) return;
    const fresh = new Countdown();
    fresh.set(deadlineAfter(sentAt, grantedMs / 3));
    this.#group ??= { isOver: false, leases: [] };
    this.#group.leases.push({
      id,
      group: this.#group,
      ttlMs: grantedMs,
      aliveMs: sentAt.monotonicMs,
      fresh,
      outstanding: [],
      slots: new Map(),
      withheld: new Set(),
      over: new Deferred(),
    });
  }

  /** Leases that no candidate needed were not kept meanwhile. */
  #dropStale(): void {
    if (this.#isIdle && this.#group?.leases.some((lease) => !this.isFresh(lease)) === true) {
      this.#finish();
    }
  }

  #restIfIdle(): void {
    if (!this.#isIdle) return;
    const mayLandLate = this.#group?.leases.some(({ withheld }) => withheld.size > 0) === true;
    // A put that lands on a revoked lease is refused.
    if (mayLandLate) this.#finish();
    else this.#rest();
  }

  /** Leases without keys run out by themselves, and no stream keeps the process alive for them. */
  #rest(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#closeStream();
    this.#failures = 0;
    this.#isSuspended = false;
  }

  #finish(): void {
    const group = this.#group;
    this.#rest();
    if (group === undefined) return;
    this.#group = undefined;
    group.isOver = true;
    for (const { over } of group.leases) over.resolve();
    this.#tell('over');
    if (this.#isEnded) return;
    // Candidates behind us then need not wait for the rest of the TTL.
    for (const { id } of group.leases) {
      this.#calls
        .call(leaseRevoke, { id }, new AbortController().signal, { mayRepeat: true })
        .catch(() => {});
    }
  }

  // --- keeping ---

  #arm(): void {
    if (this.#timer !== undefined) return;
    this.#sendMs = this.#clock.monotonicMs();
    this.#dueMs = this.#sendMs;
    this.#wake();
  }

  /** Does the work that is due, and sets the timer for the next. */
  #wake(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    const group = this.#group;
    if (group === undefined || this.#isIdle) return;
    const nowMs = this.#clock.monotonicMs();
    const endMs = Math.min(...group.leases.map(({ aliveMs, ttlMs }) => aliveMs + ttlMs));
    // By our own clock, whatever the server may say: it cannot have heard of us since.
    if (nowMs >= endMs) {
      this.#finish();
      return;
    }
    const everyMs = this.#ttlMs / keepAlivesPerTtl;
    const oldestMs = Math.min(
      ...group.leases.map(({ outstanding }) => outstanding[0]?.monotonicMs ?? nowMs),
    );
    // After a stall of this process the answers may be there, but not read yet.
    const isLate = nowMs - this.#dueMs > everyMs / 2;
    if (this.#stream !== undefined && nowMs - oldestMs >= everyMs && !isLate) {
      this.#fail(this.#stream.client, new Error('keep-alives are not answered'));
    }
    if (this.#stream === undefined && nowMs >= this.#reopenMs) void this.#open();
    if (this.#stream !== undefined && nowMs >= this.#sendMs) this.#send(group, everyMs);
    const nextMs = this.#stream === undefined ? this.#reopenMs : this.#sendMs;
    const soonMs = nextMs > nowMs ? nextMs : nowMs + everyMs;
    this.#dueMs = Math.max(nowMs + 1, Math.min(soonMs, endMs, isLate ? nowMs + 10 : endMs));
    this.#timer = this.#clock.setTimer(() => this.#wake(), this.#dueMs - nowMs, true);
  }

  #send(group: LeaseGroup, everyMs: number): void {
    const sentAt = readClocks(this.#clock);
    this.#sendMs = sentAt.monotonicMs + everyMs;
    for (const lease of group.leases) {
      lease.fresh.look(sentAt);
      lease.outstanding.push(sentAt);
      this.#stream?.write({ id: lease.id });
    }
  }

  async #open(): Promise<void> {
    if (this.#opening !== undefined) return;
    const opening = new AbortController();
    this.#opening = opening;
    const client = this.#calls.current;
    const listener = {
      onMessage: (answer: LeaseKeepAliveResponse) => {
        if (this.#opening === opening) this.#answered(answer);
      },
      onEnd: (error: unknown) => {
        if (this.#opening === opening) this.#fail(this.#stream?.client ?? client, error);
      },
    };
    try {
      const stream = await this.#calls.open(leaseKeepAlive, listener, opening.signal);
      if (this.#opening !== opening) return stream.cancel();
      this.#stream = stream;
      for (const { outstanding } of this.#group?.leases ?? []) outstanding.length = 0;
      this.#sendMs = this.#clock.monotonicMs();
      this.#dueMs = this.#sendMs;
      this.#wake();
    } catch (error) {
      if (this.#opening !== opening) return;
      if (error instanceof ClientClosedError) this.end();
      else this.#fail(client, error);
    }
  }

  #closeStream(): void {
    this.#opening?.abort(new Error('closed'));
    this.#opening = undefined;
    this.#stream?.cancel();
    this.#stream = undefined;
  }

  #fail(client: number, error: unknown): void {
    this.#closeStream();
    this.#onTrouble('keeping a lease', error);
    this.#calls.moveFrom(client);
    this.#failures += 1;
    const pauseMs = Math.min(longestReopenPauseMs, this.#ttlMs / keepAlivesPerTtl);
    this.#reopenMs = this.#clock.monotonicMs() + pauseMs;
    // Not before the other members have been tried.
    if (!this.#isSuspended && this.#failures >= this.#calls.members) {
      this.#isSuspended = true;
      this.#tell('suspended');
    }
    if (this.#timer === undefined) return; // a caller that is about to set it looks what is due
    this.#dueMs = this.#clock.monotonicMs();
    this.#wake();
  }

  /** Another call has found that another client does better. */
  #move(): void {
    if (this.#stream === undefined || this.#stream.client === this.#calls.current) return;
    this.#closeStream();
    this.#reopenMs = 0;
    this.#dueMs = this.#clock.monotonicMs();
    this.#wake();
  }

  #answered({ id, ttl }: LeaseKeepAliveResponse): void {
    const lease = this.#group?.leases.find((each) => each.id === id);
    const sentAt = lease?.outstanding.shift();
    if (lease === undefined || sentAt === undefined) return;
    if (ttl <= 0n) {
      this.#finish();
      return;
    }
    if (sentAt.monotonicMs > lease.aliveMs) {
      lease.aliveMs = sentAt.monotonicMs;
      lease.fresh.set(deadlineAfter(sentAt, lease.ttlMs / 3));
    }
    this.#failures = 0;
    if (this.#isSuspended) {
      this.#isSuspended = false;
      this.#tell('restored');
    }
  }
}

function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const forget = onAbort(signal, () => reject(signal.reason));
    promise.then(resolve, reject).finally(forget);
  });
}
