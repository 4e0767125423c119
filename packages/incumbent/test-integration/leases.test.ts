/** Leases by name, of every store: one by one, and all of them at once. */
import { FakeApiServer } from '@incumbent/servers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { apiServer, kubernetes } from '../src/backends/kubernetes/index.ts';
import { inParallel } from '../src/base/in-parallel.ts';
import type { Backend } from '../src/core/contest.ts';
import { createElection } from '../src/core/election.ts';
import type { LeaseStore, Leases } from '../src/core/lease-store.ts';
import type { LeaseRecord } from '../src/record/lease-record.ts';
import { leaseStoreScenarios, runConformance } from '../src/testing/index.ts';
import { storeScope } from '../test/support/store-scope.ts';
import { vacantRecord } from '../test/support/vacant-record.ts';
import type { RunningListedStore } from './support/listed-stores.ts';
import { listedStores } from './support/listed-stores.ts';
import { meteredStores } from './support/metered-stores.ts';

const never = new AbortController().signal;
const madeAtOnce = 16;
const longestMs = 120_000;

/** All layouts of ZooKeeper have the same leases. */
const kinds = listedStores.filter(({ name }) => !/layout (?!incumbent)/.test(name));
/** Objects tell nobody of a change. */
const withoutHints = /S3|Cloud Storage/;

function leasesOf(backend: Backend): Leases {
  if (backend.leases === undefined) throw new Error(`${backend.kind} has no leases`);
  return backend.leases;
}

function open(backend: Backend, name: string): LeaseStore {
  return leasesOf(backend).open(storeScope(name, 15_000));
}

function withShards(name: string, shards: string): LeaseRecord {
  return { ...vacantRecord(name, `nonce of ${name}`), shards };
}

async function put(store: LeaseStore, record: LeaseRecord): Promise<void> {
  const { version } = await store.read(never);
  expect(await store.swap(version, record, never)).toMatchObject({ outcome: 'ok' });
}

async function namesIn(backend: Backend): Promise<readonly string[]> {
  const names: string[] = [];
  for await (const name of backend.elections()) names.push(name);
  return names;
}

for (const kind of kinds) {
  describe.skipIf(kind.missing !== undefined)(`leases of ${kind.name}`, () => {
    let store: RunningListedStore;

    beforeAll(async () => {
      store = await kind.start();
    });

    afterAll(() => store?.close());

    for (const scenario of leaseStoreScenarios) {
      const needsMore = scenario.needs !== undefined && scenario.needs !== 'hints';
      if (needsMore || (scenario.needs === 'hints' && withoutHints.test(kind.name))) continue;
      test(scenario.name, async () => {
        const [result] = await runConformance<LeaseStore>([scenario], {
          open: (name) => open(store.backend, name),
          capabilities: { hints: true },
          prefix: 'scenarios/s',
        });
        expect(result?.reason).toBeUndefined();
      });
    }

    test('all are read at once: absent ones, twice the same, and beside a damaged one', async () => {
      const { backend } = store;
      const names = [1, 2, 3, 4, 5, 1].map((number) => `mixed/${number}`);
      for (const name of ['mixed/1', 'mixed/3', 'mixed/5']) {
        await put(open(backend, name), withShards(name, `of ${name}`));
      }
      await store.damageLease('mixed/3');
      const stores = names.map((name) => open(backend, name));
      const readings = await leasesOf(backend).readAll(stores, never);
      expect(readings).toMatchObject([
        { record: { shards: 'of mixed/1' } },
        { record: undefined },
        { code: 'RECORD_DAMAGED' },
        { record: undefined },
        { record: { shards: 'of mixed/5' } },
        { record: { shards: 'of mixed/1' } },
      ]);
      // The version of each is that of a read, and good for a swap.
      for (const [index, each] of stores.slice(0, 5).entries()) {
        const reading = readings[index];
        if (reading === undefined || reading instanceof Error) continue;
        const { version } = await each.read(never);
        expect(version).toBe(reading.version);
        const next = withShards(names[index] as string, 'next');
        expect(await each.swap(version, next, never)).toMatchObject({ outcome: 'ok' });
      }
      expect(await leasesOf(backend).readAll([], never)).toEqual([]);
    });

    test('all reads of one call reject when the call is aborted', async () => {
      const stores = [open(store.backend, 'aborted/1'), open(store.backend, 'aborted/2')];
      const aborted = AbortSignal.abort(new Error('stop'));
      await expect(leasesOf(store.backend).readAll(stores, aborted)).rejects.toThrow('stop');
    });

    test('a lease with shards is no election: it is not listed, and no candidate takes it', async () => {
      const { backend } = store;
      const made = open(backend, 'listed/7');
      await put(made, withShards('listed/7', 'entries'));
      expect(await namesIn(backend)).not.toContain('listed/7');
      const surveyed: string[] = [];
      for await (const { name } of backend.survey()) surveyed.push(name);
      expect(surveyed).not.toContain('listed/7');
      const { shards } = (await made.read(never)).record ?? {};
      expect(shards).toBe('entries');
    });

    test('shards are found by their name, and are no elections either', async () => {
      const { backend } = store;
      for (const name of ['found', 'found/1', 'found/2', 'found/directory']) {
        await put(open(backend, name), withShards(name, name));
      }
      const names = (await leasesOf(backend).shards?.(never)) ?? [];
      expect(names.filter((name) => name.startsWith('found'))).toEqual(['found']);
      const listed = [...(await namesIn(backend))];
      for await (const { name } of backend.survey()) listed.push(name);
      expect(listed.filter((name) => name.startsWith('found'))).toEqual([]);
    });

    test(
      '256 leases come back in the order of their stores',
      async () => {
        const { backend } = store;
        const names = Array.from({ length: 256 }, (_, i) => `many/${i + 1}`);
        const stores = names.map((name) => open(backend, name));
        await inParallel(stores, madeAtOnce, (each) => {
          const name = names[stores.indexOf(each)] as string;
          return put(each, withShards(name, name));
        });
        const readings = await leasesOf(backend).readAll(stores, never);
        const found = readings.map((each) => ('record' in each ? each.record?.shards : each));
        expect(found).toEqual(names);
      },
      longestMs,
    );
  });
}

