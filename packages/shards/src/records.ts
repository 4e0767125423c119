import { setMaxListeners } from 'node:events';
import type { Clock, Timing } from 'incumbent';
import type { LeaseStore, Leases, Reading, Scope } from 'incumbent/backend';
import { bounded, uniqueId } from 'incumbent/internal';
import type { Head } from './codec.ts';
import { headIn } from './head.ts';

/** The things that reading and writing the records needs. */
export interface RecordsOptions {
  readonly name: string;
  readonly leases: Leases;
  readonly timing: Timing;
  readonly clock: Clock;
  readonly random: () => number;
  readonly makesMissing: boolean;
  readonly onTrouble: (what: string, error: unknown) => void;
  readonly onAnswer: (isAnswered: boolean) => void;
}

/** The records of a set of shards, each opened once. */
export class Records<Options extends RecordsOptions = RecordsOptions> {
  readonly options: Options;
  readonly #stores = new Map<string, LeaseStore>();

  constructor(options: Options) {
    this.options = options;
  }

  slotName(number: number): string {
    return `${this.options.name}/${number}`;
  }

  /** The lease of a slot, with its shards. */
  slot(number: number): LeaseStore {
    return this.#open(this.slotName(number));
  }

  get head(): LeaseStore {
    return this.#open(this.options.name);
  }

  get directory(): LeaseStore {
    return this.#open(`${this.options.name}/directory`);
  }

  /** The names of the shards, for people. Nothing depends on it. */
  get names(): LeaseStore {
    return this.#open(`${this.options.name}/list`);
  }

  scope(election: string): Scope {
    const { clock, timing, random, onTrouble, onAnswer, makesMissing } = this.options;
    return { election, clock, timing, random, uniqueId, onTrouble, onAnswer, makesMissing };
  }

  async readHead(signal: AbortSignal): Promise<Head | undefined> {
    return headIn((await this.readHeadLease(signal)).record, this.options.name);
  }

  /** The record of the coordinator's election. */
  readHeadLease(signal: AbortSignal): Promise<Reading> {
    return this.ask('reading the number of slots', signal, (stop) => this.head.read(stop));
  }

  /** The slots from 1 to `slots`, in this order. */
  readSlots(slots: number, signal: AbortSignal): Promise<readonly (Reading | Error)[]> {
    const stores = Array.from({ length: slots }, (_, i) => this.slot(i + 1));
    return this.ask('reading the slots', signal, (stop) => {
      // A store without a request for many records sends as many, with one signal.
      setMaxListeners(0, stop);
      return this.options.leases.readAll(stores, stop);
    });
  }

  ask<T>(
    what: string,
    signal: AbortSignal,
    operation: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { clock, timing, onAnswer } = this.options;
    return bounded(clock, what, timing.operationTimeoutMs, signal, operation, onAnswer);
  }

  async close(): Promise<void> {
    const stores = [...this.#stores.values()];
    this.#stores.clear();
    const { onTrouble } = this.options;
    await Promise.all(
      stores.map((store) =>
        this.ask('closing the store', new AbortController().signal, async () =>
          store.close?.(),
        ).catch((error: unknown) => onTrouble('closing the store', error)),
      ),
    );
  }

  #open(election: string): LeaseStore {
    let store = this.#stores.get(election);
    if (store === undefined) {
      store = this.options.leases.open(this.scope(election));
      this.#stores.set(election, store);
    }
    return store;
  }
}
