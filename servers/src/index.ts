/** Real servers for tests, chaos and benchmarks: private, on loopback, gone with the process. */
export { CephGateway, cephAvailable, startCephGateway } from './ceph.ts';
export type { EtcdClusterOptions, EtcdOptions, EtcdSeat } from './etcd.ts';
export { EtcdCluster, EtcdServer, etcdAvailable, startEtcd, startEtcdCluster } from './etcd.ts';
export type { FakeGcsOptions, GcsObject, LoggedGcsRequest } from './gcs/index.ts';
export { FakeGcs, GcsBucket } from './gcs/index.ts';
export { inSeconds } from './in-seconds.ts';
export type {
  FakeApiServerOptions,
  Fault,
  FaultAction,
  LeaseObject,
  Rule,
} from './kubernetes/index.ts';
export { adminToken, FakeApiServer, LeaseRegistry, StatusError } from './kubernetes/index.ts';
export type { LocalServerPlan } from './local-server.ts';
export { LocalServer, makeServerDirectory, waitFor } from './local-server.ts';
export type { Meter, MeterOptions, ProtocolName, Traveller } from './meter/index.ts';
export { protocols, RoundTrips, startMeter } from './meter/index.ts';
export type { PgBouncerOptions } from './pgbouncer.ts';
export { PgBouncer, pgBouncerAvailable, startPgBouncer } from './pgbouncer.ts';
export type { PostgresOptions } from './postgres.ts';
export {
  PostgresServer,
  postgresAvailable,
  startPostgres,
  startPostgresStandby,
} from './postgres.ts';
export { seeded, shuffle } from './random.ts';
export type { RedisServerOptions, SentinelOptions } from './redis.ts';
export {
  RedisServer,
  redisAvailable,
  replicasStream,
  startRedis,
  startRedisCluster,
  startSentinel,
} from './redis.ts';
export type { RespValue } from './resp.ts';
export { RespConnection } from './resp.ts';
export type {
  Dialect,
  FakeS3Options,
  LoggedS3Request,
  S3Action,
  S3Credentials,
  StoredObject,
} from './s3/index.ts';
export { awsDialect, Bucket, cephDialect, FakeS3, ownerCredentials } from './s3/index.ts';
