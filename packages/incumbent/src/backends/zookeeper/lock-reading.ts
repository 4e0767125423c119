import type { Scope } from '../../core/contest.ts';
import type { LockReading } from '../../mechanisms/lock/store.ts';
import { leaderPlaceIn } from '../../mechanisms/queue/named-places.ts';
import type { QueueRecord } from '../../record/queue-record.ts';
import { emptyQueueRecord } from '../../record/queue-record.ts';
import { historyAfter } from '../../record/transitions.ts';
import type { NodeContent } from './client.ts';
import { breadcrumbName, candidateOf } from './hadoop-format.ts';
import type { LockNodes, Own, Picture } from './lock-nodes.ts';
import { isWrittenWith } from './lock-nodes.ts';
import { placeName } from './lock-session.ts';
import { formatVersion } from './lock-version.ts';

/**
 * Reads all nodes together. The result is our own record where it belongs to the breadcrumb.
 * Otherwise it is made up from the nodes of a member of another make.
 * @param sessionId our own
 */
export function readingOf(
  nodes: LockNodes,
  scope: Scope,
  { own, breadcrumb, lock }: Picture,
  sessionId: bigint | undefined,
): LockReading {
  const record = own?.record;
  const leader = leaderPlaceIn(nodes, record);
  const [name] = nodes.names(lock);
  const wipedAfter = wipedAfterOf(own);
  const known = { own: own?.stat.version, lock: lock?.stat.czxid };
  if (breadcrumb === undefined) {
    const version = formatVersion({ ...known, breadcrumb: undefined });
    // By Hadoop's rules no leader needs to be fenced. That our leader's belief is over is not said.
    const wasFenced = leader !== undefined && leader !== name;
    return { record, version, isTheirs: false, wasFenced, wipedAfter };
  }
  const { mzxid } = breadcrumb.stat;
  const place = placeName(nodes.nameHere(breadcrumbName), mzxid);
  const belongs = leader !== undefined && (isWrittenWith(own, breadcrumb) || leader === place);
  const version = formatVersion({
    ...known,
    breadcrumb: {
      version: breadcrumb.stat.version,
      mzxid,
      leader: belongs ? record?.token : undefined,
    },
  });
  // A member of ours that becomes active writes both. So one of theirs leads now, and
  // needs no record.
  const isOfHolder =
    lock !== undefined &&
    mzxid > lock.stat.czxid &&
    lock.stat.ephemeralOwner !== sessionId &&
    leader !== name;
  if (belongs || isOfHolder) {
    // An operator's change has written down the nodes of one of theirs.
    const isTheirs = belongs && leader === place;
    return { record, version, isTheirs, wasFenced: false, wipedAfter };
  }
  const theirs = recordOfTheirs(scope, record, breadcrumb, place);
  return { record: theirs, version, isTheirs: true, wasFenced: false, wipedAfter };
}

/**
 * A member of another make became active after the record was written, and is gone. Or a breadcrumb
 * was written without the lock, and our leader is not the last one any more.
 */
function recordOfTheirs(
  { election, timing }: Scope,
  record: QueueRecord | undefined,
  breadcrumb: NodeContent,
  place: string,
): QueueRecord {
  const { mzxid, mtime } = breadcrumb.stat;
  const base = record ?? emptyQueueRecord(election, '');
  return {
    ...base,
    token: mzxid,
    place,
    nonce: place,
    beliefMs: Math.max(base.beliefMs, timing.beliefMs),
    holding: {
      candidate: candidateOf(breadcrumb, mzxid),
      place,
      electedAtUnixMs: mtime,
      leaseMs: timing.leaseMs,
      revoked: false,
      request: undefined,
    },
    history: historyAfter(base, mtime),
  };
}

/**
 * The time since which no term stands in the record: it was emptied, the node was made anew, or it
 * never had one. Undefined while it has one.
 */
export function wipedAfterOf(own: Own | undefined): bigint | undefined {
  const token = own?.record?.token ?? 0n;
  return token > 0n ? undefined : own?.stat.mzxid;
}
