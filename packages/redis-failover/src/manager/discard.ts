/**
 * Carries out an operator's `discard`: the node copies the primary, and loses the data that only it
 * has.
 */
import type { PrimaryRecord } from '../layout.ts';
import type { NodeAddress } from '../node-address.ts';
import type { Replication } from '../redis/node-connection.ts';
import type { Hands } from './hands.ts';
import type { Keeper } from './keeper.ts';
import { isSameProcess } from './lineage.ts';
import { MoveRefusedError } from './move-world.ts';

/**
 * Makes a node a replica of the primary, and notes that in the record. The copy may take longer
 * than one look of the manager, and until it is complete the node still has what the primary lacks.
 * @returns the primary
 * @throws MoveRefusedError if the primary is not the one that was judged: it may have lost more
 *   than the operator knows
 */
export async function discard(
  node: NodeAddress,
  record: PrimaryRecord,
  { hands, keeper }: { readonly hands: Hands; readonly keeper: Keeper },
): Promise<NodeAddress> {
  const { primary } = record;
  if (node === primary) throw new MoveRefusedError(`${node} is the primary`);
  const says = primary === null ? undefined : await hands.replication(primary);
  if (primary === null || says?.role !== 'primary') {
    throw new MoveRefusedError('there is no primary at the moment that it could copy');
  }
  if (says.loading || !isSameProcess(record, says)) {
    throw new MoveRefusedError(
      `${primary} was started anew, and nobody has judged yet what it still has: ` +
        'ask again when status names a primary',
    );
  }
  const { runId } = await hands.replication(node);
  const discarded = { ...record.discarded, [node]: runId };
  await keeper.write({ record: { ...record, discarded } });
  await hands.makeReplica(node, primary);
  return primary;
}

/** Whether an operator has allowed this node, in this process, to copy the primary of this term. */
export function isDiscarded(
  record: PrimaryRecord,
  node: NodeAddress,
  { runId, primary }: Pick<Replication, 'runId' | 'primary'>,
): boolean {
  return primary === record.primary && record.discarded?.[node] === runId;
}
