/**
 * The watches of a session, by path on the server, and their listeners.
 *
 * A server up to 3.8 knows one mode for each path and session (ZOOKEEPER-4466). A one-shot watch
 * that is set on a path with a persistent one turns that into a one-shot. So no one-shot is sent
 * for such a path. It *rides* on the persistent watch instead, which stays on the server until its
 * last rider has gone. A recursive watch does not report changes of the list of children. They are
 * derived from the creation and deletion of a child.
 */
import type { watcherTypes } from '../protocol/constants.ts';
import type { WatchLists } from './handshake.ts';

/** A change on the server. Paths are those of the server. */
export type RawEventType = 'created' | 'deleted' | 'changed' | 'children-changed';
export interface RawEvent {
  readonly type: RawEventType;
  readonly path: string;
  /** The zxid of the change, from servers that report it (3.9). */
  readonly zxid: bigint | undefined;
}

/** Why a one-shot watch will never report a change. */
export type LostReason = 'expired' | 'closed' | 'cancelled' | 'removed' | 'reconnected';

/** The event of a one-shot watch. After any of them, read again. */
export type WatchEvent =
  | {
      readonly type: RawEventType;
      readonly path: string;
      /** The zxid of the change. Only servers of 3.9 and later report it. */
      readonly zxid?: bigint;
    }
  | {
      /** No change will be reported, although there may be one. */
      readonly type: 'lost';
      readonly path: string;
      readonly reason: LostReason;
    };

/**
 * Called once: with the change, or with the reason why none will be reported. A bare function, such
 * as a promise's own, because there may be very many of them.
 */
export type OneShot = (event: WatchEvent) => void;

export type OneShotKind = 'data' | 'exist' | 'child';

export type GapReason = 'reconnected' | 'expired';

export interface PersistentListener {
  onEvent(event: RawEvent): void;
  /** Changes may have been missed. Events from now on are reported. */
  onGap(reason: GapReason): void;
  /** Nothing more will be reported. */
  onLost(reason: LostReason): void;
}

/** A read that will leave a one-shot watch behind, while it is under way. */
export interface WatchRead {
  readonly kind: OneShotKind;
  readonly path: string;
  /** The persistent watch that it relies on; undefined if the server has to set the one-shot. */
  readonly ride: object | undefined;
}

interface PersistentEntry {
  recursive: boolean;
  readonly listeners: Set<PersistentListener>;
  /** Reads under way that rely on it. */
  riders: number;
}

/** Reads under way that set the same watch on the server. */
interface Reads {
  count: number;
  /**
   * Whether the server may have the watch already, because of a read that has ended, or of a
   * listener.
   */
  mayBeSet: boolean;
}

/** The watches of a path, as the server distinguishes them. */
export type WatchType = keyof typeof watcherTypes;

/** The server keeps a watch of existence as one of data. */
const typeOf = { data: 'data', exist: 'data', child: 'children' } as const;
const kindsOf: Readonly<Record<WatchType, readonly OneShotKind[]>> = {
  data: ['data', 'exist'],
  children: ['child'],
  any: ['data', 'exist', 'child'],
};

type OneShots = Map<string, OneShot | Set<OneShot>>;

