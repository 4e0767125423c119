/**
 * Whether anybody can have led between two places of ours: etcd keeps what was, until it is
 * compacted. Without such a proof a winner waits, because members that know nothing of our record may
 * have led in between.
 */
import { bounded } from '../../base/wait.ts';
import type { ElectionKeys } from './keys.ts';
import { encodeKey, nameOf, parsePlace } from './keys.ts';
import type { RangeRequest, RangeResponse } from './messages.ts';
import { eventType, watchFilter } from './messages.ts';
import type { EtcdSession } from './session.ts';

/**
 * Looking is not worth more than this: waiting is the alternative. Less where the TTL is short, for
 * whoever looks has to be done within half of it.
 */
const longestProofMs = 500;
const proofPerTtl = 1 / 8;

/** A server reads all revisions, of whatever keys, to find those of ours. */
const maxRevisions = 10_000n;

export interface Between {
  /** The place that was announced last. */
  readonly previous: string;
  /** The revision of the record, which says that its term has ended clean. */
  readonly recordRevision: bigint;
  /** Of the place that is the first now. */
  readonly createRevision: bigint;
  readonly signal: AbortSignal;
}

/** @returns true when it is proved; false as well when it cannot be found out. Never rejects */
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
  // The record was written when the previous one gave its place up, and not later by an operator.
  if (justBefore.kvs[0]?.createRevision !== left.createRevision) return false;
  // And nobody was there who is before us: not the previous one either.
  if (then.kvs.some((kv) => nameOf(keys.prefix, kv) !== undefined)) return false;
  if (createRevision < recordRevision) return true;
  // We came later: nobody else has come in between.
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
      // Not to be had, and asking again at once would be told the same for ever.
      if (told === undefined) return false;
      for (const { type, kv } of told) {
        startRevision = kv.modRevision + 1n;
        if (type !== eventType.put) continue;
        if (kv.createRevision === createRevision) return true;
        if (nameOf(keys.prefix, kv) !== undefined) return false;
      }
      // Only elections whose names begin with ours: go on behind those.
      if (signal.aborted || startRevision > createRevision) return false;
    } finally {
      signal.removeEventListener('abort', cancel);
      cancel();
    }
  }
}
