/// <reference lib="esnext.disposable" preserve="true" />
import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import type { CandidateInfo, CandidateOptions } from '../base/candidate.ts';
import {
  checkCandidate,
  checkCandidateId,
  checkElectionName,
  describeValue,
  resolveCandidate,
} from '../base/candidate.ts';
import { maxTimerMs, systemClock } from '../base/clock.ts';
import {
  ClosedError,
  ElectionEndedError,
  InvalidOptionError,
  MisuseError,
} from '../base/errors.ts';
import { defaultId, refuseSnapshot, uniqueId } from '../base/identity.ts';
import type { StoppableIterator } from '../base/iterate.ts';
import { stoppable } from '../base/iterate.ts';
import { withJson } from '../base/json.ts';
import type { Timing } from '../base/timing.ts';
import { resolveTiming } from '../base/timing.ts';
import { anyOf, bounded, Deferred, onAbort } from '../base/wait.ts';
import type { TermSummary, View } from '../record/record.ts';
import { sameView } from '../record/record.ts';
import type { StandAside } from './campaign.ts';
import { Campaign } from './campaign.ts';
import type { Estate } from './companion.ts';
import { Entrusted } from './companion.ts';
import type {
  AdminRequest,
  AdminResult,
  Backend,
  Contest,
  ElectionBackend,
  Scope,
  Snapshot,
} from './contest.ts';
import { nextTerm } from './next-term.ts';
import type {
  CampaignCall,
  CampaignOnceOptions,
  CampaignOptions,
  ElectionOptions,
  LeadOptions,
  ResolvedCampaign,
} from './options.ts';
import { checkElectionOptions, checkSignalOption, checkUntil, resolveCampaign } from './options.ts';
import { estateOf } from './release-on-crash.ts';
import { runWork } from './run-work.ts';
import { inspectSeats, openSeats, requireSeatless, seatOf } from './seats.ts';
import type { Term } from './term.ts';
import { TroubleTeller } from './trouble.ts';
import { Turns } from './turns.ts';
import { startWatchdog } from './watchdog.ts';

interface SignalOption {
  readonly signal?: AbortSignal;
}

/** For a call that concerns one seat. Where there are several, `seat` says which. */
interface SeatOption extends SignalOption {
  readonly seat?: number;
}

/**
 * An election on a backend, as one process takes part in it. A handle runs at most one campaign at
 * a time: another call of `lead`, `campaign` or `terms` rejects with `MisuseError`.
 *
 * Calls that ask the store one question take up to six times `operationTimeout`, and then reject
 * with `OperationTimeoutError`. They also reject with the store's own error, with `signal.reason`,
 * and with `ClosedError` when the handle is closed. With `seats`, a call concerns the seat that it
 * names. `drain`, `end`, `reopen` and `candidates` concern all of them.
 */
