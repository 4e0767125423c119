/**
 * What operators write. They never take the seat from under a believer: a request is left in the
 * record, which keeps holder, incarnation, nonce, actors and lease, so that the holder still finds
 * its own attempts and everybody else still waits out its belief.
 */
import type { AdminRequest, AdminResult, Scope } from '../contest.ts';
import { isIncurable, RefusedError, StoreUnavailableError } from '../errors.ts';
import { currentDrains, drainLimit } from '../record.ts';
import { sleep } from '../wait.ts';
import { viewOf } from './observer.ts';
import { Observation, swapStore } from './reading.ts';
import type { LeaseRecord } from './record.ts';
import type { LeaseStore } from './store.ts';

const maxTries = 20;

export async function administerLease(
  store: LeaseStore,
  scope: Scope,
  request: AdminRequest,
  signal: AbortSignal,
): Promise<AdminResult> {
  const observation = new Observation(store, scope);
  let mayHaveWritten = false;
  /** The term that was asked: a later one is not meant. */
  let asked: bigint | undefined;
  for (let tries = 0; tries < maxTries; tries += 1) {
    const sighting = await observation.read(signal);
    const view = viewOf(sighting, true, scope.clock.wallMs());
    const { token } = sighting.record ?? { token: 0n };
    asked ??= token;
    // It has gone meanwhile, perhaps because an attempt without an answer has landed.
    if ((request.kind === 'vacate' || request.kind === 'transfer') && token !== asked) {
      return { changed: mayHaveWritten, view };
    }
    const next = change(sighting.record, request, scope);
    // Nothing left to write: either there never was, or an attempt without an answer has landed.
    if (next === undefined) return { changed: mayHaveWritten, view };
    if (request.kind === 'transfer') await requireCandidate(store, request.to, signal);
    try {
      const result = await swapStore(store, scope, sighting.version, next, signal);
      if (result.outcome === 'ok') return { changed: true, view };
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
function change(
  record: LeaseRecord | undefined,
  request: AdminRequest,
  scope: Scope,
): LeaseRecord | undefined {
  const wallMs = scope.clock.wallMs();
  const holding = record?.holding;
  switch (request.kind) {
    case 'vacate': {
      if (record === undefined) return undefined;
      if (holding === undefined) {
        return record.reservation && { ...record, reservation: undefined };
      }
      if (holding.request?.kind === 'vacate' && (holding.revoked || !request.force)) {
        return undefined;
      }
      const asked = { kind: 'vacate', nonce: scope.uniqueId() } as const;
      return {
        ...record,
        holding: { ...holding, request: asked, revoked: holding.revoked || request.force },
      };
    }
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
      return { ...record, holding: { ...holding, request: asked } };
    }
    case 'drain': {
      const base = record ?? emptyRecord(scope);
      const standing = base.drains.find(({ id }) => id === request.id);
      const lifts = request.untilUnixMs <= wallMs;
      if (lifts ? standing === undefined : standing?.untilUnixMs === request.untilUnixMs) {
        return undefined;
      }
      const others = currentDrains(base.drains, wallMs).filter(({ id }) => id !== request.id);
      if (!lifts && others.length >= drainLimit) {
        throw new RefusedError(
          `election "${scope.election}" has ${drainLimit} drained candidates already, the most ` +
            'that are kept: lift one first',
        );
      }
      const drains = lifts
        ? others
        : [...others, { id: request.id, untilUnixMs: request.untilUnixMs }];
      return { ...base, drains };
    }
    case 'end': {
      const base = record ?? emptyRecord(scope);
      return base.ended ? undefined : { ...base, ended: true };
    }
    case 'reopen':
      return record?.ended === true ? { ...record, ended: false } : undefined;
    default:
      return request satisfies never;
  }
}

/** The record of an election that nobody has led. */
function emptyRecord(scope: Scope): LeaseRecord {
  return {
    election: scope.election,
    token: 0n,
    nonce: scope.uniqueId(),
    leaseMs: scope.timing.leaseMs,
    ended: false,
    holding: undefined,
    reservation: undefined,
    unfenced: [],
    drains: [],
    history: [],
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
