/**
 * The places that a record names, in the spelling of the client that asks. Compare a place with
 * nothing else in a record: its writer may know the same place by another path.
 */
import type { QueueHolding, QueueRecord } from '../../record/queue-record.ts';
import type { Place, QueueStore } from './store.ts';

type Spelling = Pick<QueueStore, 'nameHere'>;

/** The leader's place. Undefined when the record names no leader. */
export function leaderPlaceIn(
  store: Spelling,
  record: QueueRecord | undefined,
): string | undefined {
  const place = record?.holding?.place;
  return place === undefined ? undefined : store.nameHere(place);
}

/**
 * True when this place leads, by the record. The token is compared too: where names come again, the
 * record of a later election may have our name in it.
 */
export function isLeadingIn(
  store: Spelling,
  record: QueueRecord | undefined,
  place: Place,
): record is QueueRecord & { readonly holding: QueueHolding } {
  if (record?.holding === undefined || record.token !== place.token) return false;
  return store.nameHere(record.holding.place) === place.name;
}

/**
 * True when the last term that was announced is that of this place. The token is compared
 * too, as above.
 */
export function wasLastIn(store: Spelling, record: QueueRecord | undefined, place: Place): boolean {
  return record?.token === place.token && lastPlaceIn(store, record) === place.name;
}

/** The place of the last term that was announced. Undefined before the first. */
export function lastPlaceIn(store: Spelling, record: QueueRecord | undefined): string | undefined {
  const { place = '' } = record ?? {};
  return place === '' ? undefined : store.nameHere(place);
}
