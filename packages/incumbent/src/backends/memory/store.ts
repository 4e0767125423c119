import type { CandidateInfo } from '../../base/candidate.ts';
import type { LeaseStore, Reading, SwapResult, Version } from '../../mechanisms/lease/store.ts';
import type { LeaseRecord } from '../../record/lease-record.ts';

/** The state of one election. */
export interface MemoryCell {
  record: LeaseRecord | undefined;
  version: number;
  listeners: readonly (() => void)[];
  waiting: readonly CandidateInfo[];
}

export function emptyCell(): MemoryCell {
  return { record: undefined, version: 0, listeners: [], waiting: [] };
}

/** One handle on the election in a cell. */
export class MemoryStore implements LeaseStore {
  readonly #cell: MemoryCell;

  constructor(cell: MemoryCell) {
    this.#cell = cell;
  }

  async read(signal: AbortSignal): Promise<Reading> {
    signal.throwIfAborted();
    return { record: this.#cell.record, version: this.#cell.version };
  }

  async swap(expected: Version, next: LeaseRecord, signal: AbortSignal): Promise<SwapResult> {
    signal.throwIfAborted();
    const cell = this.#cell;
    if (cell.version !== expected) return { outcome: 'conflict' };
    cell.record = next;
    cell.version += 1;
    for (const listener of cell.listeners) listener();
    return { outcome: 'ok', version: cell.version };
  }

  watch(onHint: () => void): () => void {
    const cell = this.#cell;
    // A new function each time: the same listener may be given twice.
    const listener = () => onHint();
    cell.listeners = [...cell.listeners, listener];
    return () => {
      cell.listeners = cell.listeners.filter((other) => other !== listener);
    };
  }

  async enlist(candidate: CandidateInfo): Promise<() => Promise<void>> {
    const cell = this.#cell;
    cell.waiting = [...cell.waiting, candidate];
    return async () => {
      cell.waiting = cell.waiting.filter((other) => other !== candidate);
    };
  }

  async list(): Promise<readonly CandidateInfo[]> {
    return this.#cell.waiting;
  }
}
