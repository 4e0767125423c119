import { createHash } from 'node:crypto';
import { StoreUnsuitableError } from '../../base/errors.ts';
import { shardsWithParts } from '../../mechanisms/lease/listing.ts';
import { allOf, orItsFault, readEach } from '../../mechanisms/lease/read-all.ts';
import type { LeaseStore, Leases } from '../../mechanisms/lease/store.ts';
import type { Lease } from './client.ts';
import { electionOfLease, shardsLabel } from './lease-format.ts';
import type { LeasesOf } from './lister.ts';
import { listLeases } from './lister.ts';
import { KubernetesStore } from './store.ts';

/** The label of `devices` and of all its parts. A name may be longer than a label. */
export function labelOf(name: string): string {
  const slash = name.lastIndexOf('/');
  const whole = slash < 1 ? name : name.slice(0, slash);
  return createHash('sha256').update(whole).digest('hex').slice(0, 40);
}

/** `leases.shards`: their Leases have a label. */
export function shardsOf(leases: Omit<LeasesOf, 'leaseNameOf'>): NonNullable<Leases['shards']> {
  return async (signal) => {
    const names: string[] = [];
    let next: unknown;
    do {
      signal.throwIfAborted();
      const page = await listLeases(leases, shardsLabel, next, signal);
      for (const lease of page.items) names.push(electionOfLease(lease, 'a Lease') ?? '');
      next = page.next;
    } while (next !== undefined);
    return shardsWithParts(names);
  };
}

/**
 * One list by label. Leases that are not in it are read by themselves: they are not there, or another
 * program took the label away. Without the right to list, all are.
 */
export function readAllLeases(leases: Omit<LeasesOf, 'leaseNameOf'>): Leases['readAll'] {
  let mayList = true;
  return async (given, signal) => {
    const stores = allOf(KubernetesStore, given);
    const found: ReadonlyMap<string, Lease> =
      mayList && stores.length > 1 ? await list(stores, signal) : new Map();
    const missing = stores.filter(({ leaseName }) => !found.has(leaseName));
    const rest = await readEach()(missing, signal);
    const readings = new Map<LeaseStore, (typeof rest)[number]>(
      missing.map((store, index) => [store, rest[index]] as [LeaseStore, (typeof rest)[number]]),
    );
    return Promise.all(
      stores.map(async (store) => {
        const told = readings.get(store);
        return told ?? orItsFault(() => store.see(found.get(store.leaseName)));
      }),
    );
  };

  async function list(
    stores: readonly KubernetesStore[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, Lease>> {
    const labels = new Set(stores.map(({ label }) => label));
    const selector = `${shardsLabel} in (${[...labels].join()})`;
    const found = new Map<string, Lease>();
    try {
      let next: unknown;
      do {
        signal.throwIfAborted();
        const page = await listLeases(leases, selector, next, signal);
        for (const lease of page.items) found.set(lease.metadata.name ?? '', lease);
        next = page.next;
      } while (next !== undefined);
    } catch (error) {
      if (!(error instanceof StoreUnsuitableError)) throw error;
      mayList = false;
    }
    return found;
  }
}
