/** The part of etcd's `rpc.proto` and `kv.proto` (API v3) that elections need. */
import type { Codec } from '../protobuf.ts';
import {
  bool,
  bytes,
  embedded,
  enumeration,
  field,
  int64,
  message,
  optional,
  repeated,
  string,
  uint64,
} from '../protobuf.ts';

export interface ResponseHeader {
  readonly clusterId: bigint;
  readonly memberId: bigint;
  /** The revision of the store when the request was applied. */
  readonly revision: bigint;
  readonly raftTerm: bigint;
}

const responseHeader: Codec<ResponseHeader> = message<ResponseHeader>({
  clusterId: field(1, uint64),
  memberId: field(2, uint64),
  revision: field(3, int64),
  raftTerm: field(4, uint64),
});
const header = field(1, embedded(responseHeader));

export interface KeyValue {
  readonly key: Uint8Array;
  /** The revision of the last creation. A key that was deleted and put again has another one. */
  readonly createRevision: bigint;
  readonly modRevision: bigint;
  readonly version: bigint;
  readonly value: Uint8Array;
  /** 0: no lease. */
  readonly lease: bigint;
}

export const keyValue: Codec<KeyValue> = message<KeyValue>({
  key: field(1, bytes),
  createRevision: field(2, int64),
  modRevision: field(3, int64),
  version: field(4, int64),
  value: field(5, bytes),
  lease: field(6, int64),
});

// --- KV ---

export const sortOrder = { none: 0, ascend: 1, descend: 2 } as const;
export const sortTarget = { key: 0, version: 1, create: 2, mod: 3, value: 4 } as const;

export interface RangeRequest {
  readonly key: Uint8Array;
  /** Without it, only `key` is meant. */
  readonly rangeEnd: Uint8Array;
  readonly limit: bigint;
  /** 0: the newest. */
  readonly revision: bigint;
  readonly sortOrder: number;
  readonly sortTarget: number;
  /** True: answered by the member that is asked, however old its data. */
  readonly serializable: boolean;
  readonly keysOnly: boolean;
  readonly countOnly: boolean;
  readonly maxCreateRevision: bigint;
}

export const rangeRequest: Codec<RangeRequest> = message<RangeRequest>({
  key: field(1, bytes),
  rangeEnd: field(2, bytes),
  limit: field(3, int64),
  revision: field(4, int64),
  sortOrder: field(5, enumeration),
  sortTarget: field(6, enumeration),
  serializable: field(7, bool),
  keysOnly: field(8, bool),
  countOnly: field(9, bool),
  maxCreateRevision: field(13, int64),
});

export interface RangeResponse {
  readonly header: ResponseHeader;
  readonly kvs: readonly KeyValue[];
  readonly more: boolean;
  readonly count: bigint;
}

export const rangeResponse: Codec<RangeResponse> = message<RangeResponse>({
  header,
  kvs: repeated(2, embedded(keyValue)),
  more: field(3, bool),
  count: field(4, int64),
});

export interface PutRequest {
  readonly key: Uint8Array;
  readonly value: Uint8Array;
  readonly lease: bigint;
}

export const putRequest: Codec<PutRequest> = message<PutRequest>({
  key: field(1, bytes),
  value: field(2, bytes),
  lease: field(3, int64),
});

export interface PutResponse {
  readonly header: ResponseHeader;
}

export const putResponse: Codec<PutResponse> = message<PutResponse>({ header });

export interface DeleteRangeRequest {
  readonly key: Uint8Array;
  readonly rangeEnd: Uint8Array;
}

export const deleteRangeRequest: Codec<DeleteRangeRequest> = message<DeleteRangeRequest>({
  key: field(1, bytes),
  rangeEnd: field(2, bytes),
});

export interface DeleteRangeResponse {
  readonly header: ResponseHeader;
  readonly deleted: bigint;
}

export const deleteRangeResponse: Codec<DeleteRangeResponse> = message<DeleteRangeResponse>({
  header,
  deleted: field(2, int64),
});

