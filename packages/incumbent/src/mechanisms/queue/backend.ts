import type { CandidateInfo } from '../../base/candidate.ts';
import { bounded } from '../../base/wait.ts';
import type {
  AdminRequest,
  AdminResult,
  ElectionBackend,
  Scope,
  Snapshot,
} from '../../core/contest.ts';
import type { View } from '../../record/record.ts';
import { administerQueue } from './administer.ts';
import { Leftovers } from './leftovers.ts';
import { leaderPlaceIn } from './named-places.ts';
import { inspectQueue, observeQueue } from './observer.ts';
import { patienceMs } from './patience.ts';
import { Queue } from './queue.ts';
import type { QueueSettings } from './settings.ts';
import type { QueueStore } from './store.ts';

/** An election from a store with sessions: all that an adapter has to write is the store. */
export class QueueElection<Guard> implements ElectionBackend<Guard> {
  readonly canListCandidates = true;
  readonly #scope: Scope;
  readonly #store: QueueStore;
  readonly #settings: QueueSettings<Guard>;
  readonly #leftovers: Leftovers;

  constructor(scope: Scope, store: QueueStore, settings: QueueSettings<Guard>) {
    this.#scope = scope;
    this.#store = store;
    this.#settings = settings;
    this.#leftovers = new Leftovers(store, scope);
  }

  contest(candidate: CandidateInfo): Queue<Guard> {
    return new Queue(this.#store, this.#scope, candidate, this.#settings, this.#leftovers);
  }

  observe(signal: AbortSignal): AsyncIterable<View> {
    return observeQueue(this.#store, this.#scope, this.#settings.recheckMs, signal);
  }

  inspect(signal: AbortSignal): Promise<Snapshot> {
    return inspectQueue(this.#store, this.#scope, signal);
  }

  administer(request: AdminRequest, signal: AbortSignal): Promise<AdminResult> {
    return administerQueue(this.#store, this.#scope, request, signal);
  }

  /** In the order of the queue. What the leader has proclaimed stands in the record. */
  async candidates(signal: AbortSignal): Promise<readonly CandidateInfo[]> {
    const { clock, timing } = this.#scope;
    const ask = <T>(operation: (signal: AbortSignal) => Promise<T>): Promise<T> =>
      bounded(clock, 'listing candidates', patienceMs(timing), signal, operation);
    await ask((operation) => this.#store.sync(operation));
    const { record } = await ask((operation) => this.#store.read(operation));
    const leader = leaderPlaceIn(this.#store, record);
    const members = await ask((operation) => this.#store.members(operation));
    return members.map(({ name, candidate }) =>
      name === leader ? (record?.holding?.candidate ?? candidate) : candidate,
    );
  }

  async init(signal: AbortSignal): Promise<void> {
    await this.#store.init(signal);
  }

  async close(): Promise<void> {
    await this.#store.close?.();
  }
}
