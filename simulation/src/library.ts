import { pathToFileURL } from 'node:url';
import type * as Incumbent from 'incumbent';
import type { Backend, LeaseRecord, LeaseStore, Scope } from 'incumbent/testing';

/** What the simulation drives: the compiled library, from wherever it lies. */
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
}

/** @param directory a `dist` of the library; a patched copy of it is another library */
export async function loadLibrary(directory: string): Promise<Library> {
  const load = (file: string) => import(pathToFileURL(`${directory}/${file}`).href);
  const [face, backend, record] = await Promise.all([
    load('index.js'),
    load('lease/backend.js'),
    load('lease/record.js'),
  ]);
  return {
    createElection: face.createElection,
    resolveTiming: face.resolveTiming,
    leaseBackend: backend.leaseBackend,
    encodeLeaseRecord: record.encodeLeaseRecord,
    decodeLeaseRecord: record.decodeLeaseRecord,
  };
}
