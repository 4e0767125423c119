import fc from 'fast-check';
import { InvalidOptionError } from 'incumbent';
import { describe, expect, it } from 'vitest';
import type { Member, Ownership } from '../src/assign.ts';
import { assign, nobody } from '../src/assign.ts';

function ownership(
  owners: readonly number[],
  tokens: readonly number[] = [],
  pins?: readonly number[],
): Ownership {
  return {
    owners: Int32Array.from(owners),
    tokens: BigUint64Array.from(owners, (_owner, shard) => BigInt(tokens[shard] ?? 0)),
    ...(pins !== undefined && { pins: Int32Array.from(pins) }),
  };
}

const unowned = (shards: number) => ownership(new Array<number>(shards).fill(nobody));
const members = (count: number): Member[] =>
  Array.from({ length: count }, (_none, i) => ({ id: `m${i}`, weight: 1 }));
const countOf = (owners: Iterable<number>, index: number) =>
  [...owners].filter((owner) => owner === index).length;
const movesFrom = (before: ArrayLike<number>, after: ArrayLike<number>) =>
  Array.from(before).filter((owner, shard) => owner !== nobody && owner !== after[shard]).length;

/** Group totals must be the exact share, rounded down or up. In whole numbers. */
function isShare(count: number, weight: number, weights: number, shards: number): boolean {
  const exact = shards * weight;
  return count * weights > exact - weights && count * weights < exact + weights;
}

const weightOf = (all: readonly (readonly [number, Member])[]) =>
  all.reduce((sum, [, { weight }]) => sum + weight, 0);

/**
 * The members with more pins than their share of what the others leave. There is one such set, and it
 * is found among all sets.
 */
function overPinned(all: readonly Member[], pins: ArrayLike<number>): ReadonlySet<number> {
  const active = [...all.entries()].filter(([, { drained }]) => drained !== true);
  const pinnedTo = (index: number) => countOf(Array.from(pins), index);
  for (let code = 0; code < 2 ** active.length; code += 1) {
    const full = active.filter((_one, i) => ((code >> i) & 1) === 1);
    const rest = active.filter((one) => !full.includes(one));
    const left = pins.length - full.reduce((sum, [index]) => sum + pinnedTo(index), 0);
    const isOver = ([index, { weight }]: readonly [number, Member]) =>
      pinnedTo(index) * weightOf(rest) > left * weight;
    if (full.every(isOver) && !rest.some(isOver)) return new Set(full.map(([index]) => index));
  }
  throw new Error('there is no such set');
}

/** The definition that the page of the design gives. Says nothing of how it is reached. */
function isBalanced(
  all: readonly Member[],
  wanted: ArrayLike<number>,
  pins: ArrayLike<number> = new Int32Array(wanted.length).fill(nobody),
  full: ReadonlySet<number> = overPinned(all, pins),
): boolean {
  const isHere = (index: number) => index !== nobody && all[index]?.drained !== true;
  const everywhere = [...all.entries()].filter(([index]) => isHere(index));
  if (everywhere.length === 0) return Array.from(wanted).every((owner) => owner === nobody);
  if (!Array.from(wanted).every(isHere)) return false;
  if (Array.from(pins).some((pin, shard) => isHere(pin) && wanted[shard] !== pin)) return false;
  const isOfFull = (owner: number, shard: number) => full.has(owner) && pins[shard] !== owner;
  if (Array.from(wanted).some(isOfFull)) return false;
  const owners = Array.from(wanted).filter((owner) => !full.has(owner));
  const active = everywhere.filter(([index]) => !full.has(index));
  const weights = weightOf(active);
  const groups = [
    ...active.map((one) => [one]),
    ...[...new Set(active.map(([, { zone }]) => zone))].map((zone) =>
      active.filter(([, member]) => member.zone === zone),
    ),
  ];
  return groups.every((group) => {
    const count = owners.filter((owner) => group.some(([index]) => index === owner)).length;
    return isShare(count, weightOf(group), weights, owners.length);
  });
}

