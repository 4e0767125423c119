import type { Context } from './context.ts';
import type { HeadRecord } from './head.ts';
import { checkedNames } from './names.ts';
import type { Situation } from './plan.ts';
import type { SeenSlot } from './seen-slot.ts';
import { isLive } from './slot.ts';
import type { Spell } from './spell.ts';

/** The list of shards, as the coordinator keeps it. Shards with numbers have none. */
export class ListKeeper<Shard> {
  readonly #context: Context<Shard>;
  readonly #head: HeadRecord;
  readonly #wake: () => void;

  /** @param wake there is something to do */
  constructor(context: Context<Shard>, head: HeadRecord, wake: () => void) {
    this.#context = context;
    this.#head = head;
    this.#wake = wake;
  }

  /** Learns the names of the shards, and writes the changes of them. */
  async keep(spell: Spell, signal: AbortSignal): Promise<void> {
    const { roster } = this.#context;
    if (roster === undefined) return;
    const { clock, timing, onTrouble } = this.#context.options;
    const { given } = roster.roster;
    if (!spell.isListRead) {
      await roster.read(signal);
      spell.isListRead = true;
      if (typeof given !== 'function') spell.wanted = given;
    }
    const isDue = clock.monotonicMs() >= spell.listedMs + timing.renewEveryMs;
    if (typeof given === 'function' && isDue && !spell.isListing) {
      spell.isListing = true;
      // It may take long, and nothing else waits for it.
      void Promise.resolve()
        .then(() => given())
        .then((names) => {
          spell.wanted = checkedNames(names);
        })
        .catch((error: unknown) => onTrouble('listing the shards: the list stays as it is', error))
        .finally(() => {
          spell.isListing = false;
          spell.listedMs = clock.monotonicMs();
          this.#wake();
        });
    }
    if (spell.wanted === undefined) return;
    const numbers = Math.max(this.#head.head?.numbers ?? 0, this.#head.noted.numbers);
    try {
      if (await roster.write(spell.wanted, numbers, signal)) {
        spell.wanted = undefined;
        return;
      }
      // A coordinator that was late has written.
      spell.isListRead = false;
      this.#wake();
    } catch (error) {
      signal.throwIfAborted();
      onTrouble('writing the list of shards', error);
    }
  }

  /** The shards that may be granted. */
  shardsOf(
    spell: Spell,
    slots: readonly SeenSlot[],
  ): Pick<Situation, 'shards' | 'isListed' | 'newFrom'> {
    const { names } = this.#context.options;
    const isListed = (shard: number) => names.isListed(shard);
    if (this.#context.roster === undefined) return { shards: names.size, isListed };
    // The next coordinator has to know of the numbers, even if the list is set back.
    const noted = Math.min(names.size, this.#head.noted.numbers);
    // The list was set back. A shard whose name is lost may have got a new number.
    const isLost = slots.some(({ state }) =>
      state?.entries.some((entry) => isLive(entry) && names.nameOf(entry.shard) === undefined),
    );
    return {
      shards: isLost ? Math.min(noted, spell.numbers) : noted,
      isListed,
      newFrom: spell.numbers,
    };
  }
}
