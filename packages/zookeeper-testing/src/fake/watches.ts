/**
 * Watches of the connections to one server. A connection has at most one watch per path and table.
 * Its mode is that of the last registration, as in 3.8: a one-shot watch replaces a persistent one,
 * and the other way round.
 */

import type { SetWatches2Request } from '@incumbent/zookeeper/internal';
import { addWatchModes, eventTypes, watcherTypes } from '@incumbent/zookeeper/internal';
import type { DataTree } from './data-tree.ts';
import { watchedParent } from './paths.ts';

export type WatchMode = 'one-shot' | 'persistent' | 'persistent-recursive';

/** A receiver of events. */
export interface Watcher {
  notify(type: number, path: string, zxid: bigint): void;
}

/** The change of a node by a transaction. */
export interface TreeEvent {
  readonly type:
    | typeof eventTypes.created
    | typeof eventTypes.deleted
    | typeof eventTypes.dataChanged;
  readonly path: string;
  readonly zxid: bigint;
}

class WatchTable {
  readonly #byPath = new Map<string, Map<Watcher, WatchMode>>();
  readonly #byWatcher = new Map<Watcher, Set<string>>();
  #recursive = 0;

  add(path: string, watcher: Watcher, mode: WatchMode): void {
    this.remove(path, watcher);
    const watchers = this.#byPath.get(path) ?? new Map<Watcher, WatchMode>();
    this.#byPath.set(path, watchers.set(watcher, mode));
    const paths = this.#byWatcher.get(watcher) ?? new Set();
    this.#byWatcher.set(watcher, paths.add(path));
    if (mode === 'persistent-recursive') this.#recursive += 1;
  }

  remove(path: string, watcher: Watcher): boolean {
    const watchers = this.#byPath.get(path);
    const mode = watchers?.get(watcher);
    if (watchers === undefined || mode === undefined) return false;
    watchers.delete(watcher);
    if (watchers.size === 0) this.#byPath.delete(path);
    this.#byWatcher.get(watcher)?.delete(path);
    if (mode === 'persistent-recursive') this.#recursive -= 1;
    return true;
  }

  removeAll(watcher: Watcher): void {
    for (const path of [...(this.#byWatcher.get(watcher) ?? [])]) this.remove(path, watcher);
    this.#byWatcher.delete(watcher);
  }

  /** As 3.8 answers: a watch of any client counts. */
  contains(path: string): boolean {
    return this.#byPath.has(path);
  }

  of(watcher: Watcher): IterableIterator<[string, WatchMode]> {
    const paths = [...(this.#byWatcher.get(watcher) ?? [])];
    return paths
      .map((path): [string, WatchMode] => [path, this.#byPath.get(path)?.get(watcher) as WatchMode])
      .values();
  }

  /** The watchers to tell. Removes the one-shot watches. */
  trigger(path: string, type: number): Set<Watcher> {
    const told = new Set<Watcher>();
    for (const [watcher, mode] of [...(this.#byPath.get(path) ?? [])]) {
      if (mode === 'persistent-recursive' && type === eventTypes.childrenChanged) continue;
      told.add(watcher);
      if (mode === 'one-shot') this.remove(path, watcher);
    }
    if (this.#recursive === 0 || type === eventTypes.childrenChanged) return told;
    for (let above = path; above !== '/'; ) {
      above = watchedParent(above);
      for (const [watcher, mode] of this.#byPath.get(above) ?? []) {
        if (mode === 'persistent-recursive') told.add(watcher);
      }
    }
    return told;
  }
}

export class Watches {
  readonly #data = new WatchTable();
  readonly #children = new WatchTable();

  watchData(path: string, watcher: Watcher): void {
    this.#data.add(path, watcher, 'one-shot');
  }

  watchChildren(path: string, watcher: Watcher): void {
    this.#children.add(path, watcher, 'one-shot');
  }

  /** @param mode one of `addWatchModes` */
  add(path: string, watcher: Watcher, mode: number): void {
    const name = mode === addWatchModes.persistent ? 'persistent' : 'persistent-recursive';
    this.#data.add(path, watcher, name);
    this.#children.add(path, watcher, name);
  }

  /** @param type one of `watcherTypes` */
  remove(path: string, watcher: Watcher, type: number): boolean {
    const children = type !== watcherTypes.data && this.#children.remove(path, watcher);
    const data = type !== watcherTypes.children && this.#data.remove(path, watcher);
    return children || data;
  }

  /** Whether any client watches exactly that path. */
  contains(path: string, type: number): boolean {
    return (
      (type !== watcherTypes.data && this.#children.contains(path)) ||
      (type !== watcherTypes.children && this.#data.contains(path))
    );
  }

  removeAll(watcher: Watcher): void {
    this.#data.removeAll(watcher);
    this.#children.removeAll(watcher);
  }

  *of(watcher: Watcher): IterableIterator<['data' | 'children', string, WatchMode]> {
    for (const [path, mode] of this.#data.of(watcher)) yield ['data', path, mode];
    for (const [path, mode] of this.#children.of(watcher)) yield ['children', path, mode];
  }

  /**
   * Sends the event of a change. A watcher of a node and of its children hears of the deletion
   * once.
   */
  trigger({ type, path, zxid }: TreeEvent): void {
    const told = this.#data.trigger(path, type);
    for (const watcher of told) watcher.notify(type, path, zxid);
    if (type === eventTypes.dataChanged) return;
    if (type === eventTypes.deleted) {
      for (const watcher of this.#children.trigger(path, type)) {
        if (!told.has(watcher)) watcher.notify(type, path, zxid);
      }
    }
    const parent = watchedParent(path);
    const { childrenChanged } = eventTypes;
    for (const watcher of this.#children.trigger(parent, childrenChanged)) {
      watcher.notify(childrenChanged, parent, zxid);
    }
  }

  /** Registers the watches of a client that has come back; tells at once what it has missed. */
  restore(request: SetWatches2Request, tree: DataTree, zxid: bigint, watcher: Watcher): void {
    const since = request.relativeZxid;
    for (const path of request.dataWatches) {
      const node = tree.get(path);
      if (node === undefined) watcher.notify(eventTypes.deleted, path, zxid);
      else if (node.mzxid > since) watcher.notify(eventTypes.dataChanged, path, zxid);
      else this.watchData(path, watcher);
    }
    for (const path of request.existWatches) {
      if (tree.get(path) !== undefined) watcher.notify(eventTypes.created, path, zxid);
      else this.watchData(path, watcher);
    }
    for (const path of request.childWatches) {
      const node = tree.get(path);
      if (node === undefined) watcher.notify(eventTypes.deleted, path, zxid);
      else if (node.pzxid > since) watcher.notify(eventTypes.childrenChanged, path, zxid);
      else this.watchChildren(path, watcher);
    }
    for (const path of request.persistentWatches) {
      this.add(path, watcher, addWatchModes.persistent);
    }
    for (const path of request.persistentRecursiveWatches) {
      this.add(path, watcher, addWatchModes.persistentRecursive);
    }
  }
}
