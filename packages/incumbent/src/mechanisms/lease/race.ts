/**
 * The race for a lease: candidates compete by a conditional write on one record. Expiry is
 * judged by *observed time*, as client-go and Amazon's DynamoDB lock client do. Each candidate
 * counts, by its own clock, from when it first saw the present version. It counts to the lease
 * that this version names. No clocks are compared. The proof is in docs/design/lease-race.md.
 */

import { Belief } from '../../base/belief.ts';
import type { CandidateInfo } from '../../base/candidate.ts';
import { readClocks } from '../../base/clock.ts';
import {
  ElectionEndedError,
  ElectionError,
  InvalidOptionError,
  isIncurable,
} from '../../base/errors.ts';
import type { NotElectedReason } from '../../base/not-elected.ts';
import type { Wakeup } from '../../base/wait.ts';
import { bounded, sleep } from '../../base/wait.ts';
import { Attempts, OwnWrites } from '../../core/attempts.ts';
import type {
  ActorProcess,
  Candidacy,
  Contest,
  Scope,
  Seat,
  SeatState,
  WaitMode,
} from '../../core/contest.ts';
import type { LeaseRecord } from '../../record/lease-record.ts';
import type { Actor, TermSummary, UncleanLeader } from '../../record/record.ts';
import { drainOf, keptDrains, published } from '../../record/record.ts';
import { requireSeatsOf } from '../../record/seat-count.ts';
import { historyAfter, predecessorIn, unfencedAfter } from '../../record/transitions.ts';
import type { Contender } from '../contend.ts';
import { contend } from '../contend.ts';
import { LateWrites } from './late-writes.ts';
import { LossWatch } from './loss.ts';
import type { Sighting } from './reading.ts';
import { Lookout, lookEveryMs, Observation, swapStore } from './reading.ts';
import type { Won } from './seat.ts';
import { LeaseSeat } from './seat.ts';
import type { LeaseStore, SwapResult, Version } from './store.ts';
import type { Decision } from './try-once.ts';
import { TryOnce } from './try-once.ts';

/**
 * How often a follower asks whether the holder's processes have died. That takes no read of the
 * store, but two syscalls.
 */
const proofEveryMs = 100;

/** A seat that may have been won, with the record that was sent for it. */
type PendingWin<Guard> = Omit<Won<Guard>, 'version'>;

export type MakeGuard<Guard> = (token: bigint) => Guard;

/** Long enough for a follower that is woken by a hint. */
const hintedStandAsideMs = 1_000;

export class LeaseRace<Guard> implements Contest<Guard> {
  readonly standAsideMs: number;
  readonly #store: LeaseStore;
  readonly #scope: Scope;
  #candidate: CandidateInfo;
  readonly #guard: MakeGuard<Guard>;
  readonly #observation: Observation;
  readonly #loss: LossWatch;
  /** Kept from one campaign to the next: all earlier terms of this handle are over by then. */
  readonly #own = new OwnWrites();
  readonly #lateWrites: LateWrites;
  #delisted: Promise<void> = Promise.resolve();

  constructor(store: LeaseStore, scope: Scope, candidate: CandidateInfo, guard: MakeGuard<Guard>) {
    this.#store = store;
    this.#scope = scope;
    this.#candidate = candidate;
    this.#guard = guard;
    this.#observation = new Observation(store, scope);
    this.#loss = new LossWatch(store, scope);
    this.#lateWrites = new LateWrites(store, scope, this.#own);
    // Without hints the others see a vacant seat only at their next poll.
    const { pollEveryMs, operationTimeoutMs } = scope.timing;
    this.standAsideMs =
      store.watch === undefined
        ? Math.max(hintedStandAsideMs, 1.1 * pollEveryMs + operationTimeoutMs)
        : hintedStandAsideMs;
  }

  present(candidate: CandidateInfo): void {
    this.#candidate = candidate;
  }

  /** Stops sending in the background. */
  close(): void {
    this.#lateWrites.stop();
  }

