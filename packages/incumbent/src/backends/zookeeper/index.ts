/** Elections on Apache ZooKeeper, also those that programs in other languages hold already. */
import { describeValue } from '../../base/candidate.ts';
import { formatDuration } from '../../base/duration.ts';
import { InvalidOptionError, StoreUnsuitableError } from '../../base/errors.ts';
import type { TimingLimits } from '../../base/timing.ts';
import { deriveTiming } from '../../base/timing.ts';
import type { Backend, ElectionBackend, Scope } from '../../core/contest.ts';
import type { ElectionPages } from '../../core/listing.ts';
import { listingOf } from '../../core/listing.ts';
import { allOf } from '../../mechanisms/lease/read-all.ts';
import type { Leases } from '../../mechanisms/lease/store.ts';
import { QueueElection } from '../../mechanisms/queue/backend.ts';
import type { QueueSettings } from '../../mechanisms/queue/settings.ts';
import type { CheckedOptions } from './check-options.ts';
import { checkOptions, electionPath, leasePath } from './check-options.ts';
import type { ZooKeeperClient } from './client.ts';
import { queueLayout } from './layout.ts';
import { ZooKeeperLeaseStore } from './lease-store.ts';
import { queuePages, zooKeeperShards } from './lister.ts';
import { openLockElection, openNodeElection } from './lock-election.ts';
import { hadoopElections, lockPages, nodeElections } from './lock-lister.ts';
import type { ZooKeeperGuard, ZooKeeperLayout, ZooKeeperOptions } from './options.ts';
import { ZooKeeperSession } from './session.ts';
import { ZooKeeperStore } from './store.ts';

export {
  type ActiveStandbyMember,
  type ActiveStandbyState,
  activeStandby,
} from './active-standby.ts';
export type {
  NodeAcl,
  NodeContent,
  NodeStat,
  NodeWatch,
  ZooKeeperClient,
  ZooKeeperTransaction,
} from './client.ts';
export {
  ActiveNotFoundError,
  activeDataOf,
  type ClearParentOptions,
  clearParentNode,
  type EnsureParentOptions,
  ensureParentNode,
  getActiveData,
  parentNodeExists,
} from './hadoop.ts';
export type { ZooKeeperGuard, ZooKeeperLayout, ZooKeeperOptions } from './options.ts';

/**
 * A backend that holds elections on ZooKeeper. One client serves many elections. It is the caller's
 * own, and is not closed here. D is its session timeout.
 * @param client a connected client
 * @throws InvalidOptionError
 * @throws StoreUnsuitableError for a client without a session
 */
export function zookeeper(
  client: ZooKeeperClient,
  options: ZooKeeperOptions = {},
): Backend<ZooKeeperGuard> {
  const checked = checkOptions(options);
  const sessionTimeoutMs = requireSession(client);
  const settings: QueueSettings<ZooKeeperGuard> = {
    guard: ({ name, token }) => ({ token, path: name, version: -1 }),
    waitsForPredecessor: checked.waitsForPredecessor,
    stepsDownWhenDisconnected: checked.stepsDownWhenDisconnected,
    recheckMs: checked.recheckMs,
    delayAfterWinMs: checked.delayAfterWinMs,
  };
  const limits = limitsOf(checked.layout, sessionTimeoutMs, checked.tickTimeMs);
  const backend = {
    kind: 'zookeeper',
    description: `ZooKeeper, layout ${checked.layout}, below ${checked.root}`,
    limits,
    open: (scope: Scope): ElectionBackend<ZooKeeperGuard> => {
      if (scope.seats !== undefined && checked.layout !== 'incumbent') {
        throw new InvalidOptionError(
          `seats: the layout ${checked.layout} is for programs that know one leader, and could not tell ` +
            'seats: leave the layout out, or seats',
        );
      }
      const path = electionPath(checked.root, scope.election);
      const session = ZooKeeperSession.of(client);
      if (checked.layout === 'hadoop') return openLockElection(client, scope, path, checked);
      if (checked.layout === 'node') return openNodeElection(client, scope, path, checked);
      const layout = queueLayout(checked.layout);
      const store = new ZooKeeperStore(client, session, {
        layout,
        path,
        acl: checked.acl,
        createsNode: checked.create ?? layout.createsNode,
        namesSuccessor: checked.namesSuccessor,
        sessionTimeoutMs,
      });
      return new QueueElection<ZooKeeperGuard>(scope, store, settings);
    },
  };
  const leases = leasesOn(client, checked);
  return { ...backend, leases, ...listingOf(pagesOf(client, checked, limits, backend.open)) };
}

function leasesOn(client: ZooKeeperClient, { root, acl, create = true }: CheckedOptions): Leases {
  return {
    open: (scope) =>
      new ZooKeeperLeaseStore(client, scope, {
        path: leasePath(root, scope.election),
        acl,
        create,
      }),
    readAll: async (stores, signal) =>
      ZooKeeperLeaseStore.readAll(allOf(ZooKeeperLeaseStore, stores), signal),
    shards: zooKeeperShards(client, root),
  };
}

function pagesOf(
  client: ZooKeeperClient,
  { layout, root }: CheckedOptions,
  limits: TimingLimits,
  open: Backend['open'],
): ElectionPages {
  const timing = deriveTiming({}, limits);
  if (layout === 'hadoop') return lockPages(client, root, hadoopElections, open, timing);
  if (layout === 'node') return lockPages(client, root, nodeElections, open, timing);
  return queuePages(client, root, queueLayout(layout));
}

/** @returns the negotiated session timeout in ms */
function requireSession(client: ZooKeeperClient): number {
  const given = client as Partial<ZooKeeperClient> | null | undefined;
  if (typeof given?.transaction !== 'function' || typeof given.onState !== 'function') {
    throw new InvalidOptionError(
      `zookeeper() takes a client as @incumbent/zookeeper makes it, not ${describeValue(client)}: ` +
        'zookeeper(await connect("zk://h1:2181,h2:2181"))',
    );
  }
  const { state, session } = client;
  if (state === 'closed' || state === 'auth-failed') {
    throw new StoreUnsuitableError(
      `the ZooKeeper client is ${state}: connect another one and hand it in`,
    );
  }
  if (session === undefined) {
    throw new StoreUnsuitableError(
      `the ZooKeeper client has no session (it is ${state}): wait for \`await client.connected()\`, ` +
        'for the timings follow from the session timeout that the server grants',
    );
  }
  return session.timeoutMs;
}

function limitsOf(
  layout: ZooKeeperLayout,
  sessionTimeoutMs: number,
  tickTimeMs: number,
): TimingLimits {
  if (layout === 'incumbent') return { sessionTimeoutMs };
  // The next in line may not wait for us. A server hears of a session through ping replies once a
  // tick. An idle client sends once in a third of its timeout.
  const ms = sessionTimeoutMs - sessionTimeoutMs / 3 - tickTimeMs;
  if (ms <= 0) {
    throw new StoreUnsuitableError(
      `a session timeout of ${formatDuration(sessionTimeoutMs)} is too short for the layout ` +
        `${layout} and a tickTime of ${formatDuration(tickTimeMs)}: nothing would be left to believe ` +
        `in; ask for more than ${formatDuration(1.5 * tickTimeMs)} when connecting, or say which ` +
        'tickTime the servers have',
    );
  }
  const because =
    `in the layout ${layout} the next leader may not wait for us, and a session of ` +
    `${formatDuration(sessionTimeoutMs)} may end that soon after a confirmation (tickTime ` +
    `${formatDuration(tickTimeMs)})`;
  return { sessionTimeoutMs, maxBelief: { ms, because } };
}
