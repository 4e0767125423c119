/** One server of the ensemble: a port of its own over the shared nodes and sessions. */
export interface FakeServer {
  readonly port: number;
  /** `zk://127.0.0.1:port` */
  readonly connectionString: string;
  /**
   * On: the server sees nothing of what happens from now on. Reads show the old nodes, watches are
   * silent, clients that have seen more are closed without a reply. A write through it is applied;
   * its reply, and the requests behind it, wait until the server has caught up.
   */
  lag(on: boolean): void;
  /**
   * On: as a server without a quorum. All its connections are closed; clients that do not accept a
   * read-only server are closed without a reply. Writes are answered with -119. Sessions that begin
   * meanwhile do not expire, and end when this is turned off.
   * @param options.localSessions false: without local sessions 3.8 answers the handshake with the
   *   bare header of a reply and -119; default true
   */
  readOnly(on: boolean, options?: { readonly localSessions?: boolean }): void;
  /** Accepts connections, reads nothing, answers nothing, closes nothing. */
  silence(): void;
  /** Serves what has arrived meanwhile. Ends the fault `silence` of single connections too. */
  unsilence(): void;
  /** Stops listening; connections stay. */
  refuse(): Promise<void>;
  /** Listens again, on the same port. */
  listen(): Promise<void>;
  /** Closes all connections. The sessions live on. */
  dropConnections(): void;
}
