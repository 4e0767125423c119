/**
 * The request of each call, and how its reply is read. These objects are made once, so a call makes
 * only its request and its promise.
 */
import type { Chroot } from './paths.ts';
import type {
  GetAclResponse,
  GetAllChildrenNumberResponse,
  GetChildren2Response,
  GetDataResponse,
  GetEphemeralsRequest,
  GetEphemeralsResponse,
  Nothing,
  PathMessage,
  ReadRequest,
  ReconfigRequest,
  SetAclRequest,
  SetDataRequest,
  StatResponse,
  VersionedPath,
  WatcherTypeRequest,
  WhoAmIResponse,
} from './protocol/messages.ts';
import { requests } from './protocol/requests.ts';
import type {
  AclReply,
  ChildrenReply,
  CountReply,
  EphemeralsReply,
  IdentitiesReply,
  MaybeStatReply,
  Reply,
  StatReply,
} from './replies.ts';
import { GetReply } from './replies.ts';
import type { AnswerOf, Operation } from './session/pending-request.ts';

const toReply = (_: unknown, { zxid, sentAt }: AnswerOf): Reply => ({ zxid, sentAt });
const toGetReply = ({ data, stat }: GetDataResponse, answer: AnswerOf): GetReply =>
  new GetReply(data, stat, answer);
const toStatReply = ({ stat }: StatResponse, { zxid, sentAt }: AnswerOf): StatReply => ({
  stat,
  zxid,
  sentAt,
});

export const getData: Operation<ReadRequest, GetDataResponse, GetReply> = {
  kind: requests.getData,
  complete: toGetReply,
};
export const setData: Operation<SetDataRequest, StatResponse, StatReply> = {
  kind: requests.setData,
  complete: toStatReply,
};
export const deleteNode: Operation<VersionedPath, Nothing, Reply> = {
  kind: requests.delete,
  complete: toReply,
};
export const exists: Operation<ReadRequest, StatResponse, MaybeStatReply> = {
  kind: requests.exists,
  complete: toStatReply,
  absent: ({ zxid, sentAt }) => ({ stat: null, zxid, sentAt }),
};
export const getChildren: Operation<ReadRequest, GetChildren2Response, ChildrenReply> = {
  kind: requests.getChildren2,
  complete: ({ children, stat }, { zxid, sentAt }) => ({ children, stat, zxid, sentAt }),
};
export const getAllChildrenNumber: Operation<
  PathMessage,
  GetAllChildrenNumberResponse,
  CountReply
> = {
  kind: requests.getAllChildrenNumber,
  complete: ({ totalNumber }, { zxid, sentAt }) => ({ count: totalNumber, zxid, sentAt }),
};
/** Gives only the paths below the chroot. */
export function getEphemerals(
  chroot: Chroot,
): Operation<GetEphemeralsRequest, GetEphemeralsResponse, EphemeralsReply> {
  return {
    kind: requests.getEphemerals,
    complete: ({ ephemerals }, { zxid, sentAt }) => ({
      // The server compares strings: "/ab" begins with "/a".
      paths: ephemerals.filter((path) => chroot.has(path)).map((path) => chroot.toUser(path)),
      zxid,
      sentAt,
    }),
  };
}
export const sync: Operation<PathMessage, PathMessage, Reply> = {
  kind: requests.sync,
  complete: toReply,
};
export const getAcl: Operation<PathMessage, GetAclResponse, AclReply> = {
  kind: requests.getAcl,
  complete: ({ acl, stat }, { zxid, sentAt }) => ({ acl, stat, zxid, sentAt }),
};
export const setAcl: Operation<SetAclRequest, StatResponse, StatReply> = {
  kind: requests.setAcl,
  complete: toStatReply,
};
export const whoAmI: Operation<Nothing, WhoAmIResponse, IdentitiesReply> = {
  kind: requests.whoAmI,
  complete: ({ identities }, { zxid, sentAt }) => ({ identities, zxid, sentAt }),
};
export const reconfigure: Operation<ReconfigRequest, GetDataResponse, GetReply> = {
  kind: requests.reconfig,
  complete: toGetReply,
};
export const hasWatch: Operation<WatcherTypeRequest, Nothing, boolean> = {
  kind: requests.checkWatches,
  complete: () => true,
  noWatcher: () => false,
};