/** Every assignment of so many shards to so many members. */
function* everyAssignment(shards: number, count: number): Generator<number[]> {
  for (let code = 0; code < count ** shards; code += 1) {
    yield Array.from(
      { length: shards },
      (_none, shard) => Math.floor(code / count ** shard) % count,
    );
  }
}

function fewestMoves(
  all: readonly Member[],
  { owners: before, pins = new Int32Array(before.length).fill(nobody) }: Ownership,
): number {
  let fewest = Number.POSITIVE_INFINITY;
  const full = overPinned(all, pins);
  for (const candidate of everyAssignment(before.length, all.length)) {
    if (!isBalanced(all, candidate, pins, full)) continue;
    fewest = Math.min(fewest, movesFrom(before, candidate));
  }
  return fewest;
}

const someMember = fc.record({
  weight: fc.oneof(
    fc.constant(1),
    fc.integer({ min: 1, max: 4 }),
    fc.integer({ min: 1, max: 1000 }),
  ),
  zone: fc.constantFrom(undefined, 'a', 'b'),
  drained: fc.oneof({ weight: 4, arbitrary: fc.constant(false) }, fc.boolean()),
});

const situation = (mostMembers: number, mostShards: number) =>
  fc
    .array(someMember, { minLength: 1, maxLength: mostMembers })
    .map((all) => all.map((member, i): Member => ({ id: `m${i}`, ...member })))
    .chain((all) =>
      fc
        .array(
          fc.record({
            owner: fc.integer({ min: nobody, max: all.length - 1 }),
            token: fc.integer({ min: 0, max: 5 }),
            pin: fc.oneof(fc.constant(nobody), fc.integer({ min: nobody, max: all.length - 1 })),
          }),
          { minLength: 1, maxLength: mostShards },
        )
        .map((shards) => ({
          all,
          before: ownership(
            shards.map(({ owner }) => owner),
            shards.map(({ token }) => token),
          ),
          pins: Int32Array.from(shards, ({ pin }) => pin),
        })),
    );

