/**
 * The part of a client that this backend needs. The Pool and the Client of `pg`, and the `sql` of
 * `postgres`, have all of it. Nothing of those packages is imported here.
 */
export type PostgresClient = PgPool | PgClient | PostgresSql;

/** `new pg.Pool(…)`. */
export interface PgPool {
  /**
   * Called with a function, and not for its promise. Between the pool's listener and
   * ours a connection has no listener of errors. With a promise, an error in between
   * would end the process.
   */
  connect(callback: (error: Error | undefined, client: PgPoolClient | undefined) => void): void;
  readonly totalCount: number;
  readonly idleCount: number;
  on(event: 'error', listener: (error: Error) => void): unknown;
}

/** `new pg.Client(…)`, connected. */
export interface PgClient {
  query(query: PgQuery): Promise<{ readonly rows: readonly unknown[] }>;
  /** `I` outside of transactions, as the server last said. Older versions of `pg` lack it. */
  getTransactionStatus?(): string | null;
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'end', listener: () => void): unknown;
  on(event: 'notification', listener: (message: PgNotification) => void): unknown;
}

/** A client that was checked out of a Pool. */
export interface PgPoolClient extends PgClient {
  /** @param error with an error, or true, the connection is closed instead of kept */
  release(error?: Error | boolean): void;
}

/** A query, as `pg` takes it. */
export interface PgQuery {
  text: string;
  values?: (string | null)[];
  rowMode: 'array';
  types: { getTypeParser(): (value: string) => unknown };
}

/** A notification, as `pg` reports it. */
export interface PgNotification {
  readonly channel: string;
  readonly payload?: string | undefined;
}

/** `postgres(…)` of the package `postgres`. */
export interface PostgresSql {
  unsafe(
    text: string,
    values?: (string | null)[],
    options?: { prepare?: boolean },
  ): { raw(): PromiseLike<readonly (readonly unknown[])[]> };
  listen(
    channel: string,
    onNotify: (payload: string) => void,
    onListen?: () => void,
  ): PromiseLike<{ readonly state: { readonly pid: number }; unlisten(): Promise<unknown> }>;
}
