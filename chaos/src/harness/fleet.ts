import { appendFileSync } from 'node:fs';
import type { RunReport } from '@incumbent/cli/trial';
import { CandidateProcess, childrenOf, processesOf, send, waitUntil } from '@incumbent/cli/trial';
import { monotonicMs } from './time.ts';

export interface FleetOptions {
  readonly election: string;
  readonly store: string;
  readonly lease: string;
  readonly stopTimeoutMs: number;
  readonly log: string;
  /** Everything that candidates report and that is done to them, a JSON object a line. */
  readonly history: string;
  /** In place of `incumbent`. */
  readonly command?: string;
  /** Whether one that nobody killed may end so: it could not reach its store. Default: never. */
  readonly mayEnd?: (how: string) => boolean;
  /** A candidate ended that nobody killed, or reported what must not be. */
  readonly onProblem: (problem: string) => void;
  /**
   * A candidate reports that somebody of its program was there when belief was over; `atMs` is
   * when, by CLOCK_MONOTONIC, and `reason` why the term ended. Its deeds after that are the
   * problem.
   */
  readonly onOverrun: (token: bigint, atMs: number, reason: string) => void;
}

/** One who takes part. */
export interface Recruit {
  readonly id: string;
  /** Its worker ignores TERM. */
  readonly stubborn: boolean;
  /** Default: what all have. */
  readonly store?: string;
  readonly lease?: string;
}

/** Every third one's worker ignores TERM. */
const stubbornEvery = 3;
const longestEndMs = 15_000;
const lateFor = `did not end within ${longestEndMs / 1000} s of TERM`;
/** After so many it is not worth while to start them again. */
const mostUnexpectedEnds = 10;

/** The candidates, as processes. A process that ends is started again under the same id. */
export class Fleet {
  readonly #options: FleetOptions;
  readonly #candidates = new Map<string, CandidateProcess>();
  /** Processes that were killed or asked to end, and the recruit that follows each. */
  readonly #struck = new Map<CandidateProcess, { readonly ms: number; readonly next?: Recruit }>();
  /** Processes that reported to lead, by token. */
  readonly #leaders = new Map<bigint, CandidateProcess>();
  readonly #leadingListeners = new Set<(token: bigint, candidate: CandidateProcess) => void>();
  readonly #thaws = new Set<Promise<unknown>>();
  readonly #timers = new Set<NodeJS.Timeout>();
  #unexpectedEnds = 0;
  #ending = false;

  constructor(options: FleetOptions) {
    this.#options = options;
  }

  start(recruit: Recruit): void {
    const { id, stubborn, store = this.#options.store, lease = this.#options.lease } = recruit;
    const { election, log, stopTimeoutMs, command } = this.#options;
    let lastWords = '';
    const candidate: CandidateProcess = new CandidateProcess({
      id,
      election,
      store,
      lease,
      log,
      stubborn,
      options: ['--stop-timeout', `${stopTimeoutMs}ms`],
      ...(command === undefined ? {} : { command }),
      onReport: (report) => {
        this.#record({ ...report, candidate: id, supervisor: candidate.pid });
        if (report.text !== undefined) lastWords = report.text;
        this.#heard(candidate, report);
      },
    });
    this.#record({ event: 'start', candidate: id, supervisor: candidate.pid });
    this.#candidates.set(id, candidate);
    void candidate.ended.then((how) => {
      this.#record({ event: 'end', candidate: id, supervisor: candidate.pid, how });
      if (this.#ending) return;
      const struck = this.#struck.get(candidate);
      if (struck === undefined && this.#options.mayEnd?.(how) !== true) {
        this.#options.onProblem(
          `candidates stay: ${id} ended unasked (${how}) ${lastWords}`.trimEnd(),
        );
        this.#unexpectedEnds += 1;
        if (this.#unexpectedEnds > mostUnexpectedEnds) return;
      }
      if (struck?.next !== undefined) this.#candidates.delete(id);
      this.#later(struck?.ms ?? 500, () => this.start(struck?.next ?? recruit));
    });
  }

  /** Starts so many, one after the other. */
  async startAll(count: number, staggerMs: number): Promise<void> {
    const digits = String(count).length;
    for (let i = 1; i <= count; i += 1) {
      const id = `c${String(i).padStart(digits, '0')}`;
      this.start({ id, stubborn: i % stubbornEvery === 0 });
      await new Promise((resolve) => setTimeout(resolve, staggerMs));
    }
  }

  /** Those that are there, or will be again soon, by their ids. */
  get candidates(): ReadonlyMap<string, CandidateProcess> {
    return this.#candidates;
  }

  /** The process that leads, or led, with this token, by its own report. */
  leaderOf(token: bigint): CandidateProcess | undefined {
    return this.#leaders.get(token);
  }

  /** @returns a function that ends it */
  onLeading(listener: (token: bigint, candidate: CandidateProcess) => void): () => void {
    this.#leadingListeners.add(listener);
    return () => this.#leadingListeners.delete(listener);
  }

  /** Kills the supervisor, the guard, or both, and `group` as well when it is given. */
  kill(
    candidate: CandidateProcess,
    who: { readonly supervisor: boolean; readonly guard: boolean; readonly group?: number },
    restartMs: number,
  ): void {
    this.#record({ event: 'kill', candidate: candidate.id, ...who });
    const guards = who.guard ? childrenOf(candidate.pid) : [];
    if (who.supervisor) {
      this.#struck.set(candidate, { ms: restartMs });
      candidate.signal('SIGKILL');
    }
    for (const guard of guards) send(guard, 'SIGKILL');
    if (who.group !== undefined) send(-who.group, 'SIGKILL');
  }

  /** TERM. When it has ended, `next` takes its place. */
  withdraw(candidate: CandidateProcess, next: Recruit, afterMs: number): void {
    this.#record({ event: 'withdraw', candidate: candidate.id, next: next.id });
    this.#struck.set(candidate, { ms: afterMs, next });
    candidate.signal('SIGTERM');
    this.#later(longestEndMs, () => {
      if (candidate.hasEnded) return;
      this.#options.onProblem(`candidates end: ${candidate.id} ${lateFor}`);
      candidate.signal('SIGKILL');
    });
  }

