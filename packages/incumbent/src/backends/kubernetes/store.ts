import { RefusedError, StoreUnsuitableError } from '../../base/errors.ts';
import type { Scope } from '../../core/contest.ts';
import type { LeaseStore, Reading, SwapResult, Version } from '../../mechanisms/lease/store.ts';
import type { LeaseRecord } from '../../record/lease-record.ts';
import { requireOf } from '../../record/lease-record.ts';
import type { ApiResponse, KubernetesApi, Lease } from './client.ts';
import { asLease, asStatus } from './client.ts';
import type { Refusals } from './errors.ts';
import type { LeaseFormat } from './lease-format.ts';
import { isForeign, leaseOfRecord, recordOfLease } from './lease-format.ts';
import type { LeaseWatches } from './watches.ts';

/** The version of a Lease that is not there: no resourceVersion is empty. */
const absent = '';
/**
 * Versions of one election that are remembered. An older one is read again. There may be
 * a thousand elections.
 */
const mostRemembered = 2;

/** Shared by all elections of one backend. */
export interface Shared {
  readonly api: KubernetesApi;
  readonly namespace: string;
  readonly refusals: Refusals;
  readonly watches: LeaseWatches;
}

/**
 * One election is one Lease, and its version is the resourceVersion. It is read by GET, and
 * swapped by PUT.
 */
export class KubernetesStore implements LeaseStore {
  readonly leaseName: string;
  readonly #shared: Shared;
  readonly #scope: Scope;
  readonly #format: LeaseFormat;
  /**
   * The Leases of the versions that were seen last. A PUT must keep all fields in them that
   * are not ours.
   */
  readonly #seen = new Map<Version, Lease>();
  readonly #unwatch = new Set<() => void>();

