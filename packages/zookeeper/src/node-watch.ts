import type { CallOptions } from './arguments.ts';
import type { Caller } from './caller.ts';
import { checkPath } from './paths.ts';
import { requests } from './protocol/requests.ts';
import type { ChildrenReply } from './replies.ts';
import { GetReply } from './replies.ts';
import type { AnswerOf } from './session/pending-request.ts';
import type { LostReason, OneShot, OneShotKind, RawEvent } from './session/watch-registry.ts';

/** What a one-shot watch tells. Whatever it is: read again. */
export type WatchEvent =
  | {
      readonly type: 'created' | 'deleted' | 'changed' | 'children-changed';
      readonly path: string;
      /** The transaction, from servers of 3.9 and later. */
      readonly zxid: bigint | undefined;
    }
  | {
      /** No change will be told, though there may be one. */
      readonly type: 'lost';
      readonly path: string;
      readonly reason: LostReason;
    };

/** What was read, and a promise of the next change after it. None between the two is missed. */
export class NodeWatch<Value> implements OneShot {
  readonly value: Value;
  /** Resolves once, and never rejects. */
  readonly changed: Promise<WatchEvent>;
  readonly path: string;
  readonly #caller: Caller;
  readonly #kind: OneShotKind;
  #resolve: ((event: WatchEvent) => void) | undefined;

  constructor(caller: Caller, kind: OneShotKind, path: string, value: Value) {
    this.#caller = caller;
    this.#kind = kind;
    this.path = path;
    this.value = value;
    this.changed = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    caller.session.watches.add(kind, caller.chroot.toServer(path), this);
  }

  /** Stops watching: `changed` resolves with `lost`, reason `cancelled`. Idempotent. */
  cancel(): void {
    if (this.#resolve === undefined) return;
    const { session, chroot } = this.#caller;
    session.watches.remove(this.#kind, chroot.toServer(this.path), this);
    this.fire('cancelled');
  }

  /** @internal */
  fire(event: RawEvent | LostReason): void {
    this.#resolve?.(
      typeof event === 'string'
        ? { type: 'lost', path: this.path, reason: event }
        : { type: event.type, path: this.path, zxid: event.zxid },
    );
    this.#resolve = undefined;
  }
}

/** The data of a node, or undefined while it does not exist, and the next change of either. */
export async function watchNode(
  caller: Caller,
  path: string,
  options: CallOptions | undefined,
): Promise<NodeWatch<GetReply | undefined>> {
  checkPath(path);
  for (;;) {
    const present = await readAndWatch(caller, path, requests.getData, options, {
      complete: ({ data, stat }, answer) =>
        new NodeWatch<GetReply | undefined>(caller, 'data', path, new GetReply(data, stat, answer)),
      absent: () => undefined,
    });
    if (present !== undefined) return present;
    const absent = await readAndWatch(caller, path, requests.exists, options, {
      // It was made in between; a watch of its data is set now, which the next read will use.
      complete: () => undefined,
      absent: () => new NodeWatch<GetReply | undefined>(caller, 'exist', path, undefined),
    });
    if (absent !== undefined) return absent;
  }
}

/** The children of a node and their next change. Rejects NoNodeError when there is no such node. */
export async function watchChildren(
  caller: Caller,
  path: string,
  options: CallOptions | undefined,
): Promise<NodeWatch<ChildrenReply>> {
  checkPath(path);
  return readAndWatch(caller, path, requests.getChildren2, options, {
    complete: ({ children, stat }, { zxid, sentAt }) =>
      new NodeWatch(caller, 'child', path, { children, stat, zxid, sentAt }),
  });
}

/** A read that sets a watch, unless it can ride on a persistent one (see WatchRegistry). */
function readAndWatch<Response, Result>(
  caller: Caller,
  path: string,
  kind: (typeof requests)[keyof typeof requests] & {
    readonly response: { read(...from: never[]): Response };
  },
  options: CallOptions | undefined,
  handlers: {
    complete(response: Response, answer: AnswerOf): Result;
    absent?(answer: AnswerOf): Result;
  },
): Promise<Result> {
  const { watches } = caller.session;
  const serverPath = caller.chroot.toServer(path);
  const ride = watches.beginRead(serverPath);
  const end = () => {
    if (ride !== undefined) watches.endRide(serverPath, ride);
  };
  const { absent } = handlers;
  return caller.call(
    // biome-ignore lint/suspicious/noExplicitAny: the three reads share their request
    kind as any,
    path,
    { path: serverPath, watch: ride === undefined },
    {
      complete(response: Response, answer: AnswerOf) {
        const result = handlers.complete(response, answer);
        end();
        return result;
      },
      ...(absent === undefined
        ? {}
        : {
            absent(answer: AnswerOf) {
              const result = absent(answer);
              end();
              return result;
            },
          }),
      failed: end,
    },
    options,
  );
}
