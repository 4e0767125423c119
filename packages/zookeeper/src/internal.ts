/**
 * For our other packages, beside the public API. It is no part of that API: a patch release may change
 * it, so they depend on exactly one version of this package.
 */
export { checkOptions, namesOf } from './arguments.ts';
export { formatHost } from './connection-string.ts';
export { resetSocket } from './net/reset.ts';
export { checkPath, join, nameOf, parentOf } from './paths.ts';
export type { ConnectRequest } from './protocol/connect.ts';
export { connectRequest, connectResponse } from './protocol/connect.ts';
export {
  addWatchModes,
  createFlags,
  defaultMaxFrameBytes,
  errorCodes,
  eventTypes,
  keeperStates,
  opcodes,
  watcherTypes,
  xids,
} from './protocol/constants.ts';
export { FrameSplitter } from './protocol/frames.ts';
export type { Codec } from './protocol/jute.ts';
export { JuteReader, JuteWriter, MalformedError } from './protocol/jute.ts';
export type {
  AddWatchRequest,
  AuthRequest,
  Create2Response,
  CreateRequest,
  CreateTtlRequest,
  GetEphemeralsRequest,
  PathMessage,
  ReadRequest,
  ReplyHeader,
  RequestHeader,
  SaslMessage,
  SetAclRequest,
  SetDataRequest,
  SetWatches2Request,
  SetWatchesRequest,
  VersionedPath,
  WatcherTypeRequest,
} from './protocol/messages.ts';
export { replyHeader, requestHeader, watcherEvent } from './protocol/messages.ts';
export type { MultiOperation, MultiResult } from './protocol/multi.ts';
export type { RequestKind } from './protocol/requests.ts';
export { requests } from './protocol/requests.ts';
