/** What whoever is about to win checks and works out, in the queue and for the one lock alike. */

import { ElectionError, StoreUnavailableError, StoreUnsuitableError } from '../../base/errors.ts';
import type { QueueRecord } from '../../record/queue-record.ts';
import type { Place, QueueSession } from './store.ts';

/**
 * A read-only server may show what the quorum never commits: nothing is concluded from that.
 * @throws StoreUnavailableError
 */
export function requireQuorum(session: QueueSession): void {
  if (!session.isSuspended) return;
  throw new StoreUnavailableError('the store cannot be written at the moment');
}

/** @throws ElectionError (MISUSE) when the backend's own function throws */
export function makeGuard<Guard>(guard: (place: Place) => Guard, place: Place): Guard {
  try {
    return guard(place);
  } catch (error) {
    throw new ElectionError('MISUSE', `the backend could not make the guard of ${place.name}`, {
      cause: error,
    });
  }
}

/** The record's token is not below that of a place which was made after it. */
export function tokensWentBack(
  election: string,
  record: QueueRecord,
  place: Place,
): StoreUnsuitableError {
  return new StoreUnsuitableError(
    `election "${election}" has reached token ${record.token}, but this store numbers its writes ` +
      `from ${place.token}: the record comes from another store, or the store was set up anew; use ` +
      'another name for the election, or let every resource forget its tokens and delete the record',
  );
}
