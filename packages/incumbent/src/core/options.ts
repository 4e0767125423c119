/** The options of `createElection` and of a campaign, and their checks. */

import type { CandidateInfo, CandidateOptions } from '../base/candidate.ts';
import { checkAddresses, checkMetadata, describeValue } from '../base/candidate.ts';
import { checkNames } from '../base/check-names.ts';
import type { Clock } from '../base/clock.ts';
import type { Deadline } from '../base/deadline.ts';
import type { Duration } from '../base/duration.ts';
import { parseDuration } from '../base/duration.ts';
import { InvalidOptionError } from '../base/errors.ts';
import type { EndReason } from '../base/reasons.ts';
import type { TimingOptions } from '../base/timing.ts';
import type { CampaignSettings, FenceHook, Readiness } from './campaign-settings.ts';
import type { Backend, SeatState } from './contest.ts';
import type { HealthOptions } from './health.ts';
import type { SeatIdentity } from './seat-identity.ts';
import type { CandidateStatus } from './status.ts';
import type { Proclamation } from './term.ts';
import type { Trouble } from './trouble.ts';

/** The options of `createElection`. The durations of `TimingOptions` are among them. */
export interface ElectionOptions<Guard> extends TimingOptions {
  /**
   * 1 to 200 bytes, no control characters. All candidates that use one name on one store compete.
   */
  readonly name: string;
  /** Where the election is held: `file(directory)`, `memory()`, … */
  readonly backend: Backend<Guard>;
  /**
   * How many candidates may lead at once, each in a seat of its own. 1 (default) to 100. All
   * candidates must give the same number: a candidate with another one is refused.
   */
  readonly seats?: number;
  /** This process as observers see it. A call such as `lead` may replace single fields of it. */
  readonly candidate?: CandidateOptions;
  /**
   * Called with trouble that no caller waits for: a waiting candidate cannot read the store, or a
   * watch broke. Such trouble passes, or ends in a reason or a view. Errors that the function
   * throws are dropped.
   *
   * Without this function and without a subscriber to `incumbent:trouble`, the process warns once
   * of each store that has not answered for one lease. The warning comes from
   * `process.emitWarning`, with the code `INCUMBENT_STORE_AWAY`.
   */
  readonly onTrouble?: (trouble: Trouble) => unknown;
  /**
   * `auto`: at its first use the store makes the things that it lacks, as `init()` does, if this
   * user may. On PostgreSQL that is the table. `never` (default): the call rejects with
   * `StoreUnsuitableError`, which says what to run. A store that needs nothing ignores this option.
   */
  readonly init?: 'auto' | 'never';
  /**
   * A second process, the *companion*, gives the seat back when this process has died, so that no
   * candidate waits for the lease. The URL of a module whose default export is the backend, or a
   * function that makes it: `new URL('./store.js', import.meta.url)`. The companion imports it only
   * after the death. True: for `file(directory)`, which needs no module.
   *
   * The term counts as unclean: the hooks of the next leader run. A process that is only frozen is
   * never released. On Linux; elsewhere the lease runs out as without this option. Default false.
   */
  readonly releaseOnCrash?: boolean | URL;
  /** Time source, for tests. Default: the clocks of the machine. */
  readonly clock?: Clock;
  /** Returns a number from 0 to 1, without 1, for jitter. For tests. Default: `Math.random`. */
  readonly random?: () => number;
}

