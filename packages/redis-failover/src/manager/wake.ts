/** Ends the wait of one waiter; a call that comes while nobody waits ends the next wait. */
export class Wake {
  #called = false;
  #end: () => void = () => {};

  call(): void {
    this.#called = true;
    this.#end();
  }

  /** Resolves at a call, after `forMs`, or when `signal` aborts. */
  async wait(forMs: number, signal: AbortSignal): Promise<void> {
    if (!this.#called && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const end = () => {
          clearTimeout(timer);
          signal.removeEventListener('abort', end);
          resolve();
        };
        const timer = setTimeout(end, forMs);
        signal.addEventListener('abort', end);
        this.#end = end;
      });
    }
    this.#called = false;
  }
}
