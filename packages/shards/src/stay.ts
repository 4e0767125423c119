import type { Term } from 'incumbent';
import { TermEndedError } from 'incumbent';
import type { LeaseRecord } from 'incumbent/backend';
import { onAbort, uniqueId } from 'incumbent/internal';
import { decodeSlot, encodeSlot } from './codec.ts';
import type { Extended, Extension } from './extended-store.ts';
import type { ShardTerm } from './shard-term.ts';
import type { WorkEvents, WorkSettings } from './shard-work.ts';
import { ShardWork } from './shard-work.ts';
import type { Presence, ShardList, SlotState } from './slot.ts';
import { absent, fenced, givenUp, isLive, leftBehind, presented, ranOut, readied } from './slot.ts';

export interface StayOptions<Shard> {
  readonly slotName: string;
  readonly list: ShardList;
  readonly weight: number;
  readonly zone: string;
  /** Undefined: `onUnknown` is called, and the record is met again. */
  readonly nameOf: (number: number) => Shard | undefined;
  /** A shard was granted whose name this process has not read yet. `wake` when it has. */
  readonly onUnknown: () => void;
  readonly settings: WorkSettings<Shard>;
  /** After each change of what this process owns or of its presence. */
  readonly onChange: () => void;
}

/**
 * One stay of a process in a slot. It is a term of the ordinary lease race, which keeps it confirmed
 * and gives it back. This class adds the shards: it begins work that a confirmed write has shown, and
 * tells the record what was given up, after the belief in it has ended.
 */
export class Stay<Shard> implements Extension<SlotState | undefined> {
  readonly #options: StayOptions<Shard>;
  #presence: Presence;
  #term: Term | undefined;
  /** As the last confirmed write shows it. */
  #confirmed: SlotState | undefined;
  readonly #works = new Map<number, ShardWork<Shard>>();
  /** Shards whose belief is over, with their tokens, until the record is known to say so. */
  readonly #gaveUp = new Map<number, bigint>();
  /** The last token of each shard whose end the record has shown. An entry never comes back from there. */
  readonly #ended = new Map<number, bigint>();
  readonly #fenced = new Map<number, bigint>();
  /** Shards whose work is ready, until the record is known to say so. */
  readonly #ready = new Set<number>();
  /** Writes whose outcome is not known, by their nonces. */
  readonly #sent = new Set<string>();
  readonly #waiters: (() => void)[] = [];
  readonly #events: WorkEvents = {
    onFenced: ({ shard, token, unfenced }) => {
      if (unfenced.length > 0) this.#fenced.set(shard, token);
      this.#options.onChange();
    },
    onReady: ({ shard }) => {
      this.#ready.add(shard);
      this.wake();
    },
    onSettled: ({ shard, token }) => {
      this.#works.delete(shard);
      this.#fenced.delete(shard);
      this.#ready.delete(shard);
      this.#gaveUp.set(shard, token);
      this.wake();
      for (const resolve of this.#waiters.splice(0)) resolve();
      this.#options.onChange();
    },
  };
  #isSettled = false;
  #wasSetBack = false;
  #isWaking = false;

  constructor(options: StayOptions<Shard>) {
    this.#options = options;
    const { weight, zone, settings } = options;
    const { manual } = settings;
    this.#presence = { joined: false, leaving: false, weight, zone, manual };
  }

  // --- for the member ---

