import { formatDuration, parseDuration } from 'incumbent';
import { etcd } from 'incumbent/etcd';
import type { OpenStore, StoreNeeds } from '../context.ts';
import { UsageError } from '../failure.ts';
import type { Machine } from '../url/secrets.ts';
import type { EtcdConnections } from './connect.ts';
import { connectEtcd } from './connect.ts';
import type { EtcdLocation } from './url.ts';

/** For a command that only asks: it holds no seat, and its operations may take their time. */
const patientTtlMs = 60_000;

/**
 * Connects, and makes sure that the cluster has a leader.
 * @throws CommandError that names the members and the fault; UnusableStoreError
 */
export async function openEtcd(
  location: EtcdLocation,
  needs: StoreNeeds,
  machine: Machine,
): Promise<OpenStore> {
  const ttlMs = leaseToAsk(location, needs);
  const connections = await connectEtcd(location, needs, machine);
  const { clients, auth, close } = connections;
  try {
    return {
      url: location.url,
      origin: location.origin,
      backend: etcd(clients, {
        ...location.options,
        ...(ttlMs === undefined ? {} : { ttl: ttlMs }),
        ...(auth === undefined ? {} : { auth }),
      }),
      servers: serversOf(connections),
      close: async () => close(),
    };
  } catch (error) {
    close();
    throw error;
  }
}

function serversOf(connections: EtcdConnections): OpenStore['servers'] & object {
  return {
    async examine({ timing, timeoutMs, signal }) {
      const { examineEtcd } = await import('../doctor/etcd.ts');
      return examineEtcd(connections, timing, timeoutMs, signal);
    },
    async scratch(unique) {
      const { scratchOnEtcd } = await import('../doctor/etcd.ts');
      return scratchOnEtcd(unique, connections);
    },
  };
}

/** @returns undefined: the library's default */
function leaseToAsk(
  { ttlMs, origin }: EtcdLocation,
  { lease, asksOnly }: StoreNeeds,
): number | undefined {
  if (asksOnly) return Math.max(ttlMs ?? 0, patientTtlMs);
  const leaseMs = lease === undefined ? undefined : parseDuration('--lease', lease);
  if (ttlMs !== undefined && leaseMs !== undefined && leaseMs !== ttlMs) {
    throw new UsageError(
      `--lease ${lease} and the ttl=${formatDuration(ttlMs)} of ${origin} differ: on etcd both are the ` +
        'time to live of our lease; give one of them',
    );
  }
  return ttlMs ?? leaseMs;
}
