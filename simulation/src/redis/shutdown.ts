import type { Client } from './client.ts';
import { ErrorReply } from './reply.ts';
import type { Server } from './server.ts';
import { getAckEntry } from './stream.ts';

export interface ShutdownOptions {
  /** Default: if it is configured to be saved at all. */
  readonly saves?: boolean | undefined;
  /** Replicas are not waited for. */
  readonly now?: boolean;
  /** The client that asked for it; undefined for SIGTERM. */
  readonly client?: Client;
}

/** SHUTDOWN and SIGTERM (`prepareForShutdown` of server.c). */
export class Shutdown {
  readonly #server: Server;
  #asked: ShutdownOptions | undefined;

  constructor(server: Server) {
    this.#server = server;
  }

  /** Waits for replicas that have not reported all, while writes are paused. */
  begin(options: ShutdownOptions): void {
    if (this.#asked !== undefined) return;
    const server = this.#server;
    this.#asked = options;
    const timeoutMs = 1_000 * server.settings.count('shutdown-timeout');
    if (options.now === true || timeoutMs === 0 || this.#replicasHaveAll()) {
      this.#finish();
      return;
    }
    if (!server.pausesWrites) server.feed(getAckEntry);
    server.pauses.forShutdown();
    server.after(timeoutMs, () => {
      if (this.#asked === options) this.#finish();
    });
  }

  /** A replica has reported, or is gone. */
  goOn(): void {
    if (this.#asked !== undefined && this.#replicasHaveAll()) this.#finish();
  }

  #replicasHaveAll(): boolean {
    const { history, downstream } = this.#server;
    return downstream.attached.every(({ ackOffset }) => ackOffset === history.offset);
  }

  #finish(): void {
    const server = this.#server;
    const { saves, client } = this.#asked ?? {};
    if (server.aof.waits && server.aof.isRewriting) {
      // The data on disk are not those of the node.
      this.#asked = undefined;
      server.pauses.shutdownIsOff();
      client?.answer(new ErrorReply('ERR Errors trying to SHUTDOWN. Check logs.'));
      return;
    }
    const isSaved = saves ?? server.settings.savePoints.length > 0;
    // It has only a part of its data while it loads them.
    if (isSaved && server.loading === undefined) server.save();
    server.exit();
  }
}
