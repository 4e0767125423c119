/**
 * The place in a queue: candidates line up, the first leads, everybody else watches only the one
 * before it (ZooKeeper's recipe, etcd's concurrency package). What the recipe leaves open is closed
 * here: a term is believed in only from confirmations that the store's quorum has committed, and
 * whoever follows a leader that ended unclean waits that one's belief out. The proof is in
 * ARCHITECTURE.md, "Why the queue is safe".
 */

import type { CandidateInfo } from '../../base/candidate.ts';
import type { Instant } from '../../base/clock.ts';
import { readClocks } from '../../base/clock.ts';
import { ElectionEndedError, isIncurable, StoreUnavailableError } from '../../base/errors.ts';
import type { NotElectedReason } from '../../base/not-elected.ts';
import { bounded, sleep, Wakeup } from '../../base/wait.ts';
import { Attempts, OwnWrites } from '../../core/attempts.ts';
import { backoffMs } from '../../core/backoff.ts';
import type { Candidacy, Contest, Patience, Scope, Seat } from '../../core/contest.ts';
import type { QueueRecord } from '../../record/queue-record.ts';
import { termsOf } from '../../record/queue-record.ts';
import { electedSince } from '../../record/record.ts';
import { unfencedAfter } from '../../record/transitions.ts';
import type { Contender } from '../contend.ts';
import { contend } from '../contend.ts';
import { Confirmations } from './confirmations.ts';
import type { Leftovers } from './leftovers.ts';
import { isLeadingIn, lastPlaceIn, leaderPlaceIn, wasLastIn } from './named-places.ts';
import { patienceMs } from './patience.ts';
import { announcedRecord, QueueSeat } from './seat.ts';
import type { QueueSettings } from './settings.ts';
import type { Entry, Place, QueueStore, RecordReading, Watched } from './store.ts';
import { makeGuard, requireQuorum, tokensWentBack } from './winning.ts';

/** What a candidate has of the queue while it campaigns. */
interface Line {
  readonly entry: Entry;
  place: Place | undefined;
  /** Tells that our own place is gone. */
  own: Watched<boolean> | undefined;
  /** Tells that the election is over, in layouts that mark it. */
  mark: Watched<boolean> | 'set' | undefined;
  readonly attempts: Attempts;
  /** What stood in the record when an announcement was sent that had no answer (yet). */
  found: RecordReading | undefined;
  /** Since when we have been first, monotonic. */
  firstSinceMs: number | undefined;
  /** Of a candidate that does not wait: what it found first. */
  readonly foundFirst: QueueRecord | undefined;
}

/** One look at the record and at the queue, in this order. */
interface Look {
  readonly names: readonly string[];
  readonly reading: RecordReading;
  /** Monotonic, after both answers. */
  readonly atMs: number;
}

/** A place that is not the first, and the name of the one before it. */
class Behind {
  readonly place: Place;
  readonly before: string;

  constructor(place: Place, before: string) {
    this.place = place;
    this.before = before;
  }
}

export class Queue<Guard> implements Contest<Guard> {
  /** Whoever re-enters is behind the others anyway; this gives those a chance that enter just now. */
  readonly standAsideMs = 1_000;
  readonly #store: QueueStore;
  readonly #scope: Scope;
  readonly #settings: QueueSettings<Guard>;
  readonly #leftovers: Leftovers;
  #candidate: CandidateInfo;
  /** Kept from one campaign to the next: whatever this handle has led before is over by then. */
  readonly #own = new OwnWrites();
  /** Since when the leader that the record names has been seen to be gone, monotonic. */
  #gone: { readonly token: bigint; readonly sinceMs: number } | undefined;
  /**
   * H of whoever may believe if somebody deletes the record by hand, once we have met anybody: the last
   * leader that the record named, or one that we know nothing of. Leaders before it were waited out.
   */
  #followedBeliefMs = 0;
  /** Since when a reservation or a held seat has been seen, monotonic. */
  #reservedSince: { readonly nonce: string; readonly sinceMs: number } | undefined;

