/**
 * The record of a slot, as far as shards are concerned, and every change of it, as pure functions. A
 * slot is a numbered lease. One process holds it for one stay, and owns the shards in it. The rules
 * are in docs/design/shards.md.
 *
 * The caller decides when a change may be written. Each change counts only when it replaced the very
 * version that it was made from.
 */
import { ElectionError } from 'incumbent';
import { unfencedLimit } from 'incumbent/internal';

/**
 * - `owned`: the holder of the slot owns the shard.
 * - `asked`: the same, and the coordinator has asked for it back.
 * - `clean`: the holder has given the shard up, and its work had settled before.
 * - `unclean`: the stay is over, and its holder never said that the work has ended.
 */
export type EntryState = 'owned' | 'asked' | 'clean' | 'unclean';

/** An owner that may do harm still. The next owner has to fence it before its work begins. */
export interface Unfenced {
  /** The id of the process. */
  readonly id: string;
  /** The token of its term for this shard. */
  readonly token: bigint;
}

/** A shard in a slot. */
export interface Entry {
  /** Its number. It means this shard for ever. */
  readonly shard: number;
  /** Higher than that of every earlier term of this shard. */
  readonly token: bigint;
  readonly state: EntryState;
  readonly unfenced: readonly Unfenced[];
  /** The owner's work is prepared. It counts where the owner says so itself (`Presence.manual`). */
  readonly ready?: true;
}

/**
 * The mark of a coordinator. Marks have one order, so a mark is replaced by a higher one alone. That
 * is what makes it count: a coordinator need not look again whether its own still stands.
 */
export interface Seal {
  /** Higher than that of every mark that the coordinator has found. */
  readonly number: bigint;
  /** Two coordinators may draw the same number. */
  readonly nonce: string;
}

/** The shards that the processes of a set were given. */
export interface ShardList {
  readonly count: number;
  /** 0 for shards without names. Other digests are of lists with names. */
  readonly digest: bigint;
}

/** The account that a process gives of itself in its slot. */
export interface Presence {
  /** It knows that it holds the slot. Until then it is granted nothing. */
  readonly joined: boolean;
  /** It wants to own nothing any more. */
  readonly leaving: boolean;
  readonly weight: number;
  readonly zone: string;
  /** It tells for each shard when its work is prepared. Otherwise it is as soon as it begins. */
  readonly manual: boolean;
}

export interface SlotState {
  readonly seal: Seal;
  /** How many slots there are. They are never removed. */
  readonly slots: number;
  /** The one that its holder was given, or the last one. */
  readonly list: ShardList;
  /** Grows with every change of the entries. If it falls, the slot was set back. */
  readonly changes: bigint;
  /** The highest token that this slot was ever given. */
  readonly highest: bigint;
  readonly presence: Presence;
  /** By the numbers of the shards, each of them once. */
  readonly entries: readonly Entry[];
}

export const absent: Presence = {
  ...{ joined: false, leaving: false, weight: 1, zone: '', manual: false },
};

/** A new slot, which nobody has held. */
export function newSlot(seal: Seal, slots: number, list: ShardList): SlotState {
  return { seal, slots, list, changes: 0n, highest: 0n, presence: absent, entries: [] };
}

export function isLive({ state }: Pick<Entry, 'state'>): boolean {
  return state === 'owned' || state === 'asked';
}

/** The work for an entry that is live is prepared. */
export function isReady({ presence }: SlotState, { ready }: Entry): boolean {
  return ready === true || !presence.manual;
}

/** True when a coordinator with this mark may not write over the other one. */
export function isOutranked(own: Seal, other: Seal): boolean {
  return other.number > own.number || (other.number === own.number && other.nonce > own.nonce);
}

export function sameSeal(a: Seal, b: Seal): boolean {
  return a.number === b.number && a.nonce === b.nonce;
}

// --- by the coordinator ---

/** From here on, no write of an earlier coordinator lands in this slot. */
export function sealed(slot: SlotState, seal: Seal, slots: number): SlotState {
  require(!isOutranked(seal, slot.seal), `the slot has the higher seal ${slot.seal.number}`);
  return { ...slot, seal, slots };
}

/** A shard for the holder of the slot. */
export type Grant = Pick<Entry, 'shard' | 'token' | 'unfenced'>;

