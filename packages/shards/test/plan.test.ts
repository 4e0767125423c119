import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Known } from '../src/ledger.ts';
import type { Situation } from '../src/plan.ts';
import { plan } from '../src/plan.ts';
import type { Entry, Seal, SlotState } from '../src/slot.ts';
import {
  absent,
  askedFor,
  givenUp,
  granted,
  isLive,
  leftBehind,
  newSlot,
  presented,
  ranOut,
} from '../src/slot.ts';

const seal: Seal = { number: 1n, nonce: 'a' };

const none = { shard: 0, unfenced: [] };

/** Some slots, their holders, and one coordinator whose writes all land. */
class World {
  readonly shards: number;
  readonly slots: Map<number, SlotState>;
  readonly alive = new Set<number>();
  readonly drained = new Set<number>();
  seal = seal;
  /** Shards that were granted although another process owned them before and gave them up. */
  moves = 0;
  mostAsked = 0;
  #maxMoving: number;

  constructor(slots: number, shards: number, maxMoving: number) {
    this.shards = shards;
    this.#maxMoving = maxMoving;
    const empty = newSlot({ number: 0n, nonce: '' }, slots, { count: shards, digest: 0n });
    this.slots = new Map(Array.from({ length: slots }, (_none, i) => [i + 1, empty]));
  }

  join(number: number): void {
    this.#change(number, (slot) => presented(slot, { ...absent, joined: true }));
    this.alive.add(number);
  }

  situation(more: Partial<Situation> = {}): Situation {
    const ledger = new Map<number, Known>(
      [...this.slots].map(([number, seen]) => [number, { seen, sent: [] }]),
    );
    return {
      ...{ seal: this.seal, slots: this.slots.size, shards: this.shards, ledger },
      ...{ alive: this.alive, drained: this.drained, maxMoving: this.#maxMoving },
      ...{ overdue: new Set<number>(), mayMove: true, doubts: false, tokenFloor: 0n },
      ...more,
    };
  }

  /** Until nothing is left to do. Holders give up the shards that they are asked for. */
  settle(more: Partial<Situation> = {}): void {
    for (let rounds = 0; rounds < 1_000; rounds += 1) {
      const writes = plan(this.situation(more));
      if (writes === 'outranked') throw new Error('outranked');
      for (const [number, slot] of writes) this.slots.set(number, slot);
      const asked = this.entries.filter(({ state }) => state === 'asked');
      this.mostAsked = Math.max(this.mostAsked, asked.length);
      this.moves += asked.length;
      const left = new Map(asked.map(({ shard, token }) => [shard, token]));
      for (const number of this.alive) this.#change(number, (slot) => givenUp(slot, left));
      this.check();
      if (writes.size === 0) return;
    }
    throw new Error('it does not settle');
  }

  get entries(): readonly Entry[] {
    return [...this.slots.values()].flatMap(({ entries }) => entries);
  }

  ownedBy(number: number): number {
    return this.slots.get(number)?.entries.filter(isLive).length ?? 0;
  }

  check(): void {
    const live = this.entries.filter(isLive).map(({ shard }) => shard);
    expect(new Set(live).size).toBe(live.length);
  }

  die(number: number): void {
    this.alive.delete(number);
  }

  vacate(number: number): void {
    this.#change(number, (slot) => ranOut(slot, `p${number}`));
  }

  leave(number: number): void {
    this.alive.delete(number);
    this.#change(number, leftBehind);
  }

  #change(number: number, change: (slot: SlotState) => SlotState): void {
    this.slots.set(number, change(this.slots.get(number) as SlotState));
  }
}

function worldOf(processes: number, shards: number, maxMoving = 10): World {
  const world = new World(8, shards, maxMoving);
  for (let number = 1; number <= processes; number += 1) world.join(number);
  world.settle();
  return world;
}

const countsOf = (world: World) => [...world.alive].map((number) => world.ownedBy(number));

