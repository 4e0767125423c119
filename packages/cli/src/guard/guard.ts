import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import type { Socket } from 'node:net';
import type { Deadline } from 'incumbent';
import { Countdown } from 'incumbent';
import { GuardError } from './errors.ts';
import { findProgram } from './find-program.ts';
import { gate } from './gate.ts';
import type { GuardedProgram } from './program.ts';
import { Program } from './program.ts';
import type { FromGuard, Heir, ToGuard } from './protocol.ts';
import { monotonicMs } from './protocol.ts';
import { GuardProcess } from './spawn.ts';
import type { Deferred } from './wait.ts';
import { bounded, deferred } from './wait.ts';

export interface GuardOptions {
  /** G: the program is sent TERM when this much belief is left. */
  readonly stopMarginMs: number;
  /** K, less than G: it is sent KILL when this much is left. */
  readonly killMarginMs: number;
  /** Programs read our stdin. Default: they read /dev/null. */
  readonly stdin?: boolean;
  /** Gives the seat back when we and the program are dead. Default: the seat runs out. */
  readonly heir?: Heir;
  /** Gets trouble that no promise reports, for a line on stderr. Must not throw. */
  readonly onTrouble?: (trouble: GuardError) => void;
}

export interface ProgramSpec {
  readonly program: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
}

const startWithinMs = 10_000;
const endWithinMs = 5_000;
// The guard's heartbeat comes every 200 ms.
const lookEveryMs = 250;

/**
 * The supervisor's end of the guard: a small process that runs programs, one at a time. A program
 * runs only while we believe to lead. The guard outlives us by as long as it takes to kill the
 * program.
 *
 * It reports events in the order in which they happened. Nothing is thrown from the background.
 */
export class Guard {
  /** Of the guard itself. */
  readonly pid: number;
  /**
   * The guard died, or was silent for longer than max(1 s, G) while a program was there. It and
   * the program's group have then been sent KILL; the program's `exited` and `gone` follow. Never
   * rejects, and stays pending after `close`.
   */
  readonly lost: Promise<GuardError>;
  readonly #child: ChildProcess;
  readonly #control: Socket;
  /** The watchers in the group wait for its end; nothing is ever written to it. */
  readonly #life: Socket;
  readonly #options: GuardOptions;
  readonly #up: Deferred<void> = deferred();
  readonly #lost: Deferred<GuardError> = deferred();
  readonly #ended: Promise<unknown>;
  #state: 'running' | 'closing' | 'lost' = 'running';
  readonly #belief = new Countdown();
  #program: Program | undefined;
  #lastId = 0;
  #partial = '';
  #end = 'closed its pipe';
  #why: GuardError | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** How long we were awake without hearing anything. */
  #silentMs = 0;

