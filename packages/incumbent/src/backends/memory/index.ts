/** Elections within one process: for tests, and for several workers of one program. */
import type { CandidateInfo } from '../../candidate.ts';
import type { Backend } from '../../contest.ts';
import { leaseBackend } from '../../lease/backend.ts';
import type { LeaseRecord } from '../../lease/record.ts';
import type { LeaseStore, Reading, SwapResult, Version } from '../../lease/store.ts';

/** What a resource in the same process checks: effects of older terms are refused. */
export interface MemoryGuard {
  readonly token: bigint;
  /**
   * True once a newer term has been elected: refuse the effect. Checked without waiting, so an
   * effect that is made in the same tick cannot be overtaken.
   */
  superseded(): boolean;
}

interface Cell {
  record: LeaseRecord | undefined;
  version: number;
  listeners: readonly (() => void)[];
  waiting: readonly CandidateInfo[];
}

/** All elections that share the returned object compete with each other. */
export function memory(): Backend<MemoryGuard> {
  const cells = new Map<string, Cell>();
  const cellOf = (election: string): Cell => {
    let cell = cells.get(election);
    if (cell === undefined) {
      cell = { record: undefined, version: 0, listeners: [], waiting: [] };
      cells.set(election, cell);
    }
    return cell;
  };
  return leaseBackend<MemoryGuard>({
    kind: 'memory',
    description: 'memory of this process',
    openStore: (scope) => new MemoryStore(cellOf(scope.election)),
    guard: (scope, _store, token) => {
      const cell = cellOf(scope.election);
      return { token, superseded: () => (cell.record?.token ?? 0n) > token };
    },
  });
}

class MemoryStore implements LeaseStore {
  readonly #cell: Cell;

  constructor(cell: Cell) {
    this.#cell = cell;
  }

  async read(): Promise<Reading> {
    return { record: this.#cell.record, version: this.#cell.version };
  }

  async swap(expected: Version, next: LeaseRecord): Promise<SwapResult> {
    const cell = this.#cell;
    if (cell.version !== expected) return { outcome: 'conflict' };
    cell.record = next;
    cell.version += 1;
    for (const listener of cell.listeners) listener();
    return { outcome: 'ok', version: cell.version };
  }

  watch(onHint: () => void): () => void {
    const cell = this.#cell;
    // A function of its own each time: the same one may be given twice.
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
