/** The reports that managers exchange, and the lock of the gem's managers, on a real ZooKeeper. */
import type { ZooKeeper } from '@incumbent/zookeeper';
import { connect, createClient } from '@incumbent/zookeeper';
import { startProxy } from '@incumbent/zookeeper-testing';
import type { TestContext } from 'vitest';
import { describe, expect, test } from 'vitest';
import { gemManagers, leaveGemPlace, takeGemPlace } from '../src/gem-lock.ts';
import type { Paths, Report } from '../src/layout.ts';
import { pathsBelow } from '../src/layout.ts';
import { ReportBoard, Reporter } from '../src/manager/reports.ts';
import { missing, useZooKeeper } from './support/servers.ts';
import { until } from './support/waiting.ts';

const zookeeper = useZooKeeper();
let roots = 0;

/** Managers on a root of their own. */
class Stage {
  readonly paths: Paths;
  readonly troubles: Error[] = [];
  readonly #onTestFinished: TestContext['onTestFinished'];

  constructor({ onTestFinished }: TestContext) {
    roots += 1;
    this.paths = pathsBelow(`/set-${roots}`);
    this.#onTestFinished = onTestFinished;
  }

  async client(url = `zk://127.0.0.1:${zookeeper.server.port}`): Promise<ZooKeeper> {
    const client = await connect(url, { sessionTimeoutMs: 20_000 });
    this.#onTestFinished(() => client.close());
    return client;
  }

  reporter(zk: ZooKeeper, id: string): Reporter {
    const reporter = new Reporter(zk, this.paths, id, (error) => this.troubles.push(error));
    this.#onTestFinished(() => reporter.close());
    return reporter;
  }

  board(zk: ZooKeeper, onChange: () => void = () => {}): ReportBoard {
    const board = new ReportBoard(zk, this.paths, onChange, (error) => this.troubles.push(error));
    this.#onTestFinished(() => board.close());
    return board;
  }

  pathOf(id: string): string {
    return `${this.paths.reports}/${id}`;
  }

  /** Ends a session, as a server does after it has heard nothing for too long. */
  async expire(zk: ZooKeeper): Promise<void> {
    const session = zk.exportSession();
    if (session === undefined) throw new Error('there is no session');
    const double = await connect(`zk://127.0.0.1:${zookeeper.server.port}`, { session });
    await double.close();
  }
}

/** The text of a node; undefined while there is none. */
async function textOf(zk: ZooKeeper, path: string): Promise<string | undefined> {
  return (await zk.exists(path)) ? (await zk.get(path)).text : undefined;
}

const up: Report = { available: { '10.0.0.7:6379': 0.000412 }, unavailable: [] };
const down: Report = { available: {}, unavailable: ['10.0.0.7:6379'] };
const upText = '{"available":{"10.0.0.7:6379":0.000412},"unavailable":[]}';
const downText = '{"available":{},"unavailable":["10.0.0.7:6379"]}';

describe.skipIf(missing !== undefined).concurrent('a reporter', () => {
  test('keeps the latest as an ephemeral node, below what it makes itself', async (context) => {
    const stage = new Stage(context);
    const [own, other] = [await stage.client(), await stage.client()];
    const path = stage.pathOf('m-1');
    const reporter = stage.reporter(own, 'm-1');
    reporter.publish(up);
    await until('it is there', async () => (await textOf(other, path)) === upText);
    expect((await other.get(path)).stat.ephemeralOwner).toBe(own.session?.id);
    reporter.publish(up);
    reporter.publish(down);
    await until('it is the latest', async () => (await textOf(other, path)) === downText);
    expect((await other.get(path)).stat.version).toBe(1);
    await reporter.close();
    await reporter.close();
    expect(await other.exists(path)).toBe(false);
    expect(stage.troubles).toEqual([]);
  });

  test('is there again after its session has expired', async (context) => {
    const stage = new Stage(context);
    const [own, other] = [await stage.client(), await stage.client()];
    const path = stage.pathOf('m-1');
    stage.reporter(own, 'm-1').publish(up);
    await until('it is there', async () => (await textOf(other, path)) === upText);
    const { czxid } = (await other.get(path)).stat;
    const before = own.session?.id;
    await stage.expire(own);
    await until('it is there again', async () => {
      const again = (await other.exists(path)) ? await other.get(path) : undefined;
      return again !== undefined && again.stat.czxid > czxid && again.text === upText;
    });
    expect(own.session?.id).not.toBe(before);
    expect((await other.get(path)).stat.ephemeralOwner).toBe(own.session?.id);
  });

  test('what it saw while it was cut off is there when it is back', async (context) => {
    const stage = new Stage(context);
    const other = await stage.client();
    const proxy = await startProxy(zookeeper.server);
    context.onTestFinished(() => proxy.close());
    const own = await stage.client(`zk://127.0.0.1:${proxy.port}`);
    const path = stage.pathOf('m-1');
    const reporter = stage.reporter(own, 'm-1');
    reporter.publish(up);
    await until('it is there', async () => (await textOf(other, path)) === upText);
    proxy.refuse();
    await until('it is cut off', () => own.state === 'suspended');
    reporter.publish(down);
    await proxy.pass();
    await until('it is the latest', async () => (await textOf(other, path)) === downText);
  });

  test('restores a report that was deleted or overwritten', async (context) => {
    const stage = new Stage(context);
    const [own, other] = [await stage.client(), await stage.client()];
    const path = stage.pathOf('m-1');
    stage.reporter(own, 'm-1').publish(up);
    await until('it is there', async () => (await textOf(other, path)) === upText);
    await other.delete(path);
    await until('it is there again', async () => (await textOf(other, path)) === upText);
    await other.set(path, 'rubbish');
    await until('it is made good', async () => (await textOf(other, path)) === upText);
  });

  test('does not take the place of another with its id, and says so', async (context) => {
    const stage = new Stage(context);
    const [first, second] = [await stage.client(), await stage.client()];
    const path = stage.pathOf('m-1');
    const reporter = stage.reporter(first, 'm-1');
    reporter.publish(up);
    await until('it is there', async () => (await textOf(second, path)) === upText);
    stage.reporter(second, 'm-1').publish(down);
    await until('it is told', () => stage.troubles.length > 0);
    expect(stage.troubles[0]?.message).toContain('another manager has the same id');
    expect(await textOf(second, path)).toBe(upText);
    // The other manager has gone, or its session has ended at last.
    await first.close();
    await until('it is its turn', async () => (await textOf(second, path)) === downText);
    // Reported once, however often it was tried.
    expect(stage.troubles.map(({ message }) => message)).toHaveLength(1);
  });

  test('publishes when ZooKeeper can be reached for the first time', async (context) => {
    const stage = new Stage(context);
    const other = await stage.client();
    const proxy = await startProxy(zookeeper.server);
    context.onTestFinished(() => proxy.close());
    proxy.refuse();
    const own = createClient(`zk://127.0.0.1:${proxy.port}`, { sessionTimeoutMs: 20_000 });
    context.onTestFinished(() => own.close());
    stage.reporter(own, 'm-1').publish(up);
    await proxy.pass();
    await until('it is there', async () => (await textOf(other, stage.pathOf('m-1'))) === upText);
  });
});

