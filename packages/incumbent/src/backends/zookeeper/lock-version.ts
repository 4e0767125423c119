import type { Place, Version } from '../../mechanisms/queue/store.ts';

/**
 * Nodes that were read together must be unchanged when they are written. The mechanism sees this
 * as one version.
 */
export interface Versions {
  readonly own: number | undefined;
  /** The lock that was there. */
  readonly lock: bigint | undefined;
  readonly breadcrumb:
    | {
        readonly version: number;
        readonly mzxid: bigint;
        /**
         * The token of the leader that the record names, if that one has written the breadcrumb.
         */
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
 * True when the leader with this place has written the breadcrumb. One that is newer than the place
 * need not be its own: an announcement whose own lock had gone may have landed on this lock.
 */
export function isOf(breadcrumb: Versions['breadcrumb'] & {}, place: Place): boolean {
  return breadcrumb.leader === place.token;
}
