/** What all commands share that ask a store about an election. */
import type { Election, TimingOptions } from 'incumbent';
import type { Context, OpenStore } from './context.ts';
import { CommandError, exitCodes } from './failure.ts';
import type { ElectionQuestion } from './options.ts';

export interface Question {
  readonly election: Election;
  readonly store: OpenStore;
  /** Aborted when the command is interrupted or the store takes too long. */
  readonly signal: AbortSignal;
}

/** Opens the election, asks, and closes it, all within `--timeout`. */
export async function ask<T>(
  options: ElectionQuestion,
  context: Context,
  question: (question: Question) => Promise<T>,
): Promise<T> {
  const { parseDuration } = await import('incumbent');
  const timeoutMs = parseDuration('--timeout', options.timeout);
  const { election, store } = await openElection(options, context);
  try {
    return await within(timeoutMs, store.url, context.signal, (signal) =>
      question({ election, store, signal }),
    );
  } finally {
    // Not awaited: it waits for what the store still has to do, for ever if that hangs.
    void election.close();
  }
}

export async function openElection(
  options: ElectionQuestion,
  context: Context,
): Promise<{ readonly election: Election; readonly store: OpenStore }> {
  const [{ createElection, parseDuration }, store] = await Promise.all([
    import('incumbent'),
    context.openStore(options.store),
  ]);
  const timing = patientTiming(parseDuration('--timeout', options.timeout));
  return {
    election: createElection({ name: options.election, backend: store.backend, ...timing }),
    store,
  };
}

/**
 * Runs `job`, at the longest for `timeoutMs`.
 * @throws CommandError when it took longer; `interruption.reason`
 */
export async function within<T>(
  timeoutMs: number,
  url: string,
  interruption: AbortSignal,
  job: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const stop = new AbortController();
  const interrupt = () => stop.abort(interruption.reason);
  const timer = setTimeout(() => {
    stop.abort(
      new CommandError(
        'STORE_TIMEOUT',
        exitCodes.storeUnavailable,
        `the store ${url} did not answer within ${timeoutMs} ms (--timeout); whether a request ` +
          'took effect is unknown',
      ),
    );
  }, timeoutMs);
  interruption.addEventListener('abort', interrupt, { once: true });
  if (interruption.aborted) interrupt();
  try {
    return await job(stop.signal);
  } catch (error) {
    throw stop.signal.aborted ? stop.signal.reason : error;
  } finally {
    clearTimeout(timer);
    interruption.removeEventListener('abort', interrupt);
  }
}

/**
 * A timing for one who only asks. It holds no lease, so only the bounds on operations matter, and
 * those are to be looser than `--timeout`, which then is the one that counts.
 */
function patientTiming(timeoutMs: number): TimingOptions {
  const operationTimeout = Math.min(Math.max(2 * timeoutMs, 1_000), 500_000);
  return { lease: Math.max(15_000, 6 * operationTimeout), operationTimeout, pollEvery: 2_000 };
}
