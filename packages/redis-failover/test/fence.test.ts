// How the former primary is kept from acknowledging writes, on nodes that are played.
import { describe, expect, it } from 'vitest';
import type { PrimaryRecord } from '../src/layout.ts';
import { fence, whileWatched } from '../src/manager/fence.ts';
import type { Hands } from '../src/manager/hands.ts';
import type { MovePlan, MoveWorld } from '../src/manager/move-world.ts';
import { replication } from './support/replication.ts';

const record: PrimaryRecord = {
  ...{ term: 1, primary: 'p:1', former: null, replicationId: 'a', runId: 'r', gemViews: false },
  ...{ viewMs: 1_000, manager: 'm', token: '1', manualSeen: '0' },
};

function worldOf(hands: Partial<Record<keyof Hands, unknown>>): MoveWorld {
  return {
    hands,
    ...{ hooks: {}, signal: new AbortController().signal, nowMs: () => 0 },
    sleep: () => new Promise((resolve) => setImmediate(resolve)),
  } as unknown as MoveWorld;
}

describe('a pause of writes', () => {
  it.for([
    [1_000, 15_000],
    [10_000, 33_158],
  ])('with views of %d ms is of %d ms', async ([viewMs = 0, pauseMs]) => {
    const pauses: number[] = [];
    const world = worldOf({
      replication: async () => replication({ runId: 'r' }),
      pauseWrites: async (_node: string, forMs: number) => void pauses.push(forMs),
    });
    const plan = { reason: 'request' } as MovePlan;
    const fenced = await fence('p:1', { ...record, viewMs }, plan, world);
    expect(fenced).toMatchObject({ how: 'paused', cameBack: false });
    expect(pauses).toEqual([pauseMs]);
  });
});

describe('a primary that comes back in another process while the next one is chosen', () => {
  it('is set aside before the move goes on', async () => {
    const done: string[] = [];
    let isAsked = (): void => {};
    const asked = new Promise<void>((resolve) => {
      isAsked = resolve;
    });
    const world = worldOf({
      replication: async () => replication({ runId: 'another' }),
      setAside: async () => {
        isAsked();
        for (let turn = 0; turn < 5; turn += 1) {
          await new Promise((resolve) => setImmediate(resolve));
        }
        done.push('set aside');
      },
    });
    await whileWatched('p:1', record, world, async () => {
      await asked;
      done.push('chosen');
    });
    expect(done).toEqual(['chosen', 'set aside']);
  });

  it.for([
    ['is the process on record', { runId: 'r' }],
    ['is a replica', { runId: 'another', role: 'replica' }],
    ['is loading', { runId: 'another', loading: true }],
  ] as const)('stays as it is where it %s', async ([, says]) => {
    const done: string[] = [];
    let looks = 0;
    const world = worldOf({
      replication: async () => {
        looks += 1;
        return replication(says);
      },
      setAside: async () => void done.push('set aside'),
    });
    await whileWatched('p:1', record, world, async () => {
      while (looks < 3) await new Promise((resolve) => setImmediate(resolve));
    });
    expect(done).toEqual([]);
  });
});
