import type { CandidateInfo } from '../base/candidate.ts';
import type { CommitResult, Entry, Place, Version } from '../mechanisms/queue/store.ts';
import type { QueueRecord } from '../record/queue-record.ts';

export interface QueuedPlace extends Place {
  readonly session: number;
  readonly guid: string;
  /** Its number in the queue. Gaps are places that have left. */
  readonly number: number;
  readonly candidate: CandidateInfo;
  readonly isOurs: boolean;
}

/** One election as it stood at one moment. */
export interface QueueState {
  readonly places: readonly QueuedPlace[];
  readonly record: QueueRecord | undefined;
  readonly version: number;
  readonly nextNumber: number;
}

const emptyQueue: QueueState = { places: [], record: undefined, version: 0, nextNumber: 0 };

/** The contents of a simulated session store. Every change is atomic and has a number. */
export class SimulatedQueues {
  #states: ReadonlyMap<string, QueueState> = new Map();
  #zxid = 0n;
  readonly #listeners = new Set<() => void>();

  /** All contents as they stand now. Later changes do not affect it. */
  get snapshot(): ReadonlyMap<string, QueueState> {
    return this.#states;
  }

  state(election: string): QueueState {
    return stateIn(this.#states, election);
  }

  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  enter(election: string, session: number, entry: Entry, isOurs = true): QueuedPlace {
    const { guid, candidate } = entry;
    const { places, nextNumber } = this.state(election);
    const found = places.find((each) => each.guid === guid && each.session === session);
    if (found !== undefined) return found;
    const place: QueuedPlace = {
      name: `${guid}-n_${String(nextNumber).padStart(10, '0')}`,
      token: this.#zxid + 1n,
      session,
      guid,
      number: nextNumber,
      candidate,
      isOurs,
    };
    this.#write(election, { places: [...places, place], nextNumber: nextNumber + 1 });
    return place;
  }

  isThere(name: string, token: bigint): boolean {
    for (const { places } of this.#states.values()) {
      if (places.some((place) => place.name === name && place.token === token)) return true;
    }
    return false;
  }

  /** Atomic. All of `present` must be there, and the record must have `version`. */
  change(
    election: string,
    conditions: { readonly present: readonly string[]; readonly version: Version | 'any' },
    next: { readonly record?: QueueRecord | undefined; readonly remove: readonly string[] },
  ): CommitResult {
    const { places, version } = this.state(election);
    const names = new Set(places.map(({ name }) => name));
    if (!conditions.present.every((name) => names.has(name))) return { outcome: 'gone' };
    if (conditions.version !== 'any' && conditions.version !== version) {
      return { outcome: 'conflict' };
    }
    const remove = new Set(next.remove);
    const writes = next.record !== undefined;
    if (writes || next.remove.some((name) => names.has(name))) {
      this.#write(election, {
        places: places.filter(({ name }) => !remove.has(name)),
        ...(writes ? { record: next.record, version: version + 1 } : {}),
      });
    }
    return { outcome: 'ok', version: writes ? version + 1 : version };
  }

  /** Changes the record by hand. Undefined deletes it. */
  put(election: string, record: QueueRecord | undefined): void {
    this.#write(election, { record, version: this.state(election).version + 1 });
  }

  /** Takes away the places for which `goes` is true. */
  sweep(goes: (place: QueuedPlace) => boolean): void {
    for (const [election, { places }] of this.#states) {
      const kept = places.filter((place) => !goes(place));
      if (kept.length < places.length) this.#write(election, { places: kept });
    }
  }

  #write(election: string, change: Partial<QueueState>): void {
    this.#zxid += 1n;
    this.#states = new Map([
      ...this.#states,
      [election, { ...this.state(election), ...change }] as const,
    ]);
    for (const listener of [...this.#listeners]) listener();
  }
}

export function stateIn(states: ReadonlyMap<string, QueueState>, election: string): QueueState {
  return states.get(election) ?? emptyQueue;
}
