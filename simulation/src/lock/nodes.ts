/** The nodes of Hadoop's ActiveStandbyElector below the node of an election. */
import type { Node } from '../harness/zookeeper/tree.ts';
import { nameOf } from '../harness/zookeeper/tree.ts';

const lockName = 'ActiveStandbyElectorLock';
const breadcrumbName = 'ActiveBreadCrumb';

export function lockIn(election: string): string {
  return `${election}/${lockName}`;
}

export function breadcrumbIn(election: string): string {
  return `${election}/${breadcrumbName}`;
}

export function isLock(path: string): boolean {
  return nameOf(path) === lockName;
}

/** As the library names it; of other nodes the path, which names no place. */
export function placeOfLock(path: string, { czxid }: Pick<Node, 'czxid'>): string {
  return isLock(path) ? `${path}@0x${czxid.toString(16)}` : path;
}
