import { pathToFileURL } from 'node:url';
import type * as Shards from '@incumbent/shards';
import type { RecordDamagedError } from 'incumbent';
import type { leaseBackend } from 'incumbent/backend';
import type { LeaseRecord } from 'incumbent/testing';
import type { DistOf } from '../harness/packages.ts';

/** The shards of a slot, as far as the checks look at them. */
export interface SlotState {
  /** The highest token that the slot was given. */
  readonly highest: bigint;
  readonly presence: { readonly joined: boolean };
  readonly entries: readonly {
    readonly shard: number;
    readonly token: bigint;
    readonly state: 'owned' | 'asked' | 'clean' | 'unclean';
  }[];
}

/** The packages under simulation: the compiled ones, from wherever they lie. */
export interface Library {
  readonly createShards: typeof Shards.createShards;
  readonly RecordDamagedError: typeof RecordDamagedError;
  readonly leaseBackend: typeof leaseBackend;
  readonly encodeLeaseRecord: (record: LeaseRecord) => string;
  readonly decodeLeaseRecord: (text: string, location: string) => LeaseRecord;
  readonly decodeSlot: (source: Uint8Array, location: string) => SlotState;
}

export async function loadLibrary(distOf: DistOf): Promise<Library> {
  const load = (name: string, file: string) =>
    import(pathToFileURL(`${distOf(name)}/${file}`).href);
  const [face, codec, backend, incumbent] = await Promise.all([
    load('shards', 'index.js'),
    load('shards', 'codec.js'),
    load('incumbent', 'backend.js'),
    load('incumbent', 'index.js'),
  ]);
  return {
    createShards: face.createShards,
    RecordDamagedError: incumbent.RecordDamagedError,
    leaseBackend: backend.leaseBackend,
    encodeLeaseRecord: backend.encodeLeaseRecord,
    decodeLeaseRecord: backend.decodeLeaseRecord,
    decodeSlot: codec.decodeSlot,
  };
}
