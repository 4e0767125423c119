/**
 * Decides which headers of a message go on to the next connection, and how its body
 * is framed there.
 */
import type { IncomingMessage } from 'node:http';
import {
  electionHeader,
  proxiedHeader,
  readNames,
  readTokens,
  tokenHeader,
  writeName,
  writeTokens,
} from '../headers.ts';

/** Headers that are about one connection (RFC 9110, 7.6.1), besides those that `Connection` names. */
const hopByHop = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** Headers in which clients describe themselves, and proxies describe clients. */
const forwarded = /^(forwarded|x-forwarded-.*|x-real-ip)$/;

export type PlainHeaders = Record<string, string | string[]>;

/** The headers that are about the message. Values of repeated headers stay apart. */
export function endToEnd(message: IncomingMessage): PlainHeaders {
  const named = new Set(
    (message.headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase()),
  );
  const kept: PlainHeaders = {};
  // A request of HTTP/2 has no `headersDistinct`.
  for (const [name, given] of Object.entries(message.headersDistinct ?? message.headers)) {
    if (given === undefined || name.startsWith(':') || hopByHop.has(name)) continue;
    if (named.has(name)) continue;
    const values = typeof given === 'string' ? [given] : given;
    kept[name] = values.length === 1 ? (values[0] as string) : values;
  }
  return kept;
}

export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** Why a request cannot be passed on unchanged. Undefined when it can. */
export function obstacleIn(request: IncomingMessage): readonly [number, string] | undefined {
  const { headers } = request;
  // A body that another handler has read is gone. The leader would wait for it.
  if (request.readableDidRead && hasBody(request)) {
    return [500, 'Put leaderOnly before whatever reads the body of a request.'];
  }
  if (request.httpVersionMajor !== 1) return [501, 'Requests of HTTP/2 are not passed on.'];
  if ((request.headersDistinct['host']?.length ?? 0) > 1) return [400, 'There are two hosts.'];
  const coding = headers['transfer-encoding'];
  if (coding !== undefined && coding.trim().toLowerCase() !== 'chunked') {
    return [501, 'Of the transfer codings only "chunked" is known.'];
  }
  return undefined;
}

export interface PassedOn {
  readonly election: string;
  /** The host of the leader, for requests that name none. */
  readonly leaderHost: string;
  readonly trustsForwarded: boolean;
  /** The newest token known. */
  readonly carried: bigint | undefined;
}

export function headersForLeader(request: IncomingMessage, about: PassedOn): PlainHeaders {
  const headers = endToEnd(request);
  if (!about.trustsForwarded) {
    for (const name of Object.keys(headers)) if (forwarded.test(name)) delete headers[name];
  }
  const before = (name: string) => (about.trustsForwarded ? request.headers[name] : undefined);
  const host = request.headers.host ?? about.leaderHost;
  const from = request.socket.remoteAddress ?? 'unknown';
  const via = before('x-forwarded-for');
  const isSecure = (request.socket as { encrypted?: boolean }).encrypted === true;
  headers['host'] = host;
  headers['x-forwarded-for'] = via === undefined ? from : `${String(via)}, ${from}`;
  headers['x-forwarded-host'] = before('x-forwarded-host') ?? host;
  headers['x-forwarded-proto'] = before('x-forwarded-proto') ?? (isSecure ? 'https' : 'http');
  // Node has answered this one already.
  delete headers['expect'];
  setFraming(headers, request);
  const passedOnBy = readNames(request.headers[proxiedHeader]) ?? [];
  headers[proxiedHeader] = [...passedOnBy, about.election].map(writeName).join(', ');
  if (about.carried !== undefined) {
    const present = readTokens(request.headers[electionHeader], request.headers[tokenHeader]);
    const tokens = new Map(present).set(about.election, about.carried);
    const written = writeTokens(tokens);
    headers[electionHeader] = written.elections;
    headers[tokenHeader] = written.tokens;
  }
  return headers;
}

/**
 * Frames the body as Node has read it, whatever `Connection` says. Otherwise a body would be taken
 * for the next request on the same connection.
 */
function setFraming(headers: PlainHeaders, request: IncomingMessage): void {
  const length = request.headers['content-length'];
  delete headers['content-length'];
  if (request.headers['transfer-encoding'] !== undefined) headers['transfer-encoding'] = 'chunked';
  else if (length !== undefined) headers['content-length'] = length;
  // Otherwise Node would announce a body for these.
  else if (request.method !== 'GET' && request.method !== 'HEAD') headers['content-length'] = '0';
}
