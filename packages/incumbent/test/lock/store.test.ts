import { describe } from 'vitest';
import type { ZooKeeper } from '../../../zookeeper/src/index.ts';
import { LockSession } from '../../src/backends/zookeeper/lock-session.ts';
import { ZooKeeperLockStore } from '../../src/backends/zookeeper/lock-store.ts';
import { systemClock } from '../../src/base/clock.ts';
import { resolveTiming } from '../../src/base/timing.ts';
import { Attempts, OwnWrites } from '../../src/core/attempts.ts';
import type { Scope, SeatState } from '../../src/core/contest.ts';
import { announcedRecord } from '../../src/mechanisms/queue/announcement.ts';
import type { Entry, Place } from '../../src/mechanisms/queue/store.ts';
import { takeBack } from '../../src/mechanisms/queue/take-back.ts';
import { emptyQueueRecord } from '../../src/record/queue-record.ts';
import type { Arena } from './support.ts';
import {
  breadcrumbPath,
  inArena,
  interrupted,
  lockPath,
  parent,
  sessionTimeoutMs,
  until,
} from './support.ts';

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

function openStore(client: ZooKeeper): ZooKeeperLockStore {
  const acl = [{ perms: 31, scheme: 'world', id: 'anyone' }];
  return new ZooKeeperLockStore(client, scope, parent, {
    acl,
    create: true,
    activeData: undefined,
  });
}

async function taken(store: ZooKeeperLockStore): Promise<Place> {
  store.claim(entry);
  const made = await store.take(entry, never);
  if (made === undefined) throw new Error('the lock was taken already');
  return made.place;
}

/** The record of the first leader of an election, and the version that it must meet. */
async function announcement(store: ZooKeeperLockStore, place: Place) {
  const { version } = await store.read(never);
  const record = announcedRecord(store, scope, undefined, { candidate, place, state: announced });
  return { version, record };
}

/**
 * The reading from before its lock was deleted by hand, and the record that takes the term back.
 */
async function announcedUnderADeletedLock(arena: Arena) {
  const store = openStore(await arena.client());
  const place = await taken(store);
  const { version, record } = await announcement(store, place);
  const { outcome } = await store.commit(place, record, version, never);
  if (outcome !== 'ok') throw new Error(`it could not be announced: ${outcome}`);
  const { version: found } = await store.read(never);
  await (await arena.client()).delete(lockPath);
  return { store, found, vacant: { ...record, holding: undefined } };
}

/** The lock goes to another client in one transaction, under the same name. */
async function steal(arena: Arena): Promise<void> {
  const thief = await arena.client();
  await thief.transaction().delete(lockPath).create(lockPath, 'a', { ephemeral: true }).commit();
}

describe('the name of the lock recurs', () => {
  inArena('a confirmation looks at whose it is', async ({ arena, expect }) => {
    const store = openStore(await arena.client());
    const place = await taken(store);
    expect(await store.session.confirm([place], never)).toEqual({ there: [place], gone: [] });
    await steal(arena);
    expect(await store.session.confirm([place], never)).toEqual({ there: [], gone: [place] });
    const thief = await arena.client();
    await thief.delete(lockPath);
    expect(await store.session.confirm([place], never)).toEqual({ there: [], gone: [place] });
  });

  inArena('of several, the one that is not there is named', async ({ arena, expect }) => {
    const client = await arena.client();
    const [store, other] = [openStore(client), await arena.client()];
    const place = await taken(store);
    const gone = { ...place, name: `${parent}/nothing@0x1` };
    expect(await store.session.confirm([place, gone], never)).toEqual({ there: [], gone: [gone] });
    expect(other.state).toBe('connected');
  });

  inArena('so does an announcement', async ({ arena, expect }) => {
    const store = openStore(await arena.client());
    const place = await taken(store);
    const { version, record } = await announcement(store, place);
    await steal(arena);
    expect(await store.commit(place, record, version, never)).toEqual({ outcome: 'gone' });
    expect(store.breadcrumbVersion(place)).toBeUndefined();
  });

  inArena('and who leads: not the one whose lock it met', async ({ arena, expect }) => {
    const store = openStore(await arena.client());
    const place = await taken(store);
    const { version, record } = await announcement(store, place);
    await steal(arena);
    await store.commit(place, record, version, never);
    // The breadcrumb is newer than the lock that is there, and its holder is not active yet.
    expect(await store.members(never)).toMatchObject([{ isOurs: true }]);
  });

  inArena('and a release: another’s lock is left alone', async ({ arena, expect }) => {
    const store = openStore(await arena.client());
    const place = await taken(store);
    await steal(arena);
    const { version } = await store.read(never);
    expect(await store.release(place, undefined, version, never)).toEqual({ outcome: 'gone' });
    expect(arena.data(lockPath)).toBe('a');
  });

  inArena('and what operators do', async ({ arena, expect }) => {
    const store = openStore(await arena.client());
    const place = await taken(store);
    await steal(arena);
    const { version } = await store.read(never);
    const record = emptyQueueRecord('ns1', 'nonce');
    for (const change of [{ present: place.name }, { remove: [place.name] }]) {
      expect(await store.amend({ record, version, ...change }, never)).toEqual({
        outcome: 'gone',
      });
    }
    await store.remove(place.name, never);
    expect(arena.data(lockPath)).toBe('a');
    expect(arena.data(parent)).toBe('');
  });
});

