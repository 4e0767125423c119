import { asError } from '../../base/thrown.ts';
import type { Scope, Snapshot } from '../../core/contest.ts';
import type { LeaseRecord } from '../../record/lease-record.ts';
import type { View } from '../../record/record.ts';
import { LossWatch } from './loss.ts';
import type { Sighting } from './reading.ts';
import { Lookout, lookEveryMs, Observation } from './reading.ts';
import type { LeaseStore } from './store.ts';

/**
 * The present view, then a view for every look at the store, until `signal` aborts. Looks on hints
 * and every `pollEvery` (once per lease where hints can be relied on), never writes. The caller leaves out repetitions.
 */
export async function* observeLease(
  store: LeaseStore,
  scope: Scope,
  signal: AbortSignal,
): AsyncGenerator<View, void, void> {
  const { clock, timing, random } = scope;
  const observation = new Observation(store, scope);
  const lookout = new Lookout(store, scope, observation);
  let vacantSinceMs: number | undefined;
  try {
    while (!signal.aborted) {
      let waitMs = timing.pollEveryMs;
      let view: View;
      try {
        const sighting = await lookout.look(signal);
        waitMs = lookEveryMs(store, scope);
        const leftMs = leaseLeftMs(store, observation, sighting);
        if (leftMs > 0) {
          waitMs = Math.min(waitMs, leftMs);
          vacantSinceMs = undefined;
        } else {
          vacantSinceMs ??= clock.wallMs();
        }
        view = viewOf(sighting, leftMs > 0, vacantSinceMs ?? clock.wallMs());
      } catch (error) {
        if (signal.aborted) return;
        view = { state: 'unknown', sinceUnixMs: clock.wallMs(), error: asError(error) };
      }
      yield view;
      try {
        await lookout.wakeup.wait(
          clock,
          waitMs + random() * 0.1 * timing.renewEveryMs,
          signal,
          true,
        );
      } catch {
        return;
      }
    }
  } finally {
    lookout.end();
  }
}

/** Everything one read can tell. A holder counts as leading unless its death is proved. */
export async function inspectLease(
  store: LeaseStore,
  scope: Scope,
  signal: AbortSignal,
): Promise<Snapshot> {
  const observation = new Observation(store, scope);
  const sighting = await observation.read(signal);
  const { record } = sighting;
  const leftMs = leaseLeftMs(store, observation, sighting);
  const wallMs = scope.clock.wallMs();
  return {
    view: viewOf(sighting, leftMs > 0, wallMs),
    history: record?.history ?? [],
    drains: (record?.drains ?? []).filter(({ untilUnixMs }) => untilUnixMs > wallMs),
    request: record?.holding?.request,
    leaseMs: record?.holding === undefined ? undefined : record.leaseMs,
    holderGone: record?.holding !== undefined && leftMs <= 0,
    ...reservationIn(record, wallMs),
    ...settlingIn(store, scope, sighting),
  };
}

/** One look knows of it only from a store that says for how long it has forgotten nothing. */
function settlingIn(
  store: LeaseStore,
  scope: Scope,
  sighting: Sighting,
): Pick<Snapshot, 'settling'> {
  if (store.clockStepMs === undefined || sighting.record?.ended === true) return {};
  const loss = new LossWatch(store, scope);
  loss.see(sighting);
  return loss.leftMs > 0 ? { settling: loss.reason } : {};
}

function reservationIn(
  record: LeaseRecord | undefined,
  wallMs: number,
): Pick<Snapshot, 'reservation'> {
  const held = record?.holding?.held;
  const reservation =
    held === undefined ? record?.reservation : { for: undefined, untilUnixMs: held.untilUnixMs };
  if (reservation === undefined || reservation.untilUnixMs <= wallMs) return {};
  return { reservation: { for: reservation.for, untilUnixMs: reservation.untilUnixMs } };
}

/** How much longer the record protects its holder; zero when nobody holds it or it is proved dead. */
export function leaseLeftMs(
  store: LeaseStore,
  observation: Observation,
  sighting: Sighting,
): number {
  const { record } = sighting;
  if (record?.holding === undefined) return 0;
  const { actors } = record.holding;
  if (actors !== null && actors.length > 0 && store.provesGone?.(actors) === true) return 0;
  return record.leaseMs - observation.unchangedMs(sighting);
}

export function viewOf(sighting: Sighting, protectedStill: boolean, sinceUnixMs: number): View {
  const { record } = sighting;
  if (record === undefined) return { state: 'vacant', sinceUnixMs };
  const { token } = record;
  if (record.ended) return { state: 'ended', token, sinceUnixMs };
  if (record.holding === undefined) {
    return { state: 'vacant', token, sinceUnixMs: record.history.at(-1)?.toUnixMs ?? sinceUnixMs };
  }
  if (!protectedStill || !record.holding.announced) return { state: 'vacant', token, sinceUnixMs };
  const { candidate, electedAtUnixMs, tokenless } = record.holding;
  const led = { state: 'led', leader: candidate, sinceUnixMs: electedAtUnixMs } as const;
  return tokenless === true ? led : { ...led, token };
}
