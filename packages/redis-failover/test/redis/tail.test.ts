/**
 * The end of a stream of writes, asked for by PSYNC from a server that the test plays. The real
 * answers of Redis: `test-integration/data.test.ts`.
 */
import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { NodeCommandError, NodeUnreachableError } from '../../src/redis/errors.ts';
import type { NodeConnectionOptions } from '../../src/redis/node-connection.ts';
import { decodeCommands, readTail } from '../../src/redis/tail.ts';
import { certificate } from '../support/certificate.ts';
import { watch } from '../support/hand-clock.ts';
import { encoded, eventually, PlayedRedis, someTurns } from '../support/played-redis.ts';

const stream = 'f'.repeat(40);
const commands = [
  ['SET', 'k', 'a\r\nb'],
  ['DEL', Buffer.from([0xff, 0, 0x0d, 0x0a, 0x80])],
  ['SET', 'empty', ''],
];
const bytes = encoded(...commands);
const asked = { stream, after: 1_000, upTo: 1_000 + bytes.length };
const decoded = commands.map((parts) => parts.map((part) => Buffer.from(part as string)));

function tail(redis: PlayedRedis, more: Partial<NodeConnectionOptions> = {}, question = asked) {
  return readTail(redis.address, question, { timeoutMs: 1_000, ...more });
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});
afterEach(() => {
  // Whatever the outcome, no timer is left.
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

describe('a tail is asked for as a replica does', () => {
  test('under a name, from the byte after the last that is not wanted', async () => {
    const redis = await PlayedRedis.start();
    const answer = tail(redis);
    const { socket } = await redis.command(2);
    socket.write(Buffer.concat([Buffer.from('+CONTINUE\r\n'), bytes]));
    expect(await answer).toEqual(decoded);
    expect(redis.words).toEqual([
      'CLIENT SETNAME incumbent-redis-failover',
      `PSYNC ${stream} 1001`,
    ]);
    await eventually(() => redis.ended === 1);
  });

  test.each([
    [{ password: 'p' }, 'AUTH p'],
    [{ username: 'u', password: 'p' }, 'AUTH u p'],
    [{ username: 'ü', password: 'pä' }, `AUTH ${latin1('ü')} ${latin1('pä')}`],
  ])('logged in with %j', async (access, expected) => {
    const redis = await PlayedRedis.start();
    const answer = tail(redis, { ...access, name: 'me' });
    const { socket } = await redis.command(3);
    socket.write(Buffer.concat([Buffer.from('+CONTINUE\r\n'), bytes]));
    await answer;
    expect(redis.words.slice(0, 2)).toEqual([expected, 'CLIENT SETNAME me']);
  });

  test('one command after the other: Redis refuses PSYNC while it has an answer to send', async () => {
    const redis = await PlayedRedis.start();
    redis.answer = () => undefined;
    const answer = tail(redis, { password: 'p' });
    for (const count of [1, 2, 3]) {
      const { socket } = await redis.command(count);
      await someTurns();
      expect(redis.arrived).toHaveLength(count);
      socket.write(count === 3 ? '+CONTINUE\r\n' : '+OK\r\n');
    }
    await someTurns();
    expect(redis.arrived).toHaveLength(3);
    redis.sockets[0]?.write(bytes);
    await answer;
  });

  test('over TLS, by whose rules the certificate is judged', async () => {
    const redis = await PlayedRedis.start(certificate);
    const answer = tail(redis, { tls: { rejectUnauthorized: false } });
    const { socket } = await redis.command(2);
    socket.write(Buffer.concat([Buffer.from('+CONTINUE\r\n'), bytes]));
    expect(await answer).toEqual(decoded);
    await expect(tail(redis, { tls: true })).rejects.toMatchObject({
      code: 'NODE_UNREACHABLE',
      message: expect.stringMatching(/has no connection with us: .*certificate/),
    });
  });

  test('over TLS to its own address, whatever else the options say', async () => {
    const redis = await PlayedRedis.start(certificate);
    const odd = { rejectUnauthorized: false, host: 'nowhere.invalid', port: 1 };
    const answer = tail(redis, { tls: odd });
    const { socket } = await redis.command(2);
    socket.write(Buffer.concat([Buffer.from('+CONTINUE\r\n'), bytes]));
    expect(await answer).toEqual(decoded);
  });

  test('without TLS where it is turned off', async () => {
    const redis = await PlayedRedis.start();
    const answer = tail(redis, { tls: false });
    const { socket } = await redis.command(2);
    socket.write(Buffer.concat([Buffer.from('+CONTINUE\r\n'), bytes]));
    expect(await answer).toEqual(decoded);
  });
});

describe('a tail is read', () => {
  test('wherever it is split', async () => {
    const redis = await PlayedRedis.start();
    const all = Buffer.concat([Buffer.from('+CONTINUE abc\r\n'), bytes]);
    for (let at = 0; at <= all.length; at += 1) {
      const { length } = redis.arrived;
      const answer = tail(redis);
      const { socket } = await redis.command(length + 2);
      socket.write(all.subarray(0, at));
      await someTurns();
      socket.write(all.subarray(at));
      expect(await answer).toEqual(decoded);
    }
  });

  test('byte by byte, also the answers before it', async () => {
    const redis = await PlayedRedis.start();
    redis.answer = () => undefined;
    const answer = tail(redis, { password: 'p' });
    for (const [count, text] of [
      [1, '+OK\r\n'],
      [2, '+OK\r\n'],
      [3, '+CONTINUE\r\n'],
    ] as const) {
      const { socket } = await redis.command(count);
      for (const byte of Buffer.from(text)) {
        socket.write(Buffer.of(byte));
        await someTurns();
      }
    }
    for (const byte of bytes) {
      redis.sockets[0]?.write(Buffer.of(byte));
      await someTurns();
    }
    expect(await answer).toEqual(decoded);
  });

  test('up to where it is wanted, and not before all of that is there', async () => {
    const redis = await PlayedRedis.start();
    const answer = watch(tail(redis));
    const { socket } = await redis.command(2);
    socket.write(Buffer.concat([Buffer.from('+CONTINUE\r\n'), bytes.subarray(0, -1)]));
    await someTurns();
    expect(answer.now.state).toBe('pending');
    socket.write(Buffer.concat([bytes.subarray(-1), encoded(['ping'], ['SET', 'later', '1'])]));
    await eventually(() => answer.now.state !== 'pending');
    expect(answer.now).toEqual({ state: 'resolved', value: decoded });
  });

  test('of nothing is nothing', async () => {
    const redis = await PlayedRedis.start();
    const answer = tail(redis, {}, { stream, after: 5, upTo: 5 });
    const { socket } = await redis.command(2);
    socket.write('+CONTINUE\r\n');
    expect(await answer).toEqual([]);
  });

  test('is refused where it ends in the middle of a command', async () => {
    const redis = await PlayedRedis.start();
    const answer = tail(redis, {}, { ...asked, upTo: asked.upTo - 1 });
    answer.catch(() => {});
    const { socket } = await redis.command(2);
    socket.write(Buffer.concat([Buffer.from('+CONTINUE\r\n'), bytes]));
    await expect(answer).rejects.toMatchObject({
      code: 'NODE_COMMAND',
      message: expect.stringContaining('answers PSYNC: the stream ends in the middle of a command'),
    });
  });
});

describe('instead of a tail', () => {
  test.each([
    ['AUTH', '-WRONGPASS invalid username-password pair', 0],
    ['CLIENT', "-ERR unknown command 'CLIENT'", 1],
    ['PSYNC', '+FULLRESYNC abc 1', 2],
    ['PSYNC', '+OK', 2],
    ['PSYNC', '', 2],
    ['PSYNC', '-NOMASTERLINK Can’t SYNC', 2],
  ])('%s is answered with %s: that is told', async (command, said, at) => {
    const redis = await PlayedRedis.start();
    redis.answer = () => (redis.arrived.length === at + 1 ? `${said}\r\n` : '+OK\r\n');
    const error = await tail(redis, { password: 'p' }).catch((each: unknown) => each);
    expect(error).toBeInstanceOf(NodeCommandError);
    expect(error).toMatchObject({
      ...{ reply: said.slice(1), address: redis.address },
      message: `the Redis node ${redis.address} answers ${command}: ${said.slice(1)}`,
    });
    await eventually(() => redis.ended === 1);
    expect(redis.arrived).toHaveLength(at + 1);
  });

  test('the node ends the connection', async () => {
    const redis = await PlayedRedis.start();
    const answer = tail(redis);
    answer.catch(() => {});
    (await redis.command(2)).socket.end('+CONTINUE\r\n');
    await expect(answer).rejects.toMatchObject({
      code: 'NODE_UNREACHABLE',
      message: `the Redis node ${redis.address} has ended the connection`,
    });
  });

  test('nothing listens', async () => {
    const redis = await PlayedRedis.start();
    const { address } = redis;
    await redis.stop();
    const error = await readTail(address, asked, { timeoutMs: 1_000 }).catch((each) => each);
    expect(error).toBeInstanceOf(NodeUnreachableError);
    expect(error.message).toContain('has no connection with us: connect ECONNREFUSED');
  });

  test('nothing is said in time: the connection is ended', async () => {
    const redis = await PlayedRedis.start();
    const answer = watch(tail(redis));
    await redis.command(2);
    await vi.advanceTimersByTimeAsync(999);
    await someTurns();
    expect(answer.now.state).toBe('pending');
    await vi.advanceTimersByTimeAsync(1);
    await someTurns();
    expect(answer.now).toMatchObject({
      error: { message: `the Redis node ${redis.address} has not answered PSYNC in time` },
    });
    await eventually(() => redis.ended === 1);
  });

  test('it is given up: the connection is ended, and nothing listens to the signal any more', async () => {
    const redis = await PlayedRedis.start();
    const controller = new AbortController();
    const { signal } = controller;
    const answer = watch(tail(redis, { signal }));
    await redis.command(2);
    const reason = new Error('the term is over');
    controller.abort(reason);
    await eventually(() => redis.ended === 1);
    expect(answer.now).toEqual({ state: 'rejected', error: reason });
    expect(getEventListeners(signal, 'abort')).toEqual([]);

    const other = new AbortController();
    const second = tail(redis, { signal: other.signal });
    (await redis.command(4)).socket.write(Buffer.concat([Buffer.from('+CONTINUE\r\n'), bytes]));
    await second;
    expect(getEventListeners(other.signal, 'abort')).toEqual([]);
  });

  test('it was given up before: nothing is sent', async () => {
    const redis = await PlayedRedis.start();
    const reason = new Error('the term is over');
    const answer = watch(tail(redis, { signal: AbortSignal.abort(reason) }));
    await someTurns();
    expect(answer.now).toEqual({ state: 'rejected', error: reason });
    expect(redis.sockets).toEqual([]);
  });
});

describe('a stream is decoded', () => {
  test.each([
    ['commands with any bytes', bytes, decoded],
    ['nothing', Buffer.alloc(0), []],
    ['a command without words', Buffer.from('*0\r\n'), [[]]],
    [
      'a count of nine digits',
      Buffer.from('*000000001\r\n$4\r\nping\r\n'),
      [[Buffer.from('ping')]],
    ],
  ])('%s', (_, text, expected) => {
    expect(decodeCommands(text)).toEqual(expected);
  });

  test.each([
    ['an inline command', 'PING\r\n'],
    ['a count without an end', '*1'],
    ['a count that is none', '*x\r\n'],
    ['a negative count', '*-1\r\n'],
    ['a count with something before it', '1*1\r\n$4\r\nping\r\n'],
    ['a count with something behind it', '*1 \r\n$4\r\nping\r\n'],
    ['a count of ten digits', '*0000000001\r\n$4\r\nping\r\n'],
    ['a word that is no bulk string', '*1\r\n+OK\r\n'],
    ['fewer words than were announced', '*2\r\n$4\r\nping\r\n'],
    ['a word that is shorter than announced', '*1\r\n$5\r\nping\r\n'],
    ['a word that is longer than announced', '*1\r\n$3\r\nping\r\n'],
    ['a word without its end', '*1\r\n$4\r\nping'],
    ['half of its end', '*1\r\n$4\r\nping\r'],
    ['something else in place of its end', '*1\r\n$4\r\nping--'],
  ])('but not %s', (_, text) => {
    expect(() => decodeCommands(Buffer.from(text))).toThrow(/^the stream (is not one of|ends in)/);
  });

  test('an incomplete word is distinguished from bytes that are no command', () => {
    expect(() => decodeCommands(Buffer.from('*1\r\n$4\r\npin'))).toThrow(
      'the stream ends in the middle of a command',
    );
    expect(() => decodeCommands(Buffer.from('+OK\r\n'))).toThrow(
      'the stream is not one of commands',
    );
  });
});

function latin1(text: string): string {
  return Buffer.from(text).toString('latin1');
}
