// The layout of Comcast's go-leaderelection, whose end of an election is a node `DONE`. Its
// `DeleteElection` sets that node, and deletes the candidates that it has listed. A fifth
// of a second later it deletes the election with the mark. It fails when a candidate is
// still there then.
import { FakeZooKeeper, startProxy } from '@incumbent/zookeeper-testing';
import { describe, it } from 'vitest';
import type { ZooKeeper } from '../../zookeeper/src/index.ts';
import { connect } from '../../zookeeper/src/index.ts';
import { memory } from '../src/backends/memory/index.ts';
import type { ZooKeeperGuard, ZooKeeperOptions } from '../src/backends/zookeeper/index.ts';
import { zookeeper } from '../src/backends/zookeeper/index.ts';
import type { Election } from '../src/index.ts';
import {
  createElection,
  ElectionEndedError,
  InvalidOptionError,
  MisuseError,
  StoreUnsuitableError,
} from '../src/index.ts';

interface Ours {
  readonly through?: { readonly connectionString: string };
  /** Adds to the calls of its client. */
  readonly wrap?: (client: ZooKeeper) => ZooKeeper;
  readonly options?: ZooKeeperOptions;
  readonly stopTimeout?: string;
}

class Arena implements AsyncDisposable {
  readonly fake: FakeZooKeeper;
  readonly client: ZooKeeper;
  readonly #open: AsyncDisposable[];

  private constructor(fake: FakeZooKeeper, client: ZooKeeper) {
    this.fake = fake;
    this.client = client;
    this.#open = [fake, client];
  }

  static async open(): Promise<Arena> {
    const fake = await FakeZooKeeper.start({ tickTimeMs: 200, realTime: true });
    const client = await connect(fake.connectionString, { sessionTimeoutMs: 4_000 });
    await client.create('/e');
    return new Arena(fake, client);
  }

  async ours(
    id: string,
    {
      through = this.fake,
      wrap = (client) => client,
      options = {},
      stopTimeout = '60s',
    }: Ours = {},
  ): Promise<Election<ZooKeeperGuard>> {
    const client = await connect(through.connectionString, { sessionTimeoutMs: 4_000 });
    const backend = zookeeper(wrap(client), {
      layout: 'golea',
      root: '/',
      tickTime: 200,
      predecessorWait: 'off',
      ...options,
    });
    const election = createElection({ name: 'e', backend, candidate: { id }, stopTimeout });
    this.#open.push(client, election);
    return election;
  }

  /** A member of theirs. @returns its path */
  async theirs(): Promise<string> {
    const { path } = await this.client.create('/e/le_', 'theirs', {
      ephemeral: true,
      sequential: true,
    });
    return path;
  }

  /** The election is deleted and made anew at once: names begin with `le_0000000000` again. */
  async reset(): Promise<void> {
    const transaction = this.client.transaction();
    for (const name of this.children()) transaction.delete(`/e/${name}`);
    await transaction.delete('/e').create('/e').commit();
  }

  children(): readonly string[] {
    return [...this.fake.tree().keys()]
      .filter((path) => path.startsWith('/e/'))
      .map((path) => path.slice('/e/'.length))
      .sort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const one of this.#open.splice(0).reverse()) await one[Symbol.asyncDispose]();
  }
}

/** Does something before each of these calls is sent, and before a transaction is committed. */
function before(
  client: ZooKeeper,
  calls: readonly (keyof ZooKeeper)[],
  happens: (args: readonly unknown[]) => Promise<void>,
): ZooKeeper {
  return new Proxy(client, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name, target);
      if (typeof method !== 'function') return method;
      if (!calls.includes(name as keyof ZooKeeper)) return method.bind(target);
      if (name !== 'transaction') {
        return async (...args: readonly unknown[]) => {
          await happens(args);
          return method.apply(target, args);
        };
      }
      return () => {
        const transaction = target.transaction();
        const commit = transaction.commit.bind(transaction);
        transaction.commit = async (options) => {
          await happens([]);
          return commit(options);
        };
        return transaction;
      };
    },
  });
}

