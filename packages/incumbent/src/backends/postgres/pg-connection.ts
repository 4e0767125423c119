import { OperationTimeoutError, StoreUnavailableError } from '../../base/errors.ts';
import { onAbort } from '../../base/wait.ts';
import type { PgClient, PgNotification, PgQuery } from './client.ts';
import type { Row } from './driver.ts';

/**
 * Runs one statement on a client of `pg`. Nothing is prepared by name, because
 * poolers share connections.
 * @throws StoreUnavailableError when the connection is in a transaction of the program. Our writes
 * there may be rolled back, and no other connection sees our reads
 */
export async function ask(
  client: PgClient,
  text: string,
  values: readonly (string | null)[],
): Promise<readonly Row[]> {
  const query: PgQuery = { text, values: [...values], rowMode: 'array', types: asText };
  const { rows } = await client.query(query);
  const status = client.getTransactionStatus?.() ?? idle;
  if (status !== idle) {
    throw new StoreUnavailableError(
      'the connection of pg that elections were given is in a transaction of the program, which may ' +
        'still undo what is written there: give elections a Pool, or a Client of their own, and end ' +
        'every transaction before its client is released',
    );
  }
  return rows as readonly Row[];
}

/** The server's name for a connection outside of transactions. */
const idle = 'I';

/** All columns are texts, whatever parsers the program has set, and whatever `binary` says. */
const asText: PgQuery['types'] = { getTypeParser: () => (value) => String(value) };

/** The connection was given up before the statement's turn: nothing was sent. */
export class NotSentError extends Error {
  override readonly name: string = 'NotSentError';
}

/** A connection of `pg` that is used by one call after the other. */
export class PgConnection {
  readonly #client: PgClient & { readonly processID?: unknown };
  readonly #onEnd: (error?: Error) => void;
  #lastTurn: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  #isGivenUp = false;
  #isStuck = false;

  /** @param onEnd the connection is gone. May be called more than once */
  constructor(client: PgClient, onEnd: (error?: Error) => void) {
    this.#client = client;
    this.#onEnd = onEnd;
    // Called twice when the server ends a connection. Without a listener the process would end.
    client.on('error', (error) => this.#onEnd(error));
    client.on('end', () => this.#onEnd());
  }

  get isFree(): boolean {
    return this.#waiting === 0;
  }

  /** True: a statement was not answered in time, and still is not. */
  get isStuck(): boolean {
    return this.#isStuck;
  }

  /** Sends nothing more. Resolves when all that was sent is answered. */
  async giveUp(): Promise<void> {
    this.#isGivenUp = true;
    await this.#lastTurn;
  }

  get pid(): number | undefined {
    const { processID } = this.#client;
    return typeof processID === 'number' ? processID : undefined;
  }

  onNotification(listener: (message: PgNotification) => void): void {
    this.#client.on('notification', listener);
  }

  query(
    text: string,
    values: readonly (string | null)[],
    signal: AbortSignal | undefined,
  ): Promise<readonly Row[]> {
    this.#waiting += 1;
    const turn = this.#lastTurn.then(() => this.#ask(text, values, signal));
    const leave = () => {
      this.#waiting -= 1;
    };
    this.#lastTurn = turn.then(leave, leave);
    return turn;
  }

  async #ask(
    text: string,
    values: readonly (string | null)[],
    signal: AbortSignal | undefined,
  ): Promise<readonly Row[]> {
    // The caller does not wait for it any more, so it is not sent.
    signal?.throwIfAborted();
    if (this.#isGivenUp) throw new NotSentError('the connection was given up');
    const unwatch = onAbort(signal, () => {
      this.#isStuck = signal?.reason instanceof OperationTimeoutError;
    });
    try {
      return await ask(this.#client, text, values);
    } finally {
      unwatch();
      this.#isStuck = false;
    }
  }
}
