import type { Replication } from '../../src/redis/node-connection.ts';

/** The report of a healthy primary, changed by what is given. */
export function replication(more: Partial<Replication> = {}): Replication {
  return {
    runId: 'r',
    role: 'primary',
    replicationId: 'a',
    formerReplicationId: undefined,
    formerOffset: -1,
    offset: 0,
    linkOffset: undefined,
    hasBacklog: true,
    isEmpty: false,
    hasWritten: true,
    isAside: false,
    primary: undefined,
    linkUp: true,
    syncing: false,
    copiedPercent: undefined,
    loading: false,
    loadsCopy: false,
    servesStaleReads: true,
    priority: 100,
    connectedReplicas: 0,
    minReplicasToWrite: 0,
    ...more,
  };
}
