/**
 * The requests of the real client, kept as captured. This fails when a new version of the client
 * sends something else. Then check whether the stand-in still answers as Cloud Storage would.
 */

import { Storage } from '@google-cloud/storage';
import type { LoggedGcsRequest } from '@incumbent/servers';
import { FakeGcs } from '@incumbent/servers';
import { expect, test } from 'vitest';
import { Refusals } from '../src/backends/gcs/errors.ts';
import { checkOptions } from '../src/backends/gcs/options.ts';
import { GcsStore } from '../src/backends/gcs/store.ts';
import { systemClock } from '../src/base/clock.ts';
import { resolveTiming } from '../src/base/timing.ts';
import type { LeaseRecord } from '../src/testing/index.ts';
import { vacantRecord } from '../test/support/vacant-record.ts';

/** The request, and its telling headers. Parts that differ each time are `…`. */
function shown({ method, url, headers, body, status }: LoggedGcsRequest): string {
  const telling = ['accept-encoding', 'cache-control', 'content-type', 'transfer-encoding'];
  const own = Object.entries(headers)
    .map(([name, value]) => `${name}: ${telling.includes(name) ? value : '…'}`)
    .sort();
  // Between the boundaries of a multipart body: the description of the object, and its bytes.
  const parts = body
    .toString('latin1')
    .split(/--[0-9a-f-]{36}(?:--)?\s*/)
    .filter((part) => part !== '')
    .map((part) => part.trim().split(/\r?\n/).filter(Boolean))
    .map((lines) => lines.slice(0, lines[0]?.includes('json') ? 2 : 1).join(' '));
  return [`${method} ${url} -> ${status}`, ...own, ...parts]
    .join('\n  ')
    .replace(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '…')
    .replace(/ifGenerationMatch=[1-9]\d+/, 'ifGenerationMatch=<generation>')
    .replace(/"crc32c":"[\w+/]{6}=="/, '"crc32c":…');
}

const read = (status: number) =>
  [
    `GET /storage/v1/b/elections/o/captured?alt=media -> ${status}`,
    ...['accept-encoding: gzip', 'accept: …', 'cache-control: no-store', 'connection: …'],
    ...['host: …', 'user-agent: …', 'x-goog-api-client: …'],
  ].join('\n  ');

const write = (status: number, generation: string) =>
  [
    `POST /upload/storage/v1/b/elections/o?uploadType=multipart&name=captured` +
      `&ifGenerationMatch=${generation} -> ${status}`,
    ...['accept-encoding: gzip,deflate', 'accept: …', 'connection: …'],
    'content-type: multipart/related; boundary=…',
    ...['host: …', 'transfer-encoding: chunked', 'user-agent: …', 'x-goog-api-client: …'],
    'Content-Type: application/json {"contentType":"application/x-protobuf",' +
      '"cacheControl":"no-store","crc32c":…,"acl":[{"entity":"allAuthenticatedUsers","role":"READER"}]}',
    'Content-Type: application/x-protobuf',
  ].join('\n  ');

test('the client sends one request for each call, with the condition and the checksum', async () => {
  await using server = await FakeGcs.start();
  const storage = new Storage({ apiEndpoint: server.url, projectId: 'test' });
  const options = checkOptions({ bucket: 'elections', readers: ['allAuthenticatedUsers'] });
  const store = new GcsStore(
    { storage, options, refusals: new Refusals('elections') },
    {
      election: 'captured',
      clock: systemClock,
      timing: resolveTiming({ lease: 60_000 }),
      random: Math.random,
      uniqueId: () => 'id',
      onTrouble: () => {},
    },
    'captured',
  );
  const { signal } = new AbortController();
  const { version } = await store.read(signal);
  const first = await store.swap(version, record, signal);
  if (first.outcome !== 'ok') throw new Error('it was not made');
  await store.swap(version, record, signal);
  await store.swap(first.version, { ...record, nonce: 'm' }, signal);
  await store.swap(first.version, record, signal);
  await store.read(signal);
  // Each is noted when it was answered.
  await expect.poll(() => server.requests.length).toBe(6);
  expect(server.requests.map(shown)).toEqual([
    read(404),
    write(200, '0'),
    write(412, '0'),
    write(200, '<generation>'),
    write(412, '<generation>'),
    read(200),
  ]);
});

const record: LeaseRecord = { ...vacantRecord('captured', 'n'), leaseMs: 60_000 };
