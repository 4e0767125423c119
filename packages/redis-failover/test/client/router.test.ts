/**
 * When a call is sent, held, sent again and given up, and what it rejects with. View, connections
 * and router are real; the driver, the clock and the news of ZooKeeper are played. The same with
 * real servers: `test-integration/client.test.ts` and `client-view.test.ts`.
 */
import { describe, expect, test, vi } from 'vitest';
import { ClosedError, NoPrimaryError, OutcomeUnknownError } from '../../src/client/errors.ts';
import type { ErrorKind } from '../../src/client/outcome.ts';
import { kindOf } from '../../src/client/outcome.ts';
import type { Job } from '../../src/client/router.ts';
import { NodeRefusedError } from '../../src/redis/errors.ts';
import { a, b, ClientWorld, c } from '../support/client-world.ts';
import type { FakeClient } from '../support/fake-driver.ts';
import { ReplyError } from '../support/fake-driver.ts';
import type { Settled } from '../support/hand-clock.ts';
import { atRest, watch } from '../support/hand-clock.ts';

const command = { isScript: false, isPipeline: false };
const readOnly = "READONLY You can't write against a read only replica.";

function jobOf(
  isRead: boolean,
  more: Partial<Job<FakeClient, unknown>> = {},
): Job<FakeClient, unknown> {
  return {
    ...{ label: isRead ? 'get' : 'set', isRead },
    use: (connection) =>
      connection.run((client) => (isRead ? client.get('k') : client.set('k', 'v'))),
    kindOf: (error) => kindOf(error, command),
    isRefused: () => false,
    ...more,
  };
}

const write = jobOf(false);
const read = jobOf(true);

function errorOf(settled: Settled): Error & { cause?: unknown } {
  if (settled.state !== 'rejected') throw new Error(`it is ${settled.state}`);
  return settled.error;
}

/** A call that is being sent. */
async function start(world: ClientWorld, job: Job<FakeClient, unknown>, signal?: AbortSignal) {
  const call = watch(world.router.perform(job, signal));
  await atRest();
  return call;
}

/** `a` is the primary, and a write has been sent to it. */
async function sentWrite(options: Parameters<typeof ClientWorld.confirmed>[0] = {}) {
  const world = await ClientWorld.confirmed(options);
  const call = await start(world, write);
  const { client } = world.driver.at(a);
  expect(client.sent).toHaveLength(1);
  return { world, call, client };
}

