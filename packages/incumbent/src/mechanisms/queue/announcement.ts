import type { CandidateInfo } from '../../base/candidate.ts';
import type { Scope, SeatState } from '../../core/contest.ts';
import type { QueueRecord } from '../../record/queue-record.ts';
import { emptyQueueRecord } from '../../record/queue-record.ts';
import { keptDrains, published } from '../../record/record.ts';
import { historyAfter } from '../../record/transitions.ts';
import { isLeadingIn } from './named-places.ts';
import type { Place, QueueStore } from './store.ts';

/** The leader, its place, and the state that it shows. */
export interface Announcement {
  readonly candidate: CandidateInfo;
  readonly place: Place;
  readonly state: SeatState;
}

/** The record that names this place as leading. */
export function announcedRecord(
  store: Pick<QueueStore, 'nameHere'>,
  scope: Scope,
  previous: QueueRecord | undefined,
  { candidate, place, state }: Announcement,
): QueueRecord {
  const wallMs = scope.clock.wallMs();
  const base = previous ?? emptyQueueRecord(scope.election, '');
  const last = base.holding;
  const shown = published(candidate, state);
  const isOurs = last !== undefined && isLeadingIn(store, base, place);
  const history = isOurs ? base.history : historyAfter(base, wallMs);
  return {
    ...base,
    token: place.token,
    place: place.name,
    nonce: scope.uniqueId(),
    beliefMs: scope.timing.beliefMs,
    holding: {
      candidate: shown.candidate,
      place: place.name,
      electedAtUnixMs: isOurs ? last.electedAtUnixMs : wallMs,
      leaseMs: scope.timing.leaseMs,
      revoked: isOurs ? last.revoked : false,
      request: isOurs ? last.request : undefined,
      held: shown.held,
      ready: shown.ready,
    },
    reservation: undefined,
    unfenced: [],
    drains: keptDrains(base.drains, wallMs),
    history,
    seats: scope.seats,
  };
}
