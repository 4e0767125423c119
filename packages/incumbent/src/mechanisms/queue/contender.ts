import type { CandidateInfo } from '../../base/candidate.ts';
import { readClocks } from '../../base/clock.ts';
import { ElectionEndedError, isIncurable, StoreUnavailableError } from '../../base/errors.ts';
import type { NotElectedReason } from '../../base/not-elected.ts';
import { sleep, Wakeup } from '../../base/wait.ts';
import { Attempts } from '../../core/attempts.ts';
import { backoffMs } from '../../core/backoff.ts';
import type { Candidacy, SeatState } from '../../core/contest.ts';
import type { QueueRecord } from '../../record/queue-record.ts';
import { drainOf, electedSince, termsOf } from '../../record/record.ts';
import { requireSeatsOf } from '../../record/seat-count.ts';
import { unfencedAfter } from '../../record/transitions.ts';
import type { Contender, Verdict } from '../contend.ts';
import { announcedRecord } from './announcement.ts';
import { askBounded } from './ask.ts';
import {
  confirmNow,
  firstMember,
  makeGuard,
  requireQuorum,
  tokensWentBack,
} from './candidate-checks.ts';
import type { Closed } from './closed.ts';
import type { Look, QueueMemory } from './memory.ts';
import { isLeadingIn, wasLastIn } from './named-places.ts';
import type { WonPlace } from './seat.ts';
import { QueueSeat } from './seat.ts';
import type { QueueParts } from './settings.ts';
import { Standby } from './standby.ts';
import type { CommitResult, Entry, Place, RecordReading, Watched } from './store.ts';
import { withoutNaming } from './successor.ts';

/** One campaign: which candidate wants the seat, and how long it waits. */
export interface Campaign {
  readonly candidate: CandidateInfo;
  readonly candidacy: Candidacy;
  /** True: it does not wait for others. */
  readonly once: boolean;
  readonly signal: AbortSignal;
}

/** A candidate's part of the queue while it campaigns. */
interface Line {
  readonly entry: Entry;
  place: Place | undefined;
  /** Tells when our own place is gone. */
  own: Watched<boolean> | undefined;
  /** Tells when the election is over, in layouts that mark the end. */
  mark: Watched<boolean> | 'set' | undefined;
  readonly attempts: Attempts;
  /** Once we are next in line. Undefined: the leader before us is not to name us. */
  standby: Standby | undefined;
  /** The record as it stood when an announcement was sent that had no answer (yet). */
  found: RecordReading | undefined;
  /** The time since which we have been first, monotonic. */
  firstSinceMs: number | undefined;
  /** The record that a candidate that does not wait found first. */
  readonly foundFirst: QueueRecord | undefined;
}

/** How one step ends. `out`: the place is to be given up. */
type Step<Guard> = Verdict<QueueSeat<Guard>> | 'out';

/** When the place was confirmed as ours, and the state that the record shows of us. */
type Proof = Pick<WonPlace<unknown>, 'sentAt' | 'belief' | 'shown' | 'version'>;

/** Look at the store again at once. */
const again = { kind: 'wait', ms: 0 } as const;

/**
 * One campaign's way through the queue: enter, watch the place before, be the first and
 * win, or leave.
 */
export class QueueContender<Guard> implements Contender<QueueSeat<Guard>> {
  readonly #parts: QueueParts<Guard>;
  readonly #memory: QueueMemory;
  readonly #campaign: Campaign;
  readonly #wakeup = new Wakeup();
  readonly #stopListening: () => void;
  #isPausing = false;
  #line: Line | undefined;
  #exits = 0;

  constructor(parts: QueueParts<Guard>, memory: QueueMemory, campaign: Campaign) {
    this.#parts = parts;
    this.#memory = memory;
    this.#campaign = campaign;
    this.#stopListening = parts.store.session.onEvent((event) => {
      // Watches live on over a reconnection. Only failed calls are to be tried again at once.
      if (event === 'over' || (event === 'restored' && this.#isPausing)) this.#wakeup.raise();
    });
  }

