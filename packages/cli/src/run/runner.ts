import { constants } from 'node:os';
import type { Election, LeadOptions, Term } from 'incumbent';
import { formatDuration, NotElectedError, TermEndedError } from 'incumbent';
import { describeFailure, exitCodes } from '../failure.ts';
import { groupIsGone } from '../guard/group.ts';
import type { ForwardedSignal, GuardedProgram, ProgramExit, ProgramSpec } from '../guard/index.ts';
import { GuardError } from '../guard/index.ts';
import { monotonicMs } from '../guard/protocol.ts';
import type { ListenAddress } from '../options.ts';
import { span } from '../output/span.ts';
import type { EventLog } from './events.ts';
import { describe, whyFields } from './events.ts';
import type { GuardKeeper } from './guard-keeper.ts';
import type { Supervision } from './leadership.ts';
import { runInTerm } from './leadership.ts';
import type { LiveStatus } from './listen.ts';
import { reachStore, sleep } from './reach-store.ts';
import type { Readiness } from './readiness.ts';
import { ReadinessWatch } from './readiness.ts';
import { codeOf, RestartPause } from './restarts.ts';

export interface RunnerOptions {
  readonly spec: ProgramSpec;
  readonly restart: 'no' | 'on-failure' | 'always';
  readonly once: boolean;
  readonly listen?: ListenAddress;
  /** How the program becomes ready. Undefined: it is when the term begins. */
  readonly readiness?: Readiness;
  /** The store has servers, of which another may serve when one fails. */
  readonly hasServers: boolean;
  /** The program is told which seat it has. */
  readonly hasSeats: boolean;
  /** For how long the seat is kept from the beginning of the term, in ms; 0: no longer than the program runs. */
  readonly holdAtLeastMs: number;
}

/** How long after KILL we wait for a program to be gone. */
const lingeringMs = 5_000;

/** Leadership was lost, with `--once`. Not an error of the term: that would campaign again. */
class LostError extends Error {
  override readonly name: string = 'LostError';
}

/** The user asked for an end. */
class Interruption extends Error {
  override readonly name: string = 'Interruption';

  constructor(by: NodeJS.Signals) {
    super(`ended by ${by}`);
  }
}

/** Campaigns, runs the program while leading, and decides what comes after. */
export class Runner implements Supervision {
  readonly guard: GuardKeeper;
  readonly events: EventLog;
  readonly stopTimeoutMs: number;
  readonly hasSeats: boolean;
  running: GuardedProgram | undefined;
  readonly #election: Election;
  readonly #options: RunnerOptions;
  readonly #stop = new AbortController();
  #term: Term | undefined;
  #interruptedBy: NodeJS.Signals | undefined;
  #killTimer: NodeJS.Timeout | undefined;
  #watch: ReadinessWatch | undefined;
  #abandoned: (reason: Error) => void = () => {};
  /** Monotonic: when the last term began. */
  #startedMs = 0;
  /** How the program ended by itself, in this campaign. */
  #finished: ProgramExit | undefined;
  /** How the last program ended. */
  #exit: ProgramExit | undefined;

  constructor(election: Election, guard: GuardKeeper, events: EventLog, options: RunnerOptions) {
    this.#election = election;
    this.guard = guard;
    this.events = events;
    this.#options = options;
    this.hasSeats = options.hasSeats;
    this.stopTimeoutMs = election.timing.stopTimeoutMs;
  }

  interrupted(): boolean {
    return this.#interruptedBy !== undefined;
  }

