import { expect, onTestFinished, test, vi } from 'vitest';
import type { ToldStatus } from '../../src/dashboard/show-shards.ts';
import { ShowShards } from '../../src/dashboard/show-shards.ts';
import type { ShownShards } from '../../src/dashboard/shown.ts';
import { shardsKey } from '../../src/dashboard/shown.ts';
import { LiveValues } from '../../src/web/live-values.ts';
import { ActionError } from '../../src/web/page-server.ts';

const member = { addresses: [], weight: 1, zone: '', joined: true, drained: false, moving: 0 };

/** @param owners the slot and the token of each shard; undefined: it has none */
function statusOf(owners: readonly (readonly [slot: number, token: bigint] | undefined)[]) {
  const slots = [...new Set(owners.flatMap((owner) => owner?.[0] ?? []))];
  return {
    ...{ shards: owners.length, isNamed: false, names: undefined },
    coordinator: undefined,
    ...{ unreadable: [], moving: [1], pins: [{ shard: 1, to: 'host-9' }] },
    members: slots.map((slot) => ({
      ...{ ...member, id: `host-${slot}`, slot, sinceUnixMs: 5 },
      owns: owners.filter((owner) => owner?.[0] === slot).length,
    })),
    unowned: [...owners.keys()].filter((shard) => owners[shard] === undefined),
    owner(shard) {
      const [slot, token] = owners[Number(shard)] ?? [];
      if (slot === undefined || token === undefined) return undefined;
      return { id: `host-${slot}`, slot, addresses: [], token, ready: true };
    },
  } satisfies ToldStatus;
}

function shown() {
  const live = new LiveValues();
  const show = new ShowShards(0, live);
  const told = () => live.get(shardsKey({ store: 0, name: 'queues' })) as ShownShards | undefined;
  return { show, told };
}

test('a term that was there before keeps its time, and a new one has the present one', () => {
  vi.useFakeTimers({ now: 1_000 });
  onTestFinished(() => void vi.useRealTimers());
  const { show, told } = shown();
  show.onShards('queues', statusOf([[10, 1n], [2, 1n], undefined]));
  const first = told();
  expect(first).toMatchObject({ shards: 3, unowned: 1, moving: 1, pinned: 1, error: null });
  expect(first?.members.map(({ id }) => id)).toEqual(['host-2', 'host-10']);
  expect(show.grid('queues')).toMatchObject({
    ...{ version: first?.version, cells: [0, 1, -1], moving: [1] },
    pins: [{ shard: 1, to: 'host-9' }],
    terms: [
      { slot: 10, id: 'host-10', token: '1', sinceUnixMs: null },
      { slot: 2, id: 'host-2', token: '1', sinceUnixMs: null },
    ],
  });
  vi.setSystemTime(2_000);
  show.onShards('queues', statusOf([[10, 1n], [10, 3n], undefined]));
  vi.setSystemTime(3_000);
  show.onShards(
    'queues',
    statusOf([
      [10, 1n],
      [10, 3n],
      [2, 4n],
    ]),
  );
  expect(told()?.version).not.toBe(first?.version);
  expect(show.grid('queues').terms).toEqual([
    { slot: 10, id: 'host-10', token: '1', sinceUnixMs: null },
    { slot: 10, id: 'host-10', token: '3', sinceUnixMs: 2_000 },
    { slot: 2, id: 'host-2', token: '4', sinceUnixMs: 3_000 },
  ]);
});

test('trouble is told beside the last status, until the next one', () => {
  const { show, told } = shown();
  show.onShardsTrouble('queues', new Error('it is away'));
  expect(told()).toMatchObject({ shards: 0, error: 'it is away' });
  show.onShards('queues', statusOf([[1, 1n]]));
  expect(told()).toMatchObject({ shards: 1, error: null });
  show.onShardsTrouble('queues', new Error('it is away'));
  expect(told()).toMatchObject({ shards: 1, unowned: 0, error: 'it is away' });
  const damaged = { slot: 3, error: new Error('slot 3 is damaged') };
  show.onShards('queues', { ...statusOf([[1, 1n]]), unreadable: [damaged] });
  expect(told()?.error).toBe('slot 3 is damaged');
});

test('shards that are gone are shown no more', () => {
  const { show, told } = shown();
  show.onShards('queues', statusOf([[1, 1n]]));
  show.onShardsGone('queues');
  expect(told()).toBeUndefined();
  expect(() => show.grid('queues')).toThrow(ActionError);
});
