import { setMaxListeners } from 'node:events';
import type { Clock, Instant } from '../clock.ts';
import { readClocks } from '../clock.ts';
import { isIncurable, StoreUnavailableError } from '../errors.ts';
import { bounded } from '../wait.ts';
import type { Place, QueueSession } from './store.ts';

/** One proof that is under way. */
interface Proof {
  readonly sentAt: Instant;
  /** What it covers. */
  readonly places: ReadonlySet<Place>;
  /** Which of them were not there; the others were. */
  readonly gone: Promise<ReadonlySet<Place>>;
}

const known = new WeakMap<QueueSession, WeakMap<Clock, Confirmations>>();

/**
 * One proof for all terms of a session: whoever asks first pays for everybody, so that the number of
 * transactions does not grow with the number of terms. A proof is as old as its sending, by the
 * clock of those who share it.
 */
export class Confirmations {
  readonly #session: QueueSession;
  readonly #clock: Clock;
  /** The places of all terms, and when the request was sent that proved each last. */
  readonly #proved: Map<Place, Instant> = new Map();
  #current: Proof | undefined;

  /** Those who share a session and a clock share their confirmations. */
  static of(session: QueueSession, clock: Clock): Confirmations {
    let byClock = known.get(session);
    if (byClock === undefined) {
      byClock = new WeakMap();
      known.set(session, byClock);
    }
    let shared = byClock.get(clock);
    if (shared === undefined) {
      shared = new Confirmations(session, clock);
      byClock.set(clock, shared);
    }
    return shared;
  }

  private constructor(session: QueueSession, clock: Clock) {
    this.#session = session;
    this.#clock = clock;
  }

  /** @param sentAt when the request was sent that proved it the first time */
  add(place: Place, sentAt: Instant): void {
    this.#proved.set(place, sentAt);
  }

  delete(place: Place): void {
    this.#proved.delete(place);
  }

  /**
   * @param isWanted whether a proof that was sent then is new enough for the asker
   * @returns when the request was sent that proves that the place is there; undefined when it is not.
   *   Rejects when nothing was learnt
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
    let proof = this.#current;
    if (proof === undefined || !isWanted(proof.sentAt) || !proof.places.has(place)) {
      proof = this.#prove(place, timeoutMs);
    }
    const { gone, sentAt } = proof;
    const missing = await bounded(this.#clock, 'confirming', timeoutMs, signal, () => gone);
    // The path may be there still, of a session that is over: that proves nothing.
    if (missing.has(place) || this.#session.isOver(place)) return undefined;
    return sentAt;
  }

  #prove(asking: Place, timeoutMs: number): Proof {
    const places = new Set([...this.#proved.keys(), asking]);
    for (const place of places) if (this.#session.isOver(place)) places.delete(place);
    // Before the request, on both clocks: whatever it proves was true after this.
    const sentAt = readClocks(this.#clock);
    const proof: Proof = { sentAt, places, gone: this.#ask([...places], timeoutMs) };
    this.#current = proof;
    const finish = () => {
      if (this.#current === proof) this.#current = undefined;
    };
    proof.gone.then((gone) => {
      finish();
      for (const place of places) {
        const before = this.#proved.get(place);
        // Proofs may overtake each other; and a place may have been given up meanwhile.
        if (before === undefined || gone.has(place) || this.#session.isOver(place)) continue;
        if (sentAt.monotonicMs > before.monotonicMs) this.#proved.set(place, sentAt);
      }
    }, finish);
    return proof;
  }

  /** @returns those that are not there */
  #ask(places: readonly Place[], timeoutMs: number): Promise<ReadonlySet<Place>> {
    return bounded(
      this.#clock,
      'confirming',
      timeoutMs,
      new AbortController().signal,
      async (signal) => {
        // A call for each place may listen to it; Node would warn at the eleventh.
        setMaxListeners(0, signal);
        const chunks: Place[][] = [];
        for (let i = 0; i < places.length; i += this.#session.maxPlaces) {
          chunks.push(places.slice(i, i + this.#session.maxPlaces));
        }
        const gone = await Promise.all(chunks.map((chunk) => this.#askChunk(chunk, signal)));
        return new Set(gone.flat());
      },
    );
  }

  async #askChunk(places: readonly Place[], signal: AbortSignal): Promise<readonly Place[]> {
    let first: Place | undefined;
    try {
      first = await this.#session.confirm(places, signal);
      if (first === undefined) return [];
    } catch (error) {
      // A right that is missing on one place is no reason to lose the others.
      if (!isIncurable(error) || places.length === 1) throw error;
    }
    // Nothing is known of the others: ask for each, or one that is gone would cost all their terms.
    const others = places.filter((place) => place !== first);
    const answers = await Promise.allSettled(
      others.map((place) => this.#session.confirm([place], signal)),
    );
    const gone = first === undefined ? [] : [first];
    for (const [index, answer] of answers.entries()) {
      if (answer.status === 'fulfilled') {
        if (answer.value !== undefined) gone.push(answer.value);
      } else if (isIncurable(answer.reason)) {
        // It cannot be confirmed, now or later.
        gone.push(others[index] as Place);
      } else {
        throw new StoreUnavailableError('a place could not be confirmed', { cause: answer.reason });
      }
    }
    return gone;
  }
}
