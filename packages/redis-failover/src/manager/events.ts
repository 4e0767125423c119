import type { NodeAddress } from '../node-address.ts';
import type { ShortList } from './node-lists.ts';
import type { NodeSight } from './node-watcher.ts';

/**
 * The steps of a move of the primary, in their order. `revoke`: the record names no primary.
 * `fence`: the former primary can no longer acknowledge writes. `choose`: the node with the newest
 * data. `promote`: it becomes a primary. `redirect`: the others copy it. `publish`: the record
 * names it.
 */
export const managerSteps = [
  'revoke',
  'fence',
  'choose',
  'promote',
  'redirect',
  'publish',
] as const;
export type ManagerStep = (typeof managerSteps)[number];

/** Why the primary is moved. */
export type MoveReason =
  /** The managers' verdict is that the primary is down. */
  | 'down'
  /** The primary was started anew without all its data, and other nodes still have them. */
  | 'lost-data'
  /** A client or an operator requested it. */
  | 'request'
  /** A manager ended in the middle of a move. Another one finishes it. */
  | 'unfinished'
  /** Somebody else made another node the primary, and its data allow that. */
  | 'found'
  /** The primary has become a replica, by a restart or by somebody else. */
  | 'lost-role'
  /** An operator decided that the data of this node are the ones to keep. */
  | 'keep';

/**
 * An event that a manager reports, for logs and metrics. No event needs an answer. Durations are in
 * ms.
 */
export type ManagerEvent =
  | { readonly type: 'started'; readonly id: string; readonly nodes: readonly NodeAddress[] }
  | { readonly type: 'stopped' }
  /** The state of the session with ZooKeeper: `connected`, `suspended`, `expired`, … */
  | { readonly type: 'zookeeper'; readonly state: string }
  | { readonly type: 'elected'; readonly token: bigint }
  | { readonly type: 'ousted'; readonly token: bigint; readonly reason: string }
  /** This manager's own checks of a node have a new result. */
  | { readonly type: 'sight'; readonly sight: NodeSight }
  /** The managers' common verdict on a node has changed. Only the elected manager reports this. */
  | {
      readonly type: 'judged';
      readonly node: NodeAddress;
      readonly state: 'available' | 'unavailable';
      readonly availableTo: number;
      readonly unavailableTo: number;
    }
  /**
   * The record names another primary or another term. Every manager reports this, also for the
   * first record that it reads.
   */
  | { readonly type: 'primary'; readonly primary: NodeAddress | null; readonly term: number }
  | {
      readonly type: 'step';
      readonly step: ManagerStep;
      readonly node: NodeAddress | null;
      /** Milliseconds since the move began. */
      readonly afterMs: number;
    }
  | {
      readonly type: 'moved';
      readonly from: NodeAddress | null;
      readonly to: NodeAddress;
      readonly term: number;
      readonly reason: MoveReason;
      readonly tookMs: number;
    }
  | { readonly type: 'move-failed'; readonly reason: MoveReason; readonly error: Error }
  /** The elected manager has made a node a replica of the primary. */
  | { readonly type: 'reconciled'; readonly node: NodeAddress; readonly primary: NodeAddress }
  /**
   * A node may have data that the primary lacks. It is set aside with its data until an operator
   * decides.
   */
  | {
      readonly type: 'quarantined';
      readonly node: NodeAddress;
      readonly primary: NodeAddress;
      readonly stream: string;
      readonly offset: number;
      /** The data that the primary lacks, in words. */
      readonly missing: string;
    }
  /** The node refused `CONFIG REWRITE`, so a restart may give it the role that it had before. */
  | { readonly type: 'config-not-kept'; readonly node: NodeAddress; readonly error: Error }
  /** The elected manager has closed connections of earlier managers on a node. */
  | { readonly type: 'fenced'; readonly node: NodeAddress; readonly connections: number }
  /**
   * Why the manager does nothing at the moment. Reported when it begins and when the reason
   * changes.
   */
  | { readonly type: 'trouble'; readonly trouble: Trouble }
  | { readonly type: 'recovered' };

/** Why a manager does nothing at the moment. It has changed nothing, and tries again by itself. */
export interface Trouble {
  readonly code: TroubleCode;
  readonly message: string;
}

/** The kinds of trouble. Messages may change; branch on these. */
export type TroubleCode =
  | 'ZOOKEEPER_AWAY'
  | 'TOO_FEW_MANAGERS'
  | 'RUBY_MANAGERS'
  | 'NO_PRIMARY'
  | 'MULTIPLE_PRIMARIES'
  | 'NO_CANDIDATE'
  | 'NODE_REFUSED'
  | 'LAYOUT'
  | 'FAILED';

/** A node as a manager sees it, with the verdict of all managers. */
export interface NodeStatus extends NodeSight {
  /** The managers' common verdict; undefined unless this manager is the elected one. */
  readonly judged: 'available' | 'unavailable' | undefined;
}

/** The state of a manager at this moment. */
export interface ManagerStatus {
  readonly id: string;
  readonly state: 'starting' | 'waiting' | 'leading' | 'stopped';
  /** The fencing token of its election term, while it leads. */
  readonly token: bigint | undefined;
  /** The state of the session with ZooKeeper. */
  readonly zookeeper: string;
  /** The primary on record; null while it moves; undefined before a record was read. */
  readonly primary: NodeAddress | null | undefined;
  /**
   * The term of the primary on record. While the primary moves it is that of the last primary.
   * undefined before a record was read.
   */
  readonly term: number | undefined;
  readonly nodes: readonly NodeStatus[];
  /** How many managers report. */
  readonly managers: number;
  readonly requiredManagers: number;
  readonly trouble: Trouble | undefined;
  /** Nodes that are set aside until an operator decides. Only the elected manager knows them. */
  readonly quarantined: readonly NodeAddress[];
  /** Managers that do not watch all the nodes that others watch. */
  readonly shortLists: readonly ShortList[];
  readonly moves: { readonly done: number; readonly failed: number };
}
