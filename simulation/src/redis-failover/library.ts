import { pathToFileURL } from 'node:url';
import type * as Connections from '../../../packages/redis-failover/dist/client/connections.js';
import type * as Outcome from '../../../packages/redis-failover/dist/client/outcome.js';
import type * as Router from '../../../packages/redis-failover/dist/client/router.js';
import type * as ViewFollower from '../../../packages/redis-failover/dist/client/view-follower.js';
import type * as GemLock from '../../../packages/redis-failover/dist/gem-lock.js';
import type * as Layout from '../../../packages/redis-failover/dist/layout.js';
import type * as NodeManager from '../../../packages/redis-failover/dist/manager/node-manager.js';
import type * as NodeErrors from '../../../packages/redis-failover/dist/redis/errors.js';
import type * as Replication from '../../../packages/redis-failover/dist/redis/replication.js';
import type * as ZooKeeperErrors from '../../../packages/zookeeper/dist/errors.js';
import type * as Follow from '../../../packages/zookeeper/dist/follow.js';
import type * as Transaction from '../../../packages/zookeeper/dist/transaction.js';
import type { DistOf } from '../harness/packages.ts';

/**
 * The library under simulation: managers and clients, and the client of ZooKeeper as far as it is
 * not modelled.
 */
export type Library = Pick<typeof NodeManager, 'NodeManager'> &
  Pick<typeof ViewFollower, 'ViewFollower'> &
  Pick<typeof Connections, 'Connections'> &
  Pick<typeof Router, 'Router'> &
  Pick<typeof Outcome, 'kindOf'> &
  Pick<typeof Layout, 'decodePrimary' | 'decodeRequest' | 'encodeRequest' | 'pathsBelow'> &
  Pick<typeof GemLock, 'gemManagers'> &
  Pick<typeof NodeErrors, 'errorOfReply' | 'NodeUnreachableError'> &
  Pick<typeof Replication, 'readReplication'> &
  Pick<typeof Transaction, 'TransactionError'> &
  Pick<typeof Follow, 'follow' | 'followChildren'> & { readonly errors: typeof ZooKeeperErrors };

export async function loadLibrary(distOf: DistOf): Promise<Library> {
  const load = (name: string, file: string) =>
    import(pathToFileURL(`${distOf(name)}/${file}`).href);
  const own = (file: string) => load('redis-failover', file);
  const [manager, view, connections, router, outcome, layout, nodeErrors, replication, gemLock] =
    await Promise.all([
      own('manager/node-manager.js'),
      own('client/view-follower.js'),
      own('client/connections.js'),
      own('client/router.js'),
      own('client/outcome.js'),
      own('layout.js'),
      own('redis/errors.js'),
      own('redis/replication.js'),
      own('gem-lock.js'),
    ]);
  const [errors, follow, transaction] = await Promise.all([
    load('zookeeper', 'errors.js'),
    load('zookeeper', 'follow.js'),
    load('zookeeper', 'transaction.js'),
  ]);
  return {
    ...{ ...manager, ...view, ...connections, ...router, ...outcome, ...layout },
    ...{ ...nodeErrors, ...replication, ...gemLock, ...follow, ...transaction, errors },
  };
}
