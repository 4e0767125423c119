import type { ZooKeeper } from '@incumbent/zookeeper';

/** What managers and views need of a client of ZooKeeper: a simulation has another one. */
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
