import type { ConnectRequest } from '@incumbent/zookeeper/internal';
import {
  connectRequest,
  connectResponse,
  errorCodes,
  JuteReader,
} from '@incumbent/zookeeper/internal';
import { frame, replyFrame } from './replies.ts';
import type { Server } from './server.ts';
import { passwordOf } from './sessions.ts';

/** The outcome of a ConnectRequest. */
export type Handshake =
  /** Closed without a reply. */
  | { readonly outcome: 'closed' }
  /** Told that the session is gone, then closed. */
  | { readonly outcome: 'refused'; readonly reply: Uint8Array }
  /** A bare reply header; nothing is read any more. */
  | { readonly outcome: 'stuck'; readonly reply: Uint8Array }
  | { readonly outcome: 'attached'; readonly sessionId: bigint; readonly reply: Uint8Array };

export interface Greeting {
  readonly request: ConnectRequest;
  /** Whether the request had the byte for read-only: only then the response has it. */
  readonly withReadOnly: boolean;
}

export function readGreeting(bytes: Uint8Array): Greeting {
  const request = connectRequest.read(new JuteReader(bytes));
  const fixedBytes = 28 + (request.password?.length ?? 0);
  return { request, withReadOnly: bytes.length > fixedBytes };
}

/** Negotiates the session. The checks come in the server's order. */
export function greet(server: Server, { request, withReadOnly }: Greeting): Handshake {
  const { state, settings } = server;
  const { sessionId, password } = request;
  if (request.lastZxidSeen > server.zxid) return { outcome: 'closed' };
  if (server.isReadOnly && !request.readOnly) return { outcome: 'closed' };
  const { minSessionTimeoutMs, maxSessionTimeoutMs } = settings;
  const timeoutMs = Math.min(Math.max(request.timeoutMs, minSessionTimeoutMs), maxSessionTimeoutMs);
  const respond = (id: bigint): Uint8Array =>
    connectFrame(id, id === 0n ? 0 : timeoutMs, server.isReadOnly, withReadOnly);
  if (server.isReadOnly && sessionId === 0n) {
    if (!server.hasLocalSessions) {
      const header = { xid: 0, zxid: server.zxid, error: errorCodes.notReadOnly };
      return { outcome: 'stuck', reply: replyFrame(header) };
    }
    const id = server.localSessions.create();
    return { outcome: 'attached', sessionId: id, reply: respond(id) };
  }
  if (sessionId === 0n) {
    const { id } = state.createSession(timeoutMs, server, server.id);
    return { outcome: 'attached', sessionId: id, reply: respond(id) };
  }
  // The password is looked at only afterwards: a wrong one closes the other connection too.
  server.connectionOf(sessionId)?.end();
  if (server.isReadOnly) {
    const known = server.localSessions.has(sessionId);
    return known && sameBytes(passwordOf(sessionId), password)
      ? { outcome: 'attached', sessionId, reply: respond(sessionId) }
      : { outcome: 'refused', reply: respond(0n) };
  }
  const session = state.sessions.get(sessionId);
  if (session === undefined || !sameBytes(session.password, password)) {
    return { outcome: 'refused', reply: respond(0n) };
  }
  session.timeoutMs = timeoutMs;
  session.owner = server;
  state.sessions.touch(session, state.nowMs);
  return { outcome: 'attached', sessionId, reply: respond(sessionId) };
}

function connectFrame(
  sessionId: bigint,
  timeoutMs: number,
  readOnly: boolean,
  withReadOnly: boolean,
): Uint8Array {
  const password = sessionId === 0n ? new Uint8Array(16) : passwordOf(sessionId);
  return frame((writer) => {
    connectResponse.write(writer, { protocolVersion: 0, timeoutMs, sessionId, password, readOnly });
    if (!withReadOnly) writer.reset(writer.length - 1);
  });
}

function sameBytes(a: Uint8Array, b: Uint8Array | null): boolean {
  return b !== null && a.length === b.length && a.every((byte, at) => byte === b[at]);
}
