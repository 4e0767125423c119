import type { Instant } from '../../base/clock.ts';
import type { NotElectedReason } from '../../base/not-elected.ts';
import type { QueueRecord } from '../../record/queue-record.ts';

/** The time since which one write of the record has been seen. */
export interface Seen {
  readonly nonce: string;
  /** Monotonic. */
  readonly sinceMs: number;
}

/** A seat that is reserved for another candidate, or held although no work runs. */
export interface Closed {
  /** Pass it to the next look. */
  readonly seen: Seen;
  /** How much longer, in ms. 0 or less: not any more. */
  readonly leftMs: number;
  readonly why: Extract<NotElectedReason, { readonly kind: 'reserved' | 'held' }>;
}

/**
 * How long the seat stays closed to candidate `id`: as long as the record says. But it is never
 * longer than that by our own clock, counted from when the record was first seen. The writer's
 * clock may be ahead.
 * @param now both clocks, after the record was read
 */
export function closedTo(
  id: string,
  record: QueueRecord | undefined,
  now: Instant,
  seen: Seen | undefined,
): Closed | undefined {
  if (record === undefined) return undefined;
  const { reservation, holding, nonce } = record;
  const closing =
    holding?.held ??
    (reservation === undefined || reservation.for === id
      ? undefined
      : { ms: reservation.reserveMs, untilUnixMs: reservation.untilUnixMs });
  if (closing === undefined) return undefined;
  const since = seen?.nonce === nonce ? seen : { nonce, sinceMs: now.monotonicMs };
  const leftMs = Math.min(
    closing.untilUnixMs - now.wallMs,
    closing.ms - (now.monotonicMs - since.sinceMs),
  );
  const untilUnixMs = now.wallMs + leftMs;
  if (holding?.held !== undefined) {
    const why = { kind: 'held', by: holding.candidate.id, untilUnixMs } as const;
    return { seen: since, leftMs, why };
  }
  const wanted = holding === undefined ? reservation?.for : undefined;
  const whom = wanted === undefined ? {} : { for: wanted };
  return { seen: since, leftMs, why: { kind: 'reserved', ...whom, untilUnixMs } };
}
