/** The values that the page of the dashboard is told. A browser reads this file too: no imports of Node. */

/** `store:0` and so on. */
export interface ShownStore {
  readonly index: number;
  readonly url: string;
  /** When all of its elections were last read; null: never yet. */
  readonly seenUnixMs: number | null;
  /** Why what is shown is old; null: it is not. */
  readonly error: string | null;
  /** Our clock, by which the page shows times: that of the browser may be another one. */
  readonly nowUnixMs: number;
}

/** `page`: one for all. */
export interface ShownPage {
  readonly steering: boolean;
  /** It has a file of older terms, which `/history` answers from. */
  readonly history: boolean;
  readonly version: string;
}

export interface ShownCandidate {
  readonly id: string;
  readonly addresses: readonly string[];
  readonly metadata: Readonly<Record<string, string>>;
}

export interface ShownTerm {
  readonly token: string;
  readonly id: string;
  readonly fromUnixMs: number;
  readonly toUnixMs: number;
  readonly why: string;
}

/** The name under which an election is told. */
export function electionKey({
  store,
  election,
}: Pick<ShownElection, 'store' | 'election'>): string {
  return `election:${store}:${election}`;
}

/** Of the store with that index. */
export interface ShownElection {
  readonly store: number;
  readonly election: string;
  readonly state: 'led' | 'vacant' | 'unknown' | 'ended';
  readonly ready: boolean;
  readonly leader: ShownCandidate | null;
  readonly token: string | null;
  readonly sinceUnixMs: number | null;
  /** In the order in which they wait, where the store has one. Null: the store does not tell. */
  readonly waiting: readonly ShownCandidate[] | null;
  readonly drains: readonly { readonly id: string; readonly untilUnixMs: number }[];
  /** An operator's request that the leader has not met yet. */
  readonly request: string | null;
  /** Why the seat is vacant, or why the record cannot be read. */
  readonly why: string | null;
  readonly leaseMs: number | null;
  /** The last terms that are over, the oldest first. */
  readonly history: readonly ShownTerm[];
}

/** A term of the file of older terms. */
export interface PastTerm {
  readonly token: string;
  readonly id: string;
  readonly incarnation: string;
  readonly fromUnixMs: number;
  /** Null: it leads, or its end is not on record. */
  readonly toUnixMs: number | null;
  /** Null: it leads. */
  readonly why: string | null;
  /** How long nobody led before it; null: that is not known. */
  readonly gapBeforeMs: number | null;
}

/** The answer of `/history?store=0&election=NAME&since=UNIX_MS`, and `&before=NEXT` for older ones. */
export interface PastTerms {
  /** The newest first. */
  readonly terms: readonly PastTerm[];
  /** For `before`; null: there are no older ones in that time. */
  readonly next: string | null;
}

/** The answer of `/lease?store=0&election=NAME`: the rest of a lease. */
export interface ShownLease {
  /** Null: it is not known. */
  readonly leftMs: number | null;
}

/** A request of an operator, made on the page. The commands of the same names do it. */
export type Steering =
  | { readonly act: 'vacate'; readonly force: boolean }
  | { readonly act: 'transfer'; readonly to: string }
  | { readonly act: 'drain'; readonly id: string; readonly until: string }
  | { readonly act: 'lift'; readonly id: string }
  | { readonly act: 'end' }
  | { readonly act: 'reopen' };

/** `token`: of the leader that was shown when the operator decided; null: nobody led. */
export type SteeringOf = Steering & {
  readonly store: number;
  readonly election: string;
  readonly token: string | null;
};

/** The name under which a set of shards is told. */
export function shardsKey({ store, name }: Pick<ShownShards, 'store' | 'name'>): string {
  return `shards:${store}:${name}`;
}

/** A set of shards, without its grid. */
export interface ShownShards {
  readonly store: number;
  readonly name: string;
  readonly shards: number;
  /** True: they have names. Their numbers are the places in the sorted list. */
  readonly isNamed: boolean;
  readonly coordinator: string | null;
  readonly members: readonly ShownShardMember[];
  /** So many have no owner. */
  readonly unowned: number;
  /** So many were asked back from their owners. */
  readonly moving: number;
  /** So many an operator wants at one member. */
  readonly pinned: number;
  /** Another one whenever the grid has changed. */
  readonly version: string;
  /** Why what is shown is old; null: it is not. */
  readonly error: string | null;
}

export interface ShownShardMember {
  readonly id: string;
  /** Unique, which the id need not be. */
  readonly slot: number;
  readonly addresses: readonly string[];
  readonly weight: number;
  readonly zone: string;
  readonly joined: boolean;
  readonly drained: boolean;
  readonly owns: number;
  readonly moving: number;
  readonly sinceUnixMs: number;
}

/** The answer of `/shards?store=0&name=NAME`: who owns each shard. */
export interface ShownGrid {
  readonly version: string;
  readonly terms: readonly ShownShardTerm[];
  /** By the numbers of the shards; null: they have none, or these are not known. */
  readonly names: readonly string[] | null;
  /** For each shard the index of its term; -1: it has no owner. */
  readonly cells: readonly number[];
  /** The numbers of those that were asked back. */
  readonly moving: readonly number[];
  /** Those that an operator wants at one member, which may be away. */
  readonly pins: readonly { readonly shard: number; readonly to: string }[];
}

/** Terms of shards that one member was granted by one write. */
export interface ShownShardTerm {
  /** The member's. */
  readonly slot: number;
  readonly id: string;
  readonly token: string;
  /** When the dashboard saw it first; null: it was there before. */
  readonly sinceUnixMs: number | null;
}
