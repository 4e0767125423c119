/** The stand-in against the rules of Cloud Storage: reads as Go's client asks for them. */
import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { FakeGcs } from '../src/index.ts';

const bytes = Buffer.from('a record of an election');
let server: FakeGcs;
let generation: string;

beforeEach(async () => {
  server = await FakeGcs.start();
  ({ generation } = server.bucket.put('a/b c', bytes, {}, server.nowMs));
});
afterEach(() => server.close());

function get(path: string, headers: Record<string, string> = {}, method = 'GET') {
  return fetch(server.url + path, { method, headers });
}

describe('the XML API', () => {
  test('gives an object with its generations and checksums, under a name with a slash', async () => {
    for (const path of ['/elections/a%2Fb%20c', '/elections/a/b%20c']) {
      const response = await get(path);
      expect(response.status).toBe(200);
      expect(Buffer.from(await response.arrayBuffer())).toEqual(bytes);
      expect(Object.fromEntries(response.headers)).toMatchObject({
        'x-goog-generation': generation,
        'x-goog-metageneration': '1',
        'x-goog-hash': expect.stringContaining(
          `md5=${createHash('md5').update(bytes).digest('base64')}`,
        ),
        'content-length': String(bytes.length),
        'last-modified': expect.stringMatching(/GMT$/),
      });
    }
    expect(server.count('read')).toBe(2);
  });

  test('gives the headers alone to HEAD, and a part to a request for one', async () => {
    const head = await get('/elections/a%2Fb%20c', {}, 'HEAD');
    expect([head.status, head.headers.get('content-length')]).toEqual([200, String(bytes.length)]);
    expect(await head.text()).toBe('');
    const part = async (range: string) => {
      const response = await get('/elections/a%2Fb%20c', { range });
      return [response.status, response.headers.get('content-range'), await response.text()];
    };
    expect(await part('bytes=2-7')).toEqual([206, 'bytes 2-7/23', 'record']);
    expect(await part('bytes=12-')).toEqual([206, 'bytes 12-22/23', 'an election']);
    expect(await part('bytes=-8')).toEqual([206, 'bytes 15-22/23', 'election']);
    expect((await part('bytes=23-'))[0]).toBe(416);
  });

  test('reads on a condition, or one generation', async () => {
    const read = async (headers: Record<string, string>, query = '') =>
      (await get(`/elections/a%2Fb%20c${query}`, headers)).status;
    expect(await read({ 'x-goog-if-generation-match': generation })).toBe(200);
    expect(await read({ 'x-goog-if-generation-match': '1' })).toBe(412);
    expect(await read({ 'x-goog-if-metageneration-match': '2' })).toBe(412);
    expect(await read({}, `?generation=${generation}`)).toBe(200);
    expect(await read({}, '?generation=1')).toBe(404);
  });

  test('refuses in XML, with the code for each reason', async () => {
    const refusal = async (path: string) => {
      const response = await get(path);
      const [, code] = /<Code>(\w+)<\/Code>/.exec(await response.text()) ?? [];
      return [response.status, response.headers.get('content-type'), code];
    };
    const type = 'application/xml; charset=UTF-8';
    expect(await refusal('/elections/none')).toEqual([404, type, 'NoSuchKey']);
    expect(await refusal('/nowhere/none')).toEqual([404, type, 'NoSuchBucket']);
    server.allowed = new Set();
    expect(await refusal('/elections/a%2Fb%20c')).toEqual([403, type, 'AccessDenied']);
  });
});

describe('the JSON API', () => {
  test('reads bytes and metadata on a condition too', async () => {
    const read = async (query: string) =>
      (await get(`/storage/v1/b/elections/o/a%2Fb%20c?${query}`)).status;
    for (const what of ['alt=media', 'alt=json']) {
      expect(await read(what)).toBe(200);
      expect(await read(`${what}&ifGenerationMatch=${generation}`)).toBe(200);
      expect(await read(`${what}&ifGenerationMatch=1`)).toBe(412);
      expect(await read(`${what}&ifMetagenerationMatch=2`)).toBe(412);
      expect(await read(`${what}&generation=1`)).toBe(404);
    }
  });
});
