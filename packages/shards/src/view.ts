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
  /** False: its work is not prepared yet (`ready: 'manual'`). Routers wait for it. */
  readonly ready: boolean;
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
  const owners = directory?.owners ?? new Int32Array(0);
  const members = directory?.members ?? [];
  const shards = names.all();
  const unowned = shards.filter((shard) => (owners[names.numberOf(shard)] ?? nobody) === nobody);
  const owns = members.map(() => 0);
  for (const owner of owners) if (owner !== nobody) owns[owner] = (owns[owner] ?? 0) + 1;
  return {
    members: members.map((member, index) => ({ ...member, owns: owns[index] ?? 0 })),
    shards: shards.length,
    unowned,
    owner(shard) {
      const number = names.numberOf(shard);
      const member = members[owners[number] ?? nobody];
      if (member === undefined) return undefined;
      const ready = directory?.unready.has(number) !== true;
      return { ...member, token: directory?.tokens[number] ?? 0n, ready };
    },
    ownedBy(slot) {
      const index = members.findIndex((member) => member.slot === slot);
      if (index < 0) return [];
      return [...owners.entries()].flatMap(([number, owner]) => {
        const name = owner === index ? names.nameOf(number) : undefined;
        return name === undefined ? [] : [name];
      });
    },
  };
}
