/** The nodes of an election that is one node: the record beside it, and badges below the record. */
import type { Node } from '../harness/zookeeper/tree.ts';
import { parentOf } from '../harness/zookeeper/tree.ts';

const suffix = '.incumbent';

export function recordOf(election: string): string {
  return `${election}${suffix}`;
}

/** The node that a leader makes. */
export function lockBeside(record: string): string {
  return record.slice(0, -suffix.length);
}

/** Neither a record nor a badge. */
export function isLock(path: string): boolean {
  return !path.endsWith(suffix) && !parentOf(path).endsWith(suffix);
}

/** As the library names it; of other nodes the path, which names no place. */
export function placeOfLock(path: string, { czxid }: Pick<Node, 'czxid'>): string {
  return isLock(path) ? `${path}@0x${czxid.toString(16)}` : path;
}