describe.skipIf(missing !== undefined).concurrent('the board', () => {
  test('has all reports, tells of each change, and forgets who has gone', async (context) => {
    const stage = new Stage(context);
    const [own, first, second] = [await stage.client(), await stage.client(), await stage.client()];
    let changes = 0;
    const board = stage.board(own, () => {
      changes += 1;
    });
    await board.whenRead();
    expect(board.current()).toEqual(new Map());
    const reporter = stage.reporter(first, 'm-1');
    reporter.publish(up);
    await until('one is seen', () => board.current().size === 1);
    stage.reporter(second, 'm-2').publish(down);
    await until('two are seen', () => board.current().size === 2);
    expect(board.current().get('m-1')).toEqual(up);
    expect(board.current().get('m-2')).toEqual(down);
    const before = changes;
    reporter.publish(down);
    await until('the change is seen', () => board.current().get('m-1')?.unavailable.length === 1);
    expect(changes).toBeGreaterThan(before);
    await second.close();
    await until('it is forgotten', () => !board.current().has('m-2'));
    board.close();
    const last = changes;
    reporter.publish(up);
    await until('it was written', async () => (await textOf(own, stage.pathOf('m-1'))) === upText);
    expect(changes).toBe(last);
  });

  test('has read all that there is before it says so', async (context) => {
    const stage = new Stage(context);
    const own = await stage.client();
    await own.ensurePath(stage.paths.reports);
    const ids = Array.from({ length: 20 }, (_, index) => `m-${index}`);
    for (const id of ids) await own.create(stage.pathOf(id), upText, { ephemeral: true });
    const board = stage.board(await stage.client());
    await board.whenRead();
    expect([...board.current().keys()].sort()).toEqual([...ids].sort());
  });

  test('a report that cannot be read is told, counts as none, and as one when it is cured', async (context) => {
    const stage = new Stage(context);
    const own = await stage.client();
    await own.ensurePath(stage.paths.reports);
    await own.create(stage.pathOf('bad-1'), '{"available":', { ephemeral: true });
    await own.create(stage.pathOf('empty-1'), null, { ephemeral: true });
    await own.create(stage.pathOf('good-1'), downText, { ephemeral: true });
    const board = stage.board(own);
    await board.whenRead();
    expect([...board.current()]).toEqual([['good-1', down]]);
    expect(stage.troubles.map(({ message }) => message).sort()).toEqual([
      expect.stringContaining(stage.pathOf('bad-1')),
      expect.stringContaining(stage.pathOf('empty-1')),
    ]);
    await own.set(stage.pathOf('bad-1'), upText);
    await until('it is read', () => board.current().has('bad-1'));
    await own.set(stage.pathOf('bad-1'), 'worse');
    await until('it counts as none', () => !board.current().has('bad-1'));
    expect(stage.troubles).toHaveLength(3);
  });

  test('goes on after its own session has expired', async (context) => {
    const stage = new Stage(context);
    const [own, other] = [await stage.client(), await stage.client()];
    const reporter = stage.reporter(other, 'm-1');
    reporter.publish(up);
    const board = stage.board(own);
    await until('it is seen', () => board.current().has('m-1'));
    await stage.expire(own);
    reporter.publish(down);
    await until('the change is seen', () => board.current().get('m-1')?.unavailable.length === 1);
    // Reports of other sessions do not go with ours.
    expect(stage.troubles).toEqual([]);
  });
});

