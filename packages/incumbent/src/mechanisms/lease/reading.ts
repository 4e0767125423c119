import { InvalidOptionError } from '../../base/errors.ts';
import { bounded, Wakeup } from '../../base/wait.ts';
import type { Scope } from '../../core/contest.ts';
import type { LeaseRecord } from '../../record/lease-record.ts';
import type { LeaseStore, Reading, SwapResult, Version } from './store.ts';

/**
 * One state of the record, and the time since which its holder's last write has stood, as far
 * as we know.
 */
export interface Sighting {
  readonly record: LeaseRecord | undefined;
  readonly version: Version;
  /**
   * Monotonic. Read *after* the response in which this write was first seen, so the write came
   * before. A lease that counts from here ends no earlier than its holder's belief (S1). Only the
   * store's own age of the record moves it back, less the bound on its clock's steps. It never goes
   * back to before a look that did not show this write.
   *
   * A write is known by its nonce. An operator's write keeps the nonce and moves only the version.
   * It prolongs no belief, so it must not prolong the wait either.
   */
  readonly sinceMs: number;
  /** The life of the store's memory, where the store has several. */
  readonly life?: string;
  /**
   * Of a store with lives: the time since which this one has been there, monotonic, counted as
   * `sinceMs` is. All that was confirmed and then lost was confirmed before.
   */
  readonly lifeSinceMs?: number;
  /** When that life began, as the store tells it, monotonic. For people. */
  readonly lifeBornMs?: number;
}

/** Reads a store within bounds, and remembers since when the present version has stood. */
export class Observation {
  readonly #store: LeaseStore;
  readonly #scope: Scope;
  #sighting: Sighting | undefined;
  /** Monotonic. The contents of `#sighting` stood there after this. Anything else is newer. */
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
    return withoutShards(sighting, this.#scope);
  }

  /**
   * A reading that has just come from the store, by a read or with a hint.
   *
   * An age that the store tells counts once, when the state is seen first, and no further back than
   * our own clock bears out. So a candidate that has looked before is not misled by a store whose
   * clock is set forward, however far.
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

  /** The instant from which a state that is new to us counts. */
  #countedFrom(seenAtMs: number, ageMs: number | undefined): number {
    const { clockStepMs } = this.#store;
    if (ageMs === undefined || clockStepMs === undefined) return seenAtMs;
    return Math.max(seenAtMs - Math.max(0, ageMs - clockStepMs), this.#stoodAfterMs);
  }

  /** How long the holder's last write has stood, in ms. */
  unchangedMs(sighting: Sighting): number {
    return this.#scope.clock.monotonicMs() - sighting.sinceMs;
  }
}

/** Looks at the store on hints. Uses the reading that a hint brings, or else reads. */
export class Lookout {
  readonly wakeup: Wakeup = new Wakeup();
  readonly #observation: Observation;
  readonly #scope: Scope;
  readonly #unwatch: () => void;
  #told: Reading | undefined;
  #isReading = false;

  constructor(store: LeaseStore, scope: Scope, observation: Observation) {
    this.#observation = observation;
    this.#scope = scope;
    this.#unwatch = watchStore(store, scope, (reading) => {
      // A reading that comes during a read may be older than the result of that read.
      // So read again.
      this.#told = this.#isReading ? undefined : reading;
      this.wakeup.raise();
    });
  }

  async look(signal: AbortSignal): Promise<Sighting> {
    this.wakeup.clear();
    const told = this.#told;
    this.#told = undefined;
    if (told !== undefined) return withoutShards(this.#observation.see(told), this.#scope);
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

/**
 * A term would leave the shards out of the record.
 * @throws InvalidOptionError
 */
function withoutShards(sighting: Sighting, { election }: Scope): Sighting {
  if (sighting.record?.shards === undefined) return sighting;
  throw new InvalidOptionError(
    `the name "${election}" belongs to shards: its record says which shards a process owns; use ` +
      'another name for the election',
  );
}

function isSameWrite(known: Sighting, reading: Reading): boolean {
  if (known.version === reading.version) return true;
  return known.record !== undefined && known.record.nonce === reading.record?.nonce;
}

/** Hints are a help and no need: a store that cannot give them is polled. */
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

/** How often waiting candidates look at the store without a hint, in ms. */
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
  /** The version that is to be replaced. */
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
