// The reports of a watcher on the answers of a node. The node and the clock are played.
import { describe, expect, it, onTestFinished } from 'vitest';
import type { NodeSight } from '../src/manager/node-watcher.ts';
import { NodeWatcher } from '../src/manager/node-watcher.ts';
import { NodeCommandError, NodeUnreachableError } from '../src/redis/errors.ts';
import type { NodeLink } from '../src/redis/node-connection.ts';
import { PlayedClock } from './support/played-clock.ts';
import { replication } from './support/replication.ts';

const checkEveryMs = 1_000;

class Watched {
  readonly clock: PlayedClock = new PlayedClock();
  readonly told: NodeSight[] = [];
  readonly watcher: NodeWatcher;
  latencyMs = 1;
  /** The error that answers every PING; undefined: PONG. */
  error: Error | undefined;
  /** The immediate answer to a blocking call, an error only once; undefined: it blocks. */
  unblocked: 'nothing' | Error | undefined;
  /** When each connection was opened, and which one fails. The first is for PING. */
  readonly opensAtMs: number[] = [];
  failsToOpen: number | undefined;
  readonly pingsAtMs: number[] = [];
  readonly blocksAtMs: number[] = [];
  readonly #fromMs: number = this.clock.nowMs;
  readonly #links = new Set<AbortController>();

  constructor(maxFailures = 3) {
    this.watcher = new NodeWatcher(
      'a:1',
      {
        ...{ maxFailures, checkEveryMs, timeoutMs: 500, name: 'w', clock: this.clock },
        openNode: async () => this.#open(),
      },
      (sight) => this.told.push(sight),
    );
    onTestFinished(() => this.watcher.close());
  }

  /** The reports since the last time. */
  news(): readonly NodeSight[] {
    return this.told.splice(0);
  }

  /** Ends all connections. */
  cut(): void {
    for (const link of this.#links) link.abort();
    this.#links.clear();
  }

  #open(): NodeLink {
    this.opensAtMs.push(this.clock.nowMs - this.#fromMs);
    if (this.opensAtMs.length === this.failsToOpen) {
      throw new NodeUnreachableError('a:1', 'takes no more connections');
    }
    const ending = new AbortController();
    this.#links.add(ending);
    return {
      get isOpen() {
        return !ending.signal.aborted;
      },
      closed: ending.signal,
      replication: async () => replication(),
      command: async ([name]) => {
        if (name === 'XREAD') await this.#block(ending.signal);
        else this.#answer();
        return 'PONG';
      },
      close: () => ending.abort(),
    };
  }

  #answer(): void {
    this.pingsAtMs.push(this.clock.nowMs - this.#fromMs);
    this.clock.nowMs += this.latencyMs;
    if (this.error !== undefined) throw this.error;
  }

  async #block(ends: AbortSignal): Promise<void> {
    this.blocksAtMs.push(this.clock.nowMs - this.#fromMs);
    if (this.unblocked === 'nothing') return;
    const error = this.unblocked;
    this.unblocked = undefined;
    if (error !== undefined) throw error;
    await new Promise<void>((resolve, reject) => {
      const onAbort = () => {
        timer.cancel();
        reject(new NodeUnreachableError('a:1', 'has ended the connection'));
      };
      const timer = this.clock.setTimer(() => {
        ends.removeEventListener('abort', onAbort);
        resolve();
      }, 2_000);
      ends.addEventListener('abort', onAbort);
    });
  }
}

describe('a watcher', () => {
  it('checks once a second, from start to start, and tells the first good check only', async () => {
    const watched = new Watched();
    await watched.clock.pass(3_500);
    expect(watched.pingsAtMs).toEqual([0, 1_000, 2_000, 3_000]);
    expect(watched.news()).toEqual([
      { address: 'a:1', state: 'available', latencyMs: 1, failures: 0, error: undefined },
    ]);
  });

  it('tells each failure up to the last that counts, and after that only other errors', async () => {
    const watched = new Watched();
    await watched.clock.pass(500);
    watched.news();
    watched.error = new Error('it sleeps');
    await watched.clock.pass(5_000);
    const seen = watched.news().map(({ state, failures }) => `${state} ${failures}`);
    expect(seen).toEqual(['available 1', 'available 2', 'unavailable 3']);
    watched.error = new Error('it is gone');
    await watched.clock.pass(2_000);
    expect(watched.news()).toMatchObject([
      { state: 'unavailable', failures: 3, error: watched.error },
    ]);
  });

  it('tells the latency when the smooth one has moved by half, and by 2 ms at least', async () => {
    const watched = new Watched();
    watched.latencyMs = 16;
    await watched.clock.pass(500);
    expect(watched.news()).toMatchObject([{ latencyMs: 16 }]);
    // At first by 1 each time. After ten checks it is 8.6 away.
    watched.latencyMs = 24;
    await watched.clock.pass(30_000);
    expect(watched.news()).toEqual([]);
    expect(watched.watcher.sight.latencyMs).toBeCloseTo(24, 0);
    watched.latencyMs = 32;
    await watched.clock.pass(30_000);
    const [told] = watched.news();
    expect(told?.latencyMs).toBeGreaterThan(24);
    expect(told?.latencyMs).toBeLessThan(26);
  });

  it('takes a replica that refuses all reads for one that is up', async () => {
    const watched = new Watched();
    watched.error = new NodeCommandError('a:1', 'PING', 'MASTERDOWN Link with MASTER is down');
    await watched.clock.pass(500);
    expect(watched.watcher.sight).toMatchObject({ state: 'available', failures: 0 });
  });

  it('checks at once when its connections end, and tells that the node may be another process', async () => {
    const watched = new Watched();
    await watched.clock.pass(1_500);
    watched.news();
    watched.cut();
    await watched.clock.pass(100);
    expect(watched.pingsAtMs).toEqual([0, 1_000, 1_500]);
    expect(watched.news()).toMatchObject([{ state: 'available', failures: 0 }]);
    await watched.clock.pass(3_000);
    expect(watched.news()).toEqual([]);
  });

  it('blocks anew when a blocking call has ended, and not before its next turn if that was at once', async () => {
    const watched = new Watched();
    await watched.clock.pass(5_000);
    expect(watched.blocksAtMs).toEqual([1, 2_001, 4_001]);
    const hurried = new Watched();
    hurried.unblocked = 'nothing';
    await hurried.clock.pass(2_500);
    expect(hurried.blocksAtMs).toEqual([1, 1_001, 2_001]);
  });

  it('tells of a change of the role, which ends a blocking call', async () => {
    const watched = new Watched();
    watched.unblocked = new NodeCommandError('a:1', 'XREAD', 'UNBLOCKED force unblock');
    await watched.clock.pass(500);
    const [first, second, ...others] = watched.news();
    expect(first).toMatchObject({ state: 'available', failures: 0 });
    expect(second).toEqual(first);
    expect(others).toEqual([]);
  });

  it('waits for a turn with a blocking connection that ends at once', async () => {
    const watched = new Watched();
    await watched.clock.pass(500);
    watched.cut();
    await watched.clock.pass(100);
    expect(watched.blocksAtMs).toEqual([1]);
    await watched.clock.pass(1_000);
    expect(watched.blocksAtMs).toEqual([1, 1_501]);
  });

  it('asks for a blocking connection again at the next check, if it could not be opened', async () => {
    const watched = new Watched();
    watched.failsToOpen = 2;
    await watched.clock.pass(2_500);
    expect(watched.opensAtMs).toEqual([0, 1, 1_001]);
    expect(watched.blocksAtMs).toEqual([1_001]);
  });
});
