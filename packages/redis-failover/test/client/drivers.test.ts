/** The options that the drivers get, and those that are refused. */
import { inspect } from 'node:util';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { describe, expect, test } from 'vitest';
import { routedClient } from '../../src/client/routed-client.ts';
import { ioredis, nodeRedis, RedisFailover } from '../../src/index.ts';

const address = { host: '10.0.0.7', port: 6380 };

describe('nodeRedis', () => {
  test('keeps the options of createClient, and forces what must hold', () => {
    const options = { password: 'secret', database: 3, socket: { tls: true, servername: 'redis' } };
    const driver = nodeRedis(createClient, options);
    expect(driver.open(address).client.options).toMatchObject({
      password: 'secret',
      database: 3,
      disableOfflineQueue: true,
      maintNotifications: 'disabled',
      socket: { ...address, tls: true, servername: 'redis', reconnectStrategy: false },
    });
    expect(options.socket).toEqual({ tls: true, servername: 'redis' });
  });

  test('makes the class of its clients once', () => {
    const driver = nodeRedis(createClient);
    const [first, second] = [
      driver.open(address).client,
      driver.open({ host: 'h', port: 1 }).client,
    ];
    expect(first.constructor).toBe(second.constructor);
    expect(first).not.toBe(second);
  });

  test.each([
    [{ url: 'redis://h:1' }, 'url', 'said by ZooKeeper'],
    [{ socket: { host: 'h' } }, 'host', 'said by ZooKeeper'],
    [{ socket: { reconnectStrategy: 100 } }, 'reconnectStrategy', 'one term'],
    [{ disableOfflineQueue: false }, 'disableOfflineQueue', 'retryAmbiguous'],
    [{ clientSideCache: {} }, 'clientSideCache', 'outlive'],
    [{ maintNotifications: 'auto' }, 'maintNotifications', 'another server'],
    [{ readonly: true }, 'readonly', "reads: 'replicas'"],
  ])('refuses %j by name', (options, name, why) => {
    expect(() => nodeRedis(createClient, options)).toThrow(`cannot take ${name}`);
    expect(() => nodeRedis(createClient, options)).toThrow(why);
  });

  test('takes what changes nothing', () => {
    const options = { disableOfflineQueue: true, socket: { reconnectStrategy: false } };
    expect(() => nodeRedis(createClient, options)).not.toThrow();
  });

  test('wants a function', () => {
    expect(() => nodeRedis(createClient() as never)).toThrow('takes createClient of the package');
    expect(() => nodeRedis((() => ({})) as never)).toThrow('a client of one server');
    expect(() => nodeRedis(createClient, 'redis://h' as never)).toThrow('an object of options');
  });
});

describe('ioredis', () => {
  test('keeps the options of Redis, and forces what must hold', () => {
    const driver = ioredis(Redis, { password: 'secret', db: 3, keyPrefix: 'app:', tls: {} });
    const { client } = driver.open(address);
    const { retryStrategy, ...options } = client.options;
    expect(options).toMatchObject({
      ...address,
      password: 'secret',
      db: 3,
      keyPrefix: 'app:',
      lazyConnect: true,
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      autoResubscribe: false,
      maxRetriesPerRequest: 0,
      reconnectOnError: null,
    });
    expect(retryStrategy?.(1)).toBe(null);
  });

  test.each([
    [{ host: 'h' }, 'host', 'said by ZooKeeper'],
    [{ sentinels: [] }, 'sentinels', 'said by ZooKeeper'],
    [{ retryStrategy: () => 10 }, 'retryStrategy', 'one term'],
    [{ reconnectOnError: () => true }, 'reconnectOnError', 'one term'],
    [{ autoResendUnfulfilledCommands: true }, 'autoResendUnfulfilledCommands', 'retryAmbiguous'],
    [{ maxRetriesPerRequest: 3 }, 'maxRetriesPerRequest', 'retryAmbiguous'],
    [{ enableOfflineQueue: true }, 'enableOfflineQueue', 'retryAmbiguous'],
    [{ commandTimeout: 5 }, 'commandTimeout', 'RedisFailover.connect'],
    [{ lazyConnect: false }, 'lazyConnect', 'when they are needed'],
  ])('refuses %j by name', (options, name, why) => {
    expect(() => ioredis(Redis, options)).toThrow(`cannot take ${name}`);
    expect(() => ioredis(Redis, options)).toThrow(why);
  });
});

test('no message holds what was given: it may be a password', async () => {
  const options = { password: 'secret' };
  const mistakes = [
    () => ioredis(new Redis({ lazyConnect: true, ...options }) as never),
    () => ioredis(options as never),
    () => nodeRedis(createClient(options) as never),
    () => nodeRedis(createClient, [options] as never),
  ];
  for (const mistake of mistakes) {
    expect(mistake).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('secret') }),
    );
  }
  const redis = new Redis({ lazyConnect: true, ...options });
  const wrong = RedisFailover.connect({ zookeeper: 'zk://h', redis } as never);
  await expect(wrong).rejects.toMatchObject({
    message: expect.stringMatching(/^redis is made by .*, and not an (object|instance of \w+)$/),
  });
});

test('a client that is printed does not tell its password', () => {
  const plain = { password: 'secret', database: 1 };
  for (const driver of [nodeRedis(createClient, plain), ioredis(Redis, plain)]) {
    const redis = routedClient<object>({
      driver,
      pinned: false,
      perform: () => Promise.reject(new Error('not here')),
      isReady: () => false,
    });
    expect(inspect(redis, { depth: 10, showHidden: true })).not.toContain('secret');
    expect('get' in redis).toBe(true);
  }
});

test('ioredis refuses its cluster', () => {
  class Clustered extends Redis {
    override isCluster = true;
  }
  expect(() => ioredis(Clustered)).toThrow('not Cluster');
});

describe('RedisFailover.connect refuses', () => {
  const redis = nodeRedis(createClient);
  const zookeeper = 'zk://127.0.0.1:1';

  test.each([
    [{ zookeeper, redis, raeds: 'primary' }, 'has no option "raeds"'],
    [{ zkservers: 'h:1', redis }, 'that is zookeeper, such as'],
    [{ zookeeper, redis, master_only: true }, "that is reads: 'primary'"],
    [{ zookeeper, redis, password: 'x' }, 'an option of nodeRedis() or ioredis()'],
    [{ redis }, 'zookeeper is a connection string such as'],
    [{ zookeeper: 'zk://', redis }, 'zookeeper: '],
    [{ zookeeper }, 'redis is made by nodeRedis(createClient) or ioredis(Redis)'],
    [{ zookeeper, redis: createClient() }, 'redis is made by'],
    [{ zookeeper, redis, root: 'redis_failover' }, 'a path in ZooKeeper such as "/redis_failover"'],
    [{ zookeeper, redis, reads: 'slaves' }, "reads is 'replicas' or 'primary', not \"slaves\""],
    [{ zookeeper, redis, safeMode: 'yes' }, 'safeMode is true or false, not "yes"'],
    [{ zookeeper, redis, maxWait: 'soon' }, 'maxWait "soon" is not a duration'],
    [{ zookeeper, redis, commandTimeout: 0 }, 'commandTimeout is at least 1 ms, not 0'],
    [{ zookeeper, redis, onChange: true }, 'onChange is a function, not true'],
    [undefined, 'RedisFailover.connect takes options such as'],
  ])('%#: %j', async (options, message) => {
    await expect(RedisFailover.connect(options as never)).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining(message),
    });
  });
});
