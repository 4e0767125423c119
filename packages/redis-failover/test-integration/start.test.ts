// Sets that are not in order when a manager starts, and changes that others make without it.
import { describe, expect, test } from 'vitest';
import { encodeNodes } from '../src/layout.ts';
import type { NodeAddress } from '../src/node-address.ts';
import { missing, useZooKeeper } from './support/servers.ts';
import { Stage } from './support/stage.ts';
import { until } from './support/waiting.ts';

const zooKeeper = useZooKeeper();

describe.skipIf(missing !== undefined).concurrent('a manager', () => {
  test('tells of two primaries, changes nothing, and goes on when there is one', async (context) => {
    const stage = await Stage.open(context, zooKeeper.server);
    const [primary, second] = stage.set.servers;
    await second?.promote();
    const roles = await stage.set.roles();
    const { story } = stage.manager('one');
    const { trouble } = await story.told(
      'trouble',
      (event) => event.trouble.code === 'MULTIPLE_PRIMARIES',
    );
    expect(trouble.message).toContain(stage.set.addresses[0]);
    expect(trouble.message).toContain(stage.set.addresses[1]);
    expect(await stage.set.roles()).toEqual(roles);
    expect([await stage.record(), await stage.nodes()]).toEqual([undefined, undefined]);
    if (primary !== undefined) await second?.follow(primary);
    expect((await stage.published()).primary).toBe(stage.set.addresses[0]);
    await story.told('recovered');
  });

  test('tells that there is no primary, changes nothing, and goes on when there is', async (context) => {
    const stage = await Stage.open(context, zooKeeper.server);
    const [primary, second] = stage.set.servers;
    await primary?.command('REPLICAOF', '127.0.0.1', second?.port ?? 0);
    const { story } = stage.manager('one');
    await story.told('trouble', ({ trouble }) => trouble.code === 'NO_PRIMARY');
    expect(Object.values(await stage.set.roles())).toEqual(['replica', 'replica', 'replica']);
    expect([await stage.record(), await stage.nodes()]).toEqual([undefined, undefined]);
    await second?.promote();
    expect((await stage.published()).primary).toBe(stage.set.addresses[1]);
    await stage.formed();
  });

  test('takes over a primary that was promoted by hand', async (context) => {
    const stage = await Stage.open(context, zooKeeper.server);
    const before = stage.manager('before');
    const first = await stage.published();
    const writer = await stage.writer();
    await writer.writes();
    // No client can see this before it is complete.
    await before.stop();
    const [primary, second, third] = stage.set.servers;
    if (second === undefined) throw new Error('no servers');
    await second.promote();
    await Promise.all([primary?.follow(second), third?.follow(second)]);
    const { story } = stage.manager('after');
    const next = await stage.published(undefined, first.term);
    expect(next.primary).toBe(stage.set.addresses[1]);
    await story.told('moved', ({ reason }) => reason === 'found');
    await writer.writes('a write to it', ({ node }) => node === next.primary);
    await stage.formed();
  });

  test('after managers of the gem have moved the primary, clients and our managers follow (B5)', async (context) => {
    const stage = await Stage.open(context, zooKeeper.server, { replicas: 1 });
    const ours = stage.manager('ours');
    const [first, second] = stage.set.addresses as [NodeAddress, NodeAddress];
    const { term } = await stage.published(first);
    await stage.formed();
    const client = await stage.client();
    await client.redis.set('k', 'of the first');
    expect(client.current).toMatchObject({ primary: first, term });
    await ours.stop();
    await moveAsGem(stage, second, [first]);
    await client.redis.set('k', 'of the second');
    expect(client.current).toMatchObject({ primary: second, term: undefined });
    expect(await stage.set.command(second, 'GET', 'k')).toBe('of the second');
    const again = stage.manager('again');
    const record = await stage.published(second, term);
    expect(record).toMatchObject({ term: term + 1, former: first });
    await until('the client knows the term', () => client.current.term === term + 1);
    await client.redis.set('k', 'of ours again');
    expect(again.story.all('moved')).toEqual([]);
    expect(again.story.all('quarantined')).toEqual([]);
  });

  test('after managers of the gem have moved the primary away and back, it is the primary of the next term', async (context) => {
    const stage = await Stage.open(context, zooKeeper.server);
    const ours = stage.manager('ours');
    const [first, second, third] = stage.set.addresses as [NodeAddress, NodeAddress, NodeAddress];
    const { term } = await stage.published(first);
    await stage.formed();
    const client = await stage.client();
    await client.redis.set('k', 'of ours');
    // The third node keeps its data of the term on record, and is frozen meanwhile.
    await stage.set.at(third).freeze();
    await ours.stop();
    await moveAsGem(stage, second, [first]);
    await client.redis.set('k', 'of the second');
    expect(client.current).toMatchObject({ primary: second, term: undefined });
    await moveAsGem(stage, first, [second]);
    await until('the client is back', () => client.current.primary === first);
    await client.redis.set('k', 'of the first');
    expect(client.current.term).toBe(undefined);
    stage.set.at(third).thaw();
    // The gem has written no primary into its file.
    await stage.set.at(third).promote();
    const again = stage.manager('again');
    const record = await stage.published(first, term);
    expect(record).toMatchObject({ term: term + 1, former: first });
    await until('the client knows the term', () => client.current.term === term + 1);
    expect(await client.redis.get('k')).toBe('of the first');
    expect(again.story.all('moved')).toEqual([]);
    expect(again.story.all('quarantined').map(({ node }) => node)).not.toContain(first);
  });

  test('does not look like a move of the gem when it creates `nodes` anew', async (context) => {
    const stage = await Stage.open(context, zooKeeper.server, { replicas: 1 });
    stage.manager('one');
    const { term, primary } = await stage.published();
    await stage.formed();
    await stage.zk.delete(stage.paths.nodes);
    await until('it stands there again', () => stage.zk.exists(stage.paths.nodes));
    const [record, nodes] = await Promise.all([
      stage.zk.get(stage.paths.primary),
      stage.zk.get(stage.paths.nodes),
    ]);
    expect(nodes.stat.czxid).toBeLessThanOrEqual(record.stat.mzxid);
    expect(await stage.record()).toMatchObject({ term, primary });
  });

  test('lets a manager of the gem that was there before decide, and one that comes later wait', async (context) => {
    const stage = await Stage.open(context, zooKeeper.server, { replicas: 1 });
    const lock = `/_zklocking/${stage.paths.root.replaceAll('/', '__')}__master_redis_node_manager_lock`;
    await stage.zk.ensurePath(lock);
    // Takes a place in the lock as \`zk.locker(name).lock(true)\` does.
    const place = () => stage.zk.create(`${lock}/ex`, '', { ephemeral: true, sequential: true });
    const before = await place();
    const ours = stage.manager('ours');
    await ours.story.told('trouble', ({ trouble }) => trouble.code === 'RUBY_MANAGERS');
    expect(await stage.record()).toBe(undefined);
    await stage.zk.delete(before.path);
    const { primary, term } = await stage.published();
    const later = await place();
    await stage.set.at(primary as NodeAddress).kill();
    await stage.published(undefined, term);
    const [troubles, children] = [ours.story.all('trouble'), await stage.zk.getChildren(lock)];
    expect(troubles.filter(({ trouble }) => trouble.code === 'RUBY_MANAGERS')).toHaveLength(1);
    expect(later.path).toBe(`${lock}/${children.children.toSorted().at(-1)}`);
    expect(children.children).toHaveLength(2);
    await ours.stop();
    await until('it holds the lock', async () => {
      const { children: left } = await stage.zk.getChildren(lock);
      return left.length === 1 && later.path.endsWith(left[0] as string);
    });
  });

  test('with another node list than the others is named by all of them (B7)', async (context) => {
    const stage = await Stage.open(context, zooKeeper.server);
    const [first, second, third] = stage.set.addresses as [NodeAddress, NodeAddress, NodeAddress];
    const whole = stage.manager('whole');
    const short = stage.manager('short', { nodes: [first, second] });
    for (const { manager } of [whole, short]) {
      await until('it is named', () => {
        const [named, ...others] = manager.status.shortLists;
        return others.length === 0 && named?.manager === 'short' && `${named.lacks}` === third;
      });
    }
    await short.stop();
    await until('it is forgotten', () => whole.manager.status.shortLists.length === 0);
  });

  test('provides a primary when it was made a replica and no other node the primary', async (context) => {
    const stage = await Stage.open(context, zooKeeper.server);
    const { story } = stage.manager('one');
    const first = await stage.published();
    const writer = await stage.writer();
    await writer.writes();
    const [primary, second] = stage.set.servers;
    // Two nodes that copy each other may lose data in Redis itself. That is not judged here.
    await primary?.command('REPLICAOF', '127.0.0.1', second?.port ?? 0);
    const next = await stage.published(undefined, first.term);
    await story.told('moved', ({ reason }) => reason === 'lost-role');
    await writer.writes('a write to it', ({ node }) => node === next.primary);
    await stage.formed();
  });

  test('makes a replica of a second primary that turns up later', async (context) => {
    const stage = await Stage.open(context, zooKeeper.server);
    stage.manager('one');
    const first = await stage.published();
    const writer = await stage.writer();
    await writer.writes();
    await stage.set.servers[2]?.promote();
    await stage.formed();
    expect(await stage.record()).toMatchObject({ term: first.term, primary: first.primary });
    await stage.verdict(writer);
  });

  test('logs in with a password, and without it tells so and changes nothing', async (context) => {
    const password = 'the password of the set';
    const stage = await Stage.open(context, zooKeeper.server, { password });
    const wrong = stage.manager('wrong', { password: 'another one' });
    const { trouble } = await wrong.story.told(
      'trouble',
      (event) => event.trouble.code === 'NODE_REFUSED',
    );
    expect(trouble.message).not.toContain('another one');
    expect(await stage.record()).toBeUndefined();
    await wrong.stop();
    expect(wrong.story.text()).not.toContain('another one');
    const right = stage.manager('right');
    const first = await stage.published();
    const writer = await stage.writer();
    await writer.writes();
    await stage.set.at(first.primary as NodeAddress).kill();
    const next = await stage.published(undefined, first.term);
    await writer.writes('a write to the new primary', ({ node }) => node === next.primary);
    expect(right.story.text()).not.toContain(password);
    await stage.verdict(writer);
  });
});

/** Moves the primary as a manager of the gem does: it knows only `nodes`, and creates it anew. */
async function moveAsGem(
  stage: Stage,
  to: NodeAddress,
  others: readonly NodeAddress[],
): Promise<void> {
  await stage.zk.delete(stage.paths.nodes);
  await stage.set.at(to).promote();
  for (const other of others) await stage.set.at(other).follow(stage.set.at(to));
  const nodes = { master: to, slaves: others, unavailable: [] };
  await stage.zk.create(stage.paths.nodes, encodeNodes(nodes));
}