describe('a write', () => {
  test('is sent to the primary, and resolves with its reply once the view was confirmed after connecting', async () => {
    const { world, call, client } = await sentWrite();
    expect(client.last.words).toEqual(['set', 'k', 'v']);
    await world.clock.pass(100);
    client.last.reply('OK');
    await atRest();
    expect(call.now).toEqual({ state: 'resolved', value: 'OK' });
  });

  test('goes to the primary, whatever replicas there are', async () => {
    const { world } = await sentWrite({ replicas: [b, c] });
    expect(world.driver.opened.map(({ address }) => address)).toEqual([a]);
  });

  test('asks for that confirmation at once, and does not wait for the next third of a view', async () => {
    const { world, client, call } = await sentWrite();
    const confirmations = world.zk.confirmations.length;
    client.last.reply('OK');
    await world.clock.pass(20);
    expect(world.zk.confirmations.length).toBeGreaterThan(confirmations);
    expect(call.now.state).toBe('resolved');
  });

  test('the second on a connection needs no further confirmation', async () => {
    const { world, client } = await sentWrite();
    client.last.reply('OK');
    await world.clock.pass(100);
    world.holdConfirmations();
    const second = await start(world, write);
    client.last.reply('OK');
    await atRest();
    expect(second.now.state).toBe('resolved');
  });

  test('waits while there is no primary, and is sent to the next', async () => {
    const world = new ClientWorld();
    const call = await start(world, write);
    await world.clock.pass(3_000);
    expect(world.driver.opened).toEqual([]);
    await world.publish(1, a);
    expect(world.driver.at(a).client.sent).toHaveLength(1);
    world.driver.at(a).client.last.reply('OK');
    await world.clock.pass(300);
    expect(call.now.state).toBe('resolved');
  });

  test('that meets no primary within maxWait was not applied: the message says why', async () => {
    const world = await ClientWorld.confirmed({ router: { maxWaitMs: 4_000 } });
    await world.revoke(1);
    await world.clock.pass(1_000);
    const call = await start(world, write);
    await world.clock.pass(3_999);
    expect(call.now.state).toBe('pending');
    await world.clock.pass(1);
    const error = errorOf(call.now);
    expect(error).toBeInstanceOf(NoPrimaryError);
    expect(error.message).toBe(
      'set was not done within 4s: the primary has been moving from a:1 for 5s',
    );
    // Nothing is left of it.
    const { timers } = world.clock;
    const again = await start(world, write);
    await world.clock.pass(4_000);
    expect(again.now.state).toBe('rejected');
    expect(world.clock.timers).toBe(timers);
  });

  test('that cannot be sent to the primary is tried again, after longer and longer pauses', async () => {
    const world = await ClientWorld.confirmed();
    const attemptsMs: number[] = [];
    world.driver.connect = async () => {
      attemptsMs.push(world.clock.monotonicMs());
      throw new Error('ECONNREFUSED');
    };
    const call = await start(world, write);
    await world.clock.pass(1_500);
    const pauses = attemptsMs.slice(1).map((ms, at) => ms - (attemptsMs[at] as number));
    expect(pauses.slice(0, 7)).toEqual([10, 20, 40, 80, 160, 250, 250]);
    await world.clock.pass(10_000);
    const error = errorOf(call.now);
    expect(error).toBeInstanceOf(NoPrimaryError);
    expect(error.message).toBe(
      'set was not done within 10s: a:1 could not be used; the last attempt: ' +
        'the Redis node a:1 cannot be reached: ECONNREFUSED',
    );
    expect(error.cause).toMatchObject({ code: 'NODE_UNREACHABLE' });
  });

  test('that waits in such a pause is sent at once when another is the primary', async () => {
    const world = await ClientWorld.confirmed();
    world.driver.connect = async ({ address }) => {
      if (address === a) throw new Error('ECONNREFUSED');
    };
    await start(world, write);
    await world.clock.pass(700);
    const attempts = world.driver.to(a).length;
    await world.publish(2, b);
    expect(world.driver.to(a)).toHaveLength(attempts);
    expect(world.driver.at(b).client.sent).toHaveLength(1);
  });

  test('is not tried earlier because other news came in', async () => {
    const world = await ClientWorld.confirmed();
    world.driver.connect = () => Promise.reject(new Error('ECONNREFUSED'));
    await start(world, write);
    await world.clock.pass(700);
    const attempts = world.driver.to(a).length;
    for (const state of ['suspended', 'connected'] as const) await world.zk.become(state);
    expect(world.driver.to(a)).toHaveLength(attempts);
  });

  test('leaves no listener and no timer behind', async () => {
    const world = await ClientWorld.confirmed();
    let listeners = 0;
    const { onChange } = world.view;
    world.view.onChange = (listener) => {
      const forget = onChange.call(world.view, listener);
      listeners += 1;
      return () => {
        listeners -= 1;
        return forget();
      };
    };
    world.driver.connect = () => Promise.reject(new Error('ECONNREFUSED'));
    const before = world.clock.timers;
    const call = await start(world, write);
    await world.clock.pass(10_000);
    expect(call.now.state).toBe('rejected');
    expect([world.clock.timers, listeners]).toEqual([before, 0]);
  });

  test('is told at once that the primary refuses us: no waiting cures that', async () => {
    const world = await ClientWorld.confirmed();
    world.driver.connect = () => Promise.reject(new ReplyError('WRONGPASS wrong'));
    const call = await start(world, write);
    expect(errorOf(call.now)).toBeInstanceOf(NodeRefusedError);
  });

  test.each([readOnly, 'LOADING Redis is loading the dataset in memory'])(
    'that Redis refused before it began is sent again: %s',
    async (said) => {
      const { world, call, client } = await sentWrite();
      client.last.fail(new ReplyError(said));
      await atRest();
      expect(client.sent).toHaveLength(1);
      await world.clock.pass(10);
      expect(client.sent).toHaveLength(2);
      client.last.reply('OK');
      await world.clock.pass(100);
      expect(call.now).toEqual({ state: 'resolved', value: 'OK' });
    },
  );

  test('that is refused until its time is over was not applied', async () => {
    const { world, call, client } = await sentWrite({ router: { maxWaitMs: 1_000 } });
    for (let ms = 0; ms < 1_000; ms += 10) {
      client.last.fail(new ReplyError(readOnly));
      await world.clock.pass(10);
    }
    const error = errorOf(call.now);
    expect([error.name, error.message]).toEqual([
      'NoPrimaryError',
      `set was not done within 1s: a:1 could not be used; the last attempt: ${readOnly}`,
    ]);
  });

  test('whose reply says that all of it was refused is sent again', async () => {
    const world = await ClientWorld.confirmed();
    const job = jobOf(false, { isRefused: (value) => value === 'refused' });
    const call = await start(world, job);
    const { client } = world.driver.at(a);
    client.last.reply('refused');
    await world.clock.pass(50);
    expect(client.sent).toHaveLength(2);
    client.last.reply('done');
    await world.clock.pass(50);
    expect(call.now).toEqual({ state: 'resolved', value: 'done' });
  });

  test('that Redis answered with an error has that error, judged like a reply', async () => {
    const { world, call, client } = await sentWrite();
    await world.clock.pass(50);
    const error = new ReplyError('WRONGTYPE');
    client.last.fail(error);
    await atRest();
    expect(errorOf(call.now)).toBe(error);

    const held = await start(world, write);
    world.holdConfirmations();
    await world.clock.pass(900);
    client.last.fail(new ReplyError('WRONGTYPE'));
    await atRest();
    expect(held.now.state).toBe('pending');
    await world.publish(2, b);
    expect(errorOf(held.now)).toMatchObject({ code: 'OUTCOME_UNKNOWN' });
  });

  test('that the driver did not send rejects with what it says', async () => {
    const { call, client } = await sentWrite();
    const error = new TypeError('a number is no string');
    client.last.fail(error);
    await atRest();
    expect(errorOf(call.now)).toBe(error);
    expect(client.sent).toHaveLength(1);
  });

  test('whose connection broke may have been applied: it is not sent again, and says where it went', async () => {
    const { world, call, client } = await sentWrite();
    world.driver.at(a).breakOff();
    await world.clock.pass(5_000);
    const error = errorOf(call.now);
    expect(error).toBeInstanceOf(OutcomeUnknownError);
    expect(error).toMatchObject({
      ...{ term: 1, primary: a },
      message:
        'whether set was applied is not known: it was sent to a:1 of term 1; ' +
        'the Redis node a:1 has ended the connection',
      cause: expect.objectContaining({ code: 'NODE_UNREACHABLE' }),
    });
    expect(client.sent).toHaveLength(1);
    expect(world.driver.to(a)).toHaveLength(1);
  });

  test('without a reply until its time is over may have been applied: the message says what is known', async () => {
    const { world, call } = await sentWrite({ router: { maxWaitMs: 3_000 } });
    await world.revoke(1);
    await world.clock.pass(3_000);
    expect(errorOf(call.now)).toMatchObject({
      code: 'OUTCOME_UNKNOWN',
      message:
        'whether set was applied is not known: it was sent to a:1 of term 1; no reply that could be ' +
        'believed came within 3s, and the primary has been moving from a:1 for 3s',
    });
  });

  test('under Ruby managers no term is named', async () => {
    const world = new ClientWorld();
    await world.zk.put({ '/set/nodes': '{"master":"a:1","slaves":[],"unavailable":[]}' });
    const call = await start(world, write);
    world.driver.at(a).breakOff();
    await atRest();
    expect(errorOf(call.now)).toMatchObject({
      term: undefined,
      message: expect.stringContaining('it was sent to a:1; the Redis node'),
    });
  });

  test('is told what was rejected with, where that is no error', async () => {
    const { call, client } = await sentWrite();
    client.last.fail('just a string');
    await atRest();
    expect(errorOf(call.now).message).toContain('it was given up (just a string)');
  });
});