describe('an announcement that met the lock of another one', () => {
  inArena('does not take the breadcrumb of whoever leads', async ({ arena, expect }) => {
    const store = openStore(await arena.client());
    const place = await taken(store);
    const other = await arena.client();
    await other.delete(lockPath);
    const theirs = await arena.hadoop('theirs');
    await theirs.becomeActive();
    // The announcement was sent before and had no answer. It is made again from the present nodes.
    const { version, record } = await announcement(store, place);
    expect(await store.commit(place, record, version, never)).toEqual({ outcome: 'gone' });
    // The next leader fences the member that it names.
    expect(arena.data(breadcrumbPath)).toBe('theirs');
  });

  inArena('or was deleted with all of the election, is told that it has gone', async (given) => {
    const { arena, expect } = given;
    const store = openStore(await arena.client());
    const place = await taken(store);
    const { record } = await announcement(store, place);
    const other = await arena.client();
    await other.transaction().delete(lockPath).delete(parent).commit();
    const { version } = await store.read(never);
    // Not an error that there is no election: a candidate makes it anew.
    expect(await store.commit(place, record, version, never)).toEqual({ outcome: 'gone' });
  });

  inArena('is no announcement of that one, which writes its own', async ({ arena, expect }) => {
    const store = openStore(await arena.client());
    const place = await taken(store);
    const { version, record } = await announcement(store, place);
    const other = await arena.client();
    await other.delete(lockPath);
    const next = openStore(other);
    const follower = { ...candidate, id: 'b' };
    const second = { guid: 'guid-b', candidate: follower };
    next.claim(second);
    const made = await next.take(second, never);
    if (made === undefined) throw new Error('the lock was taken already');
    expect(await store.commit(place, record, version, never)).toEqual({ outcome: 'gone' });
    const found = await next.read(never);
    const later = announcedRecord(next, scope, found.record, {
      candidate: follower,
      place: made.place,
      state: announced,
    });
    const result = await next.commit(made.place, later, found.version, never);
    // Hadoop's own members fence whom the breadcrumb names.
    expect(arena.data(breadcrumbPath)).toBe('b');
    expect(result).toEqual({ outcome: 'ok', version: (await next.read(never)).version });
  });
});

describe('the reading with a lock that was made', () => {
  inArena(
    'is not older than the lock, also when the node above it had to be made',
    async ({ arena, expect }) => {
      const store = openStore(await arena.client());
      store.claim(entry);
      const made = await store.take(entry, never);
      expect(made?.reading.version).toBe((await store.read(never)).version);
      expect(made?.reading.wipedAfter).toBeLessThan(made?.place.token ?? 0n);
    },
  );
});

describe('a lock that was deleted and is another member’s before it can be looked at', () => {
  inArena('is not had by whoever made it', async ({ arena, expect }) => {
    const client = await arena.client();
    const create = client.create.bind(client) as (...args: unknown[]) => Promise<unknown>;
    // The reading beside the creation is older than the lock, so the nodes are read again.
    const late = async (...args: unknown[]) => {
      await client.sync(parent);
      const made = await create(...args);
      await steal(arena);
      return made;
    };
    const store = openStore(client);
    store.claim(entry);
    await client.ensurePath(parent);
    Object.assign(client, { create: late });
    expect(await store.take(entry, never)).toBeUndefined();
  });
});

describe('a leader of theirs that an operator’s change has written down', () => {
  inArena('is still told as theirs', async ({ arena, expect }) => {
    const theirs = await arena.hadoop('theirs');
    await theirs.becomeActive();
    await theirs.crash();
    const store = openStore(await arena.client());
    const { record, version, isTheirs } = await store.read(never);
    if (record === undefined) throw new Error('nothing is told of the one that is gone');
    expect(isTheirs).toBe(true);
    expect((await store.amend({ record, version }, never)).outcome).toBe('ok');
    const found = await store.read(never);
    expect(found.record).toMatchObject({ token: record.token, place: record.place });
    // Or its number would be taken for that of a store that was set back.
    expect(found.isTheirs).toBe(true);
  });
});

