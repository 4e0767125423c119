// Which node's data count, on real servers: the ways in which acknowledged writes were lost (A1, F1
// to F5). In each case a node that can be reached has the writes, and by appearances another one
// was promoted.
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { connect } from 'node:net';
import { dirname } from 'node:path';
import type { RedisServer } from '@incumbent/servers';
import { startRedis } from '@incumbent/servers';
import type { TestContext } from 'vitest';
import { describe, expect, test } from 'vitest';
import { requestFailover } from '../src/client/request-failover.ts';
import type { ManagerHooks } from '../src/manager/hooks.ts';
import type { NodeAddress } from '../src/node-address.ts';
import { parseInfo } from '../src/redis/replication.ts';
import { addressOf } from './support/redis-set.ts';
import { missing, useZooKeeper } from './support/servers.ts';
import { Stage } from './support/stage.ts';
import { until } from './support/waiting.ts';

const zooKeeper = useZooKeeper();
const writes = 200;
/** The default. */
const proven = { rejoin: 'proven' } as const;

describe.skipIf(missing !== undefined)(
  'no write is lost that a node has which can be reached',
  () => {
    test('when a live primary was replaced by hand, and a stale replica is left (A1)', async (context) => {
      const stage = await Stage.open(context, zooKeeper.server);
      const before = stage.manager('before', proven);
      const [first, second, third] = await nodesOf(stage);
      const { term } = await stage.published(first);
      await before.stop();
      await stage.set.at(first).kill();
      await cutLink(stage, third);
      await stage.set.at(second).promote();
      await write(stage, second);
      const { story } = stage.manager('one', proven);
      expect(await stage.published(undefined, term)).toMatchObject({ primary: second });
      expect(await story.told('moved')).toMatchObject({ reason: 'found', to: second });
      expect(await written(stage, second)).toBe(writes);
    });

    test('when the primary comes back empty, whatever its configuration promises (F1)', async (context) => {
      const stage = await Stage.open(context, zooKeeper.server);
      // Enough failures for the node to come back before it counts as down.
      const { story } = stage.manager('one', { ...proven, maxFailures: 20 });
      const [first] = await nodesOf(stage);
      const { term } = await stage.published(first);
      await stage.set.command(first, 'CONFIG', 'SET', 'appendonly', 'yes');
      await write(stage, first);
      expect(await stage.set.command(first, 'WAIT', 2, 10_000)).toBe(2);
      // The default of Redis 7. With a delay of 0 replicas copy 0.1 s after the start, and no
      // manager is as fast.
      const delay = ['--repl-diskless-sync-delay', '5'];
      const lost = await emptied(context, stage, first, ['--appendonly', 'yes', ...delay]);
      const next = await stage.published(undefined, term);
      expect(next.primary).not.toBe(first);
      expect(await written(stage, next.primary as NodeAddress)).toBe(writes);
      expect(await story.told('moved')).toMatchObject({ reason: 'lost-data' });
      await until(
        'it has copied the data',
        async () => (await lost.command('LLEN', 'w')) === writes,
      );
    });

    test('when the primary comes back in mid-move with old data, and loads them first', async (context) => {
      const stage = await Stage.open(context, zooKeeper.server);
      const first = stage.set.addresses[0] as NodeAddress;
      let back: Promise<RedisServer> | undefined;
      const onStep: ManagerHooks['onStep'] = (step) => {
        if (step === 'after revoke') back ??= startsSlowly(context, stage, first);
        return Promise.resolve();
      };
      const { story } = stage.manager('one', { ...proven, clientView: '6s' }, { onStep });
      await nodesOf(stage);
      const { term } = await stage.published(first);
      for (let key = 0; key < 400; key += 1) await stage.set.command(first, 'SET', `k${key}`, '');
      await stage.set.command(first, 'SAVE');
      await write(stage, first);
      expect(await stage.set.command(first, 'WAIT', 2, 10_000)).toBe(2);
      await stage.set.at(first).kill();
      const next = await stage.published(undefined, term);
      expect(next.primary).not.toBe(first);
      expect(await written(stage, next.primary as NodeAddress)).toBe(writes);
      expect(await story.told('moved')).toMatchObject({ reason: 'down' });
      const server = await back;
      const copied = async () => (await server?.command('LLEN', 'w')) === writes;
      await until('it has copied the data', () => copied().catch(() => false));
    });

    test('when another node has data of somewhere else, and will not be set aside', async (context) => {
      const stage = await Stage.open(context, zooKeeper.server);
      const before = stage.manager('before', proven);
      const [first, second, third] = await nodesOf(stage);
      const { term } = await stage.published(first);
      await write(stage, first);
      expect(await stage.set.command(first, 'WAIT', 2, 10_000)).toBe(2);
      await before.stop();
      const foreign = await startRedis();
      context.onTestFinished(() => foreign.close());
      await foreign.command('SET', 'foreign', '1');
      await stage.set.at(third).follow(foreign);
      await stage.set.at(third).promote();
      await stage.set.command(third, 'ACL', 'SETUSER', 'default', '-replicaof', '-slaveof');
      await stage.set.at(first).kill();
      const { story } = stage.manager('one', proven);
      expect(await stage.published(undefined, term)).toMatchObject({ primary: second });
      expect(await story.told('moved')).toMatchObject({ reason: 'down', to: second });
      expect(await written(stage, second)).toBe(writes);
      expect(await stage.set.command(third, 'GET', 'foreign')).toBe('1');
    });

    test('when the last position of the primary cannot be read', async (context) => {
      const stage = await Stage.open(context, zooKeeper.server);
      const before = stage.manager('before', proven);
      const [first] = await nodesOf(stage);
      const { term } = await stage.published(first);
      const position = async () => (await stage.zk.get(stage.paths.position)).text;
      await until('a position is written', () => position().then(Boolean, () => false));
      await before.stop();
      await stage.zk.set(stage.paths.position, 'nothing of ours');
      await write(stage, first);
      expect(await stage.set.command(first, 'WAIT', 2, 10_000)).toBe(2);
      await stage.set.at(first).kill();
      stage.manager('one', proven);
      const next = await stage.published(undefined, term);
      expect(await written(stage, next.primary as NodeAddress)).toBe(writes);
      await until('it is written anew', async () => (await position()).startsWith('{'));
    });

    test('when a failover is asked for, and the replica has lost its link (F2)', async (context) => {
      const stage = await Stage.open(context, zooKeeper.server, { replicas: 1 });
      stage.manager('one', { ...proven, maxFailures: 20 });
      const [first, second] = await nodesOf(stage);
      const { term } = await stage.published(first);
      await cutLink(stage, second);
      await write(stage, first);
      const client = await stage.client();
      const { host, port } = { host: '127.0.0.1', port: stage.set.at(second).port };
      const asked = client.manualFailover({ host, port }, { timeout: '3s' });
      await expect(asked).rejects.toMatchObject({
        code: 'REQUEST_REFUSED',
        message: expect.stringMatching(/has no connection with its primary, and lacks .*\d+ bytes/),
      });
      expect(await stage.record()).toMatchObject({ primary: first, term });
      expect(await written(stage, first)).toBe(writes);
      // No writer has to wait.
      await stage.set.command(first, 'SET', 'after', '1');
    });

    test('when the link is lost after the failover was begun: the former primary goes on (F2)', async (context) => {
      const stage = await Stage.open(context, zooKeeper.server, { replicas: 1 });
      const [first, second] = stage.set.addresses as [NodeAddress, NodeAddress];
      const onStep: ManagerHooks['onStep'] = async (step) => {
        if (step !== 'after revoke') return;
        await cutLink(stage, second);
        await write(stage, first);
      };
      stage.manager('one', { ...proven, maxFailures: 20 }, { onStep });
      await nodesOf(stage);
      const client = await stage.client();
      await expect(client.manualFailover()).rejects.toMatchObject({
        code: 'REQUEST_REFUSED',
        message: expect.stringMatching(/lacks what .* has \(\d+ bytes .* goes on/),
      });
      expect(await stage.record()).toMatchObject({ primary: first });
      expect(await written(stage, first)).toBe(writes);
      await stage.set.command(first, 'SET', 'after', '1');
    });

    test('when most managers do not reach the replica that has most (F3)', async (context) => {
      const stage = await Stage.open(context, zooKeeper.server);
      const [first, second, third] = stage.set.addresses as [NodeAddress, NodeAddress, NodeAddress];
      const elected = stage.manager('elected', proven);
      await elected.story.told('elected');
      await nodesOf(stage);
      const proxy = await stage.redisLink(second);
      proxy.refuse();
      const reach = (node: NodeAddress) => (node === second ? addressOf(proxy) : node);
      for (const id of ['two', 'three']) stage.manager(id, proven, { reach });
      await elected.story.told(
        'judged',
        (told) => told.node === second && told.state === 'unavailable',
      );
      const { term } = await stage.published(first);
      await cutLink(stage, third);
      await write(stage, first);
      expect(await stage.set.command(first, 'WAIT', 1, 10_000)).toBe(1);
      await stage.set.at(first).kill();
      expect(await stage.published(undefined, term)).toMatchObject({ primary: second });
      expect(await written(stage, second)).toBe(writes);
    });

    test('when the primary comes back empty while its only replica stands still (F4)', async (context) => {
      const stage = await Stage.open(context, zooKeeper.server, { replicas: 1 });
      const { story } = stage.manager('one', { ...proven, maxFailures: 20, nodeTimeout: '200ms' });
      const [first, second] = await nodesOf(stage);
      const { term } = await stage.published(first);
      await write(stage, first);
      expect(await stage.set.command(first, 'WAIT', 1, 10_000)).toBe(1);
      await stage.set.at(second).freeze();
      await stage.set.at(first).kill();
      await stage.set.at(first).start();
      await story.told('trouble', ({ trouble }) =>
        /was started anew, and nothing says that it has data/.test(trouble.message),
      );
      stage.set.at(second).thaw();
      expect(await stage.published(undefined, term)).toMatchObject({ primary: second });
      expect(await written(stage, second)).toBe(writes);
      await until(
        'the other one has copied them',
        async () => (await written(stage, first)) === writes,
      );
    });

    test('when the replica that has most copies, and has not begun to load (F5)', async (context) => {
      const stage = await Stage.open(context, zooKeeper.server);
      const [first, second, third] = await nodesOf(stage, 'one');
      const { term } = await stage.published(first);
      await cutLink(stage, third);
      await write(stage, first);
      expect(await stage.set.command(first, 'WAIT', 1, 10_000)).toBe(1);
      // The copy takes long. The replica cannot continue partially, and still has its data.
      await stage.set.command(first, 'CONFIG', 'SET', 'repl-diskless-sync', 'no');
      await stage.set.command(first, 'CONFIG', 'SET', 'rdb-key-save-delay', 100_000);
      await stage.set.command(first, 'CONFIG', 'SET', 'repl-backlog-size', 16_384);
      await cutLink(stage, second);
      await stage.set.command(first, 'SET', 'big', 'x'.repeat(100_000));
      for (let i = 0; i < 50; i += 1) await stage.set.command(first, 'SET', `k${i}`, 'v');
      await stage.set.command(second, 'CONFIG', 'SET', 'masterauth', '');
      await until('it copies', async () => {
        const info = parseInfo(String(await stage.set.command(second, 'INFO', 'replication')));
        return info.get('master_sync_in_progress') === '1';
      });
      await stage.set.at(first).kill();
      const next = await stage.published(undefined, term);
      expect(await written(stage, next.primary as NodeAddress)).toBe(writes);
    });
  },
);

describe.skipIf(missing !== undefined)('a node that has what the primary lacks', () => {
  /** The first node has writes that the second one, the primary, never got. */
  async function forked(context: TestContext) {
    const stage = await Stage.open(context, zooKeeper.server, { replicas: 1 });
    const { story, manager } = stage.manager('one', proven);
    const [first, second] = await nodesOf(stage);
    const { term } = await stage.published(first);
    await cutLink(stage, second);
    await write(stage, first);
    await stage.set.at(first).freeze();
    await stage.published(second, term);
    stage.set.at(first).thaw();
    const told = await story.told('quarantined', ({ node }) => node === first);
    expect(told).toMatchObject({
      primary: second,
      missing: expect.stringMatching(/^\d+ bytes of writes/),
    });
    await stage.set.command(second, 'CONFIG', 'SET', 'masterauth', '');
    const ask = (action: 'keep' | 'discard', node: NodeAddress) =>
      requestFailover(
        stage.zk,
        stage.paths,
        { action, node, requestedBy: 'the test' },
        { timeoutMs: 30_000 },
      );
    return { stage, manager, first, second, ask };
  }

  test('is set aside, and copies the primary when an operator says so', async (context) => {
    const { stage, manager, first, second, ask } = await forked(context);
    await until('it is shown', () => manager.status.quarantined.includes(first));
    expect(await written(stage, first)).toBe(writes);
    await expect(stage.set.command(first, 'SET', 'k', 'v')).rejects.toThrow('READONLY');
    // The default of Redis: the copy begins some looks later.
    await stage.set.command(second, 'CONFIG', 'SET', 'repl-diskless-sync-delay', 5);
    expect(await ask('discard', first)).toMatchObject({ primary: second });
    await stage.formed();
    expect(await written(stage, first)).toBe(0);
    await until('it is shown no more', () => !manager.status.quarantined.includes(first));
  });

  test('is the primary again when an operator says so, and the other one is judged by that', async (context) => {
    const { stage, first, second, ask } = await forked(context);
    await stage.set.command(second, 'SET', 'new', 'value');
    expect(await ask('keep', first)).toMatchObject({ primary: first });
    await stage.published(first);
    expect(await written(stage, first)).toBe(writes);
    // It has a write that the new primary lacks.
    await until('the other one is set aside', async () => {
      const info = parseInfo(String(await stage.set.command(second, 'INFO', 'replication')));
      return info.get('master_port') === '1';
    });
    expect(await stage.set.command(second, 'GET', 'new')).toBe('value');
    expect(await ask('discard', second)).toMatchObject({ primary: first });
    await stage.formed();
  });
});

describe.skipIf(missing !== undefined)(
  'a primary that was cut off while another one was made',
  () => {
    /** The first node goes on by itself, cut off from its manager and its replica. */
    async function cutOff(
      context: TestContext,
      alone: (stage: Stage, first: NodeAddress) => unknown,
    ) {
      const stage = await Stage.open(context, zooKeeper.server, { replicas: 1 });
      const [first, second] = stage.set.addresses as [NodeAddress, NodeAddress];
      // By default the first PING to a replica comes after 10 s.
      await stage.set.command(first, 'CONFIG', 'SET', 'repl-ping-replica-period', 1);
      const proxy = await stage.redisLink(first);
      const reach = (node: NodeAddress) => (node === first ? addressOf(proxy) : node);
      const { story, manager } = stage.manager('one', proven, { reach });
      await nodesOf(stage);
      const { term } = await stage.published(first);
      await stage.set.command(first, 'SET', 'short', '1', 'PX', 4_000);
      await stage.set.command(first, 'SET', 'long', '1', 'PX', 300_000);
      expect(await stage.set.command(first, 'WAIT', 1, 10_000)).toBe(1);
      proxy.refuse();
      await stage.published(second, term);
      await alone(stage, first);
      // Redis sends PINGs as long as it has a replica. This one never answers, and never copies.
      const before = await offsetOf(stage, first);
      const replica = await fakeReplica(
        context,
        stage.set.at(first).port,
        before.stream,
        before.at + 1,
      );
      await until(
        'it has sent PINGs',
        async () => (await offsetOf(stage, first)).at > before.at + 14,
      );
      replica.destroy();
      await proxy.pass();
      return { stage, story, manager, first, second };
    }

    test('copies that one when it has counted nothing but PINGs and expired keys', async (context) => {
      const { stage, story, first } = await cutOff(context, async ({ set }, node) => {
        await set.command(node, 'PUBLISH', 'somewhere', 'heard by nobody');
        await until(
          'a key has expired',
          async () => (await set.command(node, 'GET', 'short')) === null,
        );
      });
      await stage.formed();
      await story.told('reconciled', ({ node }) => node === first);
      expect(story.all('quarantined')).toEqual([]);
    });

    test('is set aside when it has a write that no other node has, and says how many', async (context) => {
      const { story, manager, first, stage } = await cutOff(context, async ({ set }, node) => {
        await set.command(node, 'SET', 'only here', '1');
      });
      const told = await story.told('quarantined', ({ node }) => node === first);
      expect(told.missing).toMatch(/bytes of writes after \d+: 1 writes \(SET\)/);
      await until('it is shown', () => manager.status.quarantined.includes(first));
      expect(await stage.set.command(first, 'GET', 'only here')).toBe('1');
    });

    test('is set aside when it has deleted what the new primary has still', async (context) => {
      const { story, first } = await cutOff(context, async ({ set }, node) => {
        await set.command(node, 'DEL', 'long');
      });
      const told = await story.told('quarantined', ({ node }) => node === first);
      expect(told.missing).toMatch(/a deletion, or the end of a key that expired/);
    });
  },
);

async function offsetOf(stage: Stage, node: NodeAddress) {
  const info = parseInfo(String(await stage.set.command(node, 'INFO', 'replication')));
  return { stream: info.get('master_replid') ?? '', at: Number(info.get('master_repl_offset')) };
}

/** A connection that Redis takes for a replica. */
async function fakeReplica(
  { onTestFinished }: TestContext,
  port: number,
  stream: string,
  from: number,
): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port });
  onTestFinished(() => {
    socket.destroy();
  });
  const [answer] = (await Promise.all([
    once(socket, 'data'),
    once(socket, 'connect').then(() => socket.write(`PSYNC ${stream} ${from}\r\n`)),
  ])) as [[Buffer], boolean];
  expect(answer[0].toString()).toMatch(/^\+CONTINUE/);
  return socket;
}