  async describe(process: ActorProcess): Promise<Actor | undefined> {
    if (this.#store.describe === undefined) return undefined;
    const { clock, timing, onTrouble } = this.#scope;
    try {
      return await bounded(
        clock,
        'describing a process',
        timing.operationTimeoutMs,
        new AbortController().signal,
        async () => this.#store.describe?.(process),
      );
    } catch (error) {
      if (error instanceof InvalidOptionError) throw error;
      // The death of this process can then not be proved, and the others wait.
      onTrouble('describing a process', error);
      return undefined;
    }
  }

  campaign(
    candidacy: Candidacy,
    waitMode: WaitMode,
    signal: AbortSignal,
  ): Promise<Seat<Guard> | undefined> {
    const { timing, random } = this.#scope;
    const lookout = new Lookout(this.#store, this.#scope, this.#observation);
    const tryOnce =
      waitMode === 'wait' ? undefined : new TryOnce(this.#scope, waitMode === 'settle');
    let delist: (() => Promise<void>) | undefined;
    let shown: Sighting | undefined;
    const contender: Contender<LeaseSeat<Guard>> = {
      attempt: async () => {
        const sighting = await lookout.look(signal);
        const decision = this.#decide(sighting);
        const refusal = tryOnce?.refusal(sighting.record, decision);
        if (refusal !== undefined) return refused(candidacy, refusal);
        if (decision !== 'attempt') {
          // Only now: most candidates of a free seat win it, and need not be listed before.
          if (tryOnce === undefined) delist ??= this.#enlist();
          candidacy.onWaiting(decision.why);
          shown = sighting;
          return { kind: 'wait', ms: decision.ms + random() * 0.1 * timing.renewEveryMs };
        }
        const outcome = await this.#attempt(sighting, candidacy, signal);
        if (typeof outcome === 'object') return { kind: 'won', seat: outcome };
        // The record has moved on, so look again at once. Or it has not, because writes are refused
        // or lost. Then trying on must not make this loop hot.
        const hasMoved = this.#observation.sighting?.version !== sighting.version;
        if (tryOnce !== undefined) {
          // A failed attempt has told its reason. A conflict may leave no new version behind: a
          // transaction that lost against a neighbour's was rolled back.
          const isTry = hasMoved || outcome === 'conflict';
          if (!isTry) return { kind: 'refused' };
          const why = tryOnce.attemptFailed();
          if (why !== undefined) return refused(candidacy, why);
        }
        if (!hasMoved) return { kind: 'failed' };
        shown = sighting;
        return { kind: 'wait', ms: Math.min(5, timing.retryBackoffMs) * random() };
      },
      // A holder that is proved gone was gone before the attempt that failed. So it must not cut
      // the pause short.
      pause: (ms, hasFailed) =>
        this.#pause(ms, hasFailed ? undefined : shown, lookout.wakeup, signal),
      bearsFailure: () => tryOnce?.bearsFailure() !== false,
      leave: async (hasWon) => {
        lookout.end();
        // A seat that was won does not wait for this: its belief runs already.
        const delisted = delist?.();
        if (!hasWon) await Promise.all([delisted, this.#lateWrites.withdraw()]);
      },
    };
    return contend(contender, candidacy, this.#scope, signal);
  }

  #decide(sighting: Sighting): Decision {
    const { record } = sighting;
    const { timing, clock } = this.#scope;
    const lookAgainMs = lookEveryMs(this.#store, this.#scope);
    this.#loss.see(sighting);
    requireSeatsOf(record, this.#scope.election, this.#scope.seats);
    if (record?.ended) throw new ElectionEndedError(this.#scope.election);
    const wallMs = clock.wallMs();
    const drain = drainOf(record, this.#candidate.id, wallMs);
    if (drain !== undefined) {
      const { untilUnixMs } = drain;
      return wait(untilUnixMs - wallMs, timing.pollEveryMs, { kind: 'drained', untilUnixMs });
    }
    const lostMs = this.#loss.leftMs;
    if (lostMs > 0) return wait(lostMs, lookAgainMs, this.#loss.reason);
    if (record === undefined) return 'attempt';
    const { holding, reservation } = record;
    const unchangedMs = this.#observation.unchangedMs(sighting);
    if (holding === undefined) {
      if (reservation === undefined || reservation.for === this.#candidate.id) return 'attempt';
      if (reservation.untilUnixMs <= wallMs) return 'attempt';
      const leftMs = reservation.reserveMs - unchangedMs;
      if (leftMs <= 0) return 'attempt';
      return wait(leftMs, lookAgainMs, {
        kind: 'reserved',
        ...(reservation.for === undefined ? {} : { for: reservation.for }),
        untilUnixMs: Math.min(reservation.untilUnixMs, wallMs + leftMs),
      });
    }
    const { candidate, held, tokenless } = holding;
    const leftMs = record.leaseMs - unchangedMs;
    // The leader is gone, but its job was done, and is not to be done again before then.
    const heldMs =
      held === undefined ? 0 : Math.min(held.untilUnixMs - wallMs, held.ms - unchangedMs);
    const why: NotElectedReason =
      heldMs > 0
        ? { kind: 'held', by: candidate.id, untilUnixMs: wallMs + heldMs }
        : { kind: 'led', id: candidate.id, ...(tokenless ? {} : { token: record.token }) };
    if (leftMs > 0 && !this.#isOver(record)) return wait(leftMs, lookAgainMs, why);
    return heldMs > 0 ? wait(heldMs, timing.pollEveryMs, why) : 'attempt';
  }

  /** True when no process believes in the term of this record, although its lease still runs. */
  #isOver(record: LeaseRecord): boolean {
    const { clock, timing } = this.#scope;
    // Only this very object could believe in a late write of its own, and it does not. A renewal
    // counts as late only while we could believe in it. The others wait for that long, so none
    // has won since.
    const isLate =
      this.#lateWrites.wrote(record) ||
      this.#own.wroteLate(record, readClocks(clock), timing.beliefMs);
    return isLate || this.#isProvedGone(record);
  }

  #isProvedGone(record: LeaseRecord | undefined): boolean {
    const actors = record?.holding?.actors;
    return (
      actors !== undefined &&
      actors !== null &&
      actors.length > 0 &&
      this.#store.provesGone?.(actors) === true
    );
  }

  /** @returns `failed` after the reason was told */
  async #attempt(
    sighting: Sighting,
    candidacy: Candidacy,
    signal: AbortSignal,
  ): Promise<LeaseSeat<Guard> | 'conflict' | 'failed'> {
    const { clock, timing } = this.#scope;
    const previous = this.#lateWrites.beneath(sighting.record);
    const wasOurs = this.#own.wrote(previous);
    const unfenced = unfencedAfter(previous, wasOurs);
    // Not earlier: the description changes when a process is put to sleep and restored meanwhile.
    const self = await this.describe({ pid: process.pid });
    const state = candidacy.stateAtWin(unfenced, self);
    const history = historyAfter(previous, clock.wallMs());
    const next = this.#winningRecord(sighting.record, unfenced, history, state);
    // Before the write. Otherwise a guard that cannot be made would leave a seat without a leader.
    const guard = this.#makeGuard(next.token);
    const attempts = new Attempts(this.#own, candidacy);
    const sentAt = readClocks(clock);
    attempts.add(next, { sentAt, state });
    const pendingWin: PendingWin<Guard> = {
      record: next,
      attempts,
      sentAt,
      belief: new Belief(clock, timing.beliefMs, sentAt),
      state,
      guard,
      predecessor: predecessorIn(previous, wasOurs),
      unfenced: state.announced ? [] : unfenced,
    };
    this.#lateWrites.expect(next.nonce, sighting);
    let result: SwapResult | undefined;
    let refusal: unknown;
    try {
      // A stop waits for the answer: the write travels on, and a look at the store could overtake
      // it. If the seat is won meanwhile, the campaign gives it back.
      const unstoppable = new AbortController().signal;
      const swap = { record: next, version: sighting.version };
      result = await swapStore(this.#store, this.#scope, swap, unstoppable);
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      this.#scope.onTrouble('writing as a candidate', error);
      refusal = error;
    }
    if (result?.outcome === 'ok') return this.#won(pendingWin, next, result.version);
    return this.#readBack(pendingWin, refusal, candidacy, signal);
  }

  /**
   * After a conflict or an unknown outcome. A retry inside a client library may have met its
   * own first success, and an unknown write may have landed. Only the record itself can tell,
   * by our nonce.
   */
  async #readBack(
    pendingWin: PendingWin<Guard>,
    refusal: unknown,
    candidacy: Candidacy,
    signal: AbortSignal,
  ): Promise<LeaseSeat<Guard> | 'conflict' | 'failed'> {
    const { clock, timing } = this.#scope;
    const { record: next, belief } = pendingWin;
    const leastMs = timing.stopMarginMs + timing.retryBackoffMs;
    for (;;) {
      // The belief counts already. If this was the win, time that a look finds lost stays lost.
      belief.remainingMs();
      try {
        const reading = await this.#observation.read(signal);
        this.#lateWrites.see(reading);
        const nonceIsOurs = reading.record?.nonce === next.nonce;
        // A revoked record is a late write. No process has believed in it, and none shall.
        if (nonceIsOurs && reading.record?.holding?.revoked === false) {
          return this.#won(pendingWin, reading.record, reading.version);
        }
        // The store can be read but not written, and waiting does not cure that.
        if (isIncurable(refusal)) {
          this.#lateWrites.clear();
          throw refusal;
        }
        if (refusal === undefined) return 'conflict';
        candidacy.onWaiting({ kind: 'unreachable', cause: refusal });
        return 'failed';
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        if (isIncurable(error)) throw error;
        this.#scope.onTrouble('reading back as a candidate', error);
        candidacy.onWaiting({ kind: 'unreachable', cause: error });
        if (belief.remainingMs() <= leastMs) return 'failed';
        await sleep(clock, timing.retryBackoffMs, signal).catch(() => {});
      }
    }
  }

  #won(pendingWin: PendingWin<Guard>, record: LeaseRecord, version: Version): LeaseSeat<Guard> {
    this.#loss.note(pendingWin.record.token);
    this.#lateWrites.clear();
    pendingWin.attempts.settle(pendingWin.record.nonce);
    const won = { ...pendingWin, record, version };
    return new LeaseSeat(this.#store, this.#scope, this.#candidate, won);
  }

  #makeGuard(token: bigint): Guard {
    try {
      return this.#guard(token);
    } catch (error) {
      throw new ElectionError('MISUSE', `the backend could not make the guard of term ${token}`, {
        cause: error,
      });
    }
  }

  #winningRecord(
    previous: LeaseRecord | undefined,
    unfenced: readonly UncleanLeader[],
    history: readonly TermSummary[],
    state: SeatState,
  ): LeaseRecord {
    const wallMs = this.#scope.clock.wallMs();
    const { candidate, held, ready } = published(this.#candidate, state);
    return {
      election: this.#scope.election,
      token: this.#loss.nextToken,
      nonce: this.#scope.uniqueId(),
      leaseMs: this.#scope.timing.leaseMs,
      ended: false,
      holding: {
        candidate,
        electedAtUnixMs: wallMs,
        announced: state.announced,
        actors: state.actors,
        revoked: false,
        held,
        ready,
        request: undefined,
      },
      reservation: undefined,
      unfenced: state.announced ? [] : unfenced,
      drains: keptDrains(previous?.drains ?? [], wallMs),
      history,
      seats: this.#scope.seats,
    };
  }

  /** Waits for a hint, the time, or proof that the holder is dead. */
  async #pause(
    ms: number,
    sighting: Sighting | undefined,
    wakeup: Wakeup,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock } = this.#scope;
    const untilMs = clock.monotonicMs() + ms;
    const record = sighting?.record;
    const canProve =
      this.#store.provesGone !== undefined && (record?.holding?.actors ?? null) !== null;
    const isHeld = (record?.holding?.held?.untilUnixMs ?? 0) > clock.wallMs();
    for (;;) {
      const leftMs = untilMs - clock.monotonicMs();
      if (leftMs <= 0) return;
      if (await wakeup.wait(clock, canProve ? Math.min(leftMs, proofEveryMs) : leftMs, signal)) {
        return;
      }
      if (canProve && !isHeld && this.#isProvedGone(record)) return;
    }
  }

  /**
   * Puts the candidate on a list for people. Campaigning neither waits for that nor fails with it.
   * @returns a function that takes the candidate off the list. It never rejects, and is bounded
   */
  #enlist(): () => Promise<void> {
    const { clock, timing, onTrouble } = this.#scope;
    const attempt = <T>(operation: () => Promise<T> | undefined): Promise<T | undefined> =>
      bounded(
        clock,
        'listing the candidate',
        timing.operationTimeoutMs,
        new AbortController().signal,
        async () => operation(),
      ).catch((error: unknown) => {
        onTrouble('listing the candidate', error);
        return undefined;
      });
    // One after the other: taking an old entry off the list must not take off the next one.
    let pending: Promise<() => Promise<void>> | undefined;
    const left = new AbortController();
    const enlisted = this.#delisted.then(() =>
      attempt(() => {
        pending = this.#store.enlist?.(this.#candidate, left.signal);
        return pending;
      }),
    );
    return () => {
      left.abort();
      this.#delisted = enlisted.then(async (delist) => {
        if (delist !== undefined) await attempt(delist);
        // The entry was not made in time, and may still come. Then it is undone in the background.
        else void pending?.then(attempt, () => {});
      });
      return this.#delisted;
    };
  }
}

function wait(leftMs: number, mostMs: number, why: NotElectedReason): Decision {
  return { ms: Math.min(leftMs, mostMs), why };
}

function refused(candidacy: Candidacy, why: NotElectedReason): { readonly kind: 'refused' } {
  candidacy.onWaiting(why);
  return { kind: 'refused' };
}
