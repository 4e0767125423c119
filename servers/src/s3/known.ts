/**
 * The parts of a request that are looked at. The rest is refused: it must not be thought to have
 * been served.
 */
import type { IncomingMessage } from 'node:http';
import { notImplemented } from './refusal.ts';
import type { Target } from './target.ts';

/** Of each verb: the headers that mean something, besides those of every request. */
const knownHeaders: Readonly<Record<string, readonly string[]>> = {
  every: [
    ...['host', 'connection', 'authorization', 'user-agent', 'x-amz-user-agent', 'x-amz-date'],
    ...['x-amz-content-sha256', 'amz-sdk-invocation-id', 'amz-sdk-request'],
  ],
  get: ['x-amz-checksum-mode'],
  head: ['x-amz-checksum-mode'],
  put: [
    ...['content-type', 'content-length', 'if-match', 'if-none-match'],
    ...['x-amz-sdk-checksum-algorithm', 'x-amz-checksum-crc32', 'expect'],
  ],
};

/** Of each verb: parameters of the query that mean something. */
const knownQuery: Readonly<Record<string, readonly string[]>> = {
  every: ['x-id'],
  list: ['list-type', 'prefix', 'max-keys', 'continuation-token'],
  versioning: ['versioning'],
};

/** @returns `put: x-amz-new`, … */
export function unknownIn(
  { verb }: Target,
  { headers }: IncomingMessage,
  { searchParams }: URL,
): readonly string[] {
  const known = (table: typeof knownHeaders) => [...(table['every'] ?? []), ...(table[verb] ?? [])];
  const unknown = [
    ...Object.keys(headers).filter((name) => !known(knownHeaders).includes(name)),
    ...[...searchParams.keys()].filter((name) => !known(knownQuery).includes(name)),
  ];
  return unknown.map((name) => `${verb}: ${name}`);
}

/** @throws Refusal */
export function requireKnown(target: Target, request: IncomingMessage, url: URL): void {
  const unknown = unknownIn(target, request, url);
  if (unknown.length > 0) throw notImplemented(unknown.join(', '));
  const { 'if-none-match': ifNoneMatch } = request.headers;
  if (ifNoneMatch !== undefined && ifNoneMatch !== '*') throw notImplemented('If-None-Match');
}
