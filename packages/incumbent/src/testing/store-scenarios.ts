/** The demands of the race on every lease store (`LeaseStore`), one scenario per rule. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { CandidateInfo } from '../base/candidate.ts';
import type { LeaseStore, Version } from '../mechanisms/lease/store.ts';
import type { LeaseRecord } from '../record/lease-record.ts';
import { encodeLeaseRecord } from '../record/lease-record.ts';
import { drainLimit, historyLimit, longestFenceFailure, unfencedLimit } from '../record/record.ts';
import type { ConformanceContext, Scenario } from './conformance.ts';

type Context = ConformanceContext<LeaseStore>;

/** How long a hint may take before it counts as missing. */
const longestHintMs = 5_000;

/** Far more than competition needs. */
const mostTries = 500;

/** The rules that every lease store has to keep. Run them with `runConformance`. */
export const leaseStoreScenarios: readonly Scenario<LeaseStore>[] = [
  {
    name: 'an election that nobody has used reads as no record, at one version',
    async run(context) {
      const [a, b] = [await open(context), await open(context)];
      const first = await read(a);
      assert.equal(first.record, undefined);
      assert.equal((await read(a)).version, first.version);
      assert.equal((await read(b)).version, first.version);
    },
  },
  {
    name: 'a swap on what was read is applied, and every handle reads it back',
    async run(context) {
      const [a, b] = [await open(context), await open(context)];
      const version = await put(a, record(context, 1n));
      const seen = await read(b);
      assertSame(seen.record, record(context, 1n));
      assert.equal(seen.version, version, 'the version that swap returned is the one read');
      assertSame((await read(a)).record, record(context, 1n));
    },
  },
  {
    name: 'of many swaps on one version, made at the same time, exactly one is applied',
    async run(context) {
      const stores = await Promise.all(Array.from({ length: 6 }, () => open(context)));
      for (let round = 1; round <= 5; round += 1) {
        const versions = await Promise.all(stores.map(async (each) => (await read(each)).version));
        assert.equal(new Set(versions).size, 1, 'all read the same version');
        const results = await Promise.all(
          stores.map((each, index) =>
            swap(
              each,
              versions[index] as Version,
              record(context, BigInt(round), `nonce ${index}`),
            ),
          ),
        );
        const winners = [...results.keys()].filter((index) => results[index]?.outcome === 'ok');
        assert.equal(winners.length, 1, `${winners.length} of ${stores.length} swaps were applied`);
        for (const each of stores) {
          const seen = await read(each);
          assert.equal(seen.record?.nonce, `nonce ${winners[0]}`, 'the winner is what is read');
        }
      }
    },
  },
  {
    name: 'of many first swaps, made at the same time, exactly one makes the record',
    async run(context) {
      const stores = await Promise.all(Array.from({ length: 6 }, () => open(context)));
      const versions = await Promise.all(stores.map(async (each) => (await read(each)).version));
      const results = await Promise.all(
        stores.map((each, index) =>
          swap(each, versions[index] as Version, record(context, 1n, `nonce ${index}`)),
        ),
      );
      const winners = [...results.keys()].filter((index) => results[index]?.outcome === 'ok');
      assert.equal(winners.length, 1, `${winners.length} of ${stores.length} swaps were applied`);
      const seen = await read(stores[0] as LeaseStore);
      assert.equal(seen.record?.nonce, `nonce ${winners[0]}`);
    },
  },
  {
    name: 'no update is lost when several handles count at the same time',
    async run(context) {
      const stores = await Promise.all(Array.from({ length: 4 }, () => open(context)));
      const each = 10;
      await Promise.all(
        stores.map(async (store) => {
          for (let done = 0, tries = 0; done < each; tries += 1) {
            assert.ok(tries < mostTries, `${done} of ${each} swaps were applied in ${tries} tries`);
            const seen = await read(store);
            const token = (seen.record?.token ?? 0n) + 1n;
            const result = await swap(store, seen.version, record(context, token));
            if (result.outcome === 'ok') done += 1;
            else await context.wait(1);
          }
        }),
      );
      const { record: last } = await read(stores[0] as LeaseStore);
      assert.equal(last?.token, BigInt(stores.length * each));
    },
  },
  {
    name: 'a swap on a version that is past conflicts and changes nothing',
    async run(context) {
      const [a, b] = [await open(context), await open(context)];
      const old = (await read(a)).version;
      const version = await put(b, record(context, 1n, 'the first'));
      assert.deepEqual(await swap(a, old, record(context, 2n, 'too late')), {
        outcome: 'conflict',
      });
      const seen = await read(a);
      assertSame(seen.record, record(context, 1n, 'the first'));
      assert.equal(seen.version, version);
    },
  },
  {
    name: 'every swap makes a version that was never there before, even of an equal record',
    async run(context) {
      const [a, b] = [await open(context), await open(context)];
      const versions = new Set<Version>([(await read(a)).version]);
      const writes = 20;
      for (let i = 0; i < writes; i += 1) {
        versions.add(await put(i % 2 === 0 ? a : b, record(context, 1n)));
      }
      assert.equal(versions.size, writes + 1);
    },
  },
  {
    name: 'a record comes back as it was written, with every field',
    async run(context) {
      const [a, b] = [await open(context), await open(context)];
      const full = fullRecord(context);
      const parts = { ...full, shards: 'CAEQBw==' };
      for (const each of [full, parts, vacantRecord(context), record(context, 1n)]) {
        await put(a, each);
        assertSame((await read(b)).record, each);
      }
    },
  },
  {
    name: 'the largest record that can be comes back as it was written',
    async run(context) {
      const [a, b] = [await open(context), await open(context)];
      const largest = largestRecord(context);
      await put(a, largest);
      assertSame((await read(b)).record, largest);
    },
  },
  {
    name: 'elections of one store do not touch each other',
    async run(context) {
      const a = await open(context);
      const other = await context.open(`${context.election}-other`);
      context.onCleanUp(() => other.close?.());
      await put(a, record(context, 1n));
      assert.equal((await read(other)).record, undefined);
      await put(other, record(context, 7n));
      assert.equal((await read(a)).record?.token, 1n);
    },
  },
  {
    name: 'a call whose signal was aborted before rejects and changes nothing',
    async run(context) {
      const a = await open(context);
      const version = await put(a, record(context, 1n));
      const aborted = AbortSignal.abort(new Error('stop'));
      await assert.rejects(a.read(aborted), 'read');
      await assert.rejects(a.swap(version, record(context, 2n), aborted), 'swap');
      assert.equal((await read(a)).version, version);
      assert.equal((await read(a)).record?.token, 1n);
    },
  },
  {
    name: 'closing and opening again keeps the record',
    async run(context) {
      const a = await open(context);
      const version = await put(a, record(context, 5n));
      await a.close?.();
      const b = await open(context);
      const seen = await read(b);
      assert.equal(seen.record?.token, 5n);
      assert.equal(seen.version, version);
      assert.notEqual(await put(b, record(context, 6n)), version);
    },
  },
  {
    name: 'init may be called again at any time, by anybody',
    async run(context) {
      const [a, b] = [await open(context), await open(context)];
      await a.init?.(never());
      await put(a, record(context, 1n));
      await Promise.all([a.init?.(never()), b.init?.(never())]);
      assert.equal((await read(b)).record?.token, 1n);
    },
  },
  {
    name: 'a watcher is told of a change by another handle, and not after it has ended',
    needs: 'hints',
    async run(context) {
      const [a, b] = [await open(context), await open(context)];
      await put(b, record(context, 1n));
      let hints = 0;
      const unwatch = a.watch?.(() => {
        hints += 1;
      });
      assert.ok(unwatch !== undefined, 'the store has watch()');
      // As a follower does: it reads, and then waits for news of that record. It may take a moment
      // until the watch is in place, so writes are repeated.
      for (let waitedMs = 0; hints === 0 && waitedMs < longestHintMs; waitedMs += 100) {
        await read(a);
        await put(b, record(context, 2n));
        await context.wait(100);
      }
      assert.ok(hints > 0, `no hint within ${longestHintMs} ms`);
      unwatch();
      await context.wait(200);
      hints = 0;
      await put(b, record(context, 3n));
      await context.wait(200);
      assert.equal(hints, 0, 'hints after the watch was ended');
    },
  },
  {
    name: 'neither an empty list nor a living process is ever proved gone',
    needs: 'deathProof',
    async run(context) {
      const a = await open(context);
      assert.ok(a.describe !== undefined && a.provesGone !== undefined);
      const self = await a.describe({ pid: process.pid });
      assert.equal(a.provesGone([self]), false);
      assert.equal(a.provesGone([]), false);
    },
  },
  {
    name: 'a process that has ended is proved gone, alone and not beside one that lives',
    needs: 'deathProof',
    async run(context) {
      const [a, b] = [await open(context), await open(context)];
      assert.ok(a.describe !== undefined && b.provesGone !== undefined);
      const child = spawn(process.execPath, ['-e', 'process.stdin.resume()'], {
        stdio: ['pipe', 'ignore', 'ignore'],
      });
      context.onCleanUp(() => child.kill('SIGKILL'));
      await once(child, 'spawn');
      assert.ok(child.pid !== undefined);
      const [gone, self] = [
        await a.describe({ pid: child.pid }),
        await a.describe({ pid: process.pid }),
      ];
      assert.equal(b.provesGone([gone]), false, 'while it lives');
      child.kill('SIGKILL');
      await once(child, 'exit');
      assert.equal(b.provesGone([gone]), true, 'once it has ended');
      assert.equal(b.provesGone([gone, self]), false, 'beside one that lives');
    },
  },
  {
    name: 'who is enlisted is listed until taken off the list',
    needs: 'lists',
    async run(context) {
      const [a, b] = [await open(context), await open(context)];
      const names = async (store: LeaseStore) =>
        ((await store.list?.(never())) ?? []).map(({ id }) => id).sort();
      assert.deepEqual(await names(a), []);
      const delistX = await a.enlist?.(candidate('x'), never());
      const delistY = await b.enlist?.(candidate('y'), never());
      assert.deepEqual(await names(a), ['x', 'y']);
      assert.deepEqual(await names(b), ['x', 'y']);
      await delistX?.();
      assert.deepEqual(await names(b), ['y']);
      await delistY?.();
      assert.deepEqual(await names(a), []);
    },
  },
  {
    name: 'the age of a record is told by the store’s clock, and begins anew with every write',
    needs: 'age',
    async run(context) {
      const [a, b] = [await open(context), await open(context)];
      assert.ok(a.clockStepMs !== undefined, 'a store that tells ages bounds its clock’s steps');
      await put(a, record(context, 1n));
      await context.wait(1_500);
      const { ageMs } = await read(b);
      assert.ok(ageMs !== undefined && ageMs <= 1_500 + 5_000, `age ${ageMs} ms after 1500 ms`);
      await put(a, record(context, 1n));
      const again = (await read(b)).ageMs;
      assert.ok(again !== undefined && again <= ageMs + 1_000, `age ${again} ms after a write`);
    },
  },
];