describe('the reply to a write', () => {
  test('that comes when the view has lapsed is held until a confirmation that was sent after it', async () => {
    const { world, call, client } = await sentWrite();
    await world.clock.pass(100);
    world.holdConfirmations();
    await world.clock.pass(1_200);
    client.last.reply('OK');
    // A confirmation that was sent before the reply does not count for it.
    await atRest();
    expect(call.now.state).toBe('pending');
    await world.clock.pass(1);
    world.zk.lastConfirmation.answer();
    await atRest();
    expect(call.now.state).toBe('pending');
    // This one was sent when the first had come, which is after the reply.
    world.zk.lastConfirmation.answer();
    await atRest();
    expect(call.now).toEqual({ state: 'resolved', value: 'OK' });
  });

  test('counts no more when the primary was moved meanwhile', async () => {
    const { world, call, client } = await sentWrite();
    await world.clock.pass(100);
    world.holdConfirmations();
    await world.clock.pass(1_200);
    client.last.reply('OK');
    await atRest();
    await world.publish(2, b);
    expect(errorOf(call.now)).toMatchObject({
      ...{ name: 'OutcomeUnknownError', term: 1, primary: a },
      message: expect.stringMatching(/; the primary was moved meanwhile$/),
    });
    expect(world.driver.to(b)).toEqual([]);
  });

  test('that is still held when its time is over leaves the outcome open', async () => {
    const { world, call, client } = await sentWrite({ router: { maxWaitMs: 3_000 } });
    await world.clock.pass(100);
    world.holdConfirmations();
    await world.clock.pass(1_500);
    client.last.reply('OK');
    await world.clock.pass(1_500);
    expect(errorOf(call.now)).toMatchObject({
      code: 'OUTCOME_UNKNOWN',
      message: expect.stringContaining('no reply that could be believed came within 3s'),
    });
  });
});

