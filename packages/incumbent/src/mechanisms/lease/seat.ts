import type { Belief } from '../../base/belief.ts';
import type { CandidateInfo } from '../../base/candidate.ts';
import type { Instant } from '../../base/clock.ts';
import { readClocks } from '../../base/clock.ts';
import { sleep } from '../../base/wait.ts';
import type { Attempts } from '../../core/attempts.ts';
import type {
  Confirmation,
  Predecessor,
  Scope,
  Seat,
  SeatEnd,
  SeatEvents,
  SeatState,
} from '../../core/contest.ts';
import type { LeaseRecord } from '../../record/lease-record.ts';
import type { UncleanLeader } from '../../record/record.ts';
import { drainOf, published } from '../../record/record.ts';
import { released } from '../../record/transitions.ts';
import { readStore, swapStore, watchStore } from './reading.ts';
import type { LeaseStore, Reading, SwapResult, Version } from './store.ts';

/** How often one confirmation tries again on a version that an operator's write has moved. */
const triesPerConfirmation = 3;

/** For how many of our writes the hints may still be on their way. */
const hintsOnTheirWay = 32;

/** A release is tried again soon, and then at growing intervals. */
const firstReleasePauseMs = 50;

export interface Won<Guard> {
  readonly record: LeaseRecord;
  readonly version: Version;
  readonly attempts: Attempts;
  readonly sentAt: Instant;
  readonly belief: Belief;
  readonly state: SeatState;
  readonly guard: Guard;
  /** As the replaced record names it. */
  readonly predecessor: Predecessor | undefined;
  readonly unfenced: readonly UncleanLeader[];
}

/** Whose record this is, seen from the holder of a seat. */
type Finding =
  /** A write of ours that had no answer has landed. */
  | { readonly kind: 'applied'; readonly sentAt: Instant; readonly state: SeatState }
  /** The record is ours, but no newer than we know: an operator's request came between. */
  | { readonly kind: 'ours' }
  /** Nothing has changed: the attempt may still land. */
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'gone' }
  | { readonly kind: 'theirs' };

/** The holder's side of the lease race. */
export class LeaseSeat<Guard> implements Seat<Guard> {
  readonly token: bigint;
  readonly guard: Guard;
  readonly sentAt: Instant;
  readonly belief: Belief;
  readonly state: SeatState;
  readonly predecessor: Predecessor | undefined;
  readonly unfenced: readonly UncleanLeader[];
  /** The predecessor's belief was over before the seat could be won. */
  readonly waitBeforeAnnounceMs = 0;
  readonly #store: LeaseStore;
  readonly #scope: Scope;
  readonly #candidate: CandidateInfo;
  readonly #attempts: Attempts;
  #record: LeaseRecord;
  #version: Version;
  /** The versions that we have last taken for ours. */
  #adopted: readonly Version[];
  #events: SeatEvents | undefined;
  #unwatch: (() => void) | undefined;
  #writing = false;
  #checkingHint = false;

  constructor(store: LeaseStore, scope: Scope, candidate: CandidateInfo, won: Won<Guard>) {
    this.#store = store;
    this.#scope = scope;
    this.#candidate = candidate;
    this.#attempts = won.attempts;
    this.#record = won.record;
    this.#version = won.version;
    this.#adopted = [won.version];
    this.token = won.record.token;
    this.guard = won.guard;
    this.sentAt = won.sentAt;
    this.belief = won.belief;
    this.state = won.state;
    this.unfenced = won.unfenced;
    this.predecessor = won.predecessor;
  }

