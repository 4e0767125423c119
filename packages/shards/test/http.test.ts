import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { memory } from 'incumbent/memory';
import { Agent, request } from 'undici';
import { afterEach, expect, test } from 'vitest';
import { ownerOnly, toOwner } from '../src/http/index.ts';
import type { Shards, ShardsOptions, ShardTerm } from '../src/index.ts';
import { createShards } from '../src/index.ts';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const shardIn = (path: string | undefined) => Number(/\d+/.exec(path ?? '')?.[0]);

/** A process that owns shards, and answers with its name. */
async function serve(
  id: string,
  backend: ReturnType<typeof memory>,
  more: Partial<ShardsOptions<number>> = {},
): Promise<Shards<number>> {
  let handle: (incoming: IncomingMessage, response: ServerResponse) => void = () => {};
  const server = createServer((incoming, response) => handle(incoming, response));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const shards = createShards({
    name: 'queues',
    backend,
    shards: 8,
    lease: '1s',
    candidate: { id, addresses: [`127.0.0.1:${port}`] },
    own: async (_shard, term) => {
      await once(term.signal, 'abort');
    },
    ...more,
  });
  const only = ownerOnly({ shards, shardOf: ({ url }) => shardIn(url) });
  handle = (incoming, response) => {
    only(incoming, response, () => response.end(id));
  };
  closers.push(() => shards.close());
  closers.push(() => only.close());
  closers.push(() => server.close());
  await shards.joined;
  return shards;
}

async function untilOwned(shards: Shards<number>): Promise<void> {
  for await (const view of shards.observe()) {
    if (view.unowned.length === 0 && view.members.every(({ owns }) => owns === 4)) return;
  }
}

test('requests reach the owner of their shard, also after it has moved', async () => {
  const backend = memory();
  const [a, b] = await Promise.all([serve('a', backend), serve('b', backend)]);
  const client = createShards({ name: 'queues', backend, shards: 8, lease: '1s' });
  const router = toOwner(client, { shardOf: ({ path }) => shardIn(path) });
  const dispatcher = new Agent().compose(router);
  closers.push(
    () => client.close(),
    () => dispatcher.close(),
    () => router.close(),
  );
  await untilOwned(client);
  const ask = async (shard: number) => {
    const { body } = await request(`http://queues/shards/${shard}`, { dispatcher });
    return body.text();
  };
  for (let shard = 0; shard < 8; shard += 1) {
    expect(await ask(shard)).toBe(a.owned().includes(shard) ? 'a' : 'b');
  }

  const [moving] = a.owned();
  await a.drain();
  expect(await ask(moving!)).toBe('b');
  expect(b.term(moving!)?.isLeading()).toBe(true);
});

test('requests wait for an owner that is not ready, which serves none', async () => {
  const backend = memory();
  const terms = new Map<number, ShardTerm<number>>();
  await serve('a', backend, {
    ready: 'manual',
    own: async (shard, term) => {
      terms.set(shard, term);
      await once(term.signal, 'abort');
    },
  });
  const client = createShards({ name: 'queues', backend, shards: 8, lease: '1s' });
  const router = toOwner(client, { shardOf: ({ path }) => shardIn(path) });
  const dispatcher = new Agent().compose(router);
  closers.push(
    () => client.close(),
    () => dispatcher.close(),
    () => router.close(),
  );
  let address = '';
  for await (const view of client.observe()) {
    const owner = view.owner(3);
    if (owner === undefined) continue;
    expect(owner.ready).toBe(false);
    [address = ''] = owner.addresses;
    break;
  }
  const routed = request('http://queues/shards/3', { dispatcher });
  const direct = await request(`http://${address}/shards/3`);
  expect([direct.statusCode, await direct.body.text()]).toEqual([
    503,
    expect.stringContaining('is not ready'),
  ]);
  await terms.get(3)?.ready();
  expect((await routed).statusCode).toBe(200);
  expect((await request(`http://${address}/shards/3`)).statusCode).toBe(200);
});

test('a process that does not own the shard points at the owner', async () => {
  const backend = memory();
  const [a, b] = await Promise.all([serve('a', backend), serve('b', backend)]);
  await untilOwned(b);
  const [shard] = b.owned();
  const view = await b.view();
  const [address] = view.members.find(({ id }) => id === 'a')!.addresses;
  const { statusCode, headers } = await request(`http://${address}/shards/${shard}`);
  expect(statusCode).toBe(307);
  expect(headers['location']).toBe(`http://${view.owner(shard!)?.addresses[0]}/shards/${shard}`);
  expect(a.term(shard!)).toBeUndefined();
});

test('a request for a shard that does not exist is rejected', async () => {
  const shards = createShards({ name: 'queues', backend: memory(), shards: 8 });
  const router = toOwner(shards, { shardOf: () => 8 });
  const dispatcher = new Agent().compose(router);
  closers.push(
    () => shards.close(),
    () => dispatcher.close(),
    () => router.close(),
  );
  await expect(request('http://queues/', { dispatcher })).rejects.toThrow(
    'shards have the numbers 0 to 7',
  );
  expect(() => toOwner(shards, {} as never)).toThrow('shardOf must be a function, not undefined');
  expect(() => ownerOnly({ shards } as never)).toThrow('shardOf must be a function, not undefined');
});
