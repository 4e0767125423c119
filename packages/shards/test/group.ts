import { SimulatedClock, SimulatedLeaseStore } from 'incumbent/testing';
import { decodeSlot, encodeSlot } from '../src/codec.ts';
import type { Shards, ShardsOptions, ShardTerm } from '../src/index.ts';
import { createShards } from '../src/index.ts';
import type { SlotState } from '../src/slot.ts';

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

  /** Each shard that two members believe in now. */
  ownedTwice(): readonly number[] {
    const owned = [...this.members.values()].flatMap((shards) => shards.owned());
    return owned.filter((shard, i) => owned.indexOf(shard) !== i);
  }

  /** The number of the slot that a member holds. */
  slotOf(id: string): number {
    const numbers = Array.from({ length: 16 }, (_, i) => i + 1);
    const isOf = (number: number) =>
      this.store.record(`queues/${number}`)?.holding?.candidate.id === id;
    return numbers.find(isOf) ?? 0;
  }

  /** Changes the record of a slot by hand. */
  putSlot(number: number, change: (slot: SlotState) => SlotState): void {
    const name = `queues/${number}`;
    const record = this.store.record(name);
    if (record?.shards === undefined) throw new Error(`there is no ${name}`);
    const slot = decodeSlot(Buffer.from(record.shards, 'base64'), name);
    const shards = Buffer.from(encodeSlot(change(slot))).toString('base64');
    this.store.put(name, { ...record, shards });
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
