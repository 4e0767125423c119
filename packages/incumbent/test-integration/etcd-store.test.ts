import { setMaxListeners } from 'node:events';
import { describe, it } from 'vitest';
import { EtcdCalls } from '../src/backends/etcd/calls.ts';
import { electionKeys } from '../src/backends/etcd/keys.ts';
import type { EtcdPlace } from '../src/backends/etcd/session.ts';
import { EtcdSession } from '../src/backends/etcd/session.ts';
import { EtcdStore } from '../src/backends/etcd/store.ts';
import { systemClock } from '../src/base/clock.ts';
import type { Place, Version } from '../src/mechanisms/queue/store.ts';
import type { QueueRecord } from '../src/record/queue-record.ts';
import { emptyQueueRecord } from '../src/record/queue-record.ts';
import type { EtcdScene } from './support/etcd.ts';
import { missing, useEtcd } from './support/etcd.ts';

// One for all: none is ever aborted.
const { signal } = new AbortController();
setMaxListeners(0, signal);

describe.skipIf(missing !== undefined)('etcd as the queue sees it', () => {
  const servers = useEtcd();

  /** A store as one process has it, without the queue on top of it. */
  function open(scene: EtcdScene, name = scene.name, session = openSession(scene)) {
    const store = new EtcdStore(session, electionKeys('', name));
    let entries = 0;
    const enter = (id: string) => {
      entries += 1;
      const candidate = { id, incarnation: id, addresses: [], metadata: {} };
      return store.enter({ guid: `${id}-${entries}`, candidate }, signal);
    };
    return { store, session, enter };
  }

  function openSession(scene: EtcdScene): EtcdSession {
    const calls = new EtcdCalls([scene.connect()], undefined);
    return new EtcdSession({ calls, clock: systemClock, ttlMs: 60_000, onTrouble: () => {} });
  }

  const announcing = (place: Place, record = emptyQueueRecord('x', 'n')): QueueRecord => ({
    ...record,
    token: place.token,
    place: place.name,
    holding: {
      candidate: { id: 'a', incarnation: 'a', addresses: [], metadata: {} },
      place: place.name,
      electedAtUnixMs: 1,
      leaseMs: 1_000,
      revoked: false,
      request: undefined,
    },
  });
  const clean = (record: QueueRecord): QueueRecord => ({ ...record, holding: undefined });

  /** Leads and goes, in order. @returns its place, and the record's version */
  async function leadAndGo(
    { store }: Pick<ReturnType<typeof open>, 'store'>,
    place: Place,
    version: Version = 0n,
  ): Promise<Version> {
    const record = announcing(place);
    const announced = await store.commit(place, record, version, signal);
    if (announced.outcome !== 'ok') throw new Error(announced.outcome);
    const released = await store.release(place, clean(record), announced.version, signal);
    if (released.outcome !== 'ok') throw new Error(released.outcome);
    return released.version;
  }

  /**
   * A candidate leads and goes, then something happens, then another one comes.
   * @returns true when it is known that no candidate was between the two
   */
  async function knowsOfNobody(
    one: ReturnType<typeof open>,
    meanwhile: (first: Place, version: Version) => Promise<unknown>,
  ): Promise<boolean> {
    const first = await one.enter('a');
    await meanwhile(first, await leadAndGo(one, first));
    const second = await one.enter('b');
    await one.store.look(signal);
    return one.store.directlyFollows(second, first.name);
  }

  describe.concurrent('about candidates between two places', () => {
    it('nobody, when the one before us was the leader', async ({ expect, onTestFinished }) => {
      const one = open(servers.scene(onTestFinished));
      const [a, b, c] = [await one.enter('a'), await one.enter('b'), await one.enter('c')];
      expect(one.store.directlyFollows(b, a.name)).toBe(true);
      expect(one.store.directlyFollows(c, b.name)).toBe(true);
      expect(one.store.directlyFollows(c, a.name)).toBe(false);
      expect(one.store.directlyFollows(a, '')).toBe(true);
    });

    it('nobody, when those between have gone before the leader did', async ({
      expect,
      onTestFinished,
    }) => {
      const one = open(servers.scene(onTestFinished));
      const [a, b, c] = [await one.enter('a'), await one.enter('b'), await one.enter('c')];
      await one.store.remove(b.name, signal);
      await leadAndGo(one, a);
      const { names } = await one.store.look(signal);
      expect(names).toEqual([c.name]);
      expect(one.store.directlyFollows(c, a.name)).toBe(true);
    });

    it('perhaps one, when one was there that went after the leader', async ({
      expect,
      onTestFinished,
    }) => {
      const one = open(servers.scene(onTestFinished));
      const [a, b, c] = [await one.enter('a'), await one.enter('b'), await one.enter('c')];
      await leadAndGo(one, a);
      await one.store.remove(b.name, signal);
      await one.store.look(signal);
      expect(one.store.directlyFollows(c, a.name)).toBe(false);
    });

    it('nobody, when we came to an empty place, and nobody had come and gone', async ({
      expect,
      onTestFinished,
    }) => {
      const scene = servers.scene(onTestFinished);
      // Another election, though below this one.
      const put = () => servers.server.etcdctl('put', `${scene.name}/below/1`, 'x');
      expect(await knowsOfNobody(open(scene), put)).toBe(true);
    });

    it('one, when a Go program came and went while none of ours was there', async ({
      expect,
      onTestFinished,
    }) => {
      const scene = servers.scene(onTestFinished);
      const comeAndGo = async () => {
        await servers.server.etcdctl('put', `${scene.name}/abc`, 'theirs');
        await servers.server.etcdctl('del', `${scene.name}/abc`);
      };
      expect(await knowsOfNobody(open(scene), comeAndGo)).toBe(false);
    });

    it('not known, when an operator has written the record since', async ({
      expect,
      onTestFinished,
    }) => {
      const one = open(servers.scene(onTestFinished));
      const write = async (first: Place, version: Version) => {
        const record = clean(announcing(first));
        expect(await one.store.amend({ record, version }, signal)).toMatchObject({ outcome: 'ok' });
      };
      expect(await knowsOfNobody(one, write)).toBe(false);
    });
  });

  it('not known, when the history was compacted', async ({ expect, onTestFinished }) => {
    const one = open(servers.scene(onTestFinished));
    const a = await one.enter('a');
    await leadAndGo(one, a);
    const b = await one.enter('b');
    await servers.server.etcdctl('compaction', String(b.token));
    await one.store.look(signal);
    expect(one.store.directlyFollows(b, a.name)).toBe(false);
  });

  describe.concurrent('about places and the record', () => {
    it('names places by their creation, so that none comes again', async ({
      expect,
      onTestFinished,
    }) => {
      const one = open(servers.scene(onTestFinished));
      const first = (await one.enter('a')) as EtcdPlace;
      await one.store.release(first, undefined, 0n, signal);
      const second = (await one.enter('a')) as EtcdPlace;
      expect(second.key).toBe(first.key);
      expect(second.name).not.toBe(first.name);
      expect(await one.session.confirm([first, second], signal)).toEqual({
        there: [second],
        gone: [first],
      });
      expect((await one.store.watchPlace(first.name, signal)).value).toBe(false);
      // Calls for the first place leave the second alone.
      await one.store.remove(first.name, signal);
      expect(await one.store.commit(first, announcing(first), 0n, signal)).toEqual({
        outcome: 'gone',
      });
      expect(await one.store.list(signal)).toEqual([second.name]);
    });

    it('follows and removes a key that is no UTF-8', async ({ expect, onTestFinished }) => {
      const scene = servers.scene(onTestFinished);
      const one = open(scene);
      const key = Buffer.concat([Buffer.from(`${scene.name}/caf`), Buffer.of(0xe9)]);
      const body = JSON.stringify({ key: key.toString('base64'), value: '' });
      await fetch(`${servers.server.url}/v3/kv/put`, { method: 'POST', body });
      const ours = await one.enter('a');
      const [theirs, ...others] = await one.store.list(signal);
      expect(others).toEqual([ours.name]);
      const watched = await one.store.watchPlace(theirs as string, signal);
      expect(watched.value).toBe(true);
      await one.store.remove(theirs as string, signal);
      expect(await watched.changed).toHaveLength(1);
      expect(await one.store.list(signal)).toEqual([ours.name]);
    });

    it('tells which of many places are gone, and which are there, in one transaction', async ({
      expect,
      onTestFinished,
    }) => {
      const scene = servers.scene(onTestFinished);
      const session = openSession(scene);
      const places = await Promise.all(
        Array.from({ length: 120 }, (_, index) =>
          open(scene, `${scene.name}-${index}`, session).enter('a'),
        ),
      );
      expect(places).toHaveLength(session.maxPlaces);
      expect(await session.confirm(places, signal)).toEqual({ there: places, gone: [] });
      const gone = [places[7], places[77]] as EtcdPlace[];
      for (const { key } of gone) await servers.server.etcdctl('del', key);
      const there = places.filter((place) => !gone.includes(place as EtcdPlace));
      expect(await session.confirm(places, signal)).toEqual({ there, gone });
    });

    it('says conflict for another version, and gone for a missing place', async ({
      expect,
      onTestFinished,
    }) => {
      const one = open(servers.scene(onTestFinished));
      const place = await one.enter('a');
      const record = announcing(place);
      const { outcome } = await one.store.commit(place, record, 7n, signal);
      expect(outcome).toBe('conflict');
      const first = await one.store.commit(place, record, 0n, signal);
      expect(first).toEqual({ outcome: 'ok', version: (await one.store.read(signal)).version });
      const again = await one.store.commit(place, record, 0n, signal);
      expect(again).toEqual({ outcome: 'conflict' });
      await one.store.remove(place.name, signal);
      const gone = await one.store.release(place, clean(record), 0n, signal);
      expect(gone).toEqual({ outcome: 'gone' });
      expect((await one.store.read(signal)).record).toMatchObject({ token: place.token });
    });

    it('removes more places at an operator’s wish than etcd takes in one transaction', async ({
      expect,
      onTestFinished,
    }) => {
      const scene = servers.scene(onTestFinished);
      const one = open(scene);
      const base64 = (text: string) => Buffer.from(text).toString('base64');
      for (const from of [0, 100]) {
        const success = Array.from({ length: 100 }, (_, index) => ({
          requestPut: { key: base64(`${scene.name}/${from + index}`), value: '' },
        }));
        const body = JSON.stringify({ success });
        await fetch(`${servers.server.url}/v3/kv/txn`, { method: 'POST', body });
      }
      const names = await one.store.list(signal);
      expect(names).toHaveLength(200);
      const record = { ...emptyQueueRecord('x', 'n'), ended: true };
      const change = { record, version: 0n, remove: [...names].reverse() };
      expect(await one.store.amend(change, signal)).toMatchObject({ outcome: 'ok' });
      expect(await one.store.list(signal)).toEqual([]);
      expect((await one.store.read(signal)).record?.ended).toBe(true);
    });

    it('tells of changes from the reading on, and of nothing else', async ({
      expect,
      onTestFinished,
    }) => {
      const one = open(servers.scene(onTestFinished));
      const [a, b] = [await one.enter('a'), await one.enter('b')];
      const told: string[] = [];
      const note = (what: string) => (events: unknown) => {
        if (events !== undefined) told.push(what);
      };
      const watchedA = await one.store.watchPlace(a.name, signal);
      const watchedB = await one.store.watchPlace(b.name, signal);
      const watchedRecord = await one.store.watchRecord(signal);
      const watchedList = await one.store.watchList(signal);
      expect([watchedA.value, watchedB.value]).toEqual([true, true]);
      expect(watchedList.value).toEqual([a.name, b.name]);
      void watchedB.changed.then(note('b'));
      const record = announcing(a);
      const { version } = (await one.store.commit(a, record, 0n, signal)) as {
        readonly version: Version;
      };
      await watchedRecord.changed.then(note('record'));
      await one.store.release(a, clean(record), version, signal);
      await watchedA.changed.then(note('a'));
      await watchedList.changed.then(note('list'));
      expect(told).toEqual(['record', 'a', 'list']);
      watchedB.cancel();
    });
  });
});
