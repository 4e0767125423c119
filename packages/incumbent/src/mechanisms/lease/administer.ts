/** Operators' requests on a lease store: one conditional write each. */

import { formatDuration } from '../../base/duration.ts';
import { RefusedError } from '../../base/errors.ts';
import type { AdminRequest, AdminResult, Scope } from '../../core/contest.ts';
import type { LiftedHold } from '../../core/holds.ts';
import { holdOf, holdRefusal, reservationOf } from '../../core/holds.ts';
import type { LeaseRecord } from '../../record/lease-record.ts';
import { emptyLeaseRecord } from '../../record/lease-record.ts';
import { asked, drained, ended, opened, revoked, vacated } from '../../record/transitions.ts';
import { administer, leadsAlready, notWaiting } from '../administer.ts';
import { leaseLeftMs, viewOf } from './observer.ts';
import { Observation, swapStore } from './reading.ts';
import type { LeaseStore } from './store.ts';

/** The record to write, and the hold that it lifts. */
interface Change {
  readonly record: LeaseRecord;
  readonly lifted?: LiftedHold | undefined;
}

export function administerLease(
  store: LeaseStore,
  scope: Scope,
  request: AdminRequest,
  signal: AbortSignal,
): Promise<AdminResult> {
  const observation = new Observation(store, scope);
  const look = async () => {
    const sighting = await observation.read(signal);
    const { record, version } = sighting;
    const holderLeftMs = leaseLeftMs(store, observation, sighting);
    const mayBelieve = holderLeftMs > 0 || record?.holding?.held === undefined;
    const plan = async () => {
      const doubt = { holderLeftMs, isLeftKnown: store.clockStepMs !== undefined };
      const change = changeFor(record, request, scope, doubt);
      if (change === undefined) return undefined;
      if (request.kind === 'transfer') await requireCandidate(store, request.to, signal);
      const write = async () => {
        const result = await swapStore(store, scope, { record: change.record, version }, signal);
        return result.outcome === 'ok';
      };
      return { lifted: change.lifted, write };
    };
    const view = viewOf(sighting, mayBelieve, scope.clock.wallMs());
    return { view, token: record?.token ?? 0n, plan };
  };
  return administer(scope, request, look, signal);
}

/**
 * The record with the request in it. Undefined when it shows the request already, or there is
 * nothing to do.
 */
function changeFor(
  record: LeaseRecord | undefined,
  request: AdminRequest,
  scope: Scope,
  doubt: Doubt,
): Change | undefined {
  const { election, timing, clock, uniqueId } = scope;
  const changed = (next: LeaseRecord | undefined) => next && { record: next };
  const base = () => record ?? emptyLeaseRecord(election, uniqueId(), timing.leaseMs);
  switch (request.kind) {
    case 'vacate':
      return record && vacate(record, request.force, scope, doubt);
    case 'transfer': {
      const { to } = request;
      if (record?.holding === undefined) {
        throw new RefusedError(
          `nobody leads election "${election}", so there is nothing to transfer to "${to}"`,
        );
      }
      if (record.holding.candidate.id === to) throw leadsAlready(to, election);
      return changed(asked(record, { kind: 'transfer', to, nonce: uniqueId() }));
    }
    case 'drain':
      return changed(drained(base(), request, clock.wallMs()));
    case 'end':
      return changed(ended(base(), true));
    case 'reopen':
      return changed(record && ended(record, false));
    default:
      return request satisfies never;
  }
}

/** Whether the holder may be alive. */
interface Doubt {
  /**
   * How much longer the lease protects its holder, in ms. At most 0 when it is over, or the
   * death is proved.
   */
  readonly holderLeftMs: number;
  /** True when the store's clock tells it. False when it only counts from this look on. */
  readonly isLeftKnown: boolean;
}

function vacate(
  record: LeaseRecord,
  force: boolean,
  { clock, uniqueId }: Scope,
  { holderLeftMs, isLeftKnown }: Doubt,
): Change | undefined {
  const wallMs = clock.wallMs();
  const { holding, reservation, history } = record;
  if (holding === undefined) {
    const lifted = reservationOf(reservation, history, wallMs);
    return lifted && { record: opened(record), lifted };
  }
  const hold = holdOf(holding.candidate.id, holding.held, wallMs);
  if (hold !== undefined && holderLeftMs <= 0) {
    // The leader cannot believe any more, so it need not be asked. Opens the seat as the next
    // leader would find it.
    return { record: vacated(record, false, { nonce: uniqueId(), wallMs }), lifted: hold };
  }
  if (hold !== undefined && !force) {
    const doubt = isLeftKnown
      ? `its lease runs for ${formatDuration(Math.ceil(holderLeftMs))}; if it is dead, ask again then`
      : 'this store cannot show that it is dead';
    throw holdRefusal(hold, doubt, wallMs);
  }
  if (hold === undefined && holding.request?.kind === 'vacate' && (holding.revoked || !force)) {
    return undefined;
  }
  const nonce = uniqueId();
  const next = force ? revoked(record, nonce) : asked(record, { kind: 'vacate', nonce });
  return next && { record: next, lifted: hold };
}

async function requireCandidate(store: LeaseStore, id: string, signal: AbortSignal): Promise<void> {
  const waiting = await store.list?.(signal);
  if (waiting === undefined || waiting.some((candidate) => candidate.id === id)) return;
  throw notWaiting(id, waiting);
}
