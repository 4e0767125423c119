import type { CampaignOnceOptions, Election, Term } from 'incumbent';
import { createElection, NotElectedError, RecordDamagedError } from 'incumbent';
import { leaseBackend } from 'incumbent/backend';
import { isIncurable, onAbort, sleep } from 'incumbent/internal';
import { decodeSlot } from './codec.ts';
import type { Context } from './context.ts';
import { extendedStore } from './extended-store.ts';
import { ListDiffersError, requireList } from './head.ts';
import { sameList } from './lists.ts';
import type { ShardTerm } from './shard-term.ts';
import type { WorkSettings } from './shard-work.ts';
import { Stay } from './stay.ts';

export interface MemberOptions<Shard> {
  readonly weight: number;
  readonly zone: string;
  readonly settings: WorkSettings<Shard>;
  /** As the campaign for a slot takes them. */
  readonly campaign: Pick<CampaignOnceOptions, 'watchdog' | 'actors' | 'onBelief'>;
  /** After each change of what this process owns, or of its presence. */
  readonly onChange: () => void;
}

/** A slot that is held. */
interface Held<Shard> {
  readonly stay: Stay<Shard>;
  readonly term: Term;
  readonly election: Election<undefined>;
}

/** A process that takes part: it takes a vacant slot, and works for the shards that it is granted. */
export class Member<Shard> {
  readonly #context: Context<Shard>;
  readonly #options: MemberOptions<Shard>;
  #held: Held<Shard> | undefined;
  #isLeaving = false;
  #joining: Promise<Held<Shard> | undefined> = Promise.resolve(undefined);

  constructor(context: Context<Shard>, options: MemberOptions<Shard>) {
    this.#context = context;
    this.#options = options;
  }

  get terms(): readonly ShardTerm<Shard>[] {
    return this.#held?.stay.terms ?? [];
  }

  termOf(number: number): ShardTerm<Shard> | undefined {
    return this.#held?.stay.termOf(number);
  }

  get hasJoined(): boolean {
    return this.#held?.stay.hasJoined === true;
  }

  /** True when this process owns nothing, and the record is known to say so. */
  get hasLeft(): boolean {
    return this.#isLeaving && this.#held?.stay.isEmpty !== false;
  }

  leave(): void {
    this.#isLeaving = true;
    this.#held?.stay.leave();
  }

  /**
   * Holds a slot until `signal` aborts, and another one when it was lost.
   * @throws errors that waiting cannot cure, such as another list of shards
   */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#joining = this.#join(signal);
      const held = await this.#joining;
      if (held === undefined) return;
      if (signal.aborted) {
        // Closed while it won. Nobody would end this stay later.
        await held.election.close();
        return;
      }
      await this.#stayIn(held);
    }
  }

  /** Bounded, whatever the work does: gives the slot back, or leaves it to run out. */
  async close(): Promise<void> {
    // It may be winning a slot just now.
    const joined = await this.#joining.catch(() => undefined);
    await (this.#held ?? joined)?.election.close();
  }

  async #stayIn(held: Held<Shard>): Promise<void> {
    const { stay, term, election } = held;
    this.#held = held;
    stay.begin(term);
    if (this.#isLeaving) stay.leave();
    await new Promise<void>((resolve) => {
      onAbort(term.signal, resolve);
    });
    // A process whose work goes on must not join again: it would be told of the same shards.
    await stay.settled();
    await term[Symbol.asyncDispose]();
    await election.close();
    this.#held = undefined;
    this.#options.onChange();
  }

  /** @returns undefined when `signal` has aborted */
  async #join(signal: AbortSignal): Promise<Held<Shard> | undefined> {
    const { clock, timing, random, onTrouble } = this.#context.options;
    while (!signal.aborted) {
      try {
        const number = await this.#vacantSlot(signal);
        const held = number === undefined ? undefined : await this.#take(number, signal);
        if (held !== undefined) return held;
        // Others have drawn the same one, or the coordinator makes more of them.
        const pauseMs = number === undefined ? timing.retryBackoffMs : 20;
        await sleep(clock, pauseMs * (0.5 + random()), signal);
      } catch (error) {
        if (signal.aborted) return undefined;
        // The candidate for coordinator finds out whether those with the other list are gone.
        if (!(error instanceof ListDiffersError)) {
          if (isIncurable(error)) throw error;
          onTrouble('joining', error);
        }
        await sleep(clock, timing.retryBackoffMs, signal).catch(() => {});
      }
    }
    return undefined;
  }

  /** Drawn at random, so that processes that start together draw different ones. */
  async #vacantSlot(signal: AbortSignal): Promise<number | undefined> {
    const { name, names, random, onTrouble } = this.#context.options;
    const head = await this.#context.readHead(signal);
    if (head === undefined || head.slots === 0) return undefined;
    requireList(name, names.list, head.list);
    const readings = await this.#context.readSlots(head.slots, signal);
    const vacant = readings.flatMap((reading, i) => {
      if (reading instanceof Error) {
        onTrouble('reading a slot', reading);
        return [];
      }
      const { record } = reading;
      if (record?.shards === undefined || record.holding !== undefined) return [];
      try {
        const slot = decodeSlot(
          Buffer.from(record.shards, 'base64'),
          `the slot "${this.#context.slotName(i + 1)}"`,
        );
        return sameList(slot.list, names.list) ? [i + 1] : [];
      } catch (error) {
        // Damaged: the others will do. A newer format concerns all of them.
        if (!(error instanceof RecordDamagedError)) throw error;
        onTrouble('reading a slot', error);
        return [];
      }
    });
    return vacant[Math.floor(random() * vacant.length)];
  }

  /** @returns undefined when another process was faster */
  async #take(number: number, signal: AbortSignal): Promise<Held<Shard> | undefined> {
    const { backend, leases, names, candidate, election: options } = this.#context.options;
    const { weight, zone, settings, campaign, onChange } = this.#options;
    const name = this.#context.slotName(number);
    const stay = new Stay<Shard>({
      slotName: `the slot "${name}"`,
      list: names.list,
      ...{ weight, zone, settings, onChange },
      nameOf: (shard) => names.nameOf(shard),
    });
    const { kind, description, limits } = backend;
    const election = createElection<undefined>({
      ...options,
      ...{ name, candidate },
      backend: leaseBackend<undefined>({
        ...{ kind, description },
        ...(limits === undefined ? {} : { limits }),
        openStore: (scope) => extendedStore(leases.open(scope), stay),
        guard: () => undefined,
      }),
    });
    try {
      const term = await election.campaign({ ...campaign, wait: 0, signal });
      return { stay, term, election };
    } catch (error) {
      await election.close();
      signal.throwIfAborted();
      if (error instanceof NotElectedError) return undefined;
      throw error;
    }
  }
}
