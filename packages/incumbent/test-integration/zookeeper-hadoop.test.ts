import { describe, expect, it } from 'vitest';
import type { ZooKeeper } from '../../zookeeper/src/index.ts';
import { acl } from '../../zookeeper/src/index.ts';
import type { ZooKeeperGuard, ZooKeeperOptions } from '../src/backends/zookeeper/index.ts';
import {
  activeDataOf,
  activeStandby,
  clearParentNode,
  ensureParentNode,
  getActiveData,
  parentNodeExists,
} from '../src/backends/zookeeper/index.ts';
import type { Election, Term, UncleanLeader } from '../src/index.ts';
import { missing, until, useZooKeeper } from './support/zookeeper.ts';

/**
 * The behaviour of ActiveStandbyElector, ZKFC and mooon, with the ids of systems.md, on
 * a real server.
 */
describe.skipIf(missing !== undefined)('an election in the layout of Hadoop', () => {
  const zk = useZooKeeper();
  const root = '/hadoop-ha';
  const parent = () => `${root}/${zk.name}`;
  const lock = () => `${parent()}/ActiveStandbyElectorLock`;
  const breadcrumb = () => `${parent()}/ActiveBreadCrumb`;

  function member(
    client: ZooKeeper,
    id: string,
    options: ZooKeeperOptions = {},
  ): Election<ZooKeeperGuard> {
    const layout = { layout: 'hadoop', root, tickTime: 200, ...options } as const;
    return zk.election(client, id, layout) as Election<ZooKeeperGuard>;
  }

  /**
   * Acts as Hadoop's own member does when it has won.
   * @returns the member that it would fence
   */
  async function becomeActive(client: ZooKeeper, data: string): Promise<string | undefined> {
    await client.ensurePath(parent());
    await client.create(lock(), data, { ephemeral: true });
    const old = await client.get(breadcrumb()).catch(() => undefined);
    if (old === undefined) await client.create(breadcrumb(), data);
    else await client.set(breadcrumb(), data, { version: old.stat.version });
    return old?.text;
  }

  async function end(term: Term<unknown>) {
    await term[Symbol.asyncDispose]();
    return term.ended;
  }

  function background<T>(promise: Promise<T>): Promise<T> {
    promise.catch(() => {});
    return promise;
  }

  it('H1, H4: the nodes are Hadoop’s, by name, kind and data', async () => {
    const client = await zk.client();
    const data = Uint8Array.from([10, 3, 110, 115, 49]);
    const term = await member(client, 'a', { activeData: data }).campaign();
    const { children } = await client.getChildren(parent());
    expect([...children].sort()).toEqual(['ActiveBreadCrumb', 'ActiveStandbyElectorLock']);
    const [held, crumb] = [await client.get(lock()), await client.get(breadcrumb())];
    expect(Uint8Array.from(held.data ?? [])).toEqual(data);
    expect(Uint8Array.from(crumb.data ?? [])).toEqual(data);
    expect(held.stat.ephemeralOwner).toBe(client.session?.id);
    expect(crumb.stat.ephemeralOwner).toBe(0n);
    expect(term.token).toBe(held.stat.czxid);
    await end(term);
    expect((await client.getChildren(parent())).children).toEqual([]);
  });

  it('MB1, H5: a lock whose reply was lost is found by its owner', async () => {
    const direct = await zk.client();
    await direct.ensurePath(parent());
    const proxy = await zk.proxy();
    const real = await zk.client(proxy);
    let creates = 0;
    const client = new Proxy(real, {
      get(target, property) {
        const value: unknown = Reflect.get(target, property, target);
        if (property === 'create') {
          return (...from: Parameters<ZooKeeper['create']>) => {
            creates += 1;
            if (creates === 1) proxy.dropReplies();
            return real.create(...from);
          };
        }
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
    const campaign = background(member(client, 'a').campaign());
    await until('its reply is dropped', () => proxy.counters.bytesDropped > 0);
    proxy.cut();
    await proxy.pass();
    const term = await campaign;
    expect(creates).toBe(1);
    expect((await direct.get(lock())).stat.czxid).toBe(term.token);
    await end(term);
  });

  it('H7, H10: theirs is fenced with its data after a crash, and not after it has quit', async () => {
    const client = await zk.client();
    const election = member(client, 'a');
    const fenced: UncleanLeader[] = [];
    const onUnclean = (leader: UncleanLeader) => void fenced.push(leader);
    const crashed = await zk.client();
    await becomeActive(crashed, 'nn-2');
    const following = background(election.campaign({ onUnclean }));
    await crashed.close();
    const term = await following;
    expect(fenced.map(({ id }) => id)).toEqual(['nn-2']);
    expect(Buffer.from(activeDataOf(fenced[0] as UncleanLeader) ?? []).toString()).toBe('nn-2');
    await end(term);

    const quits = await zk.client();
    expect(await becomeActive(quits, 'nn-2'), 'ours left nothing to fence').toBeUndefined();
    const next = background(election.campaign({ onUnclean }));
    await quits.delete(breadcrumb());
    await quits.close();
    await end(await next);
    expect(fenced).toHaveLength(1);
  });

  it('H7: theirs finds whom of ours to fence', async () => {
    const client = await zk.client();
    const term = await member(client, 'a').campaign();
    await client.close();
    expect((await end(term)).reason).toBe('session-expired');
    const nn2 = await zk.client();
    expect(await becomeActive(nn2, 'nn-2')).toBe('a');
  });

  it('HB1, M5: a leader whose server falls silent stops believing before the next one leads', async () => {
    const proxy = await zk.proxy();
    const silent = member(await zk.client(proxy), 'a');
    const next = member(await zk.client(), 'b');
    const first = await silent.campaign();
    let overlap = false;
    const following = background(
      next.lead((term) => {
        overlap = first.isLeading();
        return term.token;
      }),
    );
    proxy.silence();
    const token = await following;
    expect(overlap).toBe(false);
    expect(first.isLeading()).toBe(false);
    expect(token).toBeGreaterThan(first.token);
    await proxy.pass();
    await end(first);
  });

  it('the same when an operator deletes the lock of a leader that hears nothing', async () => {
    const proxy = await zk.proxy();
    const silent = member(await zk.client(proxy), 'a');
    const next = member(await zk.client(), 'b');
    const operator = await zk.client();
    const first = await silent.campaign();
    const following = background(next.campaign());
    proxy.silence();
    await operator.delete(lock());
    const second = await following;
    expect(first.isLeading()).toBe(false);
    await proxy.pass();
    await end(first);
    expect(second.isLeading(), 'the old one’s end does not touch the new one’s lock').toBe(true);
    await end(second);
  });

  it('H9: a leader whose connection comes back in time leads on', async () => {
    const proxy = await zk.proxy();
    const term = await member(await zk.client(proxy), 'a').campaign();
    proxy.cut();
    await until('it is uncertain', () => term.state === 'uncertain');
    await proxy.pass();
    await until('it is confirmed', () => term.state === 'leading');
    expect(term.isLeading()).toBe(true);
    await end(term);
  });

  it('HB6: a leader that is asked to go gives its lock up', async () => {
    const [a, b] = [member(await zk.client(), 'a'), member(await zk.client(), 'b')];
    const first = await a.campaign();
    const following = background(b.campaign());
    expect(await b.vacate()).toMatchObject({ changed: true });
    await until('it is told', () => first.signal.aborted);
    expect(await end(first)).toMatchObject({ reason: 'vacated', released: true });
    await end(await following);
  });

  it('H20, H21: drain is cede, transfer is the graceful failover', async () => {
    const clients = [await zk.client(), await zk.client(), await zk.client()] as const;
    const [a, b, c] = clients.map((client, index) => member(client, 'abc'[index] as string));
    if (a === undefined || b === undefined || c === undefined) throw new Error('three');
    const first = await a.campaign();
    const losing = background(b.campaign());
    const following = background(c.campaign());
    await c.transfer('c');
    await until('it is told', () => first.signal.aborted);
    expect((await end(first)).reason).toBe('handed-over');
    const second = await following;
    expect(second.candidate).toBe('c');
    await a.drain('c', new Date(Date.now() + 60_000));
    await until('it is told', () => second.signal.aborted);
    await end(second);
    const third = await losing;
    expect(third.candidate).toBe('b');
    await end(third);
  });

  it('H11, H12: active data and the parent node', async () => {
    const client = await zk.client();
    expect(await parentNodeExists(client, parent())).toBe(false);
    await ensureParentNode(client, parent(), { acl: 'open' });
    await expect(getActiveData(client, parent())).rejects.toMatchObject({
      name: 'ActiveNotFoundError',
    });
    const term = await member(client, 'a').campaign();
    expect(Buffer.from(await getActiveData(client, parent())).toString()).toBe('a');
    await expect(clearParentNode(client, parent())).rejects.toMatchObject({ code: 'REFUSED' });
    await end(term);
    expect(await clearParentNode(client, parent())).toBe(true);
    expect(await parentNodeExists(client, parent())).toBe(false);
  });

  it('H12, H15: nodes of a creator that is authenticated; others are told that they may not', async () => {
    const client = await zk.client();
    await client.addAuth('digest', 'hdfs:secret');
    await ensureParentNode(client, parent());
    await ensureParentNode(client, parent(), { acl: 'creator' });
    const only = [acl.digest('hdfs', 'secret')];
    expect((await client.getAcl(parent())).acl).toEqual(only);
    const term = await member(client, 'a', { acl: 'creator' }).campaign();
    expect((await client.getAcl(lock())).acl).toEqual(only);
    expect((await client.getAcl(breadcrumb())).acl).toEqual(only);
    await expect(member(await zk.client(), 'b').campaign()).rejects.toMatchObject({
      code: 'STORE_UNSUITABLE',
    });
    await end(term);
    // Hadoop sets the whole path. The next tests want it open again.
    await client.setAcl(root, [acl.world()]);
  });

  it('H19: the first of the fencing methods that works is enough', async () => {
    const crashed = await zk.client();
    await becomeActive(crashed, 'nn-2');
    await crashed.close();
    const tried: string[] = [];
    const term = await member(await zk.client(), 'a').campaign({
      async onUnclean() {
        for (const method of ['sshfence', 'shell', 'never']) {
          tried.push(method);
          if (method === 'shell') return;
        }
      },
    });
    expect(tried).toEqual(['sshfence', 'shell']);
    await end(term);
  });

  it('H8, H19: who cannot fence does not become active, and another may', async () => {
    const crashed = await zk.client();
    await becomeActive(crashed, 'nn-2');
    await crashed.close();
    let failures = 0;
    const stop = new AbortController();
    const failing = background(
      member(await zk.client(), 'a').campaign({
        signal: stop.signal,
        onUnclean() {
          failures += 1;
          throw new Error('no method worked');
        },
      }),
    );
    await until('it has failed', () => failures > 0);
    const term = await member(await zk.client(), 'b').campaign();
    stop.abort(new Error('done'));
    await expect(failing).rejects.toThrow('done');
    expect(term.predecessor).toMatchObject({ id: 'nn-2', clean: false });
    await end(term);
  });

  it('H2, H18: four states, gated by health', async () => {
    const told: string[] = [];
    let healthy = true;
    const stop = new AbortController();
    const client = await zk.client();
    const ended = background(
      activeStandby(
        member(client, 'a'),
        {
          becomeActive: () => void told.push('active'),
          becomeStandby: () => void told.push('standby'),
          enterNeutralMode: () => void told.push('neutral'),
        },
        { signal: stop.signal, health: { check: () => healthy, every: 50 } },
      ),
    );
    await until('it is active', () => told.at(-1) === 'active');
    healthy = false;
    await until('it is standby', () => told.at(-1) === 'standby');
    const term = await member(await zk.client(), 'b').campaign();
    await end(term);
    stop.abort(new Error('done'));
    await expect(ended).rejects.toThrow('done');
  });

  it('M1–M3: polling, and a wait after winning', async () => {
    const [a, b] = [
      member(await zk.client(), 'a'),
      member(await zk.client(), 'b', { poll: 50, delayAfterWin: 300 }),
    ];
    const first = await a.campaign();
    const following = background(b.campaign());
    await end(first);
    const from = performance.now();
    const second = await following;
    expect(performance.now() - from).toBeGreaterThan(250);
    await end(second);
  });
});