  /** @param label for a lease of shards. An election may have a Lease of the same name */
  constructor(shared: Shared, scope: Scope, leaseName: string, label?: string) {
    this.leaseName = leaseName;
    this.#shared = shared;
    this.#scope = scope;
    this.#format = {
      election: scope.election,
      location: `the Lease ${shared.namespace}/${leaseName}`,
      timing: scope.timing,
      label,
    };
  }

  get label(): string | undefined {
    return this.#format.label;
  }

  get hintsWork(): boolean {
    return this.#shared.watches.covers(this.leaseName);
  }

  async read(signal: AbortSignal): Promise<Reading> {
    return this.see(await this.#get(signal));
  }

  /** @param lease as a request has just found it. Undefined: it is not there */
  see(lease: Lease | undefined): Reading {
    this.#shared.watches.ensure(this.leaseName, lease?.metadata.resourceVersion);
    return this.#readingOf(lease);
  }

  async swap(expected: Version, next: LeaseRecord, signal: AbortSignal): Promise<SwapResult> {
    const base = await this.#leaseOf(expected, signal);
    if (base === 'another') return { outcome: 'conflict' };
    refuseToAskForeigners(next);
    const lease = leaseOfRecord(base, next, this.#format, this.leaseName, {
      wallMs: this.#scope.clock.wallMs(),
      uniqueId: this.#scope.uniqueId(),
    });
    const verb = base === undefined ? 'create' : 'update';
    const response = await this.#shared.api.request({
      method: base === undefined ? 'POST' : 'PUT',
      path: base === undefined ? this.#path('') : this.#path(`/${this.leaseName}`),
      body: lease,
      signal,
    });
    if (isGone(response) && base !== undefined) return { outcome: 'conflict' };
    if (response.status === 409) return { outcome: 'conflict' };
    const written = this.#leaseIn(response);
    if (written === undefined) throw this.#shared.refusals.error(verb, response);
    this.#shared.refusals.allowed(verb);
    // A leader does not read, but wants to hear of requests.
    this.#shared.watches.ensure(this.leaseName, written.metadata.resourceVersion);
    return { outcome: 'ok', version: this.#remember(written) };
  }

  watch(onHint: (reading?: Reading) => void): () => void {
    const end = this.#shared.watches.add(this.leaseName, {
      onLease: (lease) => {
        let reading: Reading;
        try {
          reading = this.#readingOf(lease);
        } catch {
          // A candidate that looks for itself is told why it cannot be read.
          return onHint();
        }
        onHint(reading);
      },
      onUnknown: () => onHint(),
      onTrouble: (error) => this.#scope.onTrouble('watching the Lease', error),
    });
    this.#unwatch.add(end);
    const latest = [...this.#seen.keys()].at(-1);
    if (latest !== undefined) this.#shared.watches.ensure(this.leaseName, String(latest));
    return () => {
      this.#unwatch.delete(end);
      end();
    };
  }

  async close(): Promise<void> {
    for (const end of this.#unwatch) end();
    this.#unwatch.clear();
  }

  async #get(signal: AbortSignal): Promise<Lease | undefined> {
    signal.throwIfAborted();
    const path = this.#path(`/${this.leaseName}`);
    const response = await this.#shared.api.request({ method: 'GET', path, signal });
    const lease = this.#leaseIn(response);
    if (lease === undefined && !isGone(response)) {
      throw this.#shared.refusals.error('get', response);
    }
    this.#shared.refusals.allowed('get');
    return lease;
  }

  /**
   * The Lease of a version. Undefined: it was not there. `another`: the Lease has
   * another version now.
   */
  async #leaseOf(version: Version, signal: AbortSignal): Promise<Lease | undefined | 'another'> {
    signal.throwIfAborted();
    if (version === absent) return undefined;
    const seen = this.#seen.get(version);
    if (seen !== undefined) return seen;
    const lease = await this.#get(signal);
    if (lease?.metadata.resourceVersion !== version) return 'another';
    this.#remember(lease);
    return lease;
  }

  #readingOf(lease: Lease | undefined): Reading {
    if (lease === undefined) return { record: undefined, version: absent };
    const record = recordOfLease(lease, this.#format);
    if (this.label !== undefined && record !== undefined) requireOf(this.#format, record);
    return { record, version: this.#remember(lease) };
  }

  #remember(lease: Lease): Version {
    requireUid(lease, this.#format.location);
    const version = lease.metadata.resourceVersion as string;
    this.#seen.delete(version);
    this.#seen.set(version, lease);
    for (const old of this.#seen.keys()) {
      if (this.#seen.size <= mostRemembered) break;
      this.#seen.delete(old);
    }
    return version;
  }

  #leaseIn({ status, body }: ApiResponse): Lease | undefined {
    return status === 200 || status === 201 ? asLease(body) : undefined;
  }

  #path(rest: string): string {
    const { namespace } = this.#shared;
    return `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases${rest}`;
  }
}

/**
 * True when the Lease is not there. Also where the namespace is not there: only a create
 * is told that.
 */
function isGone({ status, body }: ApiResponse): boolean {
  const told = status === 404 ? asStatus(body) : undefined;
  return told?.details?.kind === 'leases' && told.details.name !== undefined;
}

/**
 * A PUT to a Lease that was deleted makes it anew, whatever resourceVersion it has. A late
 * confirmation would then bring the record of an older term back. With the uid of the Lease that
 * was read, it is a conflict.
 */
function requireUid({ metadata }: Lease, location: string): void {
  if (typeof metadata.uid === 'string' && metadata.uid !== '') return;
  throw new StoreUnsuitableError(
    `${location} has no metadata.uid, as every Lease of Kubernetes has: without it a late write could ` +
      'bring a deleted Lease back; ask the API server itself, not something that leaves the uid out',
  );
}

function refuseToAskForeigners({ holding }: LeaseRecord): void {
  if (holding === undefined || !isForeign(holding.candidate.incarnation)) return;
  if (holding.request === undefined) return;
  throw new RefusedError(
    `"${holding.candidate.id}" leads, which is no candidate of incumbent and reads no requests: ` +
      'end that process, or have it release its lease',
  );
}
