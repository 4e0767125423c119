/** What `createElection` and a campaign take, and what of it is refused. */

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
import type { CampaignSettings, FenceHook } from './campaign-settings.ts';
import type { Backend, SeatState } from './contest.ts';
import type { HealthOptions } from './health.ts';
import type { CandidateStatus } from './status.ts';
import type { Proclamation } from './term.ts';
import type { Trouble } from './trouble.ts';

export interface ElectionOptions<Guard> extends TimingOptions {
  /** 1 to 200 bytes, no control characters. Everybody who uses it on one store competes. */
  readonly name: string;
  /** Where the election is held: `file(directory)`, `memory()`, … */
  readonly backend: Backend<Guard>;
  readonly candidate?: CandidateOptions;
  /**
   * Told of trouble that nobody waits for: a store that cannot be read while a candidate waits, a watch
   * that broke. Such trouble passes, or ends in a reason or a view. Without it, and without a subscriber
   * to `incumbent:trouble`, a store that has not answered for one lease is told once, by
   * `process.emitWarning` with the code `INCUMBENT_STORE_AWAY`. What it throws is dropped.
   */
  readonly onTrouble?: (trouble: Trouble) => unknown;
  /**
   * `auto`: the first use of the store makes what it lacks (the table, on PostgreSQL), as `init()` does,
   * if this user may. `never` (default): a use is refused with `StoreUnsuitableError`, which says what to
   * run. A store that needs nothing ignores the difference.
   */
  readonly init?: 'auto' | 'never';
  /** Time source, for tests. */
  readonly clock?: Clock;
  /** 0 ≤ x < 1, for jitter; for tests. */
  readonly random?: () => number;
}

export interface CampaignOptions {
  /** Who campaigns; replaces the `candidate` of `createElection`. */
  readonly candidate?: CandidateOptions;
  /** Withdraws: a term that is held is stopped in order and given back first. */
  readonly signal?: AbortSignal;
  /**
   * Hooks that run in order, for each leader that ended unclean, before the new term is announced.
   * If one fails the seat is given up and the next candidate runs them again.
   */
  readonly onUnclean?: FenceHook | readonly FenceHook[];
  /** How long one hook may take. Default 30 s. */
  readonly hookTimeout?: Duration;
  /** Pause after an unclean predecessor and before the hooks, default 0. */
  readonly takeoverDelay?: Duration;
  readonly health?: HealthOptions;
  /**
   * `self` (default): this process alone acts for the term, so on stores that can prove its death
   * a successor need not wait. `declared`: `term.declareActors` says who acts; until then nothing
   * can be proved.
   */
  readonly actors?: 'self' | 'declared';
  /**
   * `kill`: a worker thread ends this process (SIGKILL) when the belief of a term is over and its
   * work has not settled, be it stuck, stopped or only slow. For work that no token can fence. Goes
   * by the machine's clocks, so not together with `clock`.
   */
  readonly watchdog?: 'kill';
  /**
   * Told at every change of where this candidate stands: whom it follows in the queue, that it leads,
   * that it is out and why.
   */
  readonly onStatus?: (status: CandidateStatus) => void;
  /**
   * Told when belief ends, on both clocks, at every extension and when it is found to end sooner;
   * undefined when it is over. Another process of this machine judges it with a `Countdown`.
   */
  readonly onBelief?: (deadline: Deadline | undefined) => void;
}

export interface CampaignOnceOptions extends CampaignOptions {
  /**
   * Give up waiting for a term after this long with `NotElectedError`, whose `why` says what stood in
   * the way. 0: do not wait for another candidate. Default: wait for ever. On a store that cannot
   * tell a record's age nor prove a death, a dead leader is only replaced by a candidate that waits
   * longer than its lease.
   */
  readonly wait?: Duration;
  /**
   * With `wait: 0`. After a restart, and when it is new, a store may have forgotten a leader that still
   * believes, so nobody can be elected for up to one lease. True (default): this candidate waits for that,
   * about a lease and three operation timeouts at most; if another one is elected meanwhile, it is refused with that
   * term, even if it is over already. False: refused at once (`why.kind` is `settling`).
   *
   * On a store that may forget, with the option `age: 'off'`, nobody knows for how long the store has
   * run but by having watched it. So false never elects a new handle there, such as one of each new
   * process: only one that has looked at least one lease ago.
   */
  readonly settle?: boolean;
}

export interface LeadOptions extends CampaignOnceOptions {
  /**
   * After the work returned, keep the seat until this long after the term began, so that a short
   * job that a clock triggers everywhere runs once. If the term ends sooner, nobody may take the
   * seat for what is left. Default 0.
   */
  readonly holdAtLeast?: Duration;
  /**
   * Asked when a term has ended before its work returned: false rejects with a `TermEndedError`
   * instead of campaigning again. Default: always again.
   */
  readonly again?: (reason: EndReason) => boolean;
}

const timingNames: Record<keyof TimingOptions, true> = {
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
  candidate: true,
  onTrouble: true,
  init: true,
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
  watchdog: true,
  onStatus: true,
  onBelief: true,
};

/** A call of an election by which somebody campaigns. */
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

/** @throws InvalidOptionError; the name, the timing and the candidate are checked elsewhere */
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

/** What a campaign goes by, with everything checked. */
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
    onBelief,
    onStatus: options.onStatus,
    killOnOverrun: watchdog === 'kill',
    waitMs,
    settles: settle,
    holdAtLeastMs: parseDuration('holdAtLeast', options.holdAtLeast ?? 0),
    again: options.again ?? always,
    signal,
  };
}

/**
 * The options of a call that takes a signal, and perhaps more.
 * @throws InvalidOptionError
 */
const proclamationNames: Readonly<Record<keyof Proclamation, true>> = {
  addresses: true,
  metadata: true,
};

/** @returns what is proclaimed now. @throws InvalidOptionError */
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