describe('writes in one transaction', () => {
  inArena(
    'an announcement meets neither another record nor another breadcrumb',
    async ({ arena, expect }) => {
      const client = await arena.client();
      const store = openStore(client);
      const place = await taken(store);
      const { version, record } = await announcement(store, place);
      const other = await arena.client();
      await other.create(breadcrumbPath, 'b');
      expect(await store.commit(place, record, version, never)).toEqual({ outcome: 'conflict' });
      await other.delete(breadcrumbPath);
      await other.set(parent, '');
      expect(await store.commit(place, record, version, never)).toEqual({ outcome: 'conflict' });
      expect(arena.data(breadcrumbPath)).toBeUndefined();
    },
  );

  inArena(
    'a record is read again when one of ours wrote it meanwhile',
    async ({ arena, expect }) => {
      const other = openStore(await arena.client());
      const place = await taken(other);
      const { version, record } = await announcement(other, place);
      const store = openStore(
        interrupted(await arena.client(), async () => {
          expect((await other.commit(place, record, version, never)).outcome).toBe('ok');
        }),
      );
      // Else it would look as if one of theirs had become active.
      expect((await store.read(never)).record?.holding?.candidate.id).toBe('a');
    },
  );
});

describe('an announcement that is taken back when its lock has gone', () => {
  inArena('takes its breadcrumb with it', async ({ arena, expect }) => {
    const store = openStore(await arena.client());
    const place = await taken(store);
    const { version, record } = await announcement(store, place);
    expect((await store.commit(place, record, version, never)).outcome).toBe('ok');
    const other = await arena.client();
    await other.delete(lockPath);
    const found = await store.read(never);
    const vacant = { ...record, holding: undefined };
    const result = await store.amend({ record: vacant, version: found.version }, never);
    expect(result.outcome).toBe('ok');
    // Else it would look as if one of theirs had become active: it would be waited out and fenced.
    expect(arena.data(breadcrumbPath)).toBeUndefined();
    expect((await store.read(never)).record?.holding).toBeUndefined();
    expect((await store.read(never)).version).toBe(result.outcome === 'ok' && result.version);
  });

  inArena('and not that of one of theirs whose version is the same', async ({ arena, expect }) => {
    const { store, vacant, found } = await announcedUnderADeletedLock(arena);
    const first = await arena.hadoop('first');
    await first.becomeActive();
    await first.quit();
    const second = await arena.hadoop('second');
    await until('the first one has gone', () => arena.data(lockPath) === undefined);
    await second.becomeActive();
    const change = { record: vacant, version: found };
    expect((await store.amend(change, never)).outcome).toBe('conflict');
    expect(arena.data(breadcrumbPath)).toBe('second');
  });

  inArena('and not that of a leader of theirs', async ({ arena, expect }) => {
    const { store, vacant, found } = await announcedUnderADeletedLock(arena);
    const theirs = await arena.hadoop('theirs');
    await theirs.becomeActive();
    const change = { record: vacant, version: found };
    expect((await store.amend(change, never)).outcome).toBe('conflict');
    expect(arena.data(breadcrumbPath)).toBe('theirs');
  });
});

