import { describe } from 'vitest';
import type { ZooKeeper } from '../../../zookeeper/src/index.ts';
import type { ZooKeeperOptions } from '../../src/backends/zookeeper/index.ts';
import { zookeeper } from '../../src/backends/zookeeper/index.ts';
import { ZooKeeperNodeStore } from '../../src/backends/zookeeper/node-store.ts';
import { systemClock } from '../../src/base/clock.ts';
import { resolveTiming } from '../../src/base/timing.ts';
import type { Scope, SeatState } from '../../src/core/contest.ts';
import { createElection } from '../../src/core/election.ts';
import type { TakenLock } from '../../src/mechanisms/lock/store.ts';
import { announcedRecord } from '../../src/mechanisms/queue/announcement.ts';
import type { Entry } from '../../src/mechanisms/queue/store.ts';
import { released } from '../../src/record/transitions.ts';
import type { Arena, Member, MemberOptions } from './support.ts';
import {
  aborted,
  background,
  end,
  inArena,
  sessionTimeoutMs,
  tickTimeMs,
  until,
} from './support.ts';

const path = '/master/ns1';
const recordPath = `${path}.incumbent`;

/** Members of one election that is the node `/master/ns1`. */
function ours(arena: Arena, id: string, options: MemberOptions = {}): Promise<Member> {
  const layout: ZooKeeperOptions = { layout: 'node', root: '/master', ...options.zookeeper };
  return arena.member(id, { ...options, zookeeper: layout });
}

/** A member as mooon's `race_master` makes one: it knows the node alone. */
async function raceMaster(arena: Arena, data = 'theirs'): Promise<ZooKeeper> {
  const client = await arena.client();
  await client.ensurePath('/master');
  await client.create(path, data, { ephemeral: true });
  return client;
}

function children(arena: Arena, below: string): readonly string[] {
  return [...arena.fake.tree().keys()].filter(
    (each) => each.startsWith(`${below}/`) && !each.slice(below.length + 1).includes('/'),
  );
}

describe('the nodes', () => {
  inArena('are one of theirs, and a record and a badge beside it', async ({ arena, expect }) => {
    const { election, client } = await ours(arena, 'host-7');
    const term = await election.campaign();
    const tree = arena.fake.tree();
    const node = tree.get(path);
    expect(arena.data(path)).toBe('host-7');
    expect(node?.stat).toMatchObject({ ephemeralOwner: client.session?.id, czxid: term.token });
    expect([...children(arena, '/master')].sort()).toEqual([path, recordPath]);
    expect(tree.get(recordPath)?.stat.ephemeralOwner).toBe(0n);
    expect(children(arena, recordPath)).toEqual([term.guard.path]);
    expect(tree.get(term.guard.path)?.stat).toMatchObject({
      ephemeralOwner: client.session?.id,
      czxid: term.token,
    });
    await end(term);
    expect(children(arena, '/master')).toEqual([recordPath]);
    expect(children(arena, recordPath)).toEqual([]);
    expect(await election.history()).toMatchObject([{ id: 'host-7', token: term.token }]);
  });

  inArena('hold the bytes that the user gives', async ({ arena, expect }) => {
    const activeData = Uint8Array.from([0, 255, 1]);
    const { election } = await ours(arena, 'a', { zookeeper: { activeData } });
    const term = await election.campaign();
    expect(Uint8Array.from(arena.fake.tree().get(path)?.data ?? [])).toEqual(activeData);
    expect(await election.leader()).toMatchObject({ leader: { id: 'a' } });
    await end(term);
  });

  inArena('of an election may not have the name of a record', async ({ arena, expect }) => {
    const client = await arena.client();
    const backend = zookeeper(client, { layout: 'node', root: '/master', tickTime: tickTimeMs });
    expect(() => createElection({ name: 'ns1.incumbent', backend })).toThrow(
      'the election\'s node /master/ns1.incumbent must not end in ".incumbent"',
    );
  });

  inArena('beside it with data that is not ours are refused', async ({ arena, expect }) => {
    const { election, client } = await ours(arena, 'a');
    await client.ensurePath('/master');
    await client.create(recordPath, 'something else');
    await expect(election.campaign()).rejects.toMatchObject({
      code: 'STORE_UNSUITABLE',
      message: expect.stringContaining(recordPath),
    });
    expect(arena.data(path)).toBeUndefined();
  });

  inArena('with create: false have to be there', async ({ arena, expect }) => {
    const { election } = await ours(arena, 'a', { zookeeper: { create: false } });
    await expect(election.campaign()).rejects.toMatchObject({ code: 'STORE_UNSUITABLE' });
  });
});

