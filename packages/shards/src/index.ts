/**
 * Many pieces of work, each owned by exactly one process, shared evenly among all that run. Start at
 * `createShards`.
 */
export { createShards, type Shards } from './create-shards.ts';
export { ListDiffersError } from './head.ts';
export type { ShardsOptions } from './options.ts';
export { listShards, observeShards, type ReadShardsOptions, readShards } from './read-shards.ts';
export type { ShardFenceHook, ShardTakeover, ShardTerm, UncleanOwner } from './shard-term.ts';
export type { ShardMemberStatus, ShardPin, ShardsStatus, UnreadableSlot } from './status.ts';
export { drainMember, pinShard, type SteeringResult, unpinShard } from './steer-shards.ts';
export type { ShardMember, ShardOwner, ShardsView } from './view.ts';
