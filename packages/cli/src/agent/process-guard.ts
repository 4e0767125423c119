import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { Deadline } from 'incumbent';
import { GuardError } from '../guard/index.ts';
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
  | ({ readonly do: 'arm' } & ServiceProcess)
  | { readonly do: 'disarm' }
  | { readonly do: 'kill' };

type FromProcessGuard =
  | { readonly say: 'up' }
  | { readonly say: 'armed'; readonly pid: number }
  | { readonly say: 'refused'; readonly reason: string }
  | { readonly say: 'gone'; readonly because: 'asked' | 'belief-over' | 'agent-gone' };

const guardFile: string = fileURLToPath(new URL('../../guard/process-guard.cjs', import.meta.url));
const answerWithinMs = 10_000;

/**
 * Kills the service's process when our belief is nearly over, or when we are gone. It is a process
 * of its own, because we may be frozen or killed.
 */
export class ProcessGuard {
  /** The guard itself ended: there is no such promise any more. */
  readonly lost: Promise<GuardError>;
  readonly #child: ChildProcess;
  readonly #control: Socket;
  readonly #process: ServiceProcess;
  readonly #onKilled: () => void;
  readonly #up: Deferred<void> = deferred();
  readonly #lost: Deferred<GuardError> = deferred();
  #arming: Deferred<number> | undefined;
  #killing: Deferred<void> | undefined;
  #closing = false;
  #partial = '';

  /**
   * @param onKilled no process of the service is left, because belief was nearly over
   * @throws GuardError
   */
  static async start(
    target: ServiceProcess,
    killMarginMs: number,
    onKilled: () => void,
  ): Promise<ProcessGuard> {
    const guard = new ProcessGuard(target, killMarginMs, onKilled);
    await bounded(guard.#up.promise, answerWithinMs, 'the guard of --pid to start');
    return guard;
  }

  private constructor(target: ServiceProcess, killMarginMs: number, onKilled: () => void) {
    this.#process = target;
    this.#onKilled = onKilled;
    this.lost = this.#lost.promise;
    this.#child = spawn(process.execPath, [guardFile, String(killMarginMs)], {
      // A session of its own: a terminal's Ctrl-C is for us.
      detached: true,
      stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
      cwd: '/',
    });
    this.#control = this.#child.stdio[3] as Socket;
    this.#child.on('error', () => {});
    this.#control.on('error', () => {});
    this.#control.setEncoding('utf8');
    this.#control.on('data', (text: string) => {
      const lines = (this.#partial + text).split('\n');
      this.#partial = lines.pop() ?? '';
      for (const line of lines) this.#heard(JSON.parse(line) as FromProcessGuard);
    });
    this.#control.once('close', () => this.#lose());
  }

  /** Belief was extended, or found to be shorter; undefined: it is over. */
  belief(deadline: Deadline | undefined): void {
    this.#send({ do: 'belief', deadline: deadline ?? null });
  }

  /**
   * From now on the service may be active.
   * @returns the number of its process
   * @throws GuardError when no process can be found, or it must not be killed
   */
  async arm(): Promise<number> {
    const arming = deferred<number>();
    this.#arming = arming;
    this.#send({ do: 'arm', ...this.#process });
    return bounded(arming.promise, answerWithinMs, 'the guard of --pid to find the process');
  }

  /** The service is not active. */
  disarm(): void {
    this.#send({ do: 'disarm' });
  }

  /** Resolves when no process of the service is left. @throws GuardError when that takes too long */
  async kill(): Promise<void> {
    const killing = this.#killing ?? deferred<void>();
    this.#killing = killing;
    this.#send({ do: 'kill' });
    await bounded(killing.promise, answerWithinMs, 'the process of the service to be dead');
  }

  /** A service that may be active is killed. */
  close(): void {
    this.#closing = true;
    this.#control.end();
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
        this.#arming?.resolve(message.pid);
        break;
      case 'refused':
        this.#arming?.reject(new GuardError('CANNOT_START', `--pid: ${message.reason}`));
        break;
      case 'gone': {
        const killing = this.#killing;
        this.#killing = undefined;
        killing?.resolve();
        if (message.because === 'belief-over') this.#onKilled();
        break;
      }
      default:
        message satisfies never;
    }
  }

  #lose(): void {
    const error = new GuardError(
      'GUARD_LOST',
      `the guard of --pid (pid ${this.#child.pid}) is gone`,
    );
    this.#up.reject(error);
    this.#arming?.reject(error);
    this.#killing?.reject(error);
    if (!this.#closing) this.#lost.resolve(error);
  }
}
