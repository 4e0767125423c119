import { setMaxListeners } from 'node:events';
import type { Clock, Instant } from '../../base/clock.ts';
import { readClocks } from '../../base/clock.ts';
import { isIncurable, OperationTimeoutError, StoreUnavailableError } from '../../base/errors.ts';
import { bounded } from '../../base/wait.ts';
import type { Place, Presence, QueueSession } from './store.ts';

/** The findings of one proof. Nothing was learnt of a place that is in none of them. */
interface Findings {
  readonly there: Set<Place>;
  readonly gone: Set<Place>;
  /** Why a place could not be asked for. */
  readonly failed: Map<Place, unknown>;
}

/** One proof that is under way. */
interface Proof {
  readonly sentAt: Instant;
  /** By the places that the proof asks for. Never rejects. */
  readonly findings: ReadonlyMap<Place, Promise<Findings>>;
}

/** Of the places that lead, or of those that are next in line. */
type Share = 'terms' | 'next';

const known: Readonly<Record<Share, WeakMap<QueueSession, WeakMap<Clock, Confirmations>>>> = {
  terms: new WeakMap(),
  next: new WeakMap(),
};

/**
 * One proof for all terms of a session. The term that asks first pays for all, so the number of
 * transactions does not grow with the number of terms. A proof is as old as its sending, by the
 * clock of the terms that share it.
 */
export class Confirmations {
  readonly #session: QueueSession;
  readonly #share: Share;
  readonly #clock: Clock;
  /** The places of all terms, and when the request was sent that last proved each of them. */
  readonly #proved: Map<Place, Instant> = new Map();
  #current: Proof | undefined;

  /**
   * Terms that share a session and a clock share their confirmations. So do places that are next in
   * line, in proofs of their own: one that is gone costs the terms nothing.
   */
  static of(session: QueueSession, clock: Clock, share: Share = 'terms'): Confirmations {
    let byClock = known[share].get(session);
    if (byClock === undefined) {
      byClock = new WeakMap();
      known[share].set(session, byClock);
    }
    let shared = byClock.get(clock);
    if (shared === undefined) {
      shared = new Confirmations(session, clock, share);
      byClock.set(clock, shared);
    }
    return shared;
  }

  private constructor(session: QueueSession, clock: Clock, share: Share) {
    this.#session = session;
    this.#share = share;
    this.#clock = clock;
  }

  /** @param sentAt when the request was sent that proved the place the first time */
  add(place: Place, sentAt: Instant): void {
    this.#proved.set(place, sentAt);
  }

  delete(place: Place): void {
    this.#proved.delete(place);
  }