/** The nodes, the primary first, once the set is complete. */
async function nodesOf(
  stage: Stage,
  manager?: string,
): Promise<readonly [NodeAddress, NodeAddress, NodeAddress]> {
  if (manager !== undefined) stage.manager(manager, proven);
  await stage.published();
  await stage.formed();
  return stage.set.addresses as readonly string[] as readonly [string, string, string];
}

/** Writes a number of values that Redis acknowledges. */
async function write(stage: Stage, node: NodeAddress): Promise<void> {
  const values = Array.from({ length: writes }, (_, at) => at);
  expect(await stage.set.command(node, 'RPUSH', 'w', ...values)).toBe(writes);
}

async function written(stage: Stage, node: NodeAddress): Promise<unknown> {
  return stage.set.command(node, 'LLEN', 'w');
}

/** Cuts a replica off from its primary: it keeps its data, and gets nothing more. */
async function cutLink(stage: Stage, replica: NodeAddress): Promise<void> {
  await stage.set.command(replica, 'CONFIG', 'SET', 'masterauth', 'wrong');
  await stage.set.command(replica, 'CLIENT', 'KILL', 'TYPE', 'master');
}

/** Starts the same node with its saved data, which it reads for half a second. */
async function startsSlowly(
  { onTestFinished }: TestContext,
  stage: Stage,
  node: NodeAddress,
): Promise<RedisServer> {
  const { port, logPath } = stage.set.at(node);
  const server = await startRedis({
    port,
    arguments: [
      ...['--dir', dirname(logPath), '--repl-diskless-sync-delay', '1'],
      ...['--key-load-delay', '1200', '--loading-process-events-interval-bytes', '1024'],
    ],
  });
  onTestFinished(() => server.close());
  return server;
}

/** Starts the same node with an empty directory. */
async function emptied(
  { onTestFinished }: TestContext,
  stage: Stage,
  node: NodeAddress,
  extra: readonly string[],
): Promise<RedisServer> {
  const { port } = stage.set.at(node);
  await stage.set.at(node).kill();
  const server = await startRedis({ port, arguments: extra });
  onTestFinished(() => server.close());
  return server;
}
