import { Cluster, Redis } from 'ioredis';
import { createClient, createClientPool, createCluster, createSentinel } from 'redis';
import { describe, expect, test } from 'vitest';
import { driverOf } from '../src/backends/redis/driver-of.ts';
import type {
  IoRedisClient,
  IoRedisCluster,
  NodeRedisClient,
  NodeRedisCluster,
  NodeRedisPool,
  NodeRedisSentinel,
  RedisClient,
  RedisOptions,
} from '../src/backends/redis/index.ts';
import { redis } from '../src/backends/redis/index.ts';

// Compiling these lines is a test as well: our types accept the clients of the libraries.
const node: NodeRedisClient = createClient({ url: 'rediss://user:secret@db.example:6390/2' });
const pool: NodeRedisPool = createClientPool();
const cluster: NodeRedisCluster = createCluster({ rootNodes: [{ url: 'redis://127.0.0.1:1' }] });
const sentinel: NodeRedisSentinel = createSentinel({
  name: 'incumbent',
  sentinelRootNodes: [{ host: '127.0.0.1', port: 1 }],
});
const io: IoRedisClient = new Redis({ lazyConnect: true, port: 6390, password: 'secret' });
const ioSentinel: IoRedisClient = new Redis({
  lazyConnect: true,
  sentinels: [{ host: '127.0.0.1', port: 1 }],
  name: 'incumbent',
});
const ioCluster: IoRedisCluster = new Cluster([{ port: 1 }], { lazyConnect: true });

describe('clients', () => {
  test.each<[RedisClient, string, boolean]>([
    [node, 'rediss://db.example:6390', true],
    [pool, 'redis://localhost:6379', true],
    [cluster, 'a Redis cluster', false],
    [sentinel, 'Redis behind Sentinels', true],
    [io, 'redis://localhost:6390', true],
    [ioSentinel, 'Redis behind Sentinels', true],
    [ioCluster, 'a Redis cluster', false],
  ])('are known by their methods, and described without secrets: %#', (client, what, isOne) => {
    const driver = driverOf(client);
    expect(driver.description).toBe(what);
    expect(driver.together !== undefined).toBe(isOne);
    expect(redis(client).description).toBe(`${what} (incumbent:…)`);
  });

  test.each([
    [undefined, 'not undefined'],
    [null, 'not null'],
    ['redis://:secret@127.0.0.1', 'not a string'],
    [{}, 'not '],
    [Promise.resolve(node), 'await it'],
    [createClient().legacy(), 'legacy()'],
    [{ send_command() {}, internal_send_command() {} }, 'redis 3'],
  ])('that are none are refused with what there is: %#', (client, why) => {
    const open = () => redis(client as RedisClient);
    expect(open).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }));
    expect(open).toThrow('takes a client of the package "redis"');
    expect(open).toThrow(why);
  });

  test('name the prefix that they write before keys by themselves', () => {
    const prefixed = createClient({ keyPrefix: 'app:' });
    expect(driverOf(prefixed)).toMatchObject({ ownPrefix: 'app:', clientPrefix: '' });
    const other = new Redis({ lazyConnect: true, keyPrefix: 'app:' });
    expect(driverOf(other)).toMatchObject({ ownPrefix: '', clientPrefix: 'app:' });
    expect(redis(prefixed).description).toContain('(app:incumbent:…)');
    expect(redis(other).description).toContain('(app:incumbent:…)');
  });
});

describe('options', () => {
  test.each<[RedisOptions | object, string]>([
    [null as unknown as object, 'takes options, not null'],
    [{ prefx: 'x' }, 'no option "prefx"; it knows prefix, age'],
    [{ prefix: 5 }, 'prefix must be a string, not 5'],
    [{ prefix: 'a{}b' }, 'empty hash tag'],
    [{ age: 'client' }, 'age must be "on" or "off", not "client"'],
    [{ age: 'off', clockStep: '1s' }, 'clockStep means nothing with age "off"'],
    [{ clockStep: '-1s' }, 'clockStep'],
    [{ tokenFloor: 5 }, 'tokenFloor must be a bigint of 0n or more, such as 1000n, not 5'],
    [{ tokenFloor: -1n }, 'tokenFloor must be a bigint'],
    [{ wait: 1 }, 'wait must be like { replicas: 1, timeout: "1s" }'],
    [{ wait: null }, 'wait must be like'],
    [{ wait: { replicas: 0 } }, 'with 1 replica or more'],
    [{ wait: { replicas: 1.5 } }, 'with 1 replica or more'],
    [{ wait: { replicas: 1, timeout: 0 } }, 'wait.timeout must be 1 ms or longer'],
    [{ wait: { replicas: 1, timeout: '1x' } }, 'wait.timeout'],
    [{ wait: { replicas: 1, within: 1 } }, 'wait has no option "within"'],
    [{ durable: 'yes' }, 'durable must be true or false, not "yes"'],
    [{ listen: 0 }, 'listen must be true or false, not 0'],
  ])('that cannot be are refused with the value and the rule: %#', (options, why) => {
    const open = () => redis(io, options as RedisOptions);
    expect(open).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }));
    expect(open).toThrow(why);
  });

  test('for WAIT are refused on a cluster, with the other way', () => {
    for (const client of [cluster, ioCluster]) {
      expect(() => redis(client, { wait: { replicas: 1 } })).toThrow('min-replicas-to-write');
    }
  });
});
