import type { Head } from './codec.ts';
import type { Lost } from './ledger.ts';
import { Moves } from './moves.ts';
import type { SeenSlot } from './seen-slot.ts';
import type { Seal } from './slot.ts';
import { isLive } from './slot.ts';

/** Higher than every token: any grant may be lost. */
const anyToken: bigint = 2n ** 64n;

/** Grants that a slot was given, and does not show. */
interface LostGrants {
  /** The highest token that the slot was given. */
  readonly below: bigint;
  /** Its holder has found out by then, monotonic. */
  readonly untilMs: number;
}

/** The state of one term of a coordinator. */
export class Spell {
  readonly sinceMs: number;
  /** The slots that were there when the term began. */
  readonly old: number;
  readonly moves: Moves = new Moves();
  slots: number;
  seal: Seal | undefined;
  /** Nothing is granted before then, monotonic. */
  doubtsUntilMs: number = Number.NEGATIVE_INFINITY;
  /** No shard that stands nowhere is granted before then, monotonic. */
  doubtsUnknownUntilMs: number = Number.NEGATIVE_INFINITY;
  tokenFloor: bigint;
  /** The last look that began before all slots had the seal. */
  sealedAtLook: number | undefined;
  /** Shards had owners before this term. */
  sawTokens: boolean | undefined;
  /** So many numbers were given out before this term. */
  readonly numbers: number;
  isListRead = false;
  isListing = false;
  /** The list was told last, monotonic. */
  listedMs: number = Number.NEGATIVE_INFINITY;
  /** The names that the list is to have. Undefined: it has them. */
  wanted: readonly string[] | undefined;
  /** The record of the election is being told of the next tokens. */
  isNoting = false;
  /** By slot: the tokens that are to be given once that record has them. */
  next: ReadonlyMap<number, bigint> = new Map();
  readonly #floors: ReadonlyMap<number, bigint>;
  #lost: Map<number, LostGrants> | undefined;
  readonly #seenLive = new Set<number>();
  #firstLook: number | undefined;

  constructor(head: Head | undefined, sinceMs: number) {
    this.slots = head?.slots ?? 0;
    this.old = this.slots;
    this.sinceMs = sinceMs;
    this.numbers = head?.numbers ?? 0;
    this.#floors = head?.floors ?? new Map();
    this.tokenFloor = head?.top ?? 0n;
  }

  /** The first look of this term. */
  firstLook(present: number): number {
    this.#firstLook ??= present;
    return this.#firstLook;
  }

  /**
   * Compares the slots with the tokens that the coordinators before have noted. A slot that shows a
   * lower one was set back, or its last grant never landed.
   * @param leaseMs within this time a holder finds out
   */
  seeLost(slots: readonly SeenSlot[], nowMs: number, leaseMs: number): void {
    const isNoted = this.#floors.size > 0 || slots.every((slot) => highestOf(slot) === 0n);
    this.#lost ??= new Map(
      slots.flatMap((slot): [number, LostGrants][] => {
        const below = isNoted ? (this.#floors.get(slot.number) ?? 0n) : anyToken;
        if (highestOf(slot) >= below) return [];
        return [[slot.number, { below, untilMs: nowMs + leaseMs }]];
      }),
    );
    for (const [number, { below, untilMs }] of this.#lost) {
      const slot = slots[number - 1];
      const isShown = slot !== undefined && highestOf(slot) >= below;
      // The holder of a slot that cannot be read here may read it, and renew it.
      const isOver = nowMs >= untilMs && slot?.damage === undefined;
      if (isShown || isOver) this.#lost.delete(number);
    }
  }

  /** All slots that can be read are sealed. An owner that shows now came after the grants that are lost. */
  seeLive(slots: readonly SeenSlot[]): void {
    if (this.#lost === undefined || this.#lost.size === 0) return;
    for (const { number, state, damage } of slots) {
      if (damage !== undefined || this.#lost.has(number)) continue;
      for (const entry of state?.entries ?? []) if (isLive(entry)) this.#seenLive.add(entry.shard);
    }
  }

  /** Undefined: no grant is lost. */
  get lost(): Lost | undefined {
    const lost = [...(this.#lost?.values() ?? [])];
    if (lost.length === 0) return undefined;
    const below = lost.reduce((most, each) => (each.below > most ? each.below : most), 0n);
    return { below, but: this.#seenLive };
  }

  /** When no lost grant counts any more, if all slots can be read. Monotonic. */
  get lostUntilMs(): number {
    return Math.max(...[...(this.#lost?.values() ?? [])].map(({ untilMs }) => untilMs));
  }

  /** By slot: the highest token that it was given, or is about to be given. */
  floorsOf(slots: readonly SeenSlot[]): Map<number, bigint> {
    const floors = new Map<number, bigint>();
    for (const slot of slots) {
      let floor = highestOf(slot);
      for (const token of [slot.sent?.state.highest, this.next.get(slot.number)]) {
        if (token !== undefined && token > floor) floor = token;
      }
      const noted = this.#floors.get(slot.number) ?? 0n;
      if (noted > floor && this.#lost?.has(slot.number) !== false) floor = noted;
      if (floor > 0n) floors.set(slot.number, floor);
    }
    return floors;
  }
}

function highestOf({ state }: SeenSlot): bigint {
  return state?.highest ?? 0n;
}
