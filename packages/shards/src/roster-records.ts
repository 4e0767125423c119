import type { Timing } from 'incumbent';
import type { LeaseStore, Leases, Version } from 'incumbent/backend';
import { emptyLeaseRecord, uniqueId } from 'incumbent/internal';
import { decodePart, encodePart } from './codec.ts';
import type { Roster } from './roster.ts';

/** The store, as far as the names need it. */
interface Records {
  readonly options: { readonly leases: Leases; readonly timing: Timing };
  namesName(part: number): string;
  names(part: number): LeaseStore;
  ask<T>(
    what: string,
    signal: AbortSignal,
    operation: (signal: AbortSignal) => Promise<T>,
  ): Promise<T>;
}

/** The records with the names of shards, `devices/list-0` and on. Only the coordinator writes them. */
export class RosterRecords {
  readonly roster: Roster;
  readonly #records: Records;
  /** By part: the version that was read or written last. */
  readonly #versions = new Map<number, Version>();
  #reading: Promise<void> | undefined;

  constructor(records: Records, roster: Roster) {
    this.#records = records;
    this.roster = roster;
  }

  /** Learns all names. Calls at the same time share one read. @throws the store's error */
  async read(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    await this.#reading;
  }

  async #read(): Promise<void> {
    const { options } = this.#records;
    const { signal } = new AbortController();
    for (let first = 0, isEnd = false; !isEnd; ) {
      // As many as there were, and one more.
      const wanted = Math.max(1, this.#versions.size + 1 - first);
      const stores = Array.from({ length: wanted }, (_, i) => this.#records.names(first + i));
      const readings = await this.#records.ask('reading the list of shards', signal, (stop) =>
        options.leases.readAll(stores, stop),
      );
      for (const [i, reading] of readings.entries()) {
        if (reading instanceof Error) throw reading;
        const { record, version } = reading;
        const index = first + i;
        this.#versions.set(index, version);
        if (record?.shards === undefined) {
          isEnd = true;
          continue;
        }
        const location = `the list "${this.#records.namesName(index)}"`;
        this.roster.learn(index, decodePart(Buffer.from(record.shards, 'base64'), location));
      }
      first += wanted;
    }
  }

  /**
   * Makes the list have these names, after `read`.
   * @param wanted sorted
   * @param numbers so many were given out, as the record of the election says
   * @returns false when another coordinator has written: read, and try again
   * @throws the store's error. Then some of it may have been written
   */
  async write(wanted: readonly string[], numbers: number, signal: AbortSignal): Promise<boolean> {
    const { timing } = this.#records.options;
    for (const [index, part] of this.roster.changes(wanted, numbers)) {
      const name = this.#records.namesName(index);
      const record = {
        ...emptyLeaseRecord(name, uniqueId(), timing.leaseMs),
        shards: Buffer.from(encodePart(part)).toString('base64'),
      };
      const store = this.#records.names(index);
      const expected = this.#versions.get(index);
      const result = await this.#records.ask('writing the list of shards', signal, async (stop) =>
        // A part that `read` has not come to is new.
        store.swap(expected ?? (await store.read(stop)).version, record, stop),
      );
      if (result.outcome === 'conflict') return false;
      this.#versions.set(index, result.version);
      this.roster.learn(index, part);
    }
    return true;
  }
}