describe('a write is not sent', () => {
  test('when the view lapsed while the connection was made: it begins again', async () => {
    const world = await ClientWorld.confirmed();
    let arrive = () => {};
    world.driver.connect = () =>
      new Promise((resolve) => {
        arrive = resolve;
      });
    const call = await start(world, write);
    world.holdConfirmations();
    await world.clock.pass(1_500);
    arrive();
    await atRest();
    const { client } = world.driver.at(a);
    expect(client.sent).toEqual([]);
    world.zk.confirmsAtOnce = true;
    world.zk.lastConfirmation.answer();
    await world.clock.pass(300);
    expect(client.sent).toHaveLength(1);
    client.last.reply('OK');
    await world.clock.pass(50);
    expect(call.now.state).toBe('resolved');
  });

  test('to the former primary, when it was moved while the connection was made', async () => {
    const world = await ClientWorld.confirmed();
    let arrive = () => {};
    world.driver.connect = ({ address }) =>
      address === b
        ? Promise.resolve()
        : new Promise((resolve) => {
            arrive = resolve;
          });
    await start(world, write);
    await world.publish(2, b);
    arrive();
    await world.clock.pass(50);
    expect(world.driver.at(a).client.sent).toEqual([]);
    expect(world.driver.at(b).client.sent).toHaveLength(1);
  });

  test('when its time was over while the connection was made', async () => {
    const world = await ClientWorld.confirmed({ router: { maxWaitMs: 500 } });
    let arrive = () => {};
    world.driver.connect = () =>
      new Promise((resolve) => {
        arrive = resolve;
      });
    const call = await start(world, write);
    await world.clock.pass(500);
    arrive();
    await world.clock.pass(500);
    const error = errorOf(call.now);
    expect(error).toBeInstanceOf(NoPrimaryError);
    expect(error.message).toBe('set was not done within 500ms: a:1 could not be used');
    expect(world.driver.at(a).client.sent).toEqual([]);
  });

  test('in the middle of its work, the job can see that its caller has given up, or the view is over', async () => {
    const world = await ClientWorld.confirmed();
    const seen: boolean[] = [];
    const controller = new AbortController();
    let look = () => false;
    const job = jobOf(false, {
      use: (_, reign, mayGoOn) => {
        expect(reign).toMatchObject({ term: 1, primary: a });
        look = mayGoOn;
        return new Promise(() => {});
      },
    });
    await start(world, job, controller.signal);
    seen.push(look());
    world.holdConfirmations();
    await world.clock.pass(1_500);
    seen.push(look());
    world.zk.confirmsAtOnce = true;
    world.zk.lastConfirmation.answer();
    await world.clock.pass(50);
    seen.push(look());
    controller.abort();
    seen.push(look());
    expect(seen).toEqual([true, false, true, false]);
  });
});

describe('retryAmbiguous', () => {
  const router = { retryAmbiguous: true, maxWaitMs: 3_000 };

  test('sends a write again that may have been applied', async () => {
    const { world, call } = await sentWrite({ router });
    world.driver.at(a).breakOff();
    await world.clock.pass(10);
    expect(world.driver.to(a)).toHaveLength(2);
    world.driver.at(a).client.last.reply('OK');
    await world.clock.pass(50);
    expect(call.now.state).toBe('resolved');
  });

  test('says that it may have been applied when no attempt succeeds: once is enough', async () => {
    const { world, call } = await sentWrite({ router });
    world.driver.connect = () => Promise.reject(new Error('ECONNREFUSED'));
    world.driver.at(a).breakOff();
    await world.clock.pass(3_000);
    expect(errorOf(call.now)).toMatchObject({
      ...{ code: 'OUTCOME_UNKNOWN', term: 1, primary: a },
      message: expect.stringContaining('cannot be reached: ECONNREFUSED'),
    });
  });

  test('names where it was last sent to', async () => {
    const { world, call } = await sentWrite({ router });
    await world.publish(2, b);
    world.driver.at(a).breakOff();
    await world.clock.pass(20);
    world.driver.at(b).breakOff();
    await world.revoke(2);
    await world.clock.pass(3_000);
    expect(errorOf(call.now)).toMatchObject({ code: 'OUTCOME_UNKNOWN', term: 2, primary: b });
  });

  test('a reply that is still missing when the time is over is told of its own attempt', async () => {
    const { world, call } = await sentWrite({ router });
    await world.publish(2, b);
    world.driver.at(a).breakOff();
    await world.clock.pass(3_000);
    expect(errorOf(call.now)).toMatchObject({
      ...{ code: 'OUTCOME_UNKNOWN', term: 2, primary: b },
      message: expect.stringContaining('no reply that could be believed came within 3s'),
    });
  });
});

