/**
 * The calls to the drivers, on stand-ins that record them. How the real libraries take them:
 * `drivers.test.ts` and `test-integration/client-api.test.ts`.
 */
import { EventEmitter } from 'node:events';
import { describe, expect, test, vi } from 'vitest';
import type { DriverConnection } from '../../src/client/driver.ts';
import type { IoredisClient } from '../../src/client/ioredis.ts';
import { ioredis } from '../../src/client/ioredis.ts';
import type { NodeRedisClient } from '../../src/client/node-redis.ts';
import { nodeRedis } from '../../src/client/node-redis.ts';
import { ReplyError } from '../support/fake-driver.ts';

const address = { host: '10.0.0.7', port: 6380 };
const invalid = (message: string) =>
  expect.objectContaining({ code: 'INVALID_OPTION', message: expect.stringContaining(message) });

class Io extends EventEmitter implements IoredisClient {
  status = 'wait';
  readonly options: Readonly<Record<string, unknown>>;
  readonly disconnect = vi.fn();
  readonly call = vi.fn(async (...words: string[]): Promise<unknown> => words);
  connect: () => Promise<void> = async () => {
    this.status = 'ready';
  };

  constructor(options: Readonly<Record<string, unknown>>) {
    super();
    this.options = options;
  }
}

function openIo(): { connection: DriverConnection<Io>; client: Io } {
  const connection = ioredis(Io).open(address);
  return { connection, client: connection.client };
}

describe('ioredis', () => {
  test('never reconnects, never keeps a command back, never sends one again, whatever is said', () => {
    const driver = ioredis(Io, { password: 'p', enableReadyCheck: true, autoResubscribe: true });
    expect(driver.name).toBe('ioredis');
    const { options } = driver.open(address).client;
    expect(options).toMatchObject({
      ...{ ...address, password: 'p', lazyConnect: true, enableOfflineQueue: false },
      ...{ reconnectOnError: null, autoResendUnfulfilledCommands: false, autoResubscribe: false },
      // A node that loads its data is not waited for: another node may be the primary by then.
      ...{ maxRetriesPerRequest: 0, enableReadyCheck: false },
    });
    expect((options['retryStrategy'] as () => unknown)()).toBe(null);
    expect(driver.model.options).not.toHaveProperty('host');
    expect(driver.open(address).client).not.toBe(driver.model);
  });

  test('knows the scripts of the caller, each also with buffers', () => {
    const scripts = { first: {}, second: {} };
    expect([...ioredis(Io, { scripts }).own]).toEqual([
      ...['first', 'firstBuffer', 'second', 'secondBuffer'],
    ]);
    expect([...ioredis(Io).own]).toEqual([]);
  });

  test('takes a class of clients of one server', () => {
    class Cluster extends Io {
      readonly isCluster = true;
    }
    class Other extends EventEmitter {}
    expect(() => ioredis(Cluster)).toThrow(invalid('not Cluster'));
    expect(() => ioredis(Other as never)).toThrow(invalid('a client of one server'));
    expect(() => ioredis('Redis' as never)).toThrow(
      invalid('takes the class Redis of the package ioredis, not "Redis"'),
    );
    expect(() => ioredis(Io, 'redis://h' as never)).toThrow(
      invalid('ioredis takes an object of options, not "redis://h"'),
    );
  });

  test.each([
    ...['host', 'port', 'path', 'sentinels', 'Connector', 'natMap', 'retryStrategy'],
    ...['reconnectOnError', 'autoResendUnfulfilledCommands', 'maxRetriesPerRequest'],
    ...['enableOfflineQueue', 'lazyConnect', 'commandTimeout', 'readOnly', 'monitor'],
  ])('refuses %s', (name) => {
    expect(() => ioredis(Io, { [name]: 'odd' })).toThrow(invalid(`ioredis cannot take ${name}: `));
    expect(() => ioredis(Io, { [name]: undefined })).not.toThrow();
  });

  test.each<object>([
    ...[{ retryStrategy: null }, { reconnectOnError: null }, { maxRetriesPerRequest: 0 }],
    ...[{ autoResendUnfulfilledCommands: false }, { maxRetriesPerRequest: null }],
    ...[{ enableOfflineQueue: false }, { lazyConnect: true }, { readOnly: false }],
    ...[{ monitor: false }, { toString: 'a name of every object' }],
  ])('takes %j, which changes nothing', (options) => {
    expect(() => ioredis(Io, options)).not.toThrow();
  });

  test('is open when it is ready, until it is closed here or there', async () => {
    const { connection, client } = openIo();
    expect(connection.isOpen).toBe(false);
    await connection.connect();
    expect(connection.isOpen).toBe(true);
    client.status = 'end';
    expect(connection.isOpen).toBe(false);
    client.status = 'ready';
    connection.close();
    connection.close();
    expect(connection.isOpen).toBe(false);
    expect(client.disconnect).toHaveBeenCalledTimes(1);
  });

  test('that cannot connect says what was told before: `connect` itself says less', async () => {
    for (const said of [new ReplyError('WRONGPASS'), undefined]) {
      const { connection, client } = openIo();
      const closed = new Error('Connection is closed.');
      client.connect = async () => {
        if (said !== undefined) client.emit('error', said);
        throw closed;
      };
      await expect(connection.connect()).rejects.toBe(said ?? closed);
    }
  });

  test('that goes on after a refusal of its handshake has not connected: it is another database', async () => {
    const { connection, client } = openIo();
    const said = new ReplyError('ERR DB index is out of range');
    client.connect = async () => {
      client.emit('error', said);
    };
    await expect(connection.connect()).rejects.toBe(said);
  });

  test('waits until it is connected', async () => {
    const { connection, client } = openIo();
    let arrive = () => {};
    client.connect = () =>
      new Promise((resolve) => {
        arrive = resolve;
      });
    const told = vi.fn();
    const connecting = connection.connect().then(told);
    await Promise.resolve();
    expect(told).not.toHaveBeenCalled();
    arrive();
    await connecting;
    expect(told).toHaveBeenCalled();
  });

  test('sends a command word by word', async () => {
    const { connection, client } = openIo();
    expect(await connection.command(['INFO', 'server'])).toEqual(['INFO', 'server']);
    await connection.command([]);
    expect(client.call).toHaveBeenLastCalledWith('');
  });

  test('tells of its end, and of nothing else', () => {
    const { connection, client } = openIo();
    const told = vi.fn();
    connection.onClose(told);
    client.emit('error', new Error('no end'));
    expect(told).not.toHaveBeenCalled();
    client.emit('close');
    expect(told).toHaveBeenCalledTimes(1);
    client.emit('end');
    expect(told).toHaveBeenCalledTimes(2);
  });
});

