/**
 * The client's public class, on a driver, a clock and a ZooKeeper that the test plays. It puts the
 * parts together, which have tests of their own. Real servers:
 * `test-integration/client-api.test.ts`.
 */
import { ZooKeeper } from '@incumbent/zookeeper';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { RedisFailover } from '../../src/client/failover.ts';
import type { RedisFailoverOptions } from '../../src/client/options.ts';
import type { Picture } from '../../src/client/view.ts';
import { decodeRequest, encodeRequest } from '../../src/layout.ts';
import { a, b, c, nodesText, paths, recordText } from '../support/client-world.ts';
import type { FakeClient } from '../support/fake-driver.ts';
import { FakeDriver, ReplyError } from '../support/fake-driver.ts';
import { FakeZooKeeper } from '../support/fake-zookeeper.ts';
import { atRest, HandClock, watch } from '../support/hand-clock.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});
afterEach(() => {
  vi.useRealTimers();
});

type Options = Partial<RedisFailoverOptions<FakeClient>>;
type Hooks = Parameters<typeof RedisFailover.connect>[1];

class Stage {
  readonly clock = new HandClock();
  readonly zk = new FakeZooKeeper(this.clock);
  readonly driver = new FakeDriver();

  constructor() {
    this.driver.roles.set(a, 'master').set(b, 'slave').set(c, 'slave');
  }

  connect(options: Options = {}, hooks?: Hooks): Promise<RedisFailover<FakeClient>> {
    const connecting = RedisFailover.connect<FakeClient>(
      {
        ...{ zookeeper: asZooKeeper(this.zk), root: '/set', redis: this.driver },
        ...{ clock: this.clock, ...options },
      },
      hooks,
    );
    connecting.then(
      (failover) => onTestFinished(() => failover.close()),
      () => {},
    );
    return connecting;
  }

  async publish(
    term: number,
    primary: string,
    replicas: readonly string[] = [],
    runId?: string,
  ): Promise<void> {
    const record = recordText(term, primary, runId === undefined ? {} : { runId });
    await this.zk.remove(paths.nodes);
    await this.zk.put({ [paths.primary]: record, [paths.nodes]: nodesText(primary, replicas) });
    await this.clock.pass(1);
  }

  async pass(ms: number): Promise<void> {
    await vi.advanceTimersByTimeAsync(ms);
    await this.clock.pass(ms);
  }
}

