import type { ElectionBackend, Scope } from '../../core/contest.ts';
import { LockElection } from '../../mechanisms/lock/backend.ts';
import type { LockSettings } from '../../mechanisms/lock/settings.ts';
import type { Place } from '../../mechanisms/queue/store.ts';
import type { CheckedOptions } from './check-options.ts';
import type { ZooKeeperClient } from './client.ts';
import type { LockStoreOptions } from './held-node.ts';
import { ZooKeeperLockStore } from './lock-store.ts';
import { ZooKeeperNodeStore } from './node-store.ts';
import type { ZooKeeperGuard } from './options.ts';

/**
 * An election in the layout `hadoop`.
 * @param path the node of the election
 */
export function openLockElection(
  client: ZooKeeperClient,
  scope: Scope,
  path: string,
  options: CheckedOptions,
): ElectionBackend<ZooKeeperGuard> {
  const store = new ZooKeeperLockStore(client, scope, path, storeOptions(options));
  const guard = (place: Place) => new BreadcrumbGuard(store, place);
  return new LockElection<ZooKeeperGuard>(scope, store, { ...settingsOf(options), guard });
}

/**
 * An election in the layout `node`.
 * @param path the node that a leader makes
 */
export function openNodeElection(
  client: ZooKeeperClient,
  scope: Scope,
  path: string,
  options: CheckedOptions,
): ElectionBackend<ZooKeeperGuard> {
  const store = new ZooKeeperNodeStore(client, scope, path, storeOptions(options));
  // The badge has a name that never comes again, and goes with the place.
  const guard = (place: Place) => ({ token: place.token, path: store.badgeOf(place), version: -1 });
  return new LockElection<ZooKeeperGuard>(scope, store, { ...settingsOf(options), guard });
}

function storeOptions({ acl, create = true, activeData }: CheckedOptions): LockStoreOptions {
  return { acl, create, activeData };
}

function settingsOf(options: CheckedOptions): Omit<LockSettings<ZooKeeperGuard>, 'guard'> {
  return {
    waitsForPredecessor: options.waitsForPredecessor,
    stepsDownWhenDisconnected: options.stepsDownWhenDisconnected,
    recheckMs: options.recheckMs,
    delayAfterWinMs: options.delayAfterWinMs,
    pollMs: options.pollMs,
  };
}

/** Matches no node: nothing may be written for a term that was not announced. */
const noVersion = 2 ** 31 - 1;

/**
 * The lock's name recurs with every holder, and says nothing. The breadcrumb gets another version
 * as soon as another member becomes active after an unclean end. After a clean end it is not there.
 */
class BreadcrumbGuard implements ZooKeeperGuard {
  readonly token: bigint;
  readonly path: string;
  readonly #store: ZooKeeperLockStore;
  readonly #place: Place;
  #version: number | undefined;

  constructor(store: ZooKeeperLockStore, place: Place) {
    this.token = place.token;
    this.path = store.breadcrumbPath;
    this.#store = store;
    this.#place = place;
  }

  get version(): number {
    this.#version ??= this.#store.breadcrumbVersion(this.#place);
    return this.#version ?? noVersion;
  }
}
