/** Following the leader: the parts that gRPC and HTTP share. */

export { type Address, type AddressOf, checkAddressOf, parseAddress } from './address.ts';
export { checkElection, Follower } from './follower.ts';
export { type KnownLeader, LeaderWatch, type Sight } from './leader-watch.ts';
