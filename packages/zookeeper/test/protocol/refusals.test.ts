import { describe, expect, test } from 'vitest';
import type { Codec } from '../../src/protocol/jute.ts';
import { decode, MalformedError } from '../../src/protocol/jute.ts';
import { replyHeader, requestHeader } from '../../src/protocol/messages.ts';
import { codecsOf, exchanges } from './golden.ts';

interface Part {
  readonly codec: Codec<unknown>;
  readonly bytes: Uint8Array;
  /** The last byte of a ConnectRequest or ConnectResponse may be missing. */
  readonly mayEndBefore?: number;
}

/** Headers and bodies by themselves. */
const parts: [string, Part][] = exchanges.flatMap(({ name, message, request, reply }) => {
  const { request: requestCodec, reply: replyCodec } = codecsOf(message);
  const found: [string, Part][] = [];
  const add = (which: string, codec: Codec<unknown>, bytes: Uint8Array) => {
    const whole = message === 'connect' && which.includes('body') && bytes.length % 2 === 1;
    const optional = whole ? { mayEndBefore: bytes.length - 1 } : {};
    found.push([`${name}, ${which}`, { codec, bytes, ...optional }]);
  };
  if (request !== undefined) {
    const at = request.header === undefined ? 0 : 8;
    const content = request.frame.subarray(4);
    if (at > 0) add('request header', requestHeader as Codec<unknown>, content.subarray(0, at));
    add('request body', requestCodec, content.subarray(at));
  }
  const at = reply.header === undefined ? 0 : 16;
  const content = reply.frame.subarray(4);
  if (at > 0) add('reply header', replyHeader as Codec<unknown>, content.subarray(0, at));
  if (reply.body !== undefined) add('reply body', replyCodec, content.subarray(at));
  return found;
});

describe('what is cut short is refused, wherever the cut is', () => {
  test.each(parts)('%s', (name, { codec, bytes, mayEndBefore }) => {
    for (let end = 0; end < bytes.length; end += 1) {
      const cut = bytes.subarray(0, end);
      if (end === mayEndBefore) expect(decode(codec, cut, name)).toMatchObject({ readOnly: false });
      else expect(() => decode(codec, cut, name), `cut at ${end}`).toThrow(MalformedError);
    }
  });
});

describe('what goes on after its end is refused', () => {
  test.each(parts)('%s', (name, { codec, bytes, mayEndBefore }) => {
    for (const more of [1, 4, 17]) {
      const longer = Buffer.concat([bytes, Buffer.alloc(more)]);
      // If it was captured without its last byte, one more byte completes it.
      const completes = mayEndBefore === undefined && name.includes('without the last byte');
      if (completes && more === 1 && name.endsWith('body')) continue;
      expect(() => decode(codec, longer, name), `${more} bytes more`).toThrow(MalformedError);
    }
  });
});

test('a ConnectRequest or ConnectResponse is the only message that may lack a byte', () => {
  const lacking = parts.filter(([, { mayEndBefore }]) => mayEndBefore !== undefined);
  expect(lacking.length).toBeGreaterThan(10);
  for (const [name] of lacking) expect(name).toMatch(/body$/);
});
