/** Many leases of one store at once, and what a listing makes of records that are no election's. */
import { describe, expect, test } from 'vitest';
import {
  MisuseError,
  RecordDamagedError,
  RecordTooNewError,
  StoreUnavailableError,
  StoreUnsuitableError,
} from '../../src/base/errors.ts';
import { inParallel } from '../../src/base/in-parallel.ts';
import { Deferred } from '../../src/base/wait.ts';
import { KnownRecord } from '../../src/mechanisms/lease/known-record.ts';
import type { ListedLease } from '../../src/mechanisms/lease/listing.ts';
import {
  leasePages,
  shardsIn,
  shardsWithParts,
  unreadableLease,
} from '../../src/mechanisms/lease/listing.ts';
import { allOf, readEach } from '../../src/mechanisms/lease/read-all.ts';
import type { LeaseStore, Reading } from '../../src/mechanisms/lease/store.ts';
import type { LeaseRecord } from '../../src/record/lease-record.ts';
import { emptyLeaseRecord } from '../../src/record/lease-record.ts';
import { SimulatedClock } from '../../src/testing/index.ts';
import { collectWarnings } from '../support/warnings.ts';

const never = new AbortController().signal;
const empty: Reading = { record: undefined, version: 0 };

/** Lets all promises go on that can. */
const settle = () => new SimulatedClock().advance(0);

/** Stores that answer when the test says so. */
function stores(count: number) {
  const begun: number[] = [];
  const answers: { resolve: (reading: Reading) => void; reject: (error: unknown) => void }[] = [];
  const all = Array.from(
    { length: count },
    (_, index): LeaseStore => ({
      read: () => {
        begun.push(index);
        return new Promise((resolve, reject) => {
          answers[index] = { resolve, reject };
        });
      },
      swap: async () => ({ outcome: 'conflict' }),
    }),
  );
  return { begun, answers, all };
}

describe('reads of many leases', () => {
  test('are 32 at once, and their results keep the order of the stores', async () => {
    const { begun, answers, all } = stores(40);
    const reading = readEach()(all, never);
    await settle();
    expect(begun.length).toBe(32);
    answers[7]?.resolve({ record: undefined, version: 7 });
    await settle();
    expect(begun.slice(32)).toEqual([32]);
    for (let index = 0; index < 40; index += 1) {
      answers[index]?.resolve({ record: undefined, version: index });
      await settle();
    }
    expect((await reading).map((each) => (each as Reading).version)).toEqual(
      all.map((_, index) => index),
    );
  });

  test('begin no more when one has failed: the result is known', async () => {
    const { begun, answers, all } = stores(4);
    const reading = readEach(2)(all, never);
    const failed = expect(reading).rejects.toThrow('away');
    await settle();
    answers[0]?.reject(new StoreUnavailableError('away'));
    await failed;
    answers[1]?.resolve(empty);
    await settle();
    expect(begun).toEqual([0, 1]);
  });

  test('give the error of a record that cannot be read in its place', async () => {
    const { answers, all } = stores(3);
    const reading = readEach()(all, never);
    await settle();
    const damaged = new RecordDamagedError('the row', 'no JSON');
    const tooNew = new RecordTooNewError('the row', 9, 2);
    answers[0]?.reject(damaged);
    answers[1]?.resolve(empty);
    answers[2]?.reject(tooNew);
    expect(await reading).toEqual([damaged, empty, tooNew]);
  });

  test.each([new StoreUnsuitableError('no rights'), new Error('a bug')])(
    'fail with an error of the store: %s',
    async (error) => {
      const { answers, all } = stores(1);
      const reading = readEach()(all, never);
      await settle();
      answers[0]?.reject(error);
      await expect(reading).rejects.toBe(error);
    },
  );

  test('may be hundreds under one signal: Node.js warns of no leak', async () => {
    const warnings = collectWarnings();
    const { signal } = new AbortController();
    const listening: LeaseStore = {
      read: async (operation) => {
        operation.addEventListener('abort', () => {});
        return empty;
      },
      swap: async () => ({ outcome: 'conflict' }),
    };
    await readEach()(Array(20).fill(listening), signal);
    await new Promise(setImmediate);
    expect(warnings).toEqual([]);
  });

  test('are refused for the stores of another backend', () => {
    class Ours {
      read = async () => empty;
      swap = async () => ({ outcome: 'conflict' }) as const;
    }
    const ours = [new Ours(), new Ours()];
    expect(allOf(Ours, ours)).toEqual(ours);
    const [other] = stores(1).all;
    expect(() => allOf(Ours, [...ours, other as LeaseStore])).toThrow(MisuseError);
  });
});

test('jobs in parallel: no more workers than jobs, and none at all for none', async () => {
  const begun: number[] = [];
  const answer = new Deferred<void>();
  const job = async (item: number) => {
    begun.push(item);
    await answer.promise;
    return 2 * item;
  };
  expect(await inParallel([], 5, job)).toEqual([]);
  const results = inParallel([1, 2, 3], 2, job);
  await settle();
  expect(begun).toEqual([1, 2]);
  answer.resolve();
  expect(await results).toEqual([2, 4, 6]);
});

