/** What candidates check and ask, in the queue and for the one lock alike. */

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

/** When the place was last known to be there, from now on. Undefined when it is not. */
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

/** Who is first, as the reason why somebody else is not elected. */
export async function firstMember(
  { store, scope }: Pick<QueueParts<unknown>, 'store' | 'scope'>,
  signal: AbortSignal,
): Promise<NotElectedReason | undefined> {
  const list = (operation: AbortSignal) => store.members(operation, 1);
  const [first] = await askBounded(scope, 'listing', signal, list);
  return first && { kind: 'led', id: first.candidate.id, token: first.token };
}
