/**
 * One connection to one node, on a driver and a clock that the test plays. The real drivers on real
 * servers: `test-integration/client.test.ts`.
 */
import { describe, expect, test, vi } from 'vitest';
import type { ConnectionOptions } from '../../src/client/connection.ts';
import { Connection } from '../../src/client/connection.ts';
import { NotSentError, WrongRoleError } from '../../src/client/errors.ts';
import { NodeRefusedError, NodeUnreachableError } from '../../src/redis/errors.ts';
import type { FakeClient, FakeConnection } from '../support/fake-driver.ts';
import { FakeDriver, ReplyError } from '../support/fake-driver.ts';
import { atRest, HandClock, watch } from '../support/hand-clock.ts';

const node = 'a:1';
const never = () => new Promise<never>(() => {});

class Stage {
  readonly clock = new HandClock(7_000);
  readonly driver = new FakeDriver();

  open(options: Partial<ConnectionOptions> = {}): Promise<Connection<FakeClient>> {
    return Connection.open(this.driver, node, {
      ...{ connectTimeoutMs: 2_000, commandTimeoutMs: 5_000, role: undefined },
      ...{ clock: this.clock, timers: this.clock, ...options },
    });
  }

  get made(): FakeConnection {
    return this.driver.at(node);
  }
}

describe('a connection is made', () => {
  test('to the host and port of the address, and its age counts from when it was there', async () => {
    const stage = new Stage();
    let arrive = () => {};
    stage.driver.connect = () =>
      new Promise((resolve) => {
        arrive = resolve;
      });
    const opening = stage.open();
    await stage.clock.pass(300);
    arrive();
    const connection = await opening;
    expect(connection.address).toBe(node);
    expect(connection.establishedMs).toBe(7_300);
    expect(connection.isOpen).toBe(true);
    expect(connection.client).toBe(stage.made.client);
    expect(stage.made.asked).toEqual([]);
    expect(stage.clock.timers).toBe(0);
  });

  test('within its time, or not at all: it is closed then', async () => {
    const stage = new Stage();
    stage.driver.connect = never;
    const opening = watch(stage.open());
    await stage.clock.pass(1_999);
    expect(opening.now.state).toBe('pending');
    await stage.clock.pass(1);
    expect(opening.now).toMatchObject({
      error: {
        code: 'NODE_UNREACHABLE',
        address: node,
        message: 'the Redis node a:1 did not answer within 2s',
      },
    });
    expect(stage.made.closes).toBe(1);
  });

  test('in that time ROLE is answered, too', async () => {
    const stage = new Stage();
    stage.driver.answer = never;
    const opening = watch(stage.open({ role: 'primary' }));
    await stage.clock.pass(2_000);
    expect(opening.now).toMatchObject({ error: { code: 'NODE_UNREACHABLE' } });
    expect(stage.made.closes).toBe(1);
  });

  test('no server listens: the message of the driver is kept, and its error', async () => {
    const stage = new Stage();
    const cause = new Error('connect ECONNREFUSED');
    stage.driver.connect = () => Promise.reject(cause);
    await expect(stage.open()).rejects.toMatchObject({
      code: 'NODE_UNREACHABLE',
      message: 'the Redis node a:1 cannot be reached: connect ECONNREFUSED',
      cause,
    });
    expect(stage.made.closes).toBe(1);
    expect(stage.clock.timers).toBe(0);
  });

  test('the login is refused: it is a refusal, with what to do', async () => {
    const stage = new Stage();
    stage.driver.connect = () => Promise.reject(new ReplyError('WRONGPASS invalid password'));
    const error = await stage.open().catch((each: unknown) => each);
    expect(error).toBeInstanceOf(NodeRefusedError);
    expect(error).toMatchObject({ message: expect.stringContaining('WRONGPASS invalid password') });
  });

  test('the login is answered with something else: the message says that it was the login', async () => {
    const stage = new Stage();
    stage.driver.connect = () => Promise.reject(new ReplyError('LOADING Redis is loading'));
    await expect(stage.open()).rejects.toMatchObject({
      code: 'NODE_COMMAND',
      message: 'the Redis node a:1 answers the login: LOADING Redis is loading',
    });
  });
});

