/**
 * Automatic failover of a Redis primary: the manager that moves the primary, and a client that
 * follows it.
 */
export type { Dedicated } from './client/dedicated.ts';
export type { Driver, DriverConnection } from './client/driver.ts';
export type { FailoverErrorCode, UnknownOutcome } from './client/errors.ts';
export {
  ClosedError,
  FailoverError,
  FailoverRefusedError,
  IterationBrokenError,
  NoManagerError,
  NoPrimaryError,
  NotRoutableError,
  OutcomeUnknownError,
  WrongRoleError,
} from './client/errors.ts';
export type { WriteOptions } from './client/failover.ts';
export { RedisFailover } from './client/failover.ts';
export type { IoredisClient } from './client/ioredis.ts';
export { ioredis } from './client/ioredis.ts';
export type { ManualFailover, ManualFailoverOptions } from './client/manual-failover.ts';
export type { NodeRedisClient } from './client/node-redis.ts';
export { nodeRedis } from './client/node-redis.ts';
export type { RedisFailoverOptions } from './client/options.ts';
export type { Picture, Reign } from './client/view.ts';
export type {
  ManagerEvent,
  ManagerStatus,
  ManagerStep,
  MoveReason,
  NodeStatus,
  Trouble,
  TroubleCode,
} from './manager/events.ts';
export { managerSteps } from './manager/events.ts';
export { NodeManager } from './manager/node-manager.ts';
export type { NodeSight } from './manager/node-watcher.ts';
export type { ManagerOptions, NodeStrategy } from './manager/options.ts';
export type { HostAndPort, NodeAddress } from './node-address.ts';
export { NodeRefusedError } from './redis/errors.ts';
export type { NodeAccess, NodeTls } from './redis/node-connection.ts';
