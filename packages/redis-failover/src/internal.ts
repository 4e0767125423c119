/**
 * For the command `incumbent-redis`, beside the public API. It is no part of that API: a patch release
 * may change it, so the command depends on exactly one version of this package.
 */
export { requestFailover } from './client/request-failover.ts';
export type { Nodes, Paths, PrimaryRecord, Report } from './layout.ts';
export { decodeNodes, decodePrimary, decodeReport, defaultRoot, pathsBelow } from './layout.ts';
export type { ManagerHooks } from './manager/hooks.ts';
export { missingFrom } from './manager/join.ts';
export { recordedLineage } from './manager/lineage.ts';
export { sayShortList, shortLists } from './manager/node-lists.ts';
export { resolveOptions } from './manager/options.ts';
export { formatNodeAddress, parseNodeAddress } from './node-address.ts';
export type { NodeAccess, Replication } from './redis/node-connection.ts';
export { NodeConnection } from './redis/node-connection.ts';
