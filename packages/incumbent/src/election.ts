import { randomBytes, randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { FenceHook } from './campaign.ts';
import { Campaign } from './campaign.ts';
import type { CandidateInfo, CandidateOptions } from './candidate.ts';
import {
  checkCandidateId,
  checkElectionName,
  describeValue,
  resolveCandidate,
} from './candidate.ts';
import type { Clock, Instant } from './clock.ts';
import { systemClock } from './clock.ts';
import type {
  AdminRequest,
  AdminResult,
  Backend,
  Contest,
  ElectionBackend,
  Scope,
  Snapshot,
} from './contest.ts';
import { publish } from './diagnostics.ts';
import type { Duration } from './duration.ts';
import { parseDuration } from './duration.ts';
import {
  ClosedError,
  ElectionEndedError,
  InvalidOptionError,
  MisuseError,
  NotElectedError,
  NotLeadingError,
} from './errors.ts';
import type { HealthOptions } from './health.ts';
import type { HeldTerm } from './held-term.ts';
import type { EndReason } from './reasons.ts';
import type { TermSummary, View } from './record.ts';
import { sameView } from './record.ts';
import type { Term } from './term.ts';
import type { Timing, TimingOptions } from './timing.ts';
import { resolveTiming } from './timing.ts';
import { anyOf, bounded, onAbort, sleep } from './wait.ts';
import type { Watchdog } from './watchdog.ts';
import { startWatchdog } from './watchdog.ts';

export interface ElectionOptions<Guard> extends TimingOptions {
  /** 1 to 200 bytes, no control characters. Everybody who uses it on one store competes. */
  readonly name: string;
  /** Where the election is held: `file(directory)`, `memory()`, … */
  readonly backend: Backend<Guard>;
  readonly candidate?: CandidateOptions;
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
   * `kill`: a worker thread ends this process (SIGKILL) when the belief of a term has ended and the
   * main thread has not noticed, because it is stuck. For work that no token can fence.
   */
  readonly watchdog?: 'kill';
  /** Told when belief ends, on both clocks, at every extension; undefined when it is over. */
  readonly onBelief?: (deadline: Instant | undefined) => void;
}

export interface CampaignOnceOptions extends CampaignOptions {
  /**
   * Give up waiting for a term after this long with `NotElectedError`; 0 tries once. Default: wait
   * for ever.
   */
  readonly wait?: Duration;
}

export interface LeadOptions extends CampaignOnceOptions {
  /**
   * After the work returned, keep the seat until this long after the term began, so that a short
   * job that a clock triggers everywhere runs once. Default 0.
   */
  readonly holdAtLeast?: Duration;
}

interface SignalOption {
  readonly signal?: AbortSignal;
}

/** An election on a backend, as one process takes part in it. At most one campaign at a time. */
export interface Election<Guard = unknown> {
  readonly name: string;
  readonly backend: Backend<Guard>;
  readonly timing: Timing;
  /**
   * Campaigns, leads, and campaigns again when ousted, until `work` returns.
   *
   * Resolves with work's value; the term is released first. Loss of the term before `work` settled
   * campaigns again (so does `term.resign()`), whatever the work then returned. Rejects with work's
   * own error (an error that comes from `term.signal` or `assertLeading` counts as loss), with
   * `signal.reason` once the seat is given back, with `NotElectedError` after `wait`, and with
   * `ElectionEndedError`.
   */
  lead<T>(work: (term: Term<Guard>) => Promise<T> | T, options?: LeadOptions): Promise<T>;
  /**
   * Waits for one term. The caller's work counts as settled when the term is disposed
   * (`await using term = await election.campaign()`).
   * @throws NotElectedError after `wait`, `signal.reason`, ElectionEndedError
   */
  campaign(options?: CampaignOnceOptions): Promise<Term<Guard>>;
  /** One term after the other; each counts as settled at the next `next()` or `return()`. */
  terms(options?: CampaignOptions): AsyncGenerator<Term<Guard>, void, void>;
  /**
   * The present view at once, then every change, the latest only; no view twice in a row. Ends when
   * `signal` aborts or the handle is closed. Trouble is a view (`unknown`), never a throw. Watching
   * does not keep the process alive.
   */
  observe(options?: SignalOption): AsyncGenerator<View, void, void>;
  /** What one look at the store tells. @throws when it cannot be read */
  leader(options?: SignalOption): Promise<View>;
  /** As `leader`, with the history and what operators left. */
  inspect(options?: SignalOption): Promise<Snapshot>;
  /** The past terms, the oldest first; at most 50. */
  history(options?: SignalOption): Promise<readonly TermSummary[]>;
  /** Who leads (first) and who waits. @throws MisuseError where the store cannot list them */
  candidates(options?: SignalOption): Promise<readonly CandidateInfo[]>;
  /**
   * Asks the leader to go; resolves when the request is recorded, not when it went. `force`: the
   * leader cannot confirm its term any more, so it ends even if its work does not stop; everybody
   * still waits out its belief.
   */
  vacate(options?: SignalOption & { force?: boolean }): Promise<AdminResult>;
  /** Asks the leader to hand over to the waiting candidate `to`. @throws RefusedError */
  transfer(to: string, options?: SignalOption): Promise<AdminResult>;
  /** Keeps the candidate `id` out until then; a time in the past lifts it. */
  drain(id: string, until: Date, options?: SignalOption): Promise<AdminResult>;
  /** Finishes the election for everybody: terms end, campaigns reject. The token is kept. */
  end(options?: SignalOption): Promise<AdminResult>;
  /** Opens an ended election again. */
  reopen(options?: SignalOption): Promise<AdminResult>;
  /** Whatever the store needs once. */
  init(options?: SignalOption): Promise<void>;
  /**
   * Closes this handle: withdraws, waits for the work to settle and the seat to be given back (at
   * the longest `stopTimeout` and then the belief; then the seat is left to run out), ends the
   * observers. The election goes on elsewhere. Idempotent.
   */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * @throws InvalidOptionError, InvalidTimingError (every broken rule with its numbers); nothing is
 * touched before everything is checked
 */
export function createElection<Guard>(options: ElectionOptions<Guard>): Election<Guard> {
  return new ElectionHandle(options);
}

function uniqueId(): string {
  return randomBytes(12).toString('base64url');
}

const defaultId = `${hostname()}-${process.pid}`;

/** Ends after which a candidate lets others go first. */
const givesWay: ReadonlySet<EndReason> = new Set([
  'resigned',
  'vacated',
  'handed-over',
  'unhealthy',
]);

class ElectionHandle<Guard> implements Election<Guard> {
  readonly name: string;
  readonly backend: Backend<Guard>;
  readonly timing: Timing;
  readonly #scope: Scope;
  readonly #candidate: CandidateOptions;
  readonly #incarnation = randomUUID();
  readonly #closing = new AbortController();
  #opened: ElectionBackend<Guard> | undefined;
  readonly #info: CandidateInfo;
  #contest: { readonly of: CandidateInfo; readonly contest: Contest<Guard> } | undefined;
  /** The campaign that runs. */
  #campaigning: { readonly ended: Promise<void>; readonly campaign: Campaign<Guard> } | undefined;
  #closed: Promise<void> | undefined;

  constructor(options: ElectionOptions<Guard>) {
    if (typeof options !== 'object' || options === null) {
      throw new InvalidOptionError(`createElection takes options, not ${describeValue(options)}`);
    }
    this.name = checkElectionName(options.name);
    if (typeof options.backend?.open !== 'function') {
      throw new InvalidOptionError(
        'backend must be a store such as file(directory) from "incumbent/file", not ' +
          describeValue(options.backend),
      );
    }
    this.backend = options.backend;
    this.timing = resolveTiming(options, options.backend.limits);
    this.#candidate = options.candidate ?? {};
    this.#info = this.#resolveCandidate({});
    const clock = options.clock ?? systemClock;
    this.#scope = {
      election: this.name,
      clock,
      timing: this.timing,
      random: options.random ?? Math.random,
      uniqueId,
      onTrouble: (what, error) => {
        publish(
          'incumbent:trouble',
          { election: this.name, candidate: this.#info.id },
          { what, error },
        );
      },
    };
    // Opening checks the name against the store's rules; it does no I/O.
    this.#opened = this.backend.open(this.#scope);
  }

  async lead<T>(
    work: (term: Term<Guard>) => Promise<T> | T,
    options: LeadOptions = {},
  ): Promise<T> {
    if (typeof work !== 'function') {
      throw new InvalidOptionError(`work must be a function, not ${describeValue(work)}`);
    }
    const holdAtLeastMs = parseDuration('holdAtLeast', options.holdAtLeast ?? 0);
    const waitMs = options.wait === undefined ? undefined : parseDuration('wait', options.wait);
    return this.#campaign(options, async (campaign, signal) => {
      for (;;) {
        const term = await this.#nextWithin(campaign, waitMs, signal);
        const result = await this.#work(term, work, holdAtLeastMs, signal);
        if (result.outcome === 'returned') return result.value;
        if (result.outcome === 'threw') throw result.error;
        this.#afterTerm(campaign, result.reason);
        signal.throwIfAborted();
      }
    });
  }

  async campaign(options: CampaignOnceOptions = {}): Promise<Term<Guard>> {
    const waitMs = options.wait === undefined ? undefined : parseDuration('wait', options.wait);
    // The campaign goes on until its term has ended, but the caller has it as soon as it leads.
    return new Promise((resolve, reject) => {
      this.#campaign(options, async (campaign, signal) => {
        const term = await this.#nextWithin(campaign, waitMs, signal);
        const removeListener = onAbort(signal, () => term.stop('withdrawn', signal.reason));
        resolve(term);
        await term.ended;
        removeListener();
      }).catch(reject);
    });
  }

  async *terms(options: CampaignOptions = {}): AsyncGenerator<Term<Guard>, void, void> {
    const leave = new AbortController();
    const removeListener = onAbort(options.signal, () => leave.abort(options.signal?.reason));
    const finished = { reason: undefined as unknown };
    let deliver: (term: HeldTerm<Guard>) => void = () => {};
    let fail: (error: unknown) => void = () => {};
    const nextTerm = () =>
      new Promise<HeldTerm<Guard>>((resolve, reject) => {
        deliver = resolve;
        fail = reject;
      });
    let pending = nextTerm();
    pending.catch(() => {});
    const running = this.#campaign(
      { ...options, signal: leave.signal },
      async (campaign, signal) => {
        for (;;) {
          const term = await campaign.next(false, signal);
          if (term === undefined) continue;
          const stopOnAbort = onAbort(signal, () => term.stop('withdrawn', signal.reason));
          deliver(term);
          const { reason } = await term.ended;
          stopOnAbort();
          this.#afterTerm(campaign, reason);
          signal.throwIfAborted();
        }
      },
    ).catch((error: unknown) => {
      finished.reason = error;
      fail(error);
    });
    try {
      for (;;) {
        const term = await pending;
        pending = nextTerm();
        pending.catch(() => {});
        try {
          yield term;
        } finally {
          term.stop('resigned');
          term.settle();
        }
        await term.ended;
        if (finished.reason !== undefined) throw finished.reason;
      }
    } finally {
      leave.abort(new ClosedError(this.name));
      removeListener();
      await running;
    }
  }

  async *observe(options: SignalOption = {}): AsyncGenerator<View, void, void> {
    const [signal, forget] = anyOf(options.signal, this.#closing.signal);
    try {
      let last: View | undefined;
      for await (const view of this.#open().observe(signal)) {
        if (signal.aborted) return;
        if (last !== undefined && sameView(last, view)) continue;
        last = view;
        yield view;
        if (signal.aborted) return;
      }
    } finally {
      forget();
    }
  }

  async leader(options: SignalOption = {}): Promise<View> {
    return (await this.inspect(options)).view;
  }

  async inspect(options: SignalOption = {}): Promise<Snapshot> {
    return this.#ask(options, (signal) => this.#open().inspect(signal));
  }

  async history(options: SignalOption = {}): Promise<readonly TermSummary[]> {
    return (await this.inspect(options)).history;
  }

  async candidates(options: SignalOption = {}): Promise<readonly CandidateInfo[]> {
    const opened = this.#open();
    if (!opened.canListCandidates) {
      throw new MisuseError(`the ${this.backend.kind} store cannot list candidates`);
    }
    return this.#ask(options, (signal) => opened.candidates(signal));
  }

  async vacate(options: SignalOption & { force?: boolean } = {}): Promise<AdminResult> {
    return this.#administer({ kind: 'vacate', force: options.force === true }, options);
  }

  async transfer(to: string, options: SignalOption = {}): Promise<AdminResult> {
    return this.#administer({ kind: 'transfer', to: checkCandidateId(to) }, options);
  }

  async drain(id: string, until: Date, options: SignalOption = {}): Promise<AdminResult> {
    const untilUnixMs = until instanceof Date ? until.getTime() : Number.NaN;
    if (!Number.isFinite(untilUnixMs)) {
      throw new InvalidOptionError(`until must be a valid Date, not ${String(until)}`);
    }
    return this.#administer({ kind: 'drain', id: checkCandidateId(id), untilUnixMs }, options);
  }

  async end(options: SignalOption = {}): Promise<AdminResult> {
    return this.#administer({ kind: 'end' }, options);
  }

  async reopen(options: SignalOption = {}): Promise<AdminResult> {
    return this.#administer({ kind: 'reopen' }, options);
  }

  async init(options: SignalOption = {}): Promise<void> {
    await this.#ask(options, (signal) => this.#open().init(signal));
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    this.#closing.abort(new ClosedError(this.name));
    // Not longer than the seat needs: work that hangs must not hang whoever closes.
    const running = this.#campaigning;
    if (running !== undefined) await Promise.race([running.ended, running.campaign.leave()]);
    const opened = this.#opened;
    this.#opened = undefined;
    await opened?.close();
  }

  #open(): ElectionBackend<Guard> {
    if (this.#opened === undefined || this.#closing.signal.aborted) {
      throw new ClosedError(this.name);
    }
    return this.#opened;
  }

  /** Runs `body` as the one campaign of this handle. */
  async #campaign<T>(
    options: CampaignOptions,
    body: (campaign: Campaign<Guard>, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const opened = this.#open();
    if (this.#campaigning !== undefined) {
      throw new MisuseError(
        `this handle on election "${this.name}" campaigns already; create another one for a ` +
          'second candidate',
      );
    }
    const candidate =
      options.candidate === undefined ? this.#info : this.#resolveCandidate(options.candidate);
    let watchdog: Watchdog | undefined;
    const { onBelief } = options;
    const settings = {
      candidate,
      onUnclean: checkHooks(options.onUnclean),
      takeoverDelayMs: parseDuration('takeoverDelay', options.takeoverDelay ?? 0),
      hookTimeoutMs: parseDuration('hookTimeout', options.hookTimeout ?? 30_000),
      health: options.health,
      actors: checkActors(options.actors),
      onBelief(deadline: Instant | undefined) {
        watchdog?.update(deadline);
        onBelief?.(deadline);
      },
    };
    if (options.watchdog !== undefined && options.watchdog !== 'kill') {
      throw new InvalidOptionError(
        `watchdog is "kill" or left out, not ${describeValue(options.watchdog)}`,
      );
    }
    const campaign = new Campaign(this.#contestOf(opened, candidate), this.#scope, settings);
    if (options.watchdog === 'kill') watchdog = startWatchdog();
    const [signal, forget] = anyOf(options.signal, this.#closing.signal);
    const running = (async () => {
      try {
        return await body(campaign, signal);
      } finally {
        campaign.close();
        watchdog?.close();
        forget();
        this.#campaigning = undefined;
      }
    })();
    const ended = running.then(
      () => {},
      () => {},
    );
    this.#campaigning = { ended, campaign };
    return running;
  }

  /** The contest remembers what it saw, so a handle keeps it from one campaign to the next. */
  #contestOf(opened: ElectionBackend<Guard>, candidate: CandidateInfo): Contest<Guard> {
    if (JSON.stringify(this.#contest?.of) !== JSON.stringify(candidate)) this.#contest = undefined;
    this.#contest ??= { of: candidate, contest: opened.contest(candidate) };
    return this.#contest.contest;
  }

  #resolveCandidate(options: CandidateOptions): CandidateInfo {
    return resolveCandidate({ ...this.#candidate, ...options }, defaultId, this.#incarnation);
  }

  async #nextWithin(
    campaign: Campaign<Guard>,
    waitMs: number | undefined,
    signal: AbortSignal,
  ): Promise<HeldTerm<Guard>> {
    if (waitMs === undefined || waitMs === 0) {
      for (;;) {
        const term = await campaign.next(waitMs === 0, signal);
        if (term !== undefined) return term;
        if (waitMs === 0) throw new NotElectedError(this.name, 0);
      }
    }
    const late = new NotElectedError(this.name, waitMs);
    const bound = new AbortController();
    const [stop, forget] = anyOf(signal, bound.signal);
    const timer = new AbortController();
    sleep(this.#scope.clock, waitMs, timer.signal).then(
      () => bound.abort(late),
      () => {},
    );
    try {
      for (;;) {
        const term = await campaign.next(false, stop);
        if (term !== undefined) return term;
      }
    } finally {
      timer.abort();
      forget();
    }
  }

  #afterTerm(campaign: Campaign<Guard>, reason: EndReason): void {
    if (reason === 'election-ended') throw new ElectionEndedError(this.name);
    if (givesWay.has(reason)) campaign.standAside();
  }

  /** Runs the work of one term to its end, and the term with it. */
  async #work<T>(
    term: HeldTerm<Guard>,
    work: (term: Term<Guard>) => Promise<T> | T,
    holdAtLeastMs: number,
    signal: AbortSignal,
  ): Promise<
    | { outcome: 'returned'; value: T }
    | { outcome: 'threw'; error: unknown }
    | { outcome: 'over'; reason: EndReason }
  > {
    const removeListener = onAbort(signal, () => term.stop('withdrawn', signal.reason));
    try {
      let value: T;
      try {
        value = await work(term);
      } catch (error) {
        const tooLate = error instanceof NotLeadingError && error.token === term.token;
        const isLoss = tooLate || (term.isEnding && isCausedBy(error, term));
        if (!isLoss) term.stop('work-failed', error);
        else if (tooLate) term.stop('stalled', error);
        term.settle();
        const { reason } = await term.ended;
        return isLoss ? { outcome: 'over', reason } : { outcome: 'threw', error };
      }
      if (term.isEnding) {
        term.settle();
        const { reason } = await term.ended;
        return { outcome: 'over', reason };
      }
      // From here on a withdrawal only cuts the holding short: the work is done.
      removeListener();
      const reserveMs = await this.#hold(term, holdAtLeastMs, signal);
      term.settle();
      term.stop('work-finished', undefined, reserveMs > 0 ? { reserveMs } : {});
      await term.ended;
      return { outcome: 'returned', value };
    } finally {
      removeListener();
    }
  }

  /**
   * Keeps the seat after the work is done. Told to withdraw meanwhile, it is given back at once,
   * but closed to everybody for what is left.
   * @returns how long nobody may take the seat
   */
  async #hold(term: HeldTerm<Guard>, holdAtLeastMs: number, signal: AbortSignal): Promise<number> {
    const untilUnixMs = term.sinceUnixMs + holdAtLeastMs;
    const leftMs = () =>
      Math.max(0, Math.min(holdAtLeastMs, untilUnixMs - this.#scope.clock.wallMs()));
    if (leftMs() === 0) return 0;
    const stop = new AbortController();
    const removers = [signal, term.signal].map((each) => onAbort(each, () => stop.abort()));
    await sleep(this.#scope.clock, leftMs(), stop.signal).catch(() => {});
    for (const remove of removers) remove();
    return leftMs();
  }

  #administer(request: AdminRequest, options: SignalOption): Promise<AdminResult> {
    return this.#ask(options, (signal) => this.#open().administer(request, signal));
  }

  /** One question to the store, bounded as a whole. */
  async #ask<T>(options: SignalOption, question: (signal: AbortSignal) => Promise<T>): Promise<T> {
    this.#open();
    const [signal, forget] = anyOf(options.signal, this.#closing.signal);
    const timeoutMs = 6 * this.timing.operationTimeoutMs;
    try {
      return await bounded(this.#scope.clock, 'the request', timeoutMs, signal, question);
    } finally {
      forget();
    }
  }
}

/** Whether an error of the work is only the echo of the term's own end. */
function isCausedBy(error: unknown, term: HeldTerm<unknown>): boolean {
  const seen = new Set<unknown>();
  for (let cause = error; cause instanceof Error && !seen.has(cause); cause = cause.cause) {
    if (cause === term.signal.reason || cause.name === 'AbortError') return true;
    if (cause instanceof NotLeadingError && cause.token === term.token) return true;
    seen.add(cause);
  }
  return error === term.signal.reason;
}

function checkHooks(hooks: CampaignOptions['onUnclean']): readonly FenceHook[] {
  const list = hooks === undefined ? [] : Array.isArray(hooks) ? hooks : [hooks];
  for (const hook of list) {
    if (typeof hook !== 'function') {
      throw new InvalidOptionError(`onUnclean takes functions, not ${describeValue(hook)}`);
    }
  }
  return list as readonly FenceHook[];
}

function checkActors(actors: CampaignOptions['actors']): 'self' | 'declared' {
  if (actors === undefined || actors === 'self') return 'self';
  if (actors === 'declared') return 'declared';
  throw new InvalidOptionError(`actors is "self" or "declared", not ${describeValue(actors)}`);
}
