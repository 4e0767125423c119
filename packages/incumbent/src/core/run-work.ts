import type { Clock } from '../base/clock.ts';
import { NotLeadingError } from '../base/errors.ts';
import type { EndReason } from '../base/reasons.ts';
import { anyOf, onAbort, sleep } from '../base/wait.ts';
import type { HeldTerm } from './held-term.ts';
import type { Term } from './term.ts';

/** How the work of one term has ended. */
type Worked<T> =
  | { readonly outcome: 'returned'; readonly value: T }
  | { readonly outcome: 'threw'; readonly error: unknown }
  /** The term was over first. The value or error of the work does not count any more. */
  | { readonly outcome: 'over'; readonly reason: EndReason };

interface Bounds {
  readonly clock: Clock;
  /**
   * For this long after the announcement no other candidate may lead, even if the work is done
   * sooner.
   */
  readonly holdAtLeastMs: number;
  /** Withdraws: the work is told to stop. */
  readonly signal: AbortSignal;
}

/** Runs the work of one term to its end, and ends the term with it. */
export async function runWork<T, Guard>(
  term: HeldTerm<Guard>,
  work: (term: Term<Guard>) => Promise<T> | T,
  bounds: Bounds,
): Promise<Worked<T>> {
  const { signal } = bounds;
  term.bindToWork();
  const removeListener = onAbort(signal, () => term.stop('withdrawn', signal.reason));
  const over = async () => {
    term.settle();
    const { reason } = await term.ended;
    return { outcome: 'over', reason } as const;
  };
  try {
    // An end may have been asked for between the announcement and here.
    if (term.isEnding) return await over();
    let value: T;
    try {
      value = await work(term);
    } catch (error) {
      const tooLate = error instanceof NotLeadingError && error.token === term.token;
      const isLoss = tooLate || (term.isEnding && isCausedBy(error, term));
      if (!isLoss) term.stop('work-failed', error);
      else if (tooLate) term.stop('stalled', error);
      if (isLoss) return await over();
      term.settle();
      await term.ended;
      return { outcome: 'threw', error };
    }
    // Work that blocked the event loop may have outlived its term unnoticed.
    term.checkMargin();
    if (term.isEnding) return await over();
    // From here on a withdrawal only cuts the holding short: the work is done.
    removeListener();
    await hold(term, bounds);
    term.settle();
    term.stop('work-finished');
    await term.ended;
    return { outcome: 'returned', value };
  } finally {
    removeListener();
  }
}

/**
 * Keeps the seat after the work is done. If the term ends sooner, no candidate may take the seat
 * for the rest of the time.
 */
async function hold(
  term: HeldTerm<unknown>,
  { clock, holdAtLeastMs, signal }: Bounds,
): Promise<void> {
  if (holdAtLeastMs === 0) return;
  const untilUnixMs = term.sinceUnixMs + holdAtLeastMs;
  term.holdUntil(untilUnixMs, holdAtLeastMs);
  const leftMs = Math.min(holdAtLeastMs, untilUnixMs - clock.wallMs());
  if (leftMs <= 0) return;
  const [either, forget] = anyOf(signal, term.signal);
  await sleep(clock, leftMs, either).catch(() => {});
  forget();
}

/** True when an error of the work only repeats the term's own end. */
function isCausedBy(error: unknown, term: HeldTerm<unknown>): boolean {
  const seen = new Set<unknown>();
  for (let cause = error; cause instanceof Error && !seen.has(cause); cause = cause.cause) {
    if (cause === term.signal.reason || cause.name === 'AbortError') return true;
    if (cause instanceof NotLeadingError && cause.token === term.token) return true;
    seen.add(cause);
  }
  return error === term.signal.reason;
}
