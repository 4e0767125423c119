/** The age of a record is told by the endpoint's clock, which may be wrong, and may be set. */
import { FakeS3, waitFor } from '@incumbent/servers';
import { expect, test } from 'vitest';
import { s3 } from '../src/backends/s3/index.ts';
import { createElection } from '../src/index.ts';
import { bucketOptions, s3Client, s3Stores } from './support/s3.ts';

const never = () => new AbortController().signal;

test('an age is the difference of two times of the endpoint, less the fractions that they leave out', async () => {
  await using server = await FakeS3.start();
  const client = s3Client(server);
  const election = createElection({
    name: 'aged',
    backend: s3(client, bucketOptions),
    lease: '60s',
  });
  // Far from ours: no matter.
  server.clockAheadMs = -600_000;
  const term = await election.campaign();
  await term[Symbol.asyncDispose]();
  await election.close();
  const ageWith = async (aheadMs: number, options = bucketOptions) => {
    server.clockAheadMs = -600_000 + aheadMs;
    return (await s3Stores(client, 60_000, options)('aged').read(never())).ageMs;
  };
  const aged = (await ageWith(30_000)) as number;
  expect(aged).toBeGreaterThan(30_000 - 2_000 - 1_000);
  // The machine may take its time, but not so much.
  expect(aged).toBeLessThan(30_000 - 2_000 + 60_000);
  // Behind itself: the clock was set back, or another machine of the endpoint has another one.
  expect(await ageWith(-30_000)).toBe(0);
  expect(await ageWith(30_000, { ...bucketOptions, age: 'off' })).toBeUndefined();
  server.hidesDate = true;
  expect(await ageWith(30_000)).toBeUndefined();
  client.destroy();
});

test('a later candidate takes over from a leader that is long dead at the first look', async () => {
  await using server = await FakeS3.start();
  const client = s3Client(server);
  // It is not renewed while this test looks.
  const timing = {
    lease: '60s',
    renewEvery: '20s',
    operationTimeout: '5s',
    retryBackoff: '1s',
  } as const;
  const open = () =>
    createElection({ name: 'dead', backend: s3(client, bucketOptions), ...timing });
  const dead = open();
  const term = await dead.campaign();
  expect(term.token).toBe(1n);
  // For the endpoint a minute has passed.
  server.clockAheadMs = 65_000;
  const other = open();
  const next = await other.campaign({ wait: '2m' });
  expect(next.token).toBe(2n);
  expect(next.predecessor?.clean).toBe(false);
  await next[Symbol.asyncDispose]();
  await other.close();
  await term[Symbol.asyncDispose]();
  await dead.close();
  client.destroy();
});

test('a clock that is set forward within clockStep makes nobody lead too early', async () => {
  await using server = await FakeS3.start();
  const client = s3Client(server);
  const backend = s3(client, { ...bucketOptions, clockStep: '30s' });
  const timing = { lease: '20s', renewEvery: '200ms', pollEvery: '200ms' } as const;
  const open = () => createElection({ name: 'stepped', backend, ...timing });
  const leader = open();
  const term = await leader.campaign();
  // Its renewals do not arrive: it goes on believing, and the record stands as it is.
  const heal = server.faults.add({
    name: 'stepped',
    verbs: ['put'],
    times: 999,
    action: { kind: 'hang' },
  });
  server.clockAheadMs = 29_000;
  const other = open();
  const following = other.campaign({ wait: '60s' });
  const looksBefore = server.count('get');
  await waitFor('the other one has looked', async () => server.count('get') > looksBefore + 4);
  const attempts = server.requests.filter(
    ({ verb, headers }) => verb === 'put' && headers['if-match'] === undefined,
  );
  expect(term.isLeading()).toBe(true);
  expect(await other.leader()).toMatchObject({ state: 'led', token: 1n });
  expect(attempts.filter(({ name }) => name === 'stepped')).toHaveLength(1);
  heal();
  await term[Symbol.asyncDispose]();
  await leader.close();
  const next = await following;
  expect(term.isLeading()).toBe(false);
  await next[Symbol.asyncDispose]();
  await other.close();
  client.destroy();
});

test('clocks that are hours apart are no matter: the SDK signs by the endpoint’s', async () => {
  await using server = await FakeS3.start();
  server.clockAheadMs = 5 * 3_600_000;
  const client = s3Client(server);
  const backend = s3(client, bucketOptions);
  const election = createElection({ name: 'apart', backend, lease: '60s' });
  const term = await election.campaign({ wait: '2m' });
  expect(server.requests[0]?.status).toBe(403);
  expect(term.token).toBe(1n);
  await term[Symbol.asyncDispose]();
  await election.close();
  client.destroy();
});
