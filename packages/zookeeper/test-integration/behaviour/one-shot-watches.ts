import { expect, it } from 'vitest';
import type {
  ChildrenReply,
  GetReply,
  HostAndPort,
  SessionInfo,
  ZooKeeper,
} from '../../src/index.ts';
import { askFourLetterWord, NoNodeError, parseConnectionString } from '../../src/index.ts';
import type { World } from './world.ts';
import { refusal, soon, take } from './world.ts';

/** `watch`, `watchStat`, `watchChildren`, and the iterators on top of them. */
export function oneShotWatches(world: World): void {
  it('gives the value and the next change of it', async () => {
    const [client, other] = [await world.client(), await world.client()];
    await client.create('/n', 'a');
    await other.sync('/');
    const watch = await client.watch('/n');
    expect(watch.value?.text).toBe('a');
    await other.set('/n', 'b');
    expect(await soon(watch.changed, 'the change')).toMatchObject({ type: 'changed', path: '/n' });

    const again = await client.watch('/n');
    expect(again.value?.text).toBe('b');
    await other.delete('/n');
    expect(await soon(again.changed, 'the end')).toMatchObject({ type: 'deleted', path: '/n' });
  });

  it('watches what does not exist yet', async () => {
    const [client, other] = [await world.client(), await world.client()];
    const watch = await client.watch('/n');
    expect(watch.value).toBe(undefined);
    await other.create('/n', 'a');
    expect(await soon(watch.changed, 'creation')).toMatchObject({ type: 'created', path: '/n' });
    expect((await client.get('/n')).text).toBe('a');
  });

  it('of existence tells of a creation, of a change and of the end, in one request each', async () => {
    const [client, other] = [await world.client(), await world.client()];
    const asked = async () => {
      const before = client.counters.requests;
      const watch = await client.watchStat('/n');
      expect(client.counters.requests - before).toBe(1);
      return watch;
    };
    const absent = await asked();
    expect(absent.value.stat).toBe(null);
    await other.create('/n', 'a');
    expect(await soon(absent.changed, 'creation')).toMatchObject({ type: 'created', path: '/n' });
    const present = await asked();
    expect(present.value.stat?.dataLength).toBe(1);
    await other.set('/n', 'bc');
    expect(await soon(present.changed, 'the change')).toMatchObject({
      type: 'changed',
      path: '/n',
    });
    const again = await asked();
    expect(again.value.stat?.dataLength).toBe(2);
    await other.delete('/n');
    expect(await soon(again.changed, 'the end')).toMatchObject({ type: 'deleted', path: '/n' });
  });

  it('tells of children, not of their data', async () => {
    const [client, other] = [await world.client(), await world.client()];
    await client.create('/n');
    await client.create('/n/a');
    await other.sync('/');
    const watch = await client.watchChildren('/n');
    expect(watch.value.children).toEqual(['a']);
    expect(watch.value.stat.numChildren).toBe(1);
    let told = false;
    void watch.changed.then(() => {
      told = true;
    });
    await other.set('/n/a', 'x');
    const set = await other.set('/n', 'x');
    await caughtUp(client, set.zxid);
    expect(told).toBe(false);
    await other.create('/n/b');
    const event = await soon(watch.changed, 'the child');
    expect(event).toMatchObject({ type: 'children-changed', path: '/n' });
    await refusal(client.watchChildren('/none'), NoNodeError, { path: '/none' });
  });

  it('tells several watches of one path, whatever they watch', async () => {
    const client = await world.client();
    await client.create('/n');
    const watches = [
      await client.watch('/n'),
      await client.watch('/n'),
      await client.watchStat('/n'),
      await client.watchChildren('/n'),
      await client.watchChildren('/n'),
    ];
    await client.delete('/n');
    for (const watch of watches) {
      expect(await soon(watch.changed, 'the end')).toMatchObject({ type: 'deleted', path: '/n' });
    }
  });

  it('tells of the own change before its reply', async () => {
    const client = await world.client();
    const order: string[] = [];
    const absent = await client.watch('/n');
    void absent.changed.then(({ type }) => order.push(type));
    await client.create('/n').then(() => order.push('create answered'));
    const data = await client.watch('/n');
    void data.changed.then(({ type }) => order.push(type));
    const children = await client.watchChildren('/n');
    void children.changed.then(({ type }) => order.push(type));
    await client.set('/n', 'x').then(() => order.push('set answered'));
    await client.create('/n/c').then(() => order.push('child answered'));
    expect(order).toEqual([
      ...['created', 'create answered', 'changed', 'set answered'],
      ...['children-changed', 'child answered'],
    ]);
  });

  it('tells of a change before a read shows it', async () => {
    const [client, other] = [await world.client(), await world.client()];
    await client.create('/n', '0');
    await other.sync('/');
    for (let version = 0; version < 20; version += 1) {
      const watch = await client.watch('/n');
      let told = false;
      void watch.changed.then(() => {
        told = true;
      });
      void other.set('/n', String(version));
      for (;;) {
        const { stat } = await client.get('/n');
        if (stat.version > version) break;
      }
      expect(told).toBe(true);
    }
  });

  it('misses no change between reading and watching', async () => {
    const [client, other] = [await world.client(), await world.client()];
    await client.create('/n', '0');
    await other.sync('/');
    const writes = (async () => {
      for (let i = 1; i <= 200; i += 1) await other.set('/n', String(i));
    })();
    for (;;) {
      const watch = await client.watch('/n');
      if (watch.value?.text === '200') break;
      await soon(watch.changed, `the change after ${watch.value?.text}`);
    }
    await writes;
  });

  it('a cancelled watch says so, and the others of its path stay', async () => {
    const client = await world.client();
    await client.create('/n');
    const [one, another] = [await client.watch('/n'), await client.watch('/n')];
    one.cancel();
    one.cancel();
    expect(await one.changed).toMatchObject({ type: 'lost', reason: 'cancelled' });
    await client.set('/n', 'x');
    expect(await soon(another.changed, 'the change')).toMatchObject({ type: 'changed' });
    another.cancel();
  });

  it('a cancelled watch leaves nothing on the server, and nothing else goes with it', async () => {
    const client = await world.client();
    const path = (name: string) => `${world.folder}${name}`;
    for (const name of ['/data', '/children', '/both', '/tree']) await client.create(name);
    const tree = await client.addWatch('/tree', { recursive: true });
    const watches = {
      data: await client.watch('/data'),
      again: await client.watch('/data'),
      absent: await client.watch('/absent'),
      children: await client.watchChildren('/children'),
      both: await client.watch('/both'),
      listed: await client.watchChildren('/both'),
      inTree: await client.watch('/tree'),
    };
    const watched = ['/absent', '/both', '/data', '/tree'];
    expect(await watchedPaths(world, client)).toEqual(watched.map(path));

    watches.again.cancel();
    watches.inTree.cancel();
    expect(await watchedPaths(world, client)).toEqual(watched.map(path));
    watches.data.cancel();
    watches.absent.cancel();
    watches.children.cancel();
    watches.both.cancel();
    expect(await watchedPaths(world, client)).toEqual([path('/tree')]);
    expect(await client.checkWatches('/children', 'children')).toBe(false);
    expect(await client.checkWatches('/both', 'children')).toBe(true);

    await client.create('/both/child');
    expect(await soon(watches.listed.changed, 'the child')).toMatchObject({
      type: 'children-changed',
    });
    await client.set('/tree', 'x');
    const events = tree[Symbol.asyncIterator]();
    expect(await take(events, 1, 'the change')).toMatchObject([{ type: 'changed', path: '/tree' }]);
    tree.close();
    expect(await watchedPaths(world, client)).toEqual([]);
    expect(await client.checkWatches('/both')).toBe(false);
  });

  it('a watch that was given up while it was asked for leaves nothing on the server', async () => {
    const client = await world.client();
    await client.create('/n');
    // The server may have been quicker or not. In both cases no watch stays.
    for (let i = 0; i < 50; i += 1) {
      const stop = new AbortController();
      const watch = client.watch(i % 2 === 0 ? '/n' : '/absent', { signal: stop.signal });
      if (i % 4 > 1) await new Promise((resolve) => setImmediate(resolve));
      stop.abort();
      await watch.then(
        ({ cancel }) => cancel(),
        () => undefined,
      );
    }
    expect(await watchedPaths(world, client)).toEqual([]);
  });

  it('close tells every watch', async () => {
    const client = await world.client();
    await client.create('/n');
    const watches = [await client.watch('/n'), await client.watchChildren('/n')];
    await client.close();
    for (const watch of watches) {
      expect(await soon(watch.changed, 'the loss')).toMatchObject({
        type: 'lost',
        reason: 'closed',
      });
    }
  });

  it('follows a node: the present value, then the latest one', async () => {
    const [client, other] = [await world.client(), await world.client()];
    const stop = new AbortController();
    const values = client.follow('/n', { signal: stop.signal });
    expect(await take(values, 1, 'nothing yet')).toEqual([undefined]);
    await other.create('/n', '0');
    const [created] = await take(values, 1, 'the creation');
    expect(created?.text).toBe('0');
    for (let i = 1; i <= 50; i += 1) await other.set('/n', String(i));
    let last: GetReply | undefined;
    let taken = 0;
    while (last?.text !== '50') {
      [last] = await take(values, 1, `what comes after ${last?.text}`);
      taken += 1;
    }
    expect(taken).toBeLessThanOrEqual(50);
    await other.delete('/n');
    expect(await take(values, 1, 'the end')).toEqual([undefined]);
    const pending = values.next();
    stop.abort();
    expect((await soon(pending, 'the end of the iteration')).done).toBe(true);
  });

  it('follows the children of a node', async () => {
    const [client, other] = [await world.client(), await world.client()];
    const children = client.followChildren('/n');
    const names = async (what: string) => {
      const [reply] = await take(children, 1, what);
      return (reply as ChildrenReply | undefined)?.children.toSorted();
    };
    expect(await names('nothing yet')).toBe(undefined);
    await other.create('/n');
    expect(await names('created')).toEqual([]);
    await other.create('/n/a');
    expect(await names('a child')).toEqual(['a']);
    await other.transaction().create('/n/b').delete('/n/a').commit();
    expect(await names('another')).toEqual(['b']);
    await other.deleteRecursive('/n');
    let last = await names('the end');
    while (last !== undefined) last = await names('the end');
    await children.return?.();
  });

  it('outlives a cut, and tells of what happened meanwhile', async () => {
    const [client, proxy] = await world.behindProxy();
    const other = await world.client();
    for (const name of ['/changed', '/deleted', '/listed', '/quiet']) await client.create(name);
    await other.sync('/');
    const watches = {
      changed: await client.watch('/changed'),
      deleted: await client.watch('/deleted'),
      created: await client.watch('/created'),
      listed: await client.watchChildren('/listed'),
      quiet: await client.watch('/quiet'),
    };
    const session = client.session?.id;
    const states = client.states();
    await take(states, 1, 'the present state');
    proxy.refuse();
    expect((await take(states, 1, 'the loss'))[0]?.state).toBe('suspended');
    await other.set('/changed', 'x');
    await other.delete('/deleted');
    await other.create('/created');
    await other.create('/listed/child');
    await proxy.pass();
    expect((await take(states, 1, 'the return'))[0]?.state).toBe('connected');
    expect(client.session?.id).toBe(session);
    const told = async (watch: { changed: Promise<{ type: string }> }) =>
      (await soon(watch.changed, 'what happened meanwhile')).type;
    expect(await told(watches.changed)).toBe('changed');
    expect(await told(watches.deleted)).toBe('deleted');
    expect(await told(watches.created)).toBe('created');
    expect(await told(watches.listed)).toBe('children-changed');
    await other.set('/quiet', 'x');
    expect(await told(watches.quiet)).toBe('changed');
  });
}

/** The paths on which the client's server has data watches for it, by the server's own account. */
async function watchedPaths(world: World, client: ZooKeeper): Promise<string[]> {
  // Everything that was sent before this has been done by then.
  await client.sync('/');
  const { id, server } = client.session as SessionInfo;
  const [target] = parseConnectionString(server).hosts as [HostAndPort];
  const { tls } = world.servers.options;
  const answer = await askFourLetterWord(target, 'wchp', tls === undefined ? {} : { tls });
  const paths: string[] = [];
  let path = '';
  for (const line of answer.split('\n')) {
    if (line.startsWith('/')) path = line;
    else if (line === `\t0x${id.toString(16)}`) paths.push(path);
  }
  return paths.sort();
}

/** Waits until the client's server has applied a transaction of another client. */
async function caughtUp(
  client: {
    sync(path: string): Promise<unknown>;
    get: (path: string) => Promise<{ zxid: bigint }>;
  },
  zxid: bigint,
): Promise<void> {
  await client.sync('/');
  expect((await client.get('/')).zxid).toBeGreaterThanOrEqual(zxid);
}
