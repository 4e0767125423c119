import type { Term } from 'incumbent';
import { ElectionError, RecordDamagedError, RecordTooNewError } from 'incumbent';
import type { LeaseRecord, Reading } from 'incumbent/backend';
import { drainOf, emptyLeaseRecord, uniqueId, vacated, Wakeup } from 'incumbent/internal';
import { encodeSlot } from './codec.ts';
import type { Context } from './context.ts';
import type { HeadRecord } from './head.ts';
import { isSealed, nextTokenIn, slotsIn } from './ledger.ts';
import { ListKeeper } from './list-keeper.ts';
import { sameList } from './lists.ts';
import { pinnedSlots } from './pins.ts';
import { plan } from './plan.ts';
import { SeenSlot } from './seen-slot.ts';
import { ledgerOf, ownedTwice, sameSealed, unreadableOf } from './seen-slots.ts';
import type { Seal, SlotState } from './slot.ts';
import { isLive, isOutranked, newSlot, ranOut, sameSeal, sealed } from './slot.ts';
import { Spell } from './spell.ts';

/** So many slots are made at first. */
const firstSlots = 16;

/** There are no more processes than that. */
const mostSlots = 4_096;

/** A coordinator that doubts skips so many tokens: a slot that was lost took its highest with it. */
const lostTokens = 1n << 20n;

/** How often it asks whether the process of a slot has died, where the store can prove it. */
const proofEveryMs = 100;

/** The shortest time between two looks that hints ask for. */
const shortestGapMs = 5;

/** The shortest time between two writes of one slot, if its holder does not write sooner. */
const shortestPauseMs = 20;

export interface CoordinatorOptions {
  readonly maxMoving: number;
  /** After each look and write: who owns what may have changed. */
  readonly onChange: (slots: readonly SeenSlot[]) => void;
}

/**
 * Decides which process owns which shard, while its process leads the election of the set. It seals
 * all slots, and then makes the writes that `plan` asks for. Safety needs no more of it than the order
 * of these two: docs/design/shards.md.
 */
export class Coordinator<Shard> {
  readonly #context: Context<Shard>;
  readonly #head: HeadRecord;
  readonly #options: CoordinatorOptions;
  readonly #slots = new Map<number, SeenSlot>();
  readonly #wakeup = new Wakeup();
  readonly #list: ListKeeper<Shard>;
  #look = 0;
  #isLookWanted = true;
  #lookedMs = 0;
  #lookTookMs = 0;

  constructor(context: Context<Shard>, head: HeadRecord, options: CoordinatorOptions) {
    this.#context = context;
    this.#head = head;
    this.#options = options;
    this.#list = new ListKeeper(context, head, () => this.#wakeup.raise());
    head.onRequests = () => this.#wakeup.raise();
  }

