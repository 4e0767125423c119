import type { DeadLeader, Scope } from '../../core/contest.ts';
import { giveBackForDead } from '../give-back-for-dead.ts';
import { readStore, swapStore } from './reading.ts';
import type { LeaseStore } from './store.ts';

/**
 * One write, on the version that names the dead leader. A renewal of it that lands before moves
 * the version, and this write conflicts. One that lands after conflicts itself.
 */
export function giveBackLease(
  store: LeaseStore,
  scope: Scope,
  leader: DeadLeader,
  signal: AbortSignal,
): Promise<boolean> {
  const look = async () => {
    const { record, version } = await readStore(store, scope, signal);
    return {
      record,
      write: async (next: NonNullable<typeof record>) => {
        const result = await swapStore(store, scope, { record: next, version }, signal);
        return result.outcome;
      },
    };
  };
  return giveBackForDead(scope, leader, look, signal);
}
