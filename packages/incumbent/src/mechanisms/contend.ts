/**
 * The one loop in which a candidate contends for a seat: try, and then wait, back off or leave. What an attempt
 * comes to is the mechanism's; what becomes of that is decided here.
 */
import { isIncurable } from '../base/errors.ts';
import { backoffMs } from '../core/backoff.ts';
import type { Candidacy, Scope } from '../core/contest.ts';

/** What an attempt has come to. */
export type Verdict<Seat> =
  | { readonly kind: 'won'; readonly seat: Seat }
  /** The store has answered as hoped: it is tried again after `ms`, or when something happens. */
  | { readonly kind: 'wait'; readonly ms: number }
  /**
   * Somebody is before us. It is tried again when `until` resolves. The loop waits for that, and not the attempt:
   * an async function more is half a KiB for each who waits.
   */
  | { readonly kind: 'behind'; readonly until: () => Promise<unknown> }
  /** Nothing has changed, and nobody can say why: at once the first time, then less and less soon. */
  | { readonly kind: 'unchanged' }
  /** It has said why. Trying on must not make the loop hot. */
  | { readonly kind: 'failed' }
  /** A candidate that does not wait was told why it is not elected. */
  | { readonly kind: 'refused' };

/** A mechanism's side, for one campaign. */
export interface Contender<Seat> {
  attempt(): Promise<Verdict<Seat>>;
  /** Waits so long, or until something happens. @param hasFailed the last attempt has */
  pause(ms: number, hasFailed: boolean): Promise<void>;
  /** Whether it goes on after a failure: who does not wait for others does not wait for the store. */
  bearsFailure(): boolean;
  /** When the campaign is over, however. Not won: nothing of it stays behind. */
  leave(hasWon: boolean): Promise<void>;
}

/**
 * @returns undefined: it does not wait, and was told why it is not elected
 * @throws what nobody can cure, or the reason of the signal
 */
export async function contend<Seat>(
  contender: Contender<Seat>,
  candidacy: Candidacy,
  scope: Scope,
  signal: AbortSignal,
): Promise<Seat | undefined> {
  let hasWon = false;
  let failures = 0;
  try {
    for (;;) {
      let pauseMs: number;
      try {
        const verdict = await contender.attempt();
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