/** Passes `instanceof ZooKeeper`, like a client that the caller has made. */
function asZooKeeper(zk: FakeZooKeeper): ZooKeeper {
  return new Proxy(zk, {
    getPrototypeOf: () => ZooKeeper.prototype,
    get(target, key) {
      const value = Reflect.get(target, key, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  }) as unknown as ZooKeeper;
}

/** A client that follows `a`, the primary of term 1. */
async function connected(options: Options = {}, replicas: readonly string[] = []) {
  const stage = new Stage();
  await stage.publish(1, a, replicas);
  const failover = await stage.connect(options);
  await stage.clock.pass(1);
  await atRest();
  return { stage, failover, ...{ zk: stage.zk, driver: stage.driver, clock: stage.clock } };
}

describe('connect', () => {
  test('resolves when both znodes have been read, and says what they say', async () => {
    const { failover } = await connected({}, [b]);
    expect(failover.current).toEqual({ primary: a, replicas: [b], unavailable: [], term: 1 });
    expect((failover.redis as { isReady?: boolean }).isReady).toBe(true);
  });

  test('resolves even without a primary or any znode: the first call says so', async () => {
    const stage = new Stage();
    const failover = await stage.connect({ maxWait: '1s' });
    expect(failover.current.primary).toBe(undefined);
    expect((failover.redis as { isReady?: boolean }).isReady).toBe(false);
    const call = watch(failover.redis.set('k', 'v'));
    await stage.pass(1_000);
    expect(call.now).toMatchObject({
      error: {
        code: 'NO_PRIMARY',
        message: expect.stringContaining('neither /set/primary nor /set/nodes in ZooKeeper'),
      },
    });
  });

  test('gives up after maxWait, and leaves nothing behind', async () => {
    const stage = new Stage();
    stage.zk.instead.set(`follow ${paths.nodes}`, () => new Promise(() => {}));
    const connecting = watch(stage.connect({ maxWait: '3s' }));
    await stage.pass(2_999);
    expect(connecting.now.state).toBe('pending');
    // The played znode cannot be read, even after the client has given up.
    const { following } = stage.zk;
    stage.zk.instead.clear();
    expect(following).toBe(2);
  });

  test('that gives up says why, and closes what it has made, but no client that is the caller’s', async () => {
    const stage = new Stage();
    let read = () => {};
    stage.zk.instead.set(
      `follow ${paths.nodes}`,
      () =>
        new Promise<void>((resolve) => {
          read = resolve;
        }),
    );
    const connecting = watch(stage.connect({ maxWait: '3s' }));
    await stage.pass(3_000);
    read();
    await atRest();
    expect(connecting.now).toMatchObject({
      error: {
        ...{ name: 'NoPrimaryError', code: 'NO_PRIMARY' },
        message: 'nothing was heard within 3s: ZooKeeper has not said yet who is primary',
      },
    });
    expect([stage.zk.following, stage.zk.listeners, stage.zk.closed]).toEqual([0, 0, 0]);
  });

  test('rejects with the reason of its signal, before and meanwhile', async () => {
    const stage = new Stage();
    const reason = new Error('enough');
    const onState = vi.spyOn(stage.zk, 'onState');
    await expect(stage.connect({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(onState).not.toHaveBeenCalled();
    stage.zk.instead.set(`follow ${paths.nodes}`, () => Promise.resolve(atRest()).then(atRest));
    const controller = new AbortController();
    const connecting = watch(stage.connect({ signal: controller.signal }));
    controller.abort(reason);
    for (let turns = 0; turns < 5; turns += 1) await atRest();
    expect(connecting.now).toEqual({ state: 'rejected', error: reason });
  });

  test('rejects with what cannot be understood', async () => {
    const stage = new Stage();
    await stage.zk.put({ [paths.nodes]: 'not JSON' });
    await expect(stage.connect()).rejects.toMatchObject({ name: 'LayoutError' });
  });

  test('closes a client of ZooKeeper that it has made itself', async () => {
    const close = vi.spyOn(ZooKeeper.prototype, 'close');
    onTestFinished(() => close.mockRestore());
    const controller = new AbortController();
    const connecting = watch(
      new Stage().connect({ zookeeper: 'zk://127.0.0.1:1', signal: controller.signal }),
    );
    controller.abort(new Error('enough'));
    for (let turns = 0; turns < 10 && connecting.now.state === 'pending'; turns += 1) {
      await atRest();
    }
    expect(connecting.now).toMatchObject({ error: { message: 'enough' } });
    expect(close).toHaveBeenCalledTimes(1);
  });

  test('names the option of a connection string that cannot be read', async () => {
    await expect(new Stage().connect({ zookeeper: 'zk://' })).rejects.toMatchObject({
      ...{ code: 'INVALID_OPTION', message: expect.stringMatching(/^zookeeper: /) },
    });
  });
});

describe('calls', () => {
  test('of what changes something go to the primary, reads to a replica', async () => {
    const { failover, driver } = await connected({}, [b]);
    void failover.redis.set('k', 'v').catch(() => {});
    const read = watch(failover.redis.get('k'));
    await atRest();
    expect(driver.at(a).client.sent.map(({ words }) => words[0])).toEqual(['set']);
    driver.at(b).client.last.reply('v');
    await atRest();
    expect(read.now).toEqual({ state: 'resolved', value: 'v' });
  });

  test('have their own options: reads, retryAmbiguous, commandTimeout', async () => {
    const options = { reads: 'primary', retryAmbiguous: true, commandTimeout: '1s' } as const;
    const { failover, driver, stage } = await connected(options, [b]);
    const read = watch(failover.redis.get('k'));
    await atRest();
    expect(driver.to(b)).toEqual([]);
    expect(driver.at(a).client.sent).toHaveLength(1);
    await stage.pass(1_000);
    await stage.pass(50);
    expect(driver.to(a)).toHaveLength(2);
    expect(read.now.state).toBe('pending');
  });

  test('that count on one connection are refused: there may be another by now', async () => {
    const { failover } = await connected();
    await expect(failover.redis.wait(1, 500)).rejects.toMatchObject({ code: 'NOT_ROUTABLE' });
  });

  test('of an iteration stay with one primary', async () => {
    const { failover, driver, stage } = await connected();
    const iterator = (failover.redis as FakeClient).scanIterator();
    const first = watch(iterator.next().value as Promise<unknown>);
    await atRest();
    driver.at(a).client.last.reply('page');
    await stage.pass(50);
    expect(first.now.state).toBe('resolved');
    driver.roles.set(b, 'master');
    await stage.publish(2, b);
    const second = watch(iterator.next().value as Promise<unknown>);
    await stage.pass(50);
    expect(second.now).toMatchObject({ error: { code: 'ITERATION_BROKEN' } });
  });

  test('under Ruby managers are sent for 9 s without a word from ZooKeeper', async () => {
    const stage = new Stage();
    await stage.zk.put({ [paths.nodes]: nodesText(a) });
    const failover = await stage.connect();
    await atRest();
    stage.zk.confirmsAtOnce = false;
    const sentMs = stage.clock.monotonicMs();
    await stage.clock.pass(8_999);
    expect((failover.redis as { isReady?: boolean }).isReady).toBe(true);
    await stage.clock.pass(sentMs + 9_000 - stage.clock.monotonicMs());
    expect((failover.redis as { isReady?: boolean }).isReady).toBe(false);
  });

  test('with safeMode: false are sent also when the view has lapsed', async () => {
    for (const safeMode of [true, false]) {
      const { failover, stage } = await connected({ safeMode });
      stage.zk.confirmsAtOnce = false;
      await stage.clock.pass(2_000);
      expect((failover.redis as { isReady?: boolean }).isReady).toBe(!safeMode);
    }
  });

  test('a test may take a rule away, to see what it is good for', async () => {
    const stage = new Stage();
    stage.zk.confirmsAtOnce = false;
    await stage.publish(1, a);
    const failover = await stage.connect({}, { broken: ['no-view'] });
    await atRest();
    expect((failover.redis as { isReady?: boolean }).isReady).toBe(true);
  });
});

describe('the connection to a primary', () => {
  test('is made when it is known, and once, so that the first write need not wait', async () => {
    const { driver, stage } = await connected({}, [b]);
    expect(driver.opened.map(({ address }) => address)).toEqual([a]);
    await stage.clock.pass(1_000);
    expect(driver.opened).toHaveLength(1);
    driver.roles.set(b, 'master');
    await stage.publish(2, b);
    expect(driver.opened.map(({ address }) => address)).toEqual([a, b]);
    expect(driver.at(a).closes).toBe(1);
  });

  test('that broke is made again by the next writer, not by mere news', async () => {
    const { failover, driver, stage } = await connected();
    driver.at(a).breakOff();
    await stage.clock.pass(1_000);
    expect(driver.to(a)).toHaveLength(1);
    void failover.redis.set('k', 'v').catch(() => {});
    await atRest();
    expect(driver.to(a)).toHaveLength(2);
  });

  test('is confirmed after it was made, so that the first reply counts at once', async () => {
    const stage = new Stage();
    const { driver, clock } = stage;
    driver.connect = () => new Promise((resolve) => clock.setTimer(resolve, 5));
    await stage.publish(1, a);
    const failover = await stage.connect();
    await stage.clock.pass(25);
    stage.zk.confirmsAtOnce = false;
    const call = watch(failover.redis.set('k', 'v'));
    await atRest();
    driver.at(a).client.last.reply('OK');
    await atRest();
    expect(call.now.state).toBe('resolved');
  });

  test('that cannot be made disturbs only the next writer', async () => {
    const stage = new Stage();
    stage.driver.connect = () => Promise.reject(new ReplyError('WRONGPASS wrong'));
    await stage.publish(1, a);
    const failover = await stage.connect();
    await atRest();
    await expect(failover.redis.set('k', 'v')).rejects.toMatchObject({ code: 'NODE_REFUSED' });
  });

  test('to a former replica is given up', async () => {
    const { failover, driver, stage } = await connected({}, [b]);
    const read = watch(failover.redis.get('k'));
    await atRest();
    driver.at(b).client.last.reply('v');
    await atRest();
    expect(read.now.state).toBe('resolved');
    await stage.zk.put({ [paths.nodes]: nodesText(a, [], [b]) });
    expect(driver.at(b).closes).toBe(1);
  });

  test('of a term that is over is ended when no reply on it can count any more', async () => {
    const { failover, driver, stage } = await connected();
    const call = watch(failover.redis.set('k', 'v'));
    await atRest();
    driver.roles.set(b, 'master');
    await stage.publish(2, b);
    expect(call.now.state).toBe('pending');
    await stage.clock.pass(1_500);
    expect(call.now).toMatchObject({
      error: {
        code: 'OUTCOME_UNKNOWN',
        message: expect.stringContaining('has not answered before another was the primary'),
      },
    });
  });

  test('to another process than the one on record is not used, unless managers of the gem decide', async () => {
    const lock = '/_zklocking/__set__master_redis_node_manager_lock/ex0000000001';
    for (const isGemLeading of [false, true]) {
      const stage = new Stage();
      stage.driver.runIds.set(a, 'other');
      if (isGemLeading) await stage.zk.put({ [lock]: '' });
      await stage.publish(1, a, [], 'mine');
      await stage.connect({ verifyRole: true });
      await atRest();
      expect(stage.driver.at(a).closes).toBe(isGemLeading ? 0 : 1);
    }
  });

  test('is not asked for its role with verifyRole: false', async () => {
    const { driver } = await connected({ verifyRole: false });
    expect(driver.at(a).asked).toEqual([]);
  });
});

describe('changes are told', () => {
  test('to the listener of connect, and to those of onChange until they are stopped', async () => {
    const told: [string, string | undefined][] = [];
    const stage = new Stage();
    const note = (name: string) => (picture: Picture) => told.push([name, picture.primary]);
    const failover = await stage.connect({ onChange: note('first') });
    const stop = failover.onChange(note('second'));
    await stage.publish(1, a);
    expect(told).toEqual([
      ['first', a],
      ['second', a],
    ]);
    told.length = 0;
    stop();
    await stage.publish(2, b);
    expect(told.at(-1)).toEqual(['first', b]);
    expect(told.some(([name]) => name === 'second')).toBe(false);
  });

  test('to functions only', async () => {
    const { failover } = await connected();
    expect(() => failover.onChange('log' as never)).toThrow('onChange takes a function, not "log"');
  });
});

describe('write', () => {
  test('sends all commands of its work to one primary, and gives what the work gives', async () => {
    const { failover, driver, clock } = await connected();
    const call = watch(
      failover.write(async (redis, at) => {
        await redis.set('k', 'v');
        return at;
      }),
    );
    await atRest();
    driver.at(a).client.last.reply('OK');
    await clock.pass(300);
    expect(call.now).toEqual({ state: 'resolved', value: { term: 1, primary: a } });
  });

  test('wants a function', async () => {
    const { failover } = await connected();
    await expect(failover.write('SET k v' as never)).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringMatching(/^write takes a function such as .*, not "SET k v"$/),
    });
  });

  test('has the reason of its signal while nothing was sent', async () => {
    const failover = await new Stage().connect();
    const reason = new Error('enough');
    const call = failover.write(() => 1, { signal: AbortSignal.abort(reason) });
    await expect(call).rejects.toBe(reason);
  });
});

describe('a connection of one’s own', () => {
  test('to the primary is made for its term, and closed when that is over', async () => {
    const { failover, driver, stage } = await connected();
    const own = await failover.dedicated();
    const made = driver.at(a);
    expect(own).toMatchObject({ address: a, term: 1 });
    expect(own.client).toBe(made.client);
    expect(own.signal.aborted).toBe(false);
    await stage.zk.put({ [paths.nodes]: nodesText(a, [b]) });
    expect(own.signal.aborted).toBe(false);
    await stage.publish(2, b);
    expect(own.signal.aborted).toBe(true);
    expect(own.signal.reason).toMatchObject({
      name: 'NotSentError',
      message: 'the connection to a:1 has been closed',
    });
    expect(made.closes).toBe(1);
  });

  test('to a replica has no term, and is closed when the node is no replica any more', async () => {
    const { failover, driver, stage } = await connected({}, [b]);
    const own = await failover.dedicated('replica');
    expect(own).toMatchObject({ address: b, term: undefined });
    driver.roles.set(c, 'master');
    await stage.publish(2, c, [b]);
    expect(own.signal.aborted).toBe(false);
    await stage.zk.put({ [paths.nodes]: nodesText(c, [], [b]) });
    expect(own.signal.aborted).toBe(true);
    expect(driver.at(b).closes).toBe(1);
  });

  test('is closed by the caller, in both ways', async () => {
    const { failover, driver } = await connected();
    const first = await failover.dedicated();
    first.close();
    expect([first.signal.aborted, driver.at(a).closes]).toEqual([true, 1]);
    {
      await using second = await failover.dedicated();
      expect(second.signal.aborted).toBe(false);
    }
    expect(driver.at(a).closes).toBe(1);
  });

  test('ends when the node ends it', async () => {
    const { failover, driver } = await connected();
    const own = await failover.dedicated();
    driver.at(a).breakOff();
    expect(own.signal.aborted).toBe(true);
  });

  test('ends when the client is closed', async () => {
    const { failover, driver } = await connected();
    const own = await failover.dedicated();
    const made = driver.at(a);
    await failover.close();
    expect([own.signal.aborted, made.closes]).toEqual([true, 1]);
  });

  test('is over already when the primary was moved while it was made', async () => {
    const { failover, driver, stage } = await connected();
    let arrive = () => {};
    driver.connect = ({ address }) =>
      address === b
        ? Promise.resolve()
        : new Promise((resolve) => {
            arrive = resolve;
          });
    const opening = failover.dedicated();
    await atRest();
    driver.roles.set(b, 'master');
    await stage.publish(2, b);
    arrive();
    const own = await opening;
    expect(own.signal.aborted).toBe(true);
  });

  test('is rejected when the client was closed before', async () => {
    const { failover } = await connected();
    await failover.close();
    await expect(failover.dedicated()).rejects.toMatchObject({ code: 'CLOSED' });
  });

  test('has the reason of its signal', async () => {
    const failover = await new Stage().connect();
    const reason = new Error('enough');
    const own = failover.dedicated('primary', { signal: AbortSignal.abort(reason) });
    await expect(own).rejects.toBe(reason);
  });

  test('is to the primary or to a replica', async () => {
    const { failover } = await connected();
    await expect(failover.dedicated('master' as never)).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: "dedicated takes 'primary' or 'replica', not \"master\"",
    });
  });
});

describe('a failover by hand', () => {
  const path = `${paths.requests}/request-0000000001`;

  test('is asked of our managers where there are terms, and waits for their answer', async () => {
    const { failover, zk, stage } = await connected({}, [b]);
    const told: string[] = [];
    const asked = watch(
      failover.manualFailover(
        { host: 'b', port: 2 },
        { timeout: '30s', onProgress: (progress) => told.push(progress) },
      ),
    );
    await atRest();
    await stage.pass(5_000);
    const request = decodeRequest(path, zk.text(path) as string);
    expect(request).toMatchObject({ node: b, waitMs: 30_000 });
    await zk.put({ [path]: encodeRequest({ ...request, progress: 'copying' }) });
    await zk.put({
      [path]: encodeRequest({ ...request, outcome: { done: true, primary: b, term: 2 } }),
    });
    expect(asked.now).toEqual({ state: 'resolved', value: { primary: b, term: 2 } });
    expect(told).toEqual(['copying']);
  });

  test('is asked of Ruby managers where there are none, for as long as is said', async () => {
    const stage = new Stage();
    await stage.zk.put({ [paths.nodes]: nodesText(a, [b]) });
    const failover = await stage.connect();
    const asked = watch(failover.manualFailover(undefined, { timeout: '4s' }));
    await atRest();
    expect(stage.zk.text(paths.manualFailover)).toBe('ANY_SLAVE');
    await stage.pass(3_999);
    expect(asked.now.state).toBe('pending');
    await stage.pass(1);
    expect(asked.now).toMatchObject({ error: { code: 'NO_MANAGER' } });
  });

  test('ends with the reason of its signal, and with the client', async () => {
    for (const end of ['signal', 'client'] as const) {
      const { failover, zk } = await connected({}, [b]);
      const controller = new AbortController();
      const { signal } = controller;
      const asked = watch(failover.manualFailover(undefined, { signal }));
      await atRest();
      const reason = new Error('enough');
      if (end === 'signal') controller.abort(reason);
      else await failover.close();
      await atRest();
      expect(asked.now).toMatchObject({
        error: end === 'signal' ? reason : { code: 'CLOSED' },
      });
      expect(zk.text(path)).toBe(undefined);
    }
  });

  test('is not asked where the root holds something else', async () => {
    const { failover, zk } = await connected();
    await zk.put({ [paths.primary]: 'not JSON' });
    await expect(failover.manualFailover()).rejects.toMatchObject({ name: 'LayoutError' });
    expect(zk.calls).toEqual([]);
  });

  test('is not asked of a malformed node or for a malformed time', async () => {
    const { failover, zk } = await connected();
    await expect(failover.manualFailover('b:2' as never)).rejects.toMatchObject({
      code: 'INVALID_OPTION',
    });
    await expect(failover.manualFailover(undefined, { timeout: 'soon' as never })).rejects.toThrow(
      'timeout "soon"',
    );
    expect(zk.calls).toEqual([]);
  });
});

describe('when it is closed', () => {
  test('what waits and what comes later is not applied, and what was sent is unknown', async () => {
    const { failover, driver } = await connected();
    const sent = watch(failover.redis.set('k', 'v'));
    await atRest();
    expect(driver.at(a).client.sent).toHaveLength(1);
    const closing = failover.close();
    const later = watch(failover.redis.set('k', 'v'));
    expect(failover.close()).toBe(closing);
    await closing;
    await atRest();
    expect(sent.now).toMatchObject({ error: { code: 'OUTCOME_UNKNOWN' } });
    expect(later.now).toMatchObject({
      error: { code: 'CLOSED', message: 'set: the client has been closed' },
    });
  });

  test('nothing is left: no connection, no listener, no timer; ZooKeeper is the caller’s', async () => {
    const { failover, driver, zk, clock } = await connected({}, [b]);
    void failover.redis.get('k').catch(() => {});
    await atRest();
    const told = vi.fn();
    failover.onChange(told);
    await failover[Symbol.asyncDispose]();
    expect(driver.opened.map(({ closes }) => closes)).toEqual([1, 1]);
    expect([zk.following, zk.listeners, clock.timers, vi.getTimerCount()]).toEqual([0, 0, 0, 0]);
    expect(zk.closed).toBe(0);
    await zk.put({ [paths.nodes]: nodesText(b) });
    expect(told).not.toHaveBeenCalled();
  });

  test('a change that was about to be told is not', async () => {
    const { failover, zk } = await connected();
    const told = vi.fn();
    failover.onChange(told);
    zk.write({ [paths.nodes]: nodesText(a, [c]) });
    for (let ticks = 0; ticks < 20; ticks += 1) await Promise.resolve();
    expect(failover.current.replicas).toEqual([c]);
    await failover.close();
    await atRest();
    expect(told).not.toHaveBeenCalled();
  });
});
