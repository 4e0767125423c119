import { keepWatching } from './keep-watching.ts';
import type { QueueParts } from './settings.ts';
import type { Place, RecordReading, Watched } from './store.ts';

/** The parts of a seat that are watched. */
export interface WatchedSeat {
  readonly place: Place;
  /** A watch on the place that is set already. */
  readonly own: Watched<boolean> | undefined;
  /** Foreign data stands in the place of the record. It tells us nothing. */
  readonly isForeign: boolean;
}

/** The changes that are reported. */
export interface SeatNews {
  onPlaceGone(): void;
  onRecord(reading: RecordReading): void;
  /** The end of the election is marked, or was. */
  onEndMark(): void;
}

/** Watches until `signal` aborts. */
export function watchSeat(
  { store, scope }: Pick<QueueParts<unknown>, 'store' | 'scope'>,
  { place, own, isForeign }: WatchedSeat,
  news: SeatNews,
  signal: AbortSignal,
): void {
  void keepWatching(scope, signal, {
    first: own,
    watch: (operation) => store.watchPlace(place.name, operation),
    // Whatever has happened to the place, only a confirmation that is sent after it counts.
    onValue: (isThere) => {
      if (!isThere) news.onPlaceGone();
      return isThere;
    },
  });
  if (!isForeign) {
    void keepWatching(scope, signal, {
      watch: (operation) => store.watchRecord(operation),
      onValue: (reading) => {
        news.onRecord(reading);
        return true;
      },
    });
  }
  const { endMark } = store;
  if (endMark === undefined) return;
  const onMark = (isSet: boolean) => {
    if (isSet) news.onEndMark();
    return !isSet;
  };
  void keepWatching(scope, signal, {
    watch: async (operation) => {
      const watched = await endMark.watch(operation);
      void watched.changed.then(onMark);
      return watched;
    },
    onValue: onMark,
  });
}