describe('the role is verified', () => {
  test.each([
    ['master', 'primary'],
    ['slave', 'replica'],
  ] as const)('%s of ROLE is the %s', async (word, role) => {
    const stage = new Stage();
    stage.driver.roles.set(node, word);
    expect((await stage.open({ role })).isOpen).toBe(true);
    // A replica has no process on record, nor has a primary of Ruby managers.
    expect(stage.made.asked).toEqual([['ROLE']]);
    expect(stage.made.closes).toBe(0);
  });

  test.each([
    ['slave', 'primary', 'replica'],
    ['master', 'replica', 'primary'],
    ['sentinel', 'primary', 'sentinel'],
  ] as const)('%s where ZooKeeper says %s is refused', async (word, role, is) => {
    const stage = new Stage();
    stage.driver.roles.set(node, word);
    const error = await stage.open({ role }).catch((each: unknown) => each);
    expect(error).toBeInstanceOf(WrongRoleError);
    expect(error).toMatchObject({
      message: `ZooKeeper says that a:1 is a ${role}, and it says itself: ${is}`,
    });
    expect(stage.made.closes).toBe(1);
  });

  test('an answer that is no list is taken for the role itself', async () => {
    const stage = new Stage();
    stage.driver.answer = async () => 'master';
    expect((await stage.open({ role: 'primary' })).isOpen).toBe(true);
  });

  test('not at all where nothing is to be verified', async () => {
    const stage = new Stage();
    await stage.open({ role: undefined, runId: () => 'r1' });
    expect(stage.made.asked).toEqual([]);
  });

  test.each([
    ['ROLE', 'NOPERM this user has no permissions to run the role command', '+role'],
    ['INFO', 'NOPERM this user has no permissions to run the info command', '+info'],
  ])('a user without the right to %s is told which it is', async (word, said, right) => {
    const stage = new Stage();
    stage.driver.roles.set(node, 'master');
    const standard = stage.driver.answer;
    stage.driver.answer = async (connection, parts) => {
      if (parts[0] === word) throw new ReplyError(said);
      return standard(connection, parts);
    };
    await expect(stage.open({ role: 'primary', runId: () => 'r1' })).rejects.toMatchObject({
      code: 'NODE_REFUSED',
      message:
        `the Redis node a:1 refuses us: allow ${word} to this user (ACL SETUSER … ${right}), ` +
        `or set verifyRole: false (${said})`,
    });
  });

  test('another error that the node answers is told with the command', async () => {
    const stage = new Stage();
    stage.driver.answer = () => Promise.reject(new ReplyError('BUSY Redis is busy'));
    await expect(stage.open({ role: 'primary' })).rejects.toMatchObject({
      code: 'NODE_COMMAND',
      message: 'the Redis node a:1 answers ROLE: BUSY Redis is busy',
    });
  });

  test('an error that is no answer of the node is the end of the connection, even with the same words', async () => {
    const stage = new Stage();
    stage.driver.answer = () => Promise.reject(new Error('NOPERM says a library'));
    await expect(stage.open({ role: 'primary' })).rejects.toMatchObject({
      code: 'NODE_UNREACHABLE',
      message: 'the Redis node a:1 ended the connection: NOPERM says a library',
      cause: expect.any(Error),
    });
  });
});