/** Waits for a change. The bound only turns a hang into a failure. */
async function until(what: string, holds: () => boolean): Promise<void> {
  const deadlineMs = performance.now() + 20_000;
  while (!holds()) {
    if (performance.now() > deadlineMs) throw new Error(`never: ${what}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

async function joined(arena: Arena, election: Election<ZooKeeperGuard>) {
  const before = arena.children().length;
  const campaign = election.campaign();
  const outcome = campaign.then(
    () => undefined,
    (error: unknown) => error,
  );
  await until('it has a place', () => arena.children().length > before);
  const [own = ''] = arena.children().slice(-1);
  await until('it waits', () => arena.fake.watches().some(({ path }) => path === `/e/${own}`));
  return { campaign, outcome };
}

describe.concurrent('when the mark of the end appears', () => {
  it('a leader believes no longer and leaves at once, however long its work goes on', async ({
    expect,
  }) => {
    await using arena = await Arena.open();
    const term = await (await arena.ours('a')).campaign();
    const follower = await arena.theirs();
    await arena.client.create('/e/DONE', 'done');
    await until('it is told', () => term.signal.aborted);
    expect(term.isLeading()).toBe(false);
    await until('its place is gone', () => arena.children().length === 2);
    expect(arena.children()).toEqual(['DONE', follower.slice(3)]);
    // Its work has not settled until here.
    await term[Symbol.asyncDispose]();
    expect(await term.ended).toMatchObject({ reason: 'election-ended', released: false });
  });

  it('a candidate that waits leaves at once, though nothing happens to the one before it', async ({
    expect,
  }) => {
    await using arena = await Arena.open();
    const leader = await arena.theirs();
    const { outcome } = await joined(arena, await arena.ours('a'));
    await arena.client.create('/e/DONE', 'done');
    expect(await outcome).toBeInstanceOf(ElectionEndedError);
    await until('its place is gone', () => arena.children().length === 2);
    expect(arena.children()).toEqual(['DONE', leader.slice(3)]);
  });

  it('each of ours, leader or follower, has one watch on it, and leaves by that one', async ({
    expect,
  }) => {
    await using arena = await Arena.open();
    const term = await (await arena.ours('a')).campaign();
    const b = await joined(arena, await arena.ours('b'));
    const c = await joined(arena, await arena.ours('c'));
    const onMark = () => arena.fake.watches().filter(({ path }) => path === '/e/DONE').length;
    await until('all watch it', () => onMark() === 3);
    await arena.client.create('/e/DONE', 'done');
    expect(await b.outcome).toBeInstanceOf(ElectionEndedError);
    expect(await c.outcome).toBeInstanceOf(ElectionEndedError);
    await until('it is told', () => term.signal.aborted);
    expect(term.isLeading()).toBe(false);
    await until('their places are gone', () => arena.children().length === 1);
    expect(onMark()).toBe(0);
    await term[Symbol.asyncDispose]();
  });

  it('nobody of ours enters again, also when election and mark are gone by then', async ({
    expect,
  }) => {
    await using arena = await Arena.open();
    const term = await (await arena.ours('a')).campaign();
    const { outcome } = await joined(arena, await arena.ours('b'));
    // All in one transaction: the notifications come after all of it.
    const transaction = arena.client.transaction();
    for (const name of [...arena.children()].reverse()) transaction.delete(`/e/${name}`, 0);
    transaction.delete('/e/DONE').delete('/e').create('/e');
    await Promise.all([arena.client.create('/e/DONE', 'done'), transaction.commit()]);
    expect(await outcome).toBeInstanceOf(ElectionEndedError);
    await until('it is told', () => term.signal.aborted);
    await term[Symbol.asyncDispose]();
    expect(arena.children()).toEqual([]);
  });

  it('a leader that our own operator ends keeps its place until its work has settled', async ({
    expect,
  }) => {
    await using arena = await Arena.open();
    const election = await arena.ours('a');
    const term = await election.campaign();
    const { outcome } = await joined(arena, await arena.ours('b'));
    await (await arena.ours('operator')).end();
    expect(await outcome).toBeInstanceOf(ElectionEndedError);
    await until('it is told', () => term.signal.aborted);
    await until('who waits is gone', () => arena.children().length === 2);
    // Everything that it could do because of the mark alone is done by now.
    await election.leader();
    expect(arena.children()).toEqual(['DONE', 'le_0000000000']);
    expect(term.isLeading()).toBe(true);
    await term[Symbol.asyncDispose]();
    expect(await term.ended).toMatchObject({ reason: 'election-ended', released: true });
    expect(arena.children()).toEqual(['DONE']);
  });

  it('an end that comes while another operator reopens is done whole, or not at all', async ({
    expect,
  }) => {
    await using arena = await Arena.open();
    const ender = await arena.ours('ender');
    await (await (await arena.ours('a')).campaign())[Symbol.asyncDispose]();
    let ends = 0;
    const reopener = await arena.ours('reopener', {
      wrap: (client) =>
        before(client, ['stat', 'delete'], async ([path]) => {
          if (path !== '/e/DONE' || ends > 0) return;
          ends += 1;
          expect((await ender.end()).changed).toBe(true);
        }),
    });
    await reopener.reopen();
    expect(ends).toBe(1);
    const { ended } = JSON.parse((await arena.client.get('/e')).text);
    expect(arena.children().includes('DONE')).toBe(ended);
  });

  it('a win that was on its way then is given back, though all of it is over by the answer', async ({
    expect,
  }) => {
    await using arena = await Arena.open();
    let strikes = 0;
    const ours = await arena.ours('a', {
      wrap: (client) =>
        before(client, ['transaction'], async () => {
          if (strikes > 0) return;
          strikes += 1;
          // As GoLea's DeleteElection does. Then one of its members begins the next election.
          await arena.client.create('/e/DONE', 'done');
          await until('it is told', () =>
            arena.fake.watches().every(({ path }) => path !== '/e/DONE'),
          );
          await arena.client.transaction().delete('/e/DONE').commit();
          await arena.reset();
          expect(await arena.theirs()).toBe('/e/le_0000000000');
        }),
    });
    await expect(ours.campaign()).rejects.toThrow(ElectionEndedError);
    expect(strikes).toBe(1);
    expect(arena.children()).toEqual(['le_0000000000']);
  });

  it('an operator ends it again where only the mark is missing', async ({ expect }) => {
    await using arena = await Arena.open();
    const operator = await arena.ours('operator');
    await operator.end();
    await arena.client.delete('/e/DONE');
    await operator.end();
    expect(arena.children()).toEqual(['DONE']);
    expect((await operator.end()).changed).toBe(false);
  });
});

describe.concurrent('when names come again', () => {
  it('a former leader gives back nothing of the one that has the same name now', async ({
    expect,
  }) => {
    await using arena = await Arena.open();
    const proxy = await startProxy(arena.fake);
    const old = await (await arena.ours('a', { through: proxy })).campaign();
    const b = await arena.ours('b');
    // It hears nothing of what happens now, and its record will have the version of the next one's.
    proxy.holdReplies();
    await arena.reset();
    const next = await b.campaign();
    const place = arena.children();
    expect(place).toEqual(['le_0000000000']);
    let isAsking = false;
    const stop = proxy.onRequest(() => {
      isAsking = true;
    });
    const ending = old[Symbol.asyncDispose]();
    await until('it gives back what it thinks is its own', () => isAsking);
    stop();
    proxy.letGo();
    await ending;
    expect((await old.ended).released).toBe(false);
    expect(arena.children()).toEqual(place);
    expect(JSON.parse((await arena.client.get('/e')).text).leadership.candidate.id).toBe('b');
    expect(next.isLeading()).toBe(true);
    await next[Symbol.asyncDispose]();
    await proxy.close();
  });
});

describe.concurrent('when the election is removed with its end', () => {
  /** Beside members that wait, as `predecessorWait` says by default. */
  const waiting = { predecessorWait: 'belief' } as const;

  it('the leader goes in order first, and tokens go on rising after reopen()', async ({
    expect,
  }) => {
    await using arena = await Arena.open();
    const term = await (await arena.ours('a')).campaign();
    const { outcome } = await joined(arena, await arena.ours('b'));
    await arena.theirs();
    const operator = await arena.ours('operator', { options: waiting });
    let isRemoved = false;
    const removed = operator.end({ remove: true }).then((result) => {
      isRemoved = true;
      return result;
    });
    expect(await outcome).toBeInstanceOf(ElectionEndedError);
    await until('it is told', () => term.signal.aborted);
    await until('the followers have gone', () => arena.children().length === 2);
    // Its work goes on. So its place is there, and it may believe.
    await operator.leader();
    expect(arena.children()).toEqual(['DONE', 'le_0000000000']);
    expect([term.isLeading(), isRemoved]).toEqual([true, false]);
    await term[Symbol.asyncDispose]();
    expect(await term.ended).toMatchObject({ reason: 'election-ended', released: true });
    expect((await removed).changed).toBe(true);
    expect(await arena.client.exists('/e')).toBe(false);
    expect((await operator.end({ remove: true })).changed).toBe(false);

    const late = await arena.ours('late');
    await expect(late.campaign()).rejects.toThrow(StoreUnsuitableError);
    expect((await operator.reopen()).changed).toBe(true);
    const next = await late.campaign();
    expect(arena.children()).toEqual(['le_0000000000']);
    expect(next.token).toBeGreaterThan(term.token);
    await next[Symbol.asyncDispose]();
  });

  it('it stays until a leader that is cut off believes no longer', async ({ expect }) => {
    await using arena = await Arena.open();
    const proxy = await startProxy(arena.fake);
    const old = await (await arena.ours('a', { through: proxy, options: waiting })).campaign();
    proxy.holdReplies();
    await arena.client.delete('/e/le_0000000000');
    expect(old.isLeading()).toBe(true);
    let believed: boolean | undefined;
    const operator = await arena.ours('operator', {
      options: waiting,
      wrap: (client) =>
        before(client, ['transaction'], async () => {
          // The first transaction is the end.
          believed = believed === undefined ? true : old.isLeading();
        }),
    });
    await operator.end({ remove: true });
    expect(believed).toBe(false);
    expect(await arena.client.exists('/e')).toBe(false);
    proxy.letGo();
    await old[Symbol.asyncDispose]();
    await proxy.close();
  });

  it('a candidate that has gone meanwhile, or comes late, does not stop it', async ({ expect }) => {
    await using arena = await Arena.open();
    const leader = await arena.theirs();
    await arena.theirs();
    let late = false;
    const operator = await arena.ours('operator', {
      wrap: (client) =>
        before(client, ['transaction'], async () => {
          if (late) return;
          late = true;
          // Each of these makes its transaction fail as a whole.
          await arena.client.delete(leader);
          await arena.theirs();
        }),
    });
    expect((await operator.end({ remove: true })).changed).toBe(true);
    expect(await arena.client.exists('/e')).toBe(false);
  });

  it('a leader whose work does not stop is named, and all of it stays', async ({ expect }) => {
    await using arena = await Arena.open();
    const term = await (await arena.ours('a')).campaign();
    const operator = await arena.ours('operator', { stopTimeout: '100ms' });
    await expect(operator.end({ remove: true })).rejects.toThrow(
      /"a" has not left election "e" within 4\.1s\. The election is ended, and its node stays/,
    );
    expect(arena.children()).toEqual(['DONE', 'le_0000000000']);
    expect(term.isLeading()).toBe(true);
    await term[Symbol.asyncDispose]();
    expect((await operator.end({ remove: true })).changed).toBe(true);
    expect(await arena.client.exists('/e')).toBe(false);
  });

  it('a removal whose answer is lost has removed it', async ({ expect }) => {
    await using arena = await Arena.open();
    const operator = await arena.ours('operator');
    await operator.end();
    arena.fake.faults.next('multi', 'dropAfter');
    expect((await operator.end({ remove: true })).changed).toBe(true);
    expect(await arena.client.exists('/e')).toBe(false);
  });

  it('children that are no candidates are named, and nothing is changed', async ({ expect }) => {
    await using arena = await Arena.open();
    const term = await (await arena.ours('a')).campaign();
    await arena.client.create('/e/settings');
    const operator = await arena.ours('operator');
    await expect(operator.end({ remove: true })).rejects.toThrow(
      /cannot be removed: .* no candidates \("settings"\)\. Delete or move them first/,
    );
    expect(arena.children()).toEqual(['le_0000000000', 'settings']);
    expect(JSON.parse((await arena.client.get('/e')).text).ended).toBe(false);
    await term[Symbol.asyncDispose]();
  });

  it('a child that is no candidate and comes meanwhile is named, and the node stays', async ({
    expect,
  }) => {
    await using arena = await Arena.open();
    await (await arena.ours('first')).end();
    let comes = 0;
    const operator = await arena.ours('operator', {
      wrap: (client) =>
        before(client, ['transaction'], async () => {
          comes += 1;
          if (comes === 1) await arena.client.create('/e/settings');
        }),
    });
    await expect(operator.end({ remove: true })).rejects.toThrow(/no candidates \("settings"\)/);
    expect(comes).toBe(1);
    expect(arena.children()).toEqual(['DONE', 'settings']);
  });

  it('another operator reopens it meanwhile: it stays, and the caller is told', async ({
    expect,
  }) => {
    await using arena = await Arena.open();
    const term = await (await arena.ours('a')).campaign();
    const removed = (await arena.ours('operator')).end({ remove: true });
    removed.catch(() => {});
    await until('it is told', () => term.signal.aborted);
    await (await arena.ours('reopener')).reopen();
    await term[Symbol.asyncDispose]();
    await expect(removed).rejects.toThrow(/was reopened while it was being removed/);
    expect(await arena.client.exists('/e')).toBe(true);
  });

  it('another layout refuses it, before anything is changed', async ({ expect }) => {
    await using arena = await Arena.open();
    const backend = zookeeper(arena.client, { root: '/' });
    const ours = createElection({ name: 'e', backend });
    await expect(ours.end({ remove: true })).rejects.toThrow(
      /ZooKeeper, layout incumbent, .* keeps an ended election, .* Only the layout "golea"/,
    );
    await expect(ours.end({ remove: 'yes' as never })).rejects.toThrow(
      'remove must be true or false, not "yes"',
    );
    expect((await arena.client.get('/e')).text).toBe('');
    await ours.close();
    const elsewhere = createElection({ name: 'e', backend: memory() });
    await expect(elsewhere.end({ remove: true })).rejects.toThrow(InvalidOptionError);
    await expect(elsewhere.deleteCandidates()).rejects.toThrow(MisuseError);
    await elsewhere.close();
  });
});

describe.concurrent('when an operator deletes the candidates', () => {
  it('our leader believes no longer, followers enter again, theirs are gone', async ({
    expect,
  }) => {
    await using arena = await Arena.open();
    const term = await (await arena.ours('a')).campaign();
    await arena.theirs();
    const { campaign } = await joined(arena, await arena.ours('b'));
    const operator = await arena.ours('operator');
    expect((await operator.deleteCandidates()).changed).toBe(true);
    const deleted = arena.fake.requests
      .filter(({ opcode }) => opcode === 'delete')
      .map(({ path }) => path);
    expect(deleted).toEqual(['/e/le_0000000002', '/e/le_0000000001', '/e/le_0000000000']);
    await until('it is told', () => term.signal.aborted);
    expect(term.isLeading()).toBe(false);
    await term[Symbol.asyncDispose]();
    expect(await term.ended).toMatchObject({ reason: 'record-gone', released: false });
    const next = await campaign;
    expect(next.token).toBeGreaterThan(term.token);
    await next[Symbol.asyncDispose]();
    expect((await operator.deleteCandidates()).changed).toBe(false);
  });

  it('the first of theirs is told as the leader that was there', async ({ expect }) => {
    await using arena = await Arena.open();
    await arena.theirs();
    await arena.theirs();
    const operator = await arena.ours('operator');
    const { leader, token } = await operator.leader();
    expect(leader).toBeDefined();
    const asked = await operator.deleteCandidates();
    expect(asked).toMatchObject({ changed: true, view: { state: 'led', leader, token } });
    expect(arena.children()).toEqual([]);
  });

  it('where all candidates are ours, end() and vacate() are named instead', async ({ expect }) => {
    await using arena = await Arena.open();
    const ours = createElection({ name: 'e', backend: zookeeper(arena.client) });
    await expect(ours.deleteCandidates()).rejects.toThrow(MisuseError);
    await expect(ours.deleteCandidates()).rejects.toThrow(/end\(\) ends the election/);
    await ours.close();
  });
});
