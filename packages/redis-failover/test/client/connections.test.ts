/**
 * Which connection a call gets, and when connections end. The test plays the driver and the clock.
 * Real servers: `test-integration/client.test.ts`.
 */
import { describe, expect, test } from 'vitest';
import { Connections } from '../../src/client/connections.ts';
import type { Picture, Reign } from '../../src/client/view.ts';
import { FakeDriver } from '../support/fake-driver.ts';
import { atRest, HandClock, watch } from '../support/hand-clock.ts';

const [a, b, c] = ['a:1', 'b:2', 'c:3'];
const first: Reign = { term: 1, primary: a };
const second: Reign = { term: 2, primary: b };

function pictureOf(replicas: readonly string[]): Picture {
  return { primary: undefined, replicas, unavailable: [], term: undefined };
}

class Stage {
  readonly clock = new HandClock();
  readonly driver = new FakeDriver();
  readonly connections: Connections<never>;
  runId: string | undefined;

  constructor({ verifyRole = false } = {}) {
    this.connections = new Connections(this.driver, {
      ...{ connectTimeoutMs: 2_000, commandTimeoutMs: 5_000, verifyRole },
      ...{ clock: this.clock, timers: this.clock },
      isGemLeading: async () => false,
      runIdOf: ({ primary }) => this.runId && `${this.runId} of ${primary}`,
    }) as unknown as Connections<never>;
  }

  /** No connection is ready until the returned function is called. */
  holdConnects(): () => void {
    const arrivals: (() => void)[] = [];
    this.driver.connect = () => new Promise((resolve) => arrivals.push(resolve));
    return () => {
      for (const arrive of arrivals) arrive();
    };
  }

  /** Sends a command over the latest connection to a node. It is not answered. */
  async send(connection: { run(send: (client: never) => Promise<unknown>): Promise<unknown> }) {
    const call = watch(
      connection.run((client: { get(key: string): Promise<unknown> }) => client.get('k')),
    );
    await atRest();
    return call;
  }
}

describe('the primary', () => {
  test('of one term has one connection, even while it is being made', async () => {
    const { connections, driver } = new Stage();
    const [one, other] = await Promise.all([
      connections.primary(first),
      connections.primary(first),
    ]);
    expect(one).toBe(other);
    expect(await connections.primary(first)).toBe(one);
    expect(driver.opened).toHaveLength(1);
  });

  test('has a new one when the last was closed', async () => {
    const { connections, driver } = new Stage();
    const one = await connections.primary(first);
    driver.at(a).breakOff();
    const other = await connections.primary(first);
    expect(other).not.toBe(one);
    expect(other.isOpen).toBe(true);
  });

  test('has a new one when the last could not be made', async () => {
    const { connections, driver } = new Stage();
    const { connect } = driver;
    driver.connect = () => Promise.reject(new Error('ECONNREFUSED'));
    await expect(connections.primary(first)).rejects.toThrow('ECONNREFUSED');
    driver.connect = connect;
    expect((await connections.primary(first)).isOpen).toBe(true);
    expect(driver.to(a)).toHaveLength(2);
  });

  test('of the next term is not harmed when a connection for the term before could not be made', async () => {
    const stage = new Stage();
    let refuse = () => {};
    stage.driver.connect = ({ address }) =>
      address === b
        ? Promise.resolve()
        : new Promise((_, reject) => {
            refuse = () => reject(new Error('ECONNREFUSED'));
          });
    stage.connections.primary(first).catch(() => {});
    const next = await stage.connections.primary(second);
    refuse();
    await atRest();
    expect(await stage.connections.primary(second)).toBe(next);
  });

  test('of the next term has another one, even on the same node; the last is retired', async () => {
    const { connections, driver } = new Stage();
    const one = await connections.primary(first);
    const other = await connections.primary({ term: 2, primary: a });
    expect(other).not.toBe(one);
    await atRest();
    expect(driver.to(a).map(({ closes }) => closes)).toEqual([1, 0]);
  });

  test('commands of the term before may still be answered', async () => {
    const stage = new Stage();
    const call = await stage.send(await stage.connections.primary(first));
    await stage.connections.primary(second);
    await atRest();
    expect(stage.driver.at(a).closes).toBe(0);
    stage.driver.at(a).client.last.reply('OK');
    await atRest();
    expect(call.now).toEqual({ state: 'resolved', value: 'OK' });
    expect(stage.driver.at(a).closes).toBe(1);
  });

  test('is asked for its role and its process of this term; a replica for its role alone', async () => {
    const stage = new Stage({ verifyRole: true });
    const { driver, connections } = stage;
    stage.runId = 'r';
    driver.roles.set(a, 'master').set(b, 'slave');
    driver.answer = async ({ address }, [word]) =>
      word === 'ROLE' ? [driver.roles.get(address)] : 'run_id:other';
    await expect(connections.primary(first)).rejects.toThrow('ZooKeeper says r of a:1');
    driver.roles.set(a, 'slave');
    await expect(connections.primary(first)).rejects.toThrow(
      'ZooKeeper says that a:1 is a primary',
    );
    await connections.replica(b);
    expect(driver.at(b).asked).toEqual([['ROLE']]);
  });

  test('nothing is asked where the role is not to be verified', async () => {
    const { connections, driver } = new Stage();
    await connections.primary(first);
    await connections.replica(b);
    expect(driver.opened.flatMap(({ asked }) => asked)).toEqual([]);
  });
});

