import { opcodes } from './constants.ts';
import type { Codec } from './jute.ts';
import type {
  AddWatchRequest,
  AddWatchResponse,
  AuthRequest,
  Create2Response,
  CreateRequest,
  CreateTtlRequest,
  GetAclResponse,
  GetAllChildrenNumberResponse,
  GetChildren2Response,
  GetChildrenResponse,
  GetDataResponse,
  GetEphemeralsRequest,
  GetEphemeralsResponse,
  Nothing,
  PathMessage,
  ReadRequest,
  ReconfigRequest,
  SaslMessage,
  SetAclRequest,
  SetDataRequest,
  SetWatches2Request,
  SetWatchesRequest,
  StatResponse,
  VersionedPath,
  WatcherTypeRequest,
  WhoAmIResponse,
} from './messages.ts';
import {
  addWatchRequest,
  addWatchResponse,
  authRequest,
  create2Response,
  createRequest,
  createTtlRequest,
  getAclResponse,
  getAllChildrenNumberResponse,
  getChildren2Response,
  getChildrenResponse,
  getDataResponse,
  getEphemeralsRequest,
  getEphemeralsResponse,
  nothing,
  pathMessage,
  readRequest,
  reconfigRequest,
  saslMessage,
  setAclRequest,
  setDataRequest,
  setWatches2Request,
  setWatchesRequest,
  statResponse,
  versionedPath,
  watcherTypeRequest,
  whoAmIResponse,
} from './messages.ts';
import type { MultiOperation, MultiResult } from './multi.ts';
import { multiRequest, multiResponse } from './multi.ts';

/** One kind of request: its number, and the encodings of its body and of its reply. */
export interface RequestKind<Request, Response> {
  readonly name: string;
  readonly opcode: number;
  readonly request: Codec<Request>;
  readonly response: Codec<Response>;
  /**
   * Whether it changes nothing on the server. Then it may be sent again if its outcome is unknown.
   */
  readonly readOnly: boolean;
}

function read<Request, Response>(
  name: keyof typeof opcodes,
  request: Codec<Request>,
  response: Codec<Response>,
): RequestKind<Request, Response> {
  return { name, opcode: opcodes[name], request, response, readOnly: true };
}

function write<Request, Response>(
  name: keyof typeof opcodes,
  request: Codec<Request>,
  response: Codec<Response>,
): RequestKind<Request, Response> {
  return { name, opcode: opcodes[name], request, response, readOnly: false };
}

/**
 * Every request that a client may send, except the ConnectRequest and those only inside a multi.
 */
export interface Requests {
  readonly create: RequestKind<CreateRequest, PathMessage>;
  readonly create2: RequestKind<CreateRequest, Create2Response>;
  readonly createContainer: RequestKind<CreateRequest, Create2Response>;
  readonly createTtl: RequestKind<CreateTtlRequest, Create2Response>;
  readonly delete: RequestKind<VersionedPath, Nothing>;
  readonly exists: RequestKind<ReadRequest, StatResponse>;
  readonly getData: RequestKind<ReadRequest, GetDataResponse>;
  readonly setData: RequestKind<SetDataRequest, StatResponse>;
  readonly getAcl: RequestKind<PathMessage, GetAclResponse>;
  readonly setAcl: RequestKind<SetAclRequest, StatResponse>;
  readonly getChildren: RequestKind<ReadRequest, GetChildrenResponse>;
  readonly getChildren2: RequestKind<ReadRequest, GetChildren2Response>;
  readonly sync: RequestKind<PathMessage, PathMessage>;
  readonly multi: RequestKind<readonly MultiOperation[], readonly MultiResult[]>;
  readonly multiRead: RequestKind<readonly MultiOperation[], readonly MultiResult[]>;
  readonly reconfig: RequestKind<ReconfigRequest, GetDataResponse>;
  readonly checkWatches: RequestKind<WatcherTypeRequest, Nothing>;
  readonly removeWatches: RequestKind<WatcherTypeRequest, Nothing>;
  readonly getEphemerals: RequestKind<GetEphemeralsRequest, GetEphemeralsResponse>;
  readonly getAllChildrenNumber: RequestKind<PathMessage, GetAllChildrenNumberResponse>;
  readonly addWatch: RequestKind<AddWatchRequest, AddWatchResponse>;
  readonly whoAmI: RequestKind<Nothing, WhoAmIResponse>;
  readonly setWatches: RequestKind<SetWatchesRequest, Nothing>;
  readonly setWatches2: RequestKind<SetWatches2Request, Nothing>;
  readonly auth: RequestKind<AuthRequest, Nothing>;
  readonly sasl: RequestKind<SaslMessage, SaslMessage>;
  readonly ping: RequestKind<Nothing, Nothing>;
  readonly closeSession: RequestKind<Nothing, Nothing>;
}

export const requests: Requests = {
  create: write('create', createRequest, pathMessage),
  create2: write('create2', createRequest, create2Response),
  createContainer: write('createContainer', createRequest, create2Response),
  createTtl: write('createTtl', createTtlRequest, create2Response),
  delete: write('delete', versionedPath, nothing),
  exists: read('exists', readRequest, statResponse),
  getData: read('getData', readRequest, getDataResponse),
  setData: write('setData', setDataRequest, statResponse),
  getAcl: read('getAcl', pathMessage, getAclResponse),
  setAcl: write('setAcl', setAclRequest, statResponse),
  getChildren: read('getChildren', readRequest, getChildrenResponse),
  getChildren2: read('getChildren2', readRequest, getChildren2Response),
  sync: read('sync', pathMessage, pathMessage),
  multi: write('multi', multiRequest, multiResponse),
  multiRead: read('multiRead', multiRequest, multiResponse),
  reconfig: write('reconfig', reconfigRequest, getDataResponse),
  checkWatches: read('checkWatches', watcherTypeRequest, nothing),
  removeWatches: read('removeWatches', watcherTypeRequest, nothing),
  getEphemerals: read('getEphemerals', getEphemeralsRequest, getEphemeralsResponse),
  getAllChildrenNumber: read('getAllChildrenNumber', pathMessage, getAllChildrenNumberResponse),
  addWatch: read('addWatch', addWatchRequest, addWatchResponse),
  whoAmI: read('whoAmI', nothing, whoAmIResponse),
  setWatches: read('setWatches', setWatchesRequest, nothing),
  setWatches2: read('setWatches2', setWatches2Request, nothing),
  auth: write('auth', authRequest, nothing),
  sasl: write('sasl', saslMessage, saslMessage),
  ping: read('ping', nothing, nothing),
  closeSession: write('closeSession', nothing, nothing),
};
