/**
 * The knowledge of a coordinator about all slots, and the conclusions from it. Pure. It decides whether
 * a shard is free, so two owners would come from here: docs/design/shards.md has the rules and the
 * proof.
 */
import type { Entry, Seal, SlotState, Unfenced } from './slot.ts';
import { isLive, sameSeal } from './slot.ts';

/** A coordinator's knowledge of one slot. */
export interface Known {
  /** The last state that is certain: it was read, or written with a known outcome. */
  readonly seen: SlotState;
  /** Writes of ours whose outcome is unknown. Each may have landed, or may still land. */
  readonly sent: readonly SlotState[];
}

/** The slots by their numbers, from 1. A slot that is missing in the map is not known. */
export type Ledger = ReadonlyMap<number, Known>;

/**
 * True when every slot has this seal, for certain. Then no other coordinator can add an entry that
 * this one does not know.
 * @param but slots that cannot be read. They count as `Lost`
 */
export function isSealed(
  ledger: Ledger,
  seal: Seal,
  slots: number,
  but: ReadonlySet<number> = new Set(),
): boolean {
  for (let slot = 1; slot <= slots; slot += 1) {
    if (but.has(slot)) continue;
    const known = ledger.get(slot);
    if (known === undefined || !sameSeal(known.seen.seal, seal)) return false;
  }
  return true;
}

/** The number of slots that anybody knows of. The record of the election may have been lost. */
export function slotsIn(ledger: Ledger, slots: number): number {
  return Math.max(slots, ...[...ledger.values()].map(({ seen }) => seen.slots));
}

/** How a shard stands. */
export type Standing =
  | { readonly kind: 'owned' }
  /** Nobody owns it, for certain, since the term with this token. The next owner has to fence these. */
  | { readonly kind: 'free'; readonly token: bigint; readonly unfenced: readonly Unfenced[] }
  /** It stands nowhere. It never had an owner, or its entry was lost. */
  | { readonly kind: 'unknown' };

/** How each shard stands. Counts only while `isSealed`. */
export function standingsIn(ledger: Ledger, shards: number): readonly Standing[] {
  const standings = new Array<Standing>(shards).fill({ kind: 'unknown' });
  const newest = new Map<number, Entry>();
  for (const { seen, sent } of ledger.values()) {
    // A write without an answer may have landed: an entry that it adds is live.
    for (const { entries } of sent) {
      for (const entry of entries) if (isLive(entry)) standings[entry.shard] = { kind: 'owned' };
    }
    // And may not have landed: an entry that it deletes is still there.
    for (const entry of seen.entries) {
      if (isLive(entry)) {
        standings[entry.shard] = { kind: 'owned' };
        continue;
      }
      const other = newest.get(entry.shard);
      // An older entry was granted elsewhere since: its leaders came along.
      if (other === undefined || other.token < entry.token) newest.set(entry.shard, entry);
    }
  }
  for (const [shard, { token, unfenced }] of newest) {
    if (standings[shard]?.kind === 'unknown') standings[shard] = { kind: 'free', token, unfenced };
  }
  return standings;
}

/** Grants that slots were given, and do not show: they were set back, or cannot be read. */
export interface Lost {
  /** Each of these grants had a lower token. */
  readonly below: bigint;
  /** Shards that had an owner since. Their grants are none of them. */
  readonly but: ReadonlySet<number>;
}

/** True when a lost grant may have given the shard to a process that believes in it still. */
export function mayBeLost(shard: number, standing: Standing, { below, but }: Lost): boolean {
  if (below === 0n || standing.kind === 'owned' || but.has(shard)) return false;
  return standing.kind === 'unknown' || standing.token < below;
}

/** Higher than every token that any slot was given, or may have been given. */
export function nextTokenIn(ledger: Ledger, floor: bigint): bigint {
  let highest = floor;
  for (const { seen, sent } of ledger.values()) {
    for (const { highest: given } of [seen, ...sent]) if (given > highest) highest = given;
  }
  return highest + 1n;
}
