/** Shared by all commands that ask a store about an election. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Election, TimingLimits, TimingOptions, View } from 'incumbent';
import {
  createElection,
  deriveTiming,
  ElectionError,
  formatDuration,
  parseDuration,
} from 'incumbent';
import type { Context, OpenStore, StoreNeeds } from './context.ts';
import { meantInstead } from './elections.ts';
import { CommandError, exitCodes, UsageError } from './failure.ts';
import type { ElectionQuestion } from './options.ts';
import { isLedOnce } from './output/describe.ts';
import type { Inspected } from './output/vacancy.ts';
import { asCandidatesSee } from './output/vacancy.ts';
import { toJson, visible } from './terminal/text.ts';

const tooLateCode = 'STORE_TIMEOUT';

/** The pause before a server that failed is asked again. */
const askAgainMs = 100;

/** A handle, and the option by which its calls concern one seat. */
export interface OneSeat {
  readonly election: Election;
  readonly of: { readonly seat?: number };
}

/** How an election is asked that may have several seats. `found`: so many, as the record says. */
interface Seats {
  /** @throws UsageError when there are several and none is named, or there is no such seat */
  oneSeat(found: number | undefined, seat: number | undefined): OneSeat;
  /** For calls that concern all seats. */
  allSeats(found: number | undefined): Election;
}

/** A name by which one seat is asked as an election of its own. */
const seatName: RegExp = /\.seat-\d+$/;

export interface Question extends Seats {
  readonly election: Election;
  readonly store: OpenStore;
  /** Aborted when the command is interrupted or the store takes too long. */
  readonly signal: AbortSignal;
  /** `election.inspect`, as candidates see it. Default: the first seat. */
  inspect(seat?: OneSeat): Promise<Inspected>;
  /** Names of other elections that the user may have meant, as the rest of a sentence. */
  meantInstead(): Promise<string>;
  /** Tells people if the election has never been led, and which others there are. Once. */
  noteNeverLed(view: View): Promise<void>;
}

/** Opens the election, asks, and closes it, all within `--timeout`. */
export async function ask<T>(
  options: ElectionQuestion,
  context: Context,
  question: (question: Question) => Promise<T>,
  needs: Pick<StoreNeeds, 'setUp'> = {},
): Promise<T> {
  return askElection(await openElection(options, context, { ...needs, asksOnly: true }), question);
}

/**
 * As `ask`, where nothing is made: in place of an election that is not there an empty one is asked.
 * @param wanted `tells` people that it is not there. `reopens`: asks all the same where that makes it
 */
export async function askWhatIsThere<T>(
  options: ElectionQuestion,
  context: Context,
  { tells, reopens }: { readonly tells: boolean; readonly reopens: boolean | undefined },
  question: (question: Question) => Promise<T>,
): Promise<T> {
  const opened = await openElection(options, context, { asksOnly: true });
  const missing = await opened.within((signal) =>
    missingPlace(opened.store, options.election, signal),
  );
  const isMade = reopens === true && opened.store.servers?.reopensMissing === true;
  if (missing === undefined || isMade) return askElection(opened, question);
  if (tells) await tellMissing(opened, missing, options, context);
  return askEmpty(opened, options, question);
}

async function tellMissing(
  opened: OpenElection,
  missing: string,
  options: ElectionQuestion,
  context: Context,
): Promise<void> {
  noteMissing(missing, await opened.within(opened.meantInstead), options, context);
}

async function askEmpty<T>(
  opened: OpenElection,
  { election: name }: ElectionQuestion,
  question: (question: Question) => Promise<T>,
): Promise<T> {
  leave(opened.election);
  const { memory } = await import('incumbent/memory');
  const backend = memory();
  const empty = createElection({ name, backend });
  const seats = seatsOf(empty, name, (count) => createElection({ name, backend, seats: count }));
  const asked = { ...opened, ...seats, election: empty, noteNeverLed: async () => {} };
  return askElection(asked, question);
}

/** As `askWhatIsThere`, for questions that change nothing: they may be asked again. */
export async function look<T>(
  options: ElectionQuestion,
  context: Context,
  question: (question: Question) => Promise<T>,
): Promise<T> {
  const opened = await openElection(options, context, { asksOnly: true });
  const missing = await opened.within((signal) =>
    missingPlace(opened.store, options.election, signal),
  );
  if (missing === undefined) {
    let latest: ElectionError | undefined;
    const remember = (error: ElectionError) => {
      latest = error;
    };
    try {
      return await askElection(opened, (asked) =>
        patiently(opened.store, asked.signal, () => question(asked), remember),
      );
    } catch (error) {
      throw latest === undefined ? error : withReason(error, latest);
    }
  }
  await tellMissing(opened, missing, options, context);
  return askEmpty(opened, options, question);
}

