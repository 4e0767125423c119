/** The one request that members of every make understand: their places are deleted. */
import type { AdminResult, Scope } from '../../core/contest.ts';
import { administer } from '../administer.ts';
import { removeAll } from './administer.ts';
import { asking } from './ask.ts';
import { leaderPlaceIn } from './named-places.ts';
import { viewOf } from './observer.ts';
import type { QueueStore } from './store.ts';

/**
 * Deletes the places of all members, from the last to the first, so that none is promoted on the
 * way. The record goes on naming a leader of ours, so our own candidates wait out its belief.
 */
export function deleteCandidates(
  store: QueueStore,
  scope: Scope,
  signal: AbortSignal,
): Promise<AdminResult> {
  const ask = asking(scope, signal);
  // Members that enter meanwhile are not meant. They are known by their tokens, for a name may come
  // again.
  let meant: ReadonlySet<bigint> | undefined;
  const look = async () => {
    await ask('catching up', (operation) => store.sync(operation));
    const reading = await ask('reading', (operation) => store.read(operation));
    const members = await ask('listing', (operation) => store.members(operation));
    meant ??= new Set(members.map(({ token }) => token));
    const left = members.filter(({ token }) => meant?.has(token));
    const place = leaderPlaceIn(store, reading.record);
    const isThere = members.some(({ name }) => name === place);
    const write = async () => {
      await removeAll(store, left, ask);
      return true;
    };
    return {
      view: viewOf(reading, isThere, members[0], scope.clock.wallMs()),
      token: 0n,
      plan: async () => (left.length === 0 ? undefined : { write }),
    };
  };
  return administer(scope, { kind: 'deleting the candidates' }, look, signal);
}
