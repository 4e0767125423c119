/**
 * The nodes of Hadoop's ActiveStandbyElector, below the node of an election:
 *
 *     ActiveStandbyElectorLock   ephemeral, made by the member that becomes active
 *     ActiveBreadCrumb           persistent: the member that became active and has not said that
 *                                it stopped
 *
 * Both hold the same bytes, which the application chooses (HDFS and YARN: a protobuf message). The
 * next active member uses them to fence the one before. The node of the election itself is made
 * without data, and Hadoop never reads its data. There our record stands, as in the other layouts.
 */
import type { CandidateInfo } from '../../base/candidate.ts';
import type { NodeContent } from './client.ts';
import type { LockPaths } from './lock-nodes.ts';

export const lockName = 'ActiveStandbyElectorLock';
export const breadcrumbName = 'ActiveBreadCrumb';

/** @param election the node of the election */
export function hadoopPaths(election: string): LockPaths & { readonly breadcrumb: string } {
  const prefix = election === '/' ? '' : election;
  return {
    record: election,
    lock: `${prefix}/${lockName}`,
    breadcrumb: `${prefix}/${breadcrumbName}`,
  };
}

/** Under this name the metadata of a leader that is not ours has its bytes, in base64. */
const activeDataKey = 'activeData';

/**
 * The `activeData` from the lock or the breadcrumb. Undefined for a leader that our record names.
 */
export function activeDataOf(leader: CandidateInfo): Uint8Array | undefined {
  const encoded = leader.metadata[activeDataKey];
  return encoded === undefined ? undefined : new Uint8Array(Buffer.from(encoded, 'base64'));
}

/**
 * A member of which only the node is known. The bytes are the id if they are a text that can be
 * one. Otherwise the id is their printable parts, or hexadecimal digits.
 * @param zxid tells this member from others with the same bytes
 */
export function candidateOf({ data }: Pick<NodeContent, 'data'>, zxid: bigint): CandidateInfo {
  const bytes = Buffer.from(data ?? []);
  return {
    id: readable(bytes),
    incarnation: `0x${zxid.toString(16)}`,
    addresses: [],
    metadata: { [activeDataKey]: bytes.toString('base64') },
  };
}

function readable(bytes: Buffer): string {
  const text = bytes.toString('utf8');
  if (/^[^\p{C}\u2028\u2029]{1,200}$/u.test(text) && Buffer.from(text).equals(bytes)) return text;
  // A protobuf message, such as HDFS's. Its strings say more than its bytes.
  const words = text.match(/[\w.:-]{2,}/g);
  if (words !== null) return words.join(' ').slice(0, 200);
  return bytes.length === 0 ? 'unknown' : `0x${bytes.toString('hex').slice(0, 100)}`;
}
