import { SimulatedClock, SimulatedLeaseStore } from 'incumbent/testing';
import type { Shards, ShardsOptions, ShardTerm } from '../src/index.ts';
import { createShards } from '../src/index.ts';

/** The members of one test, on one simulated store and clock. */
export class Group {
  readonly clock = new SimulatedClock();
  readonly store = new SimulatedLeaseStore({ clock: this.clock });
  readonly members = new Map<string, Shards<number>>();
  readonly troubles: string[] = [];
  /** The terms that began, in order. */
  readonly terms: { readonly id: string; readonly term: ShardTerm<number> }[] = [];

  join(id: string, more: Partial<ShardsOptions<number>> = {}): Shards<number> {
    const shards = createShards({
      name: 'queues',
      backend: this.store.connect().backend,
      shards: 12,
      clock: this.clock,
      random: () => 0.5,
      candidate: { id, addresses: [`${id}:80`] },
      onTrouble: ({ what, error }) => this.troubles.push(`${what}: ${error}`),
      own: async (_shard, term) => {
        this.terms.push({ id, term });
        await untilAborted(term.signal);
      },
      ...more,
    });
    shards.joined.catch(() => {});
    this.members.set(id, shards);
    return shards;
  }

  counts(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.members].map(([id, shards]) => [id, shards.owned().length]));
  }

  async end(): Promise<void> {
    const closed = Promise.all([...this.members.values()].map((shards) => shards.close()));
    await this.clock.advance('5m');
    await closed;
  }
}

export function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
