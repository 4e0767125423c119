// Defects that a review of the managers found, on real servers (M…: the review's numbers). Those
// that need no server are in test/move.test.ts.
import { startRedis } from '@incumbent/servers';
import { startProxy } from '@incumbent/zookeeper-testing';
import type { Term } from 'incumbent';
import { describe, expect, test } from 'vitest';
import { encodeNodes } from '../src/layout.ts';
import { Hands } from '../src/manager/hands.ts';
import type { NodeAddress } from '../src/node-address.ts';
import { addressOf } from './support/redis-set.ts';
import { missing, useZooKeeper } from './support/servers.ts';
import { Stage } from './support/stage.ts';
import { until } from './support/waiting.ts';

const zooKeeper = useZooKeeper();
/** So many failures that no node counts as down, even if the machine is suspended for a moment. */
const patient = { maxFailures: 20 };

describe.skipIf(missing !== undefined).concurrent('the only primary there is', () => {
  test('is not taken when it came back empty, and another node has the data (M1)', async (context) => {
    const stage = await Stage.open(context, zooKeeper.server);
    // A frozen node counts as up for long, and one that refuses connections is soon down.
    const { story } = stage.manager('one', { maxFailures: 15, checkEvery: '100ms' });
    const [first, second, third] = await nodesOf(stage);
    await moveTo(stage, second);
    await stage.set.at(first).kill();
    await story.told('judged', ({ node, state }) => node === first && state === 'unavailable');
    await stage.set.command(second, 'SET', 'key', 'value');
    expect(await stage.set.command(second, 'WAIT', 1, 5_000)).toBe(1);
    // Otherwise it copies the empty node by itself, if it notices that first.
    await cutLink(stage, third);
    const { term } = await stage.published(second);
    const count = story.all('judged').length;
    await stage.set.at(second).freeze();
    await stage.set.at(first).start();
    await until('the first one is up', () =>
      story
        .all('judged')
        .slice(count)
        .find(({ node }) => node === first),
    );
    // Its configuration makes it a replica of the first node, whose configuration makes that a
    // primary.
    await stage.set.at(second).kill();
    await stage.set.at(second).start();
    const next = await stage.published(undefined, term);
    expect(next.primary).toBe(third);
    await stage.formed();
    expect(await stage.set.command(third, 'GET', 'key')).toBe('value');
  });
});

describe.skipIf(missing !== undefined).concurrent('a primary whose replicas are away', () => {
  test('stays when its data get another name (M3)', async (context) => {
    const stage = await Stage.open(context, zooKeeper.server, { replicas: 1 });
    stage.manager('one', patient);
    const [first, second] = await nodesOf(stage);
    const { term } = await stage.published(first);
    await cutLink(stage, second);
    await stage.set.command(first, 'SET', 'key', 'value');
    const renamed = await renameData(stage, first);
    const record = await until('the name is noted, or the primary moved', async () => {
      const now = await stage.record();
      return now !== undefined && (now.replicationId === renamed || now.term > term) && now;
    });
    expect(record).toMatchObject({ primary: first, term, replicationId: renamed });
    expect(await stage.set.command(first, 'GET', 'key')).toBe('value');
  });

  test('has the name of its data noted also while another node refuses us (M18)', async (context) => {
    const stage = await Stage.open(context, zooKeeper.server, { replicas: 1 });
    const before = stage.manager('before', patient);
    const [first, second] = await nodesOf(stage);
    await stage.published(first);
    await before.stop();
    await cutLink(stage, second);
    await stage.set.command(second, 'CONFIG', 'SET', 'requirepass', 'unknown');
    const renamed = await renameData(stage, first);
    const { story } = stage.manager('one', patient);
    await story.told('trouble', ({ trouble }) => trouble.code === 'NODE_REFUSED');
    expect(await stage.record()).toMatchObject({ primary: first, replicationId: renamed });
  });
});

describe.skipIf(missing !== undefined).concurrent('a set without a primary', () => {
  test('gets one when that on record came back as a replica, by its configuration (M8)', async (context) => {
    const stage = await Stage.open(context, zooKeeper.server);
    stage.manager('one', patient);
    const [, second] = await nodesOf(stage);
    await moveTo(stage, second);
    const { term } = await stage.published(second);
    await stage.set.command(second, 'SET', 'key', 'value');
    expect(await stage.set.command(second, 'WAIT', 2, 5_000)).toBe(2);
    await stage.set.at(second).kill();
    await stage.set.at(second).start();
    const next = await stage.published(undefined, term);
    expect(next.primary).not.toBe(second);
    await stage.formed();
    expect(await stage.set.command(next.primary as NodeAddress, 'GET', 'key')).toBe('value');
  });
});

