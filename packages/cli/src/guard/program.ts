import { GuardError } from './errors.ts';
import { killGroup, signalGroup } from './group.ts';
import type { ForwardedSignal, FromGuard, ProgramExit, ToGuard } from './protocol.ts';
import type { Deferred } from './wait.ts';
import { bounded, deferred } from './wait.ts';

/** A program behind its gate, then running, then gone. */
export interface GuardedProgram {
  /** Of the group's leader, which is the gate and then the program; also the group's number. */
  readonly pid: number;
  /**
   * The leader ended; the processes that it left in its group have been sent KILL. Never rejects.
   * Without a guard the end cannot be seen: both are null.
   */
  readonly exited: Promise<ProgramExit>;
  /**
   * No process of the group can act any more. Never rejects; always after `exited`. May never come:
   * a process in an uninterruptible wait survives KILL. We may not even see one that runs as
   * another user.
   */
  readonly gone: Promise<void>;
  /**
   * Opens the gate; resolves when it is open, 10 s at most.
   * @throws GuardError BELIEF_OVER unless more than the stop margin of belief is left (the gate is
   * then killed), ENDED, GUARD_LOST, MISUSE when called twice.
   */
  go(): Promise<void>;
  /**
   * TERM to the whole group, and CONT for a stopped program. KILL when the monotonic clock is at
   * `killAtMs`, or at belief - K if that is earlier. An instant that has passed means KILL at once.
   * May be called again to bring the KILL forward; there is one TERM.
   */
  stop(killAtMs: number): void;
  /** TERM and INT go to the whole group, as a terminal's do; HUP, USR1 and USR2 to the leader. */
  signal(name: ForwardedSignal): void;
}

const answerWithinMs = 10_000;

/**
 * The supervisor's view of one program.
 *
 * - `spawning` until the gate stands
 * - `waiting` until go was sent
 * - `opening` until the guard has opened it
 * - `open` while it runs
 * - `exited` while its group is being cleared
 * - `gone` after that
 *
 * Any state may go to `exited`, and `spawning` to `gone`.
 */
type State = 'spawning' | 'waiting' | 'opening' | 'open' | 'exited' | 'gone';

export class Program implements GuardedProgram {
  readonly exited: Promise<ProgramExit>;
  readonly gone: Promise<void>;
  /** The gate stands. */
  readonly ready: Promise<void>;
  readonly id: number;
  #state: State = 'spawning';
  #pid = 0;
  readonly #send: (message: ToGuard) => void;
  readonly #ready: Deferred<void> = deferred();
  readonly #opened: Deferred<void> = deferred();
  readonly #exited: Deferred<ProgramExit> = deferred();
  readonly #gone: Deferred<void> = deferred();

  constructor(id: number, send: (message: ToGuard) => void) {
    this.id = id;
    this.#send = send;
    this.ready = this.#ready.promise;
    this.exited = this.#exited.promise;
    this.gone = this.#gone.promise;
  }

  get pid(): number {
    return this.#pid;
  }

  get isGone(): boolean {
    return this.#state === 'gone';
  }

  async go(): Promise<void> {
    if (this.#state !== 'waiting') {
      if (this.#state === 'exited' || this.#state === 'gone') return this.#opened.promise;
      throw new GuardError('MISUSE', 'the program was let go already');
    }
    this.#state = 'opening';
    this.#send({ do: 'go', id: this.id });
    await bounded(this.#opened.promise, answerWithinMs, 'the guard to open the gate');
  }

  stop(killAtMs: number): void {
    this.#send({ do: 'stop', id: this.id, killAtMs });
  }

  signal(name: ForwardedSignal): void {
    this.#send({ do: 'signal', id: this.id, name });
  }

  /** Not through the guard, which may have failed. */
  kill(): void {
    if (this.#pid > 0 && this.#state !== 'exited' && this.#state !== 'gone') {
      signalGroup(this.#pid, 'SIGKILL');
    }
  }

  heard(message: FromGuard): void {
    switch (message.say) {
      case 'prepared':
        this.#pid = message.pid;
        this.#state = 'waiting';
        this.#ready.resolve();
        break;
      case 'failed':
        this.#end('gone', new GuardError('CANNOT_START', message.reason, { exitCode: 126 }));
        this.#exited.resolve({ code: null, signal: null, because: 'itself' });
        this.#gone.resolve();
        break;
      case 'opened':
        this.#state = 'open';
        this.#opened.resolve();
        break;
      case 'refused':
        this.#opened.reject(
          message.because === 'belief-over'
            ? new GuardError('BELIEF_OVER', 'too little belief is left to start the program')
            : new GuardError('ENDED', 'the program was stopped before it was let go'),
        );
        break;
      case 'exited': {
        const { code, signal, because } = message;
        const how = signal === null ? `exit code ${code}` : signal;
        this.#end('exited', new GuardError('ENDED', `its gate ended (${how}, ${because})`));
        this.#exited.resolve({ code, signal, because });
        break;
      }
      case 'gone':
        this.#state = 'gone';
        this.#gone.resolve();
        break;
      case 'up':
      case 'lingering':
        break;
      default:
        message satisfies never;
    }
  }

  /** KILLs the group, and then speaks for the guard. */
  async guardLost(error: GuardError): Promise<void> {
    if (this.#state === 'gone') return;
    this.#end('exited', error);
    this.#exited.resolve({ code: null, signal: null, because: 'guard-lost' });
    // Without a number the gate was not up yet. It can no longer be opened: its watchers and its
    // own end of the pipe prevent that.
    if (this.#pid > 0) await killGroup(this.#pid);
    this.#state = 'gone';
    this.#gone.resolve();
  }

  #end(state: 'exited' | 'gone', why: GuardError): void {
    this.#state = state;
    this.#ready.reject(why);
    this.#opened.reject(why);
  }
}
