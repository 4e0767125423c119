import { describe, expect, test } from 'vitest';
import { connectRequest } from '../../src/protocol/connect.ts';
import { opcodes } from '../../src/protocol/constants.ts';
import { decode, encode } from '../../src/protocol/jute.ts';
import { replyHeader, requestHeader } from '../../src/protocol/messages.ts';
import { requests } from '../../src/protocol/requests.ts';
import type { Exchange } from './golden.ts';
import { codecsOf, exchange, exchanges, frameOf } from './golden.ts';

const withRequest = exchanges.filter(({ request }) => request !== undefined);
const byName = (list: readonly Exchange[]) => list.map((item) => [item.name, item] as const);

/**
 * We write this one with a byte more than was captured: the last byte, which one side may leave
 * out.
 */
const withoutLastByte = 'connects: without the last byte, both ways';
/** The server writes this one in its own way; see surrogates.ts. */
const writtenOtherwise = 'nodes: getAcl, beyond U+FFFF';

describe('what the server has taken', () => {
  test.each(byName(withRequest))('%s: we write the same bytes', (name, { message, request }) => {
    const { header, body, frame } = request!;
    const ours = frameOf(
      header === undefined ? Buffer.alloc(0) : encode(requestHeader, header),
      encode(codecsOf(message).request, body),
    );
    if (name === withoutLastByte) {
      expect(ours.subarray(4).toString('hex')).toBe(`${frame.subarray(4).toString('hex')}00`);
    } else {
      expect(ours.toString('hex')).toBe(frame.toString('hex'));
    }
  });

  test.each(byName(withRequest))('%s: we read it', (name, { message, request }) => {
    const { header, body, frame } = request!;
    const content = frame.subarray(4);
    if (header !== undefined)
      expect(decode(requestHeader, content.subarray(0, 8), '')).toEqual(header);
    const expected = name === withoutLastByte ? { ...(body as object), readOnly: false } : body;
    const rest = content.subarray(header === undefined ? 0 : 8);
    expect(decode(codecsOf(message).request, rest, name)).toEqual(expected);
  });
});

describe('what the server has said', () => {
  test.each(byName(exchanges))('%s: we read it', (name, { message, reply }) => {
    const content = reply.frame.subarray(4);
    if (reply.header !== undefined) {
      expect(decode(replyHeader, content.subarray(0, 16), 'header')).toEqual(reply.header);
    }
    const rest = content.subarray(reply.header === undefined ? 0 : 16);
    if (reply.body === undefined) {
      expect(rest).toHaveLength(0);
      return;
    }
    const expected =
      name === withoutLastByte ? { ...(reply.body as object), readOnly: false } : reply.body;
    expect(decode(codecsOf(message).reply, rest, name)).toEqual(expected);
  });

  test.each(byName(exchanges))('%s: we can say the same', (name, { message, reply }) => {
    const { header, body, frame } = reply;
    const ours = frameOf(
      header === undefined ? Buffer.alloc(0) : encode(replyHeader, header),
      body === undefined ? Buffer.alloc(0) : encode(codecsOf(message).reply, body),
    );
    if (name === withoutLastByte) {
      expect(ours.subarray(4).toString('hex')).toBe(`${frame.subarray(4).toString('hex')}00`);
    } else if (name === writtenOtherwise) {
      expect(ours.length).toBe(frame.length - 2);
    } else {
      expect(ours.toString('hex')).toBe(frame.toString('hex'));
    }
  });
});

describe('the capture', () => {
  test('has every request, and every notification', () => {
    const captured = new Set(exchanges.map(({ message }) => message));
    expect([...captured].sort()).toEqual(
      [...Object.keys(requests), 'connect', 'notification', 'unknown'].sort(),
    );
    const types = exchanges
      .filter(({ message }) => message === 'notification')
      .map(({ reply }) => (reply.body as { type: number }).type);
    expect(new Set(types)).toEqual(new Set([1, 2, 3, 4]));
  });

  test('shows where a zxid is no transaction', () => {
    for (const { message, reply, request } of exchanges) {
      const zxid = reply.header?.zxid;
      if (zxid === undefined) continue;
      if (message === 'notification' || message === 'unknown') expect(zxid).toBe(-1n);
      else if (message === 'auth' || message === 'sasl') expect(zxid).toBe(0n);
      else if (request !== undefined) expect(zxid).toBeGreaterThanOrEqual(0n);
    }
  });

  test('keeps null and empty data apart', () => {
    expect(exchange('nodes: getData, null').reply.body).toMatchObject({ data: null });
    expect(exchange('nodes: getData, empty').reply.body).toMatchObject({ data: Buffer.alloc(0) });
  });

  test('shows the error of a refused multi in its items alone', () => {
    const { header, body } = exchange('multi: multi refused: the one in the middle').reply;
    expect(header).toMatchObject({ error: 0 });
    expect(body).toEqual([0, -110, -2, -2].map((error) => ({ opcode: opcodes.error, error })));
  });

  test('shows a create2 in a multi answered as a create, and the others as a create2', () => {
    const { request, reply } = exchange('multi: multi of every kind');
    const opcodesOf = (items: unknown) =>
      (items as { opcode: number }[]).map((item) => item.opcode);
    const { create, create2, createContainer, createTtl } = opcodes;
    const first = [create, create2, createContainer, createTtl];
    expect(opcodesOf(request!.body).slice(0, 4)).toEqual(first);
    expect(opcodesOf(reply.body).slice(0, 4)).toEqual([create, create, create2, create2]);
  });

  test('shows a session that is gone as session 0 without a timeout', () => {
    expect(exchange('connects: a session that has ended: expired').reply.body).toEqual({
      protocolVersion: 0,
      timeoutMs: 0,
      sessionId: 0n,
      password: Buffer.alloc(16),
      readOnly: false,
    });
  });

  test('shows the sizes of a ConnectRequest and of its answer', () => {
    const sizes = (name: string) => {
      const { request, reply } = exchange(name);
      return [request!.frame.length - 4, reply.frame.length - 4];
    };
    expect(sizes('connects: a new session')).toEqual([45, 37]);
    expect(sizes(withoutLastByte)).toEqual([44, 36]);
    const bare = 'a read-only server without local sessions refuses with a bare header';
    expect(sizes(`read-only: ${bare}`)).toEqual([45, replyHeader.minBytes]);
    expect(connectRequest.minBytes).toBe(28);
  });
});
