import type { Scope, Snapshot } from '../../core/contest.ts';
import type { View } from '../../record/record.ts';
import { observe, toldBy } from '../observe.ts';
import { LossWatch } from './loss.ts';
import type { Sighting } from './reading.ts';
import { Lookout, lookEveryMs, Observation } from './reading.ts';
import type { LeaseStore, LeaseTraits } from './store.ts';

/** Looks on hints and every `pollEvery` (once per lease where hints can be relied on). */
export async function* observeLease(
  store: LeaseStore,
  scope: Scope,
  signal: AbortSignal,
): AsyncGenerator<View, void, void> {
  const observation = new Observation(store, scope);
  const lookout = new Lookout(store, scope, observation);
  const look = async () => {
    const sighting = await lookout.look(signal);
    const leftMs = leaseLeftMs(store, observation, sighting);
    const lookAgainMs = lookEveryMs(store, scope);
    return {
      view: viewOf(sighting, leftMs > 0, scope.clock.wallMs()),
      waitMs: leftMs > 0 ? Math.min(lookAgainMs, leftMs) : lookAgainMs,
      isSinceKnown: isSinceKnown(sighting),
    };
  };
  const { wakeup } = lookout;
  const spreadMs = 0.1 * scope.timing.renewEveryMs;
  try {
    yield* observe({ wakeup, look, spreadMs }, scope, scope.timing.pollEveryMs, signal);
  } finally {
    lookout.end();
  }
}

/** Everything that one read can tell. A holder counts as leading unless its death is proved. */
export async function inspectLease(
  store: LeaseStore,
  scope: Scope,
  signal: AbortSignal,
): Promise<Snapshot> {
  const observation = new Observation(store, scope);
  const sighting = await observation.read(signal);
  return snapshotOf(store, scope, observation, sighting);
}

/** Everything that one sighting tells. */
export function snapshotOf(
  store: LeaseTraits,
  scope: Pick<Scope, 'clock' | 'timing'>,
  observation: Observation,
  sighting: Sighting,
): Snapshot {
  const { record } = sighting;
  const leftMs = leaseLeftMs(store, observation, sighting);
  const wallMs = scope.clock.wallMs();
  return {
    view: viewOf(sighting, leftMs > 0, wallMs),
    ...toldBy(record, wallMs),
    leaseMs: record?.holding === undefined ? undefined : record.leaseMs,
    ...(leftMs > 0 && { leaseLeftMs: leftMs }),
    holderGone: record?.holding !== undefined && leftMs <= 0,
    ...settlingIn(store, scope, sighting),
  };
}

/** One look can tell this only where the store says for how long it has forgotten nothing. */
function settlingIn(
  store: LeaseTraits,
  scope: Pick<Scope, 'clock' | 'timing'>,
  sighting: Sighting,
): Pick<Snapshot, 'settling'> {
  if (store.clockStepMs === undefined || sighting.record?.ended === true) return {};
  const loss = new LossWatch(store, scope);
  loss.see(sighting);
  return loss.leftMs > 0 ? { settling: loss.reason } : {};
}

/**
 * How much longer the record protects its holder, in ms. Zero without a holder, or when its
 * death is proved.
 */
export function leaseLeftMs(
  store: Pick<LeaseStore, 'provesGone'>,
  observation: Observation,
  sighting: Sighting,
): number {
  const { record } = sighting;
  if (record?.holding === undefined) return 0;
  const { actors } = record.holding;
  if (actors !== null && actors.length > 0 && store.provesGone?.(actors) === true) return 0;
  return record.leaseMs - observation.unchangedMs(sighting);
}

/** True when the last leader has said when its term was over. */
function isSinceKnown({ record }: Sighting): boolean {
  return record?.holding === undefined && record?.history.at(-1) !== undefined;
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
  const { candidate, electedAtUnixMs, tokenless, ready = true } = record.holding;
  const led = { state: 'led', leader: candidate, ready, sinceUnixMs: electedAtUnixMs } as const;
  return tokenless === true ? led : { ...led, token };
}
