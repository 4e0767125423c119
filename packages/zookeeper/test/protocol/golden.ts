/** The records of `test/golden/capture.mjs`, with the values that our codecs use. */
import { readdirSync, readFileSync } from 'node:fs';
import { connectRequest, connectResponse } from '../../src/protocol/connect.ts';
import type { Codec } from '../../src/protocol/jute.ts';
import type { ReplyHeader, RequestHeader } from '../../src/protocol/messages.ts';
import { nothing, watcherEvent } from '../../src/protocol/messages.ts';
import type { Requests } from '../../src/protocol/requests.ts';
import { requests } from '../../src/protocol/requests.ts';

export interface Half<Header> {
  readonly header?: Header;
  readonly body?: unknown;
  /** With its length. */
  readonly frame: Buffer;
}

export interface Exchange {
  /** Unique over all files. */
  readonly name: string;
  /** A key of `requests`, or `connect`, `notification`, `unknown`. */
  readonly message: string;
  readonly request?: Half<RequestHeader>;
  readonly reply: Half<ReplyHeader>;
}

const directory = new URL('../golden/', import.meta.url);

export const exchanges: readonly Exchange[] = readdirSync(directory)
  .filter((file) => file.endsWith('.json'))
  .flatMap((file) => {
    const json: unknown = JSON.parse(readFileSync(new URL(file, directory), 'utf8'), revive);
    return (json as { exchanges: Exchange[] }).exchanges.map((exchange) => ({
      ...exchange,
      name: `${file.replace('.json', '')}: ${exchange.name}`,
    }));
  });

export function exchange(name: string): Exchange {
  const found = exchanges.find((candidate) => candidate.name === name);
  if (found === undefined) throw new Error(`${name} was not captured`);
  return found;
}

/** The codecs for the bodies of a captured message. */
export function codecsOf(message: string): {
  readonly request: Codec<unknown>;
  readonly reply: Codec<unknown>;
} {
  if (message === 'connect') return codecs(connectRequest, connectResponse);
  if (message === 'notification') return codecs(nothing, watcherEvent);
  if (message === 'unknown') return codecs(nothing, nothing);
  const kind = requests[message as keyof Requests];
  return codecs(kind.request, kind.response);
}

function codecs<Request, Reply>(request: Codec<Request>, reply: Codec<Reply>) {
  return { request: request as Codec<unknown>, reply: reply as Codec<unknown> };
}

function revive(key: string, value: unknown): unknown {
  if (key === 'frame') return Buffer.from(value as string, 'hex');
  if (typeof value !== 'object' || value === null) return value;
  if ('$long' in value) return BigInt(value.$long as string);
  if ('$hex' in value) return Buffer.from(value.$hex as string, 'hex');
  return value;
}

/** The frame, with its length, of values written one after the other. */
export function frameOf(...contents: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(contents);
  const length = Buffer.alloc(4);
  length.writeInt32BE(content.length);
  return Buffer.concat([length, content]);
}
