/**
 * For ensembles whose servers are killed. ZooKeeper 3.8.0 loses acknowledged writes by itself when
 * a server dies right after it has caught up with a new leader (ZOOKEEPER-4646, ZOOKEEPER-4643).
 * The server says that it has the missing writes before it has written them. A whole snapshot is
 * written first.
 */
export const lossless: Readonly<Record<string, boolean>> = { 'zookeeper.forceSnapshotSync': true };
