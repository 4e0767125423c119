/** The common face of the two packages, with their differences hidden. */
export type Row = readonly (string | null)[];

export interface Driver {
  /** The client that was handed in, for messages: `the Pool of pg`. */
  readonly name: string;
  /** Why no connection can be spared for LISTEN, and what to do about it. */
  readonly cannotListen: string | undefined;
  /**
   * Runs one statement, in a transaction of its own. Every column must be of type text.
   * Rejects with the driver's own errors, or with a `ClientEndedError` when the client will
   * never work again.
   */
  query(
    text: string,
    values: readonly (string | null)[],
    signal: AbortSignal | undefined,
  ): Promise<readonly Row[]>;
  /** Runs statements without values, all of them or none. */
  script(text: string, signal: AbortSignal): Promise<void>;
  /** @param onLost no notification comes any more. May be called more than once */
  listen(
    channel: string,
    onNotify: (payload: string) => void,
    onLost: (error?: unknown) => void,
  ): Promise<Listener>;
}

/** A connection that listens. */
export interface Listener {
  /** The process that serves the connection, as the other side has named it. */
  readonly pid: number | undefined;
  close(): Promise<void> | void;
}

/** The client was closed by its owner, or is one that does not connect again. */
export class ClientEndedError extends Error {
  override readonly name: string = 'ClientEndedError';
}

/** All connections of a pool are in use, and none became free in time. */
export class PoolExhaustedError extends Error {
  override readonly name: string = 'PoolExhaustedError';
}