  async attempt(): Promise<Verdict<QueueSeat<Guard>>> {
    const { once } = this.#campaign;
    this.#line ??= await this.#enter();
    const line = this.#line;
    if (line === undefined) return once ? { kind: 'refused' } : this.#outside();
    this.#wakeup.clear();
    const step = await this.#step(line);
    if (step !== 'out') return step;
    this.#requireUnmarked(line);
    await this.#leave(line);
    this.#line = undefined;
    if (once) return { kind: 'refused' };
    // One exit is an operator's request or the end of a session. Many in a row must not make
    // the loop hot.
    this.#exits += 1;
    const { scope } = this.#parts;
    return { kind: 'wait', ms: this.#exits > 1 ? backoffMs(scope, this.#exits - 1) : 0 };
  }

  async pause(ms: number): Promise<void> {
    this.#isPausing = true;
    await this.#wakeup.wait(this.#parts.scope.clock, ms, this.#campaign.signal);
    this.#isPausing = false;
  }

  bearsFailure(): boolean {
    return !this.#campaign.once;
  }

  async leave(hasWon: boolean): Promise<void> {
    this.#stopListening();
    if (this.#line === undefined) return;
    if (hasWon) cancelMark(this.#line);
    else await this.#leave(this.#line);
  }

  // --- getting in line, and out of it ---

  /**
   * Gets in line. Undefined when this candidate is to stay out for now. Also undefined when it does
   * not wait and others are there already.
   */
  async #enter(): Promise<Line | undefined> {
    const { store, scope } = this.#parts;
    const { candidate, candidacy, once } = this.#campaign;
    const look = await this.#look();
    const { reading, names } = look;
    await this.#requireOpen(reading);
    // GoLea deletes the mark of the end together with the election.
    if (this.#exits > 0 && store.endMark !== undefined && reading.version === undefined) {
      throw new ElectionEndedError(scope.election);
    }
    if (this.#isDrained(reading.record)) return undefined;
    if (once && names.length > 0) {
      const why = await this.#whoLeads(look);
      if (why !== undefined) candidacy.onWaiting(why);
      return undefined;
    }
    return {
      entry: { guid: scope.uniqueId(), candidate },
      place: undefined,
      own: undefined,
      mark: undefined,
      attempts: new Attempts(this.#memory.own, candidacy),
      standby: undefined,
      found: undefined,
      firstSinceMs: undefined,
      foundFirst: once ? reading.record : undefined,
    };
  }

  #standBy(entry: Entry, place: Place): Standby | undefined {
    const { store, settings } = this.#parts;
    const { candidacy, once } = this.#campaign;
    const isUnusual = once || settings.delayAfterWinMs > 0 || !settings.waitsForPredecessor;
    if (store.succession === undefined || isUnusual) return undefined;
    const { ready } = candidacy.stateAtWin([]);
    const own = { entry, place, ready };
    return new Standby(this.#parts, this.#memory, own, () => this.#wakeup.raise());
  }

  /** How long a candidate waits that is to stay out. It may be let in sooner. */
  async #outside(): Promise<Verdict<never>> {
    const { clock, timing } = this.#parts.scope;
    const read = (operation: AbortSignal) => this.#parts.store.read(operation);
    const { record } = await this.#ask('reading', read);
    const wallMs = clock.wallMs();
    const drain = drainOf(record, this.#campaign.candidate.id, wallMs);
    const ms = drain === undefined ? 0 : drain.untilUnixMs - wallMs;
    return { kind: 'wait', ms: Math.min(ms, timing.pollEveryMs) };
  }

  async #leave(line: Line): Promise<void> {
    line.own?.cancel();
    cancelMark(line);
    const { entry, place, found, attempts, standby } = line;
    standby?.leave();
    const mark = standby?.nonce;
    // The caller is told that this candidate does not lead. No record must say otherwise: neither its
    // own announcement, nor one by which the leader names it.
    const isPending = found !== undefined || mark !== undefined;
    const pending =
      place !== undefined && isPending
        ? { place, before: found?.record, attempts, mark }
        : undefined;
    if (await this.#parts.leftovers.leave(entry, place, pending)) standby?.close();
  }

  // --- in line ---

  async #step(line: Line): Promise<Step<Guard>> {
    const { store } = this.#parts;
    const { candidacy, once } = this.#campaign;
    // Watched before there is a place, so that an end that is marked after that is noticed.
    await this.#watchMark(line);
    line.place ??= await this.#ask('entering', (operation) => store.enter(line.entry, operation));
    const { place, standby } = line;
    if (store.session.isOver(place) || standby?.isLost === true) return this.#placeLost();
    const look = await this.#look();
    const index = look.names.indexOf(place.name);
    await this.#requireOpen(look.reading);
    // An operator deleted it, or it went with its session. Its name is never used again.
    if (index < 0 || store.session.isOver(place)) return this.#placeLost();
    // Where names come again, the one in the list may be another candidate's.
    const { isSame } = store;
    if (isSame !== undefined) {
      const isOurs = await this.#ask('looking', (operation) => isSame(place, operation));
      if (!isOurs) return this.#placeLost();
    }
    if (this.#isDrained(look.reading.record)) return 'out';
    const why = index > 0 ? await this.#whoLeads(look) : undefined;
    candidacy.onQueuePosition({ place: place.name, following: look.names[index - 1] }, why);
    if (index === 0) return this.#first(line, place, look);
    line.firstSinceMs = undefined;
    this.#memory.seeSomebodyBefore();
    if (index === 1) line.standby ??= this.#standBy(line.entry, place);
    return once ? 'out' : this.#behind(line, place, look.names[index - 1] as string);
  }

  /** A function of its own: its closure keeps nothing else for as long as the candidate waits. */
  #behind(line: Line, place: Place, before: string): Verdict<never> {
    return { kind: 'behind', until: () => this.#waitBehind(line, place, before) };
  }

  /** Waits until something has happened to the place before us, or to our own. */
  async #waitBehind(line: Line, place: Place, before: string): Promise<void> {
    const { clock, random } = this.#parts.scope;
    const { recheckMs } = this.#parts.settings;
    for (;;) {
      const watching = this.#watchPlace(before);
      // This may fail while our own place is waited for. The code below awaits it and
      // sees the error.
      watching.catch(() => {});
      let isThere: boolean;
      try {
        isThere = await this.#watchOwn(line, place);
      } catch (error) {
        void watching.then((watched) => watched.cancel()).catch(() => {});
        throw error;
      }
      const watched = await watching;
      let live = true;
      try {
        // The place was gone before it could be watched. Never assume that we are next.
        if (!isThere || !watched.value) return;
        void watched.changed.then(() => {
          if (live) this.#wakeup.raise();
        });
        const waitMs = recheckMs * (1 - 0.1 * random());
        if (await this.#wakeup.wait(clock, waitMs, this.#campaign.signal)) return;
        // Nothing was heard for long, so look whether a notification was lost.
        line.own?.cancel();
        line.own = undefined;
      } finally {
        live = false;
        watched.cancel();
      }
    }
  }

  #watchPlace(name: string): Promise<Watched<boolean>> {
    return this.#ask('watching', (operation) => this.#parts.store.watchPlace(name, operation));
  }

  /**
   * From now on the end of our own place wakes us up.
   * @returns true when our own place is there
   */
  async #watchOwn(line: Line, place: Place): Promise<boolean> {
    if (line.own !== undefined) return true;
    const watched = await this.#watchPlace(place.name);
    if (!watched.value) {
      watched.cancel();
      return false;
    }
    line.own = watched;
    void watched.changed.then(() => {
      if (line.own !== watched) return;
      line.own = undefined;
      this.#wakeup.raise();
    });
    return true;
  }

  // --- being the first ---

  async #first(line: Line, place: Place, look: Look): Promise<Step<Guard>> {
    const { candidate, candidacy, once } = this.#campaign;
    line.firstSinceMs ??= look.atMs;
    const closed = this.#memory.closedTo(candidate.id, look);
    if (closed !== undefined) {
      const yields = await this.#yields(closed, look);
      candidacy.onWaiting(closed.why);
      if (yields) return 'out';
      await this.#watchOwn(line, place);
      if (once) return 'out';
      return { kind: 'wait', ms: Math.min(closed.leftMs, this.#parts.scope.timing.pollEveryMs) };
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
    return this.#win(line, place, look);
  }

  /** True when a candidate behind us is to have the seat. */
  async #yields({ why }: Closed, { names }: Look): Promise<boolean> {
    if (why.kind !== 'reserved' || why.for === undefined || names.length === 1) return false;
    const { store } = this.#parts;
    const members = await this.#ask('listing', (operation) => store.members(operation));
    return members.some(({ candidate }) => candidate.id === why.for);
  }

  /**
   * The place is ours and the first. With a clean predecessor one transaction does it all.
   * Otherwise the seat is confirmed now, and announced when it has waited.
   */
  async #win(line: Line, place: Place, look: Look): Promise<Step<Guard>> {
    const { store, scope, settings } = this.#parts;
    const { own } = this.#memory;
    const { record, isForeign = false } = look.reading;
    // The same token: an announcement of ours has landed whose answer was lost.
    if (record !== undefined && record.token >= place.token && !wasLastIn(store, record, place)) {
      throw tokensWentBack(scope.election, record, place);
    }
    const guard = makeGuard(settings.guard, place);
    const isNamed = isLeadingIn(store, record, place);
    // The record names us, because an announcement has landed whose answer was lost.
    const isOurs = isNamed && own.wrote(record);
    // Or it names us because a copy of this process has our place too, and leads from it.
    if (isNamed && !isOurs) return this.#placeLost();
    // The leader before us may have named us, in the transaction that ended its own term.
    const found =
      isNamed && line.standby?.isNamedBy(record)
        ? { ...look.reading, record: withoutNaming(record) }
        : ((isOurs ? line.found : undefined) ?? look.reading);
    const unfenced = unfencedAfter(record, own.wrote(record));
    const waitMs = this.#memory.waitMs(place, look, line.firstSinceMs ?? look.atMs);
    const asked = this.#campaign.candidacy.stateAtWin(unfenced);
    // Written only when the wait is over. Until then the record goes on naming the predecessor. If
    // we die meanwhile, our successor has to wait as well.
    const state = waitMs > 0 ? { ...asked, announced: false } : asked;
    let proof: Proof;
    if (state.announced && !isForeign && !isOurs) {
      const announced = await this.#announce(line, place, look.reading, state);
      if (announced === 'gone') return this.#placeLost();
      if (announced === 'again') return again;
      proof = announced;
    } else {
      const proved = await this.#prove(line, place, look.reading, state);
      if (proved === undefined) return this.#placeLost();
      proof = proved;
    }
    // The mark may have come during the win. The seat's own watch would not tell of it again.
    this.#requireUnmarked(line);
    line.standby?.close();
    const seat = new QueueSeat<Guard>(this.#parts, {
      ...proof,
      entry: line.entry,
      place,
      next: look.names[1],
      own: line.own,
      guard,
      state,
      found,
      attempts: line.attempts,
      unfenced: state.announced ? [] : unfenced,
      waitMs: Math.max(0, waitMs - (scope.clock.monotonicMs() - look.atMs)),
    });
    return { kind: 'won', seat };
  }

  /**
   * Proves that the place is there, without a write of the record.
   * @returns undefined when the place is gone, or may be another process's
   */
  async #prove(
    { standby, attempts }: Line,
    place: Place,
    { record, version }: RecordReading,
    state: SeatState,
  ): Promise<Proof | undefined> {
    const { store, scope } = this.#parts;
    const confirm = () => confirmNow(store.session, scope, place, this.#campaign.signal);
    const shown = isLeadingIn(store, record, place) ? record : undefined;
    if (shown === undefined || standby?.isNamedBy(shown) !== true) {
      const sentAt = await confirm();
      return sentAt && { sentAt, shown, version };
    }
    const { request, revoked } = shown.holding;
    const young = request === undefined && !revoked ? standby.youngProof : undefined;
    const sentAt = young?.sentAt ?? (await confirm());
    // If the connection was lost meanwhile, a copy of this process may lead by the same mark.
    if (sentAt === undefined || !standby.isNamedBy(shown)) return undefined;
    attempts.add(shown, { sentAt, state });
    return { sentAt, shown, version, ...(young && { belief: young.belief }) };
  }

  async #announce(
    line: Line,
    place: Place,
    reading: RecordReading,
    state: SeatState,
  ): Promise<Proof | 'gone' | 'again'> {
    const { store, scope } = this.#parts;
    const { candidate } = line.entry;
    const next = announcedRecord(store, scope, reading.record, { candidate, place, state });
    const sentAt = readClocks(scope.clock);
    line.attempts.add(next, { sentAt, state });
    line.found = reading;
    let result: CommitResult;
    try {
      // A stop does not cut this short: the place is given back after the answer.
      const { signal } = new AbortController();
      result = await askBounded(scope, 'announcing', signal, (operation) =>
        store.commit(place, next, reading.version, operation),
      );
    } catch (error) {
      const { candidacy, signal } = this.#campaign;
      signal.throwIfAborted();
      if (isIncurable(error)) throw error;
      // The write may have landed. Then the next look finds our place in the record.
      scope.onTrouble('announcing', error);
      candidacy.onWaiting({ kind: 'unreachable', cause: error });
      await sleep(scope.clock, scope.timing.retryBackoffMs, signal);
      return 'again';
    }
    if (result.outcome !== 'ok') return result.outcome === 'gone' ? 'gone' : 'again';
    return { sentAt, shown: next, version: result.version };
  }

