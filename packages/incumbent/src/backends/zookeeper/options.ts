import type { Duration } from '../../base/duration.ts';
import type { NodeAcl } from './client.ts';

/**
 * The program whose names, data and rules the nodes of an election follow.
 *
 * `incumbent`: ours alone (default). The others join elections that other programs hold:
 *
 * - `golea`: Comcast's go-leaderelection (`le_`, `DONE`)
 * - `curator-latch`: Curator's LeaderLatch
 * - `curator-selector`: Curator's LeaderSelector
 * - `kazoo`: kazoo's Election and Lock
 * - `recipe`: the recipe of the ZooKeeper documentation (`<guid>-n_`)
 * - `hadoop`: ActiveStandbyElector
 * - `node`: one ephemeral node of any name, as mooon's CZookeeperHelper makes it
 */
export type ZooKeeperLayout =
  | 'incumbent'
  | 'golea'
  | 'curator-latch'
  | 'curator-selector'
  | 'kazoo'
  | 'recipe'
  | 'hadoop'
  | 'node';

/** The options of `zookeeper`. */
export interface ZooKeeperOptions {
  /** Default `incumbent`. */
  readonly layout?: ZooKeeperLayout;
  /**
   * The node below which elections are: the election "a/b" is the node `<root>/a/b`. In the layout
   * `node` that is the one that a leader makes. Default
   * `/incumbent` for the layout `incumbent`, `/` for the others.
   */
  readonly root?: string;
  /**
   * The access rules of the nodes that we make. `open` (default): everybody may do everything.
   * `creator`: only clients with our own authentication may. Or a list.
   */
  readonly acl?: 'open' | 'creator' | readonly NodeAcl[];
  /**
   * Makes the election's node when it is not there. Default: false for `golea`, true
   * for the others.
   */
  readonly create?: boolean;
  /**
   * The fate of a term while no server can be reached. `hold` (default): it is uncertain, and goes
   * on until its belief ends. `step-down`: it ends at once, as Curator's and GoLea's do.
   */
  readonly onDisconnect?: 'hold' | 'step-down';
  /**
   * `belief` (default): the successor of a leader that ended unclean waits until that leader's
   * belief is over. `off`: it does not wait. Then two may believe at once, and only tokens
   * keep them apart.
   */
  readonly predecessorWait?: 'belief' | 'off';
  /**
   * Layout `incumbent` only. True: a leader that goes in order names the candidate behind it in the transaction that
   * gives its place up, if both have this option. Experimental: a candidate that has no connection at that moment may
   * be named. Then its H is waited out, and hooks run for it. Default false.
   */
  readonly nameSuccessor?: boolean;
  /** How often a waiting candidate looks whether a notification was lost. Default 30 s. */
  readonly recheck?: Duration;
  /**
   * Layouts of other programs only: the servers' `tickTime`. It bounds belief where the next leader
   * does not wait. Default 2 s, ZooKeeper's own.
   */
  readonly tickTime?: Duration;
  /**
   * `hadoop` and `node` only: how often to look at the lock instead of watching it. Default: watch.
   */
  readonly poll?: Duration;
  /** How long every winner waits before it leads, whatever leader was before it. Default 0. */
  readonly delayAfterWin?: Duration;
  /**
   * `hadoop` and `node` only: our bytes in the lock (and the breadcrumb). Default: the
   * candidate's id.
   */
  readonly activeData?: string | Uint8Array;
}

/** A check that ZooKeeper itself makes: `client.transaction().check(guard.path, guard.version)…` */
export interface ZooKeeperGuard {
  /** The token of the term: the czxid of its place. */
  readonly token: bigint;
  /** The node that exists as long as the term's place does. */
  readonly path: string;
  /** The version to check it with. */
  readonly version: number;
}