export interface Election<Guard = unknown> {
  readonly name: string;
  readonly backend: Backend<Guard>;
  /** The durations of this handle, with all defaults filled in. */
  readonly timing: Timing;
  /**
   * Campaigns, runs `work` while this candidate leads, and resolves with the value that `work`
   * returns. The seat is given back first.
   *
   * The term may be lost before `work` has settled, or given up by `term.resign()`. Then the
   * candidate campaigns again once `work` has settled, whatever `work` returned.
   *
   * Rejects with:
   * - the error that `work` threw. An error that comes from `term.signal` or `assertLeading` counts
   *   as loss of the term.
   * - `signal.reason`, once the seat is given back.
   * - `NotElectedError` after `wait`. Its `why` says what stood in the way.
   * - `TermEndedError`, when `again` returned false.
   * - `ElectionEndedError`, when the election was ended for everybody.
   * - an error that waiting cannot cure, such as `RecordDamagedError` or `StoreUnsuitableError`.
   */
  lead<T>(work: (term: Term<Guard>) => Promise<T> | T, options?: LeadOptions): Promise<T>;
  /**
   * Waits for one term. The caller's work counts as settled when the term is disposed
   * (`await using term = await election.campaign()`). Until then the handle cannot campaign again.
   * @throws NotElectedError after `wait`, `signal.reason`, ElectionEndedError
   */
  campaign(options?: CampaignOnceOptions): Promise<Term<Guard>>;
  /**
   * One term after the other. The work of a term counts as settled at the next `next()` or
   * `return()`.
   */
  terms(options?: CampaignOptions): StoppableIterator<Term<Guard>>;
  /**
   * The present view at once, then every change. A slow consumer gets the latest view only, and
   * never the same one twice in a row. Ends when `signal` aborts or the handle is closed. Trouble
   * is a view (`unknown`), never an error. Watching does not keep the process alive.
   */
  observe(options?: SeatOption): StoppableIterator<View>;
  /**
   * One look at the store: the leader, if there is one.
   * @throws when the store cannot be read
   */
  leader(options?: SeatOption): Promise<View>;
  /** As `leader`, for every seat, in order. */
  leaders(options?: SignalOption): Promise<readonly View[]>;
  /** The view as `leader` returns it, with the history and the requests of operators. */
  inspect(options?: SeatOption): Promise<Snapshot>;
  /** The past terms, the oldest first. At most 50. */
  history(options?: SeatOption): Promise<readonly TermSummary[]>;
  /**
   * The leader (first) and the waiting candidates.
   * @throws MisuseError where the store cannot list them
   */
  candidates(options?: SignalOption): Promise<readonly CandidateInfo[]>;
  /**
   * Asks the leader to go. Resolves when the request is recorded, not when the leader has gone.
   * With `force` the leader cannot confirm its term any more, so the term ends even if its work
   * does not stop. All candidates still wait until its belief is over.
   *
   * Also opens a seat that is only kept closed (`holdAtLeast`, `transfer`). Then `lifted` says by
   * which candidate, and until when. Only `force` lifts the hold of a leader that may be alive.
   * @throws RefusedError for such a hold without `force`
   */
  vacate(options?: SeatOption & { force?: boolean }): Promise<AdminResult>;
  /**
   * Asks the leader to hand over to the waiting candidate `to`. Resolves when the request is
   * recorded.
   * @throws RefusedError when the request cannot be granted
   */
  transfer(to: string, options?: SeatOption): Promise<AdminResult>;
  /**
   * Keeps the candidate `id` out until then. A time in the past lifts the drain.
   * @throws RefusedError when the record has no room for another drain (it keeps 100)
   */
  drain(id: string, until: Date, options?: SignalOption): Promise<AdminResult>;
  /**
   * Ends the election for everybody: terms end, and campaigns reject with `ElectionEndedError`. The
   * token is kept.
   *
   * With `remove`, only for ZooKeeper's layout `golea`: also deletes the candidates, the mark of the
   * end and the election's node, as GoLea's `DeleteElection` does. First it waits until the leader has
   * given its place back, and until no leader before can believe any more. It waits at most
   * `stopTimeout` and one `lease` for the leader. The record goes too: history, drains, holds, and
   * leaders that were to be fenced. Tokens go on rising, because they are ZooKeeper's own.
   * @throws InvalidOptionError for `remove` on another store or layout. Nothing was changed
   * @throws RefusedError when children that are no candidates are below the node (nothing was
   * changed), the leader has not gone, or another operator has reopened the election
   */
  end(options?: SignalOption & { remove?: boolean }): Promise<AdminResult>;
  /**
   * Deletes the places of all candidates that are there now, from the last to the first. For queues
   * that programs of another make may have joined: they know no other request. These are etcd, and
   * ZooKeeper in the layouts of other programs. The election goes on.
   *
   * A leader of ours believes no longer as soon as it is told. Cut off, it may believe until its
   * belief runs out. Candidates of ours wait for that, and others do not. Followers of ours enter
   * again.
   * @throws MisuseError on another store or layout: `end` and `vacate` are for candidates of ours
   */
  deleteCandidates(options?: SignalOption): Promise<AdminResult>;
  /**
   * Opens an ended election again. A hold that stood when it was ended still stands: `vacate` lifts
   * it. In ZooKeeper's layout `golea` it makes the election's node where that was removed.
   */
  reopen(options?: SignalOption): Promise<AdminResult>;
  /**
   * Makes the things that the store needs once, such as a table. Does nothing where nothing is
   * needed.
   */
  init(options?: SignalOption): Promise<void>;
  /**
   * Closes this handle: withdraws, waits until the work has settled and the seat is given back, and
   * ends the observers. It waits at most `stopTimeout` and then until belief is over. After that
   * the seat is left to run out. The election goes on elsewhere. A second call returns the same
   * promise.
   *
   * Do not await it within the work, nor before the term of `campaign` is disposed. It waits for
   * them, so it would take all of that time. To end from within, return from the work and close
   * afterwards.
   */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Makes a handle on an election. All options are checked before anything is touched, and the store
 * is not used yet.
 * @throws InvalidOptionError
 * @throws InvalidTimingError with every broken rule and its numbers
 * @throws MisuseError while a startup snapshot is built
 */
export function createElection<Guard>(options: ElectionOptions<Guard>): Election<Guard> {
  return new ElectionHandle(options);
}

class ElectionHandle<Guard> implements Election<Guard> {
  readonly name: string;
  readonly backend: Backend<Guard>;
  readonly timing: Timing;
  readonly #scope: Scope;
  readonly #candidate: CandidateOptions | undefined;
  readonly #closing = new AbortController();
  #opened: ElectionBackend<Guard> | undefined;
  #contest: Contest<Guard> | undefined;
  /** The campaign that runs. */
  #campaigning: { readonly ended: Deferred<void>; readonly campaign: Campaign<Guard> } | undefined;
  readonly #aside: StandAside = { untilMs: 0, failedTakeovers: 0 };
  readonly #hasOwnClock: boolean;
  /** Told to the companion, with each seat. */
  readonly #estate: Estate | undefined;
  #closed: Promise<void> | undefined;