for (const kind of meteredStores) {
  test.skipIf(kind.missing !== undefined)(
    `${kind.name}: 256 leases are read by one request, or one behind the other`,
    async () => {
      const running = await kind.start(10_000);
      const client = await running.open();
      const { backend, meter } = client;
      try {
        const names = Array.from({ length: 256 }, (_, i) => `counted/${i + 1}`);
        const stores = names.map((name) => open(backend, name));
        await inParallel(stores, madeAtOnce, (each) => {
          const name = names[stores.indexOf(each)] as string;
          return put(each, withShards(name, name));
        });
        await leasesOf(backend).readAll(stores, never);
        const before = meter.requestCount;
        const readings = await leasesOf(backend).readAll(stores, never);
        const requests = meter.requestCount - before;
        const found = readings.map((each) => ('record' in each ? each.record?.shards : each));
        expect(found).toEqual(names);
        // Redis: commands that are sent one behind the other.
        expect(requests).toBe(kind.name.startsWith('Redis') ? 256 : 1);
      } finally {
        await running.close();
      }
    },
  );
}

test('Kubernetes: without the right to list, and without the label, leases are read one by one', async () => {
  const server = await FakeApiServer.start({ plain: true });
  const api = apiServer(server.access);
  try {
    server.accounts.addToken('member', 'member');
    server.accounts.allow('member', { verbs: ['get', 'create', 'update', 'watch'] });
    const member = kubernetes(apiServer({ ...server.access, token: 'member' }));
    const names = ['alone/1', 'alone/2', 'alone/3'];
    for (const name of names) await put(open(member, name), withShards(name, name));
    const path = '/apis/coordination.k8s.io/v1/namespaces/default/leases/alone.2';
    const body = { metadata: { labels: null } };
    const contentType = 'application/merge-patch+json';
    await api.request({ method: 'PATCH', path, contentType, body });
    for (const backend of [member, kubernetes(api)]) {
      const stores = names.map((name) => open(backend, name));
      const readings = await leasesOf(backend).readAll(stores, never);
      const found = readings.map((each) => ('record' in each ? each.record?.shards : each));
      expect(found).toEqual(names);
    }
    // An election may have a Lease of the same name.
    await put(open(member, 'alone.4'), vacantRecord('alone.4', 'n'));
    await expect(open(member, 'alone/4').read(never)).rejects.toThrow('it belongs to the election');
  } finally {
    api.close();
    await server.close();
  }
});

test('an election on a name of shards is refused, and its record stays as it is', async () => {
  const { memory } = await import('../src/backends/memory/index.ts');
  const backend = memory();
  await put(open(backend, 'devices/3'), withShards('devices/3', 'entries'));
  const election = createElection({ name: 'devices/3', backend });
  const refusal = { code: 'INVALID_OPTION', message: expect.stringContaining('belongs to shards') };
  await expect(election.campaign()).rejects.toMatchObject(refusal);
  await expect(election.vacate()).rejects.toMatchObject(refusal);
  await election.close();
  const { record } = await open(backend, 'devices/3').read(never);
  expect(record?.shards).toBe('entries');
});
