/**
 * Shards over HTTP.
 *
 * - `toOwner`: clients whose requests reach the owner of a shard.
 * - `ownerOnly`: servers of which only the owner serves.
 */
export { type OwnerOnly, type OwnerOnlyOptions, ownerOnly } from './owner-only.ts';
export { type OwnerInterceptor, type ToOwnerOptions, toOwner } from './to-owner.ts';