async function open(context: Context): Promise<LeaseStore> {
  const store = await context.open();
  context.onCleanUp(() => store.close?.());
  return store;
}

function never(): AbortSignal {
  return new AbortController().signal;
}

function read(store: LeaseStore): ReturnType<LeaseStore['read']> {
  return store.read(never());
}

function swap(
  store: LeaseStore,
  version: Version,
  next: LeaseRecord,
): ReturnType<LeaseStore['swap']> {
  return store.swap(version, next, never());
}

/** A swap without competition. */
async function put(store: LeaseStore, next: LeaseRecord): Promise<Version> {
  const result = await swap(store, (await read(store)).version, next);
  if (result.outcome !== 'ok') assert.fail('a swap without competition conflicted');
  return result.version;
}

function assertSame(actual: LeaseRecord | undefined, expected: LeaseRecord): void {
  if (actual === undefined) assert.fail('the record is gone');
  // Missing and undefined fields mean the same in a record, and the order of fields
  // does not matter.
  assert.deepEqual(JSON.parse(encodeLeaseRecord(actual)), JSON.parse(encodeLeaseRecord(expected)));
  assert.equal(typeof actual.token, 'bigint');
}

function candidate(id: string): CandidateInfo {
  return { id, incarnation: `incarnation-of-${id}`, addresses: [], metadata: {} };
}