describe('a read', () => {
  test('goes to a replica, and no view has to hold for it', async () => {
    const world = await ClientWorld.confirmed({ replicas: [b] });
    await world.revoke(1);
    world.holdConfirmations();
    await world.clock.pass(5_000);
    const call = await start(world, read);
    world.driver.at(b).client.last.reply('v');
    await atRest();
    expect(call.now).toEqual({ state: 'resolved', value: 'v' });
    expect(world.driver.to(a)).toEqual([]);
  });

  test('goes to each of the replicas, by chance', async () => {
    const chance = vi.spyOn(Math, 'random');
    try {
      for (const [value, expected] of [
        [0, c],
        [0.999, b],
      ] as const) {
        chance.mockReturnValue(value);
        const world = await ClientWorld.confirmed({ replicas: [b, c] });
        await start(world, read);
        expect(world.driver.opened.map(({ address }) => address)).toEqual([expected]);
      }
    } finally {
      chance.mockRestore();
    }
  });

  test('tries each replica once in one round, in any order', async () => {
    const chance = vi.spyOn(Math, 'random').mockReturnValue(0.4);
    try {
      const others = ['r:1', 'r:2', 'r:3', 'r:4'];
      const world = await ClientWorld.confirmed({ replicas: others });
      world.driver.connect = async ({ address }) => {
        if (address !== a) throw new Error('ECONNREFUSED');
      };
      await start(world, read);
      const tried = world.driver.opened.map(({ address }) => address);
      expect(tried).toEqual(['r:3', 'r:1', 'r:4', 'r:2', a]);
    } finally {
      chance.mockRestore();
    }
  });

  test('goes to the primary when there is no replica, or none can be read from', async () => {
    for (const replicas of [[], [b, c]]) {
      const world = await ClientWorld.confirmed({ replicas });
      world.driver.connect = async ({ address }) => {
        if (address !== a) throw new Error('ECONNREFUSED');
      };
      const call = await start(world, read);
      expect(world.driver.opened).toHaveLength(replicas.length + 1);
      world.driver.at(a).client.last.reply('v');
      await world.clock.pass(50);
      expect(call.now).toEqual({ state: 'resolved', value: 'v' });
    }
  });

  test('waits for a replica while there is no primary either', async () => {
    const world = await ClientWorld.confirmed({ replicas: [b] });
    await world.revoke(1);
    let isThere = false;
    world.driver.connect = async () => {
      if (!isThere) throw new Error('ECONNREFUSED');
    };
    const call = await start(world, read);
    await world.clock.pass(2_000);
    expect(call.now.state).toBe('pending');
    isThere = true;
    await world.clock.pass(300);
    world.driver.at(b).client.last.reply('v');
    await atRest();
    expect(call.now.state).toBe('resolved');
  });

  test('in a pause is not repeated because the view of the primary lapses', async () => {
    const world = await ClientWorld.confirmed({ replicas: [b] });
    world.driver.connect = () => Promise.reject(new Error('ECONNREFUSED'));
    await start(world, read);
    await world.clock.pass(700);
    const { length } = world.driver.opened;
    await world.revoke(1);
    expect(world.driver.opened).toHaveLength(length);
  });

  test('that rejects with nothing at all goes on to the next node', async () => {
    const world = await ClientWorld.confirmed({ replicas: [b] });
    const addresses: string[] = [];
    const job = jobOf(true, {
      use: ({ address }) => {
        addresses.push(address);
        return address === b ? Promise.reject(undefined) : Promise.resolve('v');
      },
    });
    const call = await start(world, job);
    await world.clock.pass(50);
    expect([addresses, call.now]).toEqual([[b, a], { state: 'resolved', value: 'v' }]);
  });

  test('that meets no node within maxWait says what the last one said', async () => {
    const world = await ClientWorld.confirmed({ replicas: [b] });
    await world.revoke(1);
    world.driver.connect = () => Promise.reject(new Error('ECONNREFUSED'));
    const call = await start(world, read);
    await world.clock.pass(10_000);
    expect(errorOf(call.now)).toMatchObject({
      code: 'NO_PRIMARY',
      message:
        'get was not done within 10s: the primary has been moving from a:1 for 10s; ' +
        'the last attempt: the Redis node b:2 cannot be reached: ECONNREFUSED',
    });
  });

  test('is repeated on the next node when a connection breaks or the node refuses', async () => {
    for (const end of ['break', 'refuse'] as const) {
      const world = await ClientWorld.confirmed({ replicas: [b] });
      await start(world, read);
      if (end === 'break') world.driver.at(b).breakOff();
      else
        world.driver.at(b).client.last.fail(new ReplyError('MASTERDOWN Link with MASTER is down'));
      await atRest();
      expect(world.driver.at(a).client.sent).toHaveLength(1);
    }
  });

  test('a wrong password at a replica does not keep it from the others', async () => {
    const world = await ClientWorld.confirmed({ replicas: [b] });
    world.driver.connect = async ({ address }) => {
      if (address === b) throw new ReplyError('WRONGPASS wrong');
    };
    await start(world, read);
    expect(world.driver.at(a).client.sent).toHaveLength(1);
  });

  test('has the error that a replica answers', async () => {
    const world = await ClientWorld.confirmed({ replicas: [b] });
    const call = await start(world, read);
    const error = new ReplyError('WRONGTYPE');
    world.driver.at(b).client.last.fail(error);
    await atRest();
    expect(errorOf(call.now)).toBe(error);
    expect(world.driver.to(a)).toEqual([]);
  });

  test('of a script that a replica does not have goes on to the primary, where it was loaded', async () => {
    const world = await ClientWorld.confirmed({ replicas: [b] });
    await start(world, read);
    world.driver.at(b).client.last.fail(new ReplyError('NOSCRIPT No matching script'));
    await atRest();
    expect(world.driver.at(a).client.sent).toHaveLength(1);
  });

  test('that the driver did not send rejects with what it says', async () => {
    const world = await ClientWorld.confirmed({ replicas: [b] });
    const call = await start(world, read);
    const error = new TypeError('a number is no string');
    world.driver.at(b).client.last.fail(error);
    await atRest();
    expect(errorOf(call.now)).toBe(error);
  });

  test('skips a replica that is not one any more when its turn comes', async () => {
    const chance = vi.spyOn(Math, 'random').mockReturnValue(0.999);
    try {
      const world = await ClientWorld.confirmed({ replicas: [b, c] });
      await start(world, read);
      expect(world.driver.to(b)).toHaveLength(1);
      await world.zk.put({
        '/set/nodes': '{"master":"a:1","slaves":["b:2"],"unavailable":["c:3"]}',
      });
      world.driver.at(b).breakOff();
      await atRest();
      expect(world.driver.to(c)).toEqual([]);
      expect(world.driver.at(a).client.sent).toHaveLength(1);
    } finally {
      chance.mockRestore();
    }
  });

  test('is not sent to a replica that ceased to be one while the connection was made', async () => {
    const world = await ClientWorld.confirmed({ replicas: [b] });
    let arrive = () => {};
    world.driver.connect = ({ address }) =>
      address === a
        ? Promise.resolve()
        : new Promise((resolve) => {
            arrive = resolve;
          });
    await start(world, read);
    await world.zk.put({ '/set/nodes': '{"master":"a:1","slaves":[],"unavailable":["b:2"]}' });
    arrive();
    await atRest();
    expect(world.driver.at(b).client.sent).toEqual([]);
    expect(world.driver.at(b).closes).toBe(1);
    expect(world.driver.at(a).client.sent).toHaveLength(1);
  });

  test('may not go on once its caller has given up', async () => {
    const world = await ClientWorld.confirmed({ replicas: [b] });
    const controller = new AbortController();
    let look = () => false;
    const job = jobOf(true, {
      use: (_, reign, mayGoOn) => {
        expect(reign).toBe(undefined);
        look = mayGoOn;
        return new Promise(() => {});
      },
    });
    const call = await start(world, job, controller.signal);
    expect(look()).toBe(true);
    const reason = new Error('enough');
    controller.abort(reason);
    expect(look()).toBe(false);
    await atRest();
    expect(errorOf(call.now)).toBe(reason);
    // The call is over, so no other node is tried.
    expect(world.driver.to(a)).toEqual([]);
  });

  test('without a reply until its time is over was no write: nothing is unknown', async () => {
    for (const replicas of [[b], []]) {
      const world = await ClientWorld.confirmed({ replicas, router: { maxWaitMs: 1_000 } });
      const call = await start(world, read);
      await world.clock.pass(1_000);
      const error = errorOf(call.now);
      expect(error).toBeInstanceOf(NoPrimaryError);
      expect(error.message).toBe('get was not done within 1s: a:1 could not be used');
    }
  });
});

