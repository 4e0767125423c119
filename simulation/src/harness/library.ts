import { pathToFileURL } from 'node:url';
import type * as Incumbent from 'incumbent';
import type { Backend, LeaseRecord, LeaseStore, Scope } from 'incumbent/testing';
import type * as ZooKeeper from 'incumbent/zookeeper';

/** The record of a queue, as far as the checks look at it. */
export interface QueueRecord {
  readonly token: bigint;
  readonly nonce: string;
  readonly beliefMs: number;
  readonly ended: boolean;
  /** Of the last term that was announced, as its writer spells it; empty before the first. */
  readonly place: string;
  readonly holding:
    | {
        readonly candidate: Incumbent.CandidateInfo;
        readonly place: string;
        readonly revoked: boolean;
        readonly ready?: false | undefined;
        readonly request: Incumbent.LeaderRequest | undefined;
      }
    | undefined;
  readonly reservation: { readonly for: string | undefined } | undefined;
  readonly unfenced: readonly Incumbent.UncleanLeader[];
  readonly drains: readonly Incumbent.Drain[];
  readonly history: readonly Incumbent.TermSummary[];
}

/** The library under simulation: the compiled one, from wherever it lies. */
export interface Library {
  readonly createElection: typeof Incumbent.createElection;
  readonly resolveTiming: typeof Incumbent.resolveTiming;
  readonly leaseBackend: <Guard>(options: {
    readonly kind: string;
    readonly description: string;
    readonly openStore: (scope: Scope) => LeaseStore;
    readonly guard: (scope: Scope, store: LeaseStore, token: bigint) => Guard;
  }) => Backend<Guard>;
  readonly encodeLeaseRecord: (record: LeaseRecord) => string;
  readonly decodeLeaseRecord: (text: string, location: string) => LeaseRecord;
  readonly zookeeper: typeof ZooKeeper.zookeeper;
  readonly decodeQueueRecord: (text: string, location: string) => QueueRecord;
}

/** @param directory a `dist` of the library; a patched copy of it is another library */
export async function loadLibrary(directory: string): Promise<Library> {
  const load = (file: string) => import(pathToFileURL(`${directory}/${file}`).href);
  const [face, backend, record, zookeeper, queueRecord] = await Promise.all([
    load('index.js'),
    load('mechanisms/lease/backend.js'),
    load('record/lease-record.js'),
    load('backends/zookeeper/index.js'),
    load('record/queue-record.js'),
  ]);
  return {
    createElection: face.createElection,
    resolveTiming: face.resolveTiming,
    leaseBackend: backend.leaseBackend,
    encodeLeaseRecord: record.encodeLeaseRecord,
    decodeLeaseRecord: record.decodeLeaseRecord,
    zookeeper: zookeeper.zookeeper,
    decodeQueueRecord: queueRecord.decodeQueueRecord,
  };
}
