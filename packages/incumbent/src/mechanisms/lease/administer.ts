/**
 * What operators write. They never take the seat from under a believer: a request is left in the
 * record, which keeps holder, incarnation, nonce, actors and lease, so that the holder still finds
 * its own attempts and everybody else still waits out its belief.
 */

import { formatDuration } from '../../base/duration.ts';
import { isIncurable, RefusedError, StoreUnavailableError } from '../../base/errors.ts';
import { sleep } from '../../base/wait.ts';
import type { AdminRequest, AdminResult, Scope } from '../../core/contest.ts';
import type { LiftedHold } from '../../core/holds.ts';
import { holdOf, holdRefusal, reservationOf } from '../../core/holds.ts';
import type { LeaseRecord } from '../../record/lease-record.ts';
import { drainLimit, keptDrains } from '../../record/record.ts';
import { leaseLeftMs, viewOf } from './observer.ts';
import type { Sighting } from './reading.ts';
import { Observation, swapStore } from './reading.ts';
import type { LeaseStore } from './store.ts';
import { emptyRecord, vacatedAfter } from './unclean.ts';

const maxTries = 20;

/** What is to be written, and what that lifts. */
interface Change {
  readonly record: LeaseRecord;
  readonly lifted?: LiftedHold | undefined;
}

export async function administerLease(
  store: LeaseStore,
  scope: Scope,
  request: AdminRequest,
  signal: AbortSignal,
): Promise<AdminResult> {
  const observation = new Observation(store, scope);
  let mayHaveWritten = false;
  /** By a write that had no answer. */
  let lifted: Pick<AdminResult, 'lifted'> = {};
  /** The term that was asked: a later one is not meant. */
  let asked: bigint | undefined;
  for (let tries = 0; tries < maxTries; tries += 1) {
    const sighting = await observation.read(signal);
    const holderLeftMs = leaseLeftMs(store, observation, sighting);
    const mayBelieve = holderLeftMs > 0 || sighting.record?.holding?.held === undefined;
    const view = viewOf(sighting, mayBelieve, scope.clock.wallMs());
    const { token } = sighting.record ?? { token: 0n };
    asked ??= token;
    // It has gone meanwhile, perhaps because an attempt without an answer has landed.
    if ((request.kind === 'vacate' || request.kind === 'transfer') && token !== asked) {
      return { changed: mayHaveWritten, view, ...lifted };
    }
    const doubt = { holderLeftMs, isLeftKnown: store.clockStepMs !== undefined };
    const change = changeFor(sighting, request, scope, doubt);
    // Nothing left to write: either there never was, or an attempt without an answer has landed.
    if (change === undefined) return { changed: mayHaveWritten, view, ...lifted };
    if (request.kind === 'transfer') await requireCandidate(store, request.to, signal);
    try {
      if (change.lifted !== undefined) lifted = { lifted: change.lifted };
      const result = await swapStore(store, scope, sighting.version, change.record, signal);
      if (result.outcome === 'ok') return { changed: true, view, ...lifted };
      if (!mayHaveWritten) lifted = {};
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (isIncurable(error) || error instanceof RefusedError) throw error;
      mayHaveWritten = true;
      scope.onTrouble(`asking for ${request.kind}`, error);
    }
    await sleep(scope.clock, scope.random() * Math.min(100, scope.timing.retryBackoffMs), signal);
  }
  throw new StoreUnavailableError(
    `the request (${request.kind}) for election "${scope.election}" could not be recorded in ` +
      `${maxTries} attempts: look whether it took effect, and ask again`,
  );
}

