import type { Program } from './harness/program.ts';

export interface Scenario {
  readonly about: string;
  /** Loads it only when it is asked for: each brings clients of its own. */
  load(): Promise<{ readonly run: Program }>;
}

export const defaultScenario = 'file-store';

export const scenarios: Readonly<Record<string, Scenario>> = {
  'file-store': {
    about: 'candidates under `incumbent run` on one directory; leaders are killed and frozen',
    load: () => import('./file-store/scenario.ts'),
  },
  stores: {
    about: 'candidates on PostgreSQL, Redis and etcd, whose servers fail as well',
    load: () => import('./stores/scenario.ts'),
  },
  ensemble: {
    about: 'candidates on three ZooKeeper servers that are killed, frozen and cut off',
    load: () => import('./ensemble/scenario.ts'),
  },
  cutoff: {
    about: 'leaders whose ZooKeeper server is cut off from the others, beside kazoo',
    load: () => import('./cutoff/scenario.ts'),
  },
  interop: {
    about: 'elections that are held together with the real kazoo, Curator, etcdctl and a C program',
    load: () => import('./interop/scenario.ts'),
  },
  zookeeper: {
    about: 'the ZooKeeper client under load on an ensemble that fails (the soak)',
    load: () => import('./zookeeper/scenario.ts'),
  },
  shards: {
    about: 'shards that processes share, on five stores; processes are killed, frozen and cut off',
    load: () => import('./shards/scenario.ts'),
  },
  following: {
    about: 'clients that follow the leader over gRPC and HTTP',
    load: () => import('./following/scenario.ts'),
  },
  'redis-failover': {
    about: 'clients that write while Redis servers, managers and networks fail',
    load: () => import('./redis-failover/scenario.ts'),
  },
};
