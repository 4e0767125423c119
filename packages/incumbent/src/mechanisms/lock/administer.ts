import { RefusedError, StoreUnavailableError } from '../../base/errors.ts';
import { bounded, sleep } from '../../base/wait.ts';
import type { AdminRequest, AdminResult, Scope } from '../../core/contest.ts';
import { administerQueue } from '../queue/administer.ts';
import { leaderPlaceIn } from '../queue/named-places.ts';
import { viewOf } from '../queue/observer.ts';
import { patienceMs } from '../queue/patience.ts';
import type { LockStore } from './store.ts';

const maxTries = 20;

/**
 * What operators do: as with a queue, but who waits for a lock is not known, so whoever is named for
 * a transfer is taken at the operator's word. If nobody of that name comes, the others take the seat
 * when the reservation is over.
 */
export function administerLock(
  store: LockStore,
  scope: Scope,
  request: AdminRequest,
  signal: AbortSignal,
): Promise<AdminResult> {
  if (request.kind === 'transfer') return transfer(store, scope, request.to, signal);
  if (request.kind === 'end') return end(store, scope, signal);
  return administerQueue(store, scope, request, signal);
}

async function transfer(
  store: LockStore,
  scope: Scope,
  to: string,
  signal: AbortSignal,
): Promise<AdminResult> {
  const { clock, timing, random, onTrouble, election } = scope;
  const ask = <T>(what: string, operation: (signal: AbortSignal) => Promise<T>): Promise<T> =>
    bounded(clock, what, patienceMs(timing), signal, operation);
  let mayHaveWritten = false;
  /** The term that was asked: a later one is not meant. */
  let asked: bigint | undefined;
  for (let tries = 0; tries < maxTries; tries += 1) {
    await ask('catching up', (operation) => store.sync(operation));
    const reading = await ask('reading', (operation) => store.read(operation));
    const [holder] = await ask('listing', (operation) => store.members(operation));
    const { record, version } = reading;
    const holding = record?.holding;
    const isThere = holder !== undefined && leaderPlaceIn(store, record) === holder.name;
    const view = viewOf(reading, isThere, holder, clock.wallMs());
    asked ??= holder?.token ?? 0n;
    // It has gone meanwhile.
    if ((holder?.token ?? 0n) !== asked) return { changed: mayHaveWritten, view };
    if (record === undefined || holding === undefined || !isThere) {
      throw new RefusedError(
        holder === undefined || holder.isOurs
          ? `nobody leads election "${election}", so there is nothing to transfer to "${to}"`
          : `"${holder.candidate.id}" leads election "${election}" and does not know this request: ` +
              'ask it in its own way',
      );
    }
    if (holding.candidate.id === to) {
      throw new RefusedError(`"${to}" leads election "${election}" already`);
    }
    const standing = holding.request;
    if (standing?.kind === 'transfer' && standing.to === to) {
      return { changed: mayHaveWritten, view };
    }
    const next = { kind: 'transfer', to, nonce: scope.uniqueId() } as const;
    try {
      const result = await ask('asking for transfer', (operation) =>
        store.amend(
          {
            record: { ...record, holding: { ...holding, request: next } },
            version,
            present: holder.name,
          },
          operation,
        ),
      );
      if (result.outcome === 'ok') return { changed: true, view };
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      mayHaveWritten = true;
      onTrouble('asking for transfer', error);
    }
    await sleep(clock, random() * Math.min(100, timing.retryBackoffMs), signal);
  }
  throw new StoreUnavailableError(
    `the request (transfer) for election "${election}" could not be recorded in ${maxTries} ` +
      'attempts: look whether it took effect, and ask again',
  );
}

/** Members of another make cannot be told, and would only take the lock again. */
async function end(store: LockStore, scope: Scope, signal: AbortSignal): Promise<AdminResult> {
  const { clock, timing, election } = scope;
  const [holder] = await bounded(clock, 'listing', patienceMs(timing), signal, (operation) =>
    store.members(operation),
  );
  if (holder !== undefined && !holder.isOurs) {
    throw new RefusedError(
      `"${holder.candidate.id}" leads election "${election}" and cannot be told that it is over: ` +
        'stop the members that are not ours first',
    );
  }
  return administerQueue(store, scope, { kind: 'end' }, signal);
}