describe('a replica', () => {
  test('has one connection, also while it is being made', async () => {
    const { connections, driver } = new Stage();
    const [one, other] = await Promise.all([connections.replica(b), connections.replica(b)]);
    expect(one).toBe(other);
    expect(await connections.replica(b)).toBe(one);
    expect(await connections.replica(c)).not.toBe(one);
    expect(driver.opened).toHaveLength(2);
  });

  test('has a new one when the last was closed, or could not be made', async () => {
    const { connections, driver } = new Stage();
    await connections.replica(b);
    driver.at(b).breakOff();
    expect((await connections.replica(b)).isOpen).toBe(true);
    const { connect } = driver;
    driver.connect = () => Promise.reject(new Error('ECONNREFUSED'));
    await expect(connections.replica(c)).rejects.toThrow('ECONNREFUSED');
    driver.connect = connect;
    expect((await connections.replica(c)).isOpen).toBe(true);
  });

  test('that fails late does not take away the one that was made after it', async () => {
    const { connections, driver } = new Stage();
    const refusals: (() => void)[] = [];
    driver.connect = () =>
      new Promise((_, reject) => refusals.push(() => reject(new Error('ECONNREFUSED'))));
    connections.replica(b).catch(() => {});
    connections.keep(pictureOf([]), undefined);
    driver.connect = async () => {};
    const one = await connections.replica(b);
    for (const refuse of refusals) refuse();
    await atRest();
    expect(await connections.replica(b)).toBe(one);
  });
});

describe('what ZooKeeper says is kept to', () => {
  test('the connection to a former replica is given up when its commands are answered', async () => {
    const stage = new Stage();
    const { connections, driver } = stage;
    await stage.send(await connections.replica(b));
    await connections.replica(c);
    connections.keep(pictureOf([c]), undefined);
    await atRest();
    expect([driver.at(b).closes, driver.at(c).closes]).toEqual([0, 0]);
    driver.at(b).client.last.reply('v');
    await atRest();
    expect([driver.at(b).closes, driver.at(c).closes]).toEqual([1, 0]);
    // Once it is a replica again it gets another connection.
    await connections.replica(b);
    expect(driver.to(b)).toHaveLength(2);
  });

  test('one that was still being made is given up when it is there, or fails', async () => {
    const stage = new Stage();
    const arrive = stage.holdConnects();
    const opening = stage.connections.replica(b);
    stage.driver.connect = () => Promise.reject(new Error('ECONNREFUSED'));
    stage.connections.replica(c).catch(() => {});
    stage.connections.keep(pictureOf([]), undefined);
    arrive();
    await opening;
    await atRest();
    expect(stage.driver.at(b).closes).toBe(1);
  });

  test('the connection to the primary of a term that is over is given up; that of the same term is kept', async () => {
    const { connections, driver } = new Stage();
    const one = await connections.primary(first);
    connections.keep(pictureOf([]), first);
    await atRest();
    expect(driver.at(a).closes).toBe(0);
    expect(await connections.primary(first)).toBe(one);
    connections.keep(pictureOf([]), undefined);
    await atRest();
    expect(driver.at(a).closes).toBe(1);
  });

  test('one that was given up is not used again, though it still waits for answers', async () => {
    const stage = new Stage();
    const one = await stage.connections.primary(first);
    await stage.send(one);
    stage.connections.keep(pictureOf([]), undefined);
    expect(await stage.connections.primary(first)).not.toBe(one);
  });

  test('a connection to it that fails afterwards disturbs no caller', async () => {
    const { connections, driver } = new Stage();
    driver.connect = () => Promise.reject(new Error('ECONNREFUSED'));
    connections.primary(first).catch(() => {});
    connections.keep(pictureOf([]), undefined);
    await atRest();
    connections.abandon(() => true);
    connections.close();
  });
});

