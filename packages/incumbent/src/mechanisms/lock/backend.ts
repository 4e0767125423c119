import type { CandidateInfo } from '../../base/candidate.ts';
import { MisuseError } from '../../base/errors.ts';
import type {
  AdminRequest,
  AdminResult,
  ElectionBackend,
  Scope,
  Snapshot,
} from '../../core/contest.ts';
import type { View } from '../../record/record.ts';
import { Leftovers } from '../queue/leftovers.ts';
import { inspectQueue, observeQueue } from '../queue/observer.ts';
import { administerLock } from './administer.ts';
import type { LockSettings } from './race.ts';
import { LockRace } from './race.ts';
import type { LockStore } from './store.ts';

/** An election for a lock. Only its holder is known, so who waits cannot be listed. */
export class LockElection<Guard> implements ElectionBackend<Guard> {
  readonly canListCandidates = false;
  readonly #scope: Scope;
  readonly #store: LockStore;
  readonly #settings: LockSettings<Guard>;
  readonly #leftovers: Leftovers;

  constructor(scope: Scope, store: LockStore, settings: LockSettings<Guard>) {
    this.#scope = scope;
    this.#store = store;
    this.#settings = settings;
    this.#leftovers = new Leftovers(store, scope);
  }

  contest(candidate: CandidateInfo): LockRace<Guard> {
    return new LockRace(this.#store, this.#scope, candidate, this.#settings, this.#leftovers);
  }

  observe(signal: AbortSignal): AsyncIterable<View> {
    const { pollMs, recheckMs } = this.#settings;
    return observeQueue(this.#store, this.#scope, pollMs ?? recheckMs, signal);
  }

  inspect(signal: AbortSignal): Promise<Snapshot> {
    return inspectQueue(this.#store, this.#scope, signal);
  }

  administer(request: AdminRequest, signal: AbortSignal): Promise<AdminResult> {
    return administerLock(this.#store, this.#scope, request, signal);
  }

  async candidates(): Promise<readonly CandidateInfo[]> {
    throw new MisuseError('who waits for a lock is not known: only its holder is');
  }

  async init(signal: AbortSignal): Promise<void> {
    await this.#store.init(signal);
  }

  async close(): Promise<void> {
    await this.#store.close?.();
  }
}
