import type { DispatchController } from './undici.ts';

/** The user's control over a request, whichever attempt is under way. */
export class RequestController implements DispatchController {
  readonly #abort = new AbortController();
  #isPaused = false;
  #target: DispatchController | undefined;

  /** The attempt that is under way. */
  set target(target: DispatchController | undefined) {
    this.#target = target;
    if (target !== undefined && this.#isPaused) target.pause();
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get aborted(): boolean {
    return this.#abort.signal.aborted;
  }

  get reason(): Error | null {
    return this.aborted ? (this.#abort.signal.reason as Error) : null;
  }

  get paused(): boolean {
    return this.#isPaused;
  }

  get rawHeaders(): unknown {
    return this.#target?.rawHeaders ?? null;
  }

  get rawTrailers(): unknown {
    return this.#target?.rawTrailers ?? null;
  }

  throwIfAborted(): void {
    this.#abort.signal.throwIfAborted();
  }

  abort(reason?: Error): void {
    if (this.aborted) return;
    this.#abort.abort(reason);
    this.#target?.abort(this.#abort.signal.reason as Error);
  }

  pause(): void {
    this.#isPaused = true;
    this.#target?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#target?.resume();
  }
}
