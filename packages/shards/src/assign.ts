/**
 * Which member is to own which shard: balanced to within one, with the fewest moves that a balanced
 * assignment needs. A pure function. Safety does not depend on it: docs/design/shards.md.
 *
 * It is Kafka's sticky assignor (KIP-54), for members that may all own every shard. Then only the
 * number of shards of each member decides how many move, and counting finds the optimum. The numbers
 * follow the quota rule of apportionment (Balinski and Young, "Fair Representation"): a member gets
 * its exact share, rounded down or up.
 */
import { InvalidOptionError } from 'incumbent';
import { describeValue } from 'incumbent/internal';

/** No member owns the shard. */
export const nobody = -1;

export const largestWeight = 1_000;
export const mostShards = 100_000;

/** A process that can own shards. */
export interface Member {
  /** No other member has it. */
  readonly id: string;
  /** How much of the shards it takes beside the others: a whole number from 1 to 1,000. */
  readonly weight: number;
  /** Members of one zone may fail together. Left out: all of these are one zone. */
  readonly zone?: string | undefined;
  /** True: it is to own nothing. */
  readonly drained?: boolean | undefined;
}

/** The present owners of all shards. A shard is known by its number, from 0. */
export interface Ownership {
  /** For each shard the index of its owner in `members`, or `nobody`. */
  readonly owners: Int32Array;
  /** For each shard the token of its present term. Those with the highest are given away first. */
  readonly tokens: BigUint64Array;
  /**
   * For each shard the index of the member that an operator has pinned it to, or `nobody`. The pin to
   * a drained member sleeps. Default: no shard is pinned.
   */
  readonly pins?: Int32Array;
}

/** A member with its share of the shards. */
interface Share {
  readonly index: number;
  readonly member: Member;
  /** The shards that are pinned to it, whether it owns them or not. */
  readonly pinned: number[];
  /** The others that it owns, but for those that are pinned to another member. */
  readonly owned: number[];
  /** The exact share, rounded down. */
  least: number;
  /** The rest of the exact share, as a numerator: the weights of all members divide it. */
  rest: number;
  /** How many shards it is to own. */
  target: number;
}

/**
 * The wanted owner of each shard. It depends on the ids of the members, and not on their order.
 *
 * A member gets `shards × weight / sum of weights`, rounded down or up. The members of one zone get
 * the sum of their shares, rounded down or up. Among all assignments that satisfy this, none moves
 * fewer shards. When all members are drained, every shard is wanted by nobody.
 *
 * A pinned shard goes to its member, and counts as a part of its share. A member with more pinned
 * shards than its share owns these alone. The other members share the rest in the same way.
 * @throws InvalidOptionError
 */
export function assign(members: readonly Member[], ownership: Ownership): Int32Array {
  checkMembers(members);
  checkOwnership(members.length, ownership);
  const wanted = new Int32Array(ownership.owners.length).fill(nobody);
  const shares = sharesOf(members, ownership);
  if (shares.length === 0) return wanted;
  setTargets(...sharing(shares, wanted.length));
  for (const share of shares) keepOldest(share, ownership.tokens, wanted);
  dealOut(shares, wanted);
  return wanted;
}

/** @throws InvalidOptionError naming the member, the rule and the value */
export function checkMembers(members: readonly Member[]): void {
  const ids = new Set<string>();
  for (const { id, weight } of members) {
    if (ids.has(id)) throw new InvalidOptionError(`two members have the id "${id}"`);
    ids.add(id);
    if (!Number.isInteger(weight) || weight < 1 || weight > largestWeight) {
      throw new InvalidOptionError(
        `the weight of member "${id}" must be a whole number from 1 to ${largestWeight}, ` +
          `not ${describeValue(weight)}: drain a member that is to own nothing`,
      );
    }
  }
}

function checkOwnership(members: number, { owners, tokens, pins }: Ownership): void {
  if (owners.length < 1 || owners.length > mostShards) {
    throw new InvalidOptionError(`there must be 1 to ${mostShards} shards, not ${owners.length}`);
  }
  if (tokens.length !== owners.length) {
    throw new InvalidOptionError(
      `there are ${owners.length} owners and ${tokens.length} tokens: each shard has one of both`,
    );
  }
  if (pins !== undefined && pins.length !== owners.length) {
    throw new InvalidOptionError(
      `there are ${owners.length} owners and ${pins.length} pins: each shard has one of both`,
    );
  }
  for (const [what, indexes] of [
    ['has the owner', owners],
    ['is pinned to', pins ?? owners],
  ] as const) {
    const shard = indexes.findIndex((index) => index < nobody || index >= members);
    if (shard < 0) continue;
    throw new InvalidOptionError(
      `shard ${shard} ${what} ${indexes[shard]}, and there are ${members} members`,
    );
  }
}

