/** The owner of each shard, for people and programs that take no part and may only read. */
import type { Backend, Clock, StoppableIterator, TimingOptions, Trouble } from 'incumbent';
import { InvalidOptionError, resolveTiming } from 'incumbent';
import type { Reading } from 'incumbent/backend';
import {
  anyOf,
  checkName,
  checkNames,
  checkSignalOption,
  describeValue,
  Observation,
  stoppable,
  systemClock,
  timingNames,
  Wakeup,
} from 'incumbent/internal';
import { headIn } from './head.ts';
import { readNames } from './kept-names.ts';
import { leasesOf, mostNameBytes } from './options.ts';
import { Records } from './records.ts';
import { SeenSlot } from './seen-slot.ts';
import type { ShardList } from './slot.ts';
import type { ShardsStatus, UnreadableSlot } from './status.ts';
import { statusOf } from './status.ts';

/** Which shards to look at. The durations say how long a request may take, and how often to look. */
export interface ReadShardsOptions extends TimingOptions {
  /** The `name` that was given to `createShards`. */
  readonly name: string;
  readonly backend: Backend;
  /** Called with trouble that no caller waits for, such as a store that does not answer. */
  readonly onTrouble?: (trouble: Trouble) => unknown;
  /** Time source, for tests. Default: the clocks of the machine. */
  readonly clock?: Clock;
}

const known: Readonly<Record<keyof ReadShardsOptions, true>> = {
  ...timingNames,
  name: true,
  backend: true,
  onTrouble: true,
  clock: true,
};

interface SignalOption {
  readonly signal?: AbortSignal;
}

/**
 * The names of all shards in a store, sorted: those that were given to `createShards`. Writes nothing.
 * @throws InvalidOptionError for a store that cannot tell; the store's error
 */
export async function listShards(
  backend: Backend,
  { signal }: SignalOption = {},
): Promise<readonly string[]> {
  checkSignalOption('listShards', signal === undefined ? {} : { signal });
  const leases = leasesOf(backend);
  if (leases.shards === undefined) {
    throw new InvalidOptionError(
      `a store of the kind "${backend.kind}" does not list its shards: ask by their name`,
    );
  }
  return [...(await leases.shards(signal ?? new AbortController().signal))].sort();
}

/**
 * Reads which process owns what, by two requests on most stores. It writes nothing, and needs no
 * list of the shards. A process that has died counts as an owner until its lease is over, and where a
 * store tells no ages, until a coordinator has said so.
 * @returns undefined: there are no shards of that name
 * @throws InvalidOptionError, also for the name of an ordinary election; the store's error
 */
export async function readShards(
  options: ReadShardsOptions,
  { signal }: SignalOption = {},
): Promise<ShardsStatus | undefined> {
  checkSignalOption('readShards', signal === undefined ? {} : { signal });
  const reader = new ShardsReader('readShards', options);
  try {
    signal?.throwIfAborted();
    return await reader.look(signal ?? new AbortController().signal);
  } finally {
    await reader.close();
  }
}

/**
 * The present status at once, then every change, as `readShards` gives it. A slow consumer gets the
 * latest one only. Ends when `signal` aborts. While the store cannot be read, `onTrouble` is told.
 * After any trouble the status comes again, also an unchanged one. The iterator never throws.
 * @throws InvalidOptionError
 */
export function observeShards(
  options: ReadShardsOptions,
  { signal }: SignalOption = {},
): StoppableIterator<ShardsStatus | undefined> {
  checkSignalOption('observeShards', signal === undefined ? {} : { signal });
  const reader = new ShardsReader('observeShards', options);
  return stoppable((stop) => reader.observe(signal, stop));
}

/**
 * The records of a set of shards, for a process that takes no part.
 * @throws InvalidOptionError
 */
export function recordsOf(
  call: string,
  options: ReadShardsOptions,
  onTrouble: (what: string, error: unknown) => void = (what, error) => {
    options.onTrouble?.({ what, error });
  },
): Records {
  checkNames(call, options, known);
  const { onTrouble: listener, clock = systemClock, backend, name: given, ...timing } = options;
  const name = checkName('the name of the shards', given, mostNameBytes);
  if (listener !== undefined && typeof listener !== 'function') {
    throw new InvalidOptionError(`onTrouble must be a function, not ${describeValue(listener)}`);
  }
  const leases = leasesOf(backend);
  return new Records({
    ...{ name, leases, clock, onTrouble },
    timing: resolveTiming(timing, backend.limits),
    random: Math.random,
    makesMissing: false,
    onAnswer: () => {},
  });
}

