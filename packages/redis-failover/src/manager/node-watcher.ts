import type { Clock } from '@incumbent/zookeeper';
import { pause, systemClock } from '../clock.ts';
import type { NodeAddress } from '../node-address.ts';
import { NodeCommandError, NodeRefusedError } from '../redis/errors.ts';
import type { NodeAccess, NodeLink, OpenNode } from '../redis/node-connection.ts';
import { NodeConnection } from '../redis/node-connection.ts';
import { Wake } from './wake.ts';

/** What one manager sees of a node. */
export interface NodeSight {
  readonly address: NodeAddress;
  /**
   * `unknown` at first. `available` after one good check. `unavailable` after `maxFailures` bad ones
   * in a row; fewer change nothing.
   */
  readonly state: 'unknown' | 'available' | 'unavailable';
  /** Of a PING, smoothed; of the last good checks. undefined before there was one. */
  readonly latencyMs: number | undefined;
  /** Bad checks in a row, counted up to `maxFailures`. */
  readonly failures: number;
  /**
   * Why the last check was bad. Also how the node refuses us (NodeRefusedError), which is a good one:
   * that a manager has a wrong password is no reason to take a node for dead.
   */
  readonly error: Error | undefined;
}

export interface NodeWatcherOptions extends NodeAccess {
  readonly maxFailures: number;
  /** From the start of one check to the start of the next. */
  readonly checkEveryMs: number;
  /** How long connecting may take, and each answer. */
  readonly timeoutMs: number;
  /** Of its connections, for CLIENT LIST. */
  readonly name: string;
  /** Where the node is reached, if not at its address. */
  readonly reach?: NodeAddress | undefined;
  readonly clock?: Clock;
  /** Default: NodeConnection.open. */
  readonly openNode?: OpenNode;
}

/** How long one blocking call waits. */
const blockMs = 2_000;
/** Nobody writes it: a blocking read of it ends with the connection, or with the role of the node. */
const watchKey = 'incumbent-redis:watch';

/**
 * Watches one node over two connections. On one a PING is sent every `checkEveryMs` with a timer of
 * ours: that finds a node that stands still, whose connections stay open. On the other a read
 * blocks, so that the death of a node is seen at once, and a change of its role too. A blocking read of
 * a stream and not BLPOP, which counts as a write, so that replicas refuse it and a pause of writes
 * holds it up.
 *
 * From the death of a node to `unavailable` it takes `checkEveryMs` × (`maxFailures` - 1); from its
 * freezing up to `checkEveryMs` × `maxFailures` + `timeoutMs`.
 */
export class NodeWatcher {
  readonly #options: NodeWatcherOptions;
  readonly #onChange: (sight: NodeSight) => void;
  readonly #stop: AbortController = new AbortController();
  readonly #clock: Clock;
  readonly #wake: Wake;
  /** The connection for PING. */
  #checking: NodeLink | undefined;
  /** The node ended that connection, and answers over another one: it may be another process. */
  #isAnew = false;
  #isBlocking = false;
  #blockedAtMs = Number.NEGATIVE_INFINITY;
  #sight: NodeSight;
  #toldLatencyMs: number | undefined;

  /**
   * Begins at once.
   * @param onChange told when state, failures or error have changed, when the latency is another
   *   one by half of it and 2 ms at least, and, without any of these, when the node has changed its role
   *   or may have been started again
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

  /** At once; nothing is told after it. Idempotent. */
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
      // One death is one failure, however many connections it has ended.
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

  /** @returns how long the answer took */
  async #ping(): Promise<number> {
    if (this.#checking?.isOpen !== true) {
      this.#isAnew = this.#checking !== undefined;
      this.#checking = await this.#open();
    }
    const sentAtMs = this.#clock.monotonicMs();
    try {
      await this.#checking.command(['PING']);
    } catch (error) {
      // A replica without its primary may refuse everything. It can be promoted all the same.
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

  /** Resolves when the connection is gone; the next check says why. */
  async #block(): Promise<void> {
    this.#isBlocking = true;
    this.#blockedAtMs = this.#clock.monotonicMs();
    try {
      const connection = await this.#open();
      while (connection.isOpen) await this.#blockOnce(connection);
      this.#wake.call();
    } catch {
      // It could not be opened. It is tried again after a good check.
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
    // It will not have such a call, now or ever: the end of the connection is seen without.
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

/** Better and worse alike. */
function isAnother(latencyMs: number, toldMs: number | undefined): boolean {
  return toldMs === undefined || Math.abs(latencyMs - toldMs) > Math.max(2, toldMs / 2);
}