describe.skipIf(missing !== undefined).concurrent('the elected manager', () => {
  test('restores `nodes` after it was deleted or overwritten (M11)', async (context) => {
    const stage = await Stage.open(context, zooKeeper.server, { replicas: 1 });
    stage.manager('one', patient);
    const [first, second] = await nodesOf(stage);
    const isRestored = async () => {
      const nodes = await stage.nodes();
      return nodes?.master === first && nodes.slaves.includes(second);
    };
    await until('`nodes` is complete', isRestored);
    await stage.zk.delete(stage.paths.nodes);
    await until('`nodes` is there again', isRestored);
    const wrong = { master: second, slaves: [first], unavailable: [] };
    await stage.zk.set(stage.paths.nodes, encodeNodes(wrong));
    await until('`nodes` is right again', isRestored);
  });

  test('lets another one try when it was told the wrong nodes (M12)', async (context) => {
    const stage = await Stage.open(context, zooKeeper.server, { replicas: 1 });
    const before = stage.manager('before', patient);
    const [first, second] = await nodesOf(stage);
    const { term } = await stage.published(first);
    await before.stop();
    const nodes = stage.set.servers.map(({ port }) => `localhost:${port}`);
    const wrong = stage.manager('wrong', { nodes });
    await wrong.story.told('trouble', ({ trouble }) => trouble.code === 'LAYOUT');
    stage.manager('right');
    await stage.set.at(first).kill();
    const next = await stage.published(undefined, term);
    expect(next).toMatchObject({ primary: second, manager: 'right' });
  });

  test('changes nothing when one Redis is among the nodes under two names (M15)', async (context) => {
    const stage = await Stage.open(context, zooKeeper.server, { replicas: 1 });
    const before = stage.manager('before', patient);
    const [first, second] = await nodesOf(stage);
    await stage.formed();
    await before.stop();
    const reign = await stage.reign();
    const again = `localhost:${stage.set.at(first).port}`;
    const { story } = stage.manager('one', { ...patient, nodes: [first, second, again] });
    const { trouble } = await story.told('trouble', (told) => told.trouble.code !== 'FAILED');
    expect(trouble).toMatchObject({ code: 'LAYOUT', message: expect.stringContaining(again) });
    expect(await stage.set.formation(first)).toBe('formed');
    expect(await stage.reign()).toEqual(reign);
  });

  test('is not overtaken by what it sent in this term and gave up (M7)', async ({
    onTestFinished,
  }) => {
    const server = await startRedis();
    const proxy = await startProxy(server);
    const end = new AbortController();
    const term = { token: 7n, signal: end.signal, assertLeading: () => {} } as unknown as Term;
    const node = addressOf(server);
    let reached = addressOf(proxy);
    const hands = new Hands(
      {
        ...{ id: 'one', access: {}, nodeTimeoutMs: 4_000, tell: () => {} },
        hooks: { reach: () => reached },
      },
      term,
    );
    onTestFinished(async () => {
      hands[Symbol.dispose]();
      await proxy.close();
      await server.close();
    });
    await hands.replication(node);
    proxy.holdRequests();
    await expect(hands.makeReplica(node, '127.0.0.1:1')).rejects.toThrow();
    reached = node;
    await hands.makePrimary(node);
    const clients = String(await server.command('CLIENT', 'LIST'));
    expect(clients.match(/ name=incumbent-redis:7:one:\d+ /g)).toHaveLength(1);
    proxy.letGo();
    await until('all that was held is on its way', () => proxy.counters.bytesHeld === 0);
    expect(await server.command('ROLE')).toContain('master');
  });
});

/** The nodes, the primary first, once the set is complete. */
async function nodesOf(stage: Stage): Promise<readonly [NodeAddress, NodeAddress, NodeAddress]> {
  await stage.formed();
  await stage.published();
  return stage.set.addresses as readonly string[] as readonly [string, string, string];
}

async function moveTo(stage: Stage, node: NodeAddress): Promise<void> {
  await stage.zk.create(stage.paths.manualFailover, node);
  await stage.published(node);
  await stage.formed();
}

/** Cuts a replica off from its primary: it keeps its data, and gets nothing more. */
async function cutLink(stage: Stage, replica: NodeAddress): Promise<void> {
  await stage.set.command(replica, 'CONFIG', 'SET', 'masterauth', 'wrong');
  await stage.set.command(replica, 'CLIENT', 'KILL', 'TYPE', 'master');
}

/** Does what Redis does by itself an hour after the last replica has left. @returns the new name */
async function renameData(stage: Stage, primary: NodeAddress): Promise<string> {
  const nameOf = async () => {
    const info = String(await stage.set.command(primary, 'INFO', 'replication'));
    return /master_replid:(\w+)/.exec(info)?.[1];
  };
  const before = await nameOf();
  await stage.set.command(primary, 'CONFIG', 'SET', 'repl-backlog-ttl', 1);
  return until('the data have another name', async () => {
    const now = await nameOf();
    return now !== before && now;
  });
}
