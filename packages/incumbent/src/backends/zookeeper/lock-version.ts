import type { Place, Version } from '../../mechanisms/queue/store.ts';

/** What was read together has to be as it was when it is written: this is what the mechanism sees. */
export interface Versions {
  readonly own: number | undefined;
  /** The lock that was there. */
  readonly lock: bigint | undefined;
  readonly breadcrumb:
    | {
        readonly version: number;
        readonly mzxid: bigint;
        /** Token of the leader that the record names, if that one has written the breadcrumb. */
        readonly leader: bigint | undefined;
      }
    | undefined;
}

export function formatVersion({ own, lock, breadcrumb }: Versions): string {
  const { version, mzxid, leader } = breadcrumb ?? {};
  return [own, lock, version, mzxid, leader].join('/');
}

export function parseVersion(version: Version): Versions {
  const [own = '', lock = '', number = '', mzxid = '', leader = ''] = String(version).split('/');
  return {
    own: own === '' ? undefined : Number(own),
    lock: lock === '' ? undefined : BigInt(lock),
    breadcrumb:
      mzxid === ''
        ? undefined
        : {
            version: Number(number),
            mzxid: BigInt(mzxid),
            leader: leader === '' ? undefined : BigInt(leader),
          },
  };
}

/**
 * Written by the leader that has this place. One that is newer than the place need not be: an
 * announcement whose own lock had gone may have landed on this one.
 */
export function isOf(breadcrumb: Versions['breadcrumb'] & {}, place: Place): boolean {
  return breadcrumb.leader === place.token;
}
