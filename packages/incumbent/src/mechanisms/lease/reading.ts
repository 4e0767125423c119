import { bounded, Wakeup } from '../../base/wait.ts';
import type { Scope } from '../../core/contest.ts';
import type { LeaseRecord } from '../../record/lease-record.ts';
import type { LeaseStore, Reading, SwapResult, Version } from './store.ts';

/** One state of the record, and since when its holder's last write has stood as far as we know. */
export interface Sighting {
  readonly record: LeaseRecord | undefined;
  readonly version: Version;
  /**
   * Monotonic. Read *after* the response in which this write was first seen: then the write came
   * before it, and a lease counted from here ends no earlier than its holder's belief (S1). Moved
   * back only by the store's own age of the record, less the bound on its clock's steps, and never
   * to before a look that did not show this write.
   *
   * A write is known by its nonce. What operators write keeps the nonce and moves only the version:
   * it prolongs nobody's belief, so it must not prolong the wait either.
   */
  readonly sinceMs: number;
  /** Of the store's memory, where it has several. */
  readonly life?: string;
  /**
   * Monotonic, of a store with lives: since when this one has been there, counted as `sinceMs` is.
   * Whatever was confirmed and then lost was confirmed before.
   */
  readonly lifeSinceMs?: number;
  /** Monotonic: when it began by the word of the store, for people. */
  readonly lifeBornMs?: number;
}

/** Reads a store within bounds and remembers since when the present version has stood. */
export class Observation {
  readonly #store: LeaseStore;
  readonly #scope: Scope;
  #sighting: Sighting | undefined;
  /** Monotonic: what stands in `#sighting` stood there after this. What is not in it is newer. */
  #stoodAfterMs = Number.NEGATIVE_INFINITY;

  constructor(store: LeaseStore, scope: Scope) {
    this.#store = store;
    this.#scope = scope;
  }

  get sighting(): Sighting | undefined {
    return this.#sighting;
  }

  async read(signal: AbortSignal): Promise<Sighting> {
    const sentAtMs = this.#scope.clock.monotonicMs();
    const sighting = this.see(await readStore(this.#store, this.#scope, signal));
    this.#stoodAfterMs = sentAtMs;
    return sighting;
  }

  /**
   * What has just come from the store, read or with a hint.
   *
   * The store's word for an age counts once, when something is seen first, and no further back than
   * our own clock bears out. So whoever has looked before is not misled by a store whose clock is set
   * forward, however far.
   */
  see(reading: Reading): Sighting {
    const seenAtMs = this.#scope.clock.monotonicMs();
    const { record, version, life, ageMs, lifeAgeMs } = reading;
    const known = this.#sighting?.life === life ? this.#sighting : undefined;
    let sinceMs =
      known !== undefined && isSameWrite(known, reading)
        ? known.sinceMs
        : this.#countedFrom(seenAtMs, ageMs);
    if (life === undefined) {
      this.#sighting = { record, version, sinceMs };
    } else {
      const lifeSinceMs = known?.lifeSinceMs ?? this.#countedFrom(seenAtMs, lifeAgeMs);
      // A record that has come back is old, and yet not the last that its holder has written.
      sinceMs = Math.max(sinceMs, lifeSinceMs);
      const lifeBornMs = lifeAgeMs === undefined ? lifeSinceMs : seenAtMs - Math.max(0, lifeAgeMs);
      this.#sighting = { record, version, sinceMs, life, lifeSinceMs, lifeBornMs };
    }
    return this.#sighting;
  }

  /** Of what is new to us. */
  #countedFrom(seenAtMs: number, ageMs: number | undefined): number {
    const { clockStepMs } = this.#store;
    if (ageMs === undefined || clockStepMs === undefined) return seenAtMs;
    return Math.max(seenAtMs - Math.max(0, ageMs - clockStepMs), this.#stoodAfterMs);
  }

  /** How long the holder's last write has stood. */
  unchangedMs(sighting: Sighting): number {
    return this.#scope.clock.monotonicMs() - sighting.sinceMs;
  }
}

/** Looks at the store by hints: at what they bring, else at what a read shows. */
export class Lookout {
  readonly wakeup: Wakeup = new Wakeup();
  readonly #observation: Observation;
  readonly #unwatch: () => void;
  #told: Reading | undefined;
  #isReading = false;

  constructor(store: LeaseStore, scope: Scope, observation: Observation) {
    this.#observation = observation;
    this.#unwatch = watchStore(store, scope, (reading) => {
      // What comes during a read may be older than what that read shows: it is read again.
      this.#told = this.#isReading ? undefined : reading;
      this.wakeup.raise();
    });
  }

  async look(signal: AbortSignal): Promise<Sighting> {
    this.wakeup.clear();
    const told = this.#told;
    this.#told = undefined;
    if (told !== undefined) return this.#observation.see(told);
    this.#isReading = true;
    try {
      return await this.#observation.read(signal);
    } finally {
      this.#isReading = false;
    }
  }

  end(): void {
    this.#unwatch();
  }
}

function isSameWrite(known: Sighting, reading: Reading): boolean {
  if (known.version === reading.version) return true;
  return known.record !== undefined && known.record.nonce === reading.record?.nonce;
}

/** Hints are a help, not a need: a store that cannot give them is polled. */
export function watchStore(
  store: LeaseStore,
  scope: Scope,
  onHint: (reading?: Reading) => void,
): () => void {
  try {
    return store.watch?.(onHint) ?? (() => {});
  } catch (error) {
    scope.onTrouble('watching the store', error);
    return () => {};
  }
}

/** How often those who wait look at the store unasked. */
export function lookEveryMs(store: LeaseStore, { timing }: Scope): number {
  return store.hintsWork === true
    ? Math.max(timing.leaseMs, timing.pollEveryMs)
    : timing.pollEveryMs;
}

export function readStore(store: LeaseStore, scope: Scope, signal: AbortSignal): Promise<Reading> {
  return bounded(
    scope.clock,
    `reading election "${scope.election}"`,
    scope.timing.operationTimeoutMs,
    signal,
    (operation) => store.read(operation),
    scope.onAnswer,
  );
}

/** A conditional write. */
export interface Swap {
  readonly record: LeaseRecord;
  /** That is to be replaced. */
  readonly version: Version;
}

export function swapStore(
  store: LeaseStore,
  scope: Scope,
  { record, version }: Swap,
  signal: AbortSignal,
): Promise<SwapResult> {
  return bounded(
    scope.clock,
    `writing election "${scope.election}"`,
    scope.timing.operationTimeoutMs,
    signal,
    (operation) => store.swap(version, record, operation),
    scope.onAnswer,
  );
}
