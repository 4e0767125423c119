import { OperationTimeoutError } from '../../base/errors.ts';
import { onAbort } from '../../base/wait.ts';
import type { PgPool, PgPoolClient } from './client.ts';
import type { Driver, Listener, Row } from './driver.ts';
import { ClientEndedError, PoolExhaustedError } from './driver.ts';
import { ask, NotSentError, PgConnection } from './pg-connection.ts';

/** Fields of a Pool that are read besides its declared ones. Absent in a pool of another make. */
interface PoolDetails {
  readonly ending?: boolean;
  readonly options?: { readonly max?: number };
}

/**
 * Elections on a Pool of `pg`. The connection that listens also carries statements while nothing
 * else is on it. So idle elections open no connections, and do not starve with the pool.
 */
export class PgPoolDriver implements Driver {
  readonly name = 'the Pool of pg';
  readonly cannotListen: string | undefined;
  readonly #pool: PgPool & PoolDetails;
  #listening: ListeningConnection | undefined;

  constructor(pool: PgPool) {
    this.#pool = pool;
    this.cannotListen =
      this.#max === 1
        ? 'the Pool has only one connection (max: 1), which LISTEN would occupy: give it two or more'
        : undefined;
    // A server that restarts ends idle connections. Without a listener that would end the process.
    pool.on('error', () => {});
  }

  async query(
    text: string,
    values: readonly (string | null)[],
    signal: AbortSignal | undefined,
  ): Promise<readonly Row[]> {
    this.#requireOpen();
    const listening = this.#listening;
    if (listening !== undefined && (listening.connection.isFree || this.#isExhausted)) {
      try {
        return await listening.connection.query(text, values, signal);
      } catch (error) {
        if (!(error instanceof NotSentError)) throw error;
      }
    }
    const wasStuck = listening?.connection.isStuck;
    const client = await this.#checkOut(signal);
    const rows = await use(client, signal, () => ask(client, text, values));
    // The server answers other connections meanwhile, so it is not the server that is slow.
    if (wasStuck && listening?.connection.isStuck) {
      listening.lose(new Error('the connection that listens does not answer'));
    }
    return rows;
  }

  async script(text: string, signal: AbortSignal): Promise<void> {
    const client = await this.#checkOut(signal);
    await use(client, signal, () => ask(client, text, []));
  }

  async listen(
    channel: string,
    onNotify: (payload: string) => void,
    onLost: (error?: unknown) => void,
  ): Promise<Listener> {
    const client = await this.#checkOut(undefined);
    if (this.#pool.ending === true) client.release(true);
    this.#requireOpen();
    const listening = new ListeningConnection(client, onLost, () => {
      if (this.#listening === listening) this.#listening = undefined;
    });
    listening.connection.onNotification((message) => {
      if (message.channel === channel) onNotify(message.payload ?? '');
    });
    try {
      await listening.connection.query(`listen "${channel}"`, [], undefined);
    } catch (error) {
      listening.lose(error);
      throw error;
    }
    if (!listening.isLost) this.#listening = listening;
    this.#requireOpen();
    return { pid: listening.connection.pid, close: () => listening.close() };
  }

  /**
   * The pool's own `end` waits for every connection that is checked out.
   * @throws ClientEndedError
   */
  #requireOpen(): void {
    if (this.#pool.ending !== true) return;
    this.#listening?.lose();
    throw new ClientEndedError('the Pool of pg was ended');
  }

  get #max(): number | undefined {
    return this.#pool.options?.max;
  }

  get #isExhausted(): boolean {
    return this.#pool.idleCount === 0 && this.#pool.totalCount >= (this.#max ?? Infinity);
  }

  /** A caller that does not wait any more leaves no statement behind that is sent late. */
  #checkOut(signal: AbortSignal | undefined): Promise<PgPoolClient> {
    return new Promise((resolve, reject) => {
      let isOver = false;
      const unwatch = onAbort(signal, () => {
        isOver = true;
        reject(this.#isExhausted ? this.#exhausted() : signal?.reason);
      });
      this.#pool.connect((error, client) => {
        unwatch();
        if (client === undefined) {
          const timedOut = /timeout exceeded when trying to connect/.test(String(error));
          reject(timedOut && this.#isExhausted ? this.#exhausted() : error);
        } else if (isOver) {
          client.release();
        } else {
          // At once: the next event is what the server has sent with its greeting, which may
          // be its end.
          hear(client);
          resolve(client);
        }
      });
    });
  }

  #exhausted(): PoolExhaustedError {
    return new PoolExhaustedError(
      `all ${this.#max ?? this.#pool.totalCount} connections of the Pool are in use, and none became ` +
        'free in time: give elections a Pool of their own (max: 3), or this one more connections',
    );
  }
}

/** The connection that listens: taken out of the pool, and never given back to it. */
class ListeningConnection {
  readonly connection: PgConnection;
  #isReleased = false;
  readonly #client: PgPoolClient & { unref?(): void };
  readonly #onLost: (error?: unknown) => void;
  readonly #onClose: () => void;

  constructor(client: PgPoolClient, onLost: (error?: unknown) => void, onClose: () => void) {
    this.#client = client;
    this.#onLost = onLost;
    this.#onClose = onClose;
    this.connection = new PgConnection(client, (error) => this.lose(error));
    // Listening alone does not keep the process alive.
    this.#client.unref?.();
  }

  /** The connection is of no use any more. */
  lose(error?: unknown): void {
    if (this.#isReleased) return;
    this.#release();
    this.#onLost(error);
  }

  /** Others may have statements under way on it. */
  async close(): Promise<void> {
    this.#onClose();
    await this.connection.giveUp();
    this.#release();
  }

  get isLost(): boolean {
    return this.#isReleased;
  }

  #release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#onClose();
    void this.connection.giveUp();
    this.#client.release(true);
  }
}

/**
 * Runs a job on a client and gives it back. The client is closed if it may not be usable any more,
 * for example because it does not answer. Otherwise a connection to a host that is gone would stay
 * for many minutes.
 */
async function use<T>(
  client: PgPoolClient,
  signal: AbortSignal | undefined,
  job: () => Promise<T>,
): Promise<T> {
  let isReleased = false;
  const release = (isBroken: boolean) => {
    if (!isReleased) client.release(isBroken);
    isReleased = true;
  };
  if (signal?.aborted === true) {
    release(false);
    throw signal.reason;
  }
  const unwatch = onAbort(signal, () => {
    if (signal?.reason instanceof OperationTimeoutError) release(true);
  });
  try {
    const result = await job();
    release(false);
    return result;
  } catch (error) {
    release(!isStatementError(error));
    throw error;
  } finally {
    unwatch();
  }
}

const heard = new WeakSet<PgPoolClient>();

/** The pool listens to the errors of its idle clients only. */
function hear(client: PgPoolClient): void {
  if (heard.has(client)) return;
  heard.add(client);
  client.on('error', () => {});
}

/** The server has refused the statement and goes on serving the connection. */
function isStatementError(error: unknown): boolean {
  return (error as { severity?: unknown } | null | undefined)?.severity === 'ERROR';
}