/** The options of `terms`, and of each other campaign. */
export interface CampaignOptions {
  /**
   * The candidate of this campaign. Its fields replace those of the `candidate` of
   * `createElection`. Fields that are left out stay.
   */
  readonly candidate?: CandidateOptions;
  /** Withdraws when it aborts. A term that is held is stopped in order and given back first. */
  readonly signal?: AbortSignal;
  /**
   * Hooks that run in order, for each leader that ended unclean, before the new term is announced.
   * If one fails, the seat is given up, and the next winner runs them again.
   */
  readonly onUnclean?: FenceHook | readonly FenceHook[];
  /** How long one hook may take. Default 30 s. */
  readonly hookTimeout?: Duration;
  /** Pause after an unclean predecessor and before the hooks. Default 0. */
  readonly takeoverDelay?: Duration;
  readonly health?: HealthOptions;
  /**
   * - `self` (default): this process alone acts for the term. On a store that can prove its death,
   *   a successor need not wait.
   * - `declared`: `term.declareActors` says which processes act. Until then no death can be proved.
   */
  readonly actors?: 'self' | 'declared';
  /**
   * `manual`: the term is ready when its work calls `term.ready()`. Until then observers see the
   * leader with `ready: false`, and routers send it nothing. Left out: a term is ready when it
   * begins.
   */
  readonly ready?: 'manual';
  /**
   * Only with `ready: 'manual'`: how long after its begin a term may take until the record shows
   * that it is ready. Then it ends with the reason `not-ready`, and other candidates go first.
   * Default 60 s.
   */
  readonly readyTimeout?: Duration;
  /**
   * `kill`: a worker thread ends this process with SIGKILL when the belief of a term is over and
   * its work has not settled. The work may be stuck, stopped, or only slow. For work that no token
   * can fence. It uses the machine's clocks, so it cannot be combined with `clock`.
   */
  readonly watchdog?: 'kill';
  /**
   * Called at every change of this candidate's state. The status says which place it follows in the
   * queue, that it leads, or why it is out. An error that it throws goes to `onTrouble`.
   */
  readonly onStatus?: (status: CandidateStatus) => void;
  /**
   * Called with the end of belief, on both clocks: at every extension, and when it turns out to end
   * sooner. Called with undefined when belief is over. Another process of this machine can judge it
   * with a `Countdown`.
   */
  readonly onBelief?: (deadline: Deadline | undefined) => void;
  /**
   * Called before each write of the record that takes the seat or confirms it, and with undefined
   * when the term has ended. Another process of this machine that then sees this one die can give
   * the seat back (`giveBackSeat` of `incumbent/backend`), so that no candidate waits for the
   * lease.
   */
  readonly onSeat?: (seat: SeatIdentity | undefined) => void;
}

/** The options of `campaign`: those of `terms`, and how long to wait. */
export interface CampaignOnceOptions extends CampaignOptions {
  /**
   * How long to wait for a term. Then the call rejects with `NotElectedError`, whose `why` says
   * what stood in the way. 0: do not wait for another candidate. Default: wait for ever.
   *
   * Some stores can neither tell a record's age nor prove a death. There a dead leader is only
   * replaced by a candidate that waits longer than its lease.
   */
  readonly wait?: Duration;
  /**
   * Only with `wait: 0`. After a restart, and when it is new, a store may have forgotten a leader
   * that still believes. So no candidate can be elected for up to one lease.
   *
   * True (default): this candidate waits for that, at most about a lease and three operation
   * timeouts. If another candidate is elected meanwhile, this one is refused with that term, even
   * if it is over already. False: this candidate is refused at once (`why.kind` is `settling`).
   *
   * A store that may forget, with the option `age: 'off'`, cannot tell how long it has run. Only a
   * handle that has watched it for at least one lease knows. So there false never elects a new
   * handle, such as one of each new process.
   */
  readonly settle?: boolean;
}

/** The options of `lead`: those of `campaign`, and what happens around the work. */
export interface LeadOptions extends CampaignOnceOptions {
  /**
   * Keeps the seat until this long after the term began, even if the work returns sooner. So a
   * short job that a clock triggers on many hosts runs once. Default 0.
   *
   * `lead` resolves when that time is over and the seat is given back. A `signal` that aborts after
   * the work has returned makes it resolve at once. If the term ends between the return and that
   * time, no candidate may take the seat for the rest of it. That holds also when the process dies,
   * once the store has been told that the work is done.
   */
  readonly holdAtLeast?: Duration;
  /**
   * Called when a term has ended before its work returned. False: the call rejects with a
   * `TermEndedError` instead of campaigning again. Default: always true.
   */
  readonly again?: (reason: EndReason) => boolean;
}

export const timingNames: Readonly<Record<keyof TimingOptions, true>> = {
  lease: true,
  belief: true,
  stopMargin: true,
  renewEvery: true,
  operationTimeout: true,
  retryBackoff: true,
  pollEvery: true,
  stopTimeout: true,
  clockDrift: true,
};

const electionNames: Record<keyof ElectionOptions<unknown>, true> = {
  ...timingNames,
  name: true,
  backend: true,
  seats: true,
  candidate: true,
  onTrouble: true,
  init: true,
  releaseOnCrash: true,
  clock: true,
  random: true,
};

