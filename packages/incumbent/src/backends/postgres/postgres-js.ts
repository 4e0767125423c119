import type { PostgresSql } from './client.ts';
import type { Driver, Listener, Row } from './driver.ts';
import { ClientEndedError } from './driver.ts';

/** SQLSTATE of a statement that was prepared on another connection, or is there already. */
const pooledStatements = ['26000', '42P05'];

/** Elections on the `sql` of `postgres`, which connects again, and listens again, by itself. */
export class PostgresJsDriver implements Driver {
  readonly name = 'the sql of postgres';
  readonly cannotListen = undefined;
  readonly #sql: PostgresSql;
  /**
   * This driver takes two round trips for a statement that is not prepared by name. With
   * `prepare: false` in its own options it prepares nothing, whatever this says.
   */
  #prepares = true;
  /**
   * After a failure the driver tries on with the listener that it was given. Another one would
   * be one more.
   */
  #isListeningAgain = false;

  constructor(sql: PostgresSql) {
    this.#sql = sql;
  }

  async query(
    text: string,
    values: readonly (string | null)[],
    signal: AbortSignal | undefined,
  ): Promise<readonly Row[]> {
    signal?.throwIfAborted();
    try {
      // Raw: past the parsers and the transformations that the program has set.
      const rows = await this.#sql.unsafe(text, [...values], { prepare: this.#prepares }).raw();
      return rows.map((row) => row.map((value) => (value === null ? null : String(value))));
    } catch (error) {
      const { code } = (error ?? {}) as { readonly code?: unknown };
      if (code === 'CONNECTION_ENDED') {
        throw new ClientEndedError('the sql of postgres was ended', { cause: error });
      }
      // Refused before it was run. The caller tries again, and then without a name.
      if (pooledStatements.some((state) => state === code)) this.#prepares = false;
      throw error;
    }
  }

  async script(text: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    await this.#sql.unsafe(text).raw();
  }

  async listen(
    channel: string,
    onNotify: (payload: string) => void,
    onLost: (error?: unknown) => void,
  ): Promise<Listener> {
    if (this.#isListeningAgain) throw new Error('the driver has not listened again yet');
    let times = 0;
    let hasFailed = false;
    try {
      const { state, unlisten } = await this.#sql.listen(channel, onNotify, () => {
        times += 1;
        if (hasFailed) this.#isListeningAgain = false;
        // The driver has listened again by itself, on another connection, and does not report
        // what it missed.
        else if (times > 1) onLost(new Error('the connection that listens was lost'));
      });
      return {
        pid: state.pid,
        close: async () => {
          await unlisten();
        },
      };
    } catch (error) {
      hasFailed = true;
      this.#isListeningAgain = true;
      throw error;
    }
  }
}
