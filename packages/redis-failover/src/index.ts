/** Automatic failover of a Redis primary, and clients that follow it. */
export type { NodeAddress } from './node-address.ts';