const termsNames: Record<keyof CampaignOptions, true> = {
  candidate: true,
  signal: true,
  onUnclean: true,
  hookTimeout: true,
  takeoverDelay: true,
  health: true,
  actors: true,
  ready: true,
  readyTimeout: true,
  watchdog: true,
  onStatus: true,
  onBelief: true,
  onSeat: true,
};

/** The calls of an election that begin a campaign. */
export type CampaignCall = 'lead' | 'campaign' | 'terms';

const namesOf: Readonly<Record<CampaignCall, Readonly<Record<string, true>>>> = {
  terms: termsNames,
  campaign: { ...termsNames, wait: true, settle: true } satisfies Record<
    keyof CampaignOnceOptions,
    true
  >,
  lead: {
    ...termsNames,
    wait: true,
    settle: true,
    holdAtLeast: true,
    again: true,
  } satisfies Record<keyof LeadOptions, true>,
};

const elsewhere: Readonly<Record<string, string>> = {
  wait: '`lead` or `campaign`',
  settle: '`lead` or `campaign`',
  holdAtLeast: '`lead`',
  again: '`lead`',
};

/**
 * The name, the timing and the candidate are checked elsewhere.
 * @throws InvalidOptionError
 */
export function checkElectionOptions(options: ElectionOptions<unknown>): void {
  checkNames('createElection', options, electionNames);
  const { backend, clock, random } = options;
  if (typeof backend?.open !== 'function') {
    throw new InvalidOptionError(
      'backend must be a store such as file(directory) from "incumbent/file", not ' +
        describeValue(backend),
    );
  }
  const clockNames = ['monotonicMs', 'wallMs', 'setTimer'] as const;
  if (clock !== undefined && !clockNames.every((name) => typeof clock?.[name] === 'function')) {
    throw new InvalidOptionError('clock must have monotonicMs, wallMs and setTimer');
  }
  checkFunction('random', random);
  checkFunction('onTrouble', options.onTrouble);
  const { init } = options;
  if (init !== undefined && init !== 'auto' && init !== 'never') {
    throw new InvalidOptionError(`init must be 'auto' or 'never', not ${describeValue(init)}`);
  }
}

/** The settings of a campaign, with everything checked. */
export interface ResolvedCampaign extends Omit<CampaignSettings, 'watchdog'> {
  readonly killOnOverrun: boolean;
  readonly waitMs: number | undefined;
  readonly settles: boolean;
  readonly holdAtLeastMs: number;
  readonly again: (reason: EndReason) => boolean;
  readonly signal: AbortSignal | undefined;
}

const always = () => true;

/**
 * @param resolveCandidate checks a candidate and fills it in
 * @throws InvalidOptionError
 */
export function resolveCampaign(
  call: CampaignCall,
  options: LeadOptions,
  resolveCandidate: (candidate: CandidateOptions | undefined) => CandidateInfo,
  hasOwnClock: boolean,
): ResolvedCampaign {
  checkNames(`\`${call}\``, options, namesOf[call], undefined, elsewhere);
  const { actors = 'self', watchdog, onBelief, signal, wait } = options;
  if (actors !== 'self' && actors !== 'declared') {
    throw new InvalidOptionError(`actors is "self" or "declared", not ${describeValue(actors)}`);
  }
  if (watchdog !== undefined && watchdog !== 'kill') {
    throw new InvalidOptionError(`watchdog is "kill" or left out, not ${describeValue(watchdog)}`);
  }
  if (watchdog !== undefined && hasOwnClock) {
    throw new InvalidOptionError('watchdog goes by the clocks of the machine: leave out `clock`');
  }
  checkFunction('onBelief', onBelief);
  checkFunction('onSeat', options.onSeat);
  checkFunction('onStatus', options.onStatus);
  checkFunction('again', options.again);
  checkSignal(signal);
  if (options.hookTimeout !== undefined && options.onUnclean === undefined) {
    throw new InvalidOptionError(
      'hookTimeout bounds the hooks of onUnclean, and there are none: leave it out',
    );
  }
  const waitMs = wait === undefined ? undefined : parseDuration('wait', wait);
  const { settle = true } = options;
  if (typeof settle !== 'boolean') {
    throw new InvalidOptionError(`settle must be true or false, not ${describeValue(settle)}`);
  }
  if (!settle && waitMs !== 0) {
    throw new InvalidOptionError(
      'settle: false is for a candidate that does not wait: give it together with wait: 0',
    );
  }
  return {
    candidate: resolveCandidate(options.candidate),
    onUnclean: checkHooks(options.onUnclean),
    takeoverDelayMs: parseDuration('takeoverDelay', options.takeoverDelay ?? 0),
    hookTimeoutMs: parseDuration('hookTimeout', options.hookTimeout ?? 30_000),
    health: options.health,
    actors,
    readiness: checkReadiness(options),
    onBelief,
    onSeat: options.onSeat,
    onStatus: options.onStatus,
    killOnOverrun: watchdog === 'kill',
    waitMs,
    settles: settle,
    holdAtLeastMs: parseDuration('holdAtLeast', options.holdAtLeast ?? 0),
    again: options.again ?? always,
    signal,
  };
}