describe('the process of the primary is verified', () => {
  function primary(runs: string): Stage {
    const stage = new Stage();
    stage.driver.roles.set(node, 'master');
    stage.driver.runIds.set(node, runs);
    return stage;
  }

  test('by INFO server: the one on record is taken', async () => {
    const stage = primary('r1');
    await stage.open({ role: 'primary', runId: () => 'r1' });
    expect(stage.made.asked).toEqual([['ROLE'], ['INFO', 'server']]);
  });

  test('another one is refused, and both are named', async () => {
    const stage = primary('r2');
    await expect(stage.open({ role: 'primary', runId: () => 'r1' })).rejects.toMatchObject({
      code: 'WRONG_ROLE',
      message:
        'a:1 was started anew, and no manager has said yet that it has all its data: it runs as r2, ' +
        'and ZooKeeper says r1',
    });
    expect(stage.made.closes).toBe(1);
  });

  test('against what stands on record when the node has answered, not before', async () => {
    const stage = primary('r2');
    let onRecord = 'r1';
    const standard = stage.driver.answer;
    stage.driver.answer = (...asked) => {
      onRecord = 'r2';
      return standard(...asked);
    };
    expect((await stage.open({ role: 'primary', runId: () => onRecord })).isOpen).toBe(true);
  });

  test('not once the record names none', async () => {
    const stage = primary('r2');
    let onRecord: string | undefined = 'r1';
    const standard = stage.driver.answer;
    stage.driver.answer = (...asked) => {
      onRecord = undefined;
      return standard(...asked);
    };
    expect((await stage.open({ role: 'primary', runId: () => onRecord })).isOpen).toBe(true);
  });

  test('not where the node does not say in which one it runs', async () => {
    const stage = primary('r2');
    stage.driver.answer = async (_, [word]) => (word === 'ROLE' ? ['master'] : undefined);
    expect((await stage.open({ role: 'primary', runId: () => 'r1' })).isOpen).toBe(true);
  });

  test('another one is taken where managers of the gem decide: they note none', async () => {
    const isGemLeading = vi.fn(async () => true);
    expect(
      (await primary('r2').open({ role: 'primary', runId: () => 'r1', isGemLeading })).isOpen,
    ).toBe(true);
    const byOurs = primary('r2').open({
      ...{ role: 'primary', runId: () => 'r1' },
      isGemLeading: async () => false,
    });
    await expect(byOurs).rejects.toMatchObject({ code: 'WRONG_ROLE' });
    isGemLeading.mockClear();
    await primary('r1').open({ role: 'primary', runId: () => 'r1', isGemLeading });
    expect(isGemLeading).not.toHaveBeenCalled();
  });
});

