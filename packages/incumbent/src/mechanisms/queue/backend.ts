import type { CandidateInfo } from '../../base/candidate.ts';
import type {
  AdminRequest,
  AdminResult,
  DeadLeader,
  ElectionBackend,
  Scope,
  Snapshot,
} from '../../core/contest.ts';
import type { View } from '../../record/record.ts';
import { administerQueue } from './administer.ts';
import { asking } from './ask.ts';
import { deleteCandidates } from './delete-candidates.ts';
import { endAndRemove } from './end-and-remove.ts';
import { giveBackPlace } from './give-back-for-dead.ts';
import { Leftovers } from './leftovers.ts';
import { leaderPlaceIn } from './named-places.ts';
import { inspectQueue, observeQueue } from './observer.ts';
import { Queue } from './queue.ts';
import type { QueueParts, QueueSettings } from './settings.ts';
import type { QueueStore } from './store.ts';

/** An election from a store with sessions. An adapter has to write only the store. */
export class QueueElection<Guard> implements ElectionBackend<Guard> {
  readonly canListCandidates = true;
  readonly #parts: QueueParts<Guard>;

  constructor(scope: Scope, store: QueueStore, settings: QueueSettings<Guard>) {
    this.#parts = { store, scope, settings, leftovers: new Leftovers(store, scope) };
  }

  contest(candidate: CandidateInfo): Queue<Guard> {
    return new Queue(this.#parts, candidate);
  }

  observe(signal: AbortSignal): AsyncIterable<View> {
    const { store, scope, settings } = this.#parts;
    return observeQueue(store, scope, settings.recheckMs, signal);
  }

  inspect(signal: AbortSignal): Promise<Snapshot> {
    return inspectQueue(this.#parts.store, this.#parts.scope, signal);
  }

  administer(request: AdminRequest, signal: AbortSignal): Promise<AdminResult> {
    return administerQueue(this.#parts.store, this.#parts.scope, request, signal);
  }

  get endAndRemove(): ElectionBackend<Guard>['endAndRemove'] {
    const { removal } = this.#parts.store;
    return removal && ((signal) => endAndRemove(this.#parts, removal, signal));
  }

  get deleteCandidates(): ElectionBackend<Guard>['deleteCandidates'] {
    const { store, scope } = this.#parts;
    return store.isMixed ? (signal) => deleteCandidates(store, scope, signal) : undefined;
  }

  get giveBackFor(): ElectionBackend<Guard>['giveBackFor'] {
    const { store, scope } = this.#parts;
    // Where names come again, the place of that name may be another candidate's by now.
    if (store.isSame !== undefined) return undefined;
    return (leader: DeadLeader, signal) => giveBackPlace(store, scope, leader, signal);
  }

  /**
   * In the order of the queue. The leader's addresses and metadata come from the record, where it
   * has proclaimed them.
   */
  async candidates(signal: AbortSignal): Promise<readonly CandidateInfo[]> {
    const { store, scope } = this.#parts;
    const ask = asking(scope, signal);
    const what = 'listing candidates';
    await ask(what, (operation) => store.sync(operation));
    const { record } = await ask(what, (operation) => store.read(operation));
    const leader = leaderPlaceIn(store, record);
    const members = await ask(what, (operation) => store.members(operation));
    return members.map(({ name, candidate }) =>
      name === leader ? (record?.holding?.candidate ?? candidate) : candidate,
    );
  }

  async init(signal: AbortSignal): Promise<void> {
    await this.#parts.store.init(signal);
  }

  async close(): Promise<void> {
    await this.#parts.store.close?.();
  }
}
