import type { Acl } from '@incumbent/zookeeper';
import { acl } from '@incumbent/zookeeper';
import type { ZooKeeperOptions } from 'incumbent/zookeeper';

/** The ACL that nodes are created with, as the library has it. */
export function nodeAcl({ acl: given = 'open' }: ZooKeeperOptions): readonly Acl[] {
  if (given === 'open') return [acl.world()];
  return given === 'creator' ? [acl.auth()] : given;
}