describe.skipIf(missing !== undefined).concurrent('managers of the gem', () => {
  /** Takes a place in the lock as `zk.locker(name).lock(true)` does. */
  async function lock(zk: ZooKeeper, name: string): Promise<string> {
    const parent = `/_zklocking/${name.split('/').join('__')}`;
    await zk.ensurePath(parent);
    return (await zk.create(`${parent}/ex`, '', { ephemeral: true, sequential: true })).path;
  }

  test('are those that hold its lock or wait for it, by the names of their reports', async (context) => {
    const stage = new Stage(context);
    const { paths } = stage;
    const [own, first, second] = [await stage.client(), await stage.client(), await stage.client()];
    expect(await gemManagers(own, paths)).toEqual([]);
    await own.ensurePath(paths.reports);
    const name = `${paths.root}/master_redis_node_manager_lock`;
    const place = await lock(first, name);
    expect(place).toMatch(/^\/_zklocking\/__set-\d+__master_redis_node_manager_lock\/ex\d{10}$/);
    expect(await gemManagers(own, paths)).toEqual([
      `ex0000000000 of session 0x${first.session?.id.toString(16)}, gem 1.0`,
    ]);
    stage.reporter(first, 'db1.example.com-4711').publish(up);
    stage.reporter(second, 'db2.example.com-4712').publish(up);
    // Our managers report there, too, and hold no such lock.
    stage.reporter(own, 'db1.example.com-1-0badcafe').publish(up);
    await lock(second, name);
    await until('both have reported', async () => {
      const { children } = await own.getChildren(paths.reports);
      return children.length === 3;
    });
    expect(await gemManagers(own, paths)).toEqual(['db1.example.com-4711', 'db2.example.com-4712']);
    await first.delete(place);
    expect(await gemManagers(own, paths)).toEqual(['db2.example.com-4712']);
    await second.close();
    expect(await gemManagers(own, paths)).toEqual([]);
  });

  test('do not count behind a place of ours, which they wait for', async (context) => {
    const stage = new Stage(context);
    const { paths } = stage;
    const [own, gem, later] = [await stage.client(), await stage.client(), await stage.client()];
    const name = `${paths.root}/master_redis_node_manager_lock`;
    const place = await lock(gem, name);
    await takeGemPlace(own, paths);
    await takeGemPlace(own, paths);
    expect(await gemManagers(own, paths)).toHaveLength(1);
    await gem.delete(place);
    await lock(later, name);
    expect(await gemManagers(own, paths)).toEqual([]);
    // One place, however often it is asked for. The gem sorts by the number at the end.
    const parent = place.slice(0, place.lastIndexOf('/'));
    const { children } = await own.getChildren(parent);
    expect(children.toSorted()).toEqual(['ex0000000001', 'ex0000000002']);
    await leaveGemPlace(own, paths);
    expect(await gemManagers(own, paths)).toHaveLength(1);
    await later.close();
  });

  test('of another set do not count', async (context) => {
    const stage = new Stage(context);
    const [own, other] = [await stage.client(), await stage.client()];
    await lock(other, '/another_set/master_redis_node_manager_lock');
    // A lock without a root in its name is shared by all sets. So only managers that report here
    // count.
    await lock(other, 'master_redis_node_manager_lock');
    expect(await gemManagers(own, stage.paths)).toEqual([]);
    stage.reporter(other, 'db1.example.com-4711').publish(up);
    await until('it is seen', async () =>
      (await gemManagers(own, stage.paths)).includes('db1.example.com-4711'),
    );
  });

  test('are looked for in the chroot', async (context) => {
    const stage = new Stage(context);
    const base = await stage.client();
    await base.ensurePath('/app');
    const within = await stage.client(`zk://127.0.0.1:${zookeeper.server.port}/app`);
    await lock(within, `${stage.paths.root}/master_redis_node_manager_lock`);
    expect(await gemManagers(within, stage.paths)).toHaveLength(1);
    expect(await gemManagers(base, stage.paths)).toEqual([]);
  });
});

describe.skipIf(missing !== undefined)('a manager of the gem before 1.0', () => {
  test('counts in every set, because it does not say which set it manages', async (context) => {
    const stage = new Stage(context);
    const zk = await stage.client();
    await zk.ensurePath('/_zklocking/master_node_manager');
    const { path } = await zk.create('/_zklocking/master_node_manager/ex', '', {
      ...{ ephemeral: true, sequential: true },
    });
    expect(await gemManagers(zk, stage.paths)).toEqual([
      expect.stringMatching(/^ex\d{10} of session 0x[0-9a-f]+, gem before 1\.0$/),
    ]);
    await zk.delete(path);
  });
});