export class WatchRegistry {
  readonly #oneShots: Readonly<Record<OneShotKind, OneShots>> = {
    data: new Map(),
    exist: new Map(),
    child: new Map(),
  };
  readonly #reads: Readonly<Record<'data' | 'children', Map<string, Reads>>> = {
    data: new Map(),
    children: new Map(),
  };
  readonly #persistent: Map<string, PersistentEntry> = new Map();
  readonly #toUser: (path: string) => string;
  readonly #onUnused: (path: string, type: WatchType) => void;

  /**
   * @param toUser the path as a listener of a one-shot knows it
   * @param onUnused called for a watch that the server may have and that is no longer needed
   */
  constructor(toUser: (path: string) => string, onUnused: (path: string, type: WatchType) => void) {
    this.#toUser = toUser;
    this.#onUnused = onUnused;
  }

  /** Paths with watches, counted for each kind. */
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
    // Setting a one-shot beside a persistent watch would replace that.
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
   * Called before a read is sent that will leave a one-shot watch. While it is under way the watch
   * is not removed from the server, because the read may just have set it.
   * @returns the argument for `endRead`, when the read has ended
   */
  beginRead(kind: OneShotKind, path: string): WatchRead {
    const ride = this.#persistent.get(path);
    if (ride === undefined) {
      const reads = this.#reads[typeOf[kind]];
      const present = reads.get(path);
      if (present === undefined) reads.set(path, { count: 1, mayBeSet: false });
      else present.count += 1;
    } else {
      ride.riders += 1;
    }
    return { kind, path, ride };
  }

  /**
   * Called when a read has ended, and after its listener was added, if it has left one.
   * @param mayBeSet whether the server may have set the watch
   */
  endRead({ kind, path, ride }: WatchRead, mayBeSet: boolean): void {
    if (ride !== undefined) {
      this.#endRide(path, ride as PersistentEntry);
      return;
    }
    const reads = this.#reads[typeOf[kind]].get(path);
    if (reads === undefined) return;
    reads.count -= 1;
    reads.mayBeSet ||= mayBeSet;
    if (reads.count > 0) return;
    this.#reads[typeOf[kind]].delete(path);
    if (reads.mayBeSet) this.#removeIfUnused(path, typeOf[kind]);
  }

  #endRide(path: string, ride: PersistentEntry): void {
    ride.riders -= 1;
    const entry = this.#persistent.get(path);
    // The watch that it relied on has gone, so nothing would be reported.
    if (entry !== ride) this.lose(path, 'any');
    else this.#dropIfUnused(path, entry);
  }

  add(kind: OneShotKind, path: string, listener: OneShot): void {
    const map = this.#oneShots[kind];
    const present = map.get(path);
    if (present === undefined) map.set(path, listener);
    else if (present instanceof Set) present.add(listener);
    else map.set(path, new Set([present, listener]));
  }

  /**
   * Removes a listener and tells it so, unless it was called already. With the last one its watch
   * is removed from the server, too.
   */
  cancel(kind: OneShotKind, path: string, listener: OneShot): void {
    const map = this.#oneShots[kind];
    const present = map.get(path);
    if (present === listener) map.delete(path);
    else if (!(present instanceof Set && present.delete(listener))) return;
    else if (present.size === 0) map.delete(path);
    listener({ type: 'lost', path: this.#toUser(path), reason: 'cancelled' });
    this.#removeIfUnused(path, typeOf[kind]);
  }

  // Persistent ----------------------------------------------------------------------------------------

  /**
   * Registers a listener when its addWatch is sent, because a one-shot read that is sent afterwards
   * has to ride on it.
   * @returns whether the path must be watched recursively
   */
  addPersistent(path: string, recursive: boolean, listener: PersistentListener): boolean {
    let entry = this.#persistent.get(path);
    if (entry === undefined) {
      entry = { recursive, listeners: new Set(), riders: 0 };
      this.#persistent.set(path, entry);
    }
    // A recursive watch reports everything that a plain one does, so it is never turned back.
    entry.recursive ||= recursive;
    entry.listeners.add(listener);
    return entry.recursive;
  }

  removePersistent(path: string, listener: PersistentListener): void {
    const entry = this.#persistent.get(path);
    if (entry?.listeners.delete(listener) === true) this.#dropIfUnused(path, entry);
  }

  /** The present listeners of the persistent watch of a path. */
  listenersOf(path: string): readonly PersistentListener[] {
    return [...(this.#persistent.get(path)?.listeners ?? [])];
  }

  /**
   * The addWatch of a listener was refused, or given up. One-shots that ride on it are told.
   * @returns whether the watch is needed no more
   */
  refusePersistent(path: string, listener: PersistentListener): boolean {
    return this.#forget(path, [listener]);
  }

  /**
   * The server has removed the watch of these listeners. They, and one-shots that ride on it, are
   * told.
   * @returns whether the watch is needed no more: other listeners may have asked for it after it
   *   was removed
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
    // The addWatch of the others may come behind reads that ride. Those end on another entry.
    if (unused) this.#persistent.delete(path);
    else this.#persistent.set(path, { ...entry, riders: 0 });
    this.lose(path, 'any');
    return unused;
  }

  /**
   * The server had no such watch of a path left. If there is one again, the changes in between are
   * unknown.
   */
  lose(path: string, type: WatchType): void {
    for (const kind of kindsOf[type]) this.#lose(kind, path, 'removed');
  }

  // Events --------------------------------------------------------------------------------------------

  dispatch(event: RawEvent): void {
    const { type, path } = event;
    // The server sends one event for all watches of its path.
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
          this.#dropIfUnused(ancestor, entry);
        }
      }
      if (slash === 0) break;
    }
  }

  /** A new connection has the watches again. Only one-shots hear of changes in between. */
  gap(reason: GapReason): void {
    for (const { listeners } of [...this.#persistent.values()]) {
      for (const listener of [...listeners]) listener.onGap(reason);
    }
    // One-shots that ride on a persistent watch have missed the same changes, and have to read
    // again.
    for (const [path, entry] of [...this.#persistent]) {
      for (const kind of kindsOf.any) this.#lose(kind, path, 'reconnected');
      this.#dropIfUnused(path, entry);
    }
  }

  /** The session is gone, and all one-shots with it. */
  expire(): void {
    for (const kind of kindsOf.any) {
      for (const path of [...this.#oneShots[kind].keys()]) this.#lose(kind, path, 'expired');
    }
    for (const [path, { listeners, riders }] of this.#persistent) {
      if (listeners.size === 0 && riders === 0) this.#persistent.delete(path);
    }
  }

  close(): void {
    for (const kind of kindsOf.any) {
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

  #removeIfUnused(path: string, type: 'data' | 'children'): void {
    const entry = this.#persistent.get(path);
    if (entry !== undefined) {
      this.#dropIfUnused(path, entry);
      return;
    }
    const reads = this.#reads[type].get(path);
    if (reads !== undefined) reads.mayBeSet = true;
    else if (!this.#isWanted(path, type)) this.#onUnused(path, type);
  }

  #dropIfUnused(path: string, entry: PersistentEntry): void {
    if (entry.listeners.size > 0 || entry.riders > 0 || this.#isWanted(path, 'any')) return;
    if (this.#persistent.get(path) !== entry) return;
    this.#persistent.delete(path);
    this.#onUnused(path, 'any');
  }

  #isWanted(path: string, type: WatchType): boolean {
    return kindsOf[type].some((kind) => this.#oneShots[kind].has(path));
  }
}

function call(found: OneShot | Set<OneShot>, event: WatchEvent): void {
  if (found instanceof Set) {
    for (const listener of found) listener(event);
  } else {
    found(event);
  }
}
