/**
 * The states of a client.
 *
 * - `connecting`: no server has given a session yet.
 * - `connected`: requests are sent and answered.
 * - `read-only`: connected to a server without a quorum; writes are refused (only with the option
 *   `readOnly`).
 * - `suspended`: the connection is lost. The session may live on, or expire; calls wait.
 * - `expired`: the session is gone, as a server said or by our own clock. Its ephemeral nodes are
 *   deleted, or will be. The client looks for a new session; `connected` follows.
 * - `auth-failed`: the server refuses the credentials. Final.
 * - `closed`: final.
 */
export type State =
  | 'connecting'
  | 'connected'
  | 'read-only'
  | 'suspended'
  | 'expired'
  | 'auth-failed'
  | 'closed';

/** A session as the server knows it. */
export interface SessionInfo {
  readonly id: bigint;
  /** The timeout that the server has granted, in ms. */
  readonly timeoutMs: number;
  /** The server that the session was last attached to, as `host:port`. */
  readonly server: string;
  /** Whether that server has no quorum. */
  readonly readOnly: boolean;
}

/** A change of a client's state. */
export interface StateChange {
  readonly state: State;
  readonly previous: State;
  /** When it changed, on the monotonic clock. */
  readonly atMs: number;
  /** The session; undefined while there is none. */
  readonly session: SessionInfo | undefined;
  /** Why the connection or the session was lost, if that is known. */
  readonly error: Error | undefined;
}

/**
 * The data with which another process can attach to a session. Keep the password secret: it gives
 * access to the session.
 */
export interface ExportedSession {
  readonly id: bigint;
  readonly password: Uint8Array;
  readonly timeoutMs: number;
  readonly lastZxid: bigint;
}