describe('while one of theirs has the node', () => {
  inArena('it leads, as its data says, and ours wait', async ({ arena, expect }) => {
    const theirs = await raceMaster(arena, 'host-1:99');
    const { election } = await ours(arena, 'a');
    const czxid = arena.fake.tree().get(path)?.stat.czxid;
    expect(await election.leader()).toMatchObject({
      state: 'led',
      leader: { id: 'host-1:99' },
      token: czxid,
    });
    const refused = election.campaign({ wait: 0 });
    await expect(refused).rejects.toMatchObject({ code: 'NOT_ELECTED' });
    const following = background(election.campaign());
    await theirs.close();
    const term = await following;
    expect(term.token).toBeGreaterThan(czxid as bigint);
    await end(term);
  });

  inArena('what it cannot be told is refused by name', async ({ arena, expect }) => {
    await raceMaster(arena);
    const { election } = await ours(arena, 'a');
    for (const refused of [
      () => election.vacate(),
      () => election.transfer('a'),
      () => election.end(),
    ]) {
      await expect(refused()).rejects.toMatchObject({
        code: 'REFUSED',
        message: expect.stringContaining('"theirs"'),
      });
    }
    expect(arena.data(path)).toBe('theirs');
    expect(await election.vacate({ force: true })).toMatchObject({ changed: true });
    expect(arena.data(path)).toBeUndefined();
  });

  inArena('equal data does not make its node ours', async ({ arena, expect }) => {
    await raceMaster(arena, 'a');
    const { election } = await ours(arena, 'a');
    await expect(election.campaign({ wait: 0 })).rejects.toMatchObject({ code: 'NOT_ELECTED' });
    expect(arena.data(path)).toBe('a');
  });
});

describe('members that poll and members that watch', () => {
  inArena('take the node from each other and from theirs', async ({ arena, expect }) => {
    const polling = await ours(arena, 'polls', { zookeeper: { poll: 20 } });
    const watching = await ours(arena, 'watches');
    const theirs = await raceMaster(arena);
    const tokens = [arena.fake.tree().get(path)?.stat.czxid as bigint];
    const first = background(polling.election.campaign());
    await theirs.close();
    const one = await first;
    const second = background(watching.election.campaign());
    tokens.push(one.token);
    await end(one);
    const two = await second;
    tokens.push(two.token);
    expect(two.predecessor).toMatchObject({ id: 'polls', clean: true });
    const third = background(polling.election.campaign());
    await end(two);
    const three = await third;
    tokens.push(three.token);
    await end(three);
    expect(tokens).toEqual([...tokens].sort((a, b) => (a < b ? -1 : 1)));
  });

  inArena('one of ours that still waits is not seen to lead', async ({ arena, expect }) => {
    const { election: a } = await ours(arena, 'a', { zookeeper: { delayAfterWin: '60s' } });
    const { election: b } = await ours(arena, 'b');
    const stop = new AbortController();
    const campaign = background(a.campaign({ signal: stop.signal }));
    await until('it has the node', () => arena.data(path) === 'a');
    expect(await b.leader()).toMatchObject({ state: 'vacant' });
    stop.abort();
    await expect(campaign).rejects.toThrow();
    await until('the node is free', () => arena.data(path) === undefined);
    expect(children(arena, recordPath)).toEqual([]);
  });
});

