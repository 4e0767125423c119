import { expect, it } from 'vitest';
import type { ExportedSession, ZooKeeper } from '../../src/index.ts';
import {
  ClosedError,
  ConnectError,
  connect,
  createClient,
  InvalidArgumentError,
  NoNodeError,
} from '../../src/index.ts';
import { refusedConnect } from '../support/refused-connect.ts';
import type { World } from './world.ts';
import { monotonicMs, refusal, soon, take } from './world.ts';

/** Sessions: the nodes that they own, how they end, how they move. */
export function sessions(world: World): void {
  it('tells its states, the present one first', async () => {
    const client = world.later(createClient(world.url, world.servers.options));
    expect(client.state).toBe('connecting');
    const heard: string[] = [];
    const forget = client.onState(({ state, previous }) => heard.push(`${previous} > ${state}`));
    const states = client.states();
    expect((await take(states, 1, 'the present state'))[0]?.state).toBe('connecting');
    await client.connected();
    expect(client.state).toBe('connected');
    expect((await take(states, 1, 'the next state'))[0]).toMatchObject({
      state: 'connected',
      previous: 'connecting',
      session: { id: client.session?.id },
    });
    await client.close();
    expect(client.state).toBe('closed');
    expect((await take(states, 1, 'the last state'))[0]?.state).toBe('closed');
    expect((await soon(states.next(), 'the end')).done).toBe(true);
    expect(heard).toEqual(['connecting > connected', 'connected > closed']);
    forget();
  });

  it('knows its session', async () => {
    const client = await world.client({ sessionTimeoutMs: 12_000 });
    expect(client.session?.id).not.toBe(0n);
    expect(client.session?.timeoutMs).toBe(12_000);
    expect(client.session?.server).toMatch(/^(127\.0\.0\.1|localhost):\d+$/);
    expect(client.session?.readOnly).toBe(false);
    const other = await world.client();
    expect(other.session?.id).not.toBe(client.session?.id);
    expect(client.lastZxid).toBeGreaterThan(0n);
  });

  it('the connection string may ask for a session timeout', async () => {
    const url = `${world.url}?timeout=7s`;
    const client = world.later(await connect(url, world.servers.options));
    expect(client.session?.timeoutMs).toBe(7_000);
  });

  it('close takes its ephemeral nodes away', async () => {
    const [client, other] = [await world.client(), await world.client()];
    await client.create('/e', null, { ephemeral: true });
    await other.sync('/');
    const watch = await other.watch('/e');
    await client.close();
    expect(await soon(watch.changed, 'the end')).toMatchObject({ type: 'deleted', path: '/e' });
  });

  it('await using closes', async () => {
    const other = await world.client();
    let outside: ZooKeeper;
    {
      await using client = await world.client();
      outside = client;
      await client.create('/e', null, { ephemeral: true });
    }
    expect(outside.state).toBe('closed');
    await other.sync('/');
    expect(await other.exists('/e')).toBe(false);
  });

  it('a closed client refuses everything, and closes again', async () => {
    const client = await world.client();
    await Promise.all([client.close(), client.close()]);
    await client.close();
    const calls = [
      client.create('/n'),
      client.get('/'),
      client.set('/', ''),
      client.delete('/n'),
      client.stat('/'),
      client.exists('/'),
      client.getChildren('/'),
      client.getAcl('/'),
      client.sync('/'),
      client.whoAmI(),
      client.getEphemerals(),
      client.getAllChildrenNumber('/'),
      client.getConfig(),
      client.addAuth('digest', 'a:b'),
      client.transaction().check('/').commit(),
      client.multiRead([{ get: '/' }]),
      client.confirm(['/']),
      client.watch('/'),
      client.watchChildren('/'),
      client.addWatch('/'),
      client.checkWatches('/'),
      client.removeWatches('/'),
      client.ensurePath('/n'),
      client.deleteRecursive('/n'),
      client.connected(),
    ];
    for (const call of calls) await refusal(call, ClosedError, { code: 'CLOSED' });
  });

  it('close lets calls under way come to their end', async () => {
    const client = await world.client();
    const calls = Array.from({ length: 50 }, (_, i) => client.create(`/n${i}`));
    const closing = client.close();
    const outcomes = await Promise.allSettled(calls);
    await closing;
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') expect(outcome.reason).toBeInstanceOf(ClosedError);
    }
  });

  it('a session is taken over by another client', async () => {
    const first = await world.client();
    await first.create('/e', 'x', { ephemeral: true });
    const session = exported(first);
    expect(session.id).toBe(first.session?.id);
    expect(session.password.length).toBe(16);
    expect(session.lastZxid).toBe(first.lastZxid);
    await first.close({ keepSession: true });
    expect(first.state).toBe('closed');

    const second = await world.client({ session });
    expect(second.session?.id).toBe(session.id);
    expect((await second.get('/e')).stat.ephemeralOwner).toBe(session.id);
    expect(second.lastZxid).toBeGreaterThanOrEqual(session.lastZxid);
    await second.close();
    const other = await world.client();
    expect(await other.exists('/e')).toBe(false);
  });

  it('a session that has ended cannot be taken over', async () => {
    const first = await world.client();
    const session = exported(first);
    await first.close();
    const states: string[] = [];
    const client = world.later(createClient(world.url, { ...world.servers.options, session }));
    client.onState(({ state }) => states.push(state));
    await soon(
      (async () => {
        for await (const { state } of client.states()) if (state === 'connected') return;
      })(),
      'a new session',
    );
    expect(states).toContain('expired');
    expect(client.session?.id).not.toBe(session.id);
  });

  it('a session that ends tells all that belonged to it, and another one begins', async () => {
    const [client, proxy] = await world.behindProxy({
      auth: [{ scheme: 'digest', credentials: 'joe:secret' }],
    });
    const other = await world.client();
    await client.create('/e', null, { ephemeral: true });
    const data = await client.watch('/e');
    const children = await client.watchChildren('/');
    const persistent = (await client.addWatch('/', { recursive: true }))[Symbol.asyncIterator]();
    const values = client.follow('/e');
    expect((await take(values, 1, 'the node'))[0]?.text).toBe('');
    const states = client.states();
    await take(states, 1, 'the present state');
    const session = exported(client);

    proxy.refuse();
    expect((await take(states, 1, 'the loss'))[0]?.state).toBe('suspended');
    await (await world.client({ session })).close();
    await proxy.pass();
    const [expired, again] = await take(states, 2, 'the end and a beginning');
    expect(expired?.state).toBe('expired');
    expect(again).toMatchObject({ state: 'connected', previous: 'expired' });
    expect(client.session?.id).not.toBe(session.id);
    for (const watch of [data, children]) {
      expect(await soon(watch.changed, 'the loss')).toMatchObject({
        type: 'lost',
        reason: 'expired',
      });
    }
    expect(await take(persistent, 1, 'the gap')).toEqual([{ type: 'gap', reason: 'expired' }]);
    expect(await take(values, 1, 'the end of the node')).toEqual([undefined]);
    expect(await client.exists('/e')).toBe(false);
    expect((await client.whoAmI()).identities).toContainEqual({ scheme: 'digest', user: 'joe' });
    await other.sync('/');
    await other.create('/e', 'again');
    expect(await take(persistent, 1, 'the creation')).toMatchObject([{ path: '/e' }]);
    expect((await take(values, 1, 'the new node'))[0]?.text).toBe('again');
    expect(client.counters.expirations).toBe(1);
  });

  it('transactions only go up', async () => {
    const client = await world.client();
    let last = client.lastZxid;
    let lastSentMs = 0;
    await client.create('/n');
    for (let i = 0; i < 30; i += 1) {
      const reply = i % 3 === 0 ? await client.set('/n', String(i)) : await client.get('/n');
      expect(reply.zxid).toBeGreaterThanOrEqual(last);
      expect(client.lastZxid).toBe(reply.zxid);
      expect(reply.sentAt.monotonicMs).toBeGreaterThanOrEqual(lastSentMs);
      expect(reply.sentAt.monotonicMs).toBeLessThanOrEqual(monotonicMs());
      last = reply.zxid;
      lastSentMs = reply.sentAt.monotonicMs;
    }
  });

  it('authenticates again after a cut, and keeps its ephemeral nodes', async () => {
    const [client, proxy] = await world.behindProxy({
      auth: [{ scheme: 'digest', credentials: 'joe:secret' }],
    });
    await client.addAuth('digest', 'jack:secret');
    await client.create('/e', null, { ephemeral: true });
    proxy.cut();
    await proxy.pass();
    // Sent on the old connection or the new one. It is answered in both cases, or fails as lost.
    await client.get('/').catch(() => undefined);
    const { identities } = await client.whoAmI();
    const users = identities.filter(({ scheme }) => scheme === 'digest').map(({ user }) => user);
    expect(users.sort()).toEqual(['jack', 'joe']);
    expect((await client.get('/e')).stat.ephemeralOwner).toBe(client.session?.id);
  });

  it('connect gives up after its bound, and when it is told to', async () => {
    // Nothing listens at the port of discard.
    await refusal(connect('zk://127.0.0.1:9', { connectTimeoutMs: 200 }), ConnectError, {
      code: 'CONNECT_TIMEOUT',
    });
    const reason = new Error('enough');
    const stop = new AbortController();
    const attempt = connect('zk://127.0.0.1:9', { signal: stop.signal });
    stop.abort(reason);
    await expect(attempt).rejects.toBe(reason);
    await expect(
      connect(world.url, { ...world.servers.options, signal: AbortSignal.abort(reason) }),
    ).rejects.toBe(reason);
  });

  if (world.capabilities.tls) {
    it('trusts only whom it is told to, and shows what it is told to', async () => {
      const { tls } = world.servers.options;
      const { ca, ...identity } = { ...tls };
      const trustAlone = ca === undefined ? {} : { ca };
      await refusedConnect(world.url, { tls: identity });
      await refusedConnect(world.url, { tls: trustAlone });
      await refusedConnect(world.url.replace('zks:', 'zk:'));
      await refusedConnect(world.url, { tls: { ...tls, servername: 'another.example' } });
      const lenient = { ...identity, rejectUnauthorized: false };
      world.later(await connect(world.url, { tls: lenient }));
    });
  }

  it('refuses connection strings and options that make no sense', () => {
    const bad = [
      ...['', 'zk://', 'http://localhost', 'zk://host:0', 'zk://host:70000', 'zk://a,,b'],
      ...['zk://host/../x', 'zk://host//x', 'zk://host?timeout=x', 'zk://host?timeout=0'],
    ];
    for (const url of bad) expect(() => createClient(url), url).toThrow(InvalidArgumentError);
    expect(() => createClient(7 as never)).toThrow(InvalidArgumentError);
    for (const options of [
      { sessionTimeoutMs: 0 },
      { requestTimeoutMs: -1 },
      { maxInFlight: 0 },
      { auth: [{ scheme: '', credentials: 'x' }] },
    ]) {
      expect(() => createClient('zk://host', options)).toThrow(InvalidArgumentError);
    }
  });

  it('a chroot that is not there makes calls fail, and nothing else', async () => {
    const client = world.later(await connect(`${world.url}/none`, world.servers.options));
    await refusal(client.get('/'), NoNodeError, { path: '/' });
    await refusal(client.create('/n'), NoNodeError, { path: '/n' });
    expect(await client.exists('/')).toBe(false);
    expect(client.state).toBe('connected');
    await client.ensurePath('/', { data: 'x' });
    expect((await client.get('/')).text).toBe('x');
  });
}

function exported(client: ZooKeeper): ExportedSession {
  const session = client.exportSession();
  if (session === undefined) throw new Error('there is no session to export');
  return session;
}