  /** @returns the exit code */
  async run(campaign: LeadOptions): Promise<number> {
    const removeListeners = this.#listenToSignals();
    const { listen: address } = this.#options;
    const listener =
      address &&
      (await (
        await import('./listen.ts')
      )
        .listen(address, () => this.#status())
        .catch(async (error: unknown) => {
          await this.guard.close();
          removeListeners();
          throw error;
        }));
    if (listener !== undefined) {
      this.events.emit({
        event: 'listening',
        sentence: `listening on ${listener.url}`,
        fields: { url: listener.url },
      });
    }
    this.events.follow(
      () => this.running !== undefined && !groupIsGone(this.running.pid, true),
      this.#options.readiness !== undefined,
    );
    try {
      await reachStore(
        (signal) => this.#election.leader({ signal, seat: 1 }),
        this.#options.hasServers,
        this.#stop.signal,
      );
      const abandoned = new Promise<never>((_, reject) => {
        this.#abandoned = reject;
      });
      const campaigns = this.#campaigns({ ...campaign, signal: this.#stop.signal });
      return await Promise.race([campaigns, abandoned]);
    } catch (error) {
      return this.#outcome(error);
    } finally {
      listener?.close();
      removeListeners();
      clearTimeout(this.#killTimer);
      // That of a program which does not die.
      await this.#watch?.close();
      await this.#election.close();
      await this.guard.close();
      await this.events.close();
    }
  }

  async #campaigns(campaign: LeadOptions): Promise<number> {
    const { restart } = this.#options;
    const pause = new RestartPause();
    for (;;) {
      this.#startedMs = Number.POSITIVE_INFINITY;
      const [code, why] = await this.#once(campaign);
      if (this.interrupted() || restart === 'no') return code;
      if (restart === 'on-failure' && code === 0) return code;
      const backoffMs = pause.next(this.#startedMs);
      this.events.emit({
        event: 'restarting',
        sentence: `${why}; campaigning again in ${span(backoffMs)}`,
        fields: { code, backoffMs },
      });
      await sleep(backoffMs, this.#stop.signal);
    }
  }

  /** One program that came to its own end, however many terms that takes. */
  async #once(campaign: LeadOptions): Promise<[code: number, why: string]> {
    this.#finished = undefined;
    try {
      const exit = await this.#election.lead((term) => this.#work(term), {
        ...campaign,
        // A program that ended by itself has done its job, however the term ended.
        again: () => this.#finished === undefined,
      });
      return [codeOf(exit), `the program ended with ${codeOf(exit)}`];
    } catch (error) {
      const exit = this.#finished;
      if (exit !== undefined && error instanceof TermEndedError) {
        return [codeOf(exit), `the program ended with ${codeOf(exit)}`];
      }
      if (!(error instanceof GuardError)) throw error;
      this.events.emit({
        event: 'cannot-start',
        sentence: describe(error),
        fields: { code: error.code },
      });
      return [error.exitCode ?? exitCodes.internal, 'the program could not be started'];
    }
  }

