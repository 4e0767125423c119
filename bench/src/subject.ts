/** The subjects of `npm run bench -- SUBJECT`. */

export interface Subject {
  readonly about: string;
  /** How long all of it takes on a machine that does nothing else. */
  readonly takes: string;
  /** @returns its suite: loaded only when it is asked for */
  load(): Promise<{ run(args: readonly string[]): Promise<number> }>;
}

export const defaultSubject = 'library';

export const subjects: Readonly<Record<string, Subject>> = {
  library: {
    about: 'the library and the command on the file store, beside the machine itself',
    takes: '8 minutes',
    load: () => import('./library/suite.ts'),
  },
  stores: {
    about: 'elections on PostgreSQL, Redis, etcd and Kubernetes, beside etcd3 and redlock',
    takes: '30 minutes',
    load: () => import('./stores/suite.ts'),
  },
  'zookeeper-elections': {
    about: 'elections on ZooKeeper, beside Curator, kazoo and bare clients',
    takes: '15 minutes',
    load: () => import('./zookeeper-elections/suite.ts'),
  },
  zookeeper: {
    about: 'the ZooKeeper client, beside other clients and a bare socket',
    takes: '10 minutes',
    load: () => import('./zookeeper/suite.ts'),
  },
  following: {
    about: 'clients that follow the leader, and the requests that object stores are asked',
    takes: '10 minutes',
    load: () => import('./following/suite.ts'),
  },
  shards: {
    about: "shards that processes share, beside kazoo's SetPartitioner",
    takes: '15 minutes',
    load: () => import('./shards/suite.ts'),
  },
  'redis-failover': {
    about: 'how long nobody can write when a Redis primary fails, beside Sentinel',
    takes: '15 minutes',
    load: () => import('./redis-failover/suite.ts'),
  },
};

/** The command that measures it, as a user types it. */
export function commandOf(subject: string): string {
  return `npm run bench -- ${subject}`;
}