describe('an assignment', () => {
  it('gives members and zones their share, rounded down or up, whatever stood before', () => {
    fc.assert(
      fc.property(situation(12, 80), ({ all, before }) => {
        expect(isBalanced(all, assign(all, before))).toBe(true);
      }),
      { numRuns: 1_000 },
    );
  });

  it('leaves members of one weight within one shard of each other', () => {
    fc.assert(
      fc.property(situation(12, 80), ({ all, before }) => {
        const equal = all.map((member) => ({ ...member, weight: 7, drained: false }));
        const wanted = assign(equal, before);
        const counts = equal.map((_member, index) => countOf(wanted, index));
        expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
      }),
    );
  });

  it('moves as few shards as any balanced assignment must', () => {
    fc.assert(
      fc.property(situation(4, 5), ({ all, before }) => {
        fc.pre(all.some(({ drained }) => drained !== true));
        const wanted = assign(all, before);
        expect(movesFrom(before.owners, wanted)).toBe(fewestMoves(all, before));
      }),
      { numRuns: 1_500 },
    );
  });

  it('moves nothing when it is asked again', () => {
    fc.assert(
      fc.property(situation(12, 80), ({ all, before }) => {
        const wanted = assign(all, before);
        expect(assign(all, { owners: wanted, tokens: before.tokens })).toEqual(wanted);
      }),
    );
  });

  it('is the same in whatever order the members come', () => {
    const shuffled = situation(12, 80).chain(({ all, before }) =>
      fc
        .shuffledSubarray([...all.keys()], { minLength: all.length, maxLength: all.length })
        .map((order) => ({ all, before, order })),
    );
    fc.assert(
      fc.property(shuffled, ({ all, before, order }) => {
        const wanted = assign(all, before);
        const other = order.map((index) => all[index] as Member);
        const here = (owner: number) => (owner === nobody ? nobody : order.indexOf(owner));
        const owners = before.owners.map(here);
        expect(assign(other, { owners, tokens: before.tokens })).toEqual(wanted.map(here));
      }),
    );
  });

  it('moves S/N shards when one of N members joins, and the share of one that leaves', () => {
    const four = members(4);
    const three = assign(members(3), unowned(256));
    const joined = assign(four, { owners: three, tokens: new BigUint64Array(256) });
    expect(movesFrom(three, joined)).toBe(64);
    const left = four.map((member, i) => ({ ...member, drained: i === 2 }));
    const after = assign(left, { owners: joined, tokens: new BigUint64Array(256) });
    expect(movesFrom(joined, after)).toBe(64);
    // To all others, and not to one.
    const gained = [0, 1, 3].map((index) => countOf(after, index) - countOf(joined, index));
    expect(gained.sort()).toEqual([21, 21, 22]);
  });

  it('gives away the shards that were granted last', () => {
    const two = members(2);
    const before = ownership([0, 0, 0, 0, 0, 0], [9, 1, 8, 2, 3, 7]);
    expect([...assign(two, before)]).toEqual([1, 0, 1, 0, 0, 1]);
  });

  it('deals neighbours to different members', () => {
    expect([...assign(members(3), unowned(6))]).toEqual([0, 1, 2, 0, 1, 2]);
  });

  it('wants nobody for every shard when all members are drained, or none is there', () => {
    const drained = members(2).map((member) => ({ ...member, drained: true }));
    expect([...assign(drained, ownership([0, 1, 0]))]).toEqual([nobody, nobody, nobody]);
    expect([...assign([], unowned(2))]).toEqual([nobody, nobody]);
  });

  it('assigns 100,000 shards to 1,000 members, and the loss of a member moves its share', () => {
    const all = members(1_000).map((member, i) => ({
      ...member,
      weight: 1 + (i % 3),
      zone: `${i % 5}`,
    }));
    const tokens = new BigUint64Array(100_000);
    const wanted = assign(all, { owners: unowned(100_000).owners, tokens });
    expect(isShare(countOf(wanted, 7), 2, 1_999, 100_000)).toBe(true);
    const lost = all.map((member, i) => ({ ...member, drained: i === 7 }));
    const after = assign(lost, { owners: wanted, tokens });
    expect(movesFrom(wanted, after)).toBe(countOf(wanted, 7));
  });
});

describe('an assignment with pins', () => {
  it('gives each pinned shard to its member, and shares the rest evenly', () => {
    fc.assert(
      fc.property(situation(8, 60), ({ all, before, pins }) => {
        expect(isBalanced(all, assign(all, { ...before, pins }), pins)).toBe(true);
      }),
      { numRuns: 1_000 },
    );
  });

  it('moves as few shards as any such assignment must', () => {
    fc.assert(
      fc.property(situation(4, 5), ({ all, before, pins }) => {
        fc.pre(all.some(({ drained }) => drained !== true));
        const wanted = assign(all, { ...before, pins });
        expect(movesFrom(before.owners, wanted)).toBe(fewestMoves(all, { ...before, pins }));
      }),
      { numRuns: 1_500 },
    );
  });

  it('moves nothing when it is asked again', () => {
    fc.assert(
      fc.property(situation(12, 80), ({ all, before: { owners, tokens }, pins }) => {
        const wanted = assign(all, { owners, tokens, pins });
        expect(assign(all, { owners: wanted, tokens, pins })).toEqual(wanted);
      }),
    );
  });

  it('is the same as without them while all their members are drained', () => {
    fc.assert(
      fc.property(situation(12, 80), ({ all, before, pins }) => {
        const drained = all.map((member, i) => ({
          ...member,
          drained: member.drained === true || pins.includes(i),
        }));
        expect(assign(drained, { ...before, pins })).toEqual(assign(drained, before));
      }),
    );
  });

  it('counts a pinned shard as a part of the share', () => {
    const all = members(2);
    const wanted = assign(all, ownership([0, 0, 1, 1], [], [1, nobody, nobody, nobody]));
    expect([...wanted]).toEqual([1, 0, 1, 0]);
    // Three of four are more than its share: it owns these alone.
    expect([...assign(all, ownership([0, 0, 1, 1], [], [1, 1, nobody, 1]))]).toEqual([1, 1, 0, 1]);
  });
});

