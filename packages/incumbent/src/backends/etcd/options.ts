import type { Duration } from '../../base/duration.ts';
import type { EtcdAuth } from './calls.ts';

export interface EtcdOptions {
  /**
   * D, the time to live of the lease on which all our places are: whole seconds, default 15 s. Servers
   * raise a short one (to 2 s with the default election timeout of 1 s), and notice its end up to
   * 0.5 s late.
   */
  readonly ttl?: Duration;
  /**
   * What is put before the name of an election, default nothing: `etcdctl elect billing` and the
   * election "billing" are then the same. It is put there as it is: write `/elections/` for
   * `/elections/billing`.
   */
  readonly root?: string;
  /** Where the cluster knows users by their passwords. Certificates belong to the gRPC client. */
  readonly auth?: EtcdAuth;
  /**
   * What happens to a term while no server can be reached. `hold` (default): it is uncertain and goes
   * on until its belief ends. `step-down`: it ends at once.
   */
  readonly onDisconnect?: 'hold' | 'step-down';
  /**
   * `belief` (default): who follows a leader that ended unclean waits until that one's belief is
   * over. `off`: does not wait; then two may believe at once, and only tokens keep them apart.
   */
  readonly predecessorWait?: 'belief' | 'off';
  /** How often a waiting candidate looks whether a notification was lost. Default 30 s. */
  readonly recheck?: Duration;
  /**
   * The servers' `--election-timeout`, which bounds what can be believed beside members that do not
   * wait (`etcdctl elect`, Go programs). Default 1 s, etcd's own.
   */
  readonly electionTimeout?: Duration;
  /** How long every winner waits before it leads, whoever led before. Default 0. */
  readonly delayAfterWin?: Duration;
}

/**
 * What etcd itself checks before a transaction is applied: that the place of this term is still
 * there. A leader that was overtaken, however late it notices, is refused.
 */
export interface EtcdGuard {
  readonly token: bigint;
  /** The key of the place. */
  readonly key: string;
  /** To compare `create` with, `=`. In decimal, as JSON and 64 bits want it. */
  readonly createRevision: string;
  /** The same as an entry of `compare` for the JSON gateway (`POST /v3/kv/txn`). */
  readonly compare: {
    readonly result: 'EQUAL';
    readonly target: 'CREATE';
    /** In base64. */
    readonly key: string;
    readonly create_revision: string;
  };
}