describe("reads: 'primary'", () => {
  const router = { reads: 'primary', maxWaitMs: 3_000 } as const;

  test('sends a read to the primary although there are replicas', async () => {
    const world = await ClientWorld.confirmed({ replicas: [b], router });
    const call = await start(world, read);
    expect(world.driver.opened.map(({ address }) => address)).toEqual([a]);
    world.driver.at(a).client.last.reply('v');
    await world.clock.pass(50);
    expect(call.now.state).toBe('resolved');
  });

  test('does not return what a deposed primary says: the next one is asked', async () => {
    const world = await ClientWorld.confirmed({ router });
    const call = await start(world, read);
    await world.clock.pass(100);
    world.holdConfirmations();
    await world.clock.pass(1_000);
    world.driver.at(a).client.last.reply('old');
    await atRest();
    world.zk.confirmsAtOnce = true;
    await world.publish(2, b);
    world.zk.lastConfirmation.answer();
    await world.clock.pass(100);
    world.driver.at(b).client.last.reply('new');
    await world.clock.pass(300);
    expect(call.now).toEqual({ state: 'resolved', value: 'new' });
  });

  test('repeats a read whose connection broke', async () => {
    const world = await ClientWorld.confirmed({ router });
    const call = await start(world, read);
    world.driver.at(a).breakOff();
    await world.clock.pass(10);
    expect(world.driver.to(a)).toHaveLength(2);
    await world.clock.pass(3_000);
    expect(errorOf(call.now)).toMatchObject({
      code: 'NO_PRIMARY',
      message: expect.stringContaining('get was not done within 3s'),
    });
  });
});