describe('a command that waits on a connection of a term that is over', () => {
  test('is ended when no reply can count any more', async () => {
    const stage = new Stage();
    const { connections, driver } = stage;
    const call = await stage.send(await connections.primary(first));
    connections.keep(pictureOf([]), second);
    await atRest();
    const asked: Reign[] = [];
    connections.abandon((reign) => {
      asked.push(reign);
      return false;
    });
    await atRest();
    expect([call.now.state, asked]).toEqual(['pending', [first]]);
    connections.abandon(() => true);
    await atRest();
    expect(call.now).toMatchObject({
      error: {
        code: 'NODE_UNREACHABLE',
        message: 'the Redis node a:1 has not answered before another was the primary',
      },
    });
    expect(driver.at(a).closes).toBe(1);
  });

  test('a connection that has ended is not asked about again', async () => {
    const stage = new Stage();
    await stage.send(await stage.connections.primary(first));
    stage.connections.keep(pictureOf([]), second);
    await atRest();
    stage.driver.at(a).breakOff();
    const asked: Reign[] = [];
    stage.connections.abandon((reign) => asked.push(reign) > 0);
    expect(asked).toEqual([]);
  });

  test('one that could not be made is not asked about either', async () => {
    const stage = new Stage();
    stage.driver.connect = () => Promise.reject(new Error('ECONNREFUSED'));
    stage.connections.primary(first).catch(() => {});
    stage.connections.keep(pictureOf([]), second);
    await atRest();
    const asked: Reign[] = [];
    stage.connections.abandon((reign) => asked.push(reign) > 0);
    expect(asked).toEqual([]);
  });

  test('the present primary is left alone', async () => {
    const stage = new Stage();
    await stage.send(await stage.connections.primary(first));
    stage.connections.abandon(() => true);
    expect(stage.driver.at(a).closes).toBe(0);
  });
});

test('a dedicated connection is not shared, and is not given up with the others', async () => {
  const stage = new Stage({ verifyRole: true });
  stage.driver.roles.set(a, 'master');
  const own = await stage.connections.own(a, first);
  const replica = await stage.connections.own(b, undefined);
  expect(await stage.connections.primary(first)).not.toBe(own);
  stage.connections.keep(pictureOf([]), undefined);
  await atRest();
  expect([own.isOpen, replica.isOpen]).toEqual([true, true]);
});

describe('when it is closed', () => {
  test('commands that were sent reject: to the primary, to replicas, and in terms that are over', async () => {
    const stage = new Stage();
    const { connections, driver } = stage;
    const calls = [
      await stage.send(await connections.primary(first)),
      await stage.send(await connections.primary(second)),
      await stage.send(await connections.replica(c)),
    ];
    connections.close();
    await atRest();
    for (const { now } of calls) {
      expect(now).toMatchObject({
        error: { code: 'CLOSED', message: 'the client has been closed' },
      });
    }
    expect(driver.opened.map(({ closes }) => closes)).toEqual([1, 1, 1]);
  });

  test('a connection that comes up afterwards is closed', async () => {
    const stage = new Stage();
    const arrive = stage.holdConnects();
    const [primary, replica] = [stage.connections.primary(first), stage.connections.replica(b)];
    stage.connections.close();
    arrive();
    for (const connection of await Promise.all([primary, replica])) {
      await atRest();
      expect(connection.isOpen).toBe(false);
    }
    expect(stage.driver.opened.map(({ closes }) => closes)).toEqual([1, 1]);
  });

  test('one that was being made is given to no caller', async () => {
    const { connections, driver } = new Stage();
    driver.connect = () => new Promise(() => {});
    void connections.primary(first);
    void connections.replica(b);
    connections.close();
    await expect(connections.primary(first)).rejects.toMatchObject({ code: 'CLOSED' });
    await expect(connections.replica(b)).rejects.toMatchObject({ code: 'CLOSED' });
  });

  test('no connection is made any more', async () => {
    const { connections, driver } = new Stage();
    await connections.primary(first);
    connections.close();
    for (const call of [
      connections.primary(first),
      connections.replica(b),
      connections.own(a, first),
    ]) {
      await expect(call).rejects.toMatchObject({ code: 'CLOSED' });
    }
    expect(driver.opened).toHaveLength(1);
  });
});
