import { StoreUnsuitableError } from '../../base/errors.ts';
import { Deferred } from '../../base/wait.ts';
import { HintHub } from '../hint-hub.ts';
import type { Driver } from './driver.ts';
import { channel, withoutSchema } from './statements.ts';

/**
 * How often in a row the server may not know a connection that listens, until listening
 * is given up.
 */
const surelyPooled = 3;

type OnTrouble = (what: string, error: unknown) => void;

/** LISTEN for all elections on a client, whatever their tables. */
export class WakeUps {
  readonly #driver: Driver;
  readonly #hub: HintHub;
  readonly #tellers = new Set<{ readonly onTrouble: OnTrouble }>();
  /**
   * Resolved once the client has reached a primary. Other servers cannot listen, or are soon gone.
   */
  readonly #proved = new Deferred<undefined>();
  #refusal: Error | undefined;
  #timesUnknown = 0;
  #pid: number | undefined;
  #attempt = new Deferred<undefined>();

  constructor(driver: Driver) {
    this.#driver = driver;
    if (driver.cannotListen !== undefined) this.#refusal = refusal(driver.cannotListen);
    this.#hub = new HintHub({
      connect: (onHint, onLost) => this.#connect(onHint, onLost),
      onTrouble: (error) => {
        for (const { onTrouble } of this.#tellers) onTrouble('listening for wake-ups', error);
      },
    });
  }

  /** True while every change is reported. */
  get work(): boolean {
    return this.#hub.isOpen;
  }

  /** The server's process that serves the connection that listens. */
  get pid(): number | undefined {
    return this.#pid;
  }

  /**
   * Calls `onTrouble` when hints stop working.
   * @returns a function that ends it
   */
  tell(onTrouble: OnTrouble): () => void {
    const teller = { onTrouble };
    this.#tellers.add(teller);
    return () => this.#tellers.delete(teller);
  }

  /** @returns a function that ends it */
  add(topic: string, onHint: () => void): () => void {
    return this.#hub.add(withoutSchema(topic), onHint);
  }

  /**
   * Called after a primary has answered. Listens, if there is a listener and it does
   * not listen yet.
   */
  ensure(): void {
    this.#proved.resolve(undefined);
    if (this.#refusal === undefined) this.#hub.ensure();
  }

  /** Resolves when the attempt to listen that is under way has succeeded or failed. Never rejects. */
  async settled(): Promise<void> {
    if (!this.#hub.isOpen && this.#refusal === undefined) await this.#attempt.promise;
  }

  async #connect(
    onHint: (topic?: string) => void,
    onLost: (error?: unknown) => void,
  ): Promise<{ close(): Promise<void> | void }> {
    try {
      await this.#proved.promise;
      if (this.#refusal !== undefined) throw this.#refusal;
      const hear = (topic: string) => onHint(withoutSchema(topic));
      const listener = await this.#driver.listen(channel, hear, (error) => {
        this.#pid = undefined;
        onLost(error);
      });
      try {
        await this.#requireDirect(listener.pid);
      } catch (error) {
        await listener.close();
        throw error;
      }
      this.#pid = listener.pid;
      return listener;
    } finally {
      this.#attempt.resolve(undefined);
      this.#attempt = new Deferred();
    }
  }

  async #requireDirect(pid: number | undefined): Promise<void> {
    if (await isDirect(this.#driver, pid)) {
      this.#timesUnknown = 0;
      return;
    }
    // Or the connection has ended meanwhile. That does not happen again and again.
    this.#timesUnknown += 1;
    const error = refusal(
      'a pooler stands between: say `listen: false`, or connect to PostgreSQL itself',
    );
    if (this.#timesUnknown === surelyPooled) this.#refusal = error;
    throw error;
  }
}

/**
 * A pooler answers a LISTEN and then reports nothing, because it gives the connection to others. It
 * also makes up the number of the process that serves a client.
 */
export async function isDirect(driver: Driver, pid: number | undefined): Promise<boolean> {
  const found = await driver.query(
    'select pid::text from pg_stat_activity where pid::text = $1::text',
    [`${pid}`],
    undefined,
  );
  return found.length > 0;
}

function refusal(why: string): StoreUnsuitableError {
  return new StoreUnsuitableError(
    `no wake-ups by LISTEN, so those who wait poll, and nobody can list them: ${why}`,
  );
}
