/** The elections of a store with sessions, from what its pages show of each. */
import type { FoundElection, SurveyLook } from '../../core/listing.ts';
import { leaderPlaceIn } from './named-places.ts';
import { snapshotOf } from './observer.ts';
import type { Member, QueueStore, RecordReading } from './store.ts';

/** One election, as one look found it. */
export interface ListedQueue extends Pick<QueueStore, 'nameHere' | 'isMixed'> {
  readonly name: string;
  /** Throws for a record that cannot be read. */
  readonly reading: () => RecordReading;
  /** The names of all places in order. Not older than the record. */
  readonly places: readonly string[];
  /** The members that could be read, in order. All but the leader, at least. */
  readonly members: readonly Member[];
}

export function foundQueue(queue: ListedQueue): FoundElection {
  const { name, reading, places, members } = queue;
  const infos = members.map(({ candidate }) => candidate);
  return {
    name,
    waiting: infos,
    summarize({ clock }: SurveyLook) {
      const read = reading();
      const first = queue.isMixed ? members[0] : undefined;
      const snapshot = snapshotOf(queue, read, { names: places, first }, clock.wallMs());
      const named = leaderPlaceIn(queue, read.record);
      // A member of another make leads as soon as it is the first.
      const leads = ({ name: place }: Member) =>
        place === named || (snapshot.view.state === 'led' && place === first?.name);
      const others = members.filter((member) => !leads(member));
      return { ...snapshot, waiting: others.map(({ candidate }) => candidate) };
    },
  };
}