/** Asks again where one of several servers failed: it does no harm, for nothing is changed. */
async function patiently<T>(
  { servers }: OpenStore,
  signal: AbortSignal,
  question: () => Promise<T>,
  onFailure: (error: ElectionError) => void,
): Promise<T> {
  for (;;) {
    try {
      return await question();
    } catch (error) {
      const mayPass = servers !== undefined && error instanceof ElectionError && error.retryable;
      if (!mayPass || signal.aborted) throw error;
      onFailure(error);
      await sleep(askAgainMs, undefined, { signal }).catch(() => {});
    }
  }
}

/** That time is over says less than why it was used up. */
function withReason(error: unknown, latest: ElectionError): unknown {
  if (!(error instanceof CommandError) || error.code !== tooLateCode) return error;
  const { code, exitCode, message } = error;
  const [sentence] = message.split(';');
  const cause = { cause: latest };
  return new CommandError(code, exitCode, `${sentence}: ${latest.message}`, cause);
}

/**
 * The directory or node of an election that has never been used. Undefined when it exists, and
 * where the store cannot tell.
 */
export async function missingPlace(
  { directory, servers }: OpenStore,
  election: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (servers !== undefined) return servers.missingPlace?.(election, signal);
  if (directory === undefined) return undefined;
  const path = join(directory, election);
  try {
    await stat(path);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') {
      return `directory ${path}`;
    }
  }
  return undefined;
}

/** How often a store that is not there is looked for. */
const lookAgainMs = 250;

/**
 * For commands that observe: waits until the place of the election is there, and says so if it is
 * not. Nothing is made. Where the store observes a place that is not there, this does not wait.
 * @param onMissing called once, before the wait
 * @returns whether the place was missing
 * @throws `signal.reason`
 */
export async function untilThere(
  { store, within, meantInstead: others }: OpenElection,
  options: ElectionQuestion,
  context: Context,
  signal: AbortSignal,
  onMissing: () => void = () => {},
): Promise<boolean> {
  let missing = await within((until) => missingPlace(store, options.election, until));
  if (missing === undefined) return false;
  noteMissing(missing, await within(others), options, context);
  if (store.servers?.observesMissing) return true;
  onMissing();
  while (missing !== undefined) {
    await sleep(lookAgainMs, undefined, { signal }).catch(() => {});
    signal.throwIfAborted();
    missing = await missingPlace(store, options.election, signal);
  }
  return true;
}

/**
 * Either the election has never been led, or the user meant another store.
 * @param instead the other names that the user may have meant
 */
export function noteMissing(
  place: string,
  instead: string,
  options: ElectionQuestion,
  context: Context,
): void {
  note('NOT_THERE', `the ${place} does not exist (yet)${instead}`, options, context);
}

/** Tells people something beside the answer, which stays what it is. */
function note(
  code: string,
  message: string,
  { json }: ElectionQuestion,
  { stderr }: Context,
): void {
  stderr.write(
    json ? `${toJson({ note: { code, message } })}\n` : `incumbent: ${visible(message)}\n`,
  );
}

async function askElection<T>(
  { election, store, within, inspect, meantInstead: others, noteNeverLed, ...opened }: OpenElection,
  question: (question: Question) => Promise<T>,
): Promise<T> {
  try {
    return await within((signal) =>
      question({
        election,
        store,
        signal,
        inspect: (seat = { election, of: {} }) => inspect(seat.election, signal, seat.of),
        oneSeat: opened.oneSeat,
        allSeats: opened.allSeats,
        meantInstead: () => others(signal),
        noteNeverLed: (view) => noteNeverLed(view, signal),
      }),
    );
  } finally {
    leave(election);
  }
}

export async function openElection(
  options: ElectionQuestion,
  context: Context,
  needs: Pick<StoreNeeds, 'setUp' | 'asksOnly'> = {},
): Promise<OpenElection> {
  const timeoutMs = parseDuration('--timeout', options.timeout);
  const untilMs = performance.now() + timeoutMs;
  const { signal } = context;
  const store = await context.openStore(options.store, {
    ...needs,
    timeoutMs,
    timeoutName: '--timeout',
    signal,
  });
  const timing = patientTiming(timeoutMs, store.backend.limits);
  const election = createElection({ name: options.election, backend: store.backend, ...timing });
  const within = <T>(job: (signal: AbortSignal) => Promise<T>) =>
    bounded(timeoutMs, store.url, signal, job, Math.max(1, untilMs - performance.now()));
  const others = (until: AbortSignal) => meantInstead(store, options.election, timing, until);
  const candidateLeaseMs = deriveTiming({}, store.backend.limits).leaseMs;
  return {
    ...{ election, store, within },
    ...seatsOf(election, options.election, (seats) =>
      createElection({ name: options.election, backend: store.backend, seats, ...timing }),
    ),
    async inspect(asked, until, of = {}) {
      const snapshot = await asked.inspect({ signal: until, ...of });
      return asCandidatesSee(snapshot, asked.timing.leaseMs, candidateLeaseMs, Date.now());
    },
    meantInstead: others,
    async noteNeverLed(view, until) {
      if (isLedOnce(view) || view.state === 'led') return;
      const instead = await others(until);
      if (instead === '') return;
      note(
        'NEVER_LED',
        `this store has no record of a leader of election "${options.election}"${instead}`,
        options,
        context,
      );
    },
  };
}