  /** Coordinates until the term must stop. Never rejects. */
  async run(term: Term): Promise<void> {
    const { clock, timing, onTrouble } = this.#context.options;
    const spell = new Spell(this.#head.head, clock.monotonicMs());
    const { signal } = term;
    const unwatch = new Map<SeenSlot, () => void>();
    this.#isLookWanted = true;
    this.#lookedMs = Number.NEGATIVE_INFINITY;
    try {
      while (!signal.aborted) {
        let waitMs = timing.retryBackoffMs;
        try {
          if (spell.slots === 0) await this.#makeRoom(spell, firstSlots, term);
          await this.#list.keep(spell, signal);
          const slots = this.#slotsUpTo(spell.slots);
          for (const slot of slots) {
            if (!unwatch.has(slot)) unwatch.set(slot, this.#watch(slot));
          }
          if (this.#isLookWanted && this.#lookInMs <= 0) await this.#lookAt(slots, signal);
          waitMs = await this.#act(spell, slots, term);
        } catch (error) {
          if (signal.aborted) return;
          onTrouble('coordinating', error);
        }
        const lookMs = this.#isLookWanted
          ? this.#lookInMs
          : this.#lookedMs + timing.renewEveryMs - clock.monotonicMs();
        const nextMs = Math.max(1, Math.min(waitMs, lookMs));
        await this.#wakeup.wait(clock, nextMs, signal).catch(() => {});
        if (clock.monotonicMs() >= this.#lookedMs + timing.renewEveryMs) this.#isLookWanted = true;
      }
    } finally {
      for (const end of unwatch.values()) end();
    }
  }

  // --- looking ---

  #slot(number: number): SeenSlot {
    let slot = this.#slots.get(number);
    if (slot === undefined) {
      const scope = this.#context.scope(this.#context.slotName(number));
      slot = new SeenSlot(number, this.#context.slot(number), scope);
      this.#slots.set(number, slot);
    }
    return slot;
  }

  #slotsUpTo(count: number): readonly SeenSlot[] {
    return Array.from({ length: count }, (_, i) => this.#slot(i + 1));
  }

  #watch({ store }: SeenSlot): () => void {
    const { onTrouble } = this.#context.options;
    try {
      const onHint = () => {
        this.#isLookWanted = true;
        this.#wakeup.raise();
      };
      return store.watch?.(onHint) ?? (() => {});
    } catch (error) {
      onTrouble('watching a slot', error);
      return () => {};
    }
  }

  /** A look on a hint waits, so that a busy set costs a bounded number of them. */
  get #lookInMs(): number {
    const { clock, timing } = this.#context.options;
    const gapMs = Math.min(timing.renewEveryMs, Math.max(shortestGapMs, this.#lookTookMs));
    return this.#lookedMs + gapMs - clock.monotonicMs();
  }

  async #lookAt(slots: readonly SeenSlot[], signal: AbortSignal): Promise<void> {
    const { clock, onTrouble } = this.#context.options;
    this.#isLookWanted = false;
    this.#look += 1;
    const look = this.#look;
    const sentMs = clock.monotonicMs();
    this.#lookedMs = sentMs;
    try {
      const readings = await this.#context.readSlots(slots.length, signal);
      for (const [i, reading] of readings.entries()) {
        const slot = slots[i] as SeenSlot;
        try {
          if (reading instanceof Error) throw reading;
          slot.learn(reading, look);
        } catch (error) {
          if (error instanceof RecordTooNewError) this.#spoil(slot, error, look, error);
          else if (error instanceof RecordDamagedError) this.#spoil(slot, error, look, reading);
          else onTrouble('reading a slot', error);
        }
      }
    } finally {
      this.#lookTookMs = clock.monotonicMs() - sentMs;
    }
  }

  /** Only the shards of this slot stop. A record of a newer release is not replaced. */
  #spoil(slot: SeenSlot, error: Error, look: number, reading: Reading | Error): void {
    const { onTrouble } = this.#context.options;
    if (!slot.spoil(error, look, reading instanceof Error ? undefined : reading)) return;
    onTrouble('reading a slot', this.#spoiltBy(slot, error));
  }

  #spoiltBy(slot: SeenSlot, error: Error): Error {
    const { names } = this.#context.options;
    const owned = slot.state?.entries.filter(isLive).map(({ shard }) => names.nameOf(shard));
    const which = owned === undefined ? 'The shards that stand in no other slot' : 'Its shards';
    const list = owned === undefined || owned.length === 0 ? '' : ` (${owned.join(', ')})`;
    const name = this.#context.slotName(slot.number);
    if (error instanceof RecordTooNewError) {
      const why =
        `the slot "${name}" is of a newer release. ${which}${list} stay where they are until a process ` +
        'of that release coordinates: update this one';
      return new ElectionError('RECORD_TOO_NEW', why, { cause: error });
    }
    const why = slot.canReplace
      ? `the slot "${name}" cannot be read, so its process stops. ${which}${list} wait for one ` +
        'lease, and then go to other processes. The record is replaced by then'
      : `the slot "${name}" cannot be read, and its version is not known. ${which}${list} stay ` +
        'where they are: delete the record by hand once its process has stopped';
    return new ElectionError('RECORD_DAMAGED', why, { cause: error });
  }

  // --- acting ---

  /**
   * Sends the writes that are due.
   * @returns when the next ones may be due, in ms
   */
  async #act(spell: Spell, slots: readonly SeenSlot[], term: Term): Promise<number> {
    const { clock, timing } = this.#context.options;
    // A slot that this term has not seen may have any seal, and any entry.
    if (slots.some(({ lookTaken }) => lookTaken < spell.firstLook(this.#look))) {
      this.#isLookWanted = true;
      return timing.retryBackoffMs;
    }
    const known = ledgerOf(slots);
    const counted = slotsIn(known, spell.slots);
    if (counted > spell.slots) {
      await this.#makeRoom(spell, counted, term);
      return 0;
    }
    if (term.signal.aborted) return 0;
    const nowMs = clock.monotonicMs();
    this.#doubt(spell, slots, nowMs);
    spell.seeLost(slots, nowMs, this.#longestMs(slots));
    spell.seal ??= drawSeal(slots, this.#context.options.random());
    const { seal } = spell;
    if (slots.some(({ state }) => state !== undefined && isOutranked(seal, state.seal))) {
      // Another coordinator was faster, or is late. If it is late, the next seal outranks it.
      spell.seal = undefined;
      spell.sealedAtLook = undefined;
      this.#isLookWanted = true;
      return timing.retryBackoffMs * (0.5 + this.#context.options.random());
    }
    // A reading shows that the last write has not landed, and it still may.
    for (const slot of slots) {
      const { sent, lookTaken, lookAtWrite } = slot;
      if (slot.damage !== undefined && !slot.canReplace) continue;
      if (sent !== undefined && lookTaken > lookAtWrite) this.#write(slot, sent.state, sent.record);
    }
    let waitMs = timing.renewEveryMs;
    const due = (ms: number) => {
      waitMs = Math.min(waitMs, Math.max(1, ms));
    };
    this.#seal(spell, slots, seal);
    const readable = slots.filter(({ damage }) => damage === undefined);
    for (const slot of readable) {
      // The end of a write wakes this loop.
      if (!sameSealed(slot, seal) && !slot.isWriting) due(slot.pausedUntilMs - nowMs);
    }
    const unreadable = unreadableOf(slots);
    if (!isSealed(ledgerOf(slots), seal, spell.slots, unreadable)) return waitMs;
    spell.sealedAtLook ??= this.#look;
    spell.seeLive(slots);
    this.#vacate(readable, due);
    this.#repair(spell, slots, seal, due);
    if (this.#lacksRoom(readable)) {
      await this.#makeRoom(spell, Math.min(mostSlots, 2 * spell.slots), term);
      return 0;
    }
    this.#move(spell, slots, seal, term, due);
    this.#options.onChange(slots);
    return waitMs;
  }

  async #makeRoom(spell: Spell, slots: number, term: Term): Promise<void> {
    await this.#head.raise(slots, term);
    // Those between are certainly new, unless another coordinator had made them.
    spell.slots = slots;
    spell.sealedAtLook = undefined;
    this.#isLookWanted = true;
    this.#lookedMs = Number.NEGATIVE_INFINITY;
  }

  #lacksRoom(slots: readonly SeenSlot[]): boolean {
    const vacant = slots.filter(({ record }) => record?.holding === undefined).length;
    return vacant < Math.max(4, slots.length / 4) && slots.length < mostSlots;
  }

  /** Puts the seal and the number of slots into all slots that are there, and then makes the others. */
  #seal(spell: Spell, slots: readonly SeenSlot[], seal: Seal): void {
    let areAllTold = true;
    for (const slot of slots) {
      const { state, record, damage } = slot;
      if (state === undefined || record === undefined || damage !== undefined) continue;
      if (sameSeal(state.seal, seal) && state.slots === spell.slots) continue;
      areAllTold = false;
      this.#write(slot, sealed(state, seal, spell.slots), record);
    }
    if (!areAllTold) return;
    const { names, timing } = this.#context.options;
    for (const slot of slots) {
      if (slot.state !== undefined || slot.damage !== undefined) continue;
      const election = this.#context.slotName(slot.number);
      const empty = emptyLeaseRecord(election, uniqueId(), timing.leaseMs);
      this.#write(slot, newSlot(seal, spell.slots, names.list), slot.record ?? empty);
    }
  }

  #longestMs(slots: readonly SeenSlot[]): number {
    const { timing } = this.#context.options;
    return Math.max(timing.leaseMs, ...slots.map(({ record }) => record?.leaseMs ?? 0));
  }

  /** A loss shows in a slot that is missing or was set back. No shard is granted for one lease after. */
  #doubt(spell: Spell, slots: readonly SeenSlot[], nowMs: number): void {
    const leaseMs = this.#longestMs(slots);
    let highest = 0n;
    let untilMs = Number.NEGATIVE_INFINITY;
    for (const { state, lostAtMs, settlesMs } of slots) {
      if (state !== undefined && state.highest > highest) highest = state.highest;
      untilMs = Math.max(untilMs, lostAtMs + leaseMs);
      if (settlesMs > 0) untilMs = Math.max(untilMs, nowMs + settlesMs);
    }
    if (spell.sawTokens === undefined) spell.sawTokens = highest > 0n;
    const isMissing = slots.some(
      ({ state, damage, number }) =>
        state === undefined && damage === undefined && number <= spell.old,
    );
    if (isMissing && highest > 0n) untilMs = Math.max(untilMs, nowMs + leaseMs);
    // Nothing is granted while it doubts, so one skip is enough for all that was lost meanwhile.
    if (untilMs > nowMs && spell.doubtsUntilMs <= nowMs) {
      spell.tokenFloor = nextTokenIn(ledgerOf(slots), spell.tokenFloor) + lostTokens;
    }
    spell.doubtsUntilMs = Math.max(spell.doubtsUntilMs, untilMs);
    // A shard that was owned once stands somewhere. Its entry may have been lost before this term.
    if (spell.sawTokens) spell.doubtsUnknownUntilMs = spell.sinceMs + leaseMs;
    for (const { store } of slots) {
      const floor = store.tokenFloor ?? 0n;
      if (floor > spell.tokenFloor) spell.tokenFloor = floor;
    }
  }

  #vacate(slots: readonly SeenSlot[], due: (ms: number) => void): void {
    const { clock } = this.#context.options;
    for (const slot of slots) {
      const { record, state, sent } = slot;
      if (record?.holding === undefined || state === undefined || sent !== undefined) continue;
      const overMs = Math.max(record.leaseMs - slot.silentMs, slot.settlesMs);
      if (!slot.isWriting) due(slot.canProve ? proofEveryMs : overMs);
      if (!slot.isOver) continue;
      const next = vacated(record, false, { nonce: uniqueId(), wallMs: clock.wallMs() });
      this.#write(slot, ranOut(state, record.holding.candidate.id), next);
    }
  }

