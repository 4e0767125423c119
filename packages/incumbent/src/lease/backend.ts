import type { CandidateInfo } from '../candidate.ts';
import type { Backend, ElectionBackend, Scope } from '../contest.ts';
import type { TimingLimits } from '../timing.ts';
import { administerLease } from './administer.ts';
import { inspectLease, observeLease } from './observer.ts';
import { LeaseRace } from './race.ts';
import type { LeaseStore } from './store.ts';

export interface LeaseBackendOptions<Guard> {
  readonly kind: string;
  readonly description: string;
  readonly limits?: TimingLimits;
  /** Called once for every handle on an election. May reject the name (InvalidOptionError). */
  readonly openStore: (scope: Scope) => LeaseStore;
  readonly guard: (scope: Scope, store: LeaseStore, token: bigint) => Guard;
}

/** A backend from a lease store: all that a lease adapter has to write is the store and the guard. */
export function leaseBackend<Guard>(options: LeaseBackendOptions<Guard>): Backend<Guard> {
  return {
    kind: options.kind,
    description: options.description,
    ...(options.limits === undefined ? {} : { limits: options.limits }),
    open(scope: Scope): ElectionBackend<Guard> {
      const store = options.openStore(scope);
      const backend: ElectionBackend<Guard> = {
        contest: (candidate) =>
          new LeaseRace(store, scope, candidate, (token) => options.guard(scope, store, token)),
        observe: (signal) => observeLease(store, scope, signal),
        inspect: (signal) => inspectLease(store, scope, signal),
        administer: (request, signal) => administerLease(store, scope, request, signal),
        async init(signal) {
          await store.init?.(signal);
        },
        async close() {
          await store.close?.();
        },
      };
      if (store.list !== undefined) {
        backend.candidates = (signal) => listCandidates(store, scope, signal);
      }
      return backend;
    },
  };
}

/** The leader first, then those who wait. */
async function listCandidates(
  store: LeaseStore,
  scope: Scope,
  signal: AbortSignal,
): Promise<readonly CandidateInfo[]> {
  const { view } = await inspectLease(store, scope, signal);
  const waiting = (await store.list?.(signal)) ?? [];
  const { leader } = view;
  if (leader === undefined) return waiting;
  return [leader, ...waiting.filter(({ incarnation }) => incarnation !== leader.incarnation)];
}
