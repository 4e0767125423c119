import type { ZooKeeper } from '@incumbent/zookeeper';

/** The part of a ZooKeeper client that managers and views use. A simulation supplies its own. */
export type ZooKeeperClient = Pick<
  ZooKeeper,
  | 'state'
  | 'session'
  | 'onState'
  | 'connected'
  | 'close'
  | 'create'
  | 'get'
  | 'set'
  | 'delete'
  | 'stat'
  | 'getChildren'
  | 'sync'
  | 'watch'
  | 'watchChildren'
  | 'follow'
  | 'followChildren'
  | 'transaction'
  | 'confirm'
  | 'ensurePath'
  | 'getAcl'
  | 'setAcl'
>;