describe('doubt', () => {
  inArena('MB1: a node whose making was not answered is found', async ({ arena, expect }) => {
    const { election } = await ours(arena, 'a');
    await election.init();
    const fault = arena.fake.faults.next({ opcode: 'multi' }, 'dropAfter');
    const term = await election.campaign();
    expect(fault.hits).toBe(1);
    expect(term.token).toBe(arena.fake.tree().get(path)?.stat.czxid);
    expect(children(arena, recordPath)).toEqual([term.guard.path]);
    await end(term);
    expect(arena.data(path)).toBeUndefined();
  });

  inArena(
    'a node that is deleted by hand ends the term, and its badge goes',
    async ({ arena, expect }) => {
      const { election, client } = await ours(arena, 'a');
      const term = await election.campaign();
      const theirs = await arena.client();
      await theirs.transaction().delete(path).create(path, 'theirs', { ephemeral: true }).commit();
      await aborted(term.signal);
      expect((await end(term)).reason).toBe('record-gone');
      await until('its badge is gone', () => children(arena, recordPath).length === 0);
      const { path: guard, version } = term.guard;
      await expect(client.transaction().check(guard, version).commit()).rejects.toThrow();
      expect(arena.data(path)).toBe('theirs');
    },
  );

  inArena(
    'a leader that is not confirmed stops believing, and keeps its session',
    async ({ arena, expect }) => {
      const { election, client } = await ours(arena, 'a');
      const term = await election.campaign();
      const session = client.session?.id;
      // As a server that is cut off from its quorum: it answers pings and reads alone.
      const operationTimeout = { type: 'errorCode', code: -7 } as const;
      arena.fake.faults.next({ opcode: 'multi', times: 1_000_000 }, operationTimeout);
      await until('it stops believing', () => !term.isLeading());
      expect(term.signal.aborted).toBe(true);
      expect(client.session?.id).toBe(session);
      arena.fake.faults.clear();
      expect((await end(term)).reason).toBe('renewal-failed');
    },
  );

  inArena('a leader whose session is over leaves no badge', async ({ arena, expect }) => {
    const { election, client } = await ours(arena, 'a');
    const term = await election.campaign();
    arena.fake.expireSession(client.session?.id as bigint);
    await aborted(term.signal);
    expect((await end(term)).reason).toBe('session-expired');
    expect(children(arena, recordPath)).toEqual([]);
    const again = await election.campaign();
    expect(await election.history()).toMatchObject([{ id: 'a', why: 'unclean' }]);
    await end(again);
  });

  inArena('a badge that was left behind does not keep its owner out', async ({ arena, expect }) => {
    const store = openStore(await arena.client());
    await taken(store);
    const operator = await arena.client();
    await operator.delete(path);
    expect(await store.take(entry, never), 'it takes the badge away').toBeUndefined();
    expect(children(arena, recordPath)).toEqual([]);
    expect(await store.take(entry, never)).toBeDefined();
  });

  inArena('nothing is announced without the badge', async ({ arena, expect }) => {
    const store = openStore(await arena.client());
    const { place, reading } = await taken(store);
    const record = announcedRecord(store, scope, undefined, { candidate, place, state: announced });
    const operator = await arena.client();
    await operator.delete(store.badgeOf(place));
    expect(await store.commit(place, record, reading.version, never)).toEqual({ outcome: 'gone' });
    expect(arena.data(recordPath)).toBe('');
  });

  inArena('nor under the node of another', async ({ arena, expect }) => {
    const store = openStore(await arena.client());
    const { place, reading } = await taken(store);
    const record = announcedRecord(store, scope, undefined, { candidate, place, state: announced });
    const theirs = await arena.client();
    await theirs.transaction().delete(path).create(path, 'a', { ephemeral: true }).commit();
    expect(await store.session.confirm([place], never)).toEqual({ there: [], gone: [place] });
    expect(await store.commit(place, record, reading.version, never)).toEqual({ outcome: 'gone' });
  });
});

const scope: Scope = {
  election: 'ns1',
  clock: systemClock,
  timing: resolveTiming({}, { sessionTimeoutMs }),
  random: Math.random,
  uniqueId: () => `${Math.random()}`,
  onTrouble: () => {},
};
const never = new AbortController().signal;
const candidate = { id: 'a', incarnation: 'i', addresses: [], metadata: {} };
const entry: Entry = { guid: 'guid-a', candidate };
const announced: SeatState = { announced: true, actors: null, addresses: [], metadata: {} };

function openStore(client: ZooKeeper): ZooKeeperNodeStore {
  const acl = [{ perms: 31, scheme: 'world', id: 'anyone' }];
  return new ZooKeeperNodeStore(client, scope, path, { acl, create: true, activeData: undefined });
}

async function taken(store: ZooKeeperNodeStore): Promise<TakenLock> {
  store.claim(entry);
  const made = await store.take(entry, never);
  if (made === undefined) throw new Error('it is taken already');
  return made;
}

