/** The elections of a lease store, from the records in its pages. */
import { ElectionError } from '../../base/errors.ts';
import type { TimingLimits } from '../../base/timing.ts';
import { deriveTiming } from '../../base/timing.ts';
import type { ElectionSummary, Scope } from '../../core/contest.ts';
import type { ElectionPages, SurveyLook, Wanted } from '../../core/listing.ts';
import { snapshotOf } from './observer.ts';
import { Observation } from './reading.ts';
import type { LeaseStore, Leases, LeaseTraits, Reading } from './store.ts';

/** The listing of a store. The rules of its ages and its memory are those of `LeaseStore`. */
export interface LeaseLister extends LeaseTraits {
  /**
   * One attempt to read a page. A name may come twice. Never writes.
   * @param after `next` of the page before. Undefined: from the beginning
   * @param wanted `names`: the readings are not used, so they need not be read
   */
  page(after: unknown, wanted: Wanted, signal: AbortSignal): Promise<LeasePage>;
}

/** Some elections of a lease store. */
export interface LeasePage {
  readonly elections: readonly ListedLease[];
  /** For the next call of `page`. Undefined: this page is the last one. */
  readonly next: unknown;
}

/** One election, as a page shows it. */
export interface ListedLease {
  readonly name: string;
  /** Throws for a record that cannot be read. */
  readonly reading: () => Reading;
  /** True: its record is one of shards. Left out: the reading tells. */
  readonly hasShards?: boolean;
  /** The candidates that are enlisted. Undefined: the store keeps no list. */
  readonly waiting?: ElectionSummary['waiting'];
}

/**
 * An election whose record cannot be read, although others can.
 * @throws the error itself, or the reason of `signal`, where another attempt may do better
 */
export function unreadableLease(name: string, error: unknown, signal: AbortSignal): ListedLease {
  if (signal.aborted) throw signal.reason;
  if (!(error instanceof ElectionError) || error.retryable) throw error;
  return {
    name,
    reading() {
      throw error;
    },
  };
}

/** A part of shards has the name of these, a slash, and this. */
const partOfShards: RegExp = /\/(\d+|list|directory)$/;

/** The names of shards of which there is a first part. */
export function shardsWithParts(names: readonly string[]): readonly string[] {
  return names.filter((name) => name.endsWith('/1')).map((name) => name.slice(0, -2));
}

/** Such a lease is no election. */
function isOfShards({ hasShards, reading }: ListedLease): boolean {
  try {
    return hasShards ?? reading().record?.shards !== undefined;
  } catch {
    // It is told with the election, if it is one.
    return false;
  }
}

/** `leases.shards` of a store that keeps leases where its elections are. */
export function shardsIn(lister: LeaseLister): NonNullable<Leases['shards']> {
  return async (signal) => {
    const names = new Set<string>();
    let after: unknown;
    do {
      signal.throwIfAborted();
      const { elections, next } = await lister.page(after, 'names', signal);
      for (const each of elections) {
        if (isOfShards(each) && !partOfShards.test(each.name)) names.add(each.name);
      }
      after = next;
    } while (after !== undefined);
    return [...names];
  };
}

export function leasePages(lister: LeaseLister, limits: TimingLimits | undefined): ElectionPages {
  const timing = deriveTiming({}, limits);
  return {
    async page(after, wanted, signal) {
      const { elections, next } = await lister.page(after, wanted, signal);
      return { elections: elections.filter((each) => !isOfShards(each)).map(found), next };
    },
  };

  function found({ name, reading, waiting }: ListedLease) {
    return {
      name,
      waiting,
      summarize({ clock, remembered, remember }: SurveyLook) {
        const scope = { clock, timing };
        // It only sees what pages show. It reads nothing itself, so it needs no store.
        const observation =
          remembered instanceof Observation
            ? remembered
            : new Observation(lister as LeaseTraits as LeaseStore, scope as Scope);
        const snapshot = snapshotOf(lister, scope, observation, observation.see(reading()));
        remember(observation);
        const { leader } = snapshot.view;
        const others = waiting?.filter(({ incarnation }) => incarnation !== leader?.incarnation);
        return { ...snapshot, waiting: others };
      },
    };
  }
}