/** The record with the request in it; undefined when it says so already or there is nothing to do. */
function changeFor(
  { record }: Sighting,
  request: AdminRequest,
  scope: Scope,
  doubt: Doubt,
): Change | undefined {
  const wallMs = scope.clock.wallMs();
  const holding = record?.holding;
  switch (request.kind) {
    case 'vacate':
      return record && vacate(record, request.force, scope, doubt);
    case 'transfer': {
      if (record === undefined || holding === undefined) {
        throw new RefusedError(
          `nobody leads election "${scope.election}", so there is nothing to transfer to ` +
            `"${request.to}"`,
        );
      }
      if (holding.candidate.id === request.to) {
        throw new RefusedError(`"${request.to}" leads election "${scope.election}" already`);
      }
      const standing = holding.request;
      if (standing?.kind === 'transfer' && standing.to === request.to) return undefined;
      const asked = { kind: 'transfer', to: request.to, nonce: scope.uniqueId() } as const;
      return { record: { ...record, holding: { ...holding, request: asked } } };
    }
    case 'drain': {
      const base = record ?? emptyRecord(scope);
      const standing = base.drains.find(({ id }) => id === request.id);
      const lifts = request.untilUnixMs <= wallMs;
      if (lifts ? standing === undefined : standing?.untilUnixMs === request.untilUnixMs) {
        return undefined;
      }
      const others = keptDrains(
        base.drains.filter(({ id }) => id !== request.id),
        wallMs,
        lifts ? 0 : 1,
      );
      if (!lifts && others.length >= drainLimit) {
        throw new RefusedError(
          `election "${scope.election}" has ${drainLimit} drained candidates already, the most ` +
            'that are kept: lift one first',
        );
      }
      const drains = lifts
        ? others
        : [...others, { id: request.id, untilUnixMs: request.untilUnixMs }];
      return { record: { ...base, drains } };
    }
    case 'end': {
      const base = record ?? emptyRecord(scope);
      return base.ended ? undefined : { record: { ...base, ended: true } };
    }
    case 'reopen':
      return record?.ended === true ? { record: { ...record, ended: false } } : undefined;
    default:
      return request satisfies never;
  }
}

/** Whether the holder may be alive. */
interface Doubt {
  /** How much longer its lease protects it; at most 0 when that is over, or its death is proved. */
  readonly holderLeftMs: number;
  /** By the clock of the store, and not only from this look on. */
  readonly isLeftKnown: boolean;
}

function vacate(
  record: LeaseRecord,
  force: boolean,
  scope: Scope,
  { holderLeftMs, isLeftKnown }: Doubt,
): Change | undefined {
  const wallMs = scope.clock.wallMs();
  const { holding, reservation, history } = record;
  if (holding === undefined) {
    const lifted = reservationOf(reservation, history, wallMs);
    return lifted && { record: { ...record, reservation: undefined }, lifted };
  }
  const hold = holdOf(holding.candidate.id, holding.held, wallMs);
  if (hold !== undefined) {
    // Nobody has to be asked, and nobody believes: the seat is opened as the next leader would find it.
    if (holderLeftMs <= 0) return { record: vacatedAfter(record, scope, false), lifted: hold };
    if (!force) {
      const doubt = isLeftKnown
        ? `its lease runs for ${formatDuration(Math.ceil(holderLeftMs))}; if it is dead, ask again then`
        : 'this store cannot show that it is dead';
      throw holdRefusal(hold, doubt, wallMs);
    }
  } else if (holding.request?.kind === 'vacate' && (holding.revoked || !force)) {
    return undefined;
  }
  const asked = { kind: 'vacate', nonce: scope.uniqueId() } as const;
  return {
    record: {
      ...record,
      holding: {
        ...holding,
        request: asked,
        revoked: holding.revoked || force,
        // Its holder finds that it is revoked, and does not write it again.
        held: force ? undefined : holding.held,
      },
    },
    lifted: hold,
  };
}

async function requireCandidate(store: LeaseStore, id: string, signal: AbortSignal): Promise<void> {
  const waiting = await store.list?.(signal);
  if (waiting === undefined || waiting.some((candidate) => candidate.id === id)) return;
  const known = waiting.map((candidate) => `"${candidate.id}"`).join(', ');
  throw new RefusedError(
    `"${id}" is not waiting for this election; ${known === '' ? 'nobody is' : `waiting: ${known}`}`,
  );
}
