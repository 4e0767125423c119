/** The beginning of a connection: the session and its credentials, then its watches. */

import { ProtocolError } from '../errors.ts';
import type { ConnectRequest, ConnectResponse } from '../protocol/connect.ts';
import { connectRequest, connectResponse } from '../protocol/connect.ts';
import { xids } from '../protocol/constants.ts';
import type { JuteWriter } from '../protocol/jute.ts';
import { JuteReader } from '../protocol/jute.ts';
import { replyHeader } from '../protocol/messages.ts';
import type { RequestKind } from '../protocol/requests.ts';
import { requests } from '../protocol/requests.ts';

/** Credentials that every connection sends again. */
export interface Credentials {
  readonly scheme: string;
  readonly credentials: Uint8Array;
}

/** The watches of a session, by kind, as paths on the server. */
export interface WatchLists {
  readonly data: Iterable<string>;
  readonly exist: Iterable<string>;
  readonly child: Iterable<string>;
  readonly persistent: Iterable<string>;
  readonly persistentRecursive: Iterable<string>;
}

export function writeConnectRequest(writer: JuteWriter, request: ConnectRequest): void {
  const start = writer.beginFrame();
  connectRequest.write(writer, request);
  writer.endFrame(start);
}

/** The messages of a server before it has granted a session. */
export type ConnectAnswer =
  | { readonly kind: 'session'; readonly response: ConnectResponse }
  /**
   * A server on Netty may answer the credentials, which are sent behind the handshake, before the
   * handshake itself.
   */
  | { readonly kind: 'auth'; readonly error: number };

/**
 * @param isIntroduced whether credentials were sent behind the handshake
 * @throws ProtocolError or MalformedError for bytes that do not answer a handshake
 */
export function readConnectAnswer(
  bytes: Uint8Array,
  start: number,
  end: number,
  isIntroduced: boolean,
): ConnectAnswer {
  const reader = new JuteReader(bytes, start, end);
  if (end - start === replyHeader.minBytes) {
    const { xid, error } = replyHeader.read(reader);
    if (xid === xids.auth && isIntroduced) return { kind: 'auth', error };
    // A read-only server of 3.8 without local sessions answers with a bare reply header.
    throw new ProtocolError('the server answers the handshake with an error: it is read-only');
  }
  const response = connectResponse.read(reader);
  reader.expectEnd('ConnectResponse');
  return { kind: 'session', response };
}

export function writeAuth(writer: JuteWriter, { scheme, credentials }: Credentials): void {
  writeFrame(writer, xids.auth, requests.auth, { type: 0, scheme, auth: credentials });
}

export function writePing(writer: JuteWriter): void {
  writeFrame(writer, xids.ping, requests.ping, {});
}

/**
 * The longest SetWatches. A server drops a connection whose packet is above its limit, and would do
 * so again and again. One packet cannot hold 20,000 watches, for example. The Java and Go clients
 * use the same limit.
 */
const maxSetWatchesBytes = 128 * 1024;

type Kind = 'data' | 'exist' | 'child' | 'persistent' | 'persistentRecursive';

/**
 * Writes as many SetWatches as the watches need. All have the same zxid. Otherwise the reply to the
 * first could hide a change from the watches of the next. Persistent watches get packets of their
 * own, which servers before 3.6 do not know.
 * @param maxRequestBytes the server's limit, if it is lower
 * @returns how many packets were written
 */
export function writeSetWatches(
  writer: JuteWriter,
  relativeZxid: bigint,
  lists: WatchLists,
  maxRequestBytes: number,
): number {
  // The rest is for the parts of a packet that are no paths.
  const maxBytes = Math.min(maxSetWatchesBytes, maxRequestBytes) - 64;
  let packets = 0;
  let batch = emptyBatch();
  let bytes = 0;
  const flush = (kind: SetWatchesKind) => {
    if (bytes === 0) return;
    const body = {
      relativeZxid,
      dataWatches: batch.data,
      existWatches: batch.exist,
      childWatches: batch.child,
      persistentWatches: batch.persistent,
      persistentRecursiveWatches: batch.persistentRecursive,
    };
    if (kind === 'setWatches') writeFrame(writer, xids.setWatches, requests.setWatches, body);
    else writeFrame(writer, xids.setWatches, requests.setWatches2, body);
    packets += 1;
    batch = emptyBatch();
    bytes = 0;
  };
  for (const [request, kinds] of packetKinds) {
    for (const kind of kinds) {
      for (const path of lists[kind]) {
        const size = 4 + Buffer.byteLength(path);
        if (bytes + size > maxBytes) flush(request);
        batch[kind].push(path);
        bytes += size;
      }
    }
    flush(request);
  }
  return packets;
}

type SetWatchesKind = 'setWatches' | 'setWatches2';

const packetKinds: readonly (readonly [SetWatchesKind, readonly Kind[]])[] = [
  ['setWatches', ['data', 'exist', 'child']],
  ['setWatches2', ['persistent', 'persistentRecursive']],
];

function emptyBatch(): Record<Kind, string[]> {
  return { data: [], exist: [], child: [], persistent: [], persistentRecursive: [] };
}

function writeFrame<T>(
  writer: JuteWriter,
  xid: number,
  { opcode, request }: RequestKind<T, unknown>,
  body: T,
): void {
  const start = writer.beginFrame();
  writer.int32(xid);
  writer.int32(opcode);
  request.write(writer, body);
  writer.endFrame(start);
}