  /** Otherwise users cannot see why this process still waits. */
  #tellHold({ token }: Term): void {
    const leftMs = this.#startedMs + this.#options.holdAtLeastMs - monotonicMs();
    if (leftMs <= 0) return;
    const untilUnixMs = Date.now() + leftMs;
    this.events.emit({
      event: 'holding',
      sentence:
        `the seat is held for ${formatDuration(Math.ceil(leftMs / 1_000) * 1_000)} more (--hold-at-least), and this ` +
        'process stays for it; TERM ends the process, and the hold stays in the record',
      fields: { token, untilUnixMs: Math.round(untilUnixMs) },
    });
  }

  async #work(term: Term): Promise<ProgramExit> {
    this.#term = term;
    this.#startedMs = monotonicMs();
    const exit = await this.#runProgram(term).catch((error: unknown) => {
      // The term ended before the program began: its end, not an error of ours.
      if (error === term.signal.reason) return undefined;
      throw error;
    });
    this.#exit = exit;
    if (this.#interruptedBy !== undefined) this.#stop.abort(new Interruption(this.#interruptedBy));
    if (exit !== undefined) {
      this.#finished = exit;
      if (!this.interrupted()) this.#tellHold(term);
      return exit;
    }
    if (this.#options.once && !this.interrupted()) throw new LostError();
    // Lost: campaign again. The guard may have seen the end of belief before we did.
    term.resign();
    throw term.signal.reason;
  }

  async #runProgram(term: Term): Promise<ProgramExit | undefined> {
    const { spec, readiness } = this.#options;
    const env = {
      ...spec.env,
      ...(this.hasSeats && { INCUMBENT_SEAT: String(term.seat) }),
      INCUMBENT_TOKEN: term.token.toString(),
    };
    if (readiness === undefined) return runInTerm(term, { ...spec, env }, this);
    const watch = await ReadinessWatch.open(readiness, { ...spec, env }, term, {
      onTrouble: (error) =>
        this.events.emit({
          event: 'trouble',
          sentence: `asking whether the program is ready: ${describe(error)}`,
          fields: { what: 'readiness', error: describe(error) },
        }),
      onNotReady: (last) =>
        this.events.emit({
          event: 'not-ready',
          sentence: `the program was not ready within ${formatDuration(readiness.withinMs)} (--ready-timeout); last: ${last}`,
          fields: { token: term.token, last },
        }),
    });
    this.#watch = watch;
    try {
      return await runInTerm(term, watch.spec, this, watch);
    } finally {
      await watch.close();
    }
  }

  #outcome(error: unknown): number {
    if (this.interrupted()) {
      return this.#exit === undefined
        ? 128 + constants.signals[this.#interruptedBy ?? 'SIGTERM']
        : codeOf(this.#exit);
    }
    if (error instanceof LostError) return exitCodes.temporary;
    if (error instanceof NotElectedError) {
      this.events.emit({
        event: 'not-elected',
        sentence: describe(error),
        fields: { why: whyFields(error.why) },
      });
      return describeFailure(error).exitCode;
    }
    throw error;
  }

  #listenToSignals(): () => void {
    const names = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGUSR2'] as const;
    const listeners = names.map((name) => {
      const listener = () => this.#signal(name);
      process.on(name, listener);
      return () => process.off(name, listener);
    });
    return () => {
      for (const remove of listeners) remove();
    };
  }

  /**
   * TERM and INT: the program gets them and time to end, while the term goes on being renewed. Then
   * the seat is given back. HUP, USR1 and USR2 are for the program to handle, but a hang-up without
   * a program is an end.
   */
  #signal(name: ForwardedSignal): void {
    const program = this.running;
    if (name === 'SIGUSR1' || name === 'SIGUSR2' || (name === 'SIGHUP' && program !== undefined)) {
      program?.signal(name);
      return;
    }
    const first = this.#interruptedBy === undefined;
    this.#interruptedBy ??= name;
    if (program === undefined) {
      // The exit code of an earlier program is no answer to this signal.
      this.#exit = undefined;
      this.#stop.abort(new Interruption(this.#interruptedBy));
      return;
    }
    if (name === 'SIGTERM' && first) program.stop(monotonicMs() + this.stopTimeoutMs);
    else program.signal(name);
    this.#killTimer ??= setTimeout(() => {
      program.stop(0);
      this.#killTimer = setTimeout(() => this.#abandon(name), lingeringMs);
    }, this.stopTimeoutMs);
  }

  /**
   * A process of the program does not die of KILL: it is another user's, or stuck in the kernel. We
   * end all the same. We do not give the seat back, so that it runs out.
   */
  #abandon(name: NodeJS.Signals): void {
    this.events.emit({
      event: 'lingering',
      sentence: 'the program does not die of KILL: leaving the seat to run out',
    });
    this.#stop.abort(new Interruption(name));
    void this.#election.close().then(() => this.#abandoned(new Interruption(name)));
  }

  #status(): LiveStatus {
    const term = this.#term;
    const state = term?.state;
    const over = state === 'ended' || state === undefined;
    const remainingMs = term?.remaining() ?? 0;
    // A term that is given up by choice is renewed until the program has ended.
    const lost = state === 'stopping' && remainingMs <= this.#election.timing.stopMarginMs;
    const leading = term?.isLeading() === true && state !== 'stopping';
    return {
      leading,
      ready: leading && term?.isReady === true,
      healthy: state !== 'uncertain' && !lost && !(over && this.running !== undefined),
      fields: {
        election: this.#election.name,
        candidate: this.events.candidate,
        state: over ? 'waiting' : state,
        ...(this.hasSeats && { seat: over ? null : (term?.seat ?? null) }),
        token: over ? null : (term?.token ?? null),
        since: over || term === undefined ? null : new Date(term.sinceUnixMs).toISOString(),
        remainingMs: Math.round(remainingMs),
        program: this.running?.pid ?? null,
      },
    };
  }
}
