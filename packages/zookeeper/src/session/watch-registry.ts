/**
 * Which watches a session has, by path on the server, and whom to tell.
 *
 * A server up to 3.8 knows one mode for each path and session (ZOOKEEPER-4466): a one-shot watch
 * set on a path that has a persistent one turns that into a one-shot. So no one-shot is sent for
 * such a path. It *rides* on the persistent watch instead, which stays on the server until its last
 * rider has gone. A recursive watch does not tell of changed children; they are derived from the
 * creation and deletion of a child.
 */
import type { WatchLists } from './handshake.ts';

/** A change on the server. Paths as on the server. */
export type RawEventType = 'created' | 'deleted' | 'changed' | 'children-changed';
export interface RawEvent {
  readonly type: RawEventType;
  readonly path: string;
  /** The transaction, from servers that say it (3.9). */
  readonly zxid: bigint | undefined;
}

/** Why a one-shot watch will never tell of a change. */
export type LostReason = 'expired' | 'closed' | 'cancelled' | 'removed' | 'reconnected';

/** What a one-shot watch tells. Whatever it is: read again. */
export type WatchEvent =
  | {
      readonly type: RawEventType;
      readonly path: string;
      /** The transaction; only servers of 3.9 and later say it. */
      readonly zxid?: bigint;
    }
  | {
      /** No change will be told, though there may be one. */
      readonly type: 'lost';
      readonly path: string;
      readonly reason: LostReason;
    };

/**
 * Called once: with the change, or with why none will be told. A bare function, such as a promise's
 * own: there may be very many of them.
 */
export type OneShot = (event: WatchEvent) => void;

export type OneShotKind = 'data' | 'exist' | 'child';

export type GapReason = 'reconnected' | 'expired';

export interface PersistentListener {
  onEvent(event: RawEvent): void;
  /** Changes may have been missed; events from now on are told. */
  onGap(reason: GapReason): void;
  /** Nothing more will be told. */
  onLost(reason: LostReason): void;
}

/** A one-shot read that relies on a persistent watch. */
export interface Ride {
  /** Reads under way that do. */
  riders: number;
}

interface PersistentEntry extends Ride {
  recursive: boolean;
  readonly listeners: Set<PersistentListener>;
}

const kinds: readonly OneShotKind[] = ['data', 'exist', 'child'];

type OneShots = Map<string, OneShot | Set<OneShot>>;

