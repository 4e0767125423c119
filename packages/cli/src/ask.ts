/** What all commands share that ask a store about an election. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Election, TimingOptions } from 'incumbent';
import { createElection, formatDuration, parseDuration } from 'incumbent';
import type { Context, OpenStore } from './context.ts';
import { CommandError, exitCodes } from './failure.ts';
import type { ElectionQuestion } from './options.ts';
import { toJson, visible } from './output/text.ts';

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
  return askElection(await openElection(options, context), options, context, question);
}

/** As `ask`, for questions that only look: a store that is not there is not made by them. */
export async function look<T>(
  options: ElectionQuestion,
  context: Context,
  question: (question: Question) => Promise<T>,
): Promise<T> {
  const opened = await openElection(options, context);
  const missing = await missingDirectory(opened.store, options.election);
  if (missing === undefined) return askElection(opened, options, context, question);
  noteMissing(missing, options, context);
  leave(opened.election);
  const { memory } = await import('incumbent/memory');
  const empty = createElection({ name: options.election, backend: memory() });
  return askElection({ ...opened, election: empty }, options, context, question);
}

/** The directory of an election on a file store that nobody has used yet. */
export async function missingDirectory(
  { directory }: OpenStore,
  election: string,
): Promise<string | undefined> {
  if (directory === undefined) return undefined;
  const path = join(directory, election);
  try {
    await stat(path);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return path;
  }
  return undefined;
}

/** Nobody may have led yet, or the store is another one than was meant. */
export function noteMissing(path: string, { json }: ElectionQuestion, { stderr }: Context): void {
  const message = `the directory ${path} does not exist (yet)`;
  stderr.write(
    json
      ? `${toJson({ note: { code: 'NOT_THERE', message } })}\n`
      : `incumbent: ${visible(message)}\n`,
  );
}

async function askElection<T>(
  { election, store }: Omit<Question, 'signal'>,
  options: ElectionQuestion,
  context: Context,
  question: (question: Question) => Promise<T>,
): Promise<T> {
  const timeoutMs = parseDuration('--timeout', options.timeout);
  try {
    return await within(timeoutMs, store.url, context.signal, (signal) =>
      question({ election, store, signal }),
    );
  } finally {
    leave(election);
  }
}

export async function openElection(
  options: ElectionQuestion,
  context: Context,
): Promise<{ readonly election: Election; readonly store: OpenStore }> {
  const store = await context.openStore(options.store);
  const timing = patientTiming(parseDuration('--timeout', options.timeout));
  const election = createElection({ name: options.election, backend: store.backend, ...timing });
  return { election, store };
}

/**
 * Closes the handle of one who only asked. Nobody waits for that: the store may hang, and there is
 * nothing to give back.
 */
export function leave(election: Election): void {
  election.close().catch(() => {});
}

/**
 * Runs `job`, and leaves it behind if it has not ended within `timeoutMs`.
 * @throws CommandError when it took longer; `interruption.reason`
 */
export async function within<T>(
  timeoutMs: number,
  url: string,
  interruption: AbortSignal,
  job: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const stop = new AbortController();
  return new Promise<T>((resolve, reject) => {
    const leave = (reason: unknown) => {
      stop.abort(reason);
      reject(reason);
    };
    const interrupt = () => leave(interruption.reason);
    const timer = setTimeout(() => leave(tooLate(timeoutMs, url)), timeoutMs);
    interruption.addEventListener('abort', interrupt, { once: true });
    if (interruption.aborted) interrupt();
    job(stop.signal)
      .then(resolve, reject)
      .finally(() => {
        clearTimeout(timer);
        interruption.removeEventListener('abort', interrupt);
      });
  });
}

function tooLate(timeoutMs: number, url: string): CommandError {
  return new CommandError(
    'STORE_TIMEOUT',
    exitCodes.storeUnavailable,
    `the store ${url} did not answer within ${formatDuration(timeoutMs)} (--timeout); whether a ` +
      'request took effect is unknown',
  );
}

/**
 * A timing for one who only asks. It holds no lease, so only the bounds on operations matter, and
 * those are to be looser than `--timeout`, which then is the one that counts.
 */
export function patientTiming(timeoutMs: number): TimingOptions {
  const operationTimeout = Math.min(Math.max(2 * timeoutMs, 1_000), 500_000);
  return { lease: Math.max(15_000, 6 * operationTimeout), operationTimeout, pollEvery: 2_000 };
}