  attach(events: SeatEvents): void {
    this.#events = events;
    this.#unwatch = watchStore(this.#store, this.#scope, (told) => {
      // A hint may bring an older write of ours. If that counted, each confirmation would call
      // for the next.
      if (told === undefined || !this.#adopted.includes(told.version)) void this.#checkHint();
    });
    this.#deliver();
  }

  async confirm(state: SeatState, signal: AbortSignal): Promise<Confirmation> {
    this.#writing = true;
    try {
      return await this.#confirm(state, signal);
    } finally {
      this.#writing = false;
    }
  }

  async #confirm(state: SeatState, signal: AbortSignal): Promise<Confirmation> {
    for (let tries = 0; tries < triesPerConfirmation; tries += 1) {
      const next = this.#holdingRecord(state);
      const sentAt = readClocks(this.#scope.clock);
      this.#attempts.add(next, { sentAt, state });
      const result = await this.#swap(next, signal);
      if (result.outcome === 'ok') {
        this.#adopt(next, result.version);
        return { outcome: 'confirmed', sentAt, state };
      }
      const reading = await readStore(this.#store, this.#scope, signal);
      const found = this.#identify(reading);
      switch (found.kind) {
        case 'gone':
          return { outcome: 'lost', reason: 'record-gone' };
        case 'theirs':
          return { outcome: 'lost', reason: 'superseded' };
        case 'unchanged':
          return { outcome: 'unresolved' };
        case 'applied':
        case 'ours': {
          const record = reading.record as LeaseRecord;
          this.#adopt(record, reading.version);
          if (record.holding?.revoked === true) return { outcome: 'lost', reason: 'vacated' };
          this.#deliver();
          if (found.kind === 'applied') {
            return { outcome: 'confirmed', sentAt: found.sentAt, state: found.state };
          }
        }
      }
    }
    return { outcome: 'unresolved' };
  }

  async release(end: SeatEnd, signal: AbortSignal): Promise<boolean> {
    this.#detach();
    const { clock, timing, onTrouble } = this.#scope;
    const nonces = new Set<string>();
    let pauseMs = Math.min(firstReleasePauseMs, timing.retryBackoffMs);
    for (;;) {
      const vacant = this.#vacantRecord(end);
      nonces.add(vacant.nonce);
      try {
        const result = await this.#swap(vacant, signal);
        if (result.outcome === 'ok') return true;
        const reading = await readStore(this.#store, this.#scope, signal);
        if (reading.record !== undefined && nonces.has(reading.record.nonce)) return true;
        const found = this.#identify(reading);
        if (found.kind === 'gone' || found.kind === 'theirs') return false;
        // Our own last confirmation, or an operator's request, landed first.
        this.#adopt(reading.record as LeaseRecord, reading.version);
      } catch (error) {
        if (signal.aborted) throw error;
        onTrouble('releasing', error);
        // The write may have landed. That shows as a conflict, and then by its nonce, or as a
        // record that is not ours any more. Either way the record of a successor is not touched.
      }
      await sleep(clock, pauseMs, signal);
      pauseMs = Math.min(2 * pauseMs, timing.retryBackoffMs);
    }
  }

  async abandon(): Promise<void> {
    // The lease runs out by itself. A write would only move its end.
    this.#detach();
  }

  #detach(): void {
    this.#unwatch?.();
    this.#events = undefined;
  }

  #swap(record: LeaseRecord, signal: AbortSignal): Promise<SwapResult> {
    return swapStore(this.#store, this.#scope, { record, version: this.#version }, signal);
  }

  #identify(reading: Reading): Finding {
    const { record } = reading;
    if (record === undefined) return { kind: 'gone' };
    const attempt = this.#attempts.find(record.nonce);
    const holdsStill =
      record.token === this.token && record.holding !== undefined && this.#attempts.wrote(record);
    if (!holdsStill) return { kind: 'theirs' };
    if (attempt !== undefined && record.nonce !== this.#record.nonce) {
      return { kind: 'applied', sentAt: attempt.sentAt, state: attempt.state };
    }
    return reading.version === this.#version ? { kind: 'unchanged' } : { kind: 'ours' };
  }

  #adopt(record: LeaseRecord, version: Version): void {
    this.#record = record;
    this.#version = version;
    this.#adopted = [...this.#adopted.slice(1 - hintsOnTheirWay), version];
    this.#attempts.settle(record.nonce);
  }

  /** Reports operators' requests in the record to the term. */
  #deliver(): void {
    const { holding, ended } = this.#record;
    if (ended) this.#events?.onElectionEnded();
    if (holding?.request !== undefined) this.#events?.onRequest(holding.request);
    const drain = drainOf(this.#record, this.#candidate.id, this.#scope.clock.wallMs());
    if (drain !== undefined) this.#events?.onDrained(drain.untilUnixMs);
  }

  /** Our own writes raise hints too. Only a version that we do not know is worth a confirmation. */
  async #checkHint(): Promise<void> {
    if (this.#writing || this.#checkingHint || this.#events === undefined) return;
    this.#checkingHint = true;
    const done = new AbortController();
    const version = this.#version;
    try {
      const reading = await readStore(this.#store, this.#scope, done.signal);
      if (this.#writing || reading.version === this.#version) return;
      const { record } = reading;
      // The confirmation can then write on that version. Otherwise it would first conflict, and read.
      const isOurs = this.#version === version && this.#identify(reading).kind === 'ours';
      if (isOurs && record?.holding?.revoked === false) {
        this.#adopt(record, reading.version);
        this.#deliver();
      }
      this.#events?.onHint();
    } catch {
      // A hint is only a hint. The next confirmation meets the same trouble and reports it.
    } finally {
      this.#checkingHint = false;
    }
  }

  #holdingRecord(state: SeatState): LeaseRecord {
    const { holding } = this.#record;
    const { candidate, held, ready } = published(this.#candidate, state);
    return {
      ...this.#record,
      nonce: this.#scope.uniqueId(),
      leaseMs: this.#scope.timing.leaseMs,
      holding: {
        candidate,
        electedAtUnixMs: holding?.electedAtUnixMs ?? this.#scope.clock.wallMs(),
        announced: state.announced,
        actors: state.actors,
        revoked: holding?.revoked ?? false,
        held,
        ready,
        request: holding?.request,
      },
      unfenced: state.announced ? [] : this.#record.unfenced,
    };
  }

  #vacantRecord(end: SeatEnd): LeaseRecord {
    const wallMs = this.#scope.clock.wallMs();
    return released(this.#record, this.#candidate, end, {
      nonce: this.#scope.uniqueId(),
      wallMs,
    });
  }
}
