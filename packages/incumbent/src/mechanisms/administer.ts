/**
 * Writes operators' requests into the record. Operators never take the seat from under a believer.
 * The record keeps holder, incarnation, nonce, actors and lease. So the holder still finds its own
 * attempts, and all other candidates still wait out its belief.
 */
import { isIncurable, RefusedError, StoreUnavailableError } from '../base/errors.ts';
import { sleep } from '../base/wait.ts';
import type { AdminResult, Scope } from '../core/contest.ts';
import type { LiftedHold } from '../core/holds.ts';
import type { View } from '../record/record.ts';

const maxTries = 20;

/** One look at the election, and the answer to the request there. */
export interface Look {
  readonly view: View;
  /** The token of the term that is there. */
  readonly token: bigint;
  /**
   * @returns undefined when the record shows the request already, or there is nothing to do
   * @throws RefusedError
   */
  readonly plan: () => Promise<Plan | undefined>;
}

export interface Plan {
  /** The hold that this write lifts. */
  readonly lifted?: LiftedHold | undefined;
  /**
   * A rejected write may have had its effect all the same.
   * @returns false when another write came between
   */
  readonly write: () => Promise<boolean>;
}

/** Looks and writes until the request stands in the record, or cannot stand there. */
export async function administer(
  scope: Scope,
  request: { readonly kind: string },
  look: () => Promise<Look>,
  signal: AbortSignal,
): Promise<AdminResult> {
  const { clock, timing, random, onTrouble, election } = scope;
  const isForOneTerm = request.kind === 'vacate' || request.kind === 'transfer';
  let mayHaveWritten = false;
  /** Lifted by a write that had no answer. */
  let lifted: Pick<AdminResult, 'lifted'> = {};
  /**
   * The term that was asked. A later one is not meant. It is known by its token, for a name
   * may come again.
   */
  let first: { readonly token: bigint; readonly view: View } | undefined;
  for (let tries = 0; tries < maxTries; tries += 1) {
    const { view, token, plan } = await look();
    first ??= { token, view };
    const seen = { view, asked: isForOneTerm ? first.view : view };
    // The term has gone meanwhile, perhaps because an attempt without an answer has landed.
    const hasGone = isForOneTerm && token !== first.token;
    const next = hasGone ? undefined : await planned(plan, mayHaveWritten && isForOneTerm);
    // There is nothing left to write. Either there never was, or an attempt without an
    // answer has landed.
    if (next === undefined) return { changed: mayHaveWritten, ...seen, ...lifted };
    if (next.lifted !== undefined) lifted = { lifted: next.lifted };
    try {
      if (await next.write()) return { changed: true, ...seen, ...lifted };
      if (!mayHaveWritten) lifted = {};
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (isIncurable(error) || error instanceof RefusedError) throw error;
      mayHaveWritten = true;
      onTrouble(`asking for ${request.kind}`, error);
    }
    await sleep(clock, random() * Math.min(100, timing.retryBackoffMs), signal);
  }
  throw new StoreUnavailableError(
    `the request (${request.kind}) for election "${election}" could not be recorded in ` +
      `${maxTries} attempts: look whether it took effect, and ask again`,
  );
}

/**
 * @param mayBeDone true when a write without an answer may have been heard, and the leader may have
 * gone. A request that is refused now was then granted
 */
async function planned(plan: Look['plan'], mayBeDone: boolean): Promise<Plan | undefined> {
  try {
    return await plan();
  } catch (error) {
    if (mayBeDone && error instanceof RefusedError) return undefined;
    throw error;
  }
}

/** @param waiting the candidates that are known to wait */
export function notWaiting(id: string, waiting: readonly { readonly id: string }[]): RefusedError {
  const known = waiting.map((candidate) => `"${candidate.id}"`).join(', ');
  return new RefusedError(
    `"${id}" is not waiting for this election, as a candidate whose health check fails is not; ` +
      (known === '' ? 'no candidate is' : `waiting: ${known}`),
  );
}

export function leadsAlready(id: string, election: string): RefusedError {
  return new RefusedError(`"${id}" leads election "${election}" already`);
}
