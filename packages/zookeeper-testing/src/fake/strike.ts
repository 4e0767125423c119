import { errorCodes } from '@incumbent/zookeeper/internal';
import type { Connection, Reply } from './connection.ts';
import type { FakeRequest, FaultAction } from './faults.ts';
import { replyFrame, withXid } from './replies.ts';

/**
 * Serves a request as the fault that strikes it wants, or as it should be.
 * @param serve applies it; undefined where there is no reply
 */
export function strike(
  connection: Connection,
  request: FakeRequest,
  serve: () => Reply | undefined,
): void {
  const { server } = connection;
  const fault = server.faults.strike(request);
  const action = fault?.action;
  if (action !== undefined && preempt(connection, request, action)) return;
  const reply = serve();
  if (reply === undefined) return;
  if (action === 'delay') {
    // The events of this request are sent at once. Only its reply and what follows waits.
    const release = connection.outbox.hold();
    fault?.onRelease(release);
  }
  if (server.isWaitedFor(request)) {
    const goOn = connection.stop();
    server.whenCurrent(() => {
      deliver(connection, reply, action);
      goOn();
    });
  } else {
    deliver(connection, reply, action);
  }
}

/** Whether the request is not applied at all. */
function preempt(connection: Connection, request: FakeRequest, action: FaultAction): boolean {
  const { server } = connection;
  const refuse = (error: number): void => {
    connection.send({ bytes: replyFrame({ xid: request.xid, zxid: server.zxid, error }) });
  };
  const type = typeof action === 'string' ? action : action.type;
  switch (type) {
    case 'dropBefore':
      connection.end();
      return true;
    case 'expire':
      if (server.state.sessions.get(request.sessionId) !== undefined) {
        server.state.endSession(request.sessionId);
      }
      // A handshake for it goes on, and is told.
      if (request.opcode === 'connect' && request.sessionId !== 0n) return false;
      connection.end();
      return true;
    case 'moved':
      refuse(errorCodes.sessionMoved);
      connection.end();
      return true;
    case 'silence':
      connection.silence(true);
      return true;
    case 'errorCode':
      refuse((action as { readonly code: number }).code);
      return true;
    case 'dropAfter':
    case 'delay':
    case 'halfFrame':
    case 'wrongXid':
    case 'garbage':
      return false;
    default:
      return type satisfies never;
  }
}

function deliver(connection: Connection, reply: Reply, action: FaultAction | undefined): void {
  const details = typeof action === 'string' ? { type: action } : action;
  if (details === undefined) {
    connection.send(reply);
    return;
  }
  switch (details.type) {
    case 'dropAfter':
      connection.end();
      return;
    case 'halfFrame': {
      const half = Math.floor(reply.bytes.length / 2);
      const bytes = reply.bytes.subarray(0, 'bytes' in details ? details.bytes : half);
      connection.send({ bytes, afterwards: 'end' });
      return;
    }
    case 'wrongXid': {
      const wrong = 'xid' in details ? details.xid : undefined;
      connection.send({ ...reply, bytes: withXid(reply.bytes, (xid) => wrong ?? xid + 1) });
      return;
    }
    case 'garbage':
      connection.send({ ...reply, bytes: 'bytes' in details ? details.bytes : reply.bytes });
      return;
    case 'delay':
    case 'expire':
      connection.send(reply);
      return;
    case 'dropBefore':
    case 'moved':
    case 'silence':
    case 'errorCode':
      return; // preempted
    default:
      details satisfies never;
  }
}
