import type { PgClient } from './client.ts';
import type { Driver, Listener, Row } from './driver.ts';
import { ClientEndedError } from './driver.ts';
import { PgConnection } from './pg-connection.ts';

/** Elections on one connection of `pg`, which listens as well. */
export class PgClientDriver implements Driver {
  readonly name = 'the Client of pg';
  readonly cannotListen = undefined;
  readonly #connection: PgConnection;
  #hasEnded = false;
  readonly #ears = new Set<Ear>();

  constructor(client: PgClient) {
    this.#connection = new PgConnection(client, (error) => {
      this.#hasEnded = true;
      for (const { onLost } of [...this.#ears]) onLost(error);
    });
    this.#connection.onNotification((message) => {
      for (const { channel, onNotify } of [...this.#ears]) {
        if (message.channel === channel) onNotify(message.payload ?? '');
      }
    });
  }

  async query(
    text: string,
    values: readonly (string | null)[],
    signal: AbortSignal | undefined,
  ): Promise<readonly Row[]> {
    this.#requireOpen();
    try {
      return await this.#connection.query(text, values, signal);
    } catch (error) {
      if (/Client was closed/.test(String(error))) this.#hasEnded = true;
      this.#requireOpen();
      throw error;
    }
  }

  async script(text: string, signal: AbortSignal): Promise<void> {
    await this.query(text, [], signal);
  }

  async listen(
    channel: string,
    onNotify: (payload: string) => void,
    onLost: (error?: unknown) => void,
  ): Promise<Listener> {
    const ear: Ear = { channel, onNotify, onLost };
    this.#ears.add(ear);
    try {
      await this.query(`listen "${channel}"`, [], undefined);
    } catch (error) {
      this.#ears.delete(ear);
      throw error;
    }
    return {
      pid: this.#connection.pid,
      close: async () => {
        this.#ears.delete(ear);
        if (this.#ears.size === 0) await this.query(`unlisten "${channel}"`, [], undefined);
      },
    };
  }

  #requireOpen(): void {
    if (!this.#hasEnded) return;
    throw new ClientEndedError(
      'the connection of the Client of pg has ended, and a Client does not connect again: ' +
        'hand in a Pool',
    );
  }
}

interface Ear {
  readonly channel: string;
  readonly onNotify: (payload: string) => void;
  readonly onLost: (error?: unknown) => void;
}
