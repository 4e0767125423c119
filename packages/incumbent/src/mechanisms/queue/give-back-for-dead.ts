import type { DeadLeader, Scope } from '../../core/contest.ts';
import type { QueueRecord } from '../../record/queue-record.ts';
import { giveBackForDead } from '../give-back-for-dead.ts';
import { asking } from './ask.ts';
import { leaderPlaceIn } from './named-places.ts';
import type { QueueStore } from './store.ts';

/**
 * One transaction: the record, on the version that names the dead leader, and the deletion of its
 * place. An announcement of it that lands later finds neither.
 *
 * Where the place is gone already, a successor waits the leader's belief out by that very record.
 * Then nothing is written: it would take the record from under the successor.
 */
export function giveBackPlace(
  store: QueueStore,
  scope: Scope,
  leader: DeadLeader,
  signal: AbortSignal,
): Promise<boolean> {
  const ask = asking(scope, signal);
  const look = async () => {
    await ask('catching up', (operation) => store.sync(operation));
    const { record, version } = await ask('reading', (operation) => store.read(operation));
    const place = leaderPlaceIn(store, record);
    const write = async (next: QueueRecord) => {
      const change = { record: next, version, remove: place === undefined ? [] : [place] };
      const result = await ask('giving a seat back', (operation) => store.amend(change, operation));
      return result.outcome;
    };
    return { record, write };
  };
  return giveBackForDead(scope, leader, look, signal);
}
