/**
 * One connection of a manager, through the real client library, to a server that the test plays.
 * Real servers: `test-integration/nodes.test.ts`.
 */
import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import {
  NodeCommandError,
  NodeRefusedError,
  NodeUnreachableError,
} from '../../src/redis/errors.ts';
import type { NodeConnectionOptions } from '../../src/redis/node-connection.ts';
import { NodeConnection } from '../../src/redis/node-connection.ts';
import { certificate } from '../support/certificate.ts';
import { watch } from '../support/hand-clock.ts';
import { eventually, PlayedRedis, someTurns } from '../support/played-redis.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});
afterEach(() => {
  // Whatever the outcome, no timer is left.
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

async function open(redis: PlayedRedis, options: Partial<NodeConnectionOptions> = {}) {
  const connection = await NodeConnection.open(redis.address, { timeoutMs: 1_000, ...options });
  onTestFinished(() => connection.close());
  return connection;
}

async function opened(options: Partial<NodeConnectionOptions> = {}) {
  const redis = await PlayedRedis.start();
  const connection = await open(redis, options);
  const socket = redis.sockets[0] as NonNullable<(typeof redis.sockets)[0]>;
  redis.arrived.length = 0;
  return { redis, connection, socket };
}

/** A command that has arrived, and is not answered. */
async function waiting(
  { redis, connection }: Awaited<ReturnType<typeof opened>>,
  parts: readonly string[],
  options?: Parameters<NodeConnection['command']>[1],
) {
  const call = watch(connection.command(parts, options));
  await redis.command(redis.arrived.length + 1);
  return call;
}

async function settled(call: ReturnType<typeof watch>) {
  await eventually(() => call.now.state !== 'pending');
  return call.now;
}

async function passed(ms: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms);
  await someTurns();
}

describe('a connection is opened', () => {
  test.each([
    [{}, ['CLIENT SETNAME incumbent-redis-failover']],
    [{ name: 'me' }, ['CLIENT SETNAME me']],
    [{ password: 'p' }, ['AUTH p', 'CLIENT SETNAME incumbent-redis-failover']],
    [{ username: 'u', password: 'p' }, ['AUTH u p', 'CLIENT SETNAME incumbent-redis-failover']],
  ])('with %j: it logs in and names itself, and sends nothing else', async (options, expected) => {
    const redis = await PlayedRedis.start();
    const connection = await open(redis, options);
    await someTurns();
    const sent = redis.words.map((words) => words.replace('default ', ''));
    expect(sent).toEqual(expected);
    expect(connection).toMatchObject({ isOpen: true, address: redis.address });
    expect(connection.closed.aborted).toBe(false);
  });

  test('over TLS, by whose rules the certificate is judged', async () => {
    const redis = await PlayedRedis.start(certificate);
    expect((await open(redis, { tls: { rejectUnauthorized: false } })).isOpen).toBe(true);
    await expect(open(redis, { tls: true })).rejects.toMatchObject({ code: 'NODE_UNREACHABLE' });
    const plain = await PlayedRedis.start();
    expect((await open(plain, { tls: false })).isOpen).toBe(true);
  });

  test('not to a malformed address', async () => {
    const opening = NodeConnection.open('nowhere', { timeoutMs: 1_000 });
    await expect(opening).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining('the address of a Redis node'),
    });
  });

  test('not where nothing listens', async () => {
    const redis = await PlayedRedis.start();
    const { address } = redis;
    await redis.stop();
    const error = await NodeConnection.open(address, { timeoutMs: 1_000 }).catch((each) => each);
    expect(error).toBeInstanceOf(NodeUnreachableError);
    expect(error.message).toContain('has no connection with us: connect ECONNREFUSED');
    expect(error.cause).toMatchObject({ code: 'ECONNREFUSED' });
  });

  test.each([
    ['-WRONGPASS invalid username-password pair', NodeRefusedError, 'NODE_REFUSED'],
    ['-BUSY Redis is busy', NodeCommandError, 'NODE_COMMAND'],
  ])('not where the login is answered with %s', async (said, type, code) => {
    const redis = await PlayedRedis.start();
    redis.answer = () => `${said}\r\n`;
    const error = await open(redis, { password: 'p' }).catch((each: unknown) => each);
    expect(error).toBeInstanceOf(type);
    expect(error).toMatchObject({ code, message: expect.stringContaining(said.slice(1)) });
    await eventually(() => redis.ended === 1);
  });

  test('within its time, or not at all: the socket is ended', async () => {
    const redis = await PlayedRedis.start();
    redis.answer = () => undefined;
    const opening = watch(open(redis));
    await redis.command(1);
    await passed(999);
    expect(opening.now.state).toBe('pending');
    await passed(1);
    expect(await settled(opening)).toMatchObject({
      error: {
        code: 'NODE_UNREACHABLE',
        message: `the Redis node ${redis.address} has not answered the connection within 1000 ms`,
      },
    });
    await eventually(() => redis.ended === 1);
  });

  test('not when its signal aborts before, or meanwhile', async () => {
    const redis = await PlayedRedis.start();
    redis.answer = () => undefined;
    const reason = new Error('enough');
    await expect(open(redis, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    await someTurns();
    expect(redis.sockets).toEqual([]);
    const controller = new AbortController();
    const opening = watch(open(redis, { signal: controller.signal }));
    await redis.command(1);
    controller.abort(reason);
    expect(await settled(opening)).toEqual({ state: 'rejected', error: reason });
    await eventually(() => redis.ended === 1);
    expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
  });

  test('and is closed when that signal aborts later; a closed one does not listen to it', async () => {
    const controller = new AbortController();
    const { redis, connection } = await opened({ signal: controller.signal });
    expect(getEventListeners(controller.signal, 'abort')).toHaveLength(1);
    controller.abort();
    expect(connection.isOpen).toBe(false);
    await eventually(() => redis.ended === 1);
    const other = new AbortController();
    const second = await opened({ signal: other.signal });
    second.connection.close();
    expect(getEventListeners(other.signal, 'abort')).toEqual([]);
  });
});

describe('a command', () => {
  test('resolves with what the node answers', async () => {
    const stage = await opened();
    const call = await waiting(stage, ['GET', 'k']);
    expect(stage.redis.words).toEqual(['GET k']);
    stage.socket.write('$1\r\nv\r\n');
    expect(await settled(call)).toEqual({ state: 'resolved', value: 'v' });
    expect(stage.connection.isOpen).toBe(true);
  });

  test.each([
    [['get', 'secret'], 'GET'],
    [['CONFIG', 'get', 'secret'], 'CONFIG GET'],
    [['client', 'kill', 'secret'], 'CLIENT KILL'],
    [['ACL', 'SETUSER', 'secret'], 'ACL'],
    [['config'], 'CONFIG '],
  ])('%j that is answered with an error is told without its arguments', async (parts, name) => {
    const stage = await opened();
    const call = await waiting(stage, parts);
    stage.socket.write('-ERR no\r\n');
    const { address } = stage.redis;
    expect(await settled(call)).toMatchObject({
      error: {
        ...{ code: 'NODE_COMMAND', reply: 'ERR no' },
        message: `the Redis node ${address} answers ${name}: ERR no`,
      },
    });
    expect(stage.connection.isOpen).toBe(true);
  });

  test('that the node will not have from us is a refusal', async () => {
    const stage = await opened();
    const call = await waiting(stage, ['INFO']);
    stage.socket.write('-NOAUTH Authentication required.\r\n');
    expect(await settled(call)).toMatchObject({ error: { code: 'NODE_REFUSED' } });
  });

  test('without an answer in its time ends the connection, and with it the others', async () => {
    const stage = await opened();
    const first = await waiting(stage, ['GET', 'k']);
    const second = await waiting(stage, ['SET', 'k', 'v'], { timeoutMs: 400 });
    await passed(399);
    expect(second.now.state).toBe('pending');
    await passed(1);
    const told = {
      code: 'NODE_UNREACHABLE',
      message: `the Redis node ${stage.redis.address} has not answered SET within 400 ms`,
    };
    expect(await settled(second)).toMatchObject({ error: told });
    expect(await settled(first)).toMatchObject({ error: told });
    expect(stage.connection.isOpen).toBe(false);
    expect(stage.connection.closed.aborted).toBe(true);
    await eventually(() => stage.redis.ended === 1);
    await expect(stage.connection.command(['PING'])).rejects.toMatchObject(told);
  });

  test('has the time of its connection, where it has none of its own', async () => {
    const stage = await opened({ timeoutMs: 700 });
    const call = await waiting(stage, ['PING']);
    await passed(699);
    expect(call.now.state).toBe('pending');
    await passed(1);
    expect(await settled(call)).toMatchObject({
      error: { message: expect.stringContaining('within 700 ms') },
    });
  });

  test('rejects with the reason of its signal, which closes the connection', async () => {
    const stage = await opened();
    const controller = new AbortController();
    const other = await waiting(stage, ['GET', 'k']);
    const call = await waiting(stage, ['PING'], { signal: controller.signal });
    const reason = new NodeUnreachableError('a:1', 'is not what I want');
    controller.abort(reason);
    expect(await settled(call)).toEqual({ state: 'rejected', error: reason });
    expect(await settled(other)).toEqual({ state: 'rejected', error: reason });
    expect(stage.connection.isOpen).toBe(false);
    expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
  });

  test('whose signal has aborted before is not sent, and nothing is closed', async () => {
    const { redis, connection } = await opened();
    const reason = new Error('enough');
    const call = connection.command(['PING'], { signal: AbortSignal.abort(reason) });
    await expect(call).rejects.toBe(reason);
    await someTurns();
    expect([redis.words, connection.isOpen]).toEqual([[], true]);
  });

  test('leaves nothing on its signal once it is answered', async () => {
    const stage = await opened();
    const controller = new AbortController();
    const call = await waiting(stage, ['PING'], { signal: controller.signal });
    stage.socket.write('+PONG\r\n');
    expect(await settled(call)).toEqual({ state: 'resolved', value: 'PONG' });
    controller.abort();
    expect(stage.connection.isOpen).toBe(true);
  });

  test('rejects when the node ends the connection', async () => {
    const stage = await opened();
    const call = await waiting(stage, ['PING']);
    stage.socket.destroy();
    expect(await settled(call)).toMatchObject({
      error: {
        code: 'NODE_UNREACHABLE',
        message: `the Redis node ${stage.redis.address} has no connection with us: Socket closed unexpectedly`,
      },
    });
    expect(stage.connection.closed.aborted).toBe(true);
    await expect(stage.connection.command(['PING'])).rejects.toThrow('Socket closed unexpectedly');
    // Nothing connects again.
    await someTurns();
    expect(stage.redis.sockets).toHaveLength(1);
  });

  test('rejects when the connection is closed here, by each way', async () => {
    for (const close of [
      async (each: NodeConnection) => each.close(),
      (each: NodeConnection) => each[Symbol.asyncDispose](),
    ]) {
      const stage = await opened();
      const call = await waiting(stage, ['PING']);
      await close(stage.connection);
      const told = {
        code: 'NODE_UNREACHABLE',
        message: `the Redis node ${stage.redis.address} has no connection with us: it was closed here`,
      };
      expect(await settled(call)).toMatchObject({ error: told });
      await expect(stage.connection.command(['PING'])).rejects.toMatchObject(told);
      stage.connection.close();
    }
  });
});

test('a listener that hears of the end of a connection finds it closed', async () => {
  const { connection } = await opened();
  const seen: boolean[] = [];
  connection.closed.addEventListener('abort', () => seen.push(connection.isOpen));
  connection.close();
  expect(seen).toEqual([false]);
});

test('what a node says of its replication is read over the connection', async () => {
  const { redis, connection } = await opened();
  redis.answer = ([word, , name]) => {
    const text = word === 'INFO' ? 'redis_mode:standalone\r\nrole:master\r\nrun_id:r\r\n' : '';
    return word === 'INFO' ? `$${text.length}\r\n${text}\r\n` : `*2\r\n+${name}\r\n+3\r\n`;
  };
  expect(await connection.replication()).toMatchObject({
    ...{ role: 'primary', runId: 'r', minReplicasToWrite: 3 },
  });
});
