/**
 * The requests of the real SDK, kept as captured. This fails when a new version of the SDK sends
 * something else. Then check whether the stand-in still answers as S3 would.
 */
import type { LoggedS3Request } from '@incumbent/servers';
import { FakeS3 } from '@incumbent/servers';
import { expect, test } from 'vitest';
import { vacantRecord } from '../test/support/vacant-record.ts';
import { s3Client, s3Stores } from './support/s3.ts';

/** The request, and its telling headers. Parts that differ each time are `…`. */
function shown({ method, url, headers, status }: LoggedS3Request): string {
  const fixed = ['content-type', 'x-amz-checksum-mode', 'x-amz-sdk-checksum-algorithm'];
  const conditions = ['if-match', 'if-none-match'];
  const own = Object.entries(headers)
    .map(([name, value]) => {
      const text = [...fixed, ...conditions].includes(name) ? String(value) : '…';
      return `${name}: ${text.replace(/[0-9a-f]{32}/, '<etag>')}`;
    })
    .sort();
  return [`${method} ${url} -> ${status}`, ...own].join('\n  ');
}

const everyRequest = [
  'amz-sdk-invocation-id: …',
  'amz-sdk-request: …',
  'authorization: …',
  'connection: …',
];
const identity = ['host: …', 'user-agent: …'];
const signed = ['x-amz-content-sha256: …', 'x-amz-date: …', 'x-amz-user-agent: …'];

const get = (status: number) =>
  [
    `GET /elections/captured?x-id=GetObject -> ${status}`,
    ...[...everyRequest, ...identity, 'x-amz-checksum-mode: ENABLED', ...signed].sort(),
  ].join('\n  ');

const put = (status: number, condition: string) =>
  [
    `PUT /elections/captured?x-id=PutObject -> ${status}`,
    ...[
      ...[...everyRequest, ...identity, ...signed, condition],
      ...['content-length: …', 'content-type: application/json', 'x-amz-checksum-crc32: …'],
      'x-amz-sdk-checksum-algorithm: CRC32',
    ].sort(),
  ].join('\n  ');

test('the SDK sends the headers that the stand-in checks, and no others', async () => {
  await using server = await FakeS3.start();
  const client = s3Client(server);
  const store = s3Stores(client, 60_000)('captured');
  const signal = new AbortController().signal;
  const record = vacantRecord('captured', 'n');
  await store.init?.(signal);
  server.requests.length = 0;
  const { version } = await store.read(signal);
  const first = await store.swap(version, record, signal);
  if (first.outcome !== 'ok') throw new Error('it was not made');
  await store.swap(version, record, signal);
  await store.swap(first.version, record, signal);
  await store.swap(first.version, record, signal);
  await store.read(signal);
  expect(server.requests.map(shown)).toEqual([
    get(404),
    put(200, 'if-none-match: *'),
    put(412, 'if-none-match: *'),
    put(200, 'if-match: "<etag>"'),
    put(412, 'if-match: "<etag>"'),
    get(200),
  ]);
  expect(server.unexpected).toEqual([]);
  client.destroy();
});

test('the stand-in refuses headers that it does not check', async () => {
  await using server = await FakeS3.start();
  const client = s3Client(server);
  client.middlewareStack.add(
    (next) => (args) => {
      const { headers } = args.request as { headers: Record<string, string> };
      headers['x-amz-new'] = 'yes';
      return next(args);
    },
    { step: 'build' },
  );
  const store = s3Stores(client, 60_000)('unknown');
  await expect(store.read(new AbortController().signal)).rejects.toThrow('x-amz-new');
  expect(server.unexpected).toEqual(['get: x-amz-new']);
  client.destroy();
});
