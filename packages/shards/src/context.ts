import type { Backend, CandidateOptions, ElectionOptions } from 'incumbent';
import type { Names } from './lists.ts';
import type { RecordsOptions } from './records.ts';
import { Records } from './records.ts';
import { Roster } from './roster.ts';
import { RosterRecords } from './roster-records.ts';

/** The things that the parts of one handle have in common. */
export interface ContextOptions<Shard> extends RecordsOptions {
  readonly backend: Backend;
  readonly names: Names<Shard>;
  readonly candidate: CandidateOptions & { readonly id: string };
  /** For the elections of this handle. */
  readonly election: Omit<ElectionOptions<undefined>, 'name' | 'backend'>;
}

/** The records of a set of shards, and the process that takes part in it or asks. */
export class Context<Shard> extends Records<ContextOptions<Shard>> {
  /** Undefined for shards without names. */
  readonly roster: RosterRecords | undefined;

  constructor(options: ContextOptions<Shard>) {
    super(options);
    const names: unknown = options.names;
    if (names instanceof Roster) this.roster = new RosterRecords(this, names);
  }
}