  constructor(options: ElectionOptions<Guard>) {
    checkElectionOptions(options);
    refuseSnapshot();
    this.name = checkElectionName(options.name);
    this.backend = options.backend;
    this.timing = resolveTiming(options, options.backend.limits);
    this.#candidate = options.candidate;
    const { id } = this.#resolveCandidate({});
    this.#hasOwnClock = options.clock !== undefined;
    const { seats = 1, clock = systemClock } = options;
    // One handle may have many observers.
    setMaxListeners(0, this.#closing.signal);
    const trouble = new TroubleTeller({
      election: this.name,
      candidate: id,
      backend: options.backend,
      clock,
      leaseMs: this.timing.leaseMs,
      listener: options.onTrouble,
    });
    this.#scope = {
      election: this.name,
      clock,
      timing: this.timing,
      random: options.random ?? Math.random,
      uniqueId,
      onTrouble: trouble.tell,
      onAnswer: trouble.onAnswer,
      makesMissing: options.init === 'auto',
      turns: Turns.of(options.backend, clock),
      ...(seats > 1 && { seats }),
    };
    // Checks the name against the store's rules. It does no I/O.
    this.#opened = openSeats(this.backend, this.#scope, options.seats);
    this.#estate = estateOf(options, seatOf(this.#opened, 1));
  }

