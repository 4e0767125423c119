/** The answer of a server to each request. */

import type {
  AddWatchRequest,
  CreateRequest,
  CreateTtlRequest,
  GetEphemeralsRequest,
  MultiOperation,
  MultiResult,
  PathMessage,
  ReadRequest,
  SetAclRequest,
  SetDataRequest,
  SetWatches2Request,
  SetWatchesRequest,
  VersionedPath,
  WatcherTypeRequest,
} from '@incumbent/zookeeper/internal';
import { addWatchModes, errorCodes, opcodes, watcherTypes } from '@incumbent/zookeeper/internal';
import type { Identity } from './acl.ts';
import { checkAcl, maskAcl, perms, userOf } from './acl.ts';
import type { DataTree } from './data-tree.ts';
import { statOf } from './data-tree.ts';
import { Refusal } from './refusal.ts';
import type { Replica, State } from './state.ts';
import { codeOf } from './state.ts';
import { remove, setAcl, setData } from './transactions/changes.ts';
import { create } from './transactions/create.ts';
import { multi } from './transactions/multi.ts';
import type { Watcher, Watches } from './watches.ts';

/** The client that asks, and the server that it asks. */
export interface Asker {
  readonly state: State;
  readonly replica: Replica;
  /** As this server sees them: it can lag behind the state. */
  readonly tree: DataTree;
  readonly zxid: bigint;
  readonly watches: Watches;
  readonly watcher: Watcher;
  readonly sessionId: bigint;
  readonly identities: readonly Identity[];
}

// biome-ignore lint/suspicious/noExplicitAny: each opcode has a body of its own
type Answer = (asker: Asker, request: any) => unknown;

const writeAnswers: readonly (readonly [number, Answer])[] = [
  [opcodes.create, created(opcodes.create)],
  [opcodes.create2, created(opcodes.create2)],
  [opcodes.createContainer, created(opcodes.createContainer)],
  [opcodes.createTtl, created(opcodes.createTtl)],
  [
    opcodes.delete,
    (asker, request: VersionedPath) => {
      asker.state.write(asker, (transaction) => remove(transaction, request));
      return {};
    },
  ],
  [
    opcodes.setData,
    (asker, request: SetDataRequest) => ({
      stat: asker.state.write(asker, (transaction) => setData(transaction, request)),
    }),
  ],
  [
    opcodes.setAcl,
    (asker, request: SetAclRequest) => ({
      stat: asker.state.write(asker, (transaction) => setAcl(transaction, request)),
    }),
  ],
  [
    opcodes.multi,
    (asker, operations: readonly MultiOperation[]) =>
      asker.state.write(asker, (transaction) => multi(transaction, operations)),
  ],
  [
    opcodes.reconfig,
    (asker) =>
      asker.state.write(asker, () => {
        throw new Refusal(errorCodes.reconfigDisabled);
      }),
  ],
  [
    opcodes.closeSession,
    (asker) => {
      asker.state.endSession(asker.sessionId, asker.replica);
      return {};
    },
  ],
];

const readAnswers: readonly (readonly [number, Answer])[] = [
  [opcodes.ping, () => ({})],
  [opcodes.sync, (_, { path }: PathMessage) => ({ path })],
  [
    opcodes.exists,
    (asker, { path, watch }: ReadRequest) => {
      if (path.includes('\0')) throw new Refusal(errorCodes.badArguments);
      // Also on an absent node: it waits for the node to come.
      if (watch) asker.watches.watchData(path, asker.watcher);
      return { stat: statOf(asker.tree.need(path)) };
    },
  ],
  [opcodes.getData, getData],
  [opcodes.getChildren, getChildren],
  [opcodes.getChildren2, getChildren],
  [
    opcodes.getAcl,
    (asker, { path }: PathMessage) => {
      const node = asker.tree.need(path);
      checkAcl(node.acl, perms.read | perms.admin, asker.identities);
      const acl = mayAdminister(asker, path) ? node.acl : maskAcl(node.acl);
      return { acl, stat: statOf(node) };
    },
  ],
  [
    opcodes.getAllChildrenNumber,
    (asker, { path }: PathMessage) => {
      checkAcl(asker.tree.need(path).acl, perms.read, asker.identities);
      return { totalNumber: asker.tree.countBelow(path) };
    },
  ],
  [
    opcodes.getEphemerals,
    (asker, { prefixPath }: GetEphemeralsRequest) => {
      const all = asker.tree.ephemeralsOf(asker.sessionId);
      const prefix = prefixPath.trim() === '/' ? '' : prefixPath.trim();
      return { ephemerals: all.filter((path) => path.startsWith(prefix)) };
    },
  ],
  [
    opcodes.whoAmI,
    ({ identities }) => ({
      identities: identities.map((one) => ({ scheme: one.scheme, user: userOf(one) })),
    }),
  ],
  [
    opcodes.multiRead,
    (asker, operations: readonly MultiOperation[]) =>
      operations.map((operation) => readItem(asker, operation)),
  ],
];