  /** The slot is won. From here on its writes say that this process has joined. */
  begin(term: Term): void {
    this.#term = term;
    this.#presence = { ...this.#presence, joined: true };
    onAbort(term.signal, () => {
      const { reason } = term.signal;
      const why = reason instanceof TermEndedError ? reason.reason : 'withdrawn';
      for (const work of this.#works.values()) work.stop(why, reason);
    });
    this.wake();
  }

  /** The coordinator is asked to move all shards away. */
  leave(): void {
    if (this.#presence.leaving) return;
    this.#presence = { ...this.#presence, leaving: true };
    this.wake();
  }

  get hasJoined(): boolean {
    return this.#confirmed?.presence.joined === true;
  }

  /** The record is known to show that this process wants to leave, and owns nothing. */
  get isEmpty(): boolean {
    const { presence, entries } = this.#confirmed ?? {};
    return this.#works.size === 0 && presence?.leaving === true && entries?.some(isLive) === false;
  }

  get terms(): readonly ShardTerm<Shard>[] {
    return [...this.#works.values()];
  }

  termOf(number: number): ShardTerm<Shard> | undefined {
    return this.#works.get(number);
  }

  /** Resolves once no work runs. Called when the stay is over: no work begins any more. */
  async settled(): Promise<void> {
    while (this.#works.size > 0) {
      await new Promise<void>((resolve) => {
        this.#waiters.push(resolve);
      });
    }
    this.#isSettled = true;
  }

  /** Confirms soon: there is something to say, or to find out. */
  wake(): void {
    const term = this.#term;
    if (term === undefined || this.#isWaking || term.signal.aborted) return;
    this.#isWaking = true;
    queueMicrotask(() => {
      this.#isWaking = false;
      // Rejects when the stay ends first. Then the last write says it, or the slot runs out.
      term.proclaim({}).catch(() => {});
    });
  }

  // --- the record ---

  decode(record: LeaseRecord | undefined): SlotState | undefined {
    if (record?.shards === undefined) return undefined;
    return decodeSlot(Buffer.from(record.shards, 'base64'), this.#options.slotName);
  }

  encode(slot: SlotState | undefined): string {
    return Buffer.from(encodeSlot(slot as SlotState)).toString('base64');
  }

  follow({ record, state }: Extended<SlotState | undefined>, next: LeaseRecord): SlotState {
    if (record === undefined || state === undefined) {
      throw new Error(`${this.#options.slotName} is no slot: only a coordinator makes one`);
    }
    const { holding } = record;
    const goesOn = next.holding !== undefined && next.token === record.token;
    if (goesOn) {
      this.#sent.add(next.nonce);
      return this.#changed(state);
    }
    if (holding === undefined) return presented(state, absent, this.#options.list);
    const isOurs = next.token === this.#term?.token && next.holding === undefined;
    // All work has settled, and belief has ended: the term has seen to that.
    if (isOurs && this.#isSettled && !this.#wasSetBack) return leftBehind(state);
    return ranOut(state, holding.candidate.id);
  }

  /** The slot with all that this process has to say, for its next confirmation. */
  #changed(state: SlotState): SlotState {
    if (this.#term === undefined) return state;
    const own = presented(state, this.#presence, this.#options.list);
    return givenUp(readied(fenced(own, this.#fenced), this.#readyTokens()), this.#gaveUp);
  }

  /** Without those that are told to stop: a term must not become ready while its work stops. */
  #readyTokens(): ReadonlyMap<number, bigint> {
    const tokens = new Map<number, bigint>();
    for (const shard of this.#ready) {
      const work = this.#works.get(shard);
      if (work?.signal.aborted === false) tokens.set(shard, work.token);
    }
    return tokens;
  }

  get isLost(): boolean {
    return this.#wasSetBack;
  }

  onReading(): bigint | undefined {
    return this.#confirmed?.changes;
  }

  onRead(
    { record, state }: Extended<SlotState | undefined>,
    mark: unknown,
  ): LeaseRecord | undefined {
    const term = this.#term;
    if (record === undefined || term === undefined || record.token !== term.token) return record;
    // Rises with every change. So the record is older than one that this process has confirmed: an
    // entry may have come back, and another process may own the shard by now.
    if (typeof mark === 'bigint' && (state === undefined || state.changes < mark)) {
      this.#wasSetBack = true;
    }
    if (this.#wasSetBack) return { ...record, nonce: uniqueId() };
    // A write without an answer has landed. Only the next one tells which grants stand beside it.
    if (this.#sent.has(record.nonce)) this.wake();
    return record;
  }

  onWritten({ record, state }: Extended<SlotState | undefined>): void {
    if (record !== undefined) this.#sent.delete(record.nonce);
    const term = this.#term;
    const isOurs = record?.holding !== undefined && record.token === term?.token;
    if (!isOurs || state === undefined) return;
    // Written over a record that was set back. A late answer does not come this far.
    if (state.changes < (this.#confirmed?.changes ?? 0n)) {
      this.#loseSlot();
      return;
    }
    this.#sent.clear();
    this.#confirmed = state;
    this.#meet(term as Term, state);
    this.#options.onChange();
  }

  /** The record was set back. This stay ends with its next confirmation, and is left to run out. */
  #loseSlot(): void {
    this.#wasSetBack = true;
    this.wake();
  }

  /** Begins, stops and forgets work, as the confirmed record says. */
  #meet(term: Term, { entries }: SlotState): void {
    const live = new Map(entries.filter(isLive).map((entry) => [entry.shard, entry]));
    for (const [shard, token] of this.#gaveUp) {
      if (live.get(shard)?.token === token) continue;
      this.#gaveUp.delete(shard);
      this.#ended.set(shard, token);
    }
    for (const [shard, token] of this.#fenced) {
      if (live.get(shard)?.token !== token) this.#fenced.delete(shard);
    }
    for (const [shard, work] of this.#works) {
      if (live.get(shard)?.token === work.token) continue;
      // No coordinator takes an entry away from a stay that lasts.
      this.#loseSlot();
      work.stop('superseded');
    }
    for (const [shard, entry] of live) {
      if (entry.token <= (this.#ended.get(shard) ?? -1n)) {
        // It was set back, and has changed since: another process may own the shard by now.
        this.#loseSlot();
        continue;
      }
      const work = this.#works.get(shard);
      if (work !== undefined) {
        if (entry.ready === true && this.#ready.delete(shard)) work.onShownReady();
        if (entry.state === 'asked') work.stop('handed-over');
        continue;
      }
      if (this.#gaveUp.get(shard) === entry.token) continue;
      const isAsked = entry.state === 'asked';
      if (isAsked || this.#presence.leaving || !term.isLeading() || term.signal.aborted) {
        this.#gaveUp.set(shard, entry.token);
        this.wake();
        continue;
      }
      const name = this.#options.nameOf(shard);
      if (name === undefined) {
        this.#options.onUnknown();
        continue;
      }
      const begun = new ShardWork<Shard>(name, entry, term, this.#options.settings);
      this.#works.set(shard, begun);
      void begun.run(entry, this.#events);
    }
  }
}
