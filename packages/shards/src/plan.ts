/**
 * The next writes of a coordinator, from what it knows. Pure. Nothing is granted before all slots are
 * sealed, and nothing that may be owned: docs/design/shards.md.
 */
import type { Member } from './assign.ts';
import { assign, nobody } from './assign.ts';
import type { Ledger, Standing } from './ledger.ts';
import { isSealed, nextTokenIn, standingsIn } from './ledger.ts';
import type { Grant, Seal, SlotState, Unfenced } from './slot.ts';
import {
  askedFor,
  askedNoMore,
  forgotten,
  granted,
  isLive,
  isOutranked,
  sameSeal,
  sealed,
} from './slot.ts';

export interface Situation {
  readonly seal: Seal;
  /** How many slots there are. */
  readonly slots: number;
  readonly shards: number;
  readonly ledger: Ledger;
  /** The slots whose holders have lately renewed. The others are granted nothing. */
  readonly alive: ReadonlySet<number>;
  /** The slots whose holders an operator keeps out. */
  readonly drained: ReadonlySet<number>;
  /** By the numbers of shards: the slots that operators want them in. */
  readonly pins?: ReadonlyMap<number, number>;
  /** How many shards may be asked for at a time, besides those that are overdue. */
  readonly maxMoving: number;
  /** Shards that were asked for long ago. Their work does not settle. */
  readonly overdue: ReadonlySet<number>;
  /** False: processes come and go, so shards that have an owner stay where they are. */
  readonly mayMove: boolean;
  /** True: an entry may have been lost. A shard that stands nowhere is not granted yet. */
  readonly doubts: boolean;
  /** No token is this one or lower. */
  readonly tokenFloor: bigint;
  /** Shards that a holder gave up without being asked, with its slot. Another one has them, if it can. */
  readonly avoided?: ReadonlyMap<number, number>;
  /** Shards that were given up so just now. They are not granted yet. */
  readonly resting?: ReadonlySet<number>;
}

/** By the numbers of the slots: the state that is to replace the one that was seen. */
export type Writes = ReadonlyMap<number, SlotState>;

/** @returns `outranked` when another coordinator has a higher seal: begin again, or leave */
export function plan(situation: Situation): Writes | 'outranked' {
  const { ledger, seal, slots } = situation;
  for (const { seen } of ledger.values()) if (isOutranked(seal, seen.seal)) return 'outranked';
  if (!isSealed(ledger, seal, slots)) return sealing(situation);
  const standings = standingsIn(ledger, situation.shards);
  const wanted = wantedSlots(situation);
  const token = nextTokenIn(ledger, situation.tokenFloor);
  const grants = grantsIn(situation, standings, wanted, token);
  const { asked, kept } = asksIn(situation, wanted);
  const writes = new Map<number, SlotState>();
  for (const [number, { seen, sent }] of ledger) {
    // One write at a time: the next one needs to know what became of it.
    if (sent.length > 0) continue;
    let next = forgotten(seen, elsewhere(ledger, number));
    next = askedNoMore(askedFor(next, asked), kept);
    const own = grants.get(number);
    if (own !== undefined) next = granted(next, own);
    if (next !== seen) writes.set(number, next);
  }
  return writes;
}

function sealing({ ledger, seal, slots }: Situation): Writes {
  const writes = new Map<number, SlotState>();
  for (const [number, { seen, sent }] of ledger) {
    if (sent.length > 0 || sameSeal(seen.seal, seal)) continue;
    writes.set(number, sealed(seen, seal, slots));
  }
  return writes;
}