describe('a call ends', () => {
  test('with the reason of its signal while nothing was sent', async () => {
    const reason = new Error('enough');
    const world = new ClientWorld();
    const controller = new AbortController();
    const call = await start(world, write, controller.signal);
    controller.abort(reason);
    await atRest();
    expect(errorOf(call.now)).toBe(reason);
    expect(errorOf((await start(world, write, AbortSignal.abort(reason))).now)).toBe(reason);
  });

  test('with an unknown outcome when its signal aborts after it was sent', async () => {
    const world = await ClientWorld.confirmed();
    const controller = new AbortController();
    const call = await start(world, write, controller.signal);
    const reason = new Error('enough');
    controller.abort(reason);
    await atRest();
    expect(errorOf(call.now)).toMatchObject({
      ...{ code: 'OUTCOME_UNKNOWN', cause: reason },
      message: expect.stringMatching(/; enough$/),
    });
  });

  // Both happen in one turn: the connection fails, and the signal aborts before the failure is
  // handled.
  test('with the reason of its signal, whenever that aborts while a connection fails', async () => {
    for (const isRead of [false, true]) {
      for (let ticks = 0; ticks < 25; ticks += 1) {
        const world = await ClientWorld.confirmed({ replicas: [b] });
        let refuse = () => {};
        world.driver.connect = () =>
          new Promise((_, reject) => {
            refuse = () => reject(new Error('ECONNREFUSED'));
          });
        const controller = new AbortController();
        const call = await start(world, jobOf(isRead), controller.signal);
        const reason = new Error('enough');
        refuse();
        for (let tick = 0; tick < ticks; tick += 1) await Promise.resolve();
        controller.abort(reason);
        await atRest();
        expect(errorOf(call.now)).toBe(reason);
      }
    }
  });

  test('with the answer that came in time, though it was looked at afterwards', async () => {
    const errors: Error[] = [];
    for (let ticks = 0; ticks < 5; ticks += 1) {
      const world = await ClientWorld.confirmed();
      let fail = (_: Error) => {};
      const job = jobOf(false, {
        use: () =>
          new Promise((_, reject) => {
            fail = reject;
          }),
      });
      const controller = new AbortController();
      const call = await start(world, job, controller.signal);
      await world.clock.pass(100);
      fail(new ReplyError('WRONGTYPE'));
      for (let tick = 0; tick < ticks; tick += 1) await Promise.resolve();
      controller.abort(new Error('enough'));
      await atRest();
      errors.push(errorOf(call.now));
    }
    // The answer was late only if the signal had aborted before it.
    expect(errors.map(({ message }) => message === 'WRONGTYPE')).toEqual([
      ...[false, true, true, true, true],
    ]);
  });

  test('with nothing at all, where that is what its work throws', async () => {
    const world = await ClientWorld.confirmed();
    const job = jobOf(false, { use: () => Promise.reject(undefined), kindOf: () => 'misused' });
    const call = await start(world, job);
    expect(call.now).toEqual({ state: 'rejected', error: undefined });
  });

  test('when the client is closed: what waits, what was sent, and what is still to come', async () => {
    const world = new ClientWorld();
    const waiting = await start(world, write);
    world.router.close(new ClosedError());
    await atRest();
    const error = errorOf(waiting.now);
    expect(error).toBeInstanceOf(ClosedError);
    expect(error.message).toBe('set: the client has been closed');
    expect(errorOf((await start(world, write)).now)).toMatchObject({ code: 'CLOSED' });

    const { world: other, call } = await sentWrite();
    other.router.close(new ClosedError());
    await atRest();
    expect(errorOf(call.now)).toMatchObject({
      code: 'OUTCOME_UNKNOWN',
      message: expect.stringMatching(/; the client has been closed$/),
    });
  });
});

