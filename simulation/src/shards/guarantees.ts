/** The promises of shards, and the checks that run after every event. */
import type { ShardTerm } from '@incumbent/shards';
import type { LeaseRecord } from 'incumbent/testing';
import type { Coverage } from '../harness/coverage.ts';
import type { World } from '../harness/world.ts';
import type { Library } from './library.ts';
import type { MemberProcess } from './member-process.ts';

export const guarantees = {
  owner: 'At any instant one process at most believes that it owns a shard.',
  effects: 'After an effect of a term of a shard, no older term of that shard has an effect.',
  tokens: 'Each term of a shard has a higher token than all terms of that shard before.',
  standing: 'A shard that had an owner once always stands in the record of some slot.',
  balance:
    'Within a bound after the last fault, each shard has an owner, and each process its share.',
  rest: 'Once the shards are shared evenly, none of them moves.',
  moves: 'When a process joins, no more shards move than must.',
  drain: 'A process that is drained leaves within a bound, and no work of it goes on.',
  settling: 'A process that closes leaves within a bound.',
  timers: 'No timer throws, and none is set for an impossible time.',
  rejections: 'No promise rejects unheard.',
} as const;

/** A term that runs. */
export interface TermEntry {
  readonly process: MemberProcess;
  readonly shard: number;
  readonly term: ShardTerm;
}

export class Guarantees {
  /** By shard. A process that was killed has none. */
  readonly terms: Set<TermEntry> = new Set();
  /** How many terms have begun, by shard. */
  readonly begun: Map<number, number> = new Map();
  readonly #world: World;
  readonly #coverage: Coverage;
  readonly #library: Library;
  readonly #tokens = new Map<number, bigint>();
  readonly #effects = new Map<number, bigint>();
  readonly #standing = new Map<string, ReadonlySet<number>>();
  readonly #owned = new Set<number>();

  readonly #keepsAll: boolean;

  /** @param keepsAll no record is lost, and no shard leaves the list */
  constructor(world: World, coverage: Coverage, library: Library, keepsAll: boolean) {
    this.#keepsAll = keepsAll;
    this.#world = world;
    this.#coverage = coverage;
    this.#library = library;
  }

  check(): void {
    const owners = new Map<number, TermEntry>();
    for (const entry of this.terms) {
      if (!entry.process.alive || !entry.term.isLeading()) continue;
      const other = owners.get(entry.shard);
      if (other !== undefined) {
        this.#world.fail(
          'owner',
          `shard ${entry.shard} is owned by ${other.process.name} (token ${other.term.token}) and by ` +
            `${entry.process.name} (token ${entry.term.token})`,
        );
      }
      owners.set(entry.shard, entry);
    }
  }

  onBegin(entry: TermEntry): void {
    const { shard, term } = entry;
    this.#coverage.count('terms');
    // This process stood still right before: its work finds out as soon as it asks.
    if (!term.isLeading()) {
      this.#coverage.count('works that began too late');
      return;
    }
    const before = this.#tokens.get(shard) ?? 0n;
    if (term.token <= before) {
      this.#world.fail('tokens', `shard ${shard} had token ${before}, and now ${term.token}`);
    }
    this.#tokens.set(shard, term.token);
    this.begun.set(shard, (this.begun.get(shard) ?? 0) + 1);
    this.terms.add(entry);
  }

  /** Right after `assertLeading`, in one turn. */
  onEffect({ shard, term }: TermEntry): void {
    const before = this.#effects.get(shard) ?? 0n;
    if (term.token < before) {
      this.#world.fail('effects', `shard ${shard}: ${term.token} after ${before}`);
    }
    this.#effects.set(shard, term.token);
    this.#coverage.count('effects');
  }

  onCommit(name: string, record: LeaseRecord): void {
    const isSlot = /\/\d+$/.test(name);
    if (!isSlot || record.shards === undefined) return;
    const { entries } = this.#library.decodeSlot(Buffer.from(record.shards, 'base64'), name);
    this.#standing.set(name, new Set(entries.map(({ shard }) => shard)));
    for (const { shard, state } of entries) {
      this.#owned.add(shard);
      this.#coverage.count(`entries: ${state}`);
    }
    if (!this.#keepsAll) return;
    for (const shard of this.#owned) {
      if ([...this.#standing.values()].some((shards) => shards.has(shard))) continue;
      this.#world.fail('standing', `shard ${shard} stands nowhere after a write of ${name}`);
    }
  }
}