export class WatchRegistry {
  readonly #oneShots: Readonly<Record<OneShotKind, OneShots>> = {
    data: new Map(),
    exist: new Map(),
    child: new Map(),
  };
  readonly #persistent: Map<string, PersistentEntry> = new Map();
  readonly #toUser: (path: string) => string;
  readonly #onUnused: (path: string) => void;

  /**
   * @param toUser the path that a listener of a one-shot knows
   * @param onUnused told of a path whose persistent watch nobody needs any more
   */
  constructor(toUser: (path: string) => string, onUnused: (path: string) => void) {
    this.#toUser = toUser;
    this.#onUnused = onUnused;
  }

  /** Paths with watches, each kind for itself. */
  get size(): number {
    const { data, exist, child } = this.#oneShots;
    return data.size + exist.size + child.size + this.#persistent.size;
  }

  lists(): WatchLists {
    const persistent: string[] = [];
    const persistentRecursive: string[] = [];
    for (const [path, entry] of this.#persistent) {
      (entry.recursive ? persistentRecursive : persistent).push(path);
    }
    const { data, exist, child } = this.#oneShots;
    // Setting a one-shot beside a persistent one would replace it.
    const alone = (paths: OneShots) =>
      this.#persistent.size === 0
        ? paths.keys()
        : [...paths.keys()].filter((path) => !this.#persistent.has(path));
    return {
      data: alone(data),
      exist: alone(exist),
      child: alone(child),
      persistent,
      persistentRecursive,
    };
  }

  // One-shot ----------------------------------------------------------------------------------------

  /**
   * Before a read that is to set a one-shot watch.
   * @returns undefined: set it on the server. Otherwise not, and `endRide` must follow its end
   */
  beginRead(path: string): Ride | undefined {
    const entry = this.#persistent.get(path);
    if (entry !== undefined) entry.riders += 1;
    return entry;
  }

  /** The read that `beginRead` let ride has ended. */
  endRide(path: string, ride: Ride): void {
    ride.riders -= 1;
    const entry = this.#persistent.get(path);
    // The watch that it relied on is not there any more: nothing would be told.
    if (entry !== ride) for (const kind of kinds) this.#lose(kind, path, 'removed');
    else this.#dropIfUnused(path, entry);
  }

  add(kind: OneShotKind, path: string, listener: OneShot): void {
    const map = this.#oneShots[kind];
    const present = map.get(path);
    if (present === undefined) map.set(path, listener);
    else if (present instanceof Set) present.add(listener);
    else map.set(path, new Set([present, listener]));
  }

  /** Takes a listener away, and tells it so, unless it was called already. */
  cancel(kind: OneShotKind, path: string, listener: OneShot): void {
    const map = this.#oneShots[kind];
    const present = map.get(path);
    if (present === listener) map.delete(path);
    else if (!(present instanceof Set && present.delete(listener))) return;
    else if (present.size === 0) map.delete(path);
    listener({ type: 'lost', path: this.#toUser(path), reason: 'cancelled' });
    const entry = this.#persistent.get(path);
    if (entry !== undefined) this.#dropIfUnused(path, entry);
  }

  // Persistent ----------------------------------------------------------------------------------------

  /**
   * Registers a listener, from when its addWatch is sent: a one-shot read that is sent after that
   * must ride already.
   * @returns whether the path must be watched recursively
   */
  addPersistent(path: string, recursive: boolean, listener: PersistentListener): boolean {
    let entry = this.#persistent.get(path);
    if (entry === undefined) {
      entry = { recursive, listeners: new Set(), riders: 0 };
      this.#persistent.set(path, entry);
    }
    // A recursive watch tells all that a plain one does, so it is never turned back.
    entry.recursive ||= recursive;
    entry.listeners.add(listener);
    return entry.recursive;
  }

  removePersistent(path: string, listener: PersistentListener): void {
    const entry = this.#persistent.get(path);
    if (entry?.listeners.delete(listener) === true) this.#dropIfUnused(path, entry);
  }

  /** Who listens now on the persistent watch of a path. */
  listenersOf(path: string): readonly PersistentListener[] {
    return [...(this.#persistent.get(path)?.listeners ?? [])];
  }

  /**
   * The addWatch of a listener was refused, or given up. Who rides on it is told.
   * @returns whether nobody else wants the watch
   */
  refusePersistent(path: string, listener: PersistentListener): boolean {
    return this.#forget(path, [listener]);
  }

  /**
   * The server has taken the watch of these listeners away: they, and who rides on it, are told.
   * @returns whether nobody else wants the watch. Others have asked for it after it was removed
   */
  forgetPersistent(path: string, listeners: readonly PersistentListener[]): boolean {
    const unused = this.#forget(path, listeners);
    for (const listener of listeners) listener.onLost('removed');
    return unused;
  }

  #forget(path: string, listeners: readonly PersistentListener[]): boolean {
    const entry = this.#persistent.get(path);
    if (entry === undefined) return false;
    let known = false;
    for (const listener of listeners) known = entry.listeners.delete(listener) || known;
    if (!known) return false;
    const unused = entry.listeners.size === 0;
    // The addWatch of those that stay may come behind reads that ride: they end on another entry.
    if (unused) this.#persistent.delete(path);
    else this.#persistent.set(path, { ...entry, riders: 0 });
    for (const kind of kinds) this.#lose(kind, path, 'removed');
    return unused;
  }

  /** The server had no watch of a path left. If there is a persistent one again, what was told in
   *  between is unknown. */
  loseAll(path: string): void {
    for (const kind of kinds) this.#lose(kind, path, 'removed');
  }

  /** The user took watches of a path away. */
  lose(kind: OneShotKind, path: string): void {
    this.#lose(kind, path, 'removed');
  }

  // Events --------------------------------------------------------------------------------------------

  dispatch(event: RawEvent): void {
    const { type, path } = event;
    // One event of the server is meant for all watches of its path.
    switch (type) {
      case 'created':
      case 'changed':
        this.#fire('data', event);
        this.#fire('exist', event);
        break;
      case 'deleted':
        this.#fire('data', event);
        this.#fire('exist', event);
        this.#fire('child', event);
        break;
      case 'children-changed':
        this.#fire('child', event);
        break;
      default:
        throw new Error(`no such event: ${type satisfies never}`);
    }
    if (this.#persistent.size === 0) return;
    this.#tellPersistent(path, event);
    for (let slash = path.lastIndexOf('/'); slash >= 0; slash = path.lastIndexOf('/', slash - 1)) {
      const ancestor = slash === 0 ? '/' : path.slice(0, slash);
      if (ancestor === path) break;
      const entry = this.#persistent.get(ancestor);
      if (entry?.recursive === true) {
        for (const listener of [...entry.listeners]) listener.onEvent(event);
        if (path.lastIndexOf('/') === slash && (type === 'created' || type === 'deleted')) {
          const derived: RawEvent = { type: 'children-changed', path: ancestor, zxid: event.zxid };
          this.#fire('child', derived);
          for (const listener of [...entry.listeners]) listener.onEvent(derived);
        }
      }
      if (slash === 0) break;
    }
  }

  /** A new connection has the watches again. Changes between the two are told to one-shots only. */
  gap(reason: GapReason): void {
    for (const { listeners } of [...this.#persistent.values()]) {
      for (const listener of [...listeners]) listener.onGap(reason);
    }
    // Who rides on a persistent watch has missed what that one missed, and is to read again.
    for (const path of [...this.#persistent.keys()]) {
      for (const kind of kinds) this.#lose(kind, path, 'reconnected');
    }
  }

  /** The session is gone, and with it all one-shots. */
  expire(): void {
    for (const kind of kinds) {
      for (const path of [...this.#oneShots[kind].keys()]) this.#lose(kind, path, 'expired');
    }
    for (const [path, { listeners, riders }] of this.#persistent) {
      if (listeners.size === 0 && riders === 0) this.#persistent.delete(path);
    }
  }

  close(): void {
    for (const kind of kinds) {
      for (const path of [...this.#oneShots[kind].keys()]) this.#lose(kind, path, 'closed');
    }
    const entries = [...this.#persistent.values()];
    this.#persistent.clear();
    for (const { listeners } of entries) {
      for (const listener of listeners) listener.onLost('closed');
    }
  }

  #tellPersistent(path: string, event: RawEvent): void {
    const entry = this.#persistent.get(path);
    if (entry === undefined) return;
    for (const listener of [...entry.listeners]) listener.onEvent(event);
    this.#dropIfUnused(path, entry);
  }

  #fire(kind: OneShotKind, event: RawEvent): void {
    const map = this.#oneShots[kind];
    if (map.size === 0) return;
    const found = map.get(event.path);
    if (found === undefined) return;
    map.delete(event.path);
    const { type, zxid } = event;
    const path = this.#toUser(event.path);
    call(found, zxid === undefined ? { type, path } : { type, path, zxid });
  }

  #lose(kind: OneShotKind, path: string, reason: LostReason): void {
    const map = this.#oneShots[kind];
    const found = map.get(path);
    if (found === undefined) return;
    map.delete(path);
    call(found, { type: 'lost', path: this.#toUser(path), reason });
  }

  #dropIfUnused(path: string, entry: PersistentEntry): void {
    if (entry.listeners.size > 0 || entry.riders > 0) return;
    const { data, exist, child } = this.#oneShots;
    if (data.has(path) || exist.has(path) || child.has(path)) return;
    if (!this.#persistent.delete(path)) return;
    this.#onUnused(path);
  }
}

function call(found: OneShot | Set<OneShot>, event: WatchEvent): void {
  if (found instanceof Set) {
    for (const listener of found) listener(event);
  } else {
    found(event);
  }
}
