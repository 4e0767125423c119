/** All slots, as a coordinator sees them. */
import type { Ledger } from './ledger.ts';
import type { SeenSlot } from './seen-slot.ts';
import type { Seal } from './slot.ts';
import { isLive, sameSeal } from './slot.ts';

/** Then one of the two slots was set back. */
export function ownedTwice(slots: readonly SeenSlot[]): boolean {
  const owned = new Set<number>();
  for (const { state, damage } of slots) {
    // Another coordinator, which can read it, may have moved its shards since.
    if (damage !== undefined) continue;
    for (const entry of state?.entries ?? []) {
      if (!isLive(entry)) continue;
      if (owned.has(entry.shard)) return true;
      owned.add(entry.shard);
    }
  }
  return false;
}

export function sameSealed({ state }: SeenSlot, seal: Seal): boolean {
  return state !== undefined && sameSeal(state.seal, seal);
}

export function unreadableOf(slots: readonly SeenSlot[]): ReadonlySet<number> {
  return new Set(slots.flatMap(({ number, damage }) => (damage === undefined ? [] : [number])));
}

export function ledgerOf(slots: readonly SeenSlot[]): Ledger {
  return new Map(
    slots.flatMap(({ number, known }) => (known === undefined ? [] : [[number, known] as const])),
  );
}