  /**
   * Starts a guard, 10 s at most. It costs nothing while no program is there, so start it before
   * the program is needed.
   * @param early the process to use, if it still lives; it was started with the same stdin
   * @throws GuardError GUARD_FAILED
   */
  static async start(
    options: GuardOptions,
    signal?: AbortSignal,
    early?: GuardProcess,
  ): Promise<Guard> {
    const { stopMarginMs, killMarginMs } = options;
    if (!(killMarginMs > 0 && killMarginMs < stopMarginMs && stopMarginMs < Infinity)) {
      const numbers = `the kill margin is ${killMarginMs} ms, the stop margin ${stopMarginMs} ms`;
      throw new GuardError('MISUSE', `0 < kill margin < stop margin does not hold: ${numbers}`);
    }
    if (process.platform === 'win32') {
      throw new GuardError('GUARD_FAILED', 'Windows has no process groups that could be killed');
    }
    signal?.throwIfAborted();
    const child = early?.take() ?? new GuardProcess(options.stdin === true).child;
    if (child.pid === undefined) {
      const [error] = (await once(child, 'error')) as [Error];
      throw new GuardError('GUARD_FAILED', `the guard could not be started: ${error.message}`);
    }
    const guard = new Guard(child, child.pid, options);
    if (options.heir !== undefined) guard.#send({ do: 'heir', heir: options.heir });
    try {
      await bounded(guard.#up.promise, startWithinMs, 'the guard to start', signal);
    } catch (error) {
      guard.#state = 'closing';
      child.kill('SIGKILL');
      if (signal?.aborted || error instanceof GuardError) throw error;
      throw new GuardError('GUARD_FAILED', (error as Error).message);
    }
    return guard;
  }

  private constructor(child: ChildProcess, pid: number, options: GuardOptions) {
    this.#child = child;
    this.pid = pid;
    this.#options = options;
    this.lost = this.#lost.promise;
    this.#control = child.stdio[3] as Socket;
    this.#life = child.stdio[4] as Socket;
    child.once('exit', (code, signal) => {
      // Its last words may still be unread: they come before the end of the pipe, which follows.
      this.#end = `ended (${signal ?? `exit code ${code}`})`;
      if (this.#state === 'running') this.#program?.kill();
    });
    this.#control.once('close', () => this.#lose(this.#end));
    this.#ended = Promise.all([
      new Promise((resolve) => child.once('exit', resolve)),
      new Promise((resolve) => this.#control.once('close', resolve)),
    ]);
    this.#control.setEncoding('utf8');
    this.#control.on('data', (text: string) => this.#heard(text));
    const { stopMarginMs, killMarginMs } = options;
    this.#send({ do: 'margins', stopMarginMs, killMarginMs });
  }

  /**
   * Belief was extended, or found to be shorter; undefined: it is over. To be called at every
   * confirmation.
   */
  belief(deadline: Deadline | undefined): void {
    if (deadline === undefined) this.#belief.clear();
    else this.#belief.set(deadline);
    this.#send({ do: 'belief', deadline: deadline ?? null });
  }

  /**
   * Tells the heir's facts of our seat, before they can matter; undefined: there is no seat to give
   * back. Only for a guard that holds all programs of that term.
   */
  seat(seat: object | undefined): void {
    this.#send({ do: 'seat', seat: seat ?? null });
  }

  /**
   * Puts a program behind its gate: its process and its group exist, and it cannot do anything
   * before `go`. Bounded by 10 s; when it rejects, no process of it is left.
   * @throws GuardError CANNOT_START, BELIEF_OVER, GUARD_LOST, or MISUSE while the program before it
   * is not gone; the reason of `signal`
   */
  async prepare(spec: ProgramSpec, signal?: AbortSignal): Promise<GuardedProgram> {
    signal?.throwIfAborted();
    if (this.#state === 'closing') throw new GuardError('MISUSE', 'the guard was closed');
    if (this.#why !== undefined) throw this.#why;
    if (this.#program !== undefined) {
      throw new GuardError('MISUSE', `program ${this.#program.pid} is not gone`);
    }
    if (!(this.#leftMs() > this.#options.stopMarginMs)) {
      throw new GuardError('BELIEF_OVER', 'too little belief is left to start a program');
    }
    const { program: name, args, env, cwd } = spec;
    if (!statSync(cwd, { throwIfNoEntry: false })?.isDirectory()) {
      throw new GuardError('CANNOT_START', `${cwd} is not a directory`, { exitCode: 126 });
    }
    const { path, problem } = findProgram(name, env, cwd);
    if (problem) throw new GuardError('CANNOT_START', problem.message, problem);
    const { argv, droppedNames } = gate(path, args, env);
    if (droppedNames.length > 0) {
      const names = droppedNames.join(', ');
      this.#trouble('VARIABLES_DROPPED', `${name} does not get the variables ${names}: no shell`);
    }

    this.#lastId += 1;
    const program = new Program(this.#lastId, (message) => this.#send(message));
    this.#program = program;
    this.#send({ do: 'prepare', id: program.id, argv, env, cwd });
    this.#watch();
    try {
      await bounded(program.ready, startWithinMs, `the gate of ${name}`, signal);
      return program;
    } catch (error) {
      program.stop(0);
      await bounded(program.gone, endWithinMs, 'the gate to end').catch(() => {});
      if (signal?.aborted || (error instanceof GuardError && error.code !== 'ENDED')) throw error;
      throw new GuardError('CANNOT_START', `cannot run ${name}: ${(error as Error).message}`);
    }
  }

  /**
   * Ends the guard. A program that is still there is killed at once. Resolves when the guard has
   * ended, which is when the program's group is gone, or after 5 s. Idempotent.
   */
  async close(): Promise<void> {
    if (this.#state === 'running') {
      this.#state = 'closing';
      this.#send({ do: 'leave' });
    }
    await bounded(this.#ended, endWithinMs, 'the guard to end').catch(() => {});
    this.#control.destroy();
    this.#life.destroy();
    this.#child.unref();
  }

  /**
   * Leaves the guard alone with a program that does not die. It goes on killing, also when we have
   * ended, and ends when the program's group is gone. Nothing here waits for it.
   */
  abandon(): void {
    if (this.#state !== 'running') return;
    this.#state = 'closing';
    this.#send({ do: 'leave' });
    this.#forgetProgram();
    for (const handle of [this.#child, this.#control, this.#life]) handle.unref();
  }

  #send(message: ToGuard): void {
    if (this.#control.writable) this.#control.write(`${JSON.stringify(message)}\n`);
  }

  #heard(text: string): void {
    this.#silentMs = 0;
    this.#partial += text;
    const lines = this.#partial.split('\n');
    this.#partial = lines.pop() ?? '';
    for (const line of lines) {
      if (line === '') continue;
      const message = JSON.parse(line) as FromGuard;
      if (message.say === 'up') {
        this.#up.resolve();
      } else if (message.id === this.#program?.id) {
        const { pid } = this.#program;
        this.#program.heard(message);
        if (this.#program.isGone) this.#forgetProgram();
        if (message.say === 'lingering') {
          this.#trouble('LINGERING', `somebody of process group ${pid} does not die of KILL`);
        }
      }
    }
  }

  /**
   * While a program is there: is the guard awake, and is what it should have killed dead? Both are
   * asked only after what has arrived was read, and a stall of ours is not a silence of the guard's.
   */
  #watch(): void {
    const program = this.#program;
    if (program === undefined) return;
    const sinceMs = monotonicMs();
    const untilKillMs = this.#leftMs() - this.#options.killMarginMs;
    const delayMs = untilKillMs > 0 ? Math.min(lookEveryMs, Math.ceil(untilKillMs)) : lookEveryMs;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      // Timers, then reading, then immediates.
      setImmediate(() => {
        if (this.#program !== program || this.#state === 'lost') return;
        this.#silentMs += Math.min(monotonicMs() - sinceMs, lookEveryMs);
        const silenceMs = Math.max(1_000, this.#options.stopMarginMs);
        if (this.#silentMs > silenceMs) this.#lose(`was silent for ${Math.round(silenceMs)} ms`);
        else if (!(this.#leftMs() > this.#options.killMarginMs)) program.kill();
        this.#watch();
      });
    }, delayMs);
  }

  #leftMs(): number {
    return this.#belief.look({ monotonicMs: monotonicMs(), wallMs: Date.now() });
  }

  #forgetProgram(): void {
    this.#program = undefined;
    this.#silentMs = 0;
    clearTimeout(this.#timer);
  }

  #lose(how: string): void {
    if (this.#state === 'lost') return;
    const error = new GuardError('GUARD_LOST', `the guard (pid ${this.pid}) ${how}`);
    this.#why = error;
    this.#up.reject(new GuardError('GUARD_FAILED', error.message));
    const expected = this.#state === 'closing';
    this.#state = 'lost';
    clearTimeout(this.#timer);
    this.#child.kill('SIGKILL');
    this.#control.destroy();
    this.#life.destroy();
    const program = this.#program;
    this.#program = undefined;
    if (!expected) this.#lost.resolve(error);
    // Never rejects; the program's own promises report the loss.
    void program?.guardLost(error);
  }

  #trouble(code: 'LINGERING' | 'VARIABLES_DROPPED', message: string): void {
    this.#options.onTrouble?.(new GuardError(code, message));
  }
}
