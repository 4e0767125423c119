/** A model of Redis servers and their replication, held to the real server by `beside-server.ts`. */
export { Link, Wire } from './link.ts';
export type { Speeds } from './machine.ts';
export type { RedisModelOptions, Route } from './model.ts';
export { ConnectionLostError, RedisConnection, RedisModel } from './model.ts';
export type { NodeOptions } from './node.ts';
export { RedisNode } from './node.ts';
export type { Reply } from './reply.ts';
export { ErrorReply } from './reply.ts';
export type { Cancel, Scheduler } from './scheduler.ts';
export type { GivenSettings } from './settings.ts';
