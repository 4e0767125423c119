import { StoreUnavailableError } from '../../base/errors.ts';
import type { Attempts } from '../../core/attempts.ts';
import type { Scope } from '../../core/contest.ts';
import type { QueueRecord } from '../../record/queue-record.ts';
import { takenBack } from '../../record/transitions.ts';
import { isLeadingIn } from './named-places.ts';
import type { CommitResult, Place, QueueStore } from './store.ts';
import { withoutNaming } from './successor.ts';

/** How often taking back starts again because others write. */
const mostTries = 5;

/** An announcement whose answer was lost, of a term that is not to be. */
export interface PendingAnnouncement {
  readonly place: Place;
  /** The record before the announcement. */
  readonly before: QueueRecord | undefined;
  readonly attempts: Attempts;
  /** The nonce with which the leader before us may have named us. */
  readonly mark?: string | undefined;
}

/**
 * Gives the place up, so that the announcement cannot land any more. The announcement checks the
 * place. Where the name of a place comes again, it meets another version of the record.
 *
 * If it has landed, the record then shows a vacant seat. The next leader has to fence the same
 * leaders as before. Otherwise the record would name a leader whose place is gone. That leader
 * would be waited out and fenced without having led.
 */
export async function takeBack(
  store: QueueStore,
  scope: Scope,
  { place, before: found, attempts, mark }: PendingAnnouncement,
  signal: AbortSignal,
): Promise<void> {
  // Only the store can say so: a session that is over by our clock may live on there.
  let isGone = false;
  for (let tries = 0; tries < mostTries; tries += 1) {
    // An old reading of the record has an old version, on which nothing is withdrawn.
    if (tries > 0 || mark === undefined) await store.sync(signal);
    const { record, version } = await store.read(signal);
    let result: CommitResult;
    // The nonce is compared too: a copy of this process may lead at the same place.
    if (!isLeadingIn(store, record, place) || !attempts.wrote(record)) {
      if (isGone) return;
      if (store.outdate !== undefined && !(await store.outdate(version, signal))) continue;
      if (mark !== undefined && store.succession !== undefined) {
        // Nobody sees a record that names us while our place is missing.
        result = await store.succession.withdraw(place, version, signal);
        if (result.outcome === 'ok') return;
        isGone = result.outcome === 'gone';
        continue;
      }
      // The announcement may land just before that, so look once more.
      result = await store.release(place, undefined, version, signal);
      isGone = result.outcome !== 'conflict';
      continue;
    }
    const before = record.nonce === mark ? withoutNaming(record) : found;
    const next = takenBack(record, before, attempts.wrote(before), scope.uniqueId());
    if (isGone) result = await store.amend({ record: next, version }, signal);
    else result = await store.release(place, next, version, signal);
    if (result.outcome === 'ok') return;
    isGone ||= result.outcome === 'gone';
  }
  throw new StoreUnavailableError(`the record changed under each of ${mostTries} attempts`);
}
