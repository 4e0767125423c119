/** Writes that only the newest term may make, on both client libraries. */
import type { RedisServer } from '@incumbent/servers';
import { startRedis, startRedisCluster } from '@incumbent/servers';
import { Cluster, Redis } from 'ioredis';
import { createClient, createCluster } from 'redis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RedisClient } from '../src/backends/redis/index.ts';
import { fenceIn, fenceLua } from '../src/backends/redis/index.ts';
import { libraries, missing, Stage } from './support/redis.ts';

const older = { election: 'jobs', token: 9n };
const newer = { election: 'jobs', token: 10n };

describe.skipIf(missing !== undefined)('guarded writes', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server.close());

  for (const library of libraries) {
    test(`a stale leader’s late write comes after the new one’s, and is refused (${library})`, async (context) => {
      const stage = new Stage(context);
      const client = await stage.client(library, server);
      const a = stage.election('a', client, { clockStep: 0 });
      const b = stage.election('b', client, { clockStep: 0 });
      const first = await stage.lead(a);
      const key = `${library}:report`;
      await first.guard.set(key, 'of the first');
      await first[Symbol.asyncDispose]();
      const second = await stage.lead(b);
      expect(await first.guard.superseded()).toBe(true);
      expect(await second.guard.superseded()).toBe(false);
      // The resource has not heard of the second term. Until then the first may write.
      await first.guard.set(key, 'late, but in order');
      await second.guard.set(key, 'of the second');
      await expect(first.guard.set(key, 'too late')).rejects.toMatchObject({
        code: 'NOT_LEADING',
        token: first.token,
        cause: { message: expect.stringContaining(`term ${second.token} has written`) },
      });
      expect(await server.command('GET', key)).toBe('of the second');
      expect(await server.command('GET', `{${key}}:fence`)).toBe(`${second.token}`);
    });

    test(`tokens are compared as numbers of any size (${library})`, async (context) => {
      const stage = new Stage(context);
      const client = await stage.client(library, server);
      const key = `${library}:sizes`;
      const tokens = [9n, 10n, 2n ** 53n, 2n ** 53n + 1n, 2n ** 100n];
      for (const token of tokens) {
        await fenceIn(client, { election: 'jobs', token }).set(key, `${token}`);
        for (const smaller of tokens.filter((each) => each < token)) {
          const late = fenceIn(client, { election: 'jobs', token: smaller });
          await expect(late.set(key, 'late')).rejects.toMatchObject({ code: 'NOT_LEADING' });
        }
        expect(await server.command('GET', key)).toBe(`${token}`);
      }
    });

    test(`a script of one’s own is guarded as well (${library})`, async (context) => {
      const stage = new Stage(context);
      const client = await stage.client(library, server);
      const key = `{${library}:counter}:total`;
      const add = "return redis.call('INCRBY', KEYS[2], ARGV[2])";
      expect(await fenceIn(client, newer).run(add, [key], ['5'])).toBe(5);
      await expect(fenceIn(client, older).run(add, [key], ['5'])).rejects.toMatchObject({
        code: 'NOT_LEADING',
      });
      expect(await server.command('GET', key)).toBe('5');
      expect(await server.command('GET', `${key}:fence`)).toBe('10');
      // An error of the script itself is not taken for anything else.
      await server.command('LPUSH', 'list', 'x');
      const append = "return redis.call('APPEND', KEYS[2], ARGV[2])";
      await expect(fenceIn(client, newer).run(append, ['list'], ['x'])).rejects.toThrow(
        'WRONGTYPE',
      );
    });
  }

  test('the fence may be part of a script that is sent by other means', async () => {
    const send = (token: bigint) =>
      server.command('EVAL', `${fenceLua} return 'written'`, 1, 'own:fence', `${token}`);
    expect(await send(10n)).toBe('written');
    await expect(send(9n)).rejects.toThrow('STALETOKEN 10');
  });

  test('a prefix of the client counts, and one election is the same by both libraries', async (context) => {
    const stage = new Stage(context);
    const keyPrefix = 'app:';
    const node = createClient({ socket: { host: '127.0.0.1', port: server.port }, keyPrefix });
    await node.connect();
    stage.keep({ close: () => node.destroy() });
    const io = new Redis({ host: '127.0.0.1', port: server.port, keyPrefix });
    stage.keep({ close: () => io.disconnect() });
    const first = await stage.lead(stage.election('a', node));
    const waiting = stage.lead(stage.election('b', io));
    await first.guard.set('report', 'of the first');
    await first[Symbol.asyncDispose]();
    const second = await waiting;
    expect(second.token).toBeGreaterThan(first.token);
    expect(second.guard.key).toBe(`app:incumbent:{${stage.name}}`);
    expect(second.guard.key).toBe(first.guard.key);
    await second.guard.set('report', 'of the second');
    await expect(first.guard.set('report', 'too late')).rejects.toMatchObject({
      code: 'NOT_LEADING',
    });
    expect(await io.get('report')).toBe('of the second');
    expect(await server.command('GET', 'app:report')).toBe('of the second');
    stage.expectNoOverlap();
  });
});

describe.skipIf(missing !== undefined)('guarded writes on a cluster', () => {
  let servers: readonly RedisServer[] = [];
  const clients: { client: RedisClient; close(): unknown }[] = [];
  beforeAll(async () => {
    servers = await startRedisCluster(3);
    const [{ port }] = servers as [RedisServer];
    const node = createCluster({ rootNodes: [{ socket: { host: '127.0.0.1', port } }] });
    await node.connect();
    clients.push({ client: node, close: () => node.destroy() });
    const io = new Cluster([{ host: '127.0.0.1', port }]);
    clients.push({ client: io, close: () => io.disconnect() });
    const prefixed = new Cluster([{ host: '127.0.0.1', port }], { keyPrefix: 'app:' });
    clients.push({ client: prefixed, close: () => prefixed.disconnect() });
  });
  afterAll(async () => {
    for (const { close } of clients) close();
    await Promise.all(servers.map((server) => server.close()));
  });

  test('the fence is on the node of its resource', async () => {
    for (const key of ['plain', '{tagged}:a', 'x{tagged}', 'a:b:c', 'ü']) {
      for (const [index, { client }] of clients.slice(0, 2).entries()) {
        const token = BigInt(index + 1);
        await fenceIn(client, { election: 'jobs', token }).set(key, 'v');
      }
      const late = fenceIn(clients[0]?.client as RedisClient, { election: 'jobs', token: 1n });
      await expect(late.set(key, 'late')).rejects.toMatchObject({ code: 'NOT_LEADING' });
    }
  });

  test('a key for which there is no such fence is refused, with what to do', async () => {
    const client = clients[0]?.client as RedisClient;
    await expect(fenceIn(client, newer).set('a}b', 'v')).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining('"{ab}"'),
    });
    const prefixed = clients[2]?.client as RedisClient;
    await expect(fenceIn(prefixed, newer).set('plain', 'v')).rejects.toMatchObject({
      code: 'INVALID_OPTION',
    });
    await fenceIn(prefixed, newer).set('{plain}', 'v');
  });
});
