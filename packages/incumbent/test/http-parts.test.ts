import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readTokens, writeTokens } from '../src/following/headers.ts';
import { originOf } from '../src/following/http/origin.ts';
import { needsReplay, ReplayBody } from '../src/following/http/replay-body.ts';
import { targetOf } from '../src/following/http/request-target.ts';
import { memoryOfTokens } from '../src/following/http/token-memory.ts';
import { parseAddress } from '../src/following/index.ts';
import { candidate } from './support/fake-election.ts';

describe('the token headers', () => {
  test('whatever is written is read, for any names', () => {
    const name = fc
      .string({ minLength: 1, unit: 'grapheme' })
      .filter((text) => !/\p{Surrogate}/u.test(text));
    const tokens = fc.uniqueArray(fc.tuple(name, fc.bigInt(0n, 10n ** 39n - 1n)), {
      selector: ([election]) => election,
      maxLength: 5,
    });
    fc.assert(
      fc.property(tokens, (entries) => {
        const written = writeTokens(entries);
        expect(written.elections).toMatch(/^[!-~ ]*$/);
        expect([...(readTokens(written.elections, written.tokens) ?? [])]).toEqual(entries);
        // Node joins repeated headers in the same way.
        const apart = [written.elections.split(', '), written.tokens.split(', ')] as const;
        if (entries.length > 0) expect(readTokens(...apart)?.size).toBe(entries.length);
      }),
    );
  });

  test('garbage is not guessed', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (elections, numbers) => {
        for (const [name, token] of readTokens(elections, numbers) ?? []) {
          expect(name).not.toBe('');
          expect(token >= 0n).toBe(true);
        }
      }),
    );
    const many = Array.from({ length: 101 }, (_, i) => `e${i}`);
    expect(
      readTokens(
        many,
        many.map((_, i) => String(i)),
      ),
    ).toBeUndefined();
    expect(readTokens(undefined, undefined)?.size).toBe(0);
  });
});

test('the memory of tokens never goes back', async () => {
  const memory = memoryOfTokens();
  const raised = [];
  for (const token of [5n, 4n, 6n, 6n]) raised.push(await memory.raise('a', token));
  expect(raised).toEqual([5n, 5n, 6n, 6n]);
  expect(await memory.raise('b', 1n)).toBe(1n);
});

describe('addresses', () => {
  test('are a host and a port, or a URL of nothing else', () => {
    const found = (text: string) => {
      const address = parseAddress(text);
      return address && [address.scheme, address.host, address.port];
    };
    expect(found('10.0.0.7:50051')).toEqual([undefined, '10.0.0.7', 50051]);
    expect(found('[2001:db8::7]:1')).toEqual([undefined, '2001:db8::7', 1]);
    expect(found('HTTPS://host/')).toEqual(['https', 'host', undefined]);
    expect(found('grpc+tls://h-1.example:443')).toEqual(['grpc+tls', 'h-1.example', 443]);
    for (const text of [
      '',
      'host',
      ':80',
      'host:',
      'host:0',
      'host:65536',
      'host:8a',
      '::1:80',
      '[::1]',
      '[h]:80',
      'a@host:80',
      'http://a:b@host',
      'http://host/path',
      'http://host?q',
      'http://host#f',
      'http:\\\\host',
      'host:80 ',
      'ho st:80',
      'host:80\r\nx: y',
      '//host:80',
      'http:///host',
    ]) {
      expect(found(text), text).toBeUndefined();
    }
  });

  test('an origin is never more than scheme, host and port', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.webUrl(),
          fc.string().map((t) => `http://${t}:1`),
        ),
        (text) => {
          const origin = originOf(candidate('x', { addresses: [text] }), false, undefined);
          if (origin === undefined) return;
          const url = new URL(origin);
          expect(url.origin).toBe(origin);
          expect(['http:', 'https:']).toContain(url.protocol);
          expect(origin).toMatch(/^[!-~]+$/);
        },
      ),
    );
  });
});

