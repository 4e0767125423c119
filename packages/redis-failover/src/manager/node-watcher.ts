import type { Clock } from '@incumbent/zookeeper';
import { pause, systemClock } from '../clock.ts';
import type { NodeAddress } from '../node-address.ts';
import { NodeCommandError, NodeRefusedError } from '../redis/errors.ts';
import type { NodeAccess, NodeLink, OpenNode } from '../redis/node-connection.ts';
import { NodeConnection } from '../redis/node-connection.ts';
import { Wake } from './wake.ts';

/** A node as one manager sees it. */
export interface NodeSight {
  readonly address: NodeAddress;
  /**
   * `unknown` before the first result. `available` after one good check. `unavailable` after
   * `maxFailures` bad checks in a row; fewer change nothing.
   */
  readonly state: 'unknown' | 'available' | 'unavailable';
  /** The smoothed round trip of a PING in ms, over good checks. undefined before the first one. */
  readonly latencyMs: number | undefined;
  /** Bad checks in a row, at most `maxFailures`. */
  readonly failures: number;
  /**
   * Why the last check was bad. A NodeRefusedError belongs to a good check: a manager's wrong
   * password is no reason to count a node as down.
   */
  readonly error: Error | undefined;
}

export interface NodeWatcherOptions extends NodeAccess {
  readonly maxFailures: number;
  /** From the start of one check to the start of the next, in ms. */
  readonly checkEveryMs: number;
  /** How long connecting may take, and each answer, in ms. */
  readonly timeoutMs: number;
  /** The name of its connections in CLIENT LIST. */
  readonly name: string;
  /** The address at which the node is reached, if it is another one. */
  readonly reach?: NodeAddress | undefined;
  readonly clock?: Clock;
  /** Default: NodeConnection.open. */
  readonly openNode?: OpenNode;
}

/** How long one blocking call waits. */
const blockMs = 2_000;
/**
 * No client writes this key. So a blocking read of it ends only with the connection, or when the
 * node changes its role.
 */
const watchKey = 'incumbent-redis:watch';

/**
 * Watches one node over two connections. On one it sends a PING every `checkEveryMs`, with a timer
 * of its own. That finds a node that is frozen, whose connections stay open. On the other a read
 * blocks, so that the watcher learns at once that the node died or changed its role. It reads a
 * stream: BLPOP counts as a write, so replicas refuse it, and a pause of writes would hold it up.
 *
 * From a node's death to `unavailable` it takes `checkEveryMs` × (`maxFailures` - 1). From its
 * freezing it takes up to `checkEveryMs` × `maxFailures` + `timeoutMs`.
 */
export class NodeWatcher {
  readonly #options: NodeWatcherOptions;
  readonly #onChange: (sight: NodeSight) => void;
  readonly #stop: AbortController = new AbortController();
  readonly #clock: Clock;
  readonly #wake: Wake;
  /** The connection for PING. */
  #checking: NodeLink | undefined;
  /**
   * Whether the node ended that connection and answers over another one: it may be another process.
   */
  #isAnew = false;
  #isBlocking = false;
  #blockedAtMs = Number.NEGATIVE_INFINITY;
  #sight: NodeSight;
  #toldLatencyMs: number | undefined;