/** For each shard the slot that is to have it, or `nobody`. */
function wantedSlots(situation: Situation): Int32Array {
  const { ledger, alive, drained, shards, avoided } = situation;
  const pins = new Int32Array(shards).fill(nobody);
  const members: Member[] = [];
  const numbers: number[] = [];
  const owners = new Int32Array(shards).fill(nobody);
  const tokens = new BigUint64Array(shards);
  for (const [number, { seen }] of ledger) {
    const { presence, entries } = seen;
    const isHere = presence.joined && alive.has(number);
    const isOut = !isHere || presence.leaving || drained.has(number);
    const { weight, zone } = presence;
    const index = members.push({ id: `${number}`, weight, zone, drained: isOut }) - 1;
    numbers.push(number);
    for (const entry of entries) {
      if (!isLive(entry)) continue;
      owners[entry.shard] = index;
      tokens[entry.shard] = entry.token;
    }
  }
  const indexes = new Map(numbers.map((number, index) => [number, index]));
  for (const [shard, number] of situation.pins ?? []) pins[shard] = indexes.get(number) ?? nobody;
  const wanted = assign(members, { owners, tokens, pins });
  for (const [shard, number] of avoided ?? []) {
    const index = wanted[shard] ?? nobody;
    if (numbers[index] !== number) continue;
    const owner = owners[shard] ?? nobody;
    // Its owner keeps it for now, or balance would take it back at once.
    const isKept = owner !== nobody && members[owner]?.drained !== true;
    const other = isKept ? owner : emptiest(members, wanted, index);
    if (other !== nobody) wanted[shard] = other;
  }
  return wanted.map((index) => numbers[index] ?? nobody);
}

/** The member with the fewest wanted shards for its weight, but not this one. */
function emptiest(members: readonly Member[], wanted: Int32Array, but: number): number {
  const counts = new Int32Array(members.length);
  for (const index of wanted) if (index !== nobody) counts[index] = (counts[index] ?? 0) + 1;
  let best = nobody;
  let least = Number.POSITIVE_INFINITY;
  for (const [index, { weight, drained }] of members.entries()) {
    const load = (counts[index] ?? 0) / weight;
    if (index === but || drained === true || load >= least) continue;
    [best, least] = [index, load];
  }
  return best;
}

function grantsIn(
  { ledger, doubts, resting }: Situation,
  standings: readonly Standing[],
  wanted: Int32Array,
  token: bigint,
): ReadonlyMap<number, readonly Grant[]> {
  const grants = new Map<number, Grant[]>();
  for (const [shard, standing] of standings.entries()) {
    const number = wanted[shard] ?? nobody;
    if (number === nobody || standing.kind === 'owned') continue;
    if (standing.kind === 'unknown' && doubts) continue;
    if (resting?.has(shard) === true) continue;
    // That slot waits for an answer first.
    if (ledger.get(number)?.sent.length !== 0) continue;
    const unfenced: readonly Unfenced[] = standing.kind === 'free' ? standing.unfenced : [];
    const own = grants.get(number) ?? [];
    own.push({ shard, token, unfenced });
    grants.set(number, own);
  }
  return grants;
}

/** The shards to ask for, and those that may stay after all. A holder that is silent is not asked. */
function asksIn(
  { ledger, alive, mayMove, maxMoving, overdue }: Situation,
  wanted: Int32Array,
): { readonly asked: ReadonlySet<number>; readonly kept: ReadonlySet<number> } {
  const kept = new Set<number>();
  const movable: number[] = [];
  let moving = 0;
  for (const [number, { seen }] of ledger) {
    if (!alive.has(number)) continue;
    for (const { shard, state } of seen.entries) {
      const stays = wanted[shard] === number;
      if (state === 'owned' && !stays) movable.push(shard);
      if (state === 'asked' && stays) kept.add(shard);
      if (state === 'asked' && !stays && !overdue.has(shard)) moving += 1;
    }
  }
  const room = mayMove ? Math.max(0, maxMoving - moving) : 0;
  return { asked: new Set(movable.slice(0, room)), kept };
}

/** The shards that stand in another slot with a higher token, for certain. */
function elsewhere(ledger: Ledger, number: number): ReadonlySet<number> {
  const found = new Set<number>();
  const own = ledger.get(number)?.seen.entries ?? [];
  const left = new Map(own.filter((entry) => !isLive(entry)).map((entry) => [entry.shard, entry]));
  if (left.size === 0) return found;
  for (const [other, { seen }] of ledger) {
    if (other === number) continue;
    for (const { shard, token } of seen.entries) {
      const entry = left.get(shard);
      if (entry !== undefined && token > entry.token) found.add(shard);
    }
  }
  return found;
}
