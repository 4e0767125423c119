import type { Drain } from 'incumbent';
import { drainOf } from 'incumbent/internal';
import { directoryOf } from './directory.ts';
import { byNumber } from './lists.ts';
import type { Pins } from './pins.ts';
import type { SeenSlot } from './seen-slot.ts';
import type { ShardList } from './slot.ts';
import type { ShardMember, ShardsView } from './view.ts';
import { viewOf } from './view.ts';

/** A process that takes part, as its slot shows it. */
export interface ShardMemberStatus extends ShardMember {
  /** False: it has taken a slot just now, and is granted nothing yet. */
  readonly joined: boolean;
  readonly weight: number;
  /** Empty: it named none. */
  readonly zone: string;
  /** It gives all of its shards away, because it leaves or because an operator keeps it out. */
  readonly drained: boolean;
  /** So many of its shards it was asked to give up, and has not yet. */
  readonly moving: number;
  /** When it took its slot, by its own clock. */
  readonly sinceUnixMs: number;
}

/** The owner of each shard, as the slots of the processes show it. */
export interface ShardsStatus extends ShardsView {
  readonly name: string;
  /** True: the shards have names. Each is known here by its number: its place in their sorted list. */
  readonly isNamed: boolean;
  /** By those numbers. Undefined: they have none, or more than 100 kB, or none was written yet. */
  readonly names: readonly string[] | undefined;
  /** The id of the process that decides who owns what. Undefined: there is none now. */
  readonly coordinator: string | undefined;
  readonly members: readonly ShardMemberStatus[];
  /** The shards that were asked back from their owners, and not given up yet. */
  readonly moving: readonly (string | number)[];
  /** Candidates that an operator keeps out. */
  readonly drains: readonly Drain[];
  /** Slots whose record cannot be read, each with the reason. Their last readable state counts. */
  readonly unreadable: readonly UnreadableSlot[];
  /** Shards that an operator wants at one process. A pin to a process that is not there sleeps. */
  readonly pins: readonly ShardPin[];
}

/** An operator wants a shard at one process. */
export interface ShardPin {
  /** Its number. */
  readonly shard: number;
  /** The id of the process. */
  readonly to: string;
}

export interface UnreadableSlot {
  readonly slot: number;
  readonly error: Error;
}

export interface Seen {
  readonly name: string;
  readonly list: ShardList;
  readonly names: readonly string[] | undefined;
  readonly slots: readonly SeenSlot[];
  readonly coordinator: string | undefined;
  readonly drains: readonly Drain[];
  readonly unreadable: readonly UnreadableSlot[];
  readonly pins: Pins;
  readonly wallMs: number;
}

export function statusOf({ list, slots, pins, wallMs, ...told }: Seen): ShardsStatus {
  const { drains } = told;
  // The holder of such a slot believes in nothing any more, although nobody has said so yet.
  const held = slots.filter((slot) => !slot.isOver);
  const bySlot = new Map(held.map((slot) => [slot.number, slot]));
  const view = viewOf(directoryOf(list, held), byNumber(list));
  const asked = held.flatMap(({ state }) => state?.entries.filter(isAsked) ?? []);
  return {
    ...view,
    ...told,
    isNamed: list.digest !== 0n,
    pins: [...pins].map(([shard, to]) => ({ shard, to })),
    moving: asked.map(({ shard }) => shard),
    members: view.members.map((member) => {
      const { record, state } = bySlot.get(member.slot) ?? {};
      const { joined = false, leaving = false, weight = 1, zone = '' } = state?.presence ?? {};
      return {
        ...member,
        ...{ joined, weight, zone },
        drained: leaving || drainOf({ drains }, member.id, wallMs) !== undefined,
        moving: state?.entries.filter(isAsked).length ?? 0,
        sinceUnixMs: record?.holding?.electedAtUnixMs ?? wallMs,
      };
    }),
  };
}

function isAsked({ state }: { readonly state: string }): boolean {
  return state === 'asked';
}