function record(context: Context, token: bigint, nonce: string = `nonce ${token}`): LeaseRecord {
  return {
    election: context.election,
    token,
    nonce,
    leaseMs: context.leaseMs,
    ended: false,
    holding: {
      candidate: candidate('host-1'),
      electedAtUnixMs: 1_700_000_000_000,
      announced: true,
      actors: null,
      revoked: false,
      request: undefined,
    },
    reservation: undefined,
    unfenced: [],
    drains: [],
    history: [],
  };
}

const unicode = 'zoë, 東京, 🦊, "quoted", back\\slash, tab\t';

function fullRecord(context: Context): LeaseRecord {
  return {
    ...record(context, 2n ** 100n, unicode),
    ended: true,
    holding: {
      candidate: {
        id: 'host-ß',
        incarnation: 'ab-12',
        addresses: ['10.0.0.7:50051', '[2001:db8::7]:50051'],
        metadata: { note: unicode, '': 'empty key', empty: '' },
      },
      electedAtUnixMs: 1_700_000_000_123.5,
      announced: false,
      actors: [{ pid: 12, boot: 'x' }, { pid: 13 }],
      revoked: true,
      request: { kind: 'transfer', to: 'host-2', nonce: 'request' },
    },
    reservation: { for: 'host-2', reserveMs: 1_500, untilUnixMs: 1_700_000_001_500 },
    unfenced: [{ ...candidate('gone'), token: 9n, failure: { by: 'host-5', why: unicode } }],
    drains: [{ id: 'host-3', untilUnixMs: 1_800_000_000_000 }],
    history: [
      {
        token: 8n,
        id: 'host-4',
        incarnation: 'cd',
        fromUnixMs: 1,
        toUnixMs: 2,
        why: 'unclean',
      },
    ],
  };
}

