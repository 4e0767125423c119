import { nobody } from './assign.ts';
import type { Directory } from './codec.ts';
import type { Names } from './lists.ts';

/** The process that owns a shard. */
export interface ShardOwner {
  /** The id of the process. */
  readonly id: string;
  /** The slot that it holds. */
  readonly slot: number;
  /** Where it can be reached, as it published them. */
  readonly addresses: readonly string[];
  /** The token of its term for this shard. */
  readonly token: bigint;
}

/** A process that takes part. */
export interface ShardMember {
  readonly id: string;
  /** The slot that it holds. Two processes may have one id, and never one slot. */
  readonly slot: number;
  readonly addresses: readonly string[];
  /** How many shards it owns. */
  readonly owns: number;
}

/** Which process owns what, as the coordinator has written it last. An owner itself asks its own term. */
export interface ShardsView<Shard extends string | number = string | number> {
  readonly members: readonly ShardMember[];
  /** How many shards there are. */
  readonly shards: number;
  /** The shards that no process owns. */
  readonly unowned: readonly Shard[];
  /** @throws InvalidOptionError for a shard that is not in the list */
  owner(shard: Shard): ShardOwner | undefined;
  /** The shards of a member, by its slot. */
  ownedBy(slot: number): readonly Shard[];
}

export function viewOf<Shard extends string | number>(
  directory: Directory | undefined,
  names: Names<Shard>,
): ShardsView<Shard> {
  const { count } = names.list;
  const owners = directory?.owners ?? new Int32Array(count).fill(nobody);
  const members = directory?.members ?? [];
  const owns = members.map(() => 0);
  const unowned: Shard[] = [];
  for (const [number, owner] of owners.entries()) {
    if (owner === nobody) unowned.push(names.nameOf(number));
    else owns[owner] = (owns[owner] ?? 0) + 1;
  }
  return {
    members: members.map((member, index) => ({ ...member, owns: owns[index] ?? 0 })),
    shards: count,
    unowned,
    owner(shard) {
      const number = names.numberOf(shard);
      const member = members[owners[number] ?? nobody];
      if (member === undefined) return undefined;
      return { ...member, token: directory?.tokens[number] ?? 0n };
    },
    ownedBy(slot) {
      const index = members.findIndex((member) => member.slot === slot);
      if (index < 0) return [];
      return [...owners.entries()].flatMap(([number, owner]) =>
        owner === index ? [names.nameOf(number)] : [],
      );
    },
  };
}
