/** Observing, for every mechanism: look, tell, and wait until something may have changed. */
import { isIncurable } from '../base/errors.ts';
import { asError } from '../base/thrown.ts';
import type { Wakeup } from '../base/wait.ts';
import type { Scope, Snapshot } from '../core/contest.ts';
import type { ElectionRecord, View } from '../record/record.ts';
import { seatsIn } from '../record/seat-count.ts';

/** The side of the mechanism. */
export interface Observed {
  /** Raised when there may be something new. */
  readonly wakeup: Wakeup;
  /**
   * @returns the present view, and how long to wait for the wake-up, in ms. `isSinceKnown`: the
   * record says when the view began. Otherwise it counts from when it was first seen
   */
  look(): Promise<{
    readonly view: View;
    readonly waitMs: number;
    readonly isSinceKnown?: boolean;
  }>;
  /**
   * Up to this is added to each wait, so that observers that poll do not do so all at
   * once. Default 0.
   */
  readonly spreadMs?: number;
  /** Called before the next look, and at the end. Watches of the last look are over then. */
  forget?(): void;
}

/**
 * The present view, then a view for every look, until `signal` aborts. Never writes. The caller
 * leaves out repetitions.
 * @param recheckMs how long to wait after an answer that says no wait would help
 */
export async function* observe(
  { wakeup, look, forget, spreadMs = 0 }: Observed,
  { clock, timing, random }: Scope,
  recheckMs: number,
  signal: AbortSignal,
): AsyncGenerator<View, void, void> {
  /** The time since which no leader is seen, whichever leaders have died meanwhile. */
  let vacantSinceMs: number | undefined;
  while (!signal.aborted) {
    let view: View;
    let waitMs: number;
    let isSinceKnown: boolean | undefined;
    try {
      ({ view, waitMs, isSinceKnown } = await look());
    } catch (error) {
      if (signal.aborted) return forget?.();
      view = { state: 'unknown', sinceUnixMs: clock.wallMs(), error: asError(error) };
      waitMs = isIncurable(error) ? recheckMs : timing.pollEveryMs;
    }
    if (view.state === 'vacant' && isSinceKnown !== true) {
      vacantSinceMs ??= view.sinceUnixMs;
      view = { ...view, sinceUnixMs: vacantSinceMs };
    } else if (view.state !== 'unknown') {
      vacantSinceMs = undefined;
    }
    try {
      yield view;
      await wakeup.wait(clock, waitMs + (spreadMs > 0 ? random() * spreadMs : 0), signal, true);
    } catch {
      return;
    } finally {
      forget?.();
    }
  }
}

/** The parts of a record that concern operators, in every mechanism. */
export function toldBy(
  record: ElectionRecord | undefined,
  wallMs: number,
): Pick<Snapshot, 'history' | 'drains' | 'unfenced' | 'request' | 'reservation' | 'seats'> {
  const { holding, reservation: reserved, history = [], drains = [] } = record ?? {};
  const { unfenced = [] } = record ?? {};
  const held = holding?.held && { for: undefined, untilUnixMs: holding.held.untilUnixMs };
  const closed = held ?? reserved;
  const seats = seatsIn(record);
  const isClosed = closed !== undefined && closed.untilUnixMs > wallMs;
  return {
    history,
    drains: drains.filter(({ untilUnixMs }) => untilUnixMs > wallMs),
    unfenced,
    request: holding?.request,
    ...(seats !== undefined && { seats }),
    ...(isClosed && { reservation: { for: closed.for, untilUnixMs: closed.untilUnixMs } }),
  };
}