  /** Freezes the supervisor, the guard, or both. @returns when it thawed, by CLOCK_MONOTONIC */
  freeze(
    candidate: CandidateProcess,
    who: { readonly supervisor: boolean; readonly guard: boolean },
    ms: number,
  ): Promise<bigint> {
    this.#record({ event: 'freeze', candidate: candidate.id, ...who, ms });
    const guards = who.guard ? childrenOf(candidate.pid) : [];
    for (const guard of guards) send(guard, 'SIGSTOP');
    if (who.supervisor) candidate.signal('SIGSTOP');
    const thawed = new Promise<bigint>((resolve) => {
      this.#later(ms, () => {
        const nowNs = process.hrtime.bigint();
        this.#record({ event: 'thaw', candidate: candidate.id });
        candidate.signal('SIGCONT');
        for (const guard of guards) send(guard, 'SIGCONT');
        resolve(nowNs);
      });
    });
    this.#thaws.add(thawed);
    void thawed.then(() => this.#thaws.delete(thawed));
    return thawed;
  }

  /** Ends all in order, after everybody has thawed. @returns what had to be killed, in words */
  async end(): Promise<readonly string[]> {
    await Promise.all(this.#thaws);
    this.#ending = true;
    this.#forgetTimers();
    const all = [...this.#candidates.values()];
    for (const candidate of all) candidate.signal('SIGTERM');
    await waitUntil(() => all.every(({ hasEnded }) => hasEnded), longestEndMs);
    const late = all.filter(({ hasEnded }) => !hasEnded);
    for (const candidate of late) candidate.signal('SIGKILL');
    await waitUntil(() => processesOf(this.#options.log).length === 0, longestEndMs);
    const left = processesOf(this.#options.log);
    this.killNow();
    return [
      ...late.map(({ id }) => `${id} ${lateFor}`),
      ...(left.length === 0 ? [] : [`processes ${left.join(', ')} outlived their supervisors`]),
    ];
  }

  /** At once and without waiting. */
  killNow(): void {
    this.#ending = true;
    this.#forgetTimers();
    for (const candidate of this.#candidates.values()) candidate.signal('SIGKILL');
    for (const pid of processesOf(this.#options.log)) send(pid, 'SIGKILL');
  }

  #heard(candidate: CandidateProcess, { event, token, time, reason }: RunReport): void {
    if (event === 'overrun') {
      const agoMs = Date.now() - Date.parse(time ?? '');
      this.#options.onOverrun(BigInt(token ?? 0), monotonicMs() - agoMs, reason ?? '');
    }
    if (event !== 'leading' || token === undefined) return;
    this.#leaders.set(BigInt(token), candidate);
    for (const listener of this.#leadingListeners) listener(BigInt(token), candidate);
  }

  #later(ms: number, act: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      act();
    }, ms);
    this.#timers.add(timer);
  }

  #forgetTimers(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
  }

  #record(entry: object): void {
    const atNs = process.hrtime.bigint().toString();
    appendFileSync(this.#options.history, `${JSON.stringify({ atNs, ...entry })}\n`);
  }
}
