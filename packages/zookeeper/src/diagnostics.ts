/**
 * Events for subscribers of `node:diagnostics_channel`. Background work throws nothing. Trouble
 * ends in a state, in a rejected call, and in these events. A subscriber that throws does not
 * disturb the client: Node reports its error as an uncaught exception.
 */
import { channel } from 'node:diagnostics_channel';
import type { StateChange } from './state.ts';

/**
 * The payloads by the name of the channel. Every payload also has `client`, the client's number in
 * this process. Times are in ms.
 */
export interface DiagnosticEvents {
  'incumbent:zookeeper:state': StateChange;
  /** A connection is tried. */
  'incumbent:zookeeper:attempt': { server: string };
  /** A server has accepted the handshake, `elapsedMs` after the attempt began. */
  'incumbent:zookeeper:connected': { server: string; elapsedMs: number; sessionId: bigint };
  /** An attempt has failed, or a connection has ended. */
  'incumbent:zookeeper:disconnected': { server: string; error?: Error | undefined };
  /** A reply came, `elapsedMs` after its request was sent. `error` is the server's code, or 0. */
  'incumbent:zookeeper:reply': {
    operation: string;
    path?: string | undefined;
    error: number;
    elapsedMs: number;
  };
  /** The server has reported a change. */
  'incumbent:zookeeper:event': { type: string; path: string };
  /** Trouble that rejects no call: a name that cannot be resolved, a listener that throws. */
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

/** Whether the channel has a subscriber, so that a payload is worth making. */
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
