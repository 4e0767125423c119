import { StoreUnavailableError } from '../../base/errors.ts';
import type { NotElectedReason } from '../../base/not-elected.ts';
import type { Scope } from '../../core/contest.ts';
import type { LeaseRecord } from '../../record/lease-record.ts';
import type { Terms } from '../../record/record.ts';
import { electedSince, termsOf } from '../../record/record.ts';

/** How often it tries on a record that another candidate has moved without being elected. */
const mostAttempts = 10;

/** The answer to the present record: an attempt now, or another look in `ms`, and why. */
export type Decision = 'attempt' | { readonly ms: number; readonly why: NotElectedReason };

/**
 * A candidate that does not wait for others. It waits for a store that settles, within a bound.
 * Many candidates of this kind may have begun at the same instant, and one of them is to win.
 */
export class TryOnce {
  readonly #scope: Scope;
  readonly #settles: boolean;
  #found: Terms | undefined;
  /** Until then it bears that the store is away or settles, monotonic. */
  #untilMs = Number.NEGATIVE_INFINITY;
  #attempts = 0;

  constructor(scope: Scope, settles: boolean) {
    this.#scope = scope;
    this.#settles = settles;
  }

  /** Why it goes no further. Undefined when it does. */
  refusal(record: LeaseRecord | undefined, decision: Decision): NotElectedReason | undefined {
    const { clock, timing } = this.#scope;
    const now = termsOf(record);
    this.#found ??= now;
    const why = decision === 'attempt' ? undefined : decision.why;
    if (why !== undefined && why.kind !== 'settling') return why;
    // Another candidate did the job while this one waited.
    const elected = electedSince(this.#found, now);
    if (elected !== undefined || why === undefined) return elected;
    if (!this.#settles) return why;
    const nowMs = clock.monotonicMs();
    if (this.#untilMs === Number.NEGATIVE_INFINITY) {
      const leftMs = why.untilUnixMs - clock.wallMs();
      this.#untilMs = nowMs + leftMs + 3 * timing.operationTimeoutMs;
    }
    return nowMs < this.#untilMs ? undefined : why;
  }

  /** True when it asks again after a failure. It is patient only with a store that settles. */
  bearsFailure(): boolean {
    return this.#scope.clock.monotonicMs() < this.#untilMs;
  }

  /** Why it does not try again, although the record has moved under an attempt. */
  attemptFailed(): NotElectedReason | undefined {
    this.#attempts += 1;
    if (this.#attempts < mostAttempts) return undefined;
    const cause = new StoreUnavailableError(
      `the record changed under each of ${mostAttempts} attempts`,
    );
    return { kind: 'unreachable', cause };
  }
}
