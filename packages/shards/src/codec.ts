/**
 * The shards of a slot, and the directory of all owners, in few bytes. The messages are protobuf. A
 * slot carries a few hundred bytes with every renewal. The directory takes one to four for
 * each shard.
 *
 * Numbers of shards that follow each other are close, and many shards have one token. So a slot lists
 * its shards by token, and each as the distance from the one before. The directory has two columns
 * with a fixed number of bits for each shard: which member owns it, and which token it has.
 */
import { RecordDamagedError, RecordTooNewError } from 'incumbent';
import type { Codec } from 'incumbent/internal';
import {
  bool,
  bytes,
  embedded,
  field,
  int32,
  MalformedMessageError,
  message,
  repeated,
  string,
  uint64,
} from 'incumbent/internal';
import { largestWeight, mostShards } from './assign.ts';
import type { Pins } from './pins.ts';
import type { RosterPart } from './roster.ts';
import { mostNumbers, namesInPart } from './roster.ts';
import type { Entry, EntryState, ShardList, SlotState, Unfenced } from './slot.ts';
import { isLive } from './slot.ts';

/** The newest format that this version reads, and the one that it writes. */
export const shardsFormat = 1;

// --- a slot ---

interface SlotMessage {
  readonly format: number;
  readonly sealNumber: bigint;
  readonly sealNonce: string;
  readonly slots: number;
  readonly count: number;
  readonly digest: bigint;
  readonly changes: bigint;
  readonly highest: bigint;
  readonly joined: boolean;
  readonly leaving: boolean;
  readonly weight: number;
  readonly zone: string;
  readonly manual: boolean;
  readonly groups: readonly GroupMessage[];
  readonly unfenced: readonly UnfencedMessage[];
}

/** Entries with one token and one state, all of them ready or none. */
interface GroupMessage {
  /** The distance from the group before. */
  readonly token: bigint;
  readonly state: number;
  /** Each is the distance from the one before. */
  readonly shards: readonly number[];
}

interface UnfencedMessage {
  readonly shard: number;
  readonly id: string;
  readonly token: bigint;
}

const groupCodec: Codec<GroupMessage> = message<GroupMessage>({
  token: field(1, uint64),
  state: field(2, int32),
  shards: repeated(3, int32),
});

const unfencedCodec: Codec<UnfencedMessage> = message<UnfencedMessage>({
  shard: field(1, int32),
  id: field(2, string),
  token: field(3, uint64),
});

const slotCodec: Codec<SlotMessage> = message<SlotMessage>({
  format: field(1, int32),
  sealNumber: field(2, uint64),
  sealNonce: field(3, string),
  slots: field(4, int32),
  count: field(5, int32),
  digest: field(6, uint64),
  changes: field(7, uint64),
  highest: field(8, uint64),
  joined: field(9, bool),
  leaving: field(10, bool),
  weight: field(11, int32),
  zone: field(12, string),
  groups: repeated(13, embedded(groupCodec)),
  unfenced: repeated(14, embedded(unfencedCodec)),
  manual: field(15, bool),
});

/** Their places are their numbers in the message. */
const states: readonly EntryState[] = ['owned', 'asked', 'clean', 'unclean'];
/** Added to the number of a live state: the work is ready. */
const readyOffset: number = states.length;

export function encodeSlot(slot: SlotState): Uint8Array {
  const { seal, slots, list, changes, highest, presence, entries } = slot;
  return slotCodec.encode({
    format: shardsFormat,
    sealNumber: seal.number,
    sealNonce: seal.nonce,
    ...{ slots, count: list.count, digest: list.digest, changes, highest },
    ...presence,
    groups: groupsOf(entries),
    unfenced: entries.flatMap(({ shard, unfenced }) =>
      unfenced.map(({ id, token }) => ({ shard, id, token })),
    ),
  });
}

/**
 * @param location the file, key or object, for the error
 * @throws RecordDamagedError, RecordTooNewError
 */
export function decodeSlot(source: Uint8Array, location: string): SlotState {
  const read = decoded(slotCodec, source, location);
  const { sealNumber, sealNonce, slots, count, digest, changes, highest } = read;
  const { joined, leaving, weight, zone, manual } = read;
  if (weight < 1 || weight > largestWeight) throw damaged(location, `weight ${weight}`);
  return {
    seal: { number: sealNumber, nonce: sealNonce },
    slots,
    list: { count, digest },
    ...{ changes, highest },
    presence: { joined, leaving, weight, zone, manual },
    entries: entriesOf(read, location),
  };
}

