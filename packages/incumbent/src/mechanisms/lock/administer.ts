import { RefusedError } from '../../base/errors.ts';
import type { AdminRequest, AdminResult, Scope } from '../../core/contest.ts';
import { asked } from '../../record/transitions.ts';
import { administer, leadsAlready } from '../administer.ts';
import { administerQueue } from '../queue/administer.ts';
import { asking } from '../queue/ask.ts';
import { leaderPlaceIn } from '../queue/named-places.ts';
import { viewOf } from '../queue/observer.ts';
import type { LockStore } from './store.ts';

/**
 * Operators' requests, as with a queue. But the waiting candidates of a lock are not known. So a
 * transfer takes any name that the operator gives. If no candidate of that name comes, the others
 * take the seat when the reservation is over.
 */
export function administerLock(
  store: LockStore,
  scope: Scope,
  request: AdminRequest,
  signal: AbortSignal,
): Promise<AdminResult> {
  if (request.kind === 'transfer') return transfer(store, scope, request, signal);
  if (request.kind === 'end') return end(store, scope, signal);
  return administerQueue(store, scope, request, signal);
}

function transfer(
  store: LockStore,
  scope: Scope,
  request: Extract<AdminRequest, { kind: 'transfer' }>,
  signal: AbortSignal,
): Promise<AdminResult> {
  const { clock, election, uniqueId } = scope;
  const { to } = request;
  const ask = asking(scope, signal);
  const look = async () => {
    await ask('catching up', (operation) => store.sync(operation));
    const reading = await ask('reading', (operation) => store.read(operation));
    const [holder] = await ask('listing', (operation) => store.members(operation));
    const { record, version } = reading;
    const isThere = holder !== undefined && leaderPlaceIn(store, record) === holder.name;
    const plan = async () => {
      if (record?.holding === undefined || !isThere) {
        throw new RefusedError(
          holder === undefined || holder.isOurs
            ? `nobody leads election "${election}", so there is nothing to transfer to "${to}"`
            : `"${holder.candidate.id}" leads election "${election}" and does not know this request: ` +
                'ask it in its own way',
        );
      }
      if (record.holding.candidate.id === to) throw leadsAlready(to, election);
      const next = asked(record, { kind: 'transfer', to, nonce: uniqueId() });
      if (next === undefined) return undefined;
      const write = async () => {
        const result = await ask('asking for transfer', (operation) =>
          store.amend({ record: next, version, present: holder.name }, operation),
        );
        return result.outcome === 'ok';
      };
      return { write };
    };
    const view = viewOf(reading, isThere, holder, clock.wallMs());
    return { view, token: holder?.token ?? 0n, plan };
  };
  return administer(scope, request, look, signal);
}

/** Members of another make cannot be told, and would only take the lock again. */
async function end(store: LockStore, scope: Scope, signal: AbortSignal): Promise<AdminResult> {
  const { election } = scope;
  const [holder] = await asking(scope, signal)('listing', (operation) => store.members(operation));
  if (holder !== undefined && !holder.isOurs) {
    throw new RefusedError(
      `"${holder.candidate.id}" leads election "${election}" and cannot be told that it is over: ` +
        'stop the members that are not ours first',
    );
  }
  return administerQueue(store, scope, { kind: 'end' }, signal);
}