describe('a connection of one’s own', () => {
  test('goes to the primary of a term, and is not shared', async () => {
    const world = await ClientWorld.confirmed();
    const first = await world.router.connectAlone('primary', undefined);
    const second = await world.router.connectAlone('primary', undefined);
    expect(first.reign).toMatchObject({ term: 1, primary: a });
    expect(first.connection.address).toBe(a);
    expect(second.connection).not.toBe(first.connection);
    expect(world.driver.to(a)).toHaveLength(2);
  });

  test('to a replica waits until there is one, and belongs to no term', async () => {
    const world = await ClientWorld.confirmed();
    const call = watch(world.router.connectAlone('replica', undefined));
    await world.clock.pass(1_000);
    expect(call.now.state).toBe('pending');
    await world.zk.put({ '/set/nodes': '{"master":"a:1","slaves":["b:2"],"unavailable":[]}' });
    expect(call.now).toMatchObject({ value: { reign: undefined, connection: { address: b } } });
  });

  test('is tried again after longer and longer pauses, and given up after maxWait', async () => {
    const world = await ClientWorld.confirmed();
    const attemptsMs: number[] = [];
    world.driver.connect = async () => {
      attemptsMs.push(world.clock.monotonicMs());
      throw new Error('ECONNREFUSED');
    };
    const call = watch(world.router.connectAlone('primary', undefined));
    await world.clock.pass(10_000);
    const pauses = attemptsMs.slice(1, 5).map((ms, at) => ms - (attemptsMs[at] as number));
    expect(pauses).toEqual([10, 20, 40, 80]);
    expect(errorOf(call.now)).toMatchObject({
      code: 'NO_PRIMARY',
      message:
        'a connection of its own was not done within 10s: a:1 could not be used; the last attempt: ' +
        'the Redis node a:1 cannot be reached: ECONNREFUSED',
    });
  });

  test('that refuses us is told at once', async () => {
    const world = await ClientWorld.confirmed();
    world.driver.connect = () => Promise.reject(new ReplyError('WRONGPASS wrong'));
    await expect(world.router.connectAlone('primary', undefined)).rejects.toMatchObject({
      code: 'NODE_REFUSED',
    });
  });

  test('that its caller has given up is closed when it comes up', async () => {
    const world = await ClientWorld.confirmed();
    let arrive = () => {};
    world.driver.connect = () =>
      new Promise((resolve) => {
        arrive = resolve;
      });
    const controller = new AbortController();
    const call = watch(world.router.connectAlone('primary', controller.signal));
    await atRest();
    const reason = new Error('enough');
    controller.abort(reason);
    await atRest();
    expect(errorOf(call.now)).toBe(reason);
    arrive();
    await atRest();
    expect(world.driver.at(a).closes).toBe(1);
  });
});

test('of what the router does not know, an error is of the kind that the job says', async () => {
  const kinds: Readonly<Record<ErrorKind, string>> = {
    ...{ refused: 'pending', answered: 'Error', misused: 'Error', unknown: 'OutcomeUnknownError' },
  };
  for (const [kind, expected] of Object.entries(kinds)) {
    const world = await ClientWorld.confirmed();
    let sent = 0;
    const job = jobOf(false, {
      use: async () => {
        sent += 1;
        if (sent === 1) throw new Error('odd');
        return new Promise(() => {});
      },
      kindOf: () => kind as ErrorKind,
    });
    const call = await start(world, job);
    await world.clock.pass(50);
    expect(call.now.state === 'rejected' ? call.now.error.name : call.now.state).toBe(expected);
    expect(sent).toBe(kind === 'refused' ? 2 : 1);
  }
});
