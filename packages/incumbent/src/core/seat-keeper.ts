import type { Instant } from '../base/clock.ts';
import { Wakeup } from '../base/wait.ts';
import type { Scope, Seat } from './contest.ts';
import type { DiagnosticSource } from './diagnostics.ts';
import { publish } from './diagnostics.ts';
import type { Term } from './term.ts';
import type { TermEvent } from './term-machine.ts';
import type { ToldBelief } from './told-belief.ts';
import type { WantedState } from './wanted-state.ts';

/** The term whose seat is kept. */
export interface KeptTerm {
  readonly term: DiagnosticSource & Pick<Term, 'token'>;
  readonly scope: Scope;
  readonly belief: ToldBelief;
  readonly wanted: WantedState;
  /** False: its seat is not to be confirmed any more. */
  readonly isKept: () => boolean;
  readonly tell: (event: TermEvent) => void;
  /** Looks at the clocks. The timer that does so may be late, or set for what they said before. */
  readonly look: () => void;
}

/**
 * Confirms a seat again and again, and makes the record show the wanted state, until it is not kept
 * any more.
 */
export class SeatKeeper<Guard> {
  /** Never rejects. */
  readonly ended: Promise<void>;
  readonly #seat: Seat<Guard>;
  readonly #of: KeptTerm;
  readonly #wakeup = new Wakeup();
  /** The confirmation that is under way. */
  #operation: AbortController | undefined;
  #confirmedAt: Instant;

  constructor(seat: Seat<Guard>, of: KeptTerm) {
    this.#seat = seat;
    this.#of = of;
    this.#confirmedAt = seat.sentAt;
    this.ended = this.#keep();
  }

  /** There is something to find out, or to show, at once. */
  wake(): void {
    this.#wakeup.raise();
  }

  /** Stops confirming. A renewal after this would only make the other candidates wait longer. */
  stop(): void {
    this.#operation?.abort();
    this.#wakeup.raise();
  }

  async #keep(): Promise<void> {
    const { scope, wanted, isKept, look } = this.#of;
    const { clock, timing } = scope;
    let dueMs = this.#confirmedAt.monotonicMs + timing.renewEveryMs;
    try {
      while (isKept()) {
        await this.#wakeup.wait(clock, dueMs - clock.monotonicMs());
        look();
        if (!isKept()) break;
        const asked = wanted.revision;
        if (!(await this.#confirm(asked)) || !wanted.shows(asked)) {
          // Nothing was learnt, or the seat is ours and the record cannot be made to say more.
          dueMs = clock.monotonicMs() + timing.retryBackoffMs;
        } else {
          // Counts from the sending: a shared confirmation may be older than our request for it. A
          // state that was wanted meanwhile does not wait for that, because every change has raised
          // the wake-up.
          dueMs = this.#confirmedAt.monotonicMs + timing.renewEveryMs;
        }
      }
    } catch (error) {
      // A defect of ours. The belief runs out.
      scope.onTrouble('keeping a term', error);
    }
  }

  /**
   * Asks for one confirmation.
   * @returns true when it arrived
   */
  async #confirm(revision: number): Promise<boolean> {
    const { term, scope, belief, wanted, isKept, tell, look } = this.#of;
    const { token } = term;
    const sentMs = scope.clock.monotonicMs();
    let error: unknown;
    const operation = new AbortController();
    this.#operation = operation;
    try {
      const confirmation = await this.#seat.confirm(wanted.state, operation.signal);
      if (confirmation.outcome === 'lost') {
        const { reason, endsBelief } = confirmation;
        tell({ on: 'lost', reason, ...(endsBelief === undefined ? {} : { endsBelief }) });
        return false;
      }
      if (confirmation.outcome === 'confirmed') {
        if (isKept() && !belief.extend(confirmation.sentAt))
          tell({ on: 'lost', reason: 'stalled' });
        if (!isKept()) return false;
        this.#confirmedAt = confirmation.sentAt;
        scope.onAnswer?.(true);
        tell({ on: 'confirmed' });
        if (confirmation.state === wanted.state) wanted.onShown(revision);
        const elapsedMs = scope.clock.monotonicMs() - sentMs;
        publish('incumbent:confirmed', term, {
          token,
          elapsedMs,
          remainingMs: belief.remainingMs(),
        });
        return true;
      }
    } catch (thrown) {
      if (operation.signal.aborted) return false;
      error = thrown;
    } finally {
      this.#operation = undefined;
    }
    if (error !== undefined) {
      scope.onAnswer?.(false);
      scope.onTrouble('confirming the term', error);
    }
    tell({ on: 'unconfirmed' });
    publish('incumbent:unconfirmed', term, { token, remainingMs: belief.remainingMs(), error });
    look();
    return false;
  }
}
