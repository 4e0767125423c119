/** The rules that only leases of ZooKeeper and etcd have. */
import { Client, credentials } from '@grpc/grpc-js';
import type { EtcdServer } from '@incumbent/servers';
import { etcdAvailable, startEtcd } from '@incumbent/servers';
import type { TestServer } from '@incumbent/zookeeper-testing';
import { startServer } from '@incumbent/zookeeper-testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ZooKeeper } from '../../zookeeper/src/index.ts';
import { connect } from '../../zookeeper/src/index.ts';
import { etcd } from '../src/backends/etcd/index.ts';
import { zookeeper } from '../src/backends/zookeeper/index.ts';
import type { Backend } from '../src/core/contest.ts';
import type { LeaseStore, Reading } from '../src/core/lease-store.ts';
import type { LeaseRecord } from '../src/record/lease-record.ts';
import { storeScope } from '../test/support/store-scope.ts';
import { vacantRecord } from '../test/support/vacant-record.ts';
import { missing as noZooKeeper } from './support/zookeeper.ts';

const never = new AbortController().signal;
const noEtcd = etcdAvailable();

function open(backend: Backend, name: string): LeaseStore {
  const store = backend.leases?.open(storeScope(name, 15_000));
  if (store === undefined) throw new Error('no leases');
  return store;
}

function withShards(name: string, nonce: string, shards: string = 'x'): LeaseRecord {
  return { ...vacantRecord(name, nonce), shards };
}

async function put(store: LeaseStore, record: LeaseRecord): Promise<Reading> {
  const { version } = await store.read(never);
  expect(await store.swap(version, record, never)).toMatchObject({ outcome: 'ok' });
  return store.read(never);
}

/** Counts the hints of a watch. */
class Hints {
  count = 0;
  #told = () => {};
  readonly end: () => void;

  constructor(store: LeaseStore) {
    const end = store.watch?.(() => {
      this.count += 1;
      this.#told();
    });
    if (end === undefined) throw new Error('no watch');
    this.end = end;
  }

  async reach(count: number): Promise<void> {
    while (this.count < count) {
      await new Promise<void>((resolve) => {
        this.#told = resolve;
      });
    }
  }
}

/** @param deleteByHand deletes all of a lease */
function rules(backendOf: () => Backend, deleteByHand: (name: string) => Promise<unknown>): void {
  test('a write on a record that was deleted and made anew conflicts', async () => {
    const [a, b] = [open(backendOf(), 'anew/1'), open(backendOf(), 'anew/1')];
    const { version } = await put(a, withShards('anew/1', 'first'));
    await deleteByHand('anew/1');
    expect(await a.swap(version, withShards('anew/1', 'late'), never)).toEqual({
      outcome: 'conflict',
    });
    await put(b, withShards('anew/1', 'second'));
    expect(await a.swap(version, withShards('anew/1', 'late'), never)).toEqual({
      outcome: 'conflict',
    });
    expect((await b.read(never)).record?.nonce).toBe('second');
  });

  test('a watcher sleeps through renewals, and hears of all else', async () => {
    const [holder, watcher] = [open(backendOf(), 'heard/1'), open(backendOf(), 'heard/1')];
    await put(holder, withShards('heard/1', 'first'));
    const hints = new Hints(watcher);
    await hints.reach(1);
    for (let i = 0; i < 5; i += 1) await put(holder, withShards('heard/1', `renewal ${i}`));
    expect(hints.count).toBe(1);
    await put(holder, withShards('heard/1', 'news', 'y'));
    await hints.reach(2);
    await put(holder, withShards('heard/1', 'more', 'z'));
    await hints.reach(3);
    hints.end();
    await put(holder, withShards('heard/1', 'unheard', 'a'));
    await watcher.read(never);
    expect(hints.count).toBe(3);
  });

  test('a watcher hears of the first record', async () => {
    const [holder, watcher] = [open(backendOf(), 'first/1'), open(backendOf(), 'first/1')];
    const hints = new Hints(watcher);
    await hints.reach(1);
    await put(holder, withShards('first/1', 'first'));
    await hints.reach(2);
    await watcher.close?.();
  });

  test('stores of another backend are refused', async () => {
    const { memory } = await import('../src/backends/memory/index.ts');
    const others = [open(memory(), 'other/1')];
    await expect(backendOf().leases?.readAll(others, never)).rejects.toMatchObject({
      code: 'MISUSE',
    });
  });
}