describe('an announcement on its way when its session is over for us', () => {
  inArena('does not land on the next lock that we make', async ({ arena, expect }) => {
    const earlier = openStore(await arena.client());
    const place = await taken(earlier);
    const { version, record } = await announcement(earlier, place);
    const attempts = new Attempts(new OwnWrites());
    const now = openStore(await arena.client());
    await takeBack(now, scope, { place, before: undefined, attempts }, never);
    // The lock goes with its session. To delete it could meet the lock of the next member.
    expect(arena.data(lockPath)).toBe('a');
    await (await arena.client()).delete(lockPath);
    await taken(now);
    expect((await earlier.commit(place, record, version, never)).outcome).toBe('conflict');
    // Else the next leader would wait for a term that never led, and fence it.
    expect((await now.read(never)).record).toBeUndefined();
    expect(arena.data(breadcrumbPath)).toBeUndefined();
  });

  inArena('whose breadcrumb one of theirs has replaced at once', async ({ arena, expect }) => {
    const theirs = await arena.hadoop('theirs');
    await theirs.takeLock();
    await theirs.client.delete(lockPath);
    const own = await arena.client();
    let isAnnounced = false;
    const store = openStore(
      interrupted(own, async () => {
        if (!isAnnounced) return false;
        await until('it is announced', () => arena.data(breadcrumbPath) === 'a');
        await theirs.writeBreadcrumb();
        return true;
      }),
    );
    const place = await taken(store);
    const { version, record } = await announcement(store, place);
    isAnnounced = true;
    expect(await store.commit(place, record, version, never)).toEqual({ outcome: 'conflict' });
    // A member that releases now, or guards its writes by the breadcrumb, has none of its own.
    expect(store.breadcrumbVersion(place)).toBeUndefined();
    const { isTheirs } = await store.read(never);
    expect(isTheirs).toBe(true);
  });

  inArena('is outdated by the record that stands there', async ({ arena, expect }) => {
    const store = openStore(await arena.client());
    const place = await taken(store);
    const { version, record } = await announcement(store, place);
    await store.commit(place, record, version, never);
    const before = await store.read(never);
    expect(await store.outdate(version, never)).toBe(false);
    expect(await store.outdate(before.version, never)).toBe(true);
    expect(await store.outdate(before.version, never)).toBe(false);
    const after = await store.read(never);
    // The breadcrumb still belongs to the leader that the record names.
    expect(after).toEqual({ ...before, version: after.version });
    expect(after.record?.holding?.candidate.id).toBe('a');
    expect(after.version).not.toBe(before.version);
  });
});

describe('a session that is shorter than the one that the timing was made for', () => {
  inArena('is not campaigned in', async ({ arena, expect }) => {
    const client = await arena.client();
    const shorter = new Proxy(client, {
      get(target, name) {
        if (name === 'session') return { ...target.session, timeoutMs: sessionTimeoutMs - 1 };
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
    const store = openStore(shorter);
    expect(store.claim(entry)).toBe(true);
    await expect(store.take(entry, never)).rejects.toMatchObject({
      code: 'STORE_UNSUITABLE',
      message: expect.stringContaining(`${sessionTimeoutMs - 1} ms`),
    });
    expect(arena.data(lockPath)).toBeUndefined();
  });
});

describe('claims', () => {
  inArena(
    'one at a time, and only in the session that it was made in',
    async ({ arena, expect }) => {
      const client = await arena.client();
      const session = LockSession.of(client);
      expect(LockSession.of(client)).toBe(session);
      const told: string[] = [];
      const stop = session.onUnclaimed(lockPath, () => told.push('unclaimed'));
      expect(session.claim(lockPath, 'a')).toBe(true);
      expect(session.claim(lockPath, 'a')).toBe(true);
      expect(session.claim(lockPath, 'b')).toBe(false);
      expect(session.claim(`${lockPath}2`, 'b')).toBe(true);
      session.unclaim(lockPath);
      expect(told).toEqual(['unclaimed']);
      expect(session.claim(lockPath, 'b')).toBe(true);
      const { id } = session;
      arena.fake.expireSession(id as bigint);
      await until('there is another session', () => session.id !== id && session.id !== undefined);
      expect(session.claimant(lockPath)).toBeUndefined();
      expect(session.claim(lockPath, 'c')).toBe(true);
      stop();
      session.unclaim(lockPath);
      expect(told).toEqual(['unclaimed']);
    },
  );

  inArena('giving up looks behind what others may have committed', async ({ arena, expect }) => {
    const client = await arena.client();
    const { lagging, lag } = laggard(client);
    const store = openStore(lagging);
    await taken(store);
    lag();
    await store.leave(entry, undefined, never);
    expect(arena.data(lockPath)).toBeUndefined();
    expect(store.isClaimedFor(entry)).toBe(false);
  });

  inArena('giving up what was never claimed does nothing', async ({ arena, expect }) => {
    const store = openStore(await arena.client());
    await taken(store);
    await store.leave({ guid: 'other', candidate }, undefined, never);
    expect(arena.data(lockPath)).toBe('a');
  });
});

/** After `lag()` as on a server that has not heard of the lock yet, until it is told to catch up. */
function laggard(client: ZooKeeper): { readonly lagging: ZooKeeper; readonly lag: () => void } {
  let lags = false;
  const lag = () => {
    lags = true;
  };
  const lagging = new Proxy(client, {
    get(target, name) {
      if (name === 'sync') {
        return (...call: Parameters<ZooKeeper['sync']>) => {
          lags = false;
          return target.sync(...call);
        };
      }
      if (name === 'get') {
        return (...call: Parameters<ZooKeeper['get']>) =>
          lags && call[0] === lockPath ? target.get('/nothing') : target.get(...call);
      }
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  return { lagging, lag };
}