describe('the record that a handle knows', () => {
  const record: LeaseRecord = emptyLeaseRecord('jobs', 'n-1', 10_000);

  test('is decoded once for each version', () => {
    const known = new KnownRecord();
    let decoded = 0;
    const decode = () => {
      decoded += 1;
      return { ...record, nonce: `n-${decoded}` };
    };
    expect(known.at(1, decode).nonce).toBe('n-1');
    expect(known.at(1, decode).nonce).toBe('n-1');
    expect(known.at(2, decode).nonce).toBe('n-2');
    expect(known.at(1, decode).nonce).toBe('n-3');
    known.learn(5, record);
    expect(known.at(5, decode)).toBe(record);
    expect(decoded).toBe(3);
  });

  test('tells a renewal, which nobody waits for, from news', () => {
    const known = new KnownRecord();
    const renewal = { ...record, nonce: 'n-2' };
    expect(known.isRenewal(1, renewal)).toBe(false);
    known.learn(1, record);
    expect(known.isRenewal(1, renewal)).toBe(true);
    // Another process may have written between.
    expect(known.isRenewal(2, renewal)).toBe(false);
    expect(known.isRenewal(1, { ...renewal, ended: true })).toBe(false);
    expect(known.isRenewal(1, { ...renewal, token: 1n })).toBe(false);
  });
});

describe('a listing of leases', () => {
  const shards: LeaseRecord = { ...emptyLeaseRecord('s', 'n', 10_000), shards: 'AA==' };
  const election = emptyLeaseRecord('e', 'n', 10_000);
  const listed = (name: string, record: LeaseRecord | Error): ListedLease => ({
    name,
    reading() {
      if (record instanceof Error) throw record;
      return { record, version: 1 };
    },
  });
  const namesOf = async (...elections: readonly ListedLease[]) => {
    const page = async () => ({ elections, next: undefined });
    const pages = leasePages({ page }, undefined);
    const found = await pages.page(undefined, 'summaries', never);
    return found.elections.map(({ name }) => name);
  };

  test('leaves out shards and their parts, and nothing that is only named like one', async () => {
    const parts = ['x/1', 'x/12', 'x/list', 'x/directory'].map((name) => listed(name, shards));
    expect(await namesOf(...parts)).toEqual([]);
    const alike = ['x/1', 'x/list'].map((name) => listed(name, election));
    expect(await namesOf(...alike)).toEqual(['x/1', 'x/list']);
    // An operator is to see that it is there.
    const damaged = new RecordDamagedError('the row', 'no JSON');
    expect(await namesOf(listed('x/1', damaged), listed('x', shards))).toEqual(['x/1']);
    // A store may know it from the name of the key, and then reads nothing.
    const known = { ...listed('y', new Error('it was read')), hasShards: true };
    expect(await namesOf(known, { ...listed('z', shards), hasShards: false })).toEqual(['z']);
  });

  test('tells the shards of a store from all its pages, each once and without their parts', async () => {
    const damaged = new RecordDamagedError('the row', 'no JSON');
    const pages: readonly (readonly ListedLease[])[] = [
      [listed('s', shards), listed('s/1', shards), listed('s/list', shards), listed('e', election)],
      [],
      [
        listed('s', shards),
        listed('t', shards),
        listed('t/directory', shards),
        listed('u', damaged),
      ],
    ];
    const page = async (after: unknown) => {
      const at = Number(after ?? 0);
      return { elections: pages[at] ?? [], next: at + 1 < pages.length ? at + 1 : undefined };
    };
    expect(await shardsIn({ page })(never)).toEqual(['s', 't']);
    const reason = new Error('enough');
    await expect(shardsIn({ page })(AbortSignal.abort(reason))).rejects.toBe(reason);
    expect(shardsWithParts(['s', 's/1', 's/2', 's/11', 't/list', 'u/x/1'])).toEqual(['s', 'u/x']);
  });

  test('tells of an election whose record cannot be read, and of no other trouble', () => {
    const damaged = new RecordDamagedError('the row', 'no JSON');
    const { name, reading } = unreadableLease('e', damaged, never);
    expect(name).toBe('e');
    expect(reading).toThrow(damaged);
    const other = new Error('a bug');
    const away = new StoreUnavailableError('away');
    for (const error of [other, away]) {
      expect(() => unreadableLease('e', error, never)).toThrow(error);
    }
    const reason = new Error('enough');
    expect(() => unreadableLease('e', damaged, AbortSignal.abort(reason))).toThrow(reason);
  });

  test('tells the candidates that wait, without the leader', async () => {
    const [a, b] = ['a', 'b'].map((id) => ({
      ...{ id, incarnation: `of ${id}`, addresses: [], metadata: {} },
    }));
    const holding: LeaseRecord['holding'] = {
      ...{
        candidate: a as NonNullable<typeof a>,
        electedAtUnixMs: 1,
        announced: true,
        actors: null,
      },
      ...{ revoked: false, request: undefined },
    };
    const record = { ...election, token: 1n, holding };
    const each = { ...listed('e', record), waiting: [a, b] as NonNullable<ListedLease['waiting']> };
    const page = async () => ({ elections: [each, listed('f', election)], next: 7 });
    const found = await leasePages({ page }, undefined).page(undefined, 'summaries', never);
    expect(found.next).toBe(7);
    const clock = new SimulatedClock();
    const remembered: unknown[] = [];
    const look = {
      clock,
      remembered: undefined,
      remember: (what: unknown) => remembered.push(what),
    };
    const [first, second] = found.elections;
    expect(first?.waiting).toEqual([a, b]);
    expect(first?.summarize(look)).toMatchObject({ waiting: [b], view: { leader: { id: 'a' } } });
    expect(second?.summarize(look).waiting).toBeUndefined();
    expect(remembered).toHaveLength(2);
  });
});