  async lead<T>(
    work: (term: Term<Guard>) => Promise<T> | T,
    options: LeadOptions = {},
  ): Promise<T> {
    if (typeof work !== 'function') {
      throw new InvalidOptionError(`work must be a function, not ${describeValue(work)}`);
    }
    const { campaign, signal, settings, leave } = this.#enter('lead', options);
    try {
      for (;;) {
        const term = await nextTerm(campaign, settings, this.#around(signal));
        const { holdAtLeastMs } = settings;
        const result = await runWork(term, work, {
          clock: this.#scope.clock,
          holdAtLeastMs,
          signal,
        });
        if (result.outcome === 'returned') return result.value;
        if (result.outcome === 'threw') throw result.error;
        if (result.reason === 'election-ended') throw new ElectionEndedError(this.name);
        signal.throwIfAborted();
        if (!settings.again(result.reason)) throw term.signal.reason;
      }
    } finally {
      leave();
    }
  }

  async campaign(options: CampaignOnceOptions = {}): Promise<Term<Guard>> {
    const { campaign, signal, settings, leave } = this.#enter('campaign', options);
    try {
      const term = await nextTerm(campaign, settings, this.#around(signal));
      const removeListener = onAbort(signal, () => term.stop('withdrawn', signal.reason));
      // The campaign goes on until its term has ended. A caller that waits for that may campaign
      // again.
      term.onceEnded(() => {
        removeListener();
        leave();
      });
      return term;
    } catch (error) {
      leave();
      throw error;
    }
  }

  terms(options: CampaignOptions = {}): StoppableIterator<Term<Guard>> {
    // Faults in the options are reported at once, not at the first `next`.
    this.#resolve('terms', options);
    return stoppable((stop) => this.#terms(options, stop));
  }

  async *#terms(
    options: CampaignOptions,
    stop: AbortSignal,
  ): AsyncGenerator<Term<Guard>, void, void> {
    const { campaign, signal: whole, leave } = this.#enter('terms', options);
    const [signal, forget] = anyOf(stop, whole);
    try {
      for (;;) {
        const term = await campaign.next('wait', signal);
        const removeListener = onAbort(signal, () => term.stop('withdrawn', signal.reason));
        try {
          yield term;
        } finally {
          term.stop('resigned');
          term.settle();
          await term.ended;
          removeListener();
        }
        const { reason } = await term.ended;
        if (reason === 'election-ended') throw new ElectionEndedError(this.name);
        signal.throwIfAborted();
      }
    } catch (error) {
      if (!stop.aborted) throw error;
    } finally {
      forget();
      leave();
    }
  }

  observe(options: SeatOption = {}): StoppableIterator<View> {
    checkSignalOption('observe', options, { seat: true });
    if (this.#opened !== undefined) seatOf(this.#opened, options.seat);
    return stoppable((stop) => this.#observe(options, stop));
  }

  async *#observe(
    { signal: wanted, seat }: SeatOption,
    stop: AbortSignal,
  ): AsyncGenerator<View, void, void> {
    const opened = seatOf(this.#open(), seat);
    const [either, forgetEither] = anyOf(wanted, stop);
    const [signal, forget] = anyOf(either, this.#closing.signal);
    try {
      let last: View | undefined;
      for await (const view of opened.observe(signal)) {
        if (signal.aborted) return;
        // Even a view that is no news shows that the store has answered.
        if (view.state !== 'unknown') this.#scope.onAnswer?.(true);
        if (last !== undefined && sameView(last, view)) continue;
        last = view;
        yield withJson(view);
      }
    } finally {
      forget();
      forgetEither();
    }
  }

  async leader(options: SeatOption = {}): Promise<View> {
    return (await this.#inspect('leader', options)).view;
  }

  async leaders(options: SignalOption = {}): Promise<readonly View[]> {
    checkSignalOption('leaders', options);
    const looks = await this.#ask(options, (signal) => inspectSeats(this.#open(), signal));
    return looks.map(({ view }) => withJson(view));
  }

  async inspect(options: SeatOption = {}): Promise<Snapshot> {
    return this.#inspect('inspect', options);
  }

  async history(options: SeatOption = {}): Promise<readonly TermSummary[]> {
    return (await this.#inspect('history', options)).history;
  }

  async #inspect(call: string, options: SeatOption): Promise<Snapshot> {
    checkSignalOption(call, options, { seat: true });
    const opened = seatOf(this.#open(), options.seat);
    const snapshot = await this.#ask(options, (signal) => opened.inspect(signal));
    withJson(snapshot.view);
    for (const term of [...snapshot.history, ...snapshot.unfenced]) withJson(term);
    return snapshot;
  }

  async candidates(options: SignalOption = {}): Promise<readonly CandidateInfo[]> {
    const opened = this.#open();
    checkSignalOption('candidates', options);
    if (!opened.canListCandidates) {
      throw new MisuseError(`the ${this.backend.kind} store cannot list candidates`);
    }
    return this.#ask(options, (signal) => opened.candidates(signal));
  }

  async vacate(options: SeatOption & { force?: boolean } = {}): Promise<AdminResult> {
    checkSignalOption('vacate', options, { force: true, seat: true });
    const { force = false, ...rest } = options;
    if (typeof force !== 'boolean') {
      throw new InvalidOptionError(`force must be true or false, not ${describeValue(force)}`);
    }
    return this.#administer({ kind: 'vacate', force }, rest, seatOf(this.#open(), rest.seat));
  }

  async transfer(to: string, options: SeatOption = {}): Promise<AdminResult> {
    checkSignalOption('transfer', options, { seat: true });
    const opened = this.#open();
    const seat = seatOf(opened, options.seat);
    const request = { kind: 'transfer', to: checkCandidateId(to) } as const;
    await this.#ask(options, (signal) => requireSeatless(opened, to, options.seat, signal));
    return this.#administer(request, options, seat);
  }

  async drain(id: string, until: Date, options: SignalOption = {}): Promise<AdminResult> {
    const untilUnixMs = checkUntil(until);
    return this.#administer({ kind: 'drain', id: checkCandidateId(id), untilUnixMs }, options);
  }

  async end(options: SignalOption & { remove?: boolean } = {}): Promise<AdminResult> {
    checkSignalOption('end', options, { remove: true });
    const { remove = false, ...rest } = options;
    if (typeof remove !== 'boolean') {
      throw new InvalidOptionError(`remove must be true or false, not ${describeValue(remove)}`);
    }
    if (!remove) return this.#administer({ kind: 'end' }, rest);
    const { endAndRemove } = this.#open();
    if (endAndRemove === undefined) {
      throw new InvalidOptionError(
        `remove: ${this.backend.description} keeps an ended election, so that candidates which come ` +
          'late are refused. Only the layout "golea" of ZooKeeper removes it. Call end() without remove',
      );
    }
    // It may wait for the leader, and bounds itself.
    return this.#answered(await this.#ask(rest, endAndRemove, maxTimerMs));
  }

  async deleteCandidates(options: SignalOption = {}): Promise<AdminResult> {
    checkSignalOption('deleteCandidates', options);
    const { deleteCandidates } = this.#open();
    if (deleteCandidates === undefined) {
      throw new MisuseError(
        'deleteCandidates is for queues that programs of another make may have joined (etcd, and ' +
          'ZooKeeper in the layouts of other programs), not for ' +
          `${this.backend.description}: end() ends the election, and vacate() asks its leader to go`,
      );
    }
    return this.#answered(await this.#ask(options, deleteCandidates));
  }

  async reopen(options: SignalOption = {}): Promise<AdminResult> {
    return this.#administer({ kind: 'reopen' }, options);
  }

  async init(options: SignalOption = {}): Promise<void> {
    checkSignalOption('init', options);
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
    // No longer than the seat needs: work that hangs must not make `close` hang.
    const running = this.#campaigning;
    if (running !== undefined)
      await Promise.race([running.ended.promise, running.campaign.leave()]);
    const opened = this.#opened;
    this.#opened = undefined;
    if (opened === undefined) return;
    const { clock, timing, onTrouble } = this.#scope;
    await bounded(clock, 'closing the store', timing.operationTimeoutMs, never(), () =>
      opened.close(),
    ).catch((error: unknown) => onTrouble('closing the store', error));
  }

  #open(): ElectionBackend<Guard> {
    if (this.#opened === undefined || this.#closing.signal.aborted) {
      throw new ClosedError(this.name);
    }
    return this.#opened;
  }

  #resolve(call: CampaignCall, options: LeadOptions): ResolvedCampaign {
    const settings = resolveCampaign(
      call,
      options,
      (given) => this.#resolveCandidate(given),
      this.#hasOwnClock,
    );
    if (this.#estate !== undefined && settings.actors === 'declared') {
      throw new InvalidOptionError(
        'releaseOnCrash gives the seat back when this process is dead, and actors: "declared" says that ' +
          'others act for the term too: leave one of them out',
      );
    }
    return settings;
  }

  /** The companion is told of the seats of this campaign, if there shall be one. */
  #entrust(settings: ResolvedCampaign): Entrusted | undefined {
    if (this.#estate === undefined) return undefined;
    return new Entrusted(this.#estate, settings.onSeat, (error) =>
      this.#scope.onTrouble('releaseOnCrash', error),
    );
  }

  /**
   * Begins the one campaign of this handle. `leave` ends it.
   * @throws InvalidOptionError, MisuseError, ClosedError, before anything has begun
   */
  #enter(
    call: CampaignCall,
    options: LeadOptions,
  ): {
    readonly campaign: Campaign<Guard>;
    readonly settings: ResolvedCampaign;
    readonly signal: AbortSignal;
    readonly leave: () => void;
  } {
    const opened = this.#open();
    const settings = this.#resolve(call, options);
    if (this.#campaigning !== undefined) {
      throw new MisuseError(
        `this handle on election "${this.name}" campaigns already; create another one for a ` +
          'second candidate',
      );
    }
    const watchdog = settings.killOnOverrun
      ? startWatchdog((error) => this.#scope.onTrouble('the watchdog', error))
      : undefined;
    let entrusted: Entrusted | undefined;
    let campaign: Campaign<Guard>;
    try {
      entrusted = this.#entrust(settings);
      campaign = new Campaign(
        this.#contestOf(opened, settings.candidate),
        this.#scope,
        entrusted === undefined ? settings : { ...settings, onSeat: entrusted.onSeat },
        watchdog,
        this.#aside,
      );
    } catch (error) {
      watchdog?.close();
      entrusted?.close();
      throw error;
    }
    const [signal, forget] = anyOf(settings.signal, this.#closing.signal);
    const ended = new Deferred<void>();
    const present = { ended, campaign };
    this.#campaigning = present;
    const leave = () => {
      campaign.close();
      watchdog?.close();
      entrusted?.close();
      forget();
      if (this.#campaigning === present) this.#campaigning = undefined;
      ended.resolve();
    };
    return { campaign, settings, signal, leave };
  }

  /** The contest remembers what it saw. So a handle keeps it from one campaign to the next. */
  #contestOf(opened: ElectionBackend<Guard>, candidate: CandidateInfo): Contest<Guard> {
    this.#contest ??= opened.contest(candidate);
    this.#contest.present(candidate);
    return this.#contest;
  }

  /**
   * Each campaign has its own incarnation, so a copy of this handle that begins one differs from
   * it.
   */
  #resolveCandidate(given: CandidateOptions = {}): CandidateInfo {
    const options = checkCandidate(checkCandidate({}, this.#candidate ?? {}), given);
    // Without the cache: a copy of this process would have a copy of the cache.
    return resolveCandidate(options, defaultId(), randomUUID({ disableEntropyCache: true }));
  }

  #around(signal: AbortSignal) {
    const inspect = (stop: AbortSignal) => this.#open().inspect(stop);
    return { scope: this.#scope, inspect, signal };
  }

  async #administer(
    request: AdminRequest,
    options: SignalOption,
    opened?: ElectionBackend<Guard>,
  ): Promise<AdminResult> {
    if (opened === undefined) checkSignalOption(request.kind, options);
    const whole = opened ?? this.#open();
    return this.#answered(await this.#ask(options, (signal) => whole.administer(request, signal)));
  }

  #answered(result: AdminResult): AdminResult {
    withJson(result.view);
    withJson(result.asked);
    return result;
  }

  /** Asks the store one question, bounded as a whole. */
  async #ask<T>(
    options: SignalOption,
    question: (signal: AbortSignal) => Promise<T>,
    timeoutMs: number = 6 * this.timing.operationTimeoutMs,
  ): Promise<T> {
    this.#open();
    const [signal, forget] = anyOf(options.signal, this.#closing.signal);
    try {
      const { clock, onAnswer } = this.#scope;
      return await bounded(clock, 'the request', timeoutMs, signal, question, onAnswer);
    } finally {
      forget();
    }
  }
}

/** A signal that never aborts. */
function never(): AbortSignal {
  return new AbortController().signal;
}
