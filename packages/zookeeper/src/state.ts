/**
 * `connecting`: no server has given a session yet.
 * `connected`: requests are sent and answered.
 * `read-only`: connected to a server that has no quorum; writes are refused (only with `readOnly`).
 * `suspended`: the connection is lost. The session may live on, or expire; calls wait.
 * `expired`: the session is gone, by the server's word or by our own clock: its ephemeral nodes are,
 *   or will be, deleted. A new session is being sought; `connected` follows.
 * `auth-failed`: the server refuses the credentials. Final.
 * `closed`: final.
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
  /** The negotiated timeout. */
  readonly timeoutMs: number;
  /** The server that the session was last attached to, as `host:port`. */
  readonly server: string;
  readonly readOnly: boolean;
}

export interface StateChange {
  readonly state: State;
  readonly previous: State;
  /** Monotonic. */
  readonly atMs: number;
  /** Present while there is a session. */
  readonly session: SessionInfo | undefined;
  /** Why the connection or the session was lost, where that is known. */
  readonly error: Error | undefined;
}

/** What is needed to attach to a session from another process. Keep the password secret. */
export interface ExportedSession {
  readonly id: bigint;
  readonly password: Uint8Array;
  readonly timeoutMs: number;
  readonly lastZxid: bigint;
}
