// A leader names the candidate behind it in the transaction that gives its place up.
import { FakeZooKeeper } from '@incumbent/zookeeper-testing';
import { expect, it, vi } from 'vitest';
import type { ZooKeeper } from '../../zookeeper/src/index.ts';
import { connect } from '../../zookeeper/src/index.ts';
import { zookeeper } from '../src/backends/zookeeper/index.ts';
import { queueLayout } from '../src/backends/zookeeper/layout.ts';
import { ZooKeeperSuccession } from '../src/backends/zookeeper/succession.ts';
import type { Backend, Scope } from '../src/core/contest.ts';
import type { LeadOptions, Term } from '../src/index.ts';
import { createElection } from '../src/index.ts';
import type { Place } from '../src/mechanisms/queue/store.ts';
import { emptyQueueRecord } from '../src/record/queue-record.ts';

const text = new TextDecoder();

/** A server, and candidates with a client each. */
async function stage() {
  const fake = await FakeZooKeeper.start({ tickTimeMs: 200, realTime: true });
  const open: AsyncDisposable[] = [fake];
  const client = async () => {
    const made = await connect(fake.connectionString, { sessionTimeoutMs: 4_000 });
    open.push(made);
    return made;
  };
  const elect = (id: string, backend: Backend<unknown>) => {
    const election = createElection({ name: 'e', candidate: { id }, backend });
    open.push(election);
    return election;
  };
  const candidate = async (id: string) => {
    const own = await client();
    return {
      client: own,
      election: elect(id, zookeeper(own, { tickTime: 200, nameSuccessor: true })),
    };
  };
  const places = () =>
    [...fake.tree()].filter(([path]) => path.startsWith('/incumbent/e/')).sort(byNumber);
  const dataOf = (index: number) => text.decode(places()[index]?.[1].data ?? new Uint8Array());
  const markOf = (index: number) => JSON.parse(dataOf(index)).successor;
  const record = () => JSON.parse(text.decode(fake.tree().get('/incumbent/e')?.data ?? undefined));
  /** The leader watches the place of the next in line. */
  const isWatched = async () => {
    const [first, next] = places();
    const leads = first?.[1].stat.ephemeralOwner;
    await vi.waitFor(() => {
      const watched = fake.watches().filter(({ path }) => path === next?.[0]);
      expect(watched.some(({ sessionId }) => sessionId === leads)).toBe(true);
    });
  };
  /** That place is marked and confirmed, and the leader has read it. */
  const isReady = async (leader: ZooKeeper) => {
    const [, next] = places();
    await vi.waitFor(() => {
      const asked = fake.requests.filter(({ opcode }) => opcode === 'multi');
      expect(asked.some(({ paths }) => paths.length === 1 && paths[0] === next?.[0])).toBe(true);
    });
    await isWatched();
    // A later answer shows that it has read the place.
    await leader.exists('/');
    await new Promise((resolve) => setImmediate(resolve));
  };
  return {
    ...{ fake, client, elect, candidate, places, dataOf, markOf, record, isWatched, isReady },
    [Symbol.asyncDispose]: async () => {
      for (const one of open.reverse()) await one[Symbol.asyncDispose]();
    },
  };
}

