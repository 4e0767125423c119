import type { ConnectResponse } from '../protocol/connect.ts';
import type { ExportedSession } from '../state.ts';

const noPassword = new Uint8Array(16);

/** The session's id and password, and the server that it was last attached to. */
export class SessionIdentity {
  /** 0 if there is no session. */
  id: bigint;
  password: Uint8Array;
  server = '';
  isReadOnly = false;

  constructor(exported: ExportedSession | undefined) {
    this.id = exported?.id ?? 0n;
    this.password = exported?.password ?? noPassword;
  }

  get isKnown(): boolean {
    return this.id !== 0n;
  }

  /** The session that a handshake names: the present one, or none. */
  claim(attaches: boolean): { readonly sessionId: bigint; readonly password: Uint8Array } {
    return attaches
      ? { sessionId: this.id, password: this.password }
      : { sessionId: 0n, password: noPassword };
  }

  adopt({ sessionId, password, readOnly }: ConnectResponse, server: string): void {
    this.id = sessionId;
    this.password = password ?? noPassword;
    this.server = server;
    this.isReadOnly = readOnly;
  }

  forget(): void {
    this.id = 0n;
    this.password = noPassword;
  }
}
