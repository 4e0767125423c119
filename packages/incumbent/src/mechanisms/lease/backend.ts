import type { CandidateInfo } from '../../base/candidate.ts';
import type { TimingLimits } from '../../base/timing.ts';
import type {
  AdminRequest,
  AdminResult,
  Backend,
  DeadLeader,
  ElectionBackend,
  Scope,
  Snapshot,
} from '../../core/contest.ts';
import { listingOf, noListing } from '../../core/listing.ts';
import type { View } from '../../record/record.ts';
import { administerLease } from './administer.ts';
import { giveBackLease } from './give-back-for-dead.ts';
import type { LeaseLister } from './listing.ts';
import { leasePages, shardsIn } from './listing.ts';
import { inspectLease, observeLease } from './observer.ts';
import { LeaseRace } from './race.ts';
import { readEach } from './read-all.ts';
import type { LeaseStore, Leases } from './store.ts';

/** The parts of a backend that is made from a lease store. */
export interface LeaseBackendOptions<Guard> {
  /** A word for the store, such as `file` or `postgres`. */
  readonly kind: string;
  /** Which store this is, for people, without secrets. */
  readonly description: string;
  /** Limits that the store sets on durations. */
  readonly limits?: TimingLimits;
  /** Called once for every handle on an election. May reject the name (InvalidOptionError). */
  readonly openStore: (scope: Scope) => LeaseStore;
  /** Makes `term.guard`. Called before the term is written. */
  readonly guard: (scope: Scope, store: LeaseStore, token: bigint) => Guard;
  /**
   * Lists the elections of the store. A text, for a store that cannot: the sentence that says why.
   * Left out: `backend.elections()` says that this kind of store does not list them.
   */
  readonly list?: LeaseLister | string;
  /**
   * Parts of `backend.leases` that differ. Left out: `openStore`, a read for each lease, 32 at once,
   * and the shards among the elections of `list`.
   */
  readonly leases?: Partial<Leases>;
}

/** A backend from a lease store. An adapter has to write only the store and the guard. */
export function leaseBackend<Guard>(options: LeaseBackendOptions<Guard>): Backend<Guard> {
  return {
    kind: options.kind,
    description: options.description,
    ...(options.limits === undefined ? {} : { limits: options.limits }),
    open: (scope) => new LeaseElection(scope, options),
    leases: {
      ...{ open: options.openStore, readAll: readEach() },
      ...(typeof options.list === 'object' && { shards: shardsIn(options.list) }),
      ...options.leases,
    },
    ...listing(options),
  };
}

function listing({
  kind,
  list = `a store of the kind "${kind}" does not list its elections: ask for one by its name`,
  limits,
}: Pick<LeaseBackendOptions<unknown>, 'kind' | 'list' | 'limits'>): ReturnType<typeof listingOf> {
  return typeof list === 'string' ? noListing(list) : listingOf(leasePages(list, limits));
}

class LeaseElection<Guard> implements ElectionBackend<Guard> {
  readonly #scope: Scope;
  readonly #options: LeaseBackendOptions<Guard>;
  readonly #store: LeaseStore;
  readonly #races: LeaseRace<Guard>[] = [];

  constructor(scope: Scope, options: LeaseBackendOptions<Guard>) {
    this.#scope = scope;
    this.#options = options;
    this.#store = options.openStore(scope);
  }

  get canListCandidates(): boolean {
    return this.#store.list !== undefined;
  }

  contest(candidate: CandidateInfo): LeaseRace<Guard> {
    const race = new LeaseRace(this.#store, this.#scope, candidate, (token) =>
      this.#options.guard(this.#scope, this.#store, token),
    );
    this.#races.push(race);
    return race;
  }

  observe(signal: AbortSignal): AsyncIterable<View> {
    return observeLease(this.#store, this.#scope, signal);
  }

  inspect(signal: AbortSignal): Promise<Snapshot> {
    return inspectLease(this.#store, this.#scope, signal);
  }

  administer(request: AdminRequest, signal: AbortSignal): Promise<AdminResult> {
    return administerLease(this.#store, this.#scope, request, signal);
  }

  giveBackFor(leader: DeadLeader, signal: AbortSignal): Promise<boolean> {
    return giveBackLease(this.#store, this.#scope, leader, signal);
  }

  /** The leader first, then the waiting candidates. */
  async candidates(signal: AbortSignal): Promise<readonly CandidateInfo[]> {
    const { view } = await this.inspect(signal);
    const waiting = (await this.#store.list?.(signal)) ?? [];
    const { leader } = view;
    if (leader === undefined) return waiting;
    return [leader, ...waiting.filter(({ incarnation }) => incarnation !== leader.incarnation)];
  }

  async init(signal: AbortSignal): Promise<void> {
    await this.#store.init?.(signal);
  }

  async close(): Promise<void> {
    for (const race of this.#races) race.close();
    await this.#store.close?.();
  }
}
