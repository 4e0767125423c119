import type { Term, TermState } from 'incumbent';

/** One spell of owning a shard. */
export interface ShardTerm<Shard = string | number> {
  /** The name of the set of shards. */
  readonly name: string;
  readonly shard: Shard;
  /** The id of this process. */
  readonly candidate: string;
  /**
   * Strictly greater than the token of every earlier term of this shard. Hand it to every resource.
   * It rises over all shards of a set.
   */
  readonly token: bigint;
  readonly state: TermState;
  /**
   * Aborts when the work for this shard must stop. Its `reason` is a `TermEndedError`. After a stalled
   * event loop your code can run before the abort does. `assertLeading` cannot be late.
   */
  readonly signal: AbortSignal;
  /**
   * Reads both clocks now. True for at most one process at any instant, under the conditions of
   * `term.isLeading` of an election.
   */
  isLeading(): boolean;
  /**
   * Call it right before each step that only the owner may take.
   * @param minMs how much belief the next step needs, in ms. Default 0
   * @throws NotLeadingError when `minMs` or less of belief is left
   * @throws InvalidOptionError
   */
  assertLeading(minMs?: number): void;
  /** Belief that is left, in ms. 0 when it is over. */
  remaining(): number;
  /**
   * The work is prepared: requests may come. Only with `ready: 'manual'`. Resolves when the record shows
   * it. Observers and routers may see it sooner, so call it when the work can serve.
   * @throws MisuseError without `ready: 'manual'`, or the term's end
   */
  ready(): Promise<void>;
  /** True from the begin of the work. With `ready: 'manual'`, from the call of `ready()`. */
  readonly isReady: boolean;
  /**
   * Asks for the end of this term. The shard goes to another process, if there is one. Returns at
   * once, never throws.
   */
  resign(): void;
  /**
   * Resolves when the work has settled, and the belief in this shard is over. Never rejects. Do not
   * await it within the work.
   */
  readonly ended: Promise<void>;
  /** For logs: the fields that tell this term from others, with the token as a decimal text. */
  toJSON(): Readonly<Record<string, unknown>>;
}

/** The stay of a process in its slot, as the terms of its shards know it. */
export type Stay = Pick<Term, 'isLeading' | 'assertLeading' | 'remaining' | 'state'>;

/** A former owner whose end was never confirmed. */
export interface UncleanOwner {
  /** The id of the process. */
  readonly id: string;
  /** The token of its term for this shard. */
  readonly token: bigint;
}

/** The second argument of a fence hook. */
export interface ShardTakeover<Shard = string | number> {
  readonly name: string;
  readonly shard: Shard;
  /** The token of the term that is about to begin. */
  readonly token: bigint;
  /** Aborted when the belief of this process is about to end. */
  readonly signal: AbortSignal;
  /** Belief that is left, in ms. Renewals prolong it meanwhile. */
  remaining(): number;
}

/**
 * Makes sure that a former owner, whose end was never confirmed, can do no more harm to the shard.
 * When it throws, the shard is given up, and the next owner runs the hooks again.
 */
export type ShardFenceHook<Shard = string | number> = (
  predecessor: UncleanOwner,
  takeover: ShardTakeover<Shard>,
) => Promise<void> | void;
