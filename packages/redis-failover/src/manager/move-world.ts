import type { PrimaryRecord } from '../layout.ts';
import type { NodeAddress } from '../node-address.ts';
import type { MoveReason } from './events.ts';
import type { ManagerHooks } from './hooks.ts';
import type { JoinWorld } from './join.ts';
import type { Change, Keeper } from './keeper.ts';

/** The plan of a move. */
export interface MovePlan {
  readonly reason: MoveReason;
  /** The node to promote. Left out: the best one. */
  readonly target?: NodeAddress | undefined;
  /**
   * Nodes of any list that are up by the managers' verdict. The former primary may be one of them.
   */
  readonly available: readonly NodeAddress[];
  /** The mean latency that the managers report, in ms. */
  readonly latencyMs: (node: NodeAddress) => number;
  /** How many managers do not see the node. */
  readonly unavailableTo: (node: NodeAddress) => number;
  /** Operations that belong into the write that publishes the new primary. */
  readonly withPublication?: Publication | undefined;
}

/** The answer to the client or operator that requested the move. */
export interface Publication {
  readonly manualSeen?: string;
  /** The request's znode. The answer is left out if it is gone by then. */
  readonly path?: string;
  /** Makes a write fail with a refusal at `path` if the request was withdrawn. */
  readonly stillAsked?: NonNullable<Change['also']>;
  readonly also?: (moved: Moved) => NonNullable<Change['also']>;
}

/** Everything that a move works with. */
export interface MoveWorld extends JoinWorld {
  readonly keeper: Keeper;
  readonly hooks: ManagerHooks;
  readonly signal: AbortSignal;
  readonly nowMs: () => number;
  readonly sleep: (forMs: number) => Promise<void>;
  readonly clientViewMs: number;
  /** The nodes of this manager's list. Only these are promoted, or told to copy. */
  readonly nodes: readonly NodeAddress[];
  /** Nodes that only other managers list. They are asked, and their data count. */
  readonly others: () => readonly NodeAddress[];
  /** The author of a record, as it stands there. */
  readonly author: Pick<PrimaryRecord, 'manager' | 'token'>;
  /**
   * When this manager first knew that the record names no primary, by `nowMs`. No client can have
   * confirmed an earlier primary after that.
   */
  revokedAtMs: number | undefined;
  /**
   * The same time of the move before this one. If another manager made that move: the time at which
   * this one began.
   */
  earlierRevokedAtMs: number;
  /** Nodes that could not be made a primary. One is chosen only if no other node has as much. */
  readonly refused: Set<NodeAddress>;
  /** Why nodes did not answer when they were last asked. */
  readonly errors: Map<NodeAddress, Error>;
  /** Kept between the terms of this manager's leadership. */
  readonly memory: MoveMemory;
  /** How many managers report. With more than one, another manager can try. */
  readonly managers: () => number;
  /**
   * Until when clients may go by what managers of the gem have published, by `nowMs`. Our clients
   * use that for longer than a view of our own.
   */
  othersLapseAtMs: number;
}

/** All nodes of the set. */
export function everyNode({ nodes, others }: Pick<MoveWorld, 'nodes' | 'others'>): NodeAddress[] {
  return [...nodes, ...others()];
}

/** A manager's memory of one term on record. It says nothing about the next term. */
export interface MoveMemory {
  /** undefined before the first move. */
  term: number | undefined;
  /** Attempts that were given up because a node that is up did not answer. */
  incompleteAttempts: number;
  /**
   * Since when the manager has waited for nodes that may have writes of the last term, by `nowMs`.
   */
  waitsSinceMs: number | undefined;
  /**
   * When this term began with a primary that was judged down and kept its role, because no other
   * node could get all its data.
   */
  cameBackAtMs: number | undefined;
}

export function newMemory(): MoveMemory {
  return {
    ...{ term: undefined, incompleteAttempts: 0 },
    ...{ waitsSinceMs: undefined, cameBackAtMs: undefined },
  };
}

/** The memory of the term on record. It is cleared when the term is another one. */
export function memoryOf({ term }: Pick<PrimaryRecord, 'term'>, memory: MoveMemory): MoveMemory {
  return memory.term === term ? memory : Object.assign(memory, newMemory(), { term });
}

/** No node can be promoted. The record is as before, or names no primary. */
export class NoCandidateError extends Error {
  override readonly name: string = 'NoCandidateError';
  readonly code = 'NO_CANDIDATE';
}

/** The manager waits for a node that may have newer data. */
export class PatienceError extends NoCandidateError {
  override readonly name: string = 'PatienceError';
}

/**
 * A request that cannot be carried out. Mostly nothing was changed. If the manager had paused the
 * writes to wait for the node, the former primary goes on in the next term.
 */
export class MoveRefusedError extends Error {
  override readonly name: string = 'MoveRefusedError';
  readonly code = 'MOVE_REFUSED';
}

/**
 * The message for an operator whose request failed. It says so if a later attempt may still finish
 * the move.
 */
export function refusalOf(
  { message, name }: Error,
  before: Pick<PrimaryRecord, 'primary'>,
  after: Pick<PrimaryRecord, 'primary'> | undefined,
): string {
  const isBegun =
    after?.primary !== before.primary ||
    // If there was no primary before, the record cannot show whether the move was begun.
    (before.primary === null && name !== 'NoCandidateError' && name !== 'MoveRefusedError');
  return isBegun ? `${message} (it was begun, and may still be carried out)` : message;
}

/**
 * A request that cannot be carried out yet, because the node is still copying or not connected.
 * Nothing was changed.
 */
export class MoveTooEarlyError extends MoveRefusedError {
  override readonly name: string = 'MoveTooEarlyError';
  /** true: the node copies, which may take long. false: it may connect soon, or never. */
  readonly isCopying: boolean;

  constructor(message: string, isCopying: boolean) {
    super(message);
    this.isCopying = isCopying;
  }
}

/** The request was withdrawn in time. Nothing was changed. */
export class MoveWithdrawnError extends MoveRefusedError {
  override readonly name: string = 'MoveWithdrawnError';
}

export interface Moved {
  readonly primary: NodeAddress;
  readonly term: number;
}