describe('what was asked for', () => {
  const target = (url: string, originalUrl?: string) =>
    targetOf({ url, ...(originalUrl === undefined ? {} : { originalUrl }) } as IncomingMessage & {
      originalUrl?: string;
    });

  test('is a path and a query, whatever came', () => {
    expect(target('/a?b#c')).toBe('/a?b#c');
    expect(target('/mounted', '/whole/mounted')).toBe('/whole/mounted');
    expect(target('https://evil.example:1/a?b')).toBe('/a?b');
    expect(target('https://evil.example')).toBe('/');
    expect(target('https://evil.example?b')).toBe('/?b');
    expect(target('?b')).toBe('/?b');
    expect(target('*')).toBeUndefined();
    expect(target('evil.example:80')).toBeUndefined();
    expect(target('/\u00e4 \r\n\u20ac')).toBe('/%E4%20%0D%0A%3F');
  });

  test('never leads to another host', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.webPath(), (text, path) => {
        for (const asked of [`/${text}`, `//${text}`, text, `http://${text}`, path, `/\\${text}`]) {
          const found = target(asked);
          if (found === undefined) continue;
          expect(found).toMatch(/^\/[!-~]*$/);
          expect(new URL(`http://leader.example:81${found}`).host).toBe('leader.example:81');
        }
      }),
    );
  });
});

describe('a body that is kept', () => {
  const read = async (body: ReplayBody) => {
    const pieces: string[] = [];
    for await (const piece of body) pieces.push(String(piece));
    return pieces.join('');
  };
  const pieces = (...texts: string[]) => texts.map((text) => Buffer.from(text));

  test('is read again from its beginning while it is small', async () => {
    for (const source of [pieces('ab', 'cd'), Readable.from(pieces('ab', 'cd'))]) {
      const body = new ReplayBody(source, 4);
      expect(await read(body)).toBe('abcd');
      expect([body.canReplay, body.isComplete]).toEqual([true, true]);
      expect(await read(body)).toBe('abcd');
    }
  });

  test('is whole the first time, whatever its size, and gone afterwards', async () => {
    const body = new ReplayBody(pieces('ab', 'cd', 'ef', 'gh'), 3);
    expect(await read(body)).toBe('abcdefgh');
    expect(body.canReplay).toBe(false);
    const nothingKept = new ReplayBody(pieces('a'), 0);
    expect(await read(nothingKept)).toBe('a');
    expect(nothingKept.canReplay).toBe(false);
  });

  test('is read by the latest reader only, from where the source is', async () => {
    let goOn = (_text: string) => {};
    async function* slow() {
      yield Buffer.from('first ');
      yield Buffer.from(await new Promise<string>((resolve) => (goOn = resolve)));
    }
    const body = new ReplayBody(slow(), 100);
    const first = body[Symbol.asyncIterator]();
    expect(String((await first.next()).value)).toBe('first ');
    const abandoned = first.next();
    await new Promise((resolve) => setImmediate(resolve));
    const second = read(body);
    goOn('second');
    await expect(abandoned).rejects.toThrow('another attempt');
    expect(await second).toBe('first second');
  });

  test('fails as its source does, each time', async () => {
    const source = new Readable({ read: () => {} });
    const body = new ReplayBody(source, 100);
    source.destroy(new Error('disk on fire'));
    await expect(read(body)).rejects.toThrow('disk on fire');
    await expect(read(body)).rejects.toThrow('disk on fire');
  });

  test('lets go of its source', async () => {
    let isReturned = false;
    const source = {
      [Symbol.asyncIterator]: () => ({
        next: async () => ({ done: false as const, value: Buffer.from('x') }),
        return: async () => {
          isReturned = true;
          throw new Error('too late');
        },
      }),
    };
    const body = new ReplayBody(source, 100);
    await body.close();
    expect(isReturned).toBe(true);
    const stream = Readable.from(pieces('x'));
    await new ReplayBody(stream, 100).close();
    expect(stream.destroyed).toBe(true);
  });

  test('only a body that comes in pieces has to be kept', () => {
    for (const body of [
      undefined,
      null,
      'text',
      Buffer.from('x'),
      new ArrayBuffer(1),
      new Blob(['x']),
      new FormData(),
    ]) {
      expect(needsReplay(body)).toBe(false);
    }
    for (const body of [Readable.from([]), [Buffer.from('x')], new ReadableStream(), new Set()]) {
      expect(needsReplay(body)).toBe(true);
    }
  });
});
