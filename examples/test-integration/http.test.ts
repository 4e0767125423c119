import { rm } from 'node:fs/promises';
import { makeServerDirectory } from '@incumbent/servers';
import { freePorts } from '@incumbent/zookeeper-testing';
import { createElection } from 'incumbent';
import { file } from 'incumbent/file';
import { expect, test } from 'vitest';
import { Copies } from './support/copies.ts';
import { leaderOf, oneLeadsAtATime } from './support/one-leads.ts';

test('orders reach the copy that leads by way of any copy, and another one goes on when it is gone', async () => {
  const [port] = (await freePorts(1)) as [number];
  const directory = await makeServerDirectory('orders');
  const shared = { ELECTIONS: directory, LEASE: '2s', STORAGE: `http://127.0.0.1:${port}` };
  await using storage = await Copies.of('http/storage', { PORT: String(port) });
  await using clients = await Copies.of('http/client', shared);
  await using services = await Copies.of('http/service', shared);
  await using election = createElection({ name: 'orders', backend: file(directory) });
  await storage.start();
  const tokens = async (): Promise<number[]> => {
    const orders = (await (await fetch(`http://127.0.0.1:${port}/orders`)).json()) as {
      token: string;
    }[];
    return orders.map(({ token }) => Number(token));
  };
  await storage.until('the storage answers', () =>
    tokens().then(
      () => true,
      () => false,
    ),
  );
  const client = await clients.start();
  await oneLeadsAtATime({ copies: services, leader: () => leaderOf(election), tokens });
  const statuses = new Set((await clients.output()).trim().split('\n'));
  expect(statuses).toContain('201');
  await client.kill();
  await rm(directory, { recursive: true });
});
