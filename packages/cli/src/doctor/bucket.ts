/** Findings about object stores, whichever provider runs them. */
import { randomBytes } from 'node:crypto';
import type { Backend, Duration, Election, Timing } from 'incumbent';
import { createElection, ElectionError, formatDuration, parseDuration } from 'incumbent';
import type { Finding } from './finding.ts';
import type { Unmeasured } from './scratch.ts';

/** How many write at the same time; one of them may win. */
export const writers = 10;
/** Where an object cannot be removed again, it is always the same. */
export const fixedName = 'incumbent-doctor';

export const noElection: Unmeasured = {
  unmeasured: 'no election can be held there',
  mayLook: true,
};

/** The name of an object that no election and no other process uses. */
export function newObjectName(): string {
  return `.${fixedName}-${randomBytes(6).toString('hex')}`;
}

/**
 * The reason why the library itself holds no elections there; undefined: it does.
 * @param ask the operation of an election that is tried
 */
export async function refusalOf(
  backend: Backend,
  timing: Timing | undefined,
  ask: (election: Election) => Promise<unknown>,
): Promise<string | undefined> {
  const options = timing === undefined ? {} : { operationTimeout: timing.operationTimeoutMs };
  const election = createElection({ name: fixedName, backend, ...options });
  try {
    await ask(election);
    return undefined;
  } catch (error) {
    if (error instanceof ElectionError && error.code === 'STORE_UNSUITABLE') return error.message;
    throw error;
  } finally {
    await election.close();
  }
}

/**
 * All write at the same time.
 * @param put undefined: it was refused
 * @returns the answers to the writes that were not refused
 */
export async function race(put: () => Promise<string | undefined>): Promise<readonly string[]> {
  const answers = await Promise.all(Array.from({ length: writers }, put));
  return answers.filter((each) => each !== undefined);
}

/** How many records a leader writes, where each of them is kept. */
export function recordsADay({ renewEveryMs }: Timing): string {
  return Math.round(86_400_000 / renewEveryMs).toLocaleString('en');
}

/**
 * A follower counts from the last renewal that it has seen. Where the store keeps times, it also
 * knows how old that renewal was.
 * @param coarseMs the most that times in whole seconds can add to it
 */
export function takeoverFinding(
  { leaseMs, pollEveryMs }: Timing,
  { age, clockStep = '2s' }: { readonly age?: string; readonly clockStep?: Duration },
  coarseMs: number,
): Finding {
  const lease = formatDuration(leaseMs);
  const afterLookMs = leaseMs + pollEveryMs;
  const byAgeMs = leaseMs + parseDuration('clock-step', clockStep) + coarseMs;
  const ageless = age === 'off';
  const withinMs = ageless ? afterLookMs : Math.min(afterLookMs, byAgeMs);
  const comesLater = ageless
    ? `${lease} from when it came`
    : `at most ${formatDuration(byAgeMs)} from that renewal on`;
  return {
    check: 'takeover',
    level: 'note',
    message:
      `after a crash who was there leads within ${formatDuration(withinMs)} of the last renewal: the lease ` +
      `of ${lease}, up to ${formatDuration(withinMs - leaseMs)} until it knows of that renewal, and its own ` +
      `requests besides; who comes later waits ${comesLater}`,
    data: { leaseMs, withinMs },
  };
}
