export { acl, permissions } from './acl.ts';
export type { CallOptions, Data, VersionOptions } from './arguments.ts';
export { connect, createClient, ZooKeeper } from './client.ts';
export type { Clock, Instant, Timer } from './clock.ts';
export type { Confirmed } from './confirm.ts';
export type { ConnectionString, HostAndPort } from './connection-string.ts';
export { parseConnectionString } from './connection-string.ts';
export type { Counters } from './counters.ts';
export type { CreateOptions, NodeOptions } from './create.ts';
export type { DiagnosticEvents } from './diagnostics.ts';
export type { ZooKeeperErrorCode } from './errors.ts';
export {
  AuthError,
  BadVersionError,
  ClosedError,
  ConnectError,
  ConnectionLossError,
  InvalidArgumentError,
  NodeExistsError,
  NoNodeError,
  NotEmptyError,
  PacketTooLargeError,
  ProtocolError,
  QueueFullError,
  RefusedError,
  RequestTimeoutError,
  ServerError,
  SessionError,
  ZooKeeperError,
} from './errors.ts';
export type { FourLetterWordOptions } from './four-letter-word.ts';
export { askFourLetterWord } from './four-letter-word.ts';
export type { StoppableIterator } from './iterate.ts';
export type { MultiReadOperation, MultiReadReply, MultiReadResult } from './multi-read.ts';
export type { TlsOptions } from './net/tls-options.ts';
export type { WatchEvent } from './node-watch.ts';
export { NodeWatch } from './node-watch.ts';
export type { ClientOptions } from './options.ts';
export type { AddWatchOptions, PersistentEvent } from './persistent-watch.ts';
export { PersistentWatch } from './persistent-watch.ts';
export type { Acl, ClientIdentity } from './protocol/messages.ts';
export type { Stat } from './protocol/stat.ts';
export type { Reconfiguration } from './reconfig.ts';
export type {
  AclReply,
  ChildrenReply,
  CountReply,
  CreateReply,
  EphemeralsReply,
  IdentitiesReply,
  MaybeStatReply,
  Reply,
  StatReply,
} from './replies.ts';
export { GetReply } from './replies.ts';
export type { ExportedSession, SessionInfo, State, StateChange } from './state.ts';
export type { CommitReply, OperationOutcome, OperationResult } from './transaction.ts';
export { Transaction, TransactionError } from './transaction.ts';
export type { DeleteRecursiveOptions, EnsurePathOptions } from './trees.ts';
