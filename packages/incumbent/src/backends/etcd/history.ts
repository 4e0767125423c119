/**
 * Proves that no candidate led between two places of ours: etcd keeps its history until it is
 * compacted. Without such a proof a winner waits, because members that know nothing of our record
 * may have led in between.
 */
import { bounded } from '../../base/wait.ts';
import type { ElectionKeys } from './keys.ts';
import { encodeKey, nameOf, parsePlace } from './keys.ts';
import type { RangeRequest, RangeResponse } from './messages.ts';
import { eventType, watchFilter } from './messages.ts';
import type { EtcdSession } from './session.ts';

/**
 * Looking is not worth more than this, because the alternative is waiting. With a short TTL it
 * takes less: a candidate that looks has to be done within half of the TTL.
 */
const longestProofMs = 500;
const proofPerTtl = 1 / 8;

/** A server reads all revisions, whatever their keys, to find those of ours. */
const maxRevisions = 10_000n;

export interface Between {
  /** The place that was announced last. */
  readonly previous: string;
  /** The revision of the record, which says that its term has ended clean. */
  readonly recordRevision: bigint;
  /** The create revision of the place that is the first now. */
  readonly createRevision: bigint;
  readonly signal: AbortSignal;
}

/**
 * Never rejects.
 * @returns true when it is proved. False also when it cannot be found out
 */
export async function nobodyBetween(
  session: EtcdSession,
  keys: ElectionKeys,
  between: Between,
): Promise<boolean> {
  const { signal } = between;
  const timeoutMs = Math.min(longestProofMs, session.ttlMs * proofPerTtl);
  try {
    return await bounded(session.clock, 'reading the history', timeoutMs, signal, (operation) =>
      prove(session, keys, { ...between, signal: operation }),
    );
  } catch {
    return false; // compacted, too slow, or not to be had now
  }
}

async function prove(
  session: EtcdSession,
  keys: ElectionKeys,
  { previous, recordRevision, createRevision, signal }: Between,
): Promise<boolean> {
  const left = parsePlace(previous);
  if (left === undefined || left.createRevision >= createRevision) return false;
  const ask = (request: Partial<RangeRequest>): Promise<RangeResponse> =>
    session.read({ ...request, keysOnly: true }, 'reading the history', signal);
  const [justBefore, then] = await Promise.all([
    ask({ key: encodeKey(left.key), revision: recordRevision - 1n }),
    ask({ ...keys.range, revision: recordRevision, maxCreateRevision: createRevision - 1n }),
  ]);
  // The previous leader wrote the record when it gave its place up, and no operator wrote it later.
  if (justBefore.kvs[0]?.createRevision !== left.createRevision) return false;
  // At that revision no place before ours was there, not even the previous one.
  if (then.kvs.some((kv) => nameOf(keys.prefix, kv) !== undefined)) return false;
  if (createRevision < recordRevision) return true;
  // Our place came later, so prove that no other one has come in between.
  if (createRevision - recordRevision > maxRevisions) return false;
  return isFirstSince(session, keys, recordRevision, createRevision, signal);
}

async function isFirstSince(
  session: EtcdSession,
  keys: ElectionKeys,
  recordRevision: bigint,
  createRevision: bigint,
  signal: AbortSignal,
): Promise<boolean> {
  let startRevision = recordRevision + 1n;
  for (;;) {
    const filters = [watchFilter.noDelete];
    const { events, cancel } = session.watches.first({ ...keys.range, filters, startRevision });
    try {
      signal.addEventListener('abort', cancel, { once: true });
      const told = await events;
      // The history is not to be had. Asking again at once would get the same answer for ever.
      if (told === undefined) return false;
      for (const { type, kv } of told) {
        startRevision = kv.modRevision + 1n;
        if (type !== eventType.put) continue;
        if (kv.createRevision === createRevision) return true;
        if (nameOf(keys.prefix, kv) !== undefined) return false;
      }
      // These were only elections whose names begin with ours. Go on behind them.
      if (signal.aborted || startRevision > createRevision) return false;
    } finally {
      signal.removeEventListener('abort', cancel);
      cancel();
    }
  }
}
