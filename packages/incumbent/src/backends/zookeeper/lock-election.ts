import type { ElectionBackend, Scope } from '../../contest.ts';
import { LockElection } from '../../lock/backend.ts';
import type { CheckedOptions } from './check-options.ts';
import type { ZooKeeperClient } from './client.ts';
import { ZooKeeperLockStore } from './lock-store.ts';
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
  const store = new ZooKeeperLockStore(client, scope, {
    path,
    acl: options.acl,
    create: options.create ?? true,
    activeData: options.activeData,
  });
  return new LockElection<ZooKeeperGuard>(scope, store, {
    // The lock's name recurs with every holder. The breadcrumb has another version as soon as
    // somebody else has become active after an unclean end, and is not there after a clean one.
    guard: (place) => ({
      token: place.token,
      path: store.breadcrumbPath,
      get version() {
        return store.breadcrumbVersion(place);
      },
    }),
    waitsForPredecessor: options.waitsForPredecessor,
    stepsDownWhenDisconnected: options.stepsDownWhenDisconnected,
    recheckMs: options.recheckMs,
    delayAfterWinMs: options.delayAfterWinMs,
    pollMs: options.pollMs,
  });
}
