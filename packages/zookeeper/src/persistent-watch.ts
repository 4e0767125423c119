/// <reference lib="esnext.disposable" preserve="true" />
import type { CallOptions } from './arguments.ts';
import { checkCount, checkOptions, namesOf } from './arguments.ts';
import type { Caller } from './caller.ts';
import { EventBuffer } from './event-buffer.ts';
import { addWatchModes } from './protocol/constants.ts';
import { requests } from './protocol/requests.ts';
import type {
  GapReason,
  PersistentListener,
  RawEvent,
  RawEventType,
} from './session/watch-registry.ts';

/** An event of a persistent watch: a change, or a gap in the changes. */
export type PersistentEvent =
  | {
      readonly type: RawEventType;
      readonly path: string;
      /** The zxid of the change. Only servers of 3.9 and later report it. */
      readonly zxid?: bigint;
    }
  | {
      /**
       * Changes may have been missed, so read the state again. The reason is a reconnect, a new
       * session, or more than `maxBuffered` events that waited to be taken.
       */
      readonly type: 'gap';
      readonly reason: GapReason | 'overflow';
    };

/** Options of `addWatch`. */
export interface AddWatchOptions extends CallOptions {
  /** Also reports changes of all descendants, but no `children-changed`. Default false. */
  readonly recursive?: boolean | undefined;
  /** How many events may wait to be taken. Default 10,000. More are replaced by one `gap`. */
  readonly maxBuffered?: number | undefined;
}

const addWatchOptions = namesOf<AddWatchOptions>({
  ...{ signal: true, timeoutMs: true, recursive: true, maxBuffered: true },
});

/**
 * A watch that stays, over reconnects and sessions, until `close`. Iterate over it: events come in
 * the order in which the server applied the changes. The iteration ends with `close`, with the
 * client, or when `removeWatches` removes the watch.
 */
export class PersistentWatch implements AsyncIterable<PersistentEvent>, AsyncDisposable {
  /** The path as the caller gave it. */
  readonly path: string;
  /** Whether it also reports changes of descendants. */
  readonly recursive: boolean;
  readonly #caller: Caller;
  readonly #buffer: EventBuffer<PersistentEvent>;
  readonly #listener: PersistentListener;

  /** Use `client.addWatch`. */
  constructor(caller: Caller, path: string, recursive: boolean, maxBuffered: number) {
    this.#caller = caller;
    this.path = path;
    this.recursive = recursive;
    this.#buffer = new EventBuffer<PersistentEvent>(maxBuffered, () => [
      { type: 'gap', reason: 'overflow' },
    ]);
    const serverPath = caller.chroot.toServer(path);
    this.#listener = {
      onEvent: (event: RawEvent) => {
        // The server's watch may be recursive only because of another watch on the same path.
        if (recursive ? event.type === 'children-changed' : event.path !== serverPath) return;
        const { type, zxid } = event;
        const userPath = caller.chroot.toUser(event.path);
        this.#buffer.push(
          zxid === undefined ? { type, path: userPath } : { type, path: userPath, zxid },
        );
      },
      onGap: (reason) => this.#buffer.push({ type: 'gap', reason }),
      onLost: () => this.#buffer.end(),
    };
  }

  /** Ends the iteration, and removes the watch from the server unless others use it. Idempotent. */
  close(): void {
    this.#buffer.end();
    const { session, chroot } = this.#caller;
    session.watches.removePersistent(chroot.toServer(this.path), this.#listener);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<PersistentEvent, void, void> {
    for (;;) {
      const event = await this.#buffer.next();
      if (event === undefined) return;
      yield event;
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.close();
    return Promise.resolve();
  }

  /** @internal */
  static async open(
    caller: Caller,
    path: string,
    options: AddWatchOptions,
  ): Promise<PersistentWatch> {
    checkOptions('addWatch', options, addWatchOptions);
    const serverPath = caller.serverPath(path);
    const { recursive = false, maxBuffered = 10_000 } = options;
    checkCount('maxBuffered', maxBuffered);
    const watch = new PersistentWatch(caller, path, recursive, maxBuffered);
    const { watches } = caller.session;
    const asRecursive = watches.addPersistent(serverPath, recursive, watch.#listener);
    const mode = asRecursive ? addWatchModes.persistentRecursive : addWatchModes.persistent;
    await caller.call(
      {
        kind: requests.addWatch,
        complete: () => undefined,
        failed: () => {
          // The request may have been sent.
          const unused = watches.refusePersistent(serverPath, watch.#listener);
          if (unused) caller.session.removeFromServer(serverPath, 'any');
        },
      },
      path,
      { path: serverPath, mode },
      options,
    );
    return watch;
  }
}