/** Looks at the head and at all slots. It remembers how long each of them has stood. */
class ShardsReader {
  readonly #records: Records;
  readonly #slots = new Map<number, SeenSlot>();
  readonly #head: Observation;
  readonly #tell: (what: string, error: unknown) => void;
  #names: { readonly digest: bigint; readonly found: readonly string[] } | undefined;
  #looks = 0;
  /** Differs when the status of the last look does. */
  #signature = '';
  /** The one that was told last. Undefined: none, or there was trouble since. */
  #told: string | undefined;

  constructor(call: string, options: ReadShardsOptions) {
    const { onTrouble } = options;
    this.#tell = (what, error) => {
      this.#told = undefined;
      onTrouble?.({ what, error });
    };
    this.#records = recordsOf(call, options, this.#tell);
    const { name } = this.#records.options;
    this.#head = new Observation(this.#records.head, this.#records.scope(name));
  }

  async look(signal: AbortSignal): Promise<ShardsStatus | undefined> {
    const { name, clock } = this.#records.options;
    const reading = await this.#records.readHeadLease(signal);
    const { record } = reading;
    const { sinceMs } = this.#head.see(reading);
    const head = headIn(record, name);
    this.#signature = '';
    if (head === undefined) return undefined;
    const slots = Array.from({ length: head.slots }, (_, i) => this.#slot(i + 1));
    const unreadable = await this.#readAll(slots, signal);
    const isLed = clock.monotonicMs() - sinceMs < (record?.leaseMs ?? 0);
    const coordinator = isLed ? record?.holding?.candidate.id : undefined;
    const wallMs = clock.wallMs();
    const drains = (record?.drains ?? []).filter(({ untilUnixMs }) => untilUnixMs > wallMs);
    const names = await this.#namesOf(head.list, signal);
    const told = { name, names, coordinator, drains, unreadable };
    const faults = unreadable.map(({ error }) => error.message);
    const { list, pins } = head;
    this.#signature = textOf([told, faults, list, [...pins], slots.map(signOf)]);
    return statusOf({ ...told, slots, pins, wallMs, list });
  }

  /** They stay as long as the list does, so they are read until they are found. */
  async #namesOf(list: ShardList, signal: AbortSignal): Promise<readonly string[] | undefined> {
    if (list.digest === 0n) return undefined;
    if (this.#names?.digest !== list.digest) {
      const found = await readNames(this.#records, list, signal);
      this.#names = found && { digest: list.digest, found };
    }
    return this.#names?.found;
  }

  async *observe(
    wanted: AbortSignal | undefined,
    stop: AbortSignal,
  ): AsyncGenerator<ShardsStatus | undefined, void, void> {
    const { clock, timing } = this.#records.options;
    const [signal, forget] = anyOf(wanted, stop);
    const wakeup = new Wakeup();
    // It is written after each change of the slots, and tells of all of them.
    const unwatch = this.#watchDirectory(() => wakeup.raise());
    try {
      while (!signal.aborted) {
        wakeup.clear();
        try {
          const status = await this.look(signal);
          if (this.#signature !== this.#told) {
            this.#told = this.#signature;
            yield status;
          }
        } catch (error) {
          if (signal.aborted) return;
          this.#tell('reading the shards', error);
        }
        await wakeup.wait(clock, timing.pollEveryMs, signal).catch(() => {});
      }
    } finally {
      unwatch();
      forget();
      await this.close();
    }
  }

  close(): Promise<void> {
    return this.#records.close();
  }

  #slot(number: number): SeenSlot {
    let slot = this.#slots.get(number);
    if (slot === undefined) {
      const scope = this.#records.scope(this.#records.slotName(number));
      slot = new SeenSlot(number, this.#records.slot(number), scope);
      this.#slots.set(number, slot);
    }
    return slot;
  }

  async #readAll(
    slots: readonly SeenSlot[],
    signal: AbortSignal,
  ): Promise<readonly UnreadableSlot[]> {
    this.#looks += 1;
    const readings = await this.#records.readSlots(slots.length, signal);
    return slots.flatMap((slot, i) => {
      try {
        const reading = readings[i] as Reading | Error;
        if (reading instanceof Error) throw reading;
        slot.learn(reading, this.#looks);
        return [];
      } catch (error) {
        return [{ slot: slot.number, error: error as Error }];
      }
    });
  }

  #watchDirectory(onHint: () => void): () => void {
    try {
      return this.#records.directory.watch?.(onHint) ?? (() => {});
    } catch (error) {
      this.#tell('watching the directory', error);
      return () => {};
    }
  }
}

function signOf(slot: SeenSlot): unknown {
  const { record, state, isOver } = slot;
  if (record?.holding === undefined || isOver) return undefined;
  const { candidate, electedAtUnixMs } = record.holding;
  return [record.token, candidate, electedAtUnixMs, state?.changes, state?.presence];
}

function textOf(value: unknown): string {
  return JSON.stringify(value, (_key, each: unknown) =>
    typeof each === 'bigint' ? each.toString() : each,
  );
}