export function granted(slot: SlotState, grants: readonly Grant[]): SlotState {
  let { highest } = slot;
  const entries = new Map(slot.entries.map((entry) => [entry.shard, entry]));
  for (const { shard, token, unfenced } of grants) {
    const before = entries.get(shard);
    require(before === undefined || !isLive(before), `shard ${shard} is owned already`);
    require(token > slot.highest, `token ${token} is not above ${slot.highest}`);
    entries.set(shard, { shard, token, state: 'owned', unfenced });
    if (token > highest) highest = token;
  }
  return changed({ ...slot, highest }, [...entries.values()].sort(byShard));
}

/** Asks the holder for shards. Those that it does not own any more are left out. */
export function askedFor(slot: SlotState, shards: ReadonlySet<number>): SlotState {
  return turned(slot, ({ shard, state }) =>
    state === 'owned' && shards.has(shard) ? { state: 'asked' } : undefined,
  );
}

/** Takes that back. The holder may have begun to stop: then it goes on giving the shard up. */
export function askedNoMore(slot: SlotState, shards: ReadonlySet<number>): SlotState {
  return turned(slot, ({ shard, state }) =>
    state === 'asked' && shards.has(shard) ? { state: 'owned' } : undefined,
  );
}

/** Deletes entries that are left. Only once another slot has the shards. */
export function forgotten(slot: SlotState, shards: ReadonlySet<number>): SlotState {
  const entries = slot.entries.filter((entry) => isLive(entry) || !shards.has(entry.shard));
  return entries.length === slot.entries.length ? slot : changed(slot, entries);
}

/**
 * The stay ran out. May be written only where a candidate could take the lease: the holder cannot
 * believe any more.
 * @param id the holder's
 */
export function ranOut(slot: SlotState, id: string): SlotState {
  const entries = slot.entries.map((entry): Entry => {
    if (!isLive(entry)) return entry;
    const unfenced = [...entry.unfenced, { id, token: entry.token }].slice(-unfencedLimit);
    return { ...entry, state: 'unclean', unfenced };
  });
  return changed({ ...slot, presence: absent }, entries);
}

// --- by the holder ---

export function presented(slot: SlotState, presence: Presence, list: ShardList): SlotState {
  return { ...slot, presence, list };
}

/**
 * Gives shards up: for each its number and its token. The holder has ended its belief in them
 * before.
 */
export function givenUp(slot: SlotState, shards: ReadonlyMap<number, bigint>): SlotState {
  return turned(slot, (entry) =>
    isLive(entry) && shards.get(entry.shard) === entry.token ? { state: 'clean' } : undefined,
  );
}

/** The leaders before were fenced. */
export function fenced(slot: SlotState, shards: ReadonlyMap<number, bigint>): SlotState {
  return turned(slot, (entry) =>
    entry.unfenced.length > 0 && shards.get(entry.shard) === entry.token
      ? { unfenced: [] }
      : undefined,
  );
}

/** The work for these shards is prepared. */
export function readied(slot: SlotState, shards: ReadonlyMap<number, bigint>): SlotState {
  return turned(slot, (entry) =>
    isLive(entry) && entry.ready === undefined && shards.get(entry.shard) === entry.token
      ? { ready: true }
      : undefined,
  );
}

/** All work has settled, and the holder leaves. */
export function leftBehind(slot: SlotState): SlotState {
  const left = turned(slot, (entry) => (isLive(entry) ? { state: 'clean' } : undefined));
  return { ...left, presence: absent };
}

function turned(slot: SlotState, turn: (entry: Entry) => Partial<Entry> | undefined): SlotState {
  let isChanged = false;
  const entries = slot.entries.map((entry) => {
    const change = turn(entry);
    if (change === undefined) return entry;
    isChanged = true;
    return { ...entry, ...change };
  });
  return isChanged ? changed(slot, entries) : slot;
}

function changed(slot: SlotState, entries: readonly Entry[]): SlotState {
  return { ...slot, entries, changes: slot.changes + 1n };
}

function byShard(a: Entry, b: Entry): number {
  return a.shard - b.shard;
}

/** A fault of ours. It must not be written. */
function require(holds: boolean, why: string): asserts holds {
  if (!holds) throw new ElectionError('MISUSE', `a slot cannot be changed so: ${why}`);
}