  /** A candidate that waits enters again, and is told then why it waits. */
  #placeLost(): 'out' {
    const { candidacy, once } = this.#campaign;
    if (once) {
      const cause = new StoreUnavailableError('the place is gone, with its session or by hand');
      candidacy.onWaiting({ kind: 'unreachable', cause });
    }
    return 'out';
  }

  // --- answers of the store ---

  async #look(): Promise<Look> {
    const { store, scope } = this.#parts;
    requireQuorum(store.session);
    const { reading, names } = await this.#ask('looking', (operation) => store.look(operation));
    requireQuorum(store.session);
    const seen = this.#memory.withoutOwnNaming(reading, this.#line?.place);
    const look = { reading: seen, names, atMs: scope.clock.monotonicMs() };
    this.#memory.see(look);
    return look;
  }

  /**
   * The candidate before us: the leader in the record, or else the first in line, which is
   * about to lead.
   */
  async #whoLeads({ names, reading: { record } }: Look): Promise<NotElectedReason | undefined> {
    if (record?.holding !== undefined && !this.#memory.isLeaderGone) {
      return { kind: 'led', id: record.holding.candidate.id, token: record.token };
    }
    if (names.length === 0) return undefined;
    return firstMember(this.#parts, this.#campaign.signal);
  }

  #isDrained(record: QueueRecord | undefined): boolean {
    const drain = drainOf(record, this.#campaign.candidate.id, this.#parts.scope.clock.wallMs());
    if (drain === undefined) return false;
    this.#campaign.candidacy.onWaiting({ kind: 'drained', untilUnixMs: drain.untilUnixMs });
    return true;
  }

  /** @throws ElectionEndedError, InvalidOptionError */
  async #requireOpen({ record }: RecordReading): Promise<void> {
    const { store, scope } = this.#parts;
    requireSeatsOf(record, scope.election, scope.seats);
    const { endMark } = store;
    const ended =
      record?.ended === true ||
      (endMark !== undefined &&
        (await this.#ask('reading', (operation) => endMark.isSet(operation))));
    if (ended) throw new ElectionEndedError(scope.election);
  }

  /**
   * GoLea gives candidates a fifth of a second to leave, and then deletes election and mark
   * together. So it counts that the mark was set, even when it is gone again.
   * @throws ElectionEndedError
   */
  async #watchMark(line: Line): Promise<void> {
    const { endMark } = this.#parts.store;
    if (endMark === undefined) return;
    if (line.mark === undefined) {
      const watched = await this.#ask('watching', (operation) => endMark.watch(operation));
      line.mark = watched.value ? 'set' : watched;
      if (watched.value) watched.cancel();
      void watched.changed.then((isSet) => {
        if (line.mark !== watched) return;
        line.mark = isSet ? 'set' : undefined;
        this.#wakeup.raise();
      });
    }
    this.#requireUnmarked(line);
  }

  /** @throws ElectionEndedError */
  #requireUnmarked({ mark }: Line): void {
    if (mark === 'set') throw new ElectionEndedError(this.#parts.scope.election);
  }

  #ask<T>(what: string, operation: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return askBounded(this.#parts.scope, what, this.#campaign.signal, operation);
  }
}

function cancelMark(line: Line): void {
  const { mark } = line;
  line.mark = undefined;
  if (mark !== 'set') mark?.cancel();
}
