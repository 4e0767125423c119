import type { CallOptions } from './arguments.ts';
import { checkOptions } from './arguments.ts';
import { boundsOf } from './bounds.ts';
import type { Caller } from './caller.ts';
import { exists } from './operations.ts';
import { checkPath } from './paths.ts';
import { opcodes } from './protocol/constants.ts';
import type { ReadRequest, StatResponse } from './protocol/messages.ts';
import { requests } from './protocol/requests.ts';
import type { ChildrenReply, MaybeStatReply } from './replies.ts';
import { GetReply } from './replies.ts';
import type { Operation } from './session/pending-request.ts';
import type { OneShot, OneShotKind, WatchEvent } from './session/watch-registry.ts';

export type { WatchEvent };

/**
 * A value that was read, and a promise of the next change after it. No change between the two is
 * missed.
 */
export class NodeWatch<Value> {
  /** The path as the caller gave it. */
  readonly path: string;
  /** The value that was read. */
  readonly value: Value;
  /**
   * Resolves once, with the change, or with `lost` if none can be reported. Never rejects. In both
   * cases read again.
   */
  readonly changed: Promise<WatchEvent>;
  /**
   * Stops watching: `changed` resolves with `lost`, reason `cancelled`. The watch is removed from
   * the server too (3.5), unless another one needs it. Idempotent. You may keep this function
   * without the object: it keeps neither the object nor the value in memory.
   */
  readonly cancel: () => void;

  /** Use `client.watch`, `client.watchStat` or `client.watchChildren`. */
  constructor(caller: Caller, kind: OneShotKind, path: string, value: Value) {
    const { watches } = caller.session;
    const serverPath = caller.chroot.toServer(path);
    this.path = path;
    this.value = value;
    // Only the promise's own function is kept until the event comes. The value and this object can
    // be freed, unless the caller keeps them.
    let listener: OneShot = () => {};
    this.changed = new Promise((resolve) => {
      listener = resolve;
    });
    watches.add(kind, serverPath, listener);
    this.cancel = () => watches.cancel(kind, serverPath, listener);
  }
}

/**
 * Reads the data of a node, or undefined while it does not exist, and watches for the next change
 * of either.
 */
export async function watchNode(
  caller: Caller,
  path: string,
  options: CallOptions | undefined,
): Promise<NodeWatch<GetReply | undefined>> {
  checkOptions('watch', options);
  checkPath(path);
  const { signal, timeoutMs = caller.session.retryTimeoutMs } = options ?? {};
  const bounds = boundsOf(caller, { signal, timeoutMs }, false);
  for (;;) {
    const present = await readAndWatch(caller, path, bounds(), {
      watches: 'data',
      kind: requests.getData,
      complete: ({ data, stat }, answer) =>
        new NodeWatch<GetReply | undefined>(caller, 'data', path, new GetReply(data, stat, answer)),
      absent: () => undefined,
    });
    if (present !== undefined) return present;
    const absent = await readAndWatch(caller, path, bounds(), {
      watches: 'exist',
      kind: requests.exists,
      // The node was made in between, so read it.
      complete: () => undefined,
      absent: () => new NodeWatch<GetReply | undefined>(caller, 'exist', path, undefined),
    });
    if (absent !== undefined) return absent;
  }
}

/**
 * Reads the stat of a node, and watches for the next change of its data or existence. One request
 * in both cases, where `watchNode` needs two for a node that does not exist.
 */
export async function watchStat(
  caller: Caller,
  path: string,
  options: CallOptions | undefined,
): Promise<NodeWatch<MaybeStatReply>> {
  checkOptions('watchStat', options);
  checkPath(path);
  // A watch of existence that is set again on the next connection reports a node that is there as
  // created. So that of a node that is there is kept as a watch of data, as the server does.
  const watchAs = (kind: 'data' | 'exist', value: MaybeStatReply) =>
    new NodeWatch(caller, kind, path, value);
  return readAndWatch<StatResponse, NodeWatch<MaybeStatReply>>(caller, path, options, {
    watches: 'exist',
    kind: requests.exists,
    complete: (response, answer) => watchAs('data', exists.complete(response, answer)),
    absent: ({ zxid, sentAt }) => watchAs('exist', { stat: null, zxid, sentAt }),
  });
}

/** Reads the children of a node, and watches for their next change. Rejects with NoNodeError. */
export async function watchChildren(
  caller: Caller,
  path: string,
  options: CallOptions | undefined,
): Promise<NodeWatch<ChildrenReply>> {
  checkOptions('watchChildren', options);
  checkPath(path);
  return readAndWatch(caller, path, options, {
    watches: 'child',
    kind: requests.getChildren2,
    complete: ({ children, stat }, { zxid, sentAt }) =>
      new NodeWatch(caller, 'child', path, { children, stat, zxid, sentAt }),
  });
}

interface WatchingRead<Response, Result> extends Operation<ReadRequest, Response, Result> {
  readonly watches: OneShotKind;
}

/** A read that sets a watch, unless it can rely on a persistent one (see WatchRegistry). */
function readAndWatch<Response, Result>(
  caller: Caller,
  path: string,
  options: CallOptions | undefined,
  { watches: watchKind, kind, complete, absent }: WatchingRead<Response, Result>,
): Promise<Result> {
  const { watches } = caller.session;
  const serverPath = caller.chroot.toServer(path);
  const read = watches.beginRead(watchKind, serverPath);
  const watching: Operation<ReadRequest, Response, Result> = {
    kind,
    complete(response, answer) {
      const result = complete(response, answer);
      watches.endRead(read, true);
      return result;
    },
    failed: (mayBeDone) => watches.endRead(read, mayBeDone),
  };
  if (absent !== undefined) {
    watching.absent = (answer) => {
      const result = absent(answer);
      // Of all reads only `exists` sets a watch on a node that does not exist.
      watches.endRead(read, kind.opcode === opcodes.exists);
      return result;
    };
  }
  const body = { path: serverPath, watch: read.ride === undefined };
  return caller.call(watching, path, body, options);
}
