import type { Backend, CandidateOptions, ElectionOptions } from 'incumbent';
import type { Names } from './lists.ts';
import type { RecordsOptions } from './records.ts';
import { Records } from './records.ts';

/** The things that the parts of one handle have in common. */
export interface ContextOptions<Shard> extends RecordsOptions {
  readonly backend: Backend;
  readonly names: Names<Shard>;
  readonly candidate: CandidateOptions & { readonly id: string };
  /** For the elections of this handle. */
  readonly election: Omit<ElectionOptions<undefined>, 'name' | 'backend'>;
}

/** The records of a set of shards, and the process that takes part in it or asks. */
export class Context<Shard> extends Records<ContextOptions<Shard>> {}
