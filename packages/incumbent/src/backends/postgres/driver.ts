/** What the two packages have in common, once their differences are hidden. */
export type Row = readonly (string | null)[];

export interface Driver {
  /** What was handed in, for messages: `the Pool of pg`. */
  readonly name: string;
  /** Why no connection can be spared for LISTEN, and what to do about it. */
  readonly cannotListen: string | undefined;
  /**
   * One statement, in a transaction of its own. Every column must be of type text. Rejects with the
   * driver's own errors, or with a `ClientEndedError` when the client will never work again.
   */
  query(
    text: string,
    values: readonly (string | null)[],
    signal: AbortSignal | undefined,
  ): Promise<readonly Row[]>;
  /** Statements without values, all of them or none. */
  script(text: string, signal: AbortSignal): Promise<void>;
  /** @param onLost nothing is told any more; may be called more than once */
  listen(
    channel: string,
    onNotify: (payload: string) => void,
    onLost: (error?: unknown) => void,
  ): Promise<Listener>;
}

/** A connection that listens. */
export interface Listener {
  /** The process that serves it, as the other side has named it. */
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
