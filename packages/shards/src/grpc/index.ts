/**
 * Shards over gRPC, for `@grpc/grpc-js` 1.13 and 1.14: clients whose calls reach the owner of a shard, and
 * servers that answer only for the shards that they own.
 */
export {
  type CallOfShard,
  callsEnded,
  type RequireOwnershipOptions,
  requireOwnership,
} from './require-ownership.ts';
export {
  type OwnerClientOptions,
  type OwnerClients,
  type ToOwnerOptions,
  toOwner,
} from './to-owner.ts';