function groupsOf(entries: readonly Entry[]): readonly GroupMessage[] {
  const groups = new Map<string, Entry[]>();
  for (const entry of entries) {
    const key = `${entry.token} ${numberOf(entry)}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [entry]);
    else group.push(entry);
  }
  let before = 0n;
  return [...groups.values()].sort(byToken).map((group) => {
    const [entry] = group as [Entry, ...Entry[]];
    const distance = entry.token - before;
    before = entry.token;
    return { token: distance, state: numberOf(entry), shards: distancesOf(group) };
  });
}

function numberOf(entry: Entry): number {
  const number = states.indexOf(entry.state);
  return entry.ready === true && isLive(entry) ? number + readyOffset : number;
}

function byToken([a]: readonly Entry[], [b]: readonly Entry[]): number {
  const [first, second] = [a as Entry, b as Entry];
  if (first.token !== second.token) return first.token < second.token ? -1 : 1;
  return numberOf(first) - numberOf(second);
}

/** The first one is the distance from nothing. So no distance is 0, but perhaps the first. */
function distancesOf(entries: readonly Pick<Entry, 'shard'>[]): readonly number[] {
  return entries.map(({ shard }, i) => shard - (entries[i - 1]?.shard ?? 0));
}

/** One for all: a process may know many thousands of entries. */
const nobodyElse: readonly Unfenced[] = [];

function entriesOf({ groups, unfenced }: SlotMessage, location: string): readonly Entry[] {
  const toFence = new Map<number, Unfenced[]>();
  for (const { shard, id, token } of unfenced) {
    toFence.set(shard, [...(toFence.get(shard) ?? []), { id, token }]);
  }
  const entries = new Map<number, Entry>();
  let token = 0n;
  for (const group of groups) {
    token += group.token;
    const isReady = group.state >= readyOffset;
    const state = states[isReady ? group.state - readyOffset : group.state];
    if (state === undefined || (isReady && !isLive({ state }))) {
      throw damaged(location, `a state ${group.state}`);
    }
    let shard = 0;
    for (const distance of group.shards) {
      shard += distance;
      // It may be of a list before, which was longer.
      if (distance < 0 || shard >= mostNumbers || entries.has(shard)) {
        throw damaged(location, `shard ${shard}`);
      }
      const entry = { shard, token, state, unfenced: toFence.get(shard) ?? nobodyElse };
      entries.set(shard, isReady ? { ...entry, ready: true } : entry);
    }
  }
  return [...entries.values()].sort((a, b) => a.shard - b.shard);
}

// --- the record of the coordinator's election ---

/**
 * How many slots there are, which list their numbers refer to, and which tokens they may have, and the
 * requests of operators.
 */
export interface Head {
  readonly slots: number;
  readonly list: ShardList;
  /**
   * By slot: the highest token that it was given, or may have been given. Written before the slot is
   * given that token. So a slot that shows a lower one may have been set back.
   */
  readonly floors: ReadonlyMap<number, bigint>;
  /** No slot has a higher token, nor had one that was lost since. Never falls, as floors do. */
  readonly top: bigint;
  /** So many numbers were given to names, or are about to be. Written before a shard with one is granted. */
  readonly numbers: number;
  readonly pins: Pins;
}

interface HeadMessage {
  readonly format: number;
  readonly slots: number;
  readonly count: number;
  readonly digest: bigint;
  readonly top: bigint;
  /** By slot, from 1: the distance of its token from `top`, and 1. 0: it has none. */
  readonly behind: readonly bigint[];
  readonly numbers: number;
  readonly pins: readonly PinMessage[];
}

/** The shards that are pinned to one member. */
interface PinMessage {
  readonly id: string;
  /** Each is the distance from the one before. */
  readonly shards: readonly number[];
}

const pinCodec: Codec<PinMessage> = message<PinMessage>({
  id: field(1, string),
  shards: repeated(2, int32),
});

const headCodec: Codec<HeadMessage> = message<HeadMessage>({
  format: field(1, int32),
  slots: field(2, int32),
  count: field(3, int32),
  digest: field(4, uint64),
  top: field(5, uint64),
  behind: repeated(6, uint64),
  pins: repeated(7, embedded(pinCodec)),
  numbers: field(8, int32),
});

export function encodeHead({ slots, list, floors, top, numbers, pins }: Head): Uint8Array {
  const last = Math.max(0, ...floors.keys());
  const behind = Array.from({ length: last }, (_, i) => {
    const token = floors.get(i + 1);
    return token === undefined ? 0n : top - token + 1n;
  });
  return headCodec.encode({
    format: shardsFormat,
    ...{ slots, count: list.count, digest: list.digest, top, behind, numbers },
    pins: pinGroupsOf(pins),
  });
}

/** @throws RecordDamagedError, RecordTooNewError */
export function decodeHead(source: Uint8Array, location: string): Head {
  const read = decoded(headCodec, source, location);
  const { slots, count, digest, top, behind, numbers } = read;
  if (count < 1 || count > mostShards) throw damaged(location, `a count of ${count}`);
  if (slots < 0) throw damaged(location, `a number of ${slots} slots`);
  if (numbers < 0 || numbers > mostNumbers) throw damaged(location, `${numbers} numbers`);
  const floors = new Map<number, bigint>();
  for (const [i, distance] of behind.entries()) {
    if (distance > top + 1n) throw damaged(location, `a token of slot ${i + 1}`);
    if (distance > 0n) floors.set(i + 1, top - distance + 1n);
  }
  const pins = pinsOf(read.pins, location);
  return { slots, list: { count, digest }, floors, top, numbers, pins };
}

function pinGroupsOf(pins: Pins): readonly PinMessage[] {
  const groups = new Map<string, { readonly shard: number }[]>();
  for (const [shard, id] of [...pins].sort(([a], [b]) => a - b)) {
    groups.set(id, [...(groups.get(id) ?? []), { shard }]);
  }
  return [...groups].map(([id, shards]) => ({ id, shards: distancesOf(shards) }));
}

function pinsOf(groups: readonly PinMessage[], location: string): Pins {
  const pins = new Map<number, string>();
  for (const { id, shards } of groups) {
    let shard = 0;
    for (const distance of shards) {
      shard += distance;
      if (distance < 0 || shard >= mostNumbers || pins.has(shard)) {
        throw damaged(location, `a pin of shard ${shard}`);
      }
      pins.set(shard, id);
    }
  }
  return pins;
}

// --- the directory ---

/** A process that owns shards, for clients. */
export interface Owner {
  readonly slot: number;
  readonly id: string;
  readonly addresses: readonly string[];
}

/** A copy of who owns what. Nothing depends on it: a process asks its own term. */
export interface Directory {
  readonly list: ShardList;
  /** Differs when the names in the list do. 0 for shards without names. */
  readonly digest: bigint;
  /** The highest token when it was written: a directory with a higher one is newer. */
  readonly highest: bigint;
  readonly members: readonly Owner[];
  /** For each shard the index of its owner in `members`, or `nobody`. */
  readonly owners: Int32Array;
  /** For each shard the token of its owner. 0 without one. */
  readonly tokens: BigUint64Array;
  /** Shards whose owner is not ready yet. */
  readonly unready: ReadonlySet<number>;
}

interface DirectoryMessage {
  readonly format: number;
  readonly count: number;
  readonly digest: bigint;
  readonly highest: bigint;
  readonly members: readonly Owner[];
  /** The index of the owner and 1, for each shard. */
  readonly owners: Uint8Array;
  /** The different tokens, rising. Each is the distance from the one before. */
  readonly tokens: readonly bigint[];
  /** For each shard the index of its token. */
  readonly chosen: Uint8Array;
  /** How many numbers the columns have. */
  readonly size: number;
  readonly names: bigint;
  /** 1 for each shard whose owner is not ready. Empty: all are. */
  readonly unready: Uint8Array;
}

const ownerCodec: Codec<Owner> = message<Owner>({
  slot: field(1, int32),
  id: field(2, string),
  addresses: repeated(3, string),
});

const directoryCodec: Codec<DirectoryMessage> = message<DirectoryMessage>({
  format: field(1, int32),
  count: field(2, int32),
  digest: field(3, uint64),
  highest: field(4, uint64),
  members: repeated(5, embedded(ownerCodec)),
  owners: field(6, bytes),
  tokens: repeated(7, uint64),
  chosen: field(8, bytes),
  size: field(9, int32),
  names: field(10, uint64),
  unready: field(11, bytes),
});

export function encodeDirectory(directory: Directory): Uint8Array {
  const { list, digest, highest, members, owners, tokens, unready } = directory;
  const known = [...new Set(tokens)].sort((a, b) => (a < b ? -1 : 1));
  const indexes = new Map(known.map((token, index) => [token, index]));
  return directoryCodec.encode({
    format: shardsFormat,
    ...{ count: list.count, digest: list.digest, highest, members },
    owners: pack(
      Array.from(owners, (owner) => owner + 1),
      widthOf(members.length),
    ),
    tokens: known.map((token, i) => token - (known[i - 1] ?? 0n)),
    chosen: pack(
      Array.from(tokens, (token) => indexes.get(token) ?? 0),
      widthOf(known.length - 1),
    ),
    ...{ size: owners.length, names: digest },
    unready: pack(
      Array.from(owners, (_, shard) => Number(unready.has(shard))),
      unready.size > 0 ? 1 : 0,
    ),
  });
}

/** @throws RecordDamagedError, RecordTooNewError */
export function decodeDirectory(source: Uint8Array, location: string): Directory {
  const read = decoded(directoryCodec, source, location);
  const { count, digest, highest, members, size } = read;
  if (count < 1 || count > mostShards) throw damaged(location, `a count of ${count}`);
  if (size < 0 || size > mostNumbers) throw damaged(location, `a size of ${size}`);
  let before = 0n;
  const known = read.tokens.map((distance) => {
    before += distance;
    return before;
  });
  const owners = unpack(read.owners, widthOf(members.length), size, location);
  const chosen = unpack(read.chosen, widthOf(known.length - 1), size, location);
  const unready = unpack(read.unready, read.unready.length > 0 ? 1 : 0, size, location);
  if (owners.some((owner) => owner > members.length)) throw damaged(location, 'an owner');
  if (chosen.some((index) => index >= known.length)) throw damaged(location, 'a token');
  return {
    list: { count, digest },
    ...{ digest: read.names, highest, members },
    owners: owners.map((owner) => owner - 1),
    tokens: BigUint64Array.from(chosen, (index) => known[index] ?? 0n),
    unready: new Set([...unready.keys()].filter((shard) => unready[shard] === 1)),
  };
}

// --- the names ---

interface PartMessage {
  readonly format: number;
  readonly names: readonly string[];
  /** Each is the distance from the one before. */
  readonly retired: readonly number[];
}

const partCodec: Codec<PartMessage> = message<PartMessage>({
  format: field(1, int32),
  names: repeated(2, string),
  retired: repeated(3, int32),
});

export function encodePart({ names, retired }: RosterPart): Uint8Array {
  const places = [...retired].sort((a, b) => a - b);
  const distances = places.map((place, i) => place - (places[i - 1] ?? 0));
  return partCodec.encode({ format: shardsFormat, names, retired: distances });
}

/** @throws RecordDamagedError, RecordTooNewError */
export function decodePart(source: Uint8Array, location: string): RosterPart {
  const { names, retired } = decoded(partCodec, source, location);
  if (names.length > namesInPart) throw damaged(location, `a number of ${names.length} names`);
  let place = 0;
  const places = retired.map((distance) => {
    place += distance;
    if (distance < 0 || place >= names.length) throw damaged(location, `a retired name ${place}`);
    return place;
  });
  return { names, retired: new Set(places) };
}

// --- columns ---

/** How many bits hold the numbers from 0 to `largest`. */
export function widthOf(largest: number): number {
  return largest < 1 ? 0 : 32 - Math.clz32(largest);
}

/** Each number takes `width` bits, the lowest first. */
export function pack(values: readonly number[], width: number): Uint8Array {
  const packed = new Uint8Array(Math.ceil((values.length * width) / 8));
  for (const [i, value] of values.entries()) {
    for (let bit = 0; bit < width; bit += 1) {
      const at = i * width + bit;
      const byte = at >>> 3;
      packed[byte] = (packed[byte] ?? 0) | (((value >>> bit) & 1) << (at & 7));
    }
  }
  return packed;
}

function unpack(packed: Uint8Array, width: number, count: number, location: string): Int32Array {
  const values = new Int32Array(count);
  const expected = Math.ceil((count * width) / 8);
  if (packed.length !== expected) {
    throw damaged(location, `a column of ${packed.length} bytes instead of ${expected}`);
  }
  for (let i = 0; i < count; i += 1) {
    let value = 0;
    for (let bit = 0; bit < width; bit += 1) {
      const at = i * width + bit;
      value |= (((packed[at >>> 3] ?? 0) >>> (at & 7)) & 1) << bit;
    }
    values[i] = value;
  }
  return values;
}

function decoded<T extends { readonly format: number }>(
  codec: Codec<T>,
  source: Uint8Array,
  location: string,
): T {
  let read: T;
  try {
    read = codec.decode(source);
  } catch (error) {
    if (!(error instanceof MalformedMessageError)) throw error;
    throw new RecordDamagedError(location, error.message, { cause: error });
  }
  if (read.format > shardsFormat) throw new RecordTooNewError(location, read.format, shardsFormat);
  if (read.format !== shardsFormat) throw damaged(location, `format ${read.format}`);
  return read;
}

function damaged(location: string, what: string): RecordDamagedError {
  return new RecordDamagedError(location, `unexpected ${what}`);
}