/** @param open makes another handle, which has nothing that must be closed */
function seatsOf(election: Election, name: string, open: (seats: number) => Election): Seats {
  let whole: Election | undefined;
  const allSeats = (found = 1) => {
    if (found === 1 || seatName.test(name)) return election;
    whole ??= open(found);
    return whole;
  };
  return {
    allSeats,
    oneSeat(found, seat) {
      if (seat !== undefined && seat > (found ?? 1)) {
        throw new UsageError(
          found === undefined
            ? `--seat ${seat}: nobody has led election "${name}" yet, so it is not known how many seats it has`
            : `--seat ${seat}: election "${name}" has ${found === 1 ? '1 seat' : `${found} seats`}`,
        );
      }
      const asked = allSeats(found);
      if (asked === election) return { election, of: {} };
      if (seat !== undefined) return { election: asked, of: { seat } };
      throw new UsageError(
        `election "${name}" has ${found} seats: say which one is meant, such as --seat 1`,
      );
    },
  };
}

interface OpenElection extends Seats {
  readonly election: Election;
  readonly store: OpenStore;
  inspect(election: Election, signal: AbortSignal, of?: OneSeat['of']): Promise<Inspected>;
  /** @returns the rest of a sentence */
  meantInstead(signal: AbortSignal): Promise<string>;
  noteNeverLed(view: View, signal: AbortSignal): Promise<void>;
  /** Runs a job in what is left of `--timeout`. */
  within<T>(job: (signal: AbortSignal) => Promise<T>): Promise<T>;
}

/**
 * Closes the handle of a command that only asked. No command waits for that: the store may hang,
 * and there is no seat to give back.
 */
export function leave(election: Election): void {
  election.close().catch(() => {});
}

/**
 * Runs `job`, and leaves it behind if it has not ended within `timeoutMs`.
 * @param leftMs the part of `timeoutMs` that is left
 * @throws CommandError when it took longer; `interruption.reason`
 */
export async function bounded<T>(
  timeoutMs: number,
  url: string,
  interruption: AbortSignal,
  job: (signal: AbortSignal) => Promise<T>,
  leftMs: number = timeoutMs,
): Promise<T> {
  const stop = new AbortController();
  return new Promise<T>((resolve, reject) => {
    const leave = (reason: unknown) => {
      stop.abort(reason);
      reject(reason);
    };
    const interrupt = () => leave(interruption.reason);
    const timer = setTimeout(() => leave(tooLate(timeoutMs, url)), leftMs);
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

export function tooLate(timeoutMs: number, url: string): CommandError {
  return new CommandError(
    tooLateCode,
    exitCodes.storeUnavailable,
    `the store ${url} did not answer within ${formatDuration(timeoutMs)} (--timeout); whether a ` +
      'request took effect is unknown',
  );
}

/**
 * A timing for a command that only asks. It holds no lease, so only the bounds on operations
 * matter. They are looser than `--timeout`, so that `--timeout` decides. On a session they can only
 * be as loose as its timeout allows.
 */
export function patientTiming(timeoutMs: number, limits: TimingLimits = {}): TimingOptions {
  const { sessionTimeoutMs, maxBelief } = limits;
  if (sessionTimeoutMs !== undefined) {
    const belief = Math.min(0.8 * sessionTimeoutMs, maxBelief?.ms ?? Number.POSITIVE_INFINITY);
    return {
      belief,
      stopMargin: belief / 16,
      renewEvery: belief / 32,
      retryBackoff: belief / 32,
      operationTimeout: 0.4 * belief,
      pollEvery: 2_000,
    };
  }
  const operationTimeout = Math.min(Math.max(2 * timeoutMs, 1_000), 500_000);
  return { lease: Math.max(15_000, 6 * operationTimeout), operationTimeout, pollEvery: 2_000 };
}