  /**
   * Begins at once.
   * @param onChange called when state, failures or error have changed, or the latency by more than
   *   half of it and more than 2 ms. Also called, with none of these changed, when the node has
   *   changed its role or may have been started again
   */
  constructor(
    address: NodeAddress,
    options: NodeWatcherOptions,
    onChange: (sight: NodeSight) => void,
  ) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#wake = new Wake(this.#clock);
    this.#onChange = onChange;
    this.#sight = {
      address,
      state: 'unknown',
      latencyMs: undefined,
      failures: 0,
      error: undefined,
    };
    void this.#watch();
  }

  get sight(): NodeSight {
    return this.#sight;
  }

  /** Ends it at once; `onChange` is not called afterwards. Idempotent. */
  close(): void {
    this.#stop.abort(new Error('the watcher was closed'));
    this.#checking?.close();
  }

  async #watch(): Promise<void> {
    const { signal } = this.#stop;
    const { checkEveryMs } = this.#options;
    while (!signal.aborted) {
      const startedAtMs = this.#clock.monotonicMs();
      await this.#check();
      const restMs = Math.max(0, startedAtMs + checkEveryMs - this.#clock.monotonicMs());
      // A dying node may end several connections. Its death counts as one failure.
      if (this.#sight.failures === 0) await this.#wake.wait(restMs, signal);
      else await pause(this.#clock, restMs, signal);
    }
  }

  async #check(): Promise<void> {
    const { signal } = this.#stop;
    const startedAtMs = this.#clock.monotonicMs();
    try {
      const latencyMs = await this.#ping();
      if (!signal.aborted) this.#answered(latencyMs, undefined);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof NodeRefusedError)
        this.#answered(this.#clock.monotonicMs() - startedAtMs, error);
      else this.#failed(error as Error);
    }
  }

  /** @returns how long the answer took, in ms */
  async #ping(): Promise<number> {
    if (this.#checking?.isOpen !== true) {
      this.#isAnew = this.#checking !== undefined;
      this.#checking = await this.#open();
    }
    const sentAtMs = this.#clock.monotonicMs();
    try {
      await this.#checking.command(['PING']);
    } catch (error) {
      // A replica without its primary may refuse every command. It can be promoted all the same.
      if (!(error instanceof NodeCommandError) || !error.reply.startsWith('MASTERDOWN'))
        throw error;
    }
    return this.#clock.monotonicMs() - sentAtMs;
  }

  #answered(latencyMs: number, refusal: NodeRefusedError | undefined): void {
    const last = this.#sight;
    const smooth =
      last.latencyMs === undefined ? latencyMs : last.latencyMs + (latencyMs - last.latencyMs) / 8;
    const hasMoved = isAnother(smooth, this.#toldLatencyMs);
    this.#sight = {
      ...last,
      state: 'available',
      latencyMs: smooth,
      failures: 0,
      error: refusal,
    };
    const isNews =
      last.state !== 'available' || last.failures > 0 || last.error?.message !== refusal?.message;
    if (isNews || hasMoved || this.#isAnew) this.#tell();
    this.#isAnew = false;
    if (refusal !== undefined) return;
    const { checkEveryMs } = this.#options;
    if (!this.#isBlocking && this.#clock.monotonicMs() - this.#blockedAtMs >= checkEveryMs) {
      void this.#block();
    }
  }

  #failed(error: Error): void {
    const last = this.#sight;
    const { maxFailures } = this.#options;
    const failures = Math.min(last.failures + 1, maxFailures);
    const state = failures >= maxFailures ? 'unavailable' : last.state;
    this.#sight = { ...last, state, failures, error };
    const isNews = failures !== last.failures || error.message !== last.error?.message;
    if (isNews) this.#tell();
  }

  #tell(): void {
    this.#toldLatencyMs = this.#sight.latencyMs;
    this.#onChange(this.#sight);
  }

  /** Resolves when the connection is gone. The next check finds out why. */
  async #block(): Promise<void> {
    this.#isBlocking = true;
    this.#blockedAtMs = this.#clock.monotonicMs();
    try {
      const connection = await this.#open();
      while (connection.isOpen) await this.#blockOnce(connection);
      this.#wake.call();
    } catch {
      // The connection could not be opened. The next good check tries again.
    } finally {
      this.#isBlocking = false;
    }
  }

  async #blockOnce(connection: NodeLink): Promise<void> {
    const { timeoutMs, checkEveryMs } = this.#options;
    const sentAtMs = this.#clock.monotonicMs();
    try {
      await connection.command(['XREAD', 'BLOCK', `${blockMs}`, 'STREAMS', watchKey, '$'], {
        timeoutMs: blockMs + timeoutMs,
      });
      if (this.#clock.monotonicMs() - sentAtMs >= blockMs / 2) return;
    } catch (error) {
      if (!connection.isOpen) return;
      if (error instanceof NodeCommandError && error.reply.startsWith('UNBLOCKED')) {
        this.#onChange(this.#sight);
        return;
      }
    }
    // The node refuses such a call. The end of the connection is noticed without one.
    const restMs = Math.min(checkEveryMs, blockMs);
    await pause(this.#clock, restMs, connection.closed);
  }

  #open(): Promise<NodeLink> {
    const { username, password, tls, timeoutMs, name, reach } = this.#options;
    const { openNode = NodeConnection.open } = this.#options;
    return openNode(reach ?? this.#sight.address, {
      ...{ username, password, tls, timeoutMs, name },
      signal: this.#stop.signal,
    });
  }
}

/** Whether the latency has become so much better or worse that listeners should know. */
function isAnother(latencyMs: number, toldMs: number | undefined): boolean {
  return toldMs === undefined || Math.abs(latencyMs - toldMs) > Math.max(2, toldMs / 2);
}