/** A term of ours from its win to its clean end. */
async function ledClean(store: ZooKeeperNodeStore): Promise<void> {
  const { place, reading } = await taken(store);
  const state = { candidate, place, state: announced };
  const record = announcedRecord(store, scope, reading.record, state);
  const shown = await store.commit(place, record, reading.version, never);
  if (shown.outcome !== 'ok') throw new Error(`it could not be announced: ${shown.outcome}`);
  const clean = {
    reason: 'resigned',
    hasLed: true,
    fromUnixMs: 1,
    toUnixMs: 2,
    unfenced: [],
  } as const;
  const next = released(record, candidate, clean, { nonce: scope.uniqueId(), wallMs: 2 });
  const over = await store.release(place, next, shown.version, never);
  if (over.outcome !== 'ok') throw new Error(`it could not end: ${over.outcome}`);
}

describe('a winner waits unless ours was the last, and ended clean', () => {
  const cases: readonly (readonly [string, boolean, (arena: Arena) => Promise<unknown>])[] = [
    ['nobody came between', false, async () => {}],
    [
      'one of theirs had the node',
      true,
      async (arena) => {
        const theirs = await raceMaster(arena);
        await theirs.close();
      },
    ],
    [
      'one of theirs was forced out',
      true,
      async (arena) => {
        await raceMaster(arena);
        const operator = await ours(arena, 'operator');
        await operator.election.vacate({ force: true });
      },
    ],
    [
      'an operator wrote the record',
      true,
      async (arena) => {
        const operator = await ours(arena, 'operator');
        await operator.election.drain('z', new Date(Date.now() + 3_600_000));
      },
    ],
    [
      'a sibling came and went',
      true,
      async (arena) => {
        const operator = await arena.client();
        await operator.create('/master/other');
        await operator.delete('/master/other');
      },
    ],
    [
      'the record was deleted',
      true,
      async (arena) => {
        const operator = await arena.client();
        await operator.delete(recordPath);
      },
    ],
  ];
  for (const [what, waits, happens] of cases) {
    inArena(what, async ({ arena, expect }) => {
      const store = openStore(await arena.client());
      await store.init(never);
      await ledClean(store);
      await happens(arena);
      const { reading } = await taken(store);
      expect(reading.mayFollowOther).toBe(waits);
    });
  }

  inArena('one of theirs that comes while the node is made', async ({ arena, expect }) => {
    const client = await arena.client();
    const theirs = await arena.client();
    const store = openStore(
      held(client, async () => {
        await theirs.create(path, 'theirs', { ephemeral: true });
        await theirs.delete(path);
      }),
    );
    const first = openStore(client);
    await first.init(never);
    await ledClean(first);
    const { reading } = await taken(store);
    expect(reading.mayFollowOther).toBe(true);
  });

  inArena('at the first start there is no telling', async ({ arena, expect }) => {
    const store = openStore(await arena.client());
    expect((await taken(store)).reading.mayFollowOther).toBe(true);
  });

  inArena('and it waits as long as such a leader may believe', async ({ arena, expect }) => {
    const { election } = await ours(arena, 'a');
    const theirs = await raceMaster(arena);
    const following = background(election.campaign());
    const from = performance.now();
    await theirs.close();
    await end(await following);
    expect(performance.now() - from).toBeGreaterThanOrEqual(election.timing.beliefMs);
  });
});

/** Something happens after the first reads of a taking, and before its transaction. */
function held(client: ZooKeeper, what: () => Promise<unknown>): ZooKeeper {
  let sent: Promise<unknown> = Promise.resolve();
  let isOver = false;
  return new Proxy(client, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      if (name === 'get' || name === 'stat') {
        return (...call: unknown[]) => sent.then(() => value.apply(target, call));
      }
      if (name !== 'transaction') return value.bind(target);
      return () => {
        const transaction = target.transaction();
        const commit = transaction.commit.bind(transaction);
        transaction.commit = (...call) => {
          if (!isOver) sent = target.sync('/').then(what);
          isOver = true;
          const answer = sent.then(() => commit(...call));
          // All later requests are sent behind it.
          sent = answer.catch(() => {});
          return answer;
        };
        return transaction;
      };
    },
  });
}