  /**
   * A record that cannot be read is replaced, once its holder cannot believe any more. Only that write
   * proves that its holder has not renewed since.
   */
  #repair(spell: Spell, slots: readonly SeenSlot[], seal: Seal, due: (ms: number) => void): void {
    const { clock, timing, names } = this.#context.options;
    for (const slot of slots) {
      if (slot.damage === undefined || !slot.canReplace || slot.isWriting) continue;
      const leftMs = this.#longestMs(slots) - slot.spoiltMs;
      if (leftMs > 0) {
        due(leftMs);
        continue;
      }
      const election = this.#context.slotName(slot.number);
      const { state, record = emptyLeaseRecord(election, uniqueId(), timing.leaseMs) } = slot;
      const holder = record.holding?.candidate.id;
      const vacant = vacated(record, false, { nonce: uniqueId(), wallMs: clock.wallMs() });
      const left = state !== undefined && holder !== undefined ? ranOut(state, holder) : state;
      const empty = newSlot(seal, spell.slots, names.list);
      this.#write(slot, left === undefined ? empty : sealed(left, seal, spell.slots), vacant);
      due(slot.pausedUntilMs - clock.monotonicMs());
    }
  }

  #move(
    spell: Spell,
    slots: readonly SeenSlot[],
    seal: Seal,
    term: Term,
    due: (ms: number) => void,
  ): void {
    const { clock, timing, names } = this.#context.options;
    const nowMs = clock.monotonicMs();
    // A look from before the last seal may show a shard with its former owner.
    if (
      slots.every(({ lookTaken }) => lookTaken > (spell.sealedAtLook ?? 0)) &&
      ownedTwice(slots)
    ) {
      if (spell.doubtsUntilMs <= nowMs) {
        spell.tokenFloor = nextTokenIn(ledgerOf(slots), spell.tokenFloor) + lostTokens;
      }
      spell.doubtsUntilMs = Math.max(spell.doubtsUntilMs, nowMs + this.#longestMs(slots));
    }
    if (nowMs < spell.doubtsUntilMs) {
      due(spell.doubtsUntilMs - nowMs);
      return;
    }
    const alive = new Set<number>();
    const drained = new Set<number>();
    for (const slot of slots) {
      const { record, state, number } = slot;
      if (record?.holding === undefined || state === undefined) continue;
      if (!state.presence.joined || slot.damage !== undefined) continue;
      // It has read the record of the election before this list took the place of its own.
      if (!sameList(state.list, names.list)) continue;
      if (slot.silentMs < 3 * timing.renewEveryMs) alive.add(number);
      const { id } = record.holding.candidate;
      if (drainOf(this.#head.record, id, clock.wallMs()) !== undefined) drained.add(number);
    }
    const members = slots.filter(
      ({ number, state }) =>
        alive.has(number) && !drained.has(number) && state?.presence.leaving === false,
    );
    const pins = pinnedSlots(this.#head.head?.pins ?? new Map(), members);
    const { moves } = spell;
    const situation = moves.see(slots, alive, drained, nowMs, timing);
    if (situation.dueMs !== undefined) due(situation.dueMs - nowMs);
    if (!situation.mayGrant) return;
    const doubts = nowMs < spell.doubtsUnknownUntilMs;
    if (doubts) due(spell.doubtsUnknownUntilMs - nowMs);
    const { lost } = spell;
    // A slot that cannot be read is waited for after that. Each look tells.
    if (spell.lostUntilMs > nowMs) due(spell.lostUntilMs - nowMs);
    const writes = plan({
      ...{ seal, slots: spell.slots, ledger: ledgerOf(slots) },
      ...this.#list.shardsOf(spell, slots),
      ...{ alive, drained, pins, doubts, tokenFloor: spell.tokenFloor },
      ...(lost !== undefined && { lost }),
      unreadable: unreadableOf(slots),
      maxMoving: this.#options.maxMoving,
      ...situation,
    });
    // `#act` has looked at all seals.
    if (writes === 'outranked') return;
    const next = new Map<number, bigint>();
    for (const [number, state] of writes) {
      const slot = slots[number - 1];
      if (slot?.record === undefined) continue;
      if (slot.pausedUntilMs > nowMs) {
        due(slot.pausedUntilMs - nowMs);
        continue;
      }
      // The next coordinator has to know that the slot has this token, even if the slot is set back.
      if (state.highest > (slot.state?.highest ?? 0n)) {
        if ((this.#head.noted.floors.get(number) ?? 0n) < state.highest) {
          next.set(number, state.highest);
          continue;
        }
      }
      this.#write(slot, state, slot.record);
    }
    this.#note(spell, slots, next, term);
  }

  /** The record of the election says first which tokens the slots are given. Then they are. */
  #note(
    spell: Spell,
    slots: readonly SeenSlot[],
    next: ReadonlyMap<number, bigint>,
    term: Term,
  ): void {
    if (!spell.isNoting) spell.next = next;
    // With the grants that were sent just now: each write of the record counts from here on.
    const { names } = this.#context.options;
    this.#head.note(spell.floorsOf(slots), spell.tokenFloor, names.size);
    const isNoted = next.size === 0 && names.size <= this.#head.noted.numbers;
    if (spell.isNoting || isNoted) return;
    spell.isNoting = true;
    const { onTrouble } = this.#context.options;
    term
      .proclaim({})
      .catch((error: unknown) => {
        if (!term.signal.aborted) onTrouble('noting the next tokens', error);
      })
      .finally(() => {
        spell.isNoting = false;
        this.#wakeup.raise();
      });
  }

  /** One write at a time for each slot, and a pause between two, so that its holder can renew. */
  #write(slot: SeenSlot, state: SlotState, base: LeaseRecord): void {
    const { clock, timing, onTrouble } = this.#context.options;
    const sentMs = clock.monotonicMs();
    if (slot.isWriting || slot.pausedUntilMs > sentMs) return;
    // A write whose outcome is unknown may still land. So the very same one is sent again, and no
    // other, until a reading shows what became of it.
    const { sent = { state, record: withShards(base, state), expected: slot.version } } = slot;
    slot.sent = sent;
    slot.isWriting = true;
    const end = () => {
      const tookMs = clock.monotonicMs() - sentMs;
      slot.isWriting = false;
      slot.lookAtWrite = this.#look;
      const pauseMs = Math.min(timing.retryBackoffMs, Math.max(shortestPauseMs, 4 * tookMs));
      slot.pausedUntilMs = clock.monotonicMs() + pauseMs;
      this.#wakeup.raise();
    };
    const stop = new AbortController().signal;
    this.#context
      .ask('writing a slot', stop, (signal) => slot.store.swap(sent.expected, sent.record, signal))
      .then(
        (result) => {
          end();
          if (result.outcome === 'ok') slot.onWritten(sent, result.version);
          else this.#isLookWanted = true;
        },
        (error: unknown) => {
          end();
          this.#isLookWanted = true;
          onTrouble('writing a slot', error);
        },
      );
  }
}

/** @param draw orders marks with one number, 0 ≤ x < 1 */
function drawSeal(slots: readonly SeenSlot[], draw: number): Seal {
  let highest = 0n;
  for (const { state } of slots) {
    if (state !== undefined && state.seal.number > highest) highest = state.seal.number;
  }
  return { number: highest + 1n, nonce: `${draw.toFixed(6)} ${uniqueId()}` };
}

function withShards(record: LeaseRecord, state: SlotState): LeaseRecord {
  return { ...record, history: [], shards: Buffer.from(encodeSlot(state)).toString('base64') };
}
