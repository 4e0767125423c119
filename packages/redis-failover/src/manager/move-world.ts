import type { PrimaryRecord } from '../layout.ts';
import type { NodeAddress } from '../node-address.ts';
import type { MoveReason } from './events.ts';
import type { ManagerHooks } from './hooks.ts';
import type { JoinWorld } from './join.ts';
import type { Change, Keeper } from './keeper.ts';

/** What a move goes by. */
export interface MovePlan {
  readonly reason: MoveReason;
  /** Whom to promote. Left out: the best. */
  readonly target?: NodeAddress | undefined;
  /** Nodes of any list that the managers say are up, also the primary of before. */
  readonly available: readonly NodeAddress[];
  /** Mean of what the managers see, in ms. */
  readonly latencyMs: (node: NodeAddress) => number;
  /** How many managers do not see it. */
  readonly unavailableTo: (node: NodeAddress) => number;
  /** What belongs into the write that publishes the new primary. */
  readonly withPublication?: Publication | undefined;
}

/** The answer to whoever asked for a move. */
export interface Publication {
  readonly manualSeen?: string;
  /** Left out when `path` is gone meanwhile. */
  readonly path?: string;
  /** Refuses a write at `path` when the request is withdrawn. */
  readonly stillAsked?: NonNullable<Change['also']>;
  readonly also?: (moved: Moved) => NonNullable<Change['also']>;
}

export interface MoveWorld extends JoinWorld {
  readonly keeper: Keeper;
  readonly hooks: ManagerHooks;
  readonly signal: AbortSignal;
  readonly nowMs: () => number;
  readonly sleep: (forMs: number) => Promise<void>;
  readonly clientViewMs: number;
  /** Those of this manager's list: only they are promoted, or told to copy. */
  readonly nodes: readonly NodeAddress[];
  /** Nodes that only other managers list. They are asked, and what they have counts. */
  readonly others: () => readonly NodeAddress[];
  /** What the record says of who wrote it. */
  readonly author: Pick<PrimaryRecord, 'manager' | 'token'>;
  /**
   * When this manager first knew that the record names no primary, by `nowMs`: nobody's view of an
   * earlier one can be younger.
   */
  revokedAtMs: number | undefined;
  /** The same of the move before this one; of an earlier manager's: when this one began. */
  earlierRevokedAtMs: number;
  /** Who could not be made a primary: taken only when nobody else has as much. */
  readonly refused: Set<NodeAddress>;
  /** Why nodes did not answer when they were asked last. */
  readonly errors: Map<NodeAddress, Error>;
  /** What is not forgotten between terms of this manager. */
  readonly memory: MoveMemory;
  /** How many managers report: whether another one can try. */
  readonly managers: () => number;
  /**
   * Until when clients may go by what managers of the gem have published, by `nowMs`: our clients
   * believe that for longer.
   */
  othersLapseAtMs: number;
}

/** All of the set: whoever decides asks them. */
export function everyNode({ nodes, others }: Pick<MoveWorld, 'nodes' | 'others'>): NodeAddress[] {
  return [...nodes, ...others()];
}

/** Of one term on record: what was waited for in an earlier one says nothing of the next. */
export interface MoveMemory {
  /** undefined: before the first move. */
  term: number | undefined;
  /** Attempts that were given up because a node that is up did not answer. */
  incompleteAttempts: number;
  /** Since when those are waited for that may have what was written in the last term, by `nowMs`. */
  waitsSinceMs: number | undefined;
  /** When the term began by a move of a primary that was down to itself: nobody else could get all it has. */
  cameBackAtMs: number | undefined;
}

export function newMemory(): MoveMemory {
  return {
    ...{ term: undefined, incompleteAttempts: 0 },
    ...{ waitsSinceMs: undefined, cameBackAtMs: undefined },
  };
}

/** What is remembered of the term on record. */
export function memoryOf({ term }: Pick<PrimaryRecord, 'term'>, memory: MoveMemory): MoveMemory {
  return memory.term === term ? memory : Object.assign(memory, newMemory(), { term });
}

/** No node can be promoted. The record is as it was before, or names no primary. */
export class NoCandidateError extends Error {
  override readonly name: string = 'NoCandidateError';
  readonly code = 'NO_CANDIDATE';
}

/** Somebody is waited for who may have more of the data. */
export class PatienceError extends NoCandidateError {
  override readonly name: string = 'PatienceError';
}

/**
 * A wish that cannot be carried out. Nothing was changed, unless the node was waited for with the writes
 * stopped: then the primary of before goes on, with the next term.
 */
export class MoveRefusedError extends Error {
  override readonly name: string = 'MoveRefusedError';
  readonly code = 'MOVE_REFUSED';
}

/** What an operator is told whose wish has failed: another attempt may still find it half done. */
export function refusalOf(
  { message, name }: Error,
  before: Pick<PrimaryRecord, 'primary'>,
  after: Pick<PrimaryRecord, 'primary'> | undefined,
): string {
  const isBegun =
    after?.primary !== before.primary ||
    // While nobody is the primary, the record does not show it.
    (before.primary === null && name !== 'NoCandidateError' && name !== 'MoveRefusedError');
  return isBegun ? `${message} (it was begun, and may still be carried out)` : message;
}

/** A wish that cannot be carried out yet: the node is still copying. Nothing was changed. */
export class MoveTooEarlyError extends MoveRefusedError {
  override readonly name: string = 'MoveTooEarlyError';
  /** It copies: that may take long. Else it may be about to connect, or it may never. */
  readonly isCopying: boolean;

  constructor(message: string, isCopying: boolean) {
    super(message);
    this.isCopying = isCopying;
  }
}

/** Whoever asked has taken the request back in time. Nothing was changed. */
export class MoveWithdrawnError extends MoveRefusedError {
  override readonly name: string = 'MoveWithdrawnError';
}

export interface Moved {
  readonly primary: NodeAddress;
  readonly term: number;
}
