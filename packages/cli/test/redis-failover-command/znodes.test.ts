// The commands against znodes. The test plays the managers, and nothing listens where the Redis
// nodes should be.
import type { ZooKeeper } from '@incumbent/zookeeper';
import { connect } from '@incumbent/zookeeper';
import { FakeZooKeeper } from '@incumbent/zookeeper-testing';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { FailoverRequest, Nodes, Paths } from '../../../redis-failover/src/layout.ts';
import {
  decodeRequest,
  encodeNodes,
  encodePrimary,
  encodeReport,
  encodeRequest,
  pathsBelow,
} from '../../../redis-failover/src/layout.ts';
import { commands } from '../../src/redis-failover-command/command-table.ts';
import type { Result } from './invoke.ts';
import { jsonLines, Running } from './invoke.ts';

let fake: FakeZooKeeper;
beforeAll(async () => {
  // Loading takes seconds on a busy machine. Amidst a test, sessions of the fake would expire.
  await Promise.all(commands.map(({ load }) => load()));
  fake = await FakeZooKeeper.start({ tickTimeMs: 200, realTime: true });
});
afterAll(() => fake[Symbol.asyncDispose]());

const [a, b] = ['127.0.0.1:1', '127.0.0.1:2'];
let roots = 0;

class Place {
  readonly zk: ZooKeeper;
  readonly paths: Paths;

  static async open(): Promise<Place> {
    const zk = await connect(fake.connectionString);
    onTestFinished(() => zk.close());
    roots += 1;
    const place = new Place(zk, pathsBelow(`/set${roots}`));
    await zk.ensurePath(place.paths.reports);
    await zk.ensurePath(place.paths.requests);
    return place;
  }

  private constructor(zk: ZooKeeper, paths: Paths) {
    this.zk = zk;
    this.paths = paths;
  }

  start(command: string, ...args: string[]): Running {
    return new Running([command, '-z', fake.connectionString, '--root', this.paths.root, ...args]);
  }

  run(command: string, ...args: string[]): Promise<Result> {
    return this.start(command, ...args).result;
  }

  /** Writes the znode as a manager of the gem leaves it. */
  async asGem(nodes: Nodes): Promise<void> {
    await this.zk.create(this.paths.nodes, encodeNodes(nodes));
    await this.report('gem-1', nodes);
  }

  async asOurs(nodes: Nodes): Promise<void> {
    const { master: primary } = nodes;
    const more = { former: null, replicationId: null, viewMs: 1000, manager: 'm', token: '1' };
    const record = { ...more, primary, term: 4, manualSeen: '0', runId: null, gemViews: false };
    await this.zk.create(this.paths.primary, encodePrimary(record));
    await this.zk.create(this.paths.nodes, encodeNodes(nodes));
    await this.report('m', nodes);
  }

  async report(manager: string, { master, slaves, unavailable }: Nodes): Promise<void> {
    const reached = [...(master === null ? [] : [master]), ...slaves];
    const available = Object.fromEntries(reached.map((node) => [node, 0.001]));
    const path = `${this.paths.reports}/${manager}`;
    await this.zk.create(path, encodeReport({ available, unavailable }), { ephemeral: true });
  }

  /** Waits for a request and answers it; undefined: only waits. */
  async answer(outcome?: FailoverRequest['outcome']): Promise<FailoverRequest> {
    for await (const reply of this.zk.followChildren(this.paths.requests)) {
      const [name] = reply?.children ?? [];
      if (name === undefined) continue;
      const path = `${this.paths.requests}/${name}`;
      const request = decodeRequest(path, (await this.zk.get(path)).text);
      if (outcome !== undefined) {
        await this.zk.set(path, encodeRequest({ ...request, outcome }), { version: 0 });
      }
      return request;
    }
    throw new Error('the session ended');
  }
}

const both: Nodes = { master: a, slaves: [b], unavailable: [] };

test('status of a set that managers of the gem keep', async () => {
  const place = await Place.open();
  await place.asGem({ master: a, slaves: [], unavailable: [b] });
  const { code, stdout } = await place.run('status', '--json');
  expect(code).toBe(1);
  const [status] = jsonLines(stdout) as [{ problems: { code: string; node: string }[] }];
  expect(status).toMatchObject({ primary: a, term: null, leader: null });
  expect(status.problems.map((each) => [each.code, each.node])).toEqual([
    ['NODE_UNREACHABLE', a],
    ['NODE_DOWN', b],
  ]);
  const forPeople = await place.run('status');
  expect(forPeople.stdout).toContain('not known (managers of the Ruby gem)');
});