function byNumber([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a.slice(-10).localeCompare(b.slice(-10));
}

/** Leads until it is told to stop, and keeps its terms. */
function leads(election: ReturnType<typeof createElection>, options: LeadOptions = {}) {
  const terms: Term<unknown>[] = [];
  const leading = election.lead(async (term) => {
    terms.push(term);
    await new Promise((resolve) => {
      term.signal.addEventListener('abort', resolve, { once: true });
    });
  }, options);
  leading.catch(() => {});
  return terms;
}

it('a clean hand-over is one transaction, which names the next in line', async () => {
  await using at = await stage();
  const leader = await at.candidate('first');
  const first = await leader.election.campaign();
  const terms = leads((await at.candidate('next')).election);
  await vi.waitFor(() => expect(at.places()).toHaveLength(2));
  await at.isReady(leader.client);
  await first[Symbol.asyncDispose]();
  await vi.waitFor(() => expect(terms).toHaveLength(1));
  const [term] = terms as [Term<unknown>];
  expect(term.isLeading()).toBe(true);
  expect(term.token).toBeGreaterThan(first.token);
  expect(term.predecessor).toMatchObject({ id: 'first', token: first.token, clean: true });
  const { history, leadership, token } = at.record();
  expect(history).toMatchObject([{ id: 'first', why: 'resigned' }]);
  expect(leadership).toMatchObject({ candidate: { id: 'next' } });
  expect(token).toBe(term.token.toString());
  const writes = at.fake.requests.filter(
    ({ opcode, paths }) => opcode === 'multi' && paths.includes('/incumbent/e'),
  );
  // The announcement of the first one, and the naming.
  expect(writes.map(({ paths }) => paths.length)).toEqual([2, 3]);
});

it('a candidate is not to be named before it is next in line', async () => {
  await using at = await stage();
  const leader = await at.candidate('first');
  const first = await leader.election.campaign();
  leads((await at.candidate('next')).election);
  await vi.waitFor(() => expect(at.places()).toHaveLength(2));
  leads((await at.candidate('last')).election);
  await vi.waitFor(() => expect(at.places()).toHaveLength(3));
  await at.isReady(leader.client);
  expect(at.markOf(1)).toBeDefined();
  expect(at.markOf(2)).toBeUndefined();
  await first[Symbol.asyncDispose]();
  await vi.waitFor(() => expect(at.markOf(1)).toBeDefined());
});

it('a candidate that leaves before it has heard of its place is not named', async () => {
  await using at = await stage();
  const leader = await at.candidate('first');
  const first = await leader.election.campaign();
  const next = await at.candidate('next');
  const entering = at.fake.faults.next('create2', 'delay');
  const leaving = new AbortController();
  leads(next.election, { signal: leaving.signal });
  await vi.waitFor(() => expect(at.places()).toHaveLength(2));
  await at.isWatched();
  leaving.abort();
  await first[Symbol.asyncDispose]();
  expect(at.record().leadership).toBeUndefined();
  entering.release();
});

it('a candidate that has written its place anew is named with its new mark alone', async () => {
  await using at = await stage();
  const leader = await at.candidate('first');
  const first = await leader.election.campaign();
  const next = await at.candidate('next');
  const terms = leads(next.election);
  await vi.waitFor(() => expect(at.places()).toHaveLength(2));
  await at.isReady(leader.client);
  const before = at.dataOf(1);
  at.fake.dropConnections();
  await vi.waitFor(() => expect(at.dataOf(1)).not.toBe(before));
  const { nonce } = JSON.parse(at.dataOf(1)).successor;
  await at.isReady(leader.client);
  await first[Symbol.asyncDispose]();
  await vi.waitFor(() => expect(terms).toHaveLength(1), { timeout: 5_000 });
  expect(at.record()).toMatchObject({ nonce });
});

it('a place that somebody has written is not named as it was read before', async () => {
  await using at = await stage();
  const leader = await at.candidate('first');
  const first = await leader.election.campaign();
  const terms = leads((await at.candidate('next')).election);
  await vi.waitFor(() => expect(at.places()).toHaveLength(2));
  await at.isReady(leader.client);
  const [path = ''] = at.places()[1] ?? [];
  const operator = await at.client();
  const { data } = await operator.get(path);
  // The leader hears of the change only after its own release.
  at.fake.faults.next({ opcode: 'multi', path: '/incumbent/e' }, 'dropBefore');
  await operator.set(path, data);
  await first[Symbol.asyncDispose]();
  await vi.waitFor(() => expect(terms).toHaveLength(1), { timeout: 5_000 });
  expect(terms[0]?.isLeading()).toBe(true);
});

it('a candidate that was named while it left gives the naming back, and nobody runs a hook', async () => {
  await using at = await stage();
  const leader = await at.candidate('first');
  const first = await leader.election.campaign();
  const next = await at.candidate('next');
  const leaving = new AbortController();
  leads(next.election, { signal: leaving.signal });
  await vi.waitFor(() => expect(at.places()).toHaveLength(2));
  await at.isReady(leader.client);
  const fenced: unknown[] = [];
  const last = leads((await at.candidate('last')).election, {
    onUnclean: (leader) => void fenced.push(leader),
  });
  await vi.waitFor(() => expect(at.places()).toHaveLength(3));
  // Its answer to the deletion of the place before it waits until it leaves.
  const [path = ''] = at.places()[0] ?? [];
  const sessionId = next.client.session?.id;
  const look = at.fake.faults.next(
    {
      opcode: ['getData', 'getChildren', 'getChildren2'],
      predicate: ({ sessionId: by, paths }) => by === sessionId && !paths.includes(path),
    },
    'delay',
  );
  await first[Symbol.asyncDispose]();
  expect(at.record()).toMatchObject({ leadership: { candidate: { id: 'next' } } });
  leaving.abort();
  look.release?.();
  await vi.waitFor(() => expect(last).toHaveLength(1), { timeout: 1_000 });
  expect(fenced).toEqual([]);
  expect(at.record().history).toMatchObject([{ id: 'first', why: 'resigned' }]);
});

/** The hand-over alone, in the election `/e`. */
async function succession(client: ZooKeeper) {
  await client.create('/e', null);
  const gone: string[] = [];
  const onGone = ({ name }: Place) => void gone.push(name);
  const settings = { layout: queueLayout('incumbent'), path: '/e' };
  return { gone, side: new ZooKeeperSuccession(client, settings, onGone) };
}

it('a place that was gone when it was to be given up is forgotten', async () => {
  await using at = await stage();
  const { side, gone } = await succession(await at.client());
  const place = { name: '/e/1', token: 1n, session: 1n };
  const candidate = { id: 'b', incarnation: 'b-1', addresses: [], metadata: {} };
  const next = { name: '/e/2', token: 2n, candidate, mark: undefined, version: 0 };
  const change = { record: emptyQueueRecord('e', 'nonce'), version: 0 };
  const { signal } = new AbortController();
  expect(await side.handOver(place, next, change, signal)).toEqual({ outcome: 'gone' });
  expect(gone).toEqual(['/e/1']);
});

it('a mark counts only in a place of ours', async () => {
  await using at = await stage();
  const client = await at.client();
  const { side } = await succession(client);
  const successor = { nonce: 'n', beliefMs: 1, leaseMs: 2 };
  const ours = { incumbent: 'candidate', id: 'b', incarnation: 'b-1', addresses: [], metadata: {} };
  const { signal } = new AbortController();
  const markIn = async (data: object) => {
    const { path } = await client.create('/e/n-', JSON.stringify(data), {
      ...{ ephemeral: true, sequential: true },
    });
    return (await side.watchNext(path, signal)).value?.mark;
  };
  expect(await markIn({ ...ours, successor })).toMatchObject(successor);
  expect(await markIn({ successor })).toBeUndefined();
});

/** A copy of the process behind `client`: what was drawn before is the same, and so is the place. */
function copies(own: ZooKeeper) {
  const drawn = ['guid-of-both', 'nonce-of-both'];
  const inCopy = (backend: Backend<unknown>): Backend<unknown> => ({
    ...backend,
    open: (scope: Scope) => {
      const left = [...drawn];
      return backend.open({ ...scope, uniqueId: () => left.shift() ?? scope.uniqueId() });
    },
  });
  let made: ReturnType<ZooKeeper['create']> | undefined;
  const listeners = new Set<(change: { readonly state: string }) => void>();
  const copy = new Proxy(own, {
    get(target, name) {
      if (name === 'onState') {
        return (listener: (change: { readonly state: string }) => void) => {
          listeners.add(listener);
          return () => listeners.delete(listener);
        };
      }
      if (name === 'create' && made !== undefined) {
        const same = made;
        made = undefined;
        return () => same;
      }
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  let isFirst = true;
  const original = new Proxy(own, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (name !== 'create' || !isFirst) {
        return typeof value === 'function' ? value.bind(target) : value;
      }
      isFirst = false;
      return (...args: Parameters<ZooKeeper['create']>) => {
        made = target.create(...args);
        return made;
      };
    },
  });
  const tell = (state: string) => {
    for (const listener of [...listeners]) listener({ state });
  };
  return { original, copy, inCopy, reconnect: () => ['suspended', 'connected'].forEach(tell) };
}

it.each(['before', 'after'])(
  'two copies never both lead, if the copy connects %s the naming',
  async (when) => {
    await using at = await stage();
    const leader = await at.candidate('first');
    const first = await leader.election.campaign();
    const { original, copy, inCopy, reconnect } = copies(await at.client());
    const lists = [original, copy].map((client) =>
      zookeeper(client, { tickTime: 200, nameSuccessor: true }),
    );
    const [one = [], two = []] = [
      leads(at.elect('a', inCopy(lists[0] as Backend<unknown>))),
      leads(at.elect('a', inCopy(lists[1] as Backend<unknown>))),
    ];
    await vi.waitFor(() => expect(at.places()).toHaveLength(2));
    await at.isReady(leader.client);
    if (when === 'before') reconnect();
    const ending = first[Symbol.asyncDispose]();
    if (when === 'after') reconnect();
    await ending;
    let most = 0;
    const leading = () => {
      const now = [...one, ...two].filter((term) => term.isLeading()).length;
      most = Math.max(most, now);
      return now;
    };
    // Each of them has a place of its own in the end.
    const isOver = () => leading() === 1 && at.places().length === 2;
    const over = vi.waitFor(() => expect(isOver()).toBe(true), { timeout: 8_000, interval: 1 });
    await over.catch(() => {});
    expect(most).toBe(1);
    await over;
  },
  20_000,
);