  constructor(
    store: QueueStore,
    scope: Scope,
    candidate: CandidateInfo,
    settings: QueueSettings<Guard>,
    leftovers: Leftovers,
  ) {
    this.#store = store;
    this.#scope = scope;
    this.#candidate = candidate;
    this.#settings = settings;
    this.#leftovers = leftovers;
  }

  present(candidate: CandidateInfo): void {
    this.#candidate = candidate;
  }

  /** A session proves no death: it may outlive its process, and end before it. */
  async describe(): Promise<undefined> {
    return undefined;
  }

  campaign(
    candidacy: Candidacy,
    patience: Patience,
    signal: AbortSignal,
  ): Promise<Seat<Guard> | undefined> {
    const once = patience !== 'wait';
    const wakeup = new Wakeup();
    let isPausing = false;
    const stopListening = this.#store.session.onEvent((event) => {
      // Watches live on over a reconnection; only what failed is to be tried again at once.
      if (event === 'over' || (event === 'restored' && isPausing)) wakeup.raise();
    });
    let line: Line | undefined;
    let exits = 0;
    const contender: Contender<QueueSeat<Guard>> = {
      attempt: async () => {
        line ??= await this.#enter(candidacy, once, exits > 0, signal);
        if (line === undefined) {
          if (once) return { kind: 'refused' };
          return { kind: 'wait', ms: this.#drainedMs((await this.#read(signal)).record) };
        }
        const inLine = line;
        wakeup.clear();
        const step = await this.#step(inLine, candidacy, once, wakeup, signal);
        if (step instanceof Behind) {
          return { kind: 'behind', until: () => this.#waitBehind(inLine, step, wakeup, signal) };
        }
        if (step === 'again') return { kind: 'wait', ms: 0 };
        if (step instanceof QueueSeat) return { kind: 'won', seat: step };
        if (step !== 'out') return { kind: 'wait', ms: step };
        this.#requireUnmarked(inLine);
        await this.#leave(inLine);
        line = undefined;
        if (once) return { kind: 'refused' };
        // Once is an operator's wish or a session's end; again and again must not be hot.
        exits += 1;
        return { kind: 'wait', ms: exits > 1 ? backoffMs(this.#scope, exits - 1) : 0 };
      },
      pause: async (ms) => {
        isPausing = true;
        await wakeup.wait(this.#scope.clock, ms, signal);
        isPausing = false;
      },
      bearsFailure: () => !once,
      leave: async (hasWon) => {
        stopListening();
        if (line === undefined) return;
        if (hasWon) cancelMark(line);
        else await this.#leave(line);
      },
    };
    return contend(contender, candidacy, this.#scope, signal);
  }

  /**
   * Gets in line; undefined when this candidate is to stay out for now, or (`once`) when others are
   * there already.
   */
  async #enter(
    candidacy: Candidacy,
    once: boolean,
    wasIn: boolean,
    signal: AbortSignal,
  ): Promise<Line | undefined> {
    const look = await this.#look(signal);
    const { reading, names } = look;
    await this.#requireOpen(reading, signal);
    // GoLea deletes the mark of the end together with the election.
    if (wasIn && this.#store.endMark !== undefined && reading.version === undefined) {
      throw new ElectionEndedError(this.#scope.election);
    }
    if (this.#isDrained(reading.record, candidacy)) return undefined;
    if (once && names.length > 0) {
      const why = await this.#whoLeads(look, signal);
      if (why !== undefined) candidacy.onWaiting(why);
      return undefined;
    }
    return {
      entry: { guid: this.#scope.uniqueId(), candidate: this.#candidate },
      place: undefined,
      own: undefined,
      mark: undefined,
      attempts: new Attempts(this.#own),
      found: undefined,
      firstSinceMs: undefined,
      foundFirst: once ? reading.record : undefined,
    };
  }

  async #leave(line: Line): Promise<void> {
    line.own?.cancel();
    cancelMark(line);
    const { entry, place, found, attempts } = line;
    // Whoever leaves is told that it does not lead: what it has announced must not say otherwise.
    const ghost = place && found && { place, before: found.record, attempts };
    await this.#leftovers.leave(entry, place, ghost);
  }

  /**
   * One decision. @returns the seat; whom to wait for; `again`: look again at once; `out`: give the
   * place up; a number: wait so long for an event
   */
  async #step(
    line: Line,
    candidacy: Candidacy,
    once: boolean,
    wakeup: Wakeup,
    signal: AbortSignal,
  ): Promise<QueueSeat<Guard> | Behind | 'again' | 'out' | number> {
    // Before there is a place: whoever marks the end after that is heard of.
    await this.#watchMark(line, wakeup, signal);
    line.place ??= await this.#ask('entering', signal, (operation) =>
      this.#store.enter(line.entry, operation),
    );
    const { place } = line;
    const { session } = this.#store;
    if (session.isOver(place)) return placeLost(candidacy, once);
    const look = await this.#look(signal);
    const index = look.names.indexOf(place.name);
    await this.#requireOpen(look.reading, signal);
    // Deleted by an operator, or gone with its session: its name is never used again.
    if (index < 0 || session.isOver(place)) return placeLost(candidacy, once);
    // Where names come again, the one in the list may be somebody else's.
    const { isSame } = this.#store;
    if (isSame !== undefined) {
      const ask = (operation: AbortSignal) => isSame(place, operation);
      if (!(await this.#ask('looking', signal, ask))) return placeLost(candidacy, once);
    }
    if (this.#isDrained(look.reading.record, candidacy)) return 'out';
    const why = index > 0 ? await this.#whoLeads(look, signal) : undefined;
    candidacy.onStanding({ place: place.name, following: look.names[index - 1] }, why);
    if (index > 0) {
      line.firstSinceMs = undefined;
      this.#followedBeliefMs = Math.max(this.#followedBeliefMs, this.#scope.timing.beliefMs);
      if (once) return 'out';
      return new Behind(place, look.names[index - 1] as string);
    }
    line.firstSinceMs ??= look.atMs;
    const reserved = await this.#reserved(look, signal);
    if (reserved !== undefined) candidacy.onWaiting(reserved.why);
    if (reserved?.yields === true) return 'out';
    if (reserved !== undefined) {
      await this.#watchOwn(line, place, wakeup, signal);
      return once ? 'out' : Math.min(reserved.leftMs, this.#scope.timing.pollEveryMs);
    }
    const { record } = look.reading;
    // An announcement of ours may have landed without an answer.
    const elected =
      once && record?.token !== place.token
        ? electedSince(termsOf(line.foundFirst), termsOf(record))
        : undefined;
    if (elected !== undefined) {
      candidacy.onWaiting(elected);
      return 'out';
    }
    const seat = await this.#win(line, place, look, candidacy, signal);
    return seat === 'out' ? placeLost(candidacy, once) : seat;
  }

  async #look(signal: AbortSignal): Promise<Look> {
    requireQuorum(this.#store.session);
    const { reading, names } = await this.#ask('looking', signal, (operation) =>
      this.#store.look(operation),
    );
    requireQuorum(this.#store.session);
    const atMs = this.#scope.clock.monotonicMs();
    const { record } = reading;
    const leader = leaderPlaceIn(this.#store, record);
    if (record === undefined || leader === undefined || names.includes(leader)) {
      this.#gone = undefined;
    } else if (this.#gone?.token !== record.token) {
      // By its token, for a name may come again. Since after the answers: its last confirmation was
      // committed while its place was there.
      this.#gone = { token: record.token, sinceMs: atMs };
    }
    const { beliefMs } = this.#scope.timing;
    if (record?.holding !== undefined) {
      this.#followedBeliefMs = Math.max(beliefMs, record.beliefMs);
    } else if (record !== undefined && record.token > 0n && this.#followedBeliefMs > 0) {
      this.#followedBeliefMs = beliefMs;
    }
    return { names, reading, atMs };
  }

  /** Waits until something happened to the one before us or to our own place. */
  async #waitBehind(
    line: Line,
    { place, before }: Behind,
    wakeup: Wakeup,
    signal: AbortSignal,
  ): Promise<'again'> {
    const { clock, random } = this.#scope;
    const { recheckMs } = this.#settings;
    for (;;) {
      const watching = this.#ask('watching', signal, (operation) =>
        this.#store.watchPlace(before, operation),
      );
      // It may fail while our own is waited for: whoever awaits it below hears of that.
      watching.catch(() => {});
      let isThere: boolean;
      try {
        isThere = await this.#watchOwn(line, place, wakeup, signal);
      } catch (error) {
        void watching.then((watched) => watched.cancel()).catch(() => {});
        throw error;
      }
      const watched = await watching;
      let live = true;
      try {
        // Gone before it could be watched: never assume that we are next.
        if (!isThere || !watched.value) return 'again';
        void watched.changed.then(() => {
          if (live) wakeup.raise();
        });
        if (await wakeup.wait(clock, recheckMs * (1 - 0.1 * random()), signal)) return 'again';
        // Nothing was heard for long: look whether a notification was lost.
        if (line.own !== undefined) {
          line.own.cancel();
          line.own = undefined;
        }
      } finally {
        live = false;
        watched.cancel();
      }
    }
  }

  /** @returns whether our own place is there; from now on its end wakes us up */
  async #watchOwn(line: Line, place: Place, wakeup: Wakeup, signal: AbortSignal): Promise<boolean> {
    if (line.own !== undefined) return true;
    const watched = await this.#ask('watching', signal, (operation) =>
      this.#store.watchPlace(place.name, operation),
    );
    if (!watched.value) {
      watched.cancel();
      return false;
    }
    line.own = watched;
    void watched.changed.then(() => {
      if (line.own !== watched) return;
      line.own = undefined;
      wakeup.raise();
    });
    return true;
  }

  /**
   * GoLea gives candidates a fifth of a second to leave, and then deletes election and mark together: so
   * it counts that the mark was set, and not whether it still is.
   * @throws ElectionEndedError
   */
  async #watchMark(line: Line, wakeup: Wakeup, signal: AbortSignal): Promise<void> {
    const { endMark } = this.#store;
    if (endMark === undefined) return;
    if (line.mark === undefined) {
      const watched = await this.#ask('watching', signal, (operation) => endMark.watch(operation));
      line.mark = watched.value ? 'set' : watched;
      if (watched.value) watched.cancel();
      void watched.changed.then((isSet) => {
        if (line.mark !== watched) return;
        line.mark = isSet ? 'set' : undefined;
        wakeup.raise();
      });
    }
    this.#requireUnmarked(line);
  }

  /** @throws ElectionEndedError */
  #requireUnmarked({ mark }: Line): void {
    if (mark === 'set') throw new ElectionEndedError(this.#scope.election);
  }

  /**
   * The place is ours and the first. With a clean predecessor one transaction does it all; else the
   * seat is confirmed now, and announced when it has waited.
   */
  async #win(
    line: Line,
    place: Place,
    look: Look,
    candidacy: Candidacy,
    signal: AbortSignal,
  ): Promise<QueueSeat<Guard> | 'again' | 'out'> {
    const { clock, timing, onTrouble } = this.#scope;
    const { record, version, isForeign = false } = look.reading;
    this.#requireRisingTokens(place, record);
    const guard = makeGuard(this.#settings.guard, place);
    const isNamed = isLeadingIn(this.#store, record, place);
    // Then the record names us because an announcement has landed whose answer was lost.
    const isOurs = isNamed && this.#own.wrote(record);
    // Or because a copy of this process has our place too, and leads from it.
    if (isNamed && !isOurs) return 'out';
    const found = (isOurs ? line.found : undefined) ?? look.reading;
    const wasOurs = record?.holding !== undefined && this.#own.wrote(record);
    const unfenced = unfencedAfter(record, wasOurs);
    const waitMs = this.#waitMs(line, place, look);
    const asked = candidacy.stateAtWin(unfenced);
    // What is written only when the wait is over: until then the predecessor stays the one in the
    // record, so that whoever follows us, if we die meanwhile, has to wait as well.
    const state = waitMs > 0 ? { ...asked, announced: false } : asked;
    const seat = (sentAt: Instant, shown: QueueRecord | undefined, shownVersion = version) => {
      // Heard while the win was on its way: the seat's own watch would not tell of it again.
      this.#requireUnmarked(line);
      return new QueueSeat<Guard>(this.#store, this.#scope, this.#settings, this.#leftovers, {
        entry: line.entry,
        place,
        own: line.own,
        guard,
        sentAt,
        state,
        found,
        shown,
        version: shownVersion,
        attempts: line.attempts,
        unfenced: state.announced ? [] : unfenced,
        waitMs: Math.max(0, waitMs - (clock.monotonicMs() - look.atMs)),
      });
    };

    if (state.announced && !isForeign && !isOurs) {
      const { candidate } = line.entry;
      const next = announcedRecord(this.#store, this.#scope, record, candidate, place, state);
      const sentAt = readClocks(clock);
      line.attempts.add(next.nonce, { sentAt, state });
      line.found = look.reading;
      let result: Awaited<ReturnType<QueueStore['commit']>>;
      try {
        // Not cut short by whoever wants us to stop: the place is given back after its answer.
        result = await this.#ask('announcing', new AbortController().signal, (operation) =>
          this.#store.commit(place, next, version, operation),
        );
      } catch (error) {
        signal.throwIfAborted();
        if (isIncurable(error)) throw error;
        // It may have landed: the next look finds the record with our place in it.
        onTrouble('announcing', error);
        candidacy.onWaiting({ kind: 'unreachable', cause: error });
        await sleep(clock, timing.retryBackoffMs, signal);
        return 'again';
      }
      if (result.outcome !== 'ok') return result.outcome === 'gone' ? 'out' : 'again';
      return seat(sentAt, next, result.version);
    }
    const confirmations = Confirmations.of(this.#store.session, clock);
    const fromMs = clock.monotonicMs();
    const sentAt = await confirmations.confirm(
      place,
      (proved) => proved.monotonicMs >= fromMs,
      timing.operationTimeoutMs,
      signal,
    );
    if (sentAt === undefined) return 'out';
    return seat(sentAt, isOurs ? record : undefined);
  }

  /** How long this place has to wait before it may be announced, from the time of the look. */
  #waitMs(line: Line, place: Place, { reading, atMs }: Look): number {
    const { waitsForPredecessor, delayAfterWinMs } = this.#settings;
    const { clockDrift, beliefMs } = this.#scope.timing;
    const { record } = reading;
    const holding = record?.holding;
    const firstSinceMs = line.firstSinceMs ?? atMs;
    const delayMs = delayAfterWinMs - (atMs - firstSinceMs);
    if (!waitsForPredecessor) return delayMs;
    const stretch = (1 + clockDrift) / (1 - clockDrift);
    let leftMs = delayMs;
    // One's own earlier term is known to be over: the same object has ended it.
    if (record !== undefined && holding !== undefined && !this.#own.wrote(record)) {
      const goneSinceMs = this.#gone?.token === record.token ? this.#gone.sinceMs : atMs;
      leftMs = Math.max(leftMs, record.beliefMs * stretch - (atMs - goneSinceMs));
    }
    let unknownMs = 0;
    // Members that write no record may have led since it was written.
    const previous = lastPlaceIn(this.#store, record);
    const isNext =
      // Our own announcement has landed, only its answer was lost.
      wasLastIn(this.#store, record, place) ||
      (previous !== undefined && this.#store.directlyFollows?.(place, previous) === true);
    if (this.#store.isMixed && !isNext) unknownMs = beliefMs;
    // No record, or one that only an operator has written: the leader's was deleted by hand.
    if (record === undefined || record.token === 0n) {
      unknownMs = Math.max(unknownMs, this.#followedBeliefMs);
    }
    return Math.max(leftMs, unknownMs * stretch - (atMs - firstSinceMs));
  }

  /** Who is before us: by the record, or else by the first in line, which is about to lead. */
  async #whoLeads(
    { names, reading: { record } }: Look,
    signal: AbortSignal,
  ): Promise<NotElectedReason | undefined> {
    if (record?.holding !== undefined && this.#gone === undefined) {
      return { kind: 'led', id: record.holding.candidate.id, token: record.token };
    }
    if (names.length === 0) return undefined;
    const [first] = await this.#ask('listing', signal, (operation) =>
      this.#store.members(operation, 1),
    );
    return first && { kind: 'led', id: first.candidate.id, token: first.token };
  }

  /** For how long and why the seat stays closed to us; `yields`: somebody behind us is to have it. */
  async #reserved(
    { reading, names, atMs }: Look,
    signal: AbortSignal,
  ): Promise<
    | { readonly leftMs: number; readonly why: NotElectedReason; readonly yields: boolean }
    | undefined
  > {
    const { record } = reading;
    if (record === undefined) return undefined;
    const { reservation, holding } = record;
    const reserved =
      holding?.held ??
      (reservation === undefined || reservation.for === this.#candidate.id
        ? undefined
        : { ms: reservation.reserveMs, untilUnixMs: reservation.untilUnixMs });
    if (reserved === undefined) return undefined;
    if (this.#reservedSince?.nonce !== record.nonce) {
      this.#reservedSince = { nonce: record.nonce, sinceMs: atMs };
    }
    const wallMs = this.#scope.clock.wallMs();
    const leftMs = Math.min(
      reserved.untilUnixMs - wallMs,
      reserved.ms - (atMs - this.#reservedSince.sinceMs),
    );
    if (leftMs <= 0) return undefined;
    const untilUnixMs = wallMs + leftMs;
    if (holding?.held !== undefined) {
      const why = { kind: 'held', by: holding.candidate.id, untilUnixMs } as const;
      return { leftMs, why, yields: false };
    }
    const wanted = holding === undefined ? reservation?.for : undefined;
    const whom = wanted === undefined ? {} : { for: wanted };
    const why = { kind: 'reserved', ...whom, untilUnixMs } as const;
    let yields = false;
    if (wanted !== undefined && names.length > 1) {
      const members = await this.#ask('listing', signal, (operation) =>
        this.#store.members(operation),
      );
      yields = members.some(({ candidate }) => candidate.id === wanted);
    }
    return { leftMs, why, yields };
  }

  #isDrained(record: QueueRecord | undefined, candidacy: Candidacy): boolean {
    const leftMs = this.#drainedMs(record);
    if (leftMs <= 0) return false;
    const drain = record?.drains.find(({ id }) => id === this.#candidate.id);
    candidacy.onWaiting({ kind: 'drained', untilUnixMs: drain?.untilUnixMs ?? 0 });
    return true;
  }

  #drainedMs(record: QueueRecord | undefined): number {
    const drain = record?.drains.find(({ id }) => id === this.#candidate.id);
    if (drain === undefined) return 0;
    const leftMs = drain.untilUnixMs - this.#scope.clock.wallMs();
    return Math.max(0, Math.min(leftMs, this.#scope.timing.pollEveryMs));
  }

  /** @throws ElectionEndedError */
  async #requireOpen(reading: RecordReading, signal: AbortSignal): Promise<void> {
    const { endMark } = this.#store;
    const ended =
      reading.record?.ended === true ||
      (endMark !== undefined &&
        (await this.#ask('reading', signal, (operation) => endMark.isSet(operation))));
    if (ended) throw new ElectionEndedError(this.#scope.election);
  }

  /** @throws StoreUnsuitableError */
  #requireRisingTokens(place: Place, record: QueueRecord | undefined): void {
    // The same: an announcement of ours has landed whose answer was lost.
    if (record === undefined || record.token < place.token) return;
    if (wasLastIn(this.#store, record, place)) return;
    throw tokensWentBack(this.#scope.election, record, place);
  }

  #read(signal: AbortSignal): Promise<RecordReading> {
    return this.#ask('reading', signal, (operation) => this.#store.read(operation));
  }

  #ask<T>(
    what: string,
    signal: AbortSignal,
    operation: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { clock, timing, election, onAnswer } = this.#scope;
    const name = `${what} in election "${election}"`;
    return bounded(clock, name, patienceMs(timing), signal, operation, onAnswer);
  }
}

/** Who waits enters again, and is told why it waits then. */
function placeLost(candidacy: Candidacy, once: boolean): 'out' {
  if (once) {
    const cause = new StoreUnavailableError('the place is gone, with its session or by hand');
    candidacy.onWaiting({ kind: 'unreachable', cause });
  }
  return 'out';
}

function cancelMark(line: Line): void {
  const { mark } = line;
  line.mark = undefined;
  if (mark !== 'set') mark?.cancel();
}
