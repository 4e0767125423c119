/** The methods of etcd that we call: the path of each, and the codecs of its request and response. */

import type { Codec } from '../protobuf.ts';
import * as messages from './messages.ts';

export interface Method<Request, Response> {
  readonly path: string;
  readonly request: Codec<Request>;
  readonly response: Codec<Response>;
}

export const range: Method<messages.RangeRequest, messages.RangeResponse> = {
  path: '/etcdserverpb.KV/Range',
  request: messages.rangeRequest,
  response: messages.rangeResponse,
};

export const txn: Method<messages.TxnRequest, messages.TxnResponse> = {
  path: '/etcdserverpb.KV/Txn',
  request: messages.txnRequest,
  response: messages.txnResponse,
};

export const leaseGrant: Method<messages.LeaseGrantRequest, messages.LeaseGrantResponse> = {
  path: '/etcdserverpb.Lease/LeaseGrant',
  request: messages.leaseGrantRequest,
  response: messages.leaseGrantResponse,
};

export const leaseRevoke: Method<messages.LeaseRevokeRequest, messages.LeaseRevokeResponse> = {
  path: '/etcdserverpb.Lease/LeaseRevoke',
  request: messages.leaseRevokeRequest,
  response: messages.leaseRevokeResponse,
};

/** A stream in both directions. Answers come in the order of the requests. */
export const leaseKeepAlive: Method<
  messages.LeaseKeepAliveRequest,
  messages.LeaseKeepAliveResponse
> = {
  path: '/etcdserverpb.Lease/LeaseKeepAlive',
  request: messages.leaseKeepAliveRequest,
  response: messages.leaseKeepAliveResponse,
};

/** A stream in both directions, for any number of watches. */
export const watch: Method<messages.WatchRequest, messages.WatchResponse> = {
  path: '/etcdserverpb.Watch/Watch',
  request: messages.watchRequest,
  response: messages.watchResponse,
};

export const status: Method<messages.StatusRequest, messages.StatusResponse> = {
  path: '/etcdserverpb.Maintenance/Status',
  request: messages.statusRequest,
  response: messages.statusResponse,
};

export const authenticate: Method<messages.AuthenticateRequest, messages.AuthenticateResponse> = {
  path: '/etcdserverpb.Auth/Authenticate',
  request: messages.authenticateRequest,
  response: messages.authenticateResponse,
};