describe('a command', () => {
  async function opened() {
    const stage = new Stage();
    const connection = await stage.open();
    return { ...{ stage, connection, clock: stage.clock }, made: stage.made };
  }

  test('resolves with what the driver gives, and leaves no timer behind', async () => {
    const { connection, made, clock } = await opened();
    const call = watch(connection.run((client) => client.get('k')));
    expect(made.client.last.words).toEqual(['get', 'k']);
    await atRest();
    expect(call.now.state).toBe('pending');
    made.client.last.reply('v');
    await atRest();
    expect(call.now).toEqual({ state: 'resolved', value: 'v' });
    expect(clock.timers).toBe(0);
    expect(connection.isOpen).toBe(true);
  });

  test('rejects with what the driver says, and the connection stays', async () => {
    const { connection, made, clock } = await opened();
    const error = new ReplyError('WRONGTYPE');
    const call = watch(connection.run((client) => client.get('k')));
    made.client.last.fail(error);
    await atRest();
    expect(call.now).toEqual({ state: 'rejected', error });
    expect(clock.timers).toBe(0);
    expect(connection.isOpen).toBe(true);
  });

  test('rejects with what the driver throws at once', async () => {
    const { connection } = await opened();
    const error = new TypeError('not a string');
    const call = connection.run(() => {
      throw error;
    });
    await expect(call).rejects.toBe(error);
  });

  test('is not sent on a connection that is closed, from whichever side', async () => {
    const here = await opened();
    here.connection.close();
    const there = await opened();
    there.made.connected = false;
    for (const { connection } of [here, there]) {
      expect(connection.isOpen).toBe(false);
      const send = vi.fn();
      const error = await connection.run(send).catch((each: unknown) => each);
      expect(error).toBeInstanceOf(NotSentError);
      expect(error).toMatchObject({ message: 'the connection to a:1 is closed' });
      expect(send).not.toHaveBeenCalled();
    }
  });

  test('is not sent on one that was closed here, whatever its driver says', async () => {
    const { connection, made } = await opened();
    connection.close();
    Object.defineProperty(made, 'isOpen', { value: true });
    await expect(connection.run((client) => client.get('k'))).rejects.toThrow('is closed');
  });

  test('that is not answered in its time ends the connection, and with it what else was sent', async () => {
    const { connection, made, clock } = await opened();
    const first = watch(connection.run((client) => client.get('first')));
    await clock.pass(1_000);
    const second = watch(connection.run((client) => client.get('second')));
    await clock.pass(3_999);
    expect([first.now.state, made.closes]).toEqual(['pending', 0]);
    await clock.pass(1);
    const told = { message: 'the Redis node a:1 did not answer within 5s' };
    expect(first.now).toMatchObject({ error: told });
    expect(second.now).toMatchObject({ error: told });
    expect(made.closes).toBe(1);
    expect(clock.timers).toBe(0);
  });

  test('rejects when the node ends the connection: its outcome is unknown', async () => {
    const { connection, made } = await opened();
    const call = watch(connection.run((client) => client.set('k', 'v')));
    made.breakOff();
    await atRest();
    expect(call.now).toMatchObject({
      error: { message: 'the Redis node a:1 has ended the connection' },
    });
    expect(call.now).toMatchObject({ error: expect.any(NodeUnreachableError) });
    expect(made.closes).toBe(1);
  });

  test('goes on where the driver tells of an error and the connection is still open', async () => {
    const { connection, made } = await opened();
    const call = watch(connection.run((client) => client.get('k')));
    made.tell();
    await atRest();
    expect(call.now.state).toBe('pending');
    expect(made.closes).toBe(0);
  });

  test('rejects with the reason for which the connection is closed here', async () => {
    const { connection, made } = await opened();
    const call = watch(connection.run((client) => client.get('k')));
    const why = new Error('enough');
    connection.close(why);
    await atRest();
    expect(call.now).toEqual({ state: 'rejected', error: why });
    // Idempotent.
    connection.close(new Error('again'));
    expect(made.closes).toBe(1);
  });
});

describe('a connection that is retired', () => {
  test('is closed at once when nothing is to be answered', async () => {
    const stage = new Stage();
    const connection = await stage.open();
    connection.retire();
    expect(stage.made.closes).toBe(1);
  });

  test('is closed when all that was sent has been answered', async () => {
    const stage = new Stage();
    const connection = await stage.open();
    const calls = ['first', 'second'].map((key) =>
      watch(connection.run((client) => client.get(key))),
    );
    const [first, second] = stage.made.client.sent;
    connection.retire();
    expect(stage.made.closes).toBe(0);
    first?.reply(1);
    await atRest();
    expect(stage.made.closes).toBe(0);
    second?.fail(new ReplyError('ERR'));
    await atRest();
    expect(stage.made.closes).toBe(1);
    expect(calls.map(({ now }) => now.state)).toEqual(['resolved', 'rejected']);
  });

  test('one that is not retired stays open when all has been answered', async () => {
    const stage = new Stage();
    const connection = await stage.open();
    const call = connection.run((client) => client.get('k'));
    stage.made.client.last.reply(1);
    await call;
    expect(stage.made.closes).toBe(0);
  });
});

test('the end of a connection is told once, even to a listener that comes later', async () => {
  const stage = new Stage();
  const connection = await stage.open();
  const before = vi.fn();
  connection.onEnd(before);
  expect(before).not.toHaveBeenCalled();
  stage.made.breakOff();
  stage.made.breakOff();
  expect(before).toHaveBeenCalledTimes(1);
  const after = vi.fn();
  connection.onEnd(after);
  expect(after).toHaveBeenCalledTimes(1);
});
