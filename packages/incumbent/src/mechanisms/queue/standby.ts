import { Belief } from '../../base/belief.ts';
import type { Instant } from '../../base/clock.ts';
import { Wakeup } from '../../base/wait.ts';
import type { QueueRecord } from '../../record/queue-record.ts';
import { askBounded } from './ask.ts';
import { requireQuorum } from './candidate-checks.ts';
import { Confirmations } from './confirmations.ts';
import type { QueueMemory } from './memory.ts';
import type { QueueParts } from './settings.ts';
import type { Entry, Place, SuccessorMark } from './store.ts';

/** How many nonces of one place are known as ours: late writes of more than that do not land. */
const mostDrawn = 64;

/** Our place, which is next in line. */
interface OwnPlace {
  readonly entry: Entry;
  readonly place: Place;
  /** As in the record. */
  readonly ready: false | undefined;
}

/** A confirmation that is young enough to lead by. */
export interface YoungProof {
  readonly sentAt: Instant;
  /** It has looked at the clocks since then. */
  readonly belief: Belief;
}

/**
 * The side of a candidate that the leader before it may name. While the candidate is next in line, its
 * place has a mark, and is confirmed as that of a leader. A mark is good for one connection to the
 * store: a copy of this process has another one, and so never leads by the same mark.
 */
export class Standby {
  readonly #parts: Pick<QueueParts<unknown>, 'store' | 'scope'>;
  readonly #memory: QueueMemory;
  readonly #own: OwnPlace;
  readonly #onLost: () => void;
  readonly #wakeup = new Wakeup();
  readonly #stopListening: () => void;
  /** The last nonces that were drawn for this place. */
  #drawn: readonly string[] = [];
  #mark: SuccessorMark | undefined;
  /** The nonce that is known to stand in the place. */
  #written: string | undefined;
  readonly #keeping = new AbortController();
  #proof: YoungProof | undefined;
  /** Confirmations must have been sent after this, by the monotonic clock. */
  #freshFromMs = Number.NEGATIVE_INFINITY;
  #isLost = false;
  #isLeft = false;

  /** @param onLost called when the place is found to be gone, or to be another process's as well */
  constructor(
    parts: Pick<QueueParts<unknown>, 'store' | 'scope'>,
    memory: QueueMemory,
    own: OwnPlace,
    onLost: () => void,
  ) {
    this.#parts = parts;
    this.#memory = memory;
    this.#own = own;
    this.#onLost = onLost;
    // Whatever the event: what comes after it comes over another connection.
    this.#stopListening = parts.store.session.onEvent((event) => {
      this.#drop(true);
      // The old mark may be named until there is another one.
      if (event === 'restored') this.#wakeup.raise();
      if (this.#isLeft) this.#stopListening();
    });
    void this.#keep();
  }

  /** The nonce with which the leader may name this place. Undefined: with none that counts. */
  get nonce(): string | undefined {
    return this.#mark?.nonce;
  }

  get isLost(): boolean {
    return this.#isLost;
  }

  /** @param record one that names our place */
  isNamedBy(record: QueueRecord): boolean {
    return record.nonce === this.#mark?.nonce;
  }

  /** The last confirmation, if the next one is not overdue. */
  get youngProof(): YoungProof | undefined {
    const { beliefMs, renewEveryMs, operationTimeoutMs } = this.#parts.scope.timing;
    const leftMs = this.#proof?.belief.remainingMs() ?? 0;
    return leftMs > 0 && leftMs >= beliefMs - renewEveryMs - operationTimeoutMs
      ? this.#proof
      : undefined;
  }

  /** The place is to be given up. Until it is, or the connection is lost, the mark stays good. */
  leave(): void {
    this.#keeping.abort();
    this.#isLeft = true;
  }

  /** The place leads, or is given up: no record will name it from now on. */
  close(): void {
    this.leave();
    this.#stopListening();
    this.#drop(false);
  }

  #draw(): SuccessorMark {
    const { uniqueId, timing } = this.#parts.scope;
    const { beliefMs, leaseMs } = timing;
    const mark = { nonce: uniqueId(), beliefMs, leaseMs, ready: this.#own.ready };
    this.#memory.addMark(mark.nonce);
    this.#drawn = [...this.#drawn, mark.nonce].slice(-mostDrawn);
    this.#mark = mark;
    return mark;
  }

  #drop(isForeign: boolean): void {
    const mark = this.#mark;
    this.#mark = undefined;
    this.#proof = undefined;
    this.#freshFromMs = this.#parts.scope.clock.monotonicMs();
    if (mark !== undefined) this.#memory.dropMark(mark.nonce, isForeign);
  }

  async #keep(): Promise<void> {
    const { store, scope } = this.#parts;
    const { place } = this.#own;
    const { signal } = this.#keeping;
    const { clock, timing, onTrouble } = scope;
    const confirmations = Confirmations.of(store.session, clock, 'next');
    let dueMs = Number.NEGATIVE_INFINITY;
    try {
      while (!signal.aborted) {
        try {
          const sentAt = await this.#confirm(confirmations, signal);
          if (signal.aborted) return;
          if (sentAt === undefined) {
            this.#isLost = true;
            this.#onLost();
            return;
          }
          dueMs = sentAt.monotonicMs + timing.renewEveryMs;
        } catch (error) {
          if (signal.aborted) return;
          onTrouble('confirming the next place', error);
          dueMs = clock.monotonicMs() + timing.renewEveryMs;
        }
        const waitMs = dueMs - clock.monotonicMs();
        await this.#wakeup.wait(clock, waitMs, signal, true).catch(() => {});
      }
    } finally {
      confirmations.delete(place);
    }
  }

  /** @returns undefined when the place is gone, or another process has it as well */
  async #confirm(confirmations: Confirmations, signal: AbortSignal): Promise<Instant | undefined> {
    const { store, scope } = this.#parts;
    const { entry, place } = this.#own;
    requireQuorum(store.session);
    const mark = this.#mark ?? this.#draw();
    if (this.#written !== mark.nonce) {
      const isOurs = (nonce: string) => this.#drawn.includes(nonce);
      const isMarked = await askBounded(scope, 'marking a place', signal, async (operation) =>
        store.succession?.mark(place, { ...entry, mark }, isOurs, operation),
      );
      if (isMarked !== true) return undefined;
      this.#written = mark.nonce;
    }
    const fromMs = this.#proof?.sentAt.monotonicMs ?? this.#freshFromMs;
    const sentAt = await confirmations.confirm(
      place,
      ({ monotonicMs }) => monotonicMs > fromMs,
      scope.timing.operationTimeoutMs,
      signal,
    );
    if (sentAt === undefined || signal.aborted) return sentAt;
    confirmations.add(place, sentAt);
    // The connection was lost meanwhile.
    if (mark !== this.#mark) return sentAt;
    const belief = this.#proof?.belief;
    const isExtended = belief?.extend(sentAt) === true;
    const { clock, timing } = scope;
    this.#proof = {
      sentAt,
      belief: isExtended ? (belief as Belief) : new Belief(clock, timing.beliefMs, sentAt),
    };
    return sentAt;
  }
}