function checkReadiness({ ready, readyTimeout }: CampaignOptions): Readiness | undefined {
  if (ready !== undefined && ready !== 'manual') {
    throw new InvalidOptionError(`ready is "manual" or left out, not ${describeValue(ready)}`);
  }
  if (ready === undefined) {
    if (readyTimeout === undefined) return undefined;
    throw new InvalidOptionError(
      'readyTimeout bounds the time until `term.ready()`: give it together with ready: "manual"',
    );
  }
  const timeoutMs = parseDuration('readyTimeout', readyTimeout ?? 60_000);
  if (timeoutMs === 0) {
    throw new InvalidOptionError(
      'readyTimeout must be more than 0: no term could become ready before it is over',
    );
  }
  return { timeoutMs };
}

const proclamationNames: Readonly<Record<keyof Proclamation, true>> = {
  addresses: true,
  metadata: true,
};

/**
 * @returns the addresses and metadata as they are from now on
 * @throws InvalidOptionError
 */
export function checkProclamation(
  proclamation: Proclamation,
  { addresses, metadata }: Pick<SeatState, keyof Proclamation>,
): Pick<SeatState, keyof Proclamation> {
  checkNames('`proclaim`', proclamation, proclamationNames, '{ addresses: ["10.0.0.7:80"] }');
  return {
    addresses: checkAddresses(proclamation.addresses ?? addresses),
    metadata: checkMetadata(proclamation.metadata ?? metadata),
  };
}

/**
 * @returns Unix time, in ms
 * @throws InvalidOptionError for what is no time
 */
export function checkUntil(until: Date): number {
  const untilUnixMs = until instanceof Date ? until.getTime() : Number.NaN;
  if (!Number.isFinite(untilUnixMs)) {
    throw new InvalidOptionError(`until must be a valid Date, not ${String(until)}`);
  }
  return untilUnixMs;
}

/**
 * Checks the options of a call that takes a signal, and perhaps more.
 * @throws InvalidOptionError
 */
export function checkSignalOption(
  call: string,
  options: unknown,
  more: Readonly<Record<string, true>> = {},
): void {
  checkNames(`\`${call}\``, options, { ...more, signal: true });
  checkSignal((options as { readonly signal?: unknown }).signal);
}

export function checkSignal(signal: unknown): void {
  if (signal === undefined) return;
  const like = signal as Partial<AbortSignal> | null;
  if (typeof like?.aborted !== 'boolean' || typeof like.addEventListener !== 'function') {
    throw new InvalidOptionError(`signal must be an AbortSignal, not ${describeValue(signal)}`);
  }
}

function checkFunction(name: string, value: unknown): void {
  if (value !== undefined && typeof value !== 'function') {
    throw new InvalidOptionError(`${name} must be a function, not ${describeValue(value)}`);
  }
}

function checkHooks(hooks: CampaignOptions['onUnclean']): readonly FenceHook[] {
  const list: readonly unknown[] =
    hooks === undefined ? [] : Array.isArray(hooks) ? hooks : [hooks];
  for (const hook of list) {
    if (typeof hook !== 'function') {
      throw new InvalidOptionError(`onUnclean takes functions, not ${describeValue(hook)}`);
    }
  }
  return list as readonly FenceHook[];
}
