/** An acknowledged drain outlives the clocks of the candidates that write the record. */
import { describe, expect, it } from 'vitest';
import type { Clock, Election } from '../src/index.ts';
import { createElection, RefusedError } from '../src/index.ts';
import { drainLimit, keptDrains } from '../src/record/record.ts';
import type { SimulatedClock } from '../src/testing/index.ts';
import { SimulatedClock as Clocks, SimulatedLeaseStore } from '../src/testing/index.ts';
import { LockStage } from './lock/stage.ts';
import { Stage } from './queue/support.ts';

const hourMs = 3_600_000;

function ahead(clock: SimulatedClock, ms: number): Clock {
  return {
    monotonicMs: () => clock.monotonicMs(),
    wallMs: () => clock.wallMs() + ms,
    setTimer: (callback, delayMs) => clock.setTimer(callback, delayMs),
  };
}

interface Setting {
  readonly clock: SimulatedClock;
  elect(id: string, aheadMs?: number): Election<bigint>;
  drains(): readonly { readonly id: string }[];
}

function leaseSetting(): Setting {
  const clock = new Clocks();
  const store = new SimulatedLeaseStore({ clock });
  return {
    clock,
    elect: (id, aheadMs = 0) =>
      createElection({
        name: 'jobs',
        backend: store.connect().backend,
        clock: ahead(clock, aheadMs),
        candidate: { id },
        random: () => 0.5,
      }),
    drains: () => store.record('jobs')?.drains ?? [],
  };
}

function settingOf(stage: Stage): Setting {
  return {
    clock: stage.clock,
    elect: (id, aheadMs = 0) =>
      stage.candidate(id, { clock: ahead(stage.clock, aheadMs) }).election,
    drains: () => stage.store.record('jobs')?.drains ?? [],
  };
}

describe.each<readonly [string, () => Setting]>([
  ['a lease', leaseSetting],
  ['a queue', () => settingOf(new Stage())],
  ['a lock', () => settingOf(new LockStage())],
])('on %s', (_, stand) => {
  it('a leader whose clock is three hours ahead leaves a drain of two hours in the record', async () => {
    const { clock, elect, drains } = stand();
    const [operator, a, b] = [elect('operator'), elect('a'), elect('b', 3 * hourMs)];
    const asked = operator.drain('a', new Date(clock.wallMs() + 2 * hourMs));
    await clock.advance(100);
    expect(await asked).toMatchObject({ changed: true });
    const campaign = b.campaign();
    await clock.advance(30_000);
    const term = await campaign;
    expect(drains()).toMatchObject([{ id: 'a' }]);
    const ended = term[Symbol.asyncDispose]();
    await clock.advance(1_000);
    await ended;
    expect(drains()).toMatchObject([{ id: 'a' }]);
    const refused = expect(a.campaign({ wait: 0 })).rejects.toMatchObject({
      why: { kind: 'drained' },
    });
    await clock.advance(5_000);
    await refused;
  });

  it('an operator whose clock is ahead drains another candidate, and keeps the drains of before', async () => {
    const { clock, elect, drains } = stand();
    const [operator, fast] = [elect('operator'), elect('fast', 3 * hourMs)];
    const asked = operator.drain('a', new Date(clock.wallMs() + 2 * hourMs));
    await clock.advance(100);
    await asked;
    const askedNext = fast.drain('c', new Date(clock.wallMs() + 9 * hourMs));
    await clock.advance(100);
    await askedNext;
    expect(drains()).toMatchObject([{ id: 'a' }, { id: 'c' }]);
  });

  it('a drain that has been over for a day leaves the record with the next leader', async () => {
    const { clock, elect, drains } = stand();
    const operator = elect('operator');
    for (const [id, ms] of [
      ['short', 1_000],
      ['long', 2_000],
    ] as const) {
      const asked = operator.drain(id, new Date(clock.wallMs() + ms));
      await clock.advance(0);
      await asked;
    }
    await clock.advance(24 * hourMs + 1_500);
    expect(drains()).toMatchObject([{ id: 'short' }, { id: 'long' }]);
    const campaign = elect('a').campaign();
    await clock.advance(100);
    const term = await campaign;
    expect(drains()).toMatchObject([{ id: 'long' }]);
    await clock.advance(1_000);
    const ended = term[Symbol.asyncDispose]();
    await clock.advance(1_000);
    await ended;
    expect(drains()).toEqual([]);
  });

  it('a drain that is over makes room for another one, and one that is not does not', async () => {
    const { clock, elect, drains } = stand();
    const operator = elect('operator');
    const drain = async (id: string, ms: number) => {
      const asked = operator.drain(id, new Date(clock.wallMs() + ms));
      const done = asked.catch((error: unknown) => error);
      await clock.advance(10);
      return done;
    };
    await drain('short', 60_000);
    for (let i = 1; i < drainLimit; i += 1) await drain(`host-${i}`, 2 * hourMs);
    expect(await drain('one more', hourMs)).toBeInstanceOf(RefusedError);
    await clock.advance(60_000);
    expect(await drain('one more', hourMs)).toMatchObject({ changed: true });
    expect(drains()).toHaveLength(drainLimit);
    expect(drains().map(({ id }) => id)).not.toContain('short');
  });
});

describe('keptDrains', () => {
  const nowMs = 1_000 * hourMs;

  it('drops drains that have been over for a day', () => {
    const drains = [
      { id: 'a', untilUnixMs: nowMs - 24 * hourMs },
      { id: 'b', untilUnixMs: nowMs - 24 * hourMs + 1 },
      { id: 'c', untilUnixMs: nowMs + 1 },
    ];
    expect(keptDrains(drains, nowMs).map(({ id }) => id)).toEqual(['b', 'c']);
  });

  it('makes room by dropping the drains that have been over for longest', () => {
    const drains = Array.from({ length: drainLimit }, (_, i) => ({
      id: `${i}`,
      untilUnixMs: nowMs + (i === 3 ? -2 : i === 5 ? -9 : i),
    }));
    // 0 is over as well: now is not before its end.
    const dropped = (room: 0 | 1) => {
      const kept = new Set(keptDrains(drains, nowMs, room));
      return drains.filter((drain) => !kept.has(drain)).map(({ id }) => id);
    };
    expect(dropped(0)).toEqual([]);
    expect(keptDrains(drains, nowMs)).toEqual(drains);
    expect(dropped(1)).toEqual(['5']);
  });
});
