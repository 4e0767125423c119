import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { Deadline } from 'incumbent';
import { GuardError, withoutNodeVariables } from '../guard/index.ts';
import { monotonicMs } from '../guard/protocol.ts';
import type { Deferred } from '../guard/wait.ts';
import { bounded, deferred } from '../guard/wait.ts';

/** The service's process, as `--pid` and `--pid-group` name it. */
export interface ServiceProcess {
  /** A file that holds the number, read again whenever it is needed. */
  readonly file: string | null;
  readonly pid: number | null;
  /** Kill its whole process group. */
  readonly group: boolean;
}

type ToProcessGuard =
  | { readonly do: 'belief'; readonly deadline: Deadline | null }
  | ({ readonly do: 'arm'; readonly request: number } & ServiceProcess)
  | { readonly do: 'disarm' }
  | { readonly do: 'look'; readonly request: number }
  | ({ readonly do: 'find'; readonly request: number } & ServiceProcess)
  | { readonly do: 'kill'; readonly present: boolean };

type FromProcessGuard =
  | { readonly say: 'up' }
  | { readonly say: 'armed'; readonly request: number; readonly pid: number }
  | { readonly say: 'refused'; readonly request: number; readonly reason: string }
  | { readonly say: 'looked'; readonly request: number; readonly same: boolean }
  /** `reason`: why it could not be armed; null: it could be. */
  | { readonly say: 'found'; readonly request: number; readonly reason: string | null }
  /** The process that it was armed for has ended. The service may be another one now. */
  | { readonly say: 'ended'; readonly pid: number }
  | {
      readonly say: 'gone';
      readonly because: 'asked' | 'belief-over' | 'agent-gone' | 'not-armed';
    };

const guardFile: string = fileURLToPath(new URL('../../guard/process-guard.cjs', import.meta.url));
const answerWithinMs = 10_000;
// The guard's heartbeat comes every 200 ms while it is armed.
const lookEveryMs = 250;
const longestSilenceMs = 5_000;

export interface ProcessEvents {
  /** No process of the service is left: we have asked for that, or belief was nearly over. */
  readonly killed: () => void;
  /** The process that was found by `arm` has ended. */
  readonly ended: () => void;
}

/**
 * Kills the service's process when our belief is nearly over, or when we are gone. It is a process
 * of its own, because we may be frozen or killed.
 */
export class ProcessGuard {
  /** The guard itself ended, or was silent: there is no such promise any more. */
  readonly lost: Promise<GuardError>;
  readonly #child: ChildProcess;
  readonly #control: Socket;
  readonly #process: ServiceProcess;
  readonly #events: ProcessEvents;
  readonly #up: Deferred<void> = deferred();
  readonly #lost: Deferred<GuardError> = deferred();
  #arming: Deferred<number> | undefined;
  #looking: Deferred<boolean> | undefined;
  #requests = 0;
  #finding: Deferred<void> | undefined;
  /** Counted apart: a look at the health may come between `arm` and its answer. */
  #finds = 0;
  #killing: Deferred<void> | undefined;
  #closing = false;
  #isArmed = false;
  #partial = '';
  #watching: NodeJS.Timeout | undefined;
  /** How long we were awake without hearing anything, while it was armed. */
  #silentMs = 0;
  #why: GuardError | undefined;