test('what stands there and is something else is named, with its path', async () => {
  const place = await Place.open();
  await place.zk.create(place.paths.nodes, 'no JSON');
  for (const command of ['status', 'failover', 'watch']) {
    const { code, stderr } = await place.run(command);
    expect(code).toBe(1);
    expect(stderr).toContain(`the node ${place.paths.nodes} holds "no JSON"`);
    expect(stderr).toContain('is the root right?');
  }
});

test('a chroot that does not exist', async () => {
  const argv = ['status', '-z', `${fake.connectionString}/nowhere`];
  const { code, stderr } = await new Running(argv).result;
  expect(code).toBe(1);
  expect(stderr).toContain('/nowhere does not exist: is it misspelt?');
});

test('a request for a failover is answered', async () => {
  const place = await Place.open();
  await place.asOurs(both);
  const running = place.start('failover', b);
  const request = await place.answer({ done: true, primary: b, term: 5 });
  expect(request.node).toBe(b);
  const { code, stdout, stderr } = await running.result;
  expect(code).toBe(0);
  expect(stdout).toMatch(new RegExp(`^${b} is the primary: term 5 \\(took .*\\)\n$`));
  // No manager leads: the one that answers here was not elected.
  expect(stderr).toContain('no manager leads at the moment; waiting for 30s');
  expect((await place.zk.getChildren(place.paths.requests)).children).toEqual([]);
});

test('a request for a failover is refused, with the words of the manager', async () => {
  const place = await Place.open();
  await place.asOurs(both);
  const running = place.start('failover', '--json');
  const request = await place.answer({ done: false, error: 'no replica has all the data' });
  expect(request.node).toBeNull();
  const { code, stdout, stderr } = await running.result;
  expect(code).toBe(1);
  expect(stdout).toBe('');
  expect(jsonLines(stderr)).toEqual([
    { error: { code: 'REQUEST_REFUSED', message: 'no replica has all the data' } },
  ]);
});

test('a request that no manager takes, or that is given up, is withdrawn', async () => {
  const place = await Place.open();
  await place.asOurs(both);
  const late = await place.run('failover', '--wait', '100ms');
  expect(late.code).toBe(1);
  expect(late.stderr).toContain('no manager answered the request for a failover within 100ms');
  const running = place.start('failover');
  await place.answer();
  running.signal('SIGINT');
  const { code, stderr } = await running.result;
  expect(code).toBe(130);
  expect(stderr).toContain('the request was withdrawn');
  expect((await place.zk.getChildren(place.paths.requests)).children).toEqual([]);
});

test('what no manager would do is refused before one is asked', async () => {
  const nobody = await Place.open();
  expect(await nobody.run('failover')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('no manager runs with the root'),
  });
  const gem = await Place.open();
  await gem.asGem(both);
  expect(await gem.run('failover')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('those of the Ruby gem'),
  });
  const ours = await Place.open();
  await ours.asOurs(both);
  expect(await ours.run('failover', '127.0.0.1:9')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`127.0.0.1:9 is none of the nodes here: ${a}, ${b}`),
  });
  expect(await ours.run('failover', a)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`${a} is the primary already (term 4)`),
  });
});

test('watch tells how things are, and then each change', async () => {
  const place = await Place.open();
  await place.asOurs(both);
  const running = place.start('watch', '--json');
  await running.printed(/"manager":"m","reports":true/);
  expect(jsonLines(running.stdout)).toMatchObject([
    { change: 'primary', primary: a, term: 4 },
    { change: 'leader', manager: null },
    { change: 'manager', manager: 'm', reports: true },
  ]);
  await place.zk.set(place.paths.nodes, encodeNodes({ master: a, slaves: [], unavailable: [b] }));
  await running.printed(new RegExp(`"change":"node","node":"${b}","down":true`));
  await place.report('later', { master: a, slaves: [], unavailable: [b] });
  await running.printed(/"manager":"later","reports":true/);
  await running.printed(new RegExp(`"manager":"later","node":"${b}","reaches":false`));
  await place.zk.delete(`${place.paths.reports}/later`);
  await running.printed(/"manager":"later","reports":false/);
  running.signal('SIGTERM');
  expect(await running.result).toMatchObject({ code: 143, stderr: '' });
});
