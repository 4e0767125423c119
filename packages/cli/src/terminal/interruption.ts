import type { CommandError } from './failure.ts';
import { InterruptedError } from './failure.ts';
import type { Host, SignalName } from './host.ts';

/** INT, TERM and HUP, as a signal that aborts. */
export class Interruption {
  readonly #controller = new AbortController();
  readonly #host: Pick<Host, 'onSignal' | 'exit'>;
  readonly #removers: (() => void)[] = [];

  /** @param names those that interrupt */
  constructor(
    host: Pick<Host, 'onSignal' | 'exit'>,
    names: readonly SignalName[] = ['SIGINT', 'SIGTERM', 'SIGHUP'],
  ) {
    this.#host = host;
    for (const name of names) this.on(name, () => this.interrupt(name));
  }

  /** Aborts with the error that is to be thrown on. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  on(name: SignalName, listener: () => void): void {
    this.undo(this.#host.onSignal(name, listener));
  }

  interrupt(name: SignalName): void {
    const error = new InterruptedError(name);
    // A person who asks twice does not want to wait for an orderly end.
    if (this.signal.aborted) this.#host.exit(error.exitCode);
    this.abort(error);
  }

  abort(error: CommandError): void {
    this.#controller.abort(error);
  }

  /** @param remove is called by `close` */
  undo(remove: () => void): void {
    this.#removers.push(remove);
  }

  close(): void {
    for (const remove of this.#removers) remove();
  }
}
