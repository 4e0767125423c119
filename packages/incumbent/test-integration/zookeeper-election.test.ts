import { describe, expect, it } from 'vitest';
import type { ZooKeeper } from '../../zookeeper/src/index.ts';
import type { CandidateStatus } from '../src/core/status.ts';
import type { Term } from '../src/index.ts';
import { ElectionEndedError, LeftBehindError, TermEndedError } from '../src/index.ts';
import { missing, placesOf, until, useZooKeeper } from './support/zookeeper.ts';

/**
 * The defects of systems.md, section 7, that are about ZooKeeper, by their sources' ids.
 * And GoLea's own.
 */
describe.skipIf(missing !== undefined)('an election on ZooKeeper', () => {
  const zk = useZooKeeper();

  function waiting(election: ReturnType<typeof zk.election>, following: string[] = []) {
    const stop = new AbortController();
    const statuses: CandidateStatus[] = [];
    const won = election.campaign({
      signal: stop.signal,
      onStatus: (status) => {
        statuses.push(status);
        if (status.following !== undefined) following.push(status.following);
      },
    });
    won.catch(() => {});
    return { won, statuses, stop, follows: () => statuses.some((each) => each.following) };
  }

  function withMethod(
    client: ZooKeeper,
    name: 'create',
    method: (...from: Parameters<ZooKeeper['create']>) => ReturnType<ZooKeeper['create']>,
  ): ZooKeeper {
    return new Proxy(client, {
      get(target, property) {
        if (property === name) return method;
        const value: unknown = Reflect.get(target, property, target);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  }

  async function end(term: Term<unknown>) {
    await term[Symbol.asyncDispose]();
    return term.ended;
  }

  it('CB3: a place whose reply was lost is found again, and there is only one', async () => {
    const proxy = await zk.proxy();
    const real = await zk.client(proxy);
    const direct = await zk.client();
    await direct.ensurePath(zk.node);
    let creates = 0;
    const client = withMethod(real, 'create', (...from) => {
      creates += 1;
      if (creates === 1) proxy.dropReplies();
      return real.create(...from);
    });
    const election = zk.election(client, 'a');
    const term = election.campaign();
    await until('its reply is dropped', () => proxy.counters.bytesDropped > 0);
    proxy.cut();
    await proxy.pass();
    const won = await term;
    expect(await placesOf(direct, zk.node)).toHaveLength(1);
    expect(won.guard).toMatchObject({ token: won.token });
    await end(won);
    expect(await placesOf(direct, zk.node)).toHaveLength(0);
  });

  it('CURATOR-498, -696: a place of the session that is over is neither ours nor in the way', async () => {
    const proxy = await zk.proxy();
    const client = await zk.client(proxy);
    const direct = await zk.client();
    const a = zk.election(client, 'a');
    const first = await a.campaign();
    const before = client.session?.id;
    proxy.silence();
    await until(
      'the session is over',
      () => client.state === 'expired' || client.session?.id !== before,
    );
    expect(first.isLeading()).toBe(false);
    expect((await end(first)).reason).toMatch(/session-expired|renewal-failed/);
    await proxy.pass();
    const second = await a.campaign();
    expect(second.token).toBeGreaterThan(first.token);
    const [place] = await placesOf(direct, zk.node);
    const { stat } = await direct.stat(`${zk.node}/${place}`);
    expect(stat?.ephemeralOwner).toBe(client.session?.id);
    await end(second);
  });

  it('CURATOR-202: who expires while waiting enters again, and leads in its turn', async () => {
    const proxy = await zk.proxy();
    const [leading, behind] = [await zk.client(), await zk.client(proxy)];
    const first = await zk.election(leading, 'a').campaign();
    const b = waiting(zk.election(behind, 'b'));
    await until('b follows', b.follows);
    const before = behind.session?.id;
    proxy.silence();
    await until(
      'its session is over',
      () => behind.state === 'expired' || behind.session?.id !== before,
    );
    await proxy.pass();
    await until('it follows again, from another place', () => {
      const places = new Set(b.statuses.map(({ candidateId }) => candidateId));
      return places.size > 1 && b.statuses.at(-1)?.following !== undefined;
    });
    await end(first);
    const second = await b.won;
    expect(second.candidate).toBe('b');
    await end(second);
  });

  it('CB1: a leader is told when its session expires, and who follows waited out its belief', async () => {
    const proxy = await zk.proxy();
    const [cut, other] = [await zk.client(proxy), await zk.client()];
    const a = zk.election(cut, 'a');
    const first = await a.campaign();
    const candidate = zk.election(other, 'b');
    const b = waiting(candidate);
    await until('b follows', b.follows);
    proxy.silence();
    const second = await b.won;
    expect(first.isLeading()).toBe(false);
    expect(first.signal.reason).toBeInstanceOf(TermEndedError);
    // On a machine that stands still b may have needed a second term of its own.
    expect(await candidate.history()).toContainEqual(
      expect.objectContaining({ id: 'a', why: 'unclean' }),
    );
    expect(second.token).toBeGreaterThan(first.token);
    await proxy.pass();
    expect((await end(first)).released).toBe(false);
    expect(second.isLeading()).toBe(true);
    await end(second);
  });

  it('CB2: data changed on the leader’s or a follower’s place disturbs nobody', async () => {
    const [client, direct] = [await zk.client(), await zk.client()];
    const first = await zk.election(client, 'a').campaign();
    const b = waiting(zk.election(await zk.client(), 'b'));
    await until('b follows', b.follows);
    const places = await placesOf(direct, zk.node);
    for (const place of places) {
      await direct.set(`${zk.node}/${place}`, 'by hand');
      await direct.set(`${zk.node}/${place}`, 'again');
    }
    expect(first.isLeading()).toBe(true);
    await end(first);
    const second = await b.won;
    expect(second.predecessor?.clean).toBe(true);
    await end(second);
  });

  it('C11, etcd3 176: who is in the middle leaves, and nobody is elected by that', async () => {
    const direct = await zk.client();
    const first = await zk.election(await zk.client(), 'a').campaign();
    const b = waiting(zk.election(await zk.client(), 'b'));
    await until('b follows', b.follows);
    const c = waiting(zk.election(await zk.client(), 'c'));
    await until('c follows', c.follows);
    const [leader] = await placesOf(direct, zk.node);
    b.stop.abort(new Error('leaving'));
    await expect(b.won).rejects.toThrow('leaving');
    await until('c follows the leader', () =>
      c.statuses.some(({ following }) => following === `${zk.node}/${leader}`),
    );
    expect(first.isLeading()).toBe(true);
    expect(c.statuses.every(({ role }) => role === 'follower')).toBe(true);
    await end(first);
    await end(await c.won);
  });

  it('C16, CURATOR-171: a leader whose place an operator deletes goes, and is waited for', async () => {
    const direct = await zk.client();
    const first = await zk.election(await zk.client(), 'a').campaign();
    const candidate = zk.election(await zk.client(), 'b');
    const b = waiting(candidate);
    await until('b follows', b.follows);
    const [leader] = await placesOf(direct, zk.node);
    await direct.delete(`${zk.node}/${leader}`);
    const second = await b.won;
    expect(first.isLeading()).toBe(false);
    expect((await end(first)).reason).toBe('record-gone');
    expect(await candidate.history()).toContainEqual(
      expect.objectContaining({ id: 'a', why: 'unclean' }),
    );
    await end(second);
  });

  it('C16: a follower whose place is deleted enters again behind the others', async () => {
    const direct = await zk.client();
    const first = await zk.election(await zk.client(), 'a').campaign();
    const b = waiting(zk.election(await zk.client(), 'b'));
    await until('b follows', b.follows);
    const c = waiting(zk.election(await zk.client(), 'c'));
    await until('c follows', c.follows);
    const [, second] = await placesOf(direct, zk.node);
    await direct.delete(`${zk.node}/${second}`);
    await until('b is the last', async () => {
      const places = await placesOf(direct, zk.node);
      return places.length === 3 && b.statuses.at(-1)?.candidateId === `${zk.node}/${places[2]}`;
    });
    await end(first);
    const next = await c.won;
    expect(next.candidate).toBe('c');
    await end(next);
    await end(await b.won);
  });

  it('FB6: children that are not ours are left alone and change nothing', async () => {
    const direct = await zk.client();
    await direct.ensurePath(`${zk.node}/a-folder`);
    await direct.create(`${zk.node}/le_0000000000`, 'of somebody else');
    await direct.create(`${zk.node}/_c_0-n_not-a-number`, null);
    const term = await zk.election(await zk.client(), 'a').campaign();
    expect(term.isLeading()).toBe(true);
    await end(term);
    expect((await direct.getChildren(zk.node)).children).toHaveLength(3);
  });

  it('term.guard: ZooKeeper itself refuses an effect of a term that is over', async () => {
    const client = await zk.client();
    await client.create('/resource', '0').catch(() => {});
    const term = await zk.election(client, 'a').campaign();
    const guard = term.guard as { path: string; version: number };
    const write = (value: string) =>
      client.transaction().check(guard.path, guard.version).set('/resource', value).commit();
    await write('of the term');
    await end(term);
    await expect(write('too late')).rejects.toMatchObject({ cause: { code: 'NO_NODE' } });
    expect((await client.get('/resource')).text).toBe('of the term');
  });

  it('one confirmation a renewal interval serves all terms of a session', async () => {
    const client = await zk.client();
    const terms = [];
    for (let i = 0; i < 20; i += 1) {
      terms.push(await zk.election(client, 'a', {}, { name: `many/${zk.name}-${i}` }).campaign());
    }
    const { renewEveryMs } = zk.election(client, 'a').timing;
    const before = client.counters.requests;
    const fromMs = performance.now();
    await new Promise((resolve) => setTimeout(resolve, 10 * renewEveryMs));
    const intervals = (performance.now() - fromMs) / renewEveryMs;
    const requests = client.counters.requests - before;
    // One by one it would be twenty times as many.
    expect(requests).toBeLessThan(4 * intervals + 10);
    for (const term of terms) expect(term.isLeading()).toBe(true);
    await Promise.all(terms.map(end));
  });

  it('onDisconnect: a term is uncertain while no server is there, and goes on after it', async () => {
    const proxy = await zk.proxy();
    const client = await zk.client(proxy);
    const election = zk.election(client, 'a');
    const term = await election.campaign();
    const states: string[] = [];
    client.onState(({ state }) => {
      if (state === 'suspended') queueMicrotask(() => states.push(term.state));
    });
    proxy.cut();
    await until('it is uncertain', () => states.includes('uncertain'));
    await proxy.pass();
    await until('it leads', () => term.state !== 'uncertain');
    // Back within its belief it is the same term. On a machine that is too slow for that, the
    // term has ended.
    if (term.state === 'leading') expect(term.signal.aborted).toBe(false);
    await end(term);
    const next = await election.campaign();
    expect(next.token).toBeGreaterThan(term.token);
    await end(next);
  });

  it('onDisconnect: "step-down" ends the term as soon as the connection is lost', async () => {
    const proxy = await zk.proxy();
    const client = await zk.client(proxy);
    const term = await zk.election(client, 'a', { onDisconnect: 'step-down' }).campaign();
    proxy.cut();
    await until('the work is told', () => term.signal.aborted);
    expect((term.signal.reason as TermEndedError).reason).toBe('disconnected');
    await proxy.pass();
    expect((await end(term)).reason).toBe('disconnected');
  });

  it('C23: a place that cannot be given back is named, and goes as soon as it can', async () => {
    const proxy = await zk.proxy();
    const client = await zk.client(proxy);
    const direct = await zk.client();
    const term = await zk.election(client, 'a').campaign();
    const { path } = term.guard as { path: string };
    proxy.cut();
    const outcome = await end(term);
    expect(outcome.released).toBe(false);
    expect(outcome.error).toBeInstanceOf(LeftBehindError);
    expect((outcome.error as LeftBehindError).place).toBe(path);
    await proxy.pass();
    await until('it is gone', async () => !(await direct.exists(path)));
  });

  it('C20, CB6: end() promotes nobody on the way, tells all and refuses who joins meanwhile', async () => {
    const direct = await zk.client();
    const a = zk.election(await zk.client(), 'a');
    const first = await a.campaign();
    const others = ['b', 'c', 'd'].map(async (id) => waiting(zk.election(await zk.client(), id)));
    const followers = await Promise.all(others);
    await until('all follow', () => followers.every(({ follows }) => follows()));
    const joining = ['e', 'f'].map(async (id) => waiting(zk.election(await zk.client(), id)));
    const ending = a.end();
    const late = await Promise.all(joining);
    await ending;
    await until('the leader is told', () => first.signal.aborted);
    expect((await end(first)).reason).toBe('election-ended');
    for (const { won, statuses } of [...followers, ...late]) {
      await expect(won).rejects.toBeInstanceOf(ElectionEndedError);
      expect(statuses.every(({ role }) => role !== 'leader')).toBe(true);
    }
    expect(await placesOf(direct, zk.node)).toEqual([]);
    await a.end();
    await a.reopen();
    await end(await a.campaign());
  });

  it('C8, C17, C21: golea ends by DONE, also an election that is not there', async () => {
    const client = await zk.client();
    const options = { layout: 'golea', tickTime: 200 } as const;
    const a = zk.election(client, 'a', options);
    const path = `/${zk.name}`;
    await expect(a.campaign()).rejects.toThrow('does not exist');
    await a.end();
    await client.create(path);
    const first = await a.campaign();
    const b = waiting(zk.election(await zk.client(), 'b', options));
    await until('b follows', b.follows);
    await a.end();
    expect((await client.get(`${path}/DONE`)).text).toBe('done');
    await expect(b.won).rejects.toBeInstanceOf(ElectionEndedError);
    await until('the leader is told', () => first.signal.aborted);
    await end(first);
    await expect(a.campaign()).rejects.toBeInstanceOf(ElectionEndedError);
    await a.reopen();
    await end(await a.campaign());
  });

  it('observers hear once of a change of leader, and of a leader that left nobody behind', async () => {
    const client = await zk.client();
    const proxy = await zk.proxy();
    const a = zk.election(await zk.client(proxy), 'a');
    const watcher = zk.election(client, 'watcher');
    const seen: string[] = [];
    const stop = new AbortController();
    const watching = (async () => {
      for await (const view of watcher.observe({ signal: stop.signal })) {
        seen.push(view.state === 'led' ? `led by ${view.leader?.id}` : view.state);
      }
    })();
    const first = await a.campaign();
    const bc = ['b', 'c'].map(async (id) => waiting(zk.election(await zk.client(), id)));
    const [b, c] = (await Promise.all(bc)) as [
      ReturnType<typeof waiting>,
      ReturnType<typeof waiting>,
    ];
    await until('both follow', () => b.follows() && c.follows());
    expect(seen).toEqual(['vacant', 'led by a']);
    b.stop.abort(new Error('no more'));
    c.stop.abort(new Error('no more'));
    await Promise.allSettled([b.won, c.won]);
    proxy.silence();
    await until('it is missed', () => seen.length > 2);
    expect(seen).toEqual(['vacant', 'led by a', 'vacant']);
    stop.abort();
    await watching;
    await proxy.pass();
    await end(first);
  });
});
