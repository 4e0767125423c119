import type { Clock, Timer } from '../../base/clock.ts';
import type { CallStream, EtcdCalls } from './calls.ts';
import { ClientClosedError } from './errors.ts';
import type { Event, WatchCreateRequest, WatchRequest, WatchResponse } from './messages.ts';
import { watch } from './methods.ts';

/** The keys to watch, and the first revision to report. All changes from then on are reported. */
export type WatchSpec = Partial<Omit<WatchCreateRequest, 'watchId'>> & {
  readonly startRevision: bigint;
};

export interface FirstEvents {
  /**
   * Resolves with the first events. Undefined when they cannot be told: forgotten by the store, not
   * permitted, or the clients were closed. Never rejects.
   */
  readonly events: Promise<readonly Event[] | undefined>;
  cancel(): void;
}

interface Watcher {
  readonly spec: WatchSpec;
  readonly resolve: (events: readonly Event[] | undefined) => void;
  /** True: it was created on the present stream. */
  isCreated: boolean;
}

const shortestPauseMs = 50;
const longestPauseMs = 2_000;
/** A watcher that is refused looks again, and would be refused again. */
const refusedPauseMs = 1_000;

/**
 * All watches of one process on one stream. When that breaks, another stream goes on from the
 * same revisions. So no watcher is woken for it, and nothing is missed. The stream is there while
 * there are watchers.
 */
export class WatchHub {
  readonly #calls: EtcdCalls;
  readonly #clock: Clock;
  readonly #tell: (event: 'suspended' | 'restored') => void;
  readonly #onTrouble: (what: string, error: unknown) => void;
  /** By the number that a watcher has on every stream. No number is given twice. */
  readonly #watchers: Map<bigint, Watcher> = new Map();
  #lastId = 0n;
  #stream: CallStream<WatchRequest> | undefined;
  #opening: AbortController | undefined;
  #pauseMs = shortestPauseMs;
  /** Streams that have failed since something was heard. */
  #failures = 0;
  #isBroken = false;
  #timer: Timer | undefined;

  constructor(
    calls: EtcdCalls,
    clock: Clock,
    tell: (event: 'suspended' | 'restored') => void,
    onTrouble: (what: string, error: unknown) => void,
  ) {
    this.#calls = calls;
    this.#clock = clock;
    this.#tell = tell;
    this.#onTrouble = onTrouble;
    calls.onMoved(() => this.#move());
  }

  /** True while there are watchers and no member says anything. */
  get isBroken(): boolean {
    return this.#isBroken;
  }

  first(spec: WatchSpec): FirstEvents {
    this.#lastId += 1n;
    const id = this.#lastId;
    const events = new Promise<readonly Event[] | undefined>((resolve) => {
      this.#watchers.set(id, { spec, resolve, isCreated: false });
    });
    if (this.#stream === undefined) this.#open();
    else this.#stream.write(createRequest(id, spec));
    return { events, cancel: () => this.#forget(id) };
  }

  #forget(id: bigint): void {
    if (!this.#watchers.delete(id)) return;
    if (this.#watchers.size > 0) this.#stream?.write({ cancel: { watchId: id } });
    else this.#rest();
  }

  #rest(): void {
    this.#close();
    this.#failures = 0;
    this.#isBroken = false;
  }

  #open(): void {
    if (this.#opening !== undefined || this.#timer !== undefined) return;
    const opening = new AbortController();
    this.#opening = opening;
    const isMine = () => this.#opening === opening;
    const client = this.#calls.current;
    const listener = {
      onMessage: (response: WatchResponse) => {
        if (isMine()) this.#heard(response);
      },
      onEnd: (error: unknown) => {
        if (isMine()) this.#fail(this.#stream?.client ?? client, error);
      },
    };
    void (async () => {
      try {
        const stream = await this.#calls.open(watch, listener, opening.signal);
        if (!isMine()) return stream.cancel();
        this.#stream = stream;
        for (const [id, watcher] of this.#watchers) {
          watcher.isCreated = false;
          stream.write(createRequest(id, watcher.spec));
        }
      } catch (error) {
        if (isMine()) this.#fail(client, error);
      }
    })();
  }

  #close(): void {
    this.#opening?.abort(new Error('closed'));
    this.#opening = undefined;
    this.#stream?.cancel();
    this.#stream = undefined;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #fail(client: number, error: unknown): void {
    this.#close();
    if (error instanceof ClientClosedError) {
      for (const { resolve } of this.#watchers.values()) resolve(undefined);
      this.#watchers.clear();
      return;
    }
    this.#onTrouble('watching', error);
    this.#calls.moveFrom(client);
    this.#timer = this.#clock.setTimer(
      () => {
        this.#timer = undefined;
        if (this.#watchers.size > 0) this.#open();
      },
      this.#pauseMs,
      true,
    );
    this.#pauseMs = Math.min(2 * this.#pauseMs, longestPauseMs);
    this.#failures += 1;
    if (this.#isBroken || this.#failures < this.#calls.members) return;
    this.#isBroken = true;
    // An observer has no lease that would tell it.
    this.#tell('suspended');
  }

  /** Another call has found that another client does better. */
  #move(): void {
    if (this.#stream === undefined || this.#stream.client === this.#calls.current) return;
    this.#close();
    if (this.#watchers.size > 0) this.#open();
  }

  #heard(response: WatchResponse): void {
    const { watchId, created, canceled, cancelReason, compactRevision, events } = response;
    this.#pauseMs = shortestPauseMs;
    this.#failures = 0;
    if (this.#isBroken) {
      this.#isBroken = false;
      this.#tell('restored');
    }
    const watcher = this.#watchers.get(watchId);
    if (watcher === undefined) {
      // Servers before 3.5 do not say which one they refuse.
      if (created && canceled) this.#refuse(cancelReason);
      return;
    }
    if (created) watcher.isCreated = true;
    if (!canceled && events.length === 0) return;
    this.#watchers.delete(watchId);
    if (!canceled && this.#watchers.size > 0) this.#stream?.write({ cancel: { watchId } });
    if (this.#watchers.size === 0) this.#rest();
    if (!canceled) watcher.resolve(events);
    // The wanted revision is forgotten, so there is something new. Another look finds it.
    else if (compactRevision > 0n) watcher.resolve(undefined);
    else this.#refused(watcher, cancelReason);
  }

  #refused({ resolve }: Watcher, reason: string): void {
    const error = new Error(`a watch was refused: ${reason}`);
    this.#clock.setTimer(() => resolve(undefined), refusedPauseMs, true);
    if (this.#stream !== undefined && this.#calls.usesTokens) {
      // The server may have forgotten the token that the stream was opened with.
      this.#calls.forgetToken();
      this.#fail(this.#stream.client, error);
    } else {
      this.#onTrouble('watching', error);
    }
  }

  /**
   * The server refused one of the watches that are not made yet. All of those have to look again.
   */
  #refuse(reason: string): void {
    for (const [id, watcher] of [...this.#watchers]) {
      if (watcher.isCreated) continue;
      this.#forget(id);
      this.#refused(watcher, reason);
    }
  }
}

function createRequest(watchId: bigint, spec: WatchSpec): Partial<WatchRequest> {
  return { create: { ...spec, watchId } };
}
