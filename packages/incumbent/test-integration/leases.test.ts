/** Leases by name, of every store: one by one, and all of them at once. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
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
      if (scenario.needs === 'deathProof' || scenario.needs === 'age') continue;
      if (scenario.needs === 'hints' && withoutHints.test(kind.name)) continue;
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
      const stores = names.map((name) => open(backend, name));
      for (const index of [0, 2, 4]) {
        const name = names[index] as string;
        await put(stores[index] as LeaseStore, withShards(name, `of ${name}`));
      }
      await store.damageLease('mixed/3');
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
      for (const [index, each] of stores.entries()) {
        const reading = readings[index];
        if (reading === undefined || reading instanceof Error) continue;
        const { version } = await each.read(never);
        expect(version).toBe(reading.version);
        const next = withShards(names[index] as string, 'next');
        if (index < 5)
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
    `${kind.name}: one round trip reads 256 leases, where the store has such a request`,
    async () => {
      const running = await kind.start(10_000);
      const client = await running.open();
      const { backend, meter } = client;
      try {
        const names = Array.from({ length: 256 }, (_, i) => `counted/${i + 1}`);
        const stores = names.map((name) => open(backend, name));
        const some = stores.slice(0, 20);
        for (const [i, each] of some.entries())
          await put(each, withShards(names[i] as string, 'x'));
        await leasesOf(backend).readAll(stores, never);
        const before = meter.requestCount;
        const readings = await leasesOf(backend).readAll(stores, never);
        const requests = meter.requestCount - before;
        expect(
          readings.filter((each) => 'record' in each && each.record !== undefined),
        ).toHaveLength(20);
        // Redis: commands sent one behind the other. Kubernetes: as many reads.
        const isOne = /PostgreSQL|etcd/.test(kind.name);
        expect(requests).toBe(isOne ? 1 : 256);
      } finally {
        await running.close();
      }
    },
  );
}

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