  /** @throws GuardError */
  static async start(
    target: ServiceProcess,
    killMarginMs: number,
    events: ProcessEvents,
  ): Promise<ProcessGuard> {
    const guard = new ProcessGuard(target, killMarginMs, events);
    await bounded(guard.#up.promise, answerWithinMs, 'the guard of --pid to start');
    return guard;
  }

  private constructor(target: ServiceProcess, killMarginMs: number, events: ProcessEvents) {
    this.#process = target;
    this.#events = events;
    this.lost = this.#lost.promise;
    this.#child = spawn(process.execPath, [guardFile, String(killMarginMs)], {
      // A session of its own: a terminal's Ctrl-C is for us.
      detached: true,
      stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
      cwd: '/',
      env: withoutNodeVariables(process.env),
    });
    this.#control = this.#child.stdio[3] as Socket;
    this.#child.on('error', () => {});
    this.#control.on('error', () => {});
    this.#control.setEncoding('utf8');
    this.#control.on('data', (text: string) => {
      this.#silentMs = 0;
      const lines = (this.#partial + text).split('\n');
      this.#partial = lines.pop() ?? '';
      for (const line of lines) {
        if (line !== '') this.#heard(JSON.parse(line) as FromProcessGuard);
      }
    });
    this.#control.once('close', () => this.#lose('is gone'));
  }

  /** Belief was extended, or found to be shorter; undefined: it is over. */
  belief(deadline: Deadline | undefined): void {
    this.#send({ do: 'belief', deadline: deadline ?? null });
  }

  /**
   * From now on the service may be active.
   * @returns the number of its process
   * @throws GuardError when no process can be found, or it must not be killed; `signal.reason`
   */
  async arm(signal: AbortSignal): Promise<number> {
    if (this.#why !== undefined) throw this.#why;
    const arming = deferred<number>();
    this.#arming = arming;
    this.#requests += 1;
    this.#send({ do: 'arm', request: this.#requests, ...this.#process });
    const what = 'the guard of --pid to find the process';
    try {
      const pid = await bounded(arming.promise, answerWithinMs, what, signal);
      this.#isArmed = true;
      this.#watch();
      return pid;
    } catch (error) {
      // An answer that comes later must not arm it.
      this.disarm();
      throw error;
    }
  }

  /**
   * Whether `arm` would find a process that may be killed. Changes nothing.
   * @throws GuardError with the reason why it would not, and the way out; `signal.reason`
   */
  async find(signal: AbortSignal): Promise<void> {
    if (this.#why !== undefined) throw this.#why;
    const finding = deferred<void>();
    this.#finding = finding;
    this.#finds += 1;
    this.#send({ do: 'find', request: this.#finds, ...this.#process });
    const what = 'the guard of --pid to find the process';
    await bounded(finding.promise, answerWithinMs, what, signal);
  }

  /** Whether the process that `arm` has found is still that of the service. If in doubt, it is not. */
  async isSame(signal: AbortSignal): Promise<boolean> {
    const looking = deferred<boolean>();
    this.#looking = looking;
    this.#requests += 1;
    this.#send({ do: 'look', request: this.#requests });
    const what = 'the guard of --pid to look at the process';
    return bounded(looking.promise, answerWithinMs, what, signal).catch(() => false);
  }

  /** The service is not active. */
  disarm(): void {
    this.#isArmed = false;
    this.#stopWatching();
    this.#send({ do: 'disarm' });
  }

  /**
   * Resolves when no process of the service is left, after `killed` was called.
   * @param present also another process that may have been started meanwhile, and made active
   * @throws GuardError when that takes too long, or it is not armed, and so would kill nothing. It goes
   * on killing then, and `killed` is called when no process is left
   */
  async kill(present: boolean): Promise<void> {
    if (this.#why !== undefined) throw this.#why;
    if (!this.#isArmed) throw new GuardError('MISUSE', 'the guard of --pid knows no process');
    const killing = this.#killing ?? deferred<void>();
    this.#killing = killing;
    this.#send({ do: 'kill', present });
    await bounded(killing.promise, answerWithinMs, 'the process of the service to be dead');
  }

  /** A service that may be active is killed. */
  close(): void {
    this.#closing = true;
    this.#stopWatching();
    this.#control.end();
    // It may be stopped, and answer only much later.
    this.#control.unref();
    this.#child.unref();
  }

  #send(message: ToProcessGuard): void {
    if (this.#control.writable) this.#control.write(`${JSON.stringify(message)}\n`);
  }

  #heard(message: FromProcessGuard): void {
    switch (message.say) {
      case 'up':
        this.#up.resolve();
        break;
      case 'armed':
        if (message.request === this.#requests) this.#arming?.resolve(message.pid);
        break;
      case 'refused':
        if (message.request === this.#requests) {
          this.#arming?.reject(new GuardError('CANNOT_START', `--pid: ${message.reason}`));
        }
        break;
      case 'gone': {
        const killing = this.#killing;
        this.#killing = undefined;
        this.#isArmed = false;
        this.#stopWatching();
        // Also when nobody waits for it any more.
        if (message.because !== 'not-armed') this.#events.killed();
        killing?.resolve();
        break;
      }
      case 'looked':
        if (message.request === this.#requests) this.#looking?.resolve(message.same);
        break;
      case 'found':
        if (message.request !== this.#finds) break;
        if (message.reason === null) this.#finding?.resolve();
        else this.#finding?.reject(new GuardError('CANNOT_START', `--pid: ${message.reason}`));
        break;
      case 'ended':
        this.#events.ended();
        break;
      default:
        message satisfies never;
    }
  }

  /** A guard that is stopped or stuck kills nothing. A stall of ours is no silence of the guard's. */
  #watch(): void {
    clearTimeout(this.#watching);
    const sinceMs = monotonicMs();
    const timer = setTimeout(() => {
      // Answers that have arrived are read first: timers, then reading, then immediates.
      setImmediate(() => {
        if (this.#watching !== timer) return;
        this.#silentMs += Math.min(monotonicMs() - sinceMs, lookEveryMs);
        if (this.#silentMs > longestSilenceMs) this.#lose('was silent while it was needed');
        else this.#watch();
      });
    }, lookEveryMs);
    this.#watching = timer;
  }

  #stopWatching(): void {
    clearTimeout(this.#watching);
    this.#watching = undefined;
    this.#silentMs = 0;
  }

  #lose(how: string): void {
    const { pid } = this.#child;
    const error = new GuardError('GUARD_LOST', `the guard of --pid (pid ${pid}) ${how}`);
    this.#why ??= error;
    this.#stopWatching();
    this.#up.reject(error);
    this.#arming?.reject(error);
    this.#killing?.reject(error);
    this.#looking?.reject(error);
    this.#finding?.reject(error);
    // One that is only silent is not killed. It may wake up, and kill a service that is left active. One
    // that is in standby by then comes back from that.
    if (!this.#closing) this.#lost.resolve(error);
  }
}
