import { expect, it } from 'vitest';
import {
  connect,
  InvalidArgumentError,
  NodeExistsError,
  RefusedError,
  ZooKeeperError,
} from '../../src/index.ts';
import type { World } from './world.ts';
import { refusal } from './world.ts';

/** Helpers that take several requests, and requests about the tree as a whole. */
export function helpers(world: World): void {
  it('sync lets a client see what another one wrote', async () => {
    const { follower = world.servers.url, options } = world.servers;
    const client = await world.client();
    // The leader answers before it has applied all that it has committed.
    const other = world.later(await connect(follower + world.folder, options));
    await other.sync('/');
    for (let i = 0; i < 10; i += 1) {
      const { path, zxid } = await client.create('/n', null, { sequential: true });
      await other.sync('/');
      const { stat } = await other.stat(path);
      expect(stat?.czxid).toBe(zxid);
    }
    await other.sync();
  });

  it('lists the ephemeral nodes of the session', async () => {
    const [client, other] = [await world.client(), await world.client()];
    await client.create('/a');
    await client.create('/b');
    for (const path of ['/a/1', '/a/2', '/b/1']) {
      await client.create(path, null, { ephemeral: true });
    }
    await other.create('/a/others', null, { ephemeral: true });
    expect([...(await client.getEphemerals()).paths].sort()).toEqual(['/a/1', '/a/2', '/b/1']);
    expect([...(await client.getEphemerals('/a')).paths].sort()).toEqual(['/a/1', '/a/2']);
    expect((await client.getEphemerals('/none')).paths).toEqual([]);
  });

  it('lists no ephemeral nodes of the session outside of the chroot', async () => {
    const { folder, servers } = world;
    const outside = world.later(await connect(servers.url, servers.options));
    await outside.sync('/');
    await outside.create(`${folder}x`, null, { ephemeral: true });
    await outside.create(`${folder}/mine`, null, { ephemeral: true });
    const session = outside.exportSession();
    await outside.close({ keepSession: true });
    const client = await world.client({ session });
    expect((await client.getEphemerals()).paths).toEqual(['/mine']);
  });

  it('counts all nodes below', async () => {
    const client = await world.client();
    expect((await client.getAllChildrenNumber('/')).count).toBe(0);
    await client.ensurePath('/a/b/c');
    await client.create('/a/d');
    expect((await client.getAllChildrenNumber('/')).count).toBe(4);
    expect((await client.getAllChildrenNumber('/a')).count).toBe(3);
    expect((await client.getAllChildrenNumber('/a/d')).count).toBe(0);
  });

  it('reads the configuration of the servers', async () => {
    const client = await world.client();
    const { text, stat } = await client.getConfig();
    expect(stat.version).toBeTypeOf('number');
    if (world.capabilities.dynamicConfig) {
      expect(text).toMatch(/^server\.1=/m);
      expect(text).toMatch(/^version=/m);
    }
  });

  it('changes no members unless the servers allow it', async () => {
    const client = await world.client();
    await refusal(client.reconfig({ leaving: [9] }), RefusedError, { code: 'RECONFIG_DISABLED' });
    await refusal(client.reconfig({}), InvalidArgumentError);
    await refusal(client.reconfig({ members: [], leaving: [1] }), InvalidArgumentError);
  });

  it('speaks to servers of 3.4 without what they do not know', async () => {
    const client = await world.client({ compatibility: '3.4' });
    const created = await client.create('/n', 'x', { sequential: true });
    expect(created).toMatchObject({ path: '/n0000000000', stat: null });
    const { results } = await client.transaction().create('/m').check('/m', 0).commit();
    expect(results[0]).toMatchObject({ path: '/m', stat: null });
    await refusal(client.addWatch('/m'), InvalidArgumentError);
  });

  it('ensures a path, whichever client is first', async () => {
    const [client, other] = [await world.client(), await world.client()];
    await Promise.all([client, other].map((one) => one.ensurePath('/a/b/c', { data: 'x' })));
    expect((await client.get('/a/b/c')).text).toBe('x');
    await client.set('/a/b/c', 'y');
    await client.ensurePath('/a/b/c', { data: 'x' });
    expect((await client.get('/a/b/c')).text).toBe('y');
    await client.ensurePath('/');
  });

  it('deletes a tree, and only that', async () => {
    const client = await world.client();
    for (const branch of ['/tree', '/tree/a', '/tree/a/b', '/tree/c', '/treetop']) {
      await client.create(branch);
    }
    await Promise.all(Array.from({ length: 150 }, (_, i) => client.create(`/tree/c/${i}`)));
    const { deleted } = await client.deleteRecursive('/tree');
    expect(deleted).toBe(154);
    expect((await client.getChildren('/')).children).toEqual(['treetop']);
    expect((await client.deleteRecursive('/tree')).deleted).toBe(0);
  });

  it('deletes no tree above its bound', async () => {
    const client = await world.client();
    await client.ensurePath('/tree/a/b');
    await refusal(client.deleteRecursive('/tree', { maxNodes: 2 }), ZooKeeperError, {
      code: 'TOO_MANY_NODES',
    });
    expect(await client.exists('/tree')).toBe(true);
    expect((await client.deleteRecursive('/tree', { maxNodes: 3 })).deleted).toBe(3);
  });

  it('a protected create can be found again', async () => {
    const client = await world.client();
    const guid = '0123456789abcdef0123456789abcdef';
    const first = await client.create('/n-', 'x', {
      protected: guid,
      ephemeral: true,
      sequential: true,
    });
    expect(first.path).toBe(`/_c_${guid}-n-0000000000`);
    expect(first.stat?.ephemeralOwner).toBe(client.session?.id);
    const second = await client.create('/n-', 'x', { protected: true, sequential: true });
    expect(second.path).toMatch(/^\/_c_[0-9a-f-]{32,36}-n-0000000001$/);
    const plain = await client.create('/plain', 'x', { protected: guid });
    expect(plain.path).toBe(`/_c_${guid}-plain`);
    await refusal(client.create('/plain', 'x', { protected: guid }), NodeExistsError);
    await refusal(client.create('/n', null, { protected: '' }), InvalidArgumentError);
  });

  it('a protected create whose reply is lost makes one node', async () => {
    const [client, proxy] = await world.behindProxy();
    await client.create('/queue');
    proxy.dropReplies();
    const create = client.create('/queue/n-', 'x', {
      protected: true,
      ephemeral: true,
      sequential: true,
    });
    const other = await world.client();
    let names: readonly string[] = [];
    while (names.length === 0) names = (await other.getChildren('/queue')).children;
    proxy.cut();
    await proxy.pass();
    const { path } = await create;
    expect(path).toBe(`/queue/${names[0]}`);
    expect((await client.getChildren('/queue')).children).toEqual(names);
  });

  it('hides the chroot in paths, errors and events', async () => {
    const client = await world.client();
    const full = world.folder;
    expect((await client.get('/')).stat.czxid).toBe((await world.root.get(full)).stat.czxid);
    const created = await client.create('/n', 'x');
    expect(created.path).toBe('/n');
    await world.root.sync('/');
    expect((await world.root.get(`${full}/n`)).text).toBe('x');
    const error = await refusal(client.get('/none'), ZooKeeperError, { path: '/none' });
    expect(error.message).not.toContain(full);
    const failed = await client
      .transaction()
      .check('/none')
      .commit()
      .catch((reason: unknown) => reason as ZooKeeperError);
    expect(failed).toMatchObject({ cause: { path: '/none' } });
    const { results } = await client
      .transaction()
      .create('/t')
      .create('/t/s', null, { sequential: true })
      .commit();
    expect(results).toMatchObject([{ path: '/t' }, { path: '/t/s0000000000' }]);

    const [watch, root] = [await client.watch('/n'), await client.watchChildren('/')];
    const persistent = await client.addWatch('/', { recursive: true });
    await client.delete('/n');
    expect(await watch.changed).toMatchObject({ path: '/n' });
    expect(await root.changed).toMatchObject({ path: '/' });
    const first = await persistent[Symbol.asyncIterator]().next();
    expect(first.value).toMatchObject({ type: 'deleted', path: '/n' });
  });

  it('sees the whole tree without a chroot', async () => {
    const { root, folder } = world;
    expect((await root.getChildren('/')).children).toContain('zookeeper');
    const watch = await root.addWatch('/', { recursive: true });
    await root.create(`${folder}/n`);
    const events = watch[Symbol.asyncIterator]();
    for (;;) {
      const { value } = await events.next();
      if (value && 'path' in value && value.path === `${folder}/n`) break;
    }
    watch.close();
  });
}
