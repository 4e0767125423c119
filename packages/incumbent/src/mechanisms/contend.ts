/**
 * The one loop in which a candidate contends for a seat: try, and then wait, back off or leave. The
 * mechanism makes an attempt. This loop decides what follows from its verdict.
 */
import { isIncurable } from '../base/errors.ts';
import { backoffMs } from '../core/backoff.ts';
import type { Candidacy, Scope } from '../core/contest.ts';

/** The verdict of one attempt. */
export type Verdict<Seat> =
  | { readonly kind: 'won'; readonly seat: Seat }
  /** The store has answered as expected. Try again after `ms`, or when something happens. */
  | { readonly kind: 'wait'; readonly ms: number }
  /**
   * Another candidate is before us. Try again when `until` resolves. The loop waits for that, and
   * not the attempt: another async function would cost half a KiB for each candidate that waits.
   */
  | { readonly kind: 'behind'; readonly until: () => Promise<unknown> }
  /**
   * Nothing has changed, for an unknown reason. Try again at once the first time, then
   * at growing intervals.
   */
  | { readonly kind: 'unchanged' }
  /** The attempt has reported its reason. Trying again must not make the loop hot. */
  | { readonly kind: 'failed' }
  /** A candidate that does not wait was told why it is not elected. */
  | { readonly kind: 'refused' };

/** The side of the mechanism, for one campaign. */
export interface Contender<Seat> {
  attempt(): Promise<Verdict<Seat>>;
  /**
   * Waits for `ms`, or until something happens.
   * @param hasFailed true after a failed attempt
   */
  pause(ms: number, hasFailed: boolean): Promise<void>;
  /**
   * True when the candidate goes on after a failure. One that does not wait for others does not
   * wait for the store.
   */
  bearsFailure(): boolean;
  /**
   * Called when the campaign is over, for whatever reason. Without a win, nothing of
   * it stays behind.
   */
  leave(hasWon: boolean): Promise<void>;
}

/**
 * @returns undefined when the candidate does not wait, and was told why it is not elected
 * @throws `signal.reason` when aborted, and errors that waiting cannot cure
 */
export async function contend<Seat>(
  contender: Contender<Seat>,
  candidacy: Candidacy,
  scope: Scope,
  signal: AbortSignal,
): Promise<Seat | undefined> {
  const { turns } = scope;
  let hasWon = false;
  let hasTried = false;
  let failures = 0;
  try {
    for (;;) {
      let pauseMs: number;
      try {
        const verdict =
          turns === undefined
            ? await contender.attempt()
            : await turns.take(() => contender.attempt(), signal, hasTried);
        hasTried = true;
        switch (verdict.kind) {
          case 'won':
            hasWon = true;
            return verdict.seat;
          case 'refused':
            return undefined;
          case 'behind':
            await verdict.until();
            failures = 0;
            pauseMs = 0;
            break;
          case 'wait':
            failures = 0;
            pauseMs = verdict.ms;
            break;
          case 'unchanged':
            failures += 1;
            pauseMs = failures > 1 ? backoffMs(scope, failures - 1) : 0;
            break;
          case 'failed':
            failures += 1;
            pauseMs = backoffMs(scope, failures);
        }
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        if (isIncurable(error)) throw error;
        candidacy.onWaiting({ kind: 'unreachable', cause: error });
        if (!contender.bearsFailure()) return undefined;
        scope.onTrouble('campaigning', error);
        failures += 1;
        pauseMs = backoffMs(scope, failures);
      }
      signal.throwIfAborted();
      if (pauseMs > 0) await contender.pause(pauseMs, failures > 0);
    }
  } finally {
    await contender.leave(hasWon);
  }
}