/** The members that are not drained, by their ids. */
function sharesOf(members: readonly Member[], { owners, pins }: Ownership): readonly Share[] {
  const active = [...members.entries()]
    .filter(([, { drained }]) => drained !== true)
    .sort(([, a], [, b]) => byText(a.id, b.id));
  const shares = active.map(
    ([index, member]): Share => ({
      ...{ index, member, pinned: [], owned: [] },
      ...{ least: 0, rest: 0, target: 0 },
    }),
  );
  const byIndex = new Map(shares.map((share) => [share.index, share]));
  for (const [shard, owner] of owners.entries()) {
    const pin = byIndex.get(pins?.[shard] ?? nobody);
    if (pin === undefined) byIndex.get(owner)?.owned.push(shard);
    else pin.pinned.push(shard);
  }
  return shares;
}

/**
 * Sets the exact shares. A member with more pinned shards than its share gets these, and takes no part
 * in the sharing of the rest. That makes the shares of the others smaller, so they are looked at again.
 * @returns the members that share, and how many shards they share
 */
function sharing(all: readonly Share[], shards: number): readonly [readonly Share[], number] {
  let shares = all;
  let left = shards;
  for (;;) {
    // Whole numbers below 2^53: no rounding makes the order of the members count.
    const weights = sumOf(shares, ({ member }) => member.weight);
    for (const share of shares) {
      const exact = left * share.member.weight;
      share.least = Math.floor(exact / weights);
      share.rest = exact % weights;
      share.target = share.least;
    }
    const full = new Set(shares.filter(({ pinned, least }) => pinned.length > least));
    if (full.size === 0) return [shares, left];
    for (const share of full) share.target = share.pinned.length;
    left -= sumOf([...full], ({ pinned }) => pinned.length);
    shares = shares.filter((share) => !full.has(share));
  }
}

function sumOf(shares: readonly Share[], amountOf: (share: Share) => number): number {
  return shares.reduce((sum, share) => sum + amountOf(share), 0);
}

/**
 * Rounds shares up until all shards have an owner. A member that owns more than its share saves a
 * move by it. Zones are rounded first, and each of them then chooses its members.
 */
function setTargets(shares: readonly Share[], shards: number): void {
  const weights = sumOf(shares, ({ member }) => member.weight);
  let left = shards - sumOf(shares, ({ least }) => least);
  const zones = [...byZone(shares)].map(([zone, all]) => {
    const rest = sumOf(all, (share) => share.rest);
    const ranked = all.filter((share) => share.rest > 0).sort(byGain);
    return { zone, ranked, least: Math.floor(rest / weights), rest: rest % weights };
  });
  for (const { ranked, least } of zones) {
    for (const share of ranked.slice(0, least)) share.target += 1;
    left -= least;
  }
  const next = zones.flatMap(({ zone, ranked, least, rest }) => {
    const share = ranked[least];
    return rest > 0 && share !== undefined ? [{ zone, share, rest }] : [];
  });
  next.sort(
    (a, b) =>
      Number(hasTooMany(b.share)) - Number(hasTooMany(a.share)) ||
      b.rest - a.rest ||
      byText(a.zone, b.zone),
  );
  for (const { share } of next.slice(0, left)) share.target += 1;
}

function byZone(shares: readonly Share[]): ReadonlyMap<string, Share[]> {
  const zones = new Map<string, Share[]>();
  for (const share of shares) {
    const { zone = '' } = share.member;
    const all = zones.get(zone);
    if (all === undefined) zones.set(zone, [share]);
    else all.push(share);
  }
  return zones;
}

/** The order in which the shares of one zone are rounded up. */
function byGain(a: Share, b: Share): number {
  return (
    Number(hasTooMany(b)) - Number(hasTooMany(a)) ||
    b.rest - a.rest ||
    byText(a.member.id, b.member.id)
  );
}

function hasTooMany({ pinned, owned, least }: Share): boolean {
  return pinned.length + owned.length > least;
}

/**
 * Last in, first out. After a drain, the successor of the drained process gets the same shards: they
 * were granted last. So a rolling restart moves each of them twice, and no other.
 */
function keepOldest(
  { index, pinned, owned, target }: Share,
  tokens: BigUint64Array,
  wanted: Int32Array,
): void {
  const room = target - pinned.length;
  if (owned.length > room) owned.sort((a, b) => byToken(tokens, a, b) || a - b);
  owned.length = Math.min(owned.length, room);
  for (const shard of [...pinned, ...owned]) wanted[shard] = index;
}

/** In turn. So neighbours, and the shards of a member that died, go to many. */
function dealOut(shares: readonly Share[], wanted: Int32Array): void {
  let takers = shares.map(({ index, pinned, owned, target }) => ({
    index,
    missing: target - pinned.length - owned.length,
  }));
  let turn = takers.length;
  for (const [shard, owner] of wanted.entries()) {
    if (owner !== nobody) continue;
    if (turn >= takers.length) {
      takers = takers.filter(({ missing }) => missing > 0);
      turn = 0;
    }
    const taker = takers[turn];
    if (taker === undefined) return;
    taker.missing -= 1;
    wanted[shard] = taker.index;
    turn += 1;
  }
}

function byToken(tokens: BigUint64Array, a: number, b: number): number {
  const [first = 0n, second = 0n] = [tokens[a], tokens[b]];
  return first < second ? -1 : first > second ? 1 : 0;
}

/** By code units: the same on every machine, whatever its locale. */
function byText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