export const compareResult = { equal: 0, greater: 1, less: 2, notEqual: 3 } as const;
export const compareTarget = { version: 0, create: 1, mod: 2, value: 3, lease: 4 } as const;

/** One of the last three is given: the one that `target` names. */
export interface Compare {
  readonly result: number;
  readonly target: number;
  readonly key: Uint8Array;
  readonly createRevision: bigint | undefined;
  readonly modRevision: bigint | undefined;
}

export const compare: Codec<Compare> = message<Compare>({
  result: field(1, enumeration),
  target: field(2, enumeration),
  key: field(3, bytes),
  createRevision: optional(5, int64),
  modRevision: optional(6, int64),
});

/** One of them is given. */
export interface RequestOp {
  readonly range: Partial<RangeRequest> | undefined;
  readonly put: Partial<PutRequest> | undefined;
  readonly deleteRange: Partial<DeleteRangeRequest> | undefined;
}

export const requestOp: Codec<RequestOp> = message<RequestOp>({
  range: optional(1, embedded(rangeRequest as Codec<Partial<RangeRequest>>)),
  put: optional(2, embedded(putRequest as Codec<Partial<PutRequest>>)),
  deleteRange: optional(3, embedded(deleteRangeRequest as Codec<Partial<DeleteRangeRequest>>)),
});

export interface ResponseOp {
  readonly range: RangeResponse | undefined;
  readonly put: PutResponse | undefined;
  readonly deleteRange: DeleteRangeResponse | undefined;
}

export const responseOp: Codec<ResponseOp> = message<ResponseOp>({
  range: optional(1, embedded(rangeResponse)),
  put: optional(2, embedded(putResponse)),
  deleteRange: optional(3, embedded(deleteRangeResponse)),
});

/** `success` if all of `compare` hold, otherwise `failure`. All at one revision. */
export interface TxnRequest {
  readonly compare: readonly Partial<Compare>[];
  readonly success: readonly Partial<RequestOp>[];
  readonly failure: readonly Partial<RequestOp>[];
}

export const txnRequest: Codec<TxnRequest> = message<TxnRequest>({
  compare: repeated(1, embedded(compare as Codec<Partial<Compare>>)),
  success: repeated(2, embedded(requestOp as Codec<Partial<RequestOp>>)),
  failure: repeated(3, embedded(requestOp as Codec<Partial<RequestOp>>)),
});

export interface TxnResponse {
  readonly header: ResponseHeader;
  readonly succeeded: boolean;
  readonly responses: readonly ResponseOp[];
}

export const txnResponse: Codec<TxnResponse> = message<TxnResponse>({
  header,
  succeeded: field(2, bool),
  responses: repeated(3, embedded(responseOp)),
});

// --- Lease ---

export interface LeaseGrantRequest {
  /** Seconds. */
  readonly ttl: bigint;
  /** 0: the server chooses. */
  readonly id: bigint;
}

export const leaseGrantRequest: Codec<LeaseGrantRequest> = message<LeaseGrantRequest>({
  ttl: field(1, int64),
  id: field(2, int64),
});

export interface LeaseGrantResponse {
  readonly header: ResponseHeader;
  readonly id: bigint;
  /** Seconds, as granted: servers raise a small one. */
  readonly ttl: bigint;
  readonly error: string;
}

export const leaseGrantResponse: Codec<LeaseGrantResponse> = message<LeaseGrantResponse>({
  header,
  id: field(2, int64),
  ttl: field(3, int64),
  error: field(4, string),
});

export interface LeaseRevokeRequest {
  readonly id: bigint;
}

export const leaseRevokeRequest: Codec<LeaseRevokeRequest> = message<LeaseRevokeRequest>({
  id: field(1, int64),
});

export interface LeaseRevokeResponse {
  readonly header: ResponseHeader;
}

export const leaseRevokeResponse: Codec<LeaseRevokeResponse> = message<LeaseRevokeResponse>({
  header,
});

export interface LeaseKeepAliveRequest {
  readonly id: bigint;
}

export const leaseKeepAliveRequest: Codec<LeaseKeepAliveRequest> = message<LeaseKeepAliveRequest>({
  id: field(1, int64),
});

