/**
 * What operators ask, written into the record. They never take the seat from under a believer: the record keeps
 * holder, incarnation, nonce, actors and lease, so that the holder still finds its own attempts and everybody
 * else still waits out its belief.
 */
import { isIncurable, RefusedError, StoreUnavailableError } from '../base/errors.ts';
import { sleep } from '../base/wait.ts';
import type { AdminRequest, AdminResult, Scope } from '../core/contest.ts';
import type { LiftedHold } from '../core/holds.ts';
import type { View } from '../record/record.ts';

const maxTries = 20;

/** What one look at the election found, and what the request calls for there. */
export interface Look {
  readonly view: View;
  /** Of the term that is there. */
  readonly token: bigint;
  /**
   * @returns undefined when it says so already, or there is nothing to do
   * @throws RefusedError
   */
  readonly plan: () => Promise<Plan | undefined>;
}

export interface Plan {
  /** Which hold that lifts. */
  readonly lifted?: LiftedHold | undefined;
  /** @returns false: something else was written meanwhile. A rejection may have had its effect */
  readonly write: () => Promise<boolean>;
}

/** Looks and writes until what was asked stands in the record, or cannot. */
export async function administer(
  scope: Scope,
  request: AdminRequest,
  look: () => Promise<Look>,
  signal: AbortSignal,
): Promise<AdminResult> {
  const { clock, timing, random, onTrouble, election } = scope;
  const isForOneTerm = request.kind === 'vacate' || request.kind === 'transfer';
  let mayHaveWritten = false;
  /** By a write that had no answer. */
  let lifted: Pick<AdminResult, 'lifted'> = {};
  /** The term that was asked: a later one is not meant. By its token, for a name may come again. */
  let askedToken: bigint | undefined;
  for (let tries = 0; tries < maxTries; tries += 1) {
    const { view, token, plan } = await look();
    askedToken ??= token;
    // It has gone meanwhile, perhaps because an attempt without an answer has landed.
    const hasGone = isForOneTerm && token !== askedToken;
    const next = hasGone ? undefined : await planned(plan, mayHaveWritten && isForOneTerm);
    // Nothing left to write: either there never was, or an attempt without an answer has landed.
    if (next === undefined) return { changed: mayHaveWritten, view, ...lifted };
    if (next.lifted !== undefined) lifted = { lifted: next.lifted };
    try {
      if (await next.write()) return { changed: true, view, ...lifted };
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
 * @param mayBeDone a write without an answer may have been heard, and the leader have gone: what is refused now was
 *   done then
 */
async function planned(plan: Look['plan'], mayBeDone: boolean): Promise<Plan | undefined> {
  try {
    return await plan();
  } catch (error) {
    if (mayBeDone && error instanceof RefusedError) return undefined;
    throw error;
  }
}

/** @param waiting who waits, as far as anybody knows */
export function notWaiting(id: string, waiting: readonly { readonly id: string }[]): RefusedError {
  const known = waiting.map((candidate) => `"${candidate.id}"`).join(', ');
  return new RefusedError(
    `"${id}" is not waiting for this election; ${known === '' ? 'nobody is' : `waiting: ${known}`}`,
  );
}

export function leadsAlready(id: string, election: string): RefusedError {
  return new RefusedError(`"${id}" leads election "${election}" already`);
}
