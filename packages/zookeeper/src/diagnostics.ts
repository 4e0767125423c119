/**
 * What the client tells whoever subscribes with `node:diagnostics_channel`. Nothing is thrown from
 * the background: trouble ends in a state, a rejected call, and here. A subscriber that throws does
 * not disturb the client; Node reports its error as an uncaught exception.
 */
import { channel } from 'node:diagnostics_channel';
import type { StateChange } from './state.ts';

/** Payloads by channel name. Every payload also has `client`, the client's number in this process. */
export interface DiagnosticEvents {
  'incumbent:zookeeper:state': StateChange;
  /** A connection is tried. */
  'incumbent:zookeeper:attempt': { server: string };
  /** A server has taken the handshake. `elapsedMs` since the attempt began. */
  'incumbent:zookeeper:connected': { server: string; elapsedMs: number; sessionId: bigint };
  /** An attempt failed, or a connection ended. */
  'incumbent:zookeeper:disconnected': { server: string; error?: Error | undefined };
  /** A reply, `elapsedMs` after its request was sent. `error` is the code of the server, or 0. */
  'incumbent:zookeeper:reply': {
    operation: string;
    path?: string | undefined;
    error: number;
    elapsedMs: number;
  };
  /** The server has told of a change. */
  'incumbent:zookeeper:event': { type: string; path: string };
  /** Trouble that nobody waits for: a name that is not resolved, a listener that throws. */
  'incumbent:zookeeper:trouble': { what: string; error: unknown };
}

const channels = new Map<string, ReturnType<typeof channel>>();

export function publish<Name extends keyof DiagnosticEvents>(
  name: Name,
  client: number,
  payload: DiagnosticEvents[Name],
): void {
  const target = channelOf(name);
  if (target.hasSubscribers) target.publish({ client, ...payload });
}

/** Whether a payload is worth making. */
export function isWatched(name: keyof DiagnosticEvents): boolean {
  return channelOf(name).hasSubscribers;
}

function channelOf(name: string): ReturnType<typeof channel> {
  let target = channels.get(name);
  if (target === undefined) {
    target = channel(name);
    channels.set(name, target);
  }
  return target;
}
