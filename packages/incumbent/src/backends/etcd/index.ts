/** Elections on etcd, together with `etcdctl elect` and Go programs. */
import type { Clock } from '../../base/clock.ts';
import { systemClock } from '../../base/clock.ts';
import { formatDuration } from '../../base/duration.ts';
import { InvalidOptionError } from '../../base/errors.ts';
import type { TimingLimits } from '../../base/timing.ts';
import type { Backend, Scope } from '../../core/contest.ts';
import { listingOf } from '../../core/listing.ts';
import { allOf } from '../../mechanisms/lease/read-all.ts';
import { QueueElection } from '../../mechanisms/queue/backend.ts';
import type { QueueSettings } from '../../mechanisms/queue/settings.ts';
import type { Place } from '../../mechanisms/queue/store.ts';
import { EtcdCalls } from './calls.ts';
import type { CheckedOptions } from './check-options.ts';
import { checkClients, checkOptions } from './check-options.ts';
import type { GrpcClient } from './client.ts';
import { electionKeys, encodeKey, leaseKeys } from './keys.ts';
import { EtcdLeaseStore } from './lease-store.ts';
import { etcdPages, etcdShards } from './lister.ts';
import type { EtcdGuard, EtcdOptions } from './options.ts';
import type { EtcdPlace } from './session.ts';
import { EtcdSession } from './session.ts';
import { EtcdStore } from './store.ts';

export type { EtcdAuth } from './auth.ts';
export type {
  GrpcCall,
  GrpcCallOptions,
  GrpcClient,
  GrpcError,
  GrpcMetadata,
  GrpcStream,
} from './client.ts';
export type { EtcdGuard, EtcdOptions } from './options.ts';
export { type EtcdStatus, etcdStatus } from './status.ts';

/**
 * A backend that holds elections on etcd. One backend serves many elections, on one lease.
 * @param clients one `Client` of `@grpc/grpc-js` for each member of the cluster. When a member
 * fails, another one is used. The caller makes and closes them
 * @throws InvalidOptionError
 */
export function etcd(
  clients: GrpcClient | readonly GrpcClient[],
  options: EtcdOptions = {},
): Backend<EtcdGuard> {
  const checked = checkOptions(options);
  const calls = new EtcdCalls(checkClients(clients), checked.auth, checked.ttlMs / 2);
  const settings: QueueSettings<EtcdGuard> = {
    guard: guardOf,
    waitsForPredecessor: checked.waitsForPredecessor,
    stepsDownWhenDisconnected: checked.stepsDownWhenDisconnected,
    recheckMs: checked.recheckMs,
    delayAfterWinMs: checked.delayAfterWinMs,
  };
  // Leases are kept by the clock of the elections whose places are on them.
  const sessions = new WeakMap<Clock, EtcdSession>();
  const sessionOf = ({ clock, onTrouble }: Scope): EtcdSession => {
    let session = sessions.get(clock);
    if (session === undefined) {
      session = new EtcdSession({ calls, clock, ttlMs: checked.ttlMs, onTrouble });
      sessions.set(clock, session);
    }
    return session;
  };
  const listing = new EtcdSession({
    ...{ calls, clock: systemClock, ttlMs: checked.ttlMs },
    onTrouble: () => {},
  });
  return {
    kind: 'etcd',
    description: `etcd, elections ${JSON.stringify(`${checked.root}…`)}`,
    limits: limitsOf(checked),
    open: (scope: Scope) => {
      const keys = electionKeys(checked.root, scope.election);
      const store = new EtcdStore(sessionOf(scope), keys);
      return new QueueElection<EtcdGuard>(scope, store, settings);
    },
    leases: {
      open: (scope) =>
        new EtcdLeaseStore(sessionOf(scope), scope, leaseKeys(checked.root, scope.election)),
      readAll: async (stores, signal) =>
        EtcdLeaseStore.readAll(allOf(EtcdLeaseStore, stores), signal),
      shards: etcdShards(listing, checked.root),
    },
    // A listing holds no lease, so nothing of this session would have trouble to tell of.
    ...listingOf(etcdPages(listing, checked.root)),
  };
}

function guardOf(place: Place): EtcdGuard {
  const { key, token } = place as EtcdPlace;
  const createRevision = token.toString();
  return {
    token,
    key,
    createRevision,
    compare: {
      result: 'EQUAL',
      target: 'CREATE',
      key: Buffer.from(encodeKey(key)).toString('base64'),
      create_revision: createRevision,
    },
  };
}

/**
 * Members that are not ours lead as soon as our key is gone, whatever we believe. A lease lasts at
 * least its TTL from when the leader of the cluster last heard of it. That is at most a third of
 * the TTL before a confirmation is sent (`EtcdSession.confirm`). It is an election timeout longer
 * where a server that was cut off answered from memory.
 */
function limitsOf({ ttlMs, electionTimeoutMs }: CheckedOptions): TimingLimits {
  const ms = ttlMs - ttlMs / 3 - electionTimeoutMs;
  if (ms <= 0) {
    throw new InvalidOptionError(
      `ttl: ${formatDuration(ttlMs)} is too short for servers with an election timeout of ` +
        `${formatDuration(electionTimeoutMs)}: nothing would be left to believe in; take more than ` +
        `${formatDuration(1.5 * electionTimeoutMs)}, or say which \`electionTimeout\` they have`,
    );
  }
  const because =
    `the next leader may be a Go program that does not wait for us, and a lease of ` +
    `${formatDuration(ttlMs)} may end that soon after a confirmation (electionTimeout ` +
    `${formatDuration(electionTimeoutMs)})`;
  return { sessionTimeoutMs: ttlMs, maxBelief: { ms, because } };
}
