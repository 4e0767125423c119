/**
 * Bodies of requests and replies, each in the order in which its fields are encoded. A request is
 * `requestHeader` + body. A reply is `replyHeader` + body, without the body after an error.
 */
import type { Codec } from './jute.ts';
import {
  anyString,
  boolean,
  buffer,
  int32,
  int64,
  nullableString,
  nullableVector,
  record,
  safeInt64,
  ustring,
  vector,
} from './jute.ts';
import type { Stat } from './stat.ts';
import { stat } from './stat.ts';

/** Comes before every request except the ConnectRequest. */
export interface RequestHeader {
  readonly xid: number;
  readonly opcode: number;
}
export const requestHeader: Codec<RequestHeader> = record<RequestHeader>({
  xid: int32,
  opcode: int32,
});

/** Comes before every reply except the ConnectResponse. 16 bytes. */
export interface ReplyHeader {
  readonly xid: number;
  readonly zxid: bigint;
  /** 0, or one of `errorCodes`. */
  readonly error: number;
}
export const replyHeader: Codec<ReplyHeader> = record<ReplyHeader>({
  xid: int32,
  zxid: int64,
  error: int32,
});

/** An entry of an ACL: a user, and the rights of that user. Made by the functions of `acl`. */
export interface Acl {
  /** Sum of `permissions`. */
  readonly perms: number;
  /** The scheme, such as `world`, `digest` or `ip`. */
  readonly scheme: string;
  /** The user, as the scheme writes it. */
  readonly id: string;
}
export const acl: Codec<Acl> = record<Acl>({ perms: int32, scheme: ustring, id: anyString });

/** `exists`, `getData`, `getChildren`, `getChildren2`. */
export interface ReadRequest {
  readonly path: string;
  readonly watch: boolean;
}
export const readRequest: Codec<ReadRequest> = record<ReadRequest>({
  path: ustring,
  watch: boolean,
});

/** `sync`, `getAcl`, `getAllChildrenNumber`, and replies that are a path. */
export interface PathMessage {
  readonly path: string;
}
export const pathMessage: Codec<PathMessage> = record<PathMessage>({ path: ustring });

/** `create`, `create2`, `createContainer`. */
export interface CreateRequest {
  readonly path: string;
  readonly data: Uint8Array | null;
  readonly acl: readonly Acl[] | null;
  /** One of `createFlags`. */
  readonly flags: number;
}
export const createRequest: Codec<CreateRequest> = record<CreateRequest>({
  path: ustring,
  data: buffer,
  acl: nullableVector(acl),
  flags: int32,
});

/** `createTtl`. */
export interface CreateTtlRequest extends CreateRequest {
  readonly ttlMs: number;
}
export const createTtlRequest: Codec<CreateTtlRequest> = record<CreateTtlRequest>({
  path: ustring,
  data: buffer,
  acl: nullableVector(acl),
  flags: int32,
  ttlMs: safeInt64,
});

/** `create2`, `createContainer`, `createTtl`. */
export interface Create2Response {
  readonly path: string;
  readonly stat: Stat;
}
export const create2Response: Codec<Create2Response> = record<Create2Response>({
  path: ustring,
  stat,
});

/** `delete`, `check`. */
export interface VersionedPath {
  readonly path: string;
  /** The version that the node must have; -1 for any. */
  readonly version: number;
}
export const versionedPath: Codec<VersionedPath> = record<VersionedPath>({
  path: ustring,
  version: int32,
});

/** `setData`. */
export interface SetDataRequest {
  readonly path: string;
  readonly data: Uint8Array | null;
  readonly version: number;
}
export const setDataRequest: Codec<SetDataRequest> = record<SetDataRequest>({
  path: ustring,
  data: buffer,
  version: int32,
});

/** `exists`, `setData`, `setAcl`. */
export interface StatResponse {
  readonly stat: Stat;
}
export const statResponse: Codec<StatResponse> = record<StatResponse>({ stat });

/** `getData`. */
export interface GetDataResponse {
  readonly data: Uint8Array | null;
  readonly stat: Stat;
}
export const getDataResponse: Codec<GetDataResponse> = {
  minBytes: buffer.minBytes + stat.minBytes,
  read(reader) {
    return { data: reader.buffer(), stat: stat.read(reader) };
  },
  write(writer, value) {
    writer.buffer(value.data);
    stat.write(writer, value.stat);
  },
};

/** `getChildren`. */
export interface GetChildrenResponse {
  readonly children: readonly string[];
}
export const getChildrenResponse: Codec<GetChildrenResponse> = record<GetChildrenResponse>({
  children: vector(ustring),
});

/** `getChildren2`. */
export interface GetChildren2Response {
  readonly children: readonly string[];
  readonly stat: Stat;
}
export const getChildren2Response: Codec<GetChildren2Response> = record<GetChildren2Response>({
  children: vector(ustring),
  stat,
});

/** `getAcl`. */
export interface GetAclResponse {
  readonly acl: readonly Acl[];
  readonly stat: Stat;
}
export const getAclResponse: Codec<GetAclResponse> = record<GetAclResponse>({
  acl: vector(acl),
  stat,
});

