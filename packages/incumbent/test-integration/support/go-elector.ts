/**
 * client-go's `leaderelection` and `resourcelock.LeaseLock` (1.2x), step by step, as a Go
 * controller treats a Lease. It looks for changes in a record whose times are whole seconds. It
 * renews by a write on the version that it wrote last, and knows holders by their names.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiResponse, KubernetesApi } from '../../src/backends/kubernetes/index.ts';

export interface GoElectorOptions {
  readonly identity: string;
  readonly leaseName: string;
  readonly leaseDurationMs: number;
  readonly renewDeadlineMs: number;
  readonly retryPeriodMs: number;
  readonly releaseOnCancel?: boolean;
}

interface LeaderElectionRecord {
  readonly holderIdentity: string;
  readonly leaseDurationSeconds: number;
  readonly acquireTime: string;
  readonly renewTime: string;
  readonly leaderTransitions: number;
}

interface LeaseBody {
  readonly metadata: Record<string, unknown>;
  readonly spec: Record<string, unknown>;
}

const leases = '/apis/coordination.k8s.io/v1/namespaces/default/leases';

export class GoElector {
  readonly #api: KubernetesApi;
  readonly #options: GoElectorOptions;
  #observedRecord: LeaderElectionRecord | undefined;
  #observedRawRecord = '';
  #observedTimeMs = 0;
  #lease: LeaseBody | undefined;
  /** It takes itself for the leader. */
  isLeading = false;
  /** How often it began to lead. */
  terms = 0;
  onStartedLeading: () => void = () => {};

  constructor(api: KubernetesApi, options: GoElectorOptions) {
    this.#api = api;
    this.#options = options;
  }

  /** `RunOrDie`: acquires, leads until it cannot renew or `signal` aborts, and then returns. */
  async run(signal: AbortSignal): Promise<void> {
    const { retryPeriodMs, releaseOnCancel } = this.#options;
    while (!(await this.#tryAcquireOrRenew(signal))) {
      if (signal.aborted) return;
      await pause(retryPeriodMs * (1 + 1.2 * Math.random()), signal);
      if (signal.aborted) return;
    }
    this.isLeading = true;
    this.terms += 1;
    this.onStartedLeading();
    try {
      while (await this.#renewOnce(signal)) await pause(retryPeriodMs, signal);
    } finally {
      this.isLeading = false;
    }
    if (releaseOnCancel === true) await this.#release();
  }

  /** `wait.PollImmediateUntil` within RenewDeadline. */
  async #renewOnce(signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return false;
    const { renewDeadlineMs, retryPeriodMs } = this.#options;
    const bound = AbortSignal.any([signal, AbortSignal.timeout(renewDeadlineMs)]);
    while (!bound.aborted) {
      if (await this.#tryAcquireOrRenew(bound)) return true;
      await pause(retryPeriodMs, bound);
    }
    return false;
  }

  async #tryAcquireOrRenew(signal: AbortSignal): Promise<boolean> {
    const { identity, leaseDurationMs } = this.#options;
    const nowMs = performance.now();
    const now = microTime();
    let next: LeaderElectionRecord = {
      holderIdentity: identity,
      leaseDurationSeconds: Math.floor(leaseDurationMs / 1_000),
      renewTime: now,
      acquireTime: now,
      leaderTransitions: 0,
    };
    const observed = this.#observedRecord;
    // 1. The leader updates optimistically.
    if (observed?.holderIdentity === identity && this.#isLeaseValid(nowMs)) {
      const { acquireTime, leaderTransitions } = observed;
      next = { ...next, acquireTime, leaderTransitions };
      if (await this.#update(next, signal)) {
        this.#setObserved(next);
        return true;
      }
    }
    // 2. Obtain or create.
    const old = await this.#get(signal);
    if (old === 'failed') return false;
    if (old === 'not found') {
      if (!(await this.#create(next, signal))) return false;
      this.#setObserved(next);
      return true;
    }
    // 3. Check identity and time.
    const raw = rawRecord(old);
    if (raw !== this.#observedRawRecord) {
      this.#setObserved(old);
      this.#observedRawRecord = raw;
    }
    const isLeader = this.#observedRecord?.holderIdentity === identity;
    if (old.holderIdentity !== '' && this.#isLeaseValid(nowMs) && !isLeader) return false;
    // 4. Try to update.
    next = isLeader
      ? { ...next, acquireTime: old.acquireTime, leaderTransitions: old.leaderTransitions }
      : { ...next, leaderTransitions: old.leaderTransitions + 1 };
    if (!(await this.#update(next, signal))) return false;
    this.#setObserved(next);
    return true;
  }

  async #release(): Promise<void> {
    const observed = this.#observedRecord;
    if (observed?.holderIdentity !== this.#options.identity) return;
    const now = microTime();
    await this.#update(
      {
        holderIdentity: '',
        leaseDurationSeconds: 1,
        leaderTransitions: observed.leaderTransitions,
        renewTime: now,
        acquireTime: now,
      },
      AbortSignal.timeout(this.#options.renewDeadlineMs),
    );
  }

  #isLeaseValid(nowMs: number): boolean {
    const seconds = this.#observedRecord?.leaseDurationSeconds ?? 0;
    return this.#observedTimeMs + seconds * 1_000 > nowMs;
  }

  #setObserved(record: LeaderElectionRecord): void {
    this.#observedRecord = record;
    this.#observedTimeMs = performance.now();
  }

  async #get(signal: AbortSignal): Promise<LeaderElectionRecord | 'not found' | 'failed'> {
    const response = await this.#send('GET', `/${this.#options.leaseName}`, undefined, signal);
    if (response?.status === 404) return 'not found';
    if (response?.status !== 200) return 'failed';
    this.#lease = response.body as LeaseBody;
    const { spec = {} } = this.#lease;
    return {
      holderIdentity: (spec['holderIdentity'] as string | undefined) ?? '',
      leaseDurationSeconds: (spec['leaseDurationSeconds'] as number | undefined) ?? 0,
      acquireTime: (spec['acquireTime'] as string | undefined) ?? '',
      renewTime: (spec['renewTime'] as string | undefined) ?? '',
      leaderTransitions: (spec['leaseTransitions'] as number | undefined) ?? 0,
    };
  }

  async #create(record: LeaderElectionRecord, signal: AbortSignal): Promise<boolean> {
    const metadata = { name: this.#options.leaseName, namespace: 'default' };
    const response = await this.#send('POST', '', { metadata, spec: specOf(record) }, signal);
    if (response?.status !== 201) return false;
    this.#lease = response.body as LeaseBody;
    return true;
  }

  async #update(record: LeaderElectionRecord, signal: AbortSignal): Promise<boolean> {
    // The whole spec is replaced. All other fields are as they were read.
    const body = { ...this.#lease, spec: specOf(record) };
    const response = await this.#send('PUT', `/${this.#options.leaseName}`, body, signal);
    if (response?.status !== 200) return false;
    this.#lease = response.body as LeaseBody;
    return true;
  }

  async #send(
    method: 'GET' | 'POST' | 'PUT',
    path: string,
    body: object | undefined,
    signal: AbortSignal,
  ): Promise<ApiResponse | undefined> {
    try {
      return await this.#api.request({ method, path: leases + path, body, signal });
    } catch {
      return undefined;
    }
  }
}

function specOf({ leaderTransitions, ...record }: LeaderElectionRecord): object {
  return { ...record, leaseTransitions: leaderTransitions };
}

/** `json.Marshal` of the record: `metav1.Time` has no fractions of a second. */
function rawRecord({ acquireTime, renewTime, ...rest }: LeaderElectionRecord): string {
  return JSON.stringify([rest, acquireTime.slice(0, 19), renewTime.slice(0, 19)]);
}

function microTime(): string {
  return new Date().toISOString().replace('Z', '000Z');
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => {});
}
