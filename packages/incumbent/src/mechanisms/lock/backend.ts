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
import { LockRace } from './race.ts';
import type { LockParts, LockSettings } from './settings.ts';
import type { LockStore } from './store.ts';

/** An election for a lock. Only its holder is known, so waiting candidates cannot be listed. */
export class LockElection<Guard> implements ElectionBackend<Guard> {
  readonly canListCandidates = false;
  readonly #parts: LockParts<Guard>;

  constructor(scope: Scope, store: LockStore, settings: LockSettings<Guard>) {
    this.#parts = { store, scope, settings, leftovers: new Leftovers(store, scope) };
  }

  contest(candidate: CandidateInfo): LockRace<Guard> {
    return new LockRace(this.#parts, candidate);
  }

  observe(signal: AbortSignal): AsyncIterable<View> {
    const { store, scope, settings } = this.#parts;
    return observeQueue(store, scope, settings.pollMs ?? settings.recheckMs, signal);
  }

  inspect(signal: AbortSignal): Promise<Snapshot> {
    return inspectQueue(this.#parts.store, this.#parts.scope, signal);
  }

  administer(request: AdminRequest, signal: AbortSignal): Promise<AdminResult> {
    return administerLock(this.#parts.store, this.#parts.scope, request, signal);
  }

  async candidates(): Promise<readonly CandidateInfo[]> {
    throw new MisuseError('who waits for a lock is not known: only its holder is');
  }

  async init(signal: AbortSignal): Promise<void> {
    await this.#parts.store.init(signal);
  }

  async close(): Promise<void> {
    await this.#parts.store.close?.();
  }
}
