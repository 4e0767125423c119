/** What is looked at in every object store, whosever it is. */
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

/** For an object that is no election's, and nobody else's. */
export function newObjectName(): string {
  return `.${fixedName}-${randomBytes(6).toString('hex')}`;
}

/**
 * Why the library itself holds no elections there; undefined: it does.
 * @param ask what of an election is tried
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
 * @returns what those have who were not refused
 */
export async function race(put: () => Promise<string | undefined>): Promise<readonly string[]> {
  const answers = await Promise.all(Array.from({ length: writers }, put));
  return answers.filter((each) => each !== undefined);
}

/** How many records a leader writes, where each of them is kept. */
export function recordsADay({ renewEveryMs }: Timing): string {
  return Math.round(86_400_000 / renewEveryMs).toLocaleString('en');
}

/** @param coarseMs what the store's times, of whole seconds, make of it at the most */
export function takeoverFinding(
  { leaseMs }: Timing,
  { age, clockStep = '2s' }: { readonly age?: string; readonly clockStep?: Duration },
  coarseMs: number,
): Finding {
  const ageless = age === 'off';
  const stepMs = ageless ? 0 : parseDuration('clock-step', clockStep);
  return {
    check: 'takeover',
    level: 'note',
    message:
      `after a crash somebody leads within ${formatDuration(leaseMs)} of the last renewal, as seen by who was ` +
      `there; who comes later waits ${
        ageless
          ? 'as long from when it came'
          : `at most ${formatDuration(leaseMs + stepMs + coarseMs)} from that renewal on`
      }`,
    data: { leaseMs },
  };
}
