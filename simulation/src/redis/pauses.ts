import type { Client } from './client.ts';
import type { Server } from './server.ts';

/** CLIENT PAUSE, and the pause of a shutdown (`pauseClients` of networking.c). */
export class Pauses {
  /** Clients that wait for the end of it, in order. */
  readonly postponed: Client[] = [];
  readonly #server: Server;
  readonly #ended: () => void;
  #byClients: { readonly all: boolean; readonly untilMs: number } | undefined;
  #byShutdown = false;

  constructor(server: Server, ended: () => void) {
    this.#server = server;
    this.#ended = ended;
  }

  get writes(): boolean {
    return this.#byShutdown || this.#isPausedByClients;
  }

  /** Every command waits, and not only those that write. */
  get all(): boolean {
    return this.#isPausedByClients && this.#byClients?.all === true;
  }

  /** The longer one counts, and the stricter one. */
  pause(forMs: number, all: boolean): void {
    const before = this.#isPausedByClients ? this.#byClients : undefined;
    const untilMs = Math.max(this.#server.nowMs + forMs, before?.untilMs ?? 0);
    this.#byClients = { all: all || before?.all === true, untilMs };
    this.#server.after(untilMs - this.#server.nowMs, () => this.#goOn());
  }

  unpause(): void {
    this.#byClients = undefined;
    this.#goOn();
  }

  forShutdown(): void {
    this.#byShutdown = true;
  }

  shutdownIsOff(): void {
    this.#byShutdown = false;
    this.#goOn();
  }

  get #isPausedByClients(): boolean {
    return this.#byClients !== undefined && this.#server.nowMs < this.#byClients.untilMs;
  }

  #goOn(): void {
    if (!this.writes) this.#ended();
  }
}