const watchAnswers: readonly (readonly [number, Answer])[] = [
  [
    opcodes.addWatch,
    (asker, { path, mode }: AddWatchRequest) => {
      if (!Object.values<number>(addWatchModes).includes(mode)) malformed();
      asker.watches.add(path, asker.watcher, mode);
      return { error: 0 };
    },
  ],
  [
    opcodes.removeWatches,
    (asker, { path, type }: WatcherTypeRequest) => {
      if (!Object.values<number>(watcherTypes).includes(type)) malformed();
      if (!asker.watches.remove(path, asker.watcher, type)) noWatcher();
      return {};
    },
  ],
  [
    opcodes.checkWatches,
    (asker, { path, type }: WatcherTypeRequest) => {
      if (!Object.values<number>(watcherTypes).includes(type)) malformed();
      if (!asker.watches.contains(path, type)) noWatcher();
      return {};
    },
  ],
  [
    opcodes.setWatches,
    (asker, request: SetWatchesRequest) => {
      const none = { persistentWatches: [], persistentRecursiveWatches: [] };
      asker.watches.restore({ ...request, ...none }, asker.tree, asker.zxid, asker.watcher);
      return {};
    },
  ],
  [
    opcodes.setWatches2,
    (asker, request: SetWatches2Request) => {
      asker.watches.restore(request, asker.tree, asker.zxid, asker.watcher);
      return {};
    },
  ],
];

/** By opcode. The body of the reply comes back, or a Refusal is thrown. */
export const answers: ReadonlyMap<number, Answer> = new Map([
  ...writeAnswers,
  ...readAnswers,
  ...watchAnswers,
]);

function created(opcode: number): Answer {
  return (asker, request: CreateRequest & Partial<CreateTtlRequest>) =>
    asker.state.write(asker, (transaction) =>
      create(transaction, opcode, { ...request, ttlMs: request.ttlMs ?? -1 }),
    );
}

function getData(asker: Asker, { path, watch }: ReadRequest): unknown {
  const node = asker.tree.need(path);
  checkAcl(node.acl, perms.read, asker.identities);
  if (watch) asker.watches.watchData(path, asker.watcher);
  return { data: node.data, stat: statOf(node) };
}

function getChildren(asker: Asker, { path, watch }: ReadRequest): unknown {
  const node = asker.tree.need(path);
  checkAcl(node.acl, perms.read, asker.identities);
  if (watch) asker.watches.watchChildren(path, asker.watcher);
  return { children: [...node.children], stat: statOf(node) };
}

function readItem(asker: Asker, operation: MultiOperation): MultiResult {
  const { opcode, body } = operation;
  const read = opcode === opcodes.getData ? getData : getChildren;
  if (opcode !== opcodes.getData && opcode !== opcodes.getChildren) malformed();
  try {
    return { opcode, body: read(asker, body as ReadRequest) } as MultiResult;
  } catch (error) {
    return { opcode: opcodes.error, error: codeOf(error) };
  }
}

function mayAdminister(asker: Asker, path: string): boolean {
  try {
    checkAcl(asker.tree.need(path).acl, perms.admin, asker.identities);
    return true;
  } catch {
    return false;
  }
}

function malformed(): never {
  throw new Refusal(errorCodes.marshallingError);
}

function noWatcher(): never {
  throw new Refusal(errorCodes.noWatcher);
}