class Node extends EventEmitter implements NodeRedisClient {
  isReady = false;
  destroy: undefined | (() => void);
  disconnect: undefined | (() => Promise<void>);
  readonly options: Readonly<Record<string, unknown>>;
  readonly sendCommand = vi.fn(async (words: string[]): Promise<unknown> => words);

  constructor(options: Readonly<Record<string, unknown>>) {
    super();
    this.options = options;
    this.destroy = vi.fn();
  }

  async connect(): Promise<void> {
    this.isReady = true;
  }

  duplicate(options: Readonly<Record<string, unknown>>): Node {
    return new Node({ ...this.options, ...options });
  }
}

const createNode = (options: Readonly<Record<string, unknown>>) => new Node(options);

function openNode(): { connection: DriverConnection<Node>; client: Node } {
  const connection = nodeRedis(createNode).open(address);
  return { connection, client: connection.client };
}

describe('nodeRedis', () => {
  test('never reconnects and never keeps a command back, whatever is said', () => {
    const driver = nodeRedis(createNode, { password: 'p', socket: { tls: true } });
    expect(driver.name).toBe('node-redis');
    const forced = { password: 'p', disableOfflineQueue: true, maintNotifications: 'disabled' };
    expect(driver.model.options).toEqual({
      ...{ ...forced, socket: { tls: true, reconnectStrategy: false } },
    });
    expect(driver.open(address).client.options).toEqual({
      ...{ ...forced, socket: { tls: true, ...address, reconnectStrategy: false } },
    });
  });

  test('knows the scripts of the client', () => {
    const withScripts = (options: object) => new Node({ ...options, scripts: { mine: {} } });
    expect([...nodeRedis(withScripts).own]).toEqual(['mine']);
    expect([...nodeRedis(createNode).own]).toEqual([]);
    const withoutOptions = () => Object.assign(createNode({}), { options: undefined });
    expect([...nodeRedis(withoutOptions as never).own]).toEqual([]);
  });

  test('takes a function that makes clients of one server', () => {
    expect(() => nodeRedis('createClient' as never)).toThrow(
      invalid('takes createClient of the package redis, not "createClient"'),
    );
    for (const made of [undefined, {}, { duplicate: 1, isReady: true }, { duplicate() {} }]) {
      expect(() => nodeRedis((() => made) as never)).toThrow(invalid('a client of one server'));
    }
    expect(() => nodeRedis(createNode, 7 as never)).toThrow(
      invalid('nodeRedis takes an object of options, not 7'),
    );
    expect(() => nodeRedis(createNode, { socket: 7 })).toThrow(
      invalid('nodeRedis socket takes an object of options, not 7'),
    );
  });

  test.each([
    ...['url', 'disableOfflineQueue', 'legacyMode', 'readonly', 'clientSideCache'],
    ...['emitInvalidate', 'maintNotifications'],
  ])('refuses %s', (name) => {
    const refusal = invalid(`nodeRedis cannot take ${name}: `);
    expect(() => nodeRedis(createNode, { [name]: 'odd' })).toThrow(refusal);
  });

  test.each(['host', 'port', 'path', 'reconnectStrategy'])('refuses %s of a socket', (name) => {
    const refusal = invalid(`nodeRedis cannot take ${name}: `);
    expect(() => nodeRedis(createNode, { socket: { [name]: 'odd' } })).toThrow(refusal);
    expect(() => nodeRedis(createNode, { [name]: 'odd' })).not.toThrow();
  });

  test.each<object>([
    ...[{ disableOfflineQueue: true }, { legacyMode: false }, { readonly: false }],
    ...[{ emitInvalidate: false }, { maintNotifications: 'disabled' }, { url: undefined }],
    ...[{ socket: { reconnectStrategy: false } }, { socket: undefined }],
  ])('takes %j, which changes nothing', (options) => {
    expect(() => nodeRedis(createNode, options)).not.toThrow();
  });

  test('is open when it is ready, until it is closed here or there', async () => {
    const { connection, client } = openNode();
    expect(connection.isOpen).toBe(false);
    await connection.connect();
    expect(connection.isOpen).toBe(true);
    client.isReady = false;
    expect(connection.isOpen).toBe(false);
    client.isReady = true;
    connection.close();
    connection.close();
    expect(connection.isOpen).toBe(false);
    expect(client.destroy).toHaveBeenCalledTimes(1);
  });

  test('waits until it is connected, and says what the library says', async () => {
    const { connection, client } = openNode();
    const error = new Error('ECONNREFUSED');
    client.connect = () => Promise.reject(error);
    await expect(connection.connect()).rejects.toBe(error);
    const told = vi.fn();
    client.connect = () => new Promise(() => {});
    void connection.connect().then(told);
    for (let ticks = 0; ticks < 5; ticks += 1) await Promise.resolve();
    expect(told).not.toHaveBeenCalled();
  });

  test('sends a command as a list of its own', async () => {
    const { connection, client } = openNode();
    const words = ['INFO', 'server'];
    await connection.command(words);
    expect(client.sendCommand).toHaveBeenCalledWith(words);
    expect(client.sendCommand.mock.calls[0]?.[0]).not.toBe(words);
  });

  test('tells of an error and of its end; an error without a listener ends no process', () => {
    const { connection, client } = openNode();
    expect(() => client.emit('error', new Error('alone'))).not.toThrow();
    const told = vi.fn();
    connection.onClose(told);
    client.emit('error', new Error('told'));
    client.emit('end');
    expect(told).toHaveBeenCalledTimes(2);
  });

  test('a socket that comes up after it was closed is ended, too; another one is not', () => {
    const { connection, client } = openNode();
    client.emit('connect');
    expect(client.destroy).not.toHaveBeenCalled();
    connection.close();
    client.emit('connect');
    expect(client.destroy).toHaveBeenCalledTimes(2);
  });

  test('before version 5 it is ended by `disconnect`, and either may find it over', async () => {
    const old = openNode();
    old.client.destroy = undefined;
    const disconnect = vi.fn(async () => {
      throw new Error('The client is closed');
    });
    old.client.disconnect = disconnect;
    old.connection.close();
    expect(disconnect).toHaveBeenCalledTimes(1);
    const over = openNode();
    over.client.destroy = () => {
      throw new Error('The client is closed');
    };
    expect(() => over.connection.close()).not.toThrow();
    const neither = openNode();
    neither.client.destroy = undefined;
    expect(() => neither.connection.close()).not.toThrow();
  });
});