describe('a coordinator', () => {
  it('seals all slots first, and grants then', () => {
    const world = new World(2, 4, 10);
    world.join(1);
    const first = plan(world.situation());
    expect([...first].map(([, slot]) => (slot as SlotState).entries)).toEqual([[], []]);
    const [one] = [...first] as [[number, SlotState]];
    world.slots.set(...one);
    expect([...plan(world.situation())].map(([number]) => number)).toEqual([2]);
    world.settle();
    expect(world.ownedBy(1)).toBe(4);
  });

  it('writes nothing when another one has a higher seal', () => {
    const world = worldOf(2, 4);
    world.seal = { number: 0n, nonce: 'z' };
    expect(plan(world.situation())).toBe('outranked');
  });

  it('moves a fourth of 256 shards to a fourth process, at most ten at a time', () => {
    const world = worldOf(3, 256);
    expect(world.moves).toBe(0);
    world.join(4);
    world.settle();
    expect([world.moves, world.mostAsked]).toEqual([64, 10]);
    expect(countsOf(world)).toEqual([64, 64, 64, 64]);
  });

  it('waits for quiet before it moves, and not before it grants', () => {
    const world = worldOf(3, 12);
    world.join(4);
    world.settle({ mayMove: false });
    expect(countsOf(world)).toEqual([4, 4, 4, 0]);
    world.leave(1);
    world.settle({ mayMove: false });
    expect(countsOf(world)).toEqual([4, 4, 4]);
    expect(world.moves).toBe(0);
  });

  it('grants the shards of a dead process when its slot is vacated, each with the leader to fence', () => {
    const world = worldOf(4, 256);
    world.die(2);
    world.settle();
    expect(countsOf(world)).toEqual([64, 64, 64]);
    world.vacate(2);
    world.settle();
    expect(countsOf(world).sort()).toEqual([85, 85, 86]);
    expect(world.moves).toBe(0);
    const taken = world.entries.filter(({ unfenced }) => unfenced.length > 0);
    expect(taken.length).toBe(64);
    expect(taken.every(({ unfenced }) => unfenced[0]?.id === 'p2')).toBe(true);
    // The old entries are gone, so the slot is as good as new.
    expect(world.slots.get(2)?.entries).toEqual([]);
  });

  it('empties a process that is drained, or leaves, before it goes', () => {
    const world = worldOf(4, 256);
    world.drained.add(1);
    world.settle();
    expect([world.ownedBy(1), world.moves]).toEqual([0, 64]);
  });

  it('moves a pinned shard to its slot, and gives it back to the balance when that one dies', () => {
    const world = worldOf(4, 256);
    const shard = (world.slots.get(1) as SlotState).entries[0]?.shard as number;
    const pins = new Map([[shard, 3]]);
    const owner = () =>
      [...world.slots].find(([, { entries }]) =>
        entries.some((entry) => entry.shard === shard && isLive(entry)),
      )?.[0];
    world.settle({ pins });
    expect(owner()).toBe(3);
    // Slot 3 has given another shard away for it.
    expect([world.moves, ...countsOf(world)]).toEqual([2, 64, 64, 64, 64]);
    world.leave(3);
    world.settle({ pins });
    expect([1, 2, 4]).toContain(owner());
    world.join(3);
    world.settle({ pins });
    expect(owner()).toBe(3);
  });

  it('takes a question back when the shard may stay', () => {
    const world = worldOf(2, 4);
    const one = world.slots.get(1) as SlotState;
    world.slots.set(1, askedFor(one, new Set([0])));
    const writes = plan(world.situation()) as ReadonlyMap<number, SlotState>;
    expect(writes.get(1)?.entries.map(({ state }) => state)).toEqual(['owned', 'owned']);
  });

  it('does not let shards whose work never settles stop the others', () => {
    const world = worldOf(2, 40, 2);
    world.drained.add(1);
    const asks = (situation: Situation) =>
      [...plan(situation)].flatMap(([, slot]) =>
        (slot as SlotState).entries.filter(({ state }) => state === 'asked'),
      );
    const first = asks(world.situation()).map(({ shard }) => shard);
    expect(first.length).toBe(2);
    world.slots.set(1, askedFor(world.slots.get(1) as SlotState, new Set(first)));
    expect(asks(world.situation())).toEqual([]);
    expect(asks(world.situation({ overdue: new Set(first) })).length).toBe(4);
  });

  it('sends nothing to a slot that waits for an answer, and counts on neither outcome', () => {
    const world = worldOf(2, 4);
    world.leave(2);
    const situation = world.situation();
    const seen = world.slots.get(1) as SlotState;
    const [shard = 0] = world.slots.get(2)?.entries.map((entry) => entry.shard) ?? [];
    const sent = granted(seen, [{ shard, token: 9n, unfenced: [] }]);
    const ledger = new Map([...situation.ledger, [1, { seen, sent: [sent] }]]);
    expect(plan({ ...situation, ledger })).toEqual(new Map());
    // Not even to a third process.
    world.join(3);
    const writes = plan({
      ...world.situation(),
      ledger: new Map([...world.situation().ledger, [1, { seen, sent: [sent] }]]),
    });
    const third = (writes as ReadonlyMap<number, SlotState>).get(3);
    expect(third?.entries.some((entry) => entry.shard === shard)).not.toBe(true);
  });

  it('asks a slot for nothing while a write to it has no answer', () => {
    const world = worldOf(2, 4);
    world.drained.add(1);
    const situation = world.situation();
    const seen = world.slots.get(1) as SlotState;
    expect([...plan(situation)].map(([number]) => number)).toEqual([1]);
    const ledger = new Map([...situation.ledger, [1, { seen, sent: [seen] }]]);
    expect(plan({ ...situation, ledger })).toEqual(new Map());
  });

  it('deletes the older of two entries that are left, and never the newest', () => {
    const world = new World(2, 1, 10);
    const slot = newSlot(seal, 2, { count: 1, digest: 0n });
    const leftWith = (token: bigint) => leftBehind(granted(slot, [{ ...none, token }]));
    world.slots.set(1, leftWith(5n)).set(2, leftWith(9n));
    world.settle();
    expect([...world.slots.values()].map(({ entries }) => entries.length)).toEqual([0, 1]);
  });

  it('does not grant a shard that stands nowhere while it doubts', () => {
    const world = new World(2, 4, 10);
    world.join(1);
    world.settle({ doubts: true });
    expect(world.ownedBy(1)).toBe(0);
    world.settle({ tokenFloor: 99n });
    expect(world.entries.map(({ token }) => token)).toEqual([100n, 100n, 100n, 100n]);
  });

  it('comes to a balance after every sequence of events, with one owner for each shard', () => {
    const event = fc.record({
      kind: fc.constantFrom('join', 'die', 'vacate', 'leave', 'drain', 'coordinator', 'pin'),
      slot: fc.integer({ min: 1, max: 8 }),
      shard: fc.integer({ min: 0, max: 19 }),
      settles: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 30 }), (events) => {
        const world = worldOf(2, 20, 3);
        const pins = new Map<number, number>();
        for (const { kind, slot, shard, settles } of events) {
          const isHeld = world.slots.get(slot)?.presence.joined === true;
          if (kind === 'join' && !isHeld) world.join(slot);
          if (kind === 'die') world.die(slot);
          if (kind === 'vacate' && isHeld && !world.alive.has(slot)) world.vacate(slot);
          if (kind === 'leave' && world.alive.has(slot)) world.leave(slot);
          if (kind === 'drain') world.drained.add(slot);
          if (kind === 'coordinator') world.seal = { number: world.seal.number + 1n, nonce: 'a' };
          if (kind === 'pin') pins.set(shard, slot);
          if (settles) world.settle({ pins });
        }
        for (const number of world.slots.keys()) {
          if (!world.alive.has(number)) world.vacate(number);
        }
        world.settle();
        const counts = [...world.alive]
          .filter((number) => !world.drained.has(number))
          .map((number) => world.ownedBy(number));
        if (counts.length === 0) return;
        expect(counts.reduce((sum, count) => sum + count, 0)).toBe(20);
        expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
        expect(world.entries.every(isLive)).toBe(true);
        expect(world.mostAsked).toBeLessThanOrEqual(3);
      }),
    );
  });
});