/** `setAcl`. */
export interface SetAclRequest {
  readonly path: string;
  readonly acl: readonly Acl[] | null;
  /** The version of the ACL (`aversion`); -1 for any. */
  readonly version: number;
}
export const setAclRequest: Codec<SetAclRequest> = record<SetAclRequest>({
  path: ustring,
  acl: nullableVector(acl),
  version: int32,
});

/** `getEphemerals`. */
export interface GetEphemeralsRequest {
  readonly prefixPath: string;
}
export const getEphemeralsRequest: Codec<GetEphemeralsRequest> = record<GetEphemeralsRequest>({
  prefixPath: ustring,
});
export interface GetEphemeralsResponse {
  readonly ephemerals: readonly string[];
}
export const getEphemeralsResponse: Codec<GetEphemeralsResponse> = record<GetEphemeralsResponse>({
  ephemerals: vector(ustring),
});

/** `getAllChildrenNumber`. */
export interface GetAllChildrenNumberResponse {
  readonly totalNumber: number;
}
export const getAllChildrenNumberResponse: Codec<GetAllChildrenNumberResponse> =
  record<GetAllChildrenNumberResponse>({ totalNumber: int32 });

/** `whoAmI`: one identity of a session. */
export interface ClientIdentity {
  readonly scheme: string;
  readonly user: string;
}
export const clientIdentity: Codec<ClientIdentity> = record<ClientIdentity>({
  scheme: ustring,
  user: anyString,
});
export interface WhoAmIResponse {
  readonly identities: readonly ClientIdentity[];
}
export const whoAmIResponse: Codec<WhoAmIResponse> = record<WhoAmIResponse>({
  identities: vector(clientIdentity),
});

/** `reconfig`. Its reply is that of `getData` on the configuration. */
export interface ReconfigRequest {
  /** Servers to add, or null; comma-separated. */
  readonly joiningServers: string | null;
  /** Ids of servers to remove, or null; comma-separated. */
  readonly leavingServers: string | null;
  /** The complete new membership instead of the two above, or null; comma-separated. */
  readonly newMembers: string | null;
  /** The configuration that must be in force, -1 for any. */
  readonly curConfigId: bigint;
}
export const reconfigRequest: Codec<ReconfigRequest> = record<ReconfigRequest>({
  joiningServers: nullableString,
  leavingServers: nullableString,
  newMembers: nullableString,
  curConfigId: int64,
});

/** `auth`, xid -4. */
export interface AuthRequest {
  /** Always 0. */
  readonly type: number;
  readonly scheme: string;
  readonly auth: Uint8Array | null;
}
export const authRequest: Codec<AuthRequest> = record<AuthRequest>({
  type: int32,
  scheme: ustring,
  auth: buffer,
});

/** `sasl`, both ways. */
export interface SaslMessage {
  readonly token: Uint8Array | null;
}
export const saslMessage: Codec<SaslMessage> = record<SaslMessage>({ token: buffer });

/** `setWatches`, xid -8: the one-shot watches that a new connection has to have. */
export interface SetWatchesRequest {
  /** Changes after this transaction are reported at once. */
  readonly relativeZxid: bigint;
  readonly dataWatches: readonly string[];
  readonly existWatches: readonly string[];
  readonly childWatches: readonly string[];
}
export const setWatchesRequest: Codec<SetWatchesRequest> = record<SetWatchesRequest>({
  relativeZxid: int64,
  dataWatches: vector(ustring),
  existWatches: vector(ustring),
  childWatches: vector(ustring),
});

/**
 * `setWatches2`, xid -8. Persistent watches are only set again: earlier changes are not reported.
 */
export interface SetWatches2Request extends SetWatchesRequest {
  readonly persistentWatches: readonly string[];
  readonly persistentRecursiveWatches: readonly string[];
}
export const setWatches2Request: Codec<SetWatches2Request> = record<SetWatches2Request>({
  relativeZxid: int64,
  dataWatches: vector(ustring),
  existWatches: vector(ustring),
  childWatches: vector(ustring),
  persistentWatches: vector(ustring),
  persistentRecursiveWatches: vector(ustring),
});

/** `addWatch`. Its reply is an int 0. */
export interface AddWatchRequest {
  readonly path: string;
  /** One of `addWatchModes`. */
  readonly mode: number;
}
export const addWatchRequest: Codec<AddWatchRequest> = record<AddWatchRequest>({
  path: ustring,
  mode: int32,
});
export interface AddWatchResponse {
  readonly error: number;
}
export const addWatchResponse: Codec<AddWatchResponse> = record<AddWatchResponse>({ error: int32 });

/** `removeWatches`, `checkWatches`. */
export interface WatcherTypeRequest {
  readonly path: string;
  /** One of `watcherTypes`. */
  readonly type: number;
}
export const watcherTypeRequest: Codec<WatcherTypeRequest> = record<WatcherTypeRequest>({
  path: ustring,
  type: int32,
});

/** The body of a notification, xid -1. */
export interface WatcherEvent {
  /** One of `eventTypes`. */
  readonly type: number;
  /** One of `keeperStates`. */
  readonly state: number;
  readonly path: string;
}
export const watcherEvent: Codec<WatcherEvent> = record<WatcherEvent>({
  type: int32,
  state: int32,
  path: ustring,
});

/** Requests and replies without a body: `ping`, `closeSession`, and the reply of `delete`. */
export type Nothing = Record<never, never>;
export const nothing: Codec<Nothing> = record<Nothing>({});