function vacantRecord(context: Context): LeaseRecord {
  return {
    ...record(context, 3n),
    holding: undefined,
    reservation: { for: undefined, reserveMs: 0, untilUnixMs: 0 },
  };
}

/** Everything at its limit: some 330 kB as JSON. */
function largestRecord(context: Context): LeaseRecord {
  const id = 'é'.repeat(100);
  const large: CandidateInfo = {
    id,
    incarnation: '0123456789abcdef0123456789abcdef0123',
    addresses: Array.from({ length: 32 }, (_, index) => `${index}`.padEnd(300, 'a')),
    metadata: { large: 'm'.repeat(4_080) },
  };
  return {
    ...fullRecord(context),
    holding: {
      candidate: large,
      electedAtUnixMs: 1_700_000_000_000,
      announced: true,
      actors: Array.from({ length: 50 }, (_, pid) => ({ pid, boot: 'b'.repeat(36), start: 1e12 })),
      revoked: false,
      request: { kind: 'vacate', nonce: 'n'.repeat(40) },
    },
    unfenced: Array.from({ length: unfencedLimit }, (_, index) => ({
      ...large,
      token: BigInt(index),
      failure: { by: id, why: 'w'.repeat(longestFenceFailure) },
    })),
    drains: Array.from({ length: drainLimit }, () => ({ id, untilUnixMs: 1_800_000_000_000 })),
    history: Array.from({ length: historyLimit }, (_, index) => ({
      token: BigInt(index),
      id,
      incarnation: large.incarnation,
      fromUnixMs: 1_700_000_000_000,
      toUnixMs: 1_700_000_000_001,
      why: 'renewal-failed' as const,
    })),
  };
}
