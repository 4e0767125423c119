import type { NodeAddress } from '../node-address.ts';
import type { ShortList } from './node-lists.ts';
import type { NodeSight } from './node-watcher.ts';

/** The parts of a move of the primary, in their order. */
export const managerSteps = [
  'revoke',
  'fence',
  'choose',
  'promote',
  'redirect',
  'publish',
] as const;
export type ManagerStep = (typeof managerSteps)[number];

/** Why a primary is moved. */
export type MoveReason =
  /** The managers say that it is down. */
  | 'down'
  /** It was started anew without its data, and others still have them. */
  | 'lost-data'
  /** Somebody asked for it. */
  | 'request'
  /** A manager that ended in the middle of a move left it so. */
  | 'unfinished'
  /** Somebody else made another node the primary, whom the others follow. */
  | 'found'
  /** Somebody else, or a restart, has made it a replica. */
  | 'lost-role'
  /** An operator has said that its data are the ones to keep. */
  | 'keep';

/** What a manager tells: for logs and metrics. Nothing of it is needed to go on. */
export type ManagerEvent =
  | { readonly type: 'started'; readonly id: string; readonly nodes: readonly NodeAddress[] }
  | { readonly type: 'stopped' }
  /** The state of the session: `connected`, `suspended`, `expired`, … */
  | { readonly type: 'zookeeper'; readonly state: string }
  | { readonly type: 'elected'; readonly token: bigint }
  | { readonly type: 'ousted'; readonly token: bigint; readonly reason: string }
  /** What this manager sees of a node has changed. */
  | { readonly type: 'sight'; readonly sight: NodeSight }
  /** What all managers together say of a node has changed. Only the elected one tells this. */
  | {
      readonly type: 'judged';
      readonly node: NodeAddress;
      readonly state: 'available' | 'unavailable';
      readonly availableTo: number;
      readonly unavailableTo: number;
    }
  /** The record names another primary, or another term: told by every manager, also of the first one. */
  | { readonly type: 'primary'; readonly primary: NodeAddress | null; readonly term: number }
  | {
      readonly type: 'step';
      readonly step: ManagerStep;
      readonly node: NodeAddress | null;
      /** Since the move began. */
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
  /** A node was made a replica of the primary. */
  | { readonly type: 'reconciled'; readonly node: NodeAddress; readonly primary: NodeAddress }
  /** A node may have what the primary lacks: it is set aside, with its data, until an operator decides. */
  | {
      readonly type: 'quarantined';
      readonly node: NodeAddress;
      readonly primary: NodeAddress;
      readonly stream: string;
      readonly offset: number;
      /** What the primary lacks, in words. */
      readonly missing: string;
    }
  /** It would not rewrite its configuration: after a restart it may be what it was before. */
  | { readonly type: 'config-not-kept'; readonly node: NodeAddress; readonly error: Error }
  /** Connections of earlier managers were closed on a node. */
  | { readonly type: 'fenced'; readonly node: NodeAddress; readonly connections: number }
  /** Why nothing is done at the moment; told when it begins and when it changes. */
  | { readonly type: 'trouble'; readonly trouble: Trouble }
  | { readonly type: 'recovered' };

export interface Trouble {
  readonly code: TroubleCode;
  readonly message: string;
}

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

export interface NodeStatus extends NodeSight {
  /** What all managers together say; undefined unless this manager is the elected one. */
  readonly judged: 'available' | 'unavailable' | undefined;
}

/** How a manager stands at this moment. */
export interface ManagerStatus {
  readonly id: string;
  readonly state: 'starting' | 'waiting' | 'leading' | 'stopped';
  /** Of the term, while it leads. */
  readonly token: bigint | undefined;
  /** The state of the session with ZooKeeper. */
  readonly zookeeper: string;
  /** As the record says; undefined before it was read. */
  readonly primary: NodeAddress | null | undefined;
  /** Of the primary; undefined before the record was read, or while there is none. */
  readonly term: number | undefined;
  readonly nodes: readonly NodeStatus[];
  /** How many managers report. */
  readonly managers: number;
  readonly requiredManagers: number;
  readonly trouble: Trouble | undefined;
  /** Nodes that are set aside until an operator decides; known to the elected one only. */
  readonly quarantined: readonly NodeAddress[];
  /** Managers that do not watch all the nodes that others watch. */
  readonly shortLists: readonly ShortList[];
  readonly moves: { readonly done: number; readonly failed: number };
}