/** Plays a rolling restart of all members, and counts how often each shard moves. */
function rollingRestart(shards: number, count: number, beginsFirst: boolean): Int32Array {
  let all: Member[] = members(count);
  let state = { owners: assign(all, unowned(shards)), tokens: new BigUint64Array(shards).fill(1n) };
  const moves = new Int32Array(shards);
  let token = 1n;
  const settle = () => {
    const wanted = assign(all, state);
    token += 1n;
    const tokens = state.tokens.map((before, shard) =>
      wanted[shard] === state.owners[shard] ? before : token,
    );
    for (const [shard, owner] of wanted.entries()) {
      if (owner !== state.owners[shard]) moves[shard] = (moves[shard] ?? 0) + 1;
    }
    state = { owners: wanted, tokens };
  };
  for (let i = 0; i < count; i += 1) {
    all = all.map((member, index) => (index === i ? { ...member, drained: true } : member));
    if (!beginsFirst) settle();
    // The ids of pods say nothing of their predecessors.
    all = [...all, { id: `${(i * 7) % 10}-new-${i}`, weight: 1 }];
    settle();
  }
  return moves;
}

describe('a rolling restart', () => {
  it('moves each shard twice, where the members share them evenly', () => {
    for (const [shards, count] of [
      [256, 4],
      [60, 5],
      [1_000, 10],
    ] as const) {
      expect(new Set(rollingRestart(shards, count, false))).toEqual(new Set([2]));
    }
  });

  it('moves each shard once when the successor is there before the first move', () => {
    for (const [shards, count] of [
      [256, 4],
      [60, 5],
      [1_000, 10],
    ] as const) {
      expect(new Set(rollingRestart(shards, count, true))).toEqual(new Set([1]));
    }
  });

  it('moves few shards three times, where the members do not', () => {
    for (const [shards, count] of [
      [257, 4],
      [1_000, 7],
      [64, 5],
    ] as const) {
      const moves = rollingRestart(shards, count, false);
      expect(Math.max(...moves)).toBeLessThanOrEqual(3);
      expect(moves.filter((each) => each > 2).length).toBeLessThan(count);
    }
  });
});

describe('bad input', () => {
  it('is refused with the value, the rule and the way out', () => {
    const one: Member = { id: 'a', weight: 1 };
    for (const [all, before, text] of [
      [
        [{ ...one, weight: 0 }],
        unowned(1),
        'weight of member "a" must be a whole number from 1 to 1000, not 0',
      ],
      [[{ ...one, weight: -1 }], unowned(1), 'not -1: drain'],
      [[{ ...one, weight: 1.5 }], unowned(1), 'not 1.5'],
      [[{ ...one, weight: 1_001 }], unowned(1), 'not 1001'],
      [[one, one], unowned(1), 'two members have the id "a"'],
      [[one], unowned(0), 'there must be 1 to 100000 shards, not 0'],
      [[one], unowned(1_000_000), 'not 1000000'],
      [[one], ownership([1]), 'shard 0 has the owner 1, and there are 1 members'],
      [[one], ownership([0], [], [1]), 'shard 0 is pinned to 1, and there are 1 members'],
      [[one], ownership([0], [], []), '1 owners and 0 pins'],
      [[one], { ...unowned(2), tokens: new BigUint64Array(1) }, '2 owners and 1 tokens'],
    ] as const) {
      expect(() => assign(all, before)).toThrow(InvalidOptionError);
      expect(() => assign(all, before)).toThrow(text);
    }
  });
});
