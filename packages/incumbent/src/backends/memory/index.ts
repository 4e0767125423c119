/** Elections within one process: for tests, and for several workers of one program. */
import type { CandidateInfo } from '../../candidate.ts';
import type { Backend } from '../../contest.ts';
import { leaseBackend } from '../../lease/backend.ts';
import type { LeaseRecord } from '../../lease/record.ts';
import type { LeaseStore } from '../../lease/store.ts';

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
  readonly listeners: Set<() => void>;
  readonly waiting: Map<string, CandidateInfo>;
}

/** All elections that share the returned object compete with each other. */
export function memory(): Backend<MemoryGuard> {
  const cells = new Map<string, Cell>();
  const cellOf = (election: string): Cell => {
    let cell = cells.get(election);
    if (cell === undefined) {
      cell = { record: undefined, version: 0, listeners: new Set(), waiting: new Map() };
      cells.set(election, cell);
    }
    return cell;
  };
  return leaseBackend<MemoryGuard>({
    kind: 'memory',
    description: 'memory of this process',
    openStore: (scope) => memoryStore(cellOf(scope.election)),
    guard: (scope, _store, token) => {
      const cell = cellOf(scope.election);
      return { token, superseded: () => (cell.record?.token ?? 0n) > token };
    },
  });
}

function memoryStore(cell: Cell): LeaseStore {
  return {
    async read() {
      return { record: cell.record, version: cell.version };
    },
    async swap(expected, next) {
      if (cell.version !== expected) return { outcome: 'conflict' };
      cell.record = next;
      cell.version += 1;
      for (const listener of [...cell.listeners]) listener();
      return { outcome: 'ok', version: cell.version };
    },
    watch(onHint) {
      cell.listeners.add(onHint);
      return () => cell.listeners.delete(onHint);
    },
    async enlist(candidate) {
      cell.waiting.set(candidate.incarnation, candidate);
      return async () => {
        cell.waiting.delete(candidate.incarnation);
      };
    },
    async list() {
      return [...cell.waiting.values()];
    },
  };
}