  /**
   * Rejects when nothing was learnt.
   * @param isWanted whether a proof that was sent then is new enough for the caller
   * @returns when the request was sent that proves that the place is there. Undefined when
   * it is gone
   */
  async confirm(
    place: Place,
    isWanted: (sentAt: Instant) => boolean,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<Instant | undefined> {
    if (this.#session.isOver(place)) return undefined;
    const proved = this.#proved.get(place);
    if (proved !== undefined && isWanted(proved)) return proved;
    const join = () => {
      const { sentAt, findings } = this.#current ?? {};
      const found = findings?.get(place);
      return found !== undefined && sentAt !== undefined && isWanted(sentAt)
        ? { sentAt, found }
        : undefined;
    };
    const begin = () => {
      const { sentAt, findings } = this.#prove(place, timeoutMs);
      return { sentAt, found: findings.get(place) as Promise<Findings> };
    };
    const joined = join();
    let proof = joined ?? begin();
    const found = await bounded(this.#clock, 'confirming', timeoutMs, signal, async () => {
      const first = await proof.found;
      if (joined === undefined || !(first.failed.get(place) instanceof OperationTimeoutError)) {
        return first;
      }
      // The term that began this proof gave it less time than we have. Others may have begun the
      // next one by now.
      const next = join();
      proof = next === undefined || next.found === joined.found ? begin() : next;
      return proof.found;
    });
    // The path may still be there, of a session that is over. That proves nothing.
    if (found.gone.has(place) || this.#session.isOver(place)) return undefined;
    if (found.there.has(place)) return proof.sentAt;
    throw found.failed.get(place);
  }

  #prove(asking: Place, timeoutMs: number): Proof {
    // A candidate that is about to win pays for itself alone. If a thousand of them win in one
    // moment, none asks for the places of all that have won before.
    const isOfTerm = this.#proved.has(asking);
    const places = [...(isOfTerm ? this.#proved.keys() : [asking])].filter(
      (place) => !this.#session.isOver(place),
    );
    // Read before the request, on both clocks: the proof holds for a time after this.
    const sentAt = readClocks(this.#clock);
    const findings = new Map<Place, Promise<Findings>>();
    const proof: Proof = { sentAt, findings };
    if (isOfTerm) this.#current = proof;
    const chunks: Promise<void>[] = [];
    for (let i = 0; i < places.length; i += this.#session.maxPlaces) {
      const chunk = places.slice(i, i + this.#session.maxPlaces);
      const found = this.#find(chunk, timeoutMs);
      for (const place of chunk) findings.set(place, found);
      chunks.push(found.then(({ there }) => this.#keep(there, sentAt)));
    }
    void Promise.all(chunks).then(() => {
      if (this.#current === proof) this.#current = undefined;
    });
    return proof;
  }

  #keep(there: ReadonlySet<Place>, sentAt: Instant): void {
    for (const place of there) {
      const before = this.#proved.get(place);
      // Proofs may overtake each other, and a place may have been given up meanwhile.
      if (before === undefined || this.#session.isOver(place)) continue;
      if (sentAt.monotonicMs > before.monotonicMs) this.#proved.set(place, sentAt);
    }
  }

  /** Learns what it can of these places in that time. Never rejects. */
  async #find(places: readonly Place[], timeoutMs: number): Promise<Findings> {
    const found: Findings = { there: new Set(), gone: new Set(), failed: new Map() };
    const { signal } = new AbortController();
    try {
      await bounded(this.#clock, 'confirming', timeoutMs, signal, (operation) => {
        // A call for each place may listen to it. Node would warn at the eleventh.
        setMaxListeners(0, operation);
        return this.#ask(places, found, operation);
      });
    } catch (error) {
      // A place that is next in line has no belief to lose.
      if (this.#share === 'terms') this.#session.leaveSilentServer?.(error);
      for (const place of places) {
        if (!found.there.has(place) && !found.gone.has(place)) found.failed.set(place, error);
      }
    }
    return found;
  }

  /**
   * Asks for all places in one transaction. A store may tell of only one that is gone. Then it asks
   * once more without that one, and from the second on in halves. So `n` places of which `k` are
   * gone cost at most `2k + 1` transactions, two if one is gone. At most `log2(n) + 3` of them run
   * one after the other. A missing right says nothing of any place. Each place with a missing right
   * costs at most `2 log2(n)`.
   */
  async #ask(
    places: readonly Place[],
    found: Findings,
    signal: AbortSignal,
    isAskedAgain = false,
  ): Promise<void> {
    let presence: Presence;
    try {
      presence = await this.#session.confirm(places, signal);
    } catch (error) {
      // A right that is missing on one place is no reason to lose the others.
      if (isIncurable(error) && places.length > 1) return this.#askHalves(places, found, signal);
      for (const place of places) found.failed.set(place, error);
      return;
    }
    const asked = new Set(places);
    for (const place of presence.there) if (asked.delete(place)) found.there.add(place);
    for (const place of presence.gone) if (asked.delete(place)) found.gone.add(place);
    if (asked.size === 0) return;
    const rest = [...asked];
    if (rest.length === places.length) {
      const error = new StoreUnavailableError('the store has told of none of these places');
      for (const place of places) found.failed.set(place, error);
      return;
    }
    return isAskedAgain
      ? this.#askHalves(rest, found, signal)
      : this.#ask(rest, found, signal, true);
  }

  async #askHalves(places: readonly Place[], found: Findings, signal: AbortSignal): Promise<void> {
    const middle = Math.ceil(places.length / 2);
    const halves = [places.slice(0, middle), places.slice(middle)].filter(
      ({ length }) => length > 0,
    );
    await Promise.all(halves.map((half) => this.#ask(half, found, signal, true)));
  }
}