export interface LeaseKeepAliveResponse {
  readonly header: ResponseHeader;
  readonly id: bigint;
  /** Seconds. 0: there is no such lease (any more). */
  readonly ttl: bigint;
}

export const leaseKeepAliveResponse: Codec<LeaseKeepAliveResponse> =
  message<LeaseKeepAliveResponse>({
    header,
    id: field(2, int64),
    ttl: field(3, int64),
  });

// --- Watch ---

export const watchFilter = { noPut: 0, noDelete: 1 } as const;

export interface WatchCreateRequest {
  readonly key: Uint8Array;
  readonly rangeEnd: Uint8Array;
  /** The first revision to report. */
  readonly startRevision: bigint;
  readonly filters: readonly number[];
  /** Chosen by the client. */
  readonly watchId: bigint;
}

export const watchCreateRequest: Codec<WatchCreateRequest> = message<WatchCreateRequest>({
  key: field(1, bytes),
  rangeEnd: field(2, bytes),
  startRevision: field(3, int64),
  filters: repeated(5, enumeration),
  watchId: field(7, int64),
});

export interface WatchCancelRequest {
  readonly watchId: bigint;
}

export const watchCancelRequest: Codec<WatchCancelRequest> = message<WatchCancelRequest>({
  watchId: field(1, int64),
});

/** One of them is given. */
export interface WatchRequest {
  readonly create: Partial<WatchCreateRequest> | undefined;
  readonly cancel: Partial<WatchCancelRequest> | undefined;
}

export const watchRequest: Codec<WatchRequest> = message<WatchRequest>({
  create: optional(1, embedded(watchCreateRequest as Codec<Partial<WatchCreateRequest>>)),
  cancel: optional(2, embedded(watchCancelRequest as Codec<Partial<WatchCancelRequest>>)),
});

export const eventType = { put: 0, delete: 1 } as const;

export interface Event {
  readonly type: number;
  readonly kv: KeyValue;
}

export const event: Codec<Event> = message<Event>({
  type: field(1, enumeration),
  kv: field(2, embedded(keyValue)),
});

export interface WatchResponse {
  readonly header: ResponseHeader;
  readonly watchId: bigint;
  readonly created: boolean;
  readonly canceled: boolean;
  /** Not 0: the wanted revision is forgotten, and this is the oldest that is known. */
  readonly compactRevision: bigint;
  readonly cancelReason: string;
  readonly events: readonly Event[];
}

export const watchResponse: Codec<WatchResponse> = message<WatchResponse>({
  header,
  watchId: field(2, int64),
  created: field(3, bool),
  canceled: field(4, bool),
  compactRevision: field(5, int64),
  cancelReason: field(6, string),
  events: repeated(11, embedded(event)),
});

// --- Maintenance, Auth ---

export type StatusRequest = Record<never, never>;

export const statusRequest: Codec<StatusRequest> = message<StatusRequest>({});

export interface StatusResponse {
  readonly header: ResponseHeader;
  readonly version: string;
  readonly dbSize: bigint;
  /** 0: this member knows none. */
  readonly leader: bigint;
  readonly raftIndex: bigint;
  readonly raftTerm: bigint;
  readonly errors: readonly string[];
  readonly isLearner: boolean;
}

export const statusResponse: Codec<StatusResponse> = message<StatusResponse>({
  header,
  version: field(2, string),
  dbSize: field(3, int64),
  leader: field(4, uint64),
  raftIndex: field(5, uint64),
  raftTerm: field(6, uint64),
  errors: repeated(8, string),
  isLearner: field(10, bool),
});

export interface AuthenticateRequest {
  readonly name: string;
  readonly password: string;
}

export const authenticateRequest: Codec<AuthenticateRequest> = message<AuthenticateRequest>({
  name: field(1, string),
  password: field(2, string),
});

export interface AuthenticateResponse {
  readonly header: ResponseHeader;
  readonly token: string;
}

export const authenticateResponse: Codec<AuthenticateResponse> = message<AuthenticateResponse>({
  header,
  token: field(2, string),
});
