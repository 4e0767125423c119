import { StoreUnavailableError } from '../../base/errors.ts';
import { deriveTiming } from '../../base/timing.ts';
import type { LeaseLister, LeasePage, ListedLease } from '../../mechanisms/lease/listing.ts';
import type { KubernetesApi, Lease } from './client.ts';
import { asLease } from './client.ts';
import type { Refusals } from './errors.ts';
import { electionOfLease, recordOfLease } from './lease-format.ts';

const leasesAPage = 500;

export interface LeasesOf {
  readonly api: KubernetesApi;
  readonly namespace: string;
  readonly refusals: Refusals;
  leaseNameOf(election: string): string;
}

interface LeaseList {
  readonly metadata?: { readonly continue?: string };
  readonly items?: readonly unknown[];
}

/**
 * One page of a list. It is read from the quorum, like a single Lease.
 * @param labelSelector which of them. Empty: all
 */
export async function listLeases(
  { api, namespace, refusals }: Omit<LeasesOf, 'leaseNameOf'>,
  labelSelector: string,
  after: unknown,
  signal: AbortSignal,
): Promise<{ readonly items: readonly Lease[]; readonly next: unknown }> {
  const query = new URLSearchParams({ limit: String(leasesAPage) });
  if (labelSelector !== '') query.set('labelSelector', labelSelector);
  if (after !== undefined) query.set('continue', String(after));
  const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases?${query}`;
  const response = await api.request({ method: 'GET', path, signal });
  const { items, metadata } = (response.body ?? {}) as LeaseList;
  if (response.status === 410) {
    throw new StoreUnavailableError(
      `the API server ${api.url} has forgotten where this listing stood (410): list again`,
    );
  }
  if (response.status !== 200 || !Array.isArray(items)) throw refusals.error('list', response);
  refusals.allowed('list');
  const found = items.map(asLease).filter((lease) => lease !== undefined);
  return { items: found, next: metadata?.continue || undefined };
}

/**
 * The Leases of the namespace with our annotations. Others are heartbeats of nodes, or elections that
 * only Go programs hold: nothing tells these two apart.
 */
export function leaseLister({ api, namespace, refusals, leaseNameOf }: LeasesOf): LeaseLister {
  const timing = deriveTiming();
  return {
    async page(after, _wanted, signal): Promise<LeasePage> {
      signal.throwIfAborted();
      const { items, next } = await listLeases({ api, namespace, refusals }, '', after, signal);
      return { elections: items.flatMap((lease) => listed(lease) ?? []), next };
    },
  };

  /** @returns undefined for a Lease that is not ours */
  function listed(lease: Lease): ListedLease | undefined {
    const { name: leaseName = '', resourceVersion = '' } = lease.metadata;
    const location = `the Lease ${namespace}/${leaseName}`;
    const election = electionOfLease(lease, location);
    if (election === undefined) return undefined;
    // A damaged record does not tell its election. Mostly the Lease has the same name.
    const name = isNameOf(election, leaseName) ? election : leaseName;
    const format = { election: name, location, timing };
    return {
      name,
      reading: () => ({ record: recordOfLease(lease, format), version: resourceVersion }),
    };
  }

  function isNameOf(election: string, leaseName: string): boolean {
    try {
      return leaseNameOf(election) === leaseName;
    } catch {
      return false;
    }
  }
}