describe.skipIf(noZooKeeper !== undefined)('leases of ZooKeeper', () => {
  let server: TestServer;
  let client: ZooKeeper;
  let backend: Backend;

  beforeAll(async () => {
    server = await startServer({ tickTimeMs: 200 });
    client = await connect(server.connectionString, { sessionTimeoutMs: 4_000 });
    backend = zookeeper(client);
  });

  afterAll(async () => {
    await client?.close();
    await server?.close();
  });

  const nodeOf = (name: string) => `/incumbent/.leases/${name}`;

  const deleteByHand = async (name: string) => {
    const { children } = await client.getChildren(nodeOf(name));
    for (const child of children) await client.delete(`${nodeOf(name)}/${child}`);
    await client.delete(nodeOf(name));
  };

  rules(() => backend, deleteByHand);

  test('no part of a lease goes with the session that made it', async () => {
    const other = await connect(server.connectionString, { sessionTimeoutMs: 4_000 });
    const { version } = await put(open(zookeeper(other), 'kept/1'), withShards('kept/1', 'first'));
    await other.close();
    const store = open(backend, 'kept/1');
    expect((await store.read(never)).version).toBe(version);
    expect(await store.swap(version, withShards('kept/1', 'next'), never)).toMatchObject({
      outcome: 'ok',
    });
  });

  test('a lease without the node beside it is damaged', async () => {
    const store = open(backend, 'beside/1');
    const { version } = await put(store, withShards('beside/1', 'first'));
    const { children } = await client.getChildren(nodeOf('beside/1'));
    await client.delete(`${nodeOf('beside/1')}/${children[0]}`);
    await expect(store.swap(version, withShards('beside/1', 'next'), never)).rejects.toMatchObject({
      code: 'RECORD_DAMAGED',
      message: expect.stringContaining('.made is missing'),
    });
    expect((await store.read(never)).record?.nonce).toBe('first');
  });

  test('a watcher hears of a lease that is deleted, and of the next one', async () => {
    const store = open(backend, 'gone/1');
    await put(store, withShards('gone/1', 'first'));
    const hints = new Hints(store);
    await hints.reach(1);
    await deleteByHand('gone/1');
    await hints.reach(2);
    await put(store, withShards('gone/1', 'second'));
    await hints.reach(3);
    await store.close?.();
  });

  describe('256 reads are sent before the first is answered, behind one question to the leader', () => {
    /** @param instead methods that the client has instead of its own */
    async function readsOf(of: ZooKeeper, instead: Readonly<Record<string, unknown>> = {}) {
      let underWay = 0;
      let most = 0;
      const sent = new Map<string, number>();
      const counting = new Proxy(of, {
        get(target, name, receiver) {
          const value: unknown = Reflect.get(name in instead ? instead : target, name, target);
          if (typeof value !== 'function') return value;
          return (...given: unknown[]) => {
            const result: unknown = value.apply(target, given);
            if (!(result instanceof Promise)) return result === target ? receiver : result;
            sent.set(String(name), (sent.get(String(name)) ?? 0) + 1);
            underWay += 1;
            most = Math.max(most, underWay);
            return result.finally(() => {
              underWay -= 1;
            });
          };
        },
      });
      const counted = zookeeper(counting);
      const written = open(backend, 'counted/70');
      if ((await written.read(never)).record === undefined) {
        await put(written, withShards('counted/70', 'n'));
      }
      const stores = Array.from({ length: 256 }, (_, i) => open(counted, `counted/${i}`));
      const look = async () => {
        sent.clear();
        most = 0;
        const readings = (await counted.leases?.readAll(stores, never)) ?? [];
        const found = readings.flatMap((each, i) =>
          'record' in each && each.record !== undefined ? [[i, each.record.nonce]] : [],
        );
        expect([readings.length, ...found]).toEqual([256, [70, 'n']]);
        return [Object.fromEntries(sent), most];
      };
      return [await look(), await look()];
    }

    test('64 in a request', async () => {
      const one = [{ sync: 1, multiRead: 4 }, 5];
      expect(await readsOf(client)).toEqual([one, one]);
    });

    test('each by itself, where the client has no such request', async () => {
      const one = [{ sync: 1, get: 256 }, 257];
      expect(await readsOf(client, { multiRead: undefined })).toEqual([one, one]);
    });

    test('each by itself, after the client has said once that the server is too old', async () => {
      const { connectionString } = server;
      await using old = await connect(connectionString, { compatibility: '3.5' });
      const refuse = () =>
        Promise.reject(Object.assign(new Error('no'), { code: 'UNIMPLEMENTED' }));
      for (const told of [readsOf(old), readsOf(client, { multiRead: refuse })]) {
        const [first, second] = await told;
        expect(first?.[0]).toEqual({ sync: 1, multiRead: 4, get: 256 });
        expect(second).toEqual([{ sync: 1, get: 256 }, 257]);
      }
    });
  });

  test('an election cannot be where the leases are', () => {
    const name = '.leases/devices';
    expect(() => backend.open(storeScope(name, 15_000))).toThrow('are the leases of shards');
  });

  test('with create: false, a missing parent is named', async () => {
    const strict = zookeeper(client, { root: '/strict', create: false });
    const store = open(strict, 'devices/1');
    const { version } = await store.read(never);
    await expect(store.swap(version, withShards('devices/1', 'n'), never)).rejects.toThrow(
      'the node /strict/.leases/devices does not exist',
    );
    await client.ensurePath('/strict/.leases/devices');
    await put(store, withShards('devices/1', 'n'));
  });
});

describe.skipIf(noEtcd !== undefined)('leases of etcd', () => {
  let server: EtcdServer;
  let client: Client;
  let backend: Backend;

  beforeAll(async () => {
    server = await startEtcd();
    client = new Client(`127.0.0.1:${server.port}`, credentials.createInsecure());
    backend = etcd(client);
  });

  afterAll(async () => {
    client?.close();
    await server?.close();
  });

  rules(
    () => backend,
    (name) => server.etcdctl('del', `incumbent/lease/${name}`),
  );

  test.each([
    ['more prefixes than a transaction takes', (i: number) => `part-${i}/1`, 250, 10],
    ['more bytes than a client takes in one answer', (i: number) => `large/${i}`, 30, 200_000],
  ])('%s are read by several requests', async (_what, nameOf, count, bytes) => {
    const names = Array.from({ length: count }, (_, i) => nameOf(i));
    const stores = names.map((name) => open(backend, name));
    for (const [i, store] of stores.entries()) {
      await put(store, withShards(names[i] as string, 'n', `${i}`.padEnd(bytes, 'x')));
    }
    const readings = await backend.leases?.readAll(stores, never);
    const found = readings?.map((each) => ('record' in each ? each.record?.election : each));
    expect(found).toEqual(names);
  });
});
