/**
 * Pins: an operator wants a shard at one member. The coordinator honours them when it assigns shards.
 * Whether a shard is free does not depend on them.
 */
import type { SeenSlot } from './seen-slot.ts';
import type { ShardList, SlotState } from './slot.ts';
import { isLive } from './slot.ts';

/** By the numbers of shards: the id of the member that is to own it. */
export type Pins = ReadonlyMap<number, string>;

/** The record of the election is written in each renewal, with all pins in it. */
export const mostPins = 1_000;

/** The pins that mean the same in another list. Those of named shards do not: numbers change there. */
export function pinsIn(pins: Pins, from: ShardList, to: ShardList): Pins {
  if (from.digest === to.digest && from.count <= to.count) return pins;
  if (from.digest !== 0n || to.digest !== 0n) return new Map();
  return new Map([...pins].filter(([shard]) => shard < to.count));
}

/** A slot that may be granted shards, as pins look at it. */
type Member = Pick<SeenSlot, 'number' | 'record' | 'state'>;

/**
 * By the numbers of shards: the slot that each is pinned to. The pin to a member that is gone, or is to
 * own nothing, sleeps. Of two processes with one id, the one that owns the shard has it.
 * @param members the slots that may be granted shards
 */
export function pinnedSlots(pins: Pins, members: readonly Member[]): ReadonlyMap<number, number> {
  if (pins.size === 0) return new Map();
  const byId = new Map<string, Member[]>();
  for (const member of members) {
    const id = member.record?.holding?.candidate.id ?? '';
    byId.set(id, [...(byId.get(id) ?? []), member]);
  }
  return new Map(
    [...pins].flatMap(([shard, id]) => {
      const all = byId.get(id) ?? [];
      const one = all.find(({ state }) => owns(state, shard)) ?? all[0];
      return one === undefined ? [] : [[shard, one.number] as const];
    }),
  );
}

function owns(state: SlotState | undefined, shard: number): boolean {
  return state?.entries.some((entry) => entry.shard === shard && isLive(entry)) === true;
}
