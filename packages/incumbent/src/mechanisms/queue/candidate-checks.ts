/** Checks and questions of candidates, for the queue and for the lock. */

import type { Instant } from '../../base/clock.ts';
import { ElectionError, StoreUnavailableError, StoreUnsuitableError } from '../../base/errors.ts';
import type { NotElectedReason } from '../../base/not-elected.ts';
import type { Scope } from '../../core/contest.ts';
import type { QueueRecord } from '../../record/queue-record.ts';
import { askBounded } from './ask.ts';
import { Confirmations } from './confirmations.ts';
import type { QueueParts } from './settings.ts';
import type { Place, QueueSession } from './store.ts';

/**
 * A read-only server may show writes that the quorum never commits, so nothing is
 * concluded from them.
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

/**
 * Confirms that the place is there, from now on.
 * @returns when the request was sent. Undefined when the place is gone
 */
export function confirmNow(
  session: QueueSession,
  { clock, timing }: Scope,
  place: Place,
  signal: AbortSignal,
): Promise<Instant | undefined> {
  const fromMs = clock.monotonicMs();
  const isWanted = ({ monotonicMs }: Instant) => monotonicMs >= fromMs;
  const confirmations = Confirmations.of(session, clock);
  return confirmations.confirm(place, isWanted, timing.operationTimeoutMs, signal);
}

/** The first in line, as the reason why another candidate is not elected. */
export async function firstMember(
  { store, scope }: Pick<QueueParts<unknown>, 'store' | 'scope'>,
  signal: AbortSignal,
): Promise<NotElectedReason | undefined> {
  const list = (operation: AbortSignal) => store.members(operation, 1);
  const [first] = await askBounded(scope, 'listing', signal, list);
  return first && { kind: 'led', id: first.candidate.id, token: first.token };
}
