import type { Duration } from '../../base/duration.ts';
import type { EtcdAuth } from './auth.ts';

/** The options of `etcd`. */
export interface EtcdOptions {
  /**
   * D: the time to live of the lease on which all our places are. Whole seconds, default 15 s.
   * Servers raise a short one (to 2 s with the default election timeout of 1 s). They notice its
   * end up to 0.5 s late.
   */
  readonly ttl?: Duration;
  /**
   * Prefix for the name of an election, used as it is. Default none:
   * `etcdctl elect billing` and the election "billing" are then the same. For keys such as
   * `/elections/billing`, write `/elections/`.
   */
  readonly root?: string;
  /**
   * Credentials, where the cluster knows users by their passwords. Certificates belong to
   * the gRPC client.
   */
  readonly auth?: EtcdAuth;
  /**
   * The fate of a term while no server can be reached. `hold` (default): it is uncertain, and goes
   * on until its belief ends. `step-down`: it ends at once.
   */
  readonly onDisconnect?: 'hold' | 'step-down';
  /**
   * `belief` (default): the successor of a leader that ended unclean waits until that leader's
   * belief is over. `off`: it does not wait. Then two may believe at once, and only tokens
   * keep them apart.
   */
  readonly predecessorWait?: 'belief' | 'off';
  /** How often a waiting candidate looks whether a notification was lost. Default 30 s. */
  readonly recheck?: Duration;
  /**
   * The servers' `--election-timeout`. It bounds belief, because some members do not wait for ours
   * (`etcdctl elect`, Go programs). Default 1 s, etcd's own.
   */
  readonly electionTimeout?: Duration;
  /** How long every winner waits before it leads, whatever leader was before it. Default 0. */
  readonly delayAfterWin?: Duration;
}

/**
 * A check that etcd itself makes before it applies a transaction: the place of this term is still
 * there. The write of a leader that was overtaken is refused, however late that leader notices.
 */
export interface EtcdGuard {
  /** The token of the term: the create revision of its place. */
  readonly token: bigint;
  /** The key of the place. */
  readonly key: string;
  /**
   * The value to compare `create` with, by `=`. In decimal, because JSON numbers lose bits of 64.
   */
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
