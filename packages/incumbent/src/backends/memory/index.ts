/** Elections within one process: for tests, and for several workers of one program. */
import type { Backend } from '../../core/contest.ts';
import { leaseBackend } from '../../mechanisms/lease/backend.ts';
import type { MemoryCell } from './store.ts';
import { emptyCell, MemoryStore } from './store.ts';

/** A check for a resource in the same process: effects of older terms are refused. */
export interface MemoryGuard {
  /** The token of the term. */
  readonly token: bigint;
  /**
   * True once a newer term has been elected: refuse the effect then. It answers at once. So an
   * effect in the same tick cannot be overtaken.
   */
  superseded(): boolean;
}

/**
 * A backend that holds elections in the memory of this process. All elections on the same backend
 * object compete with each other.
 */
export function memory(): Backend<MemoryGuard> {
  const cells = new Map<string, MemoryCell>();
  const cellOf = (election: string): MemoryCell => {
    let cell = cells.get(election);
    if (cell === undefined) {
      cell = emptyCell();
      cells.set(election, cell);
    }
    return cell;
  };
  return leaseBackend<MemoryGuard>({
    kind: 'memory',
    description: 'memory of this process',
    openStore: (scope) => new MemoryStore(cellOf(scope.election)),
    list: {
      async page() {
        const elections = [...cells].flatMap(([name, { record, version, waiting }]) =>
          record === undefined && waiting.length === 0
            ? []
            : { name, waiting, reading: () => ({ record, version }) },
        );
        return { elections, next: undefined };
      },
    },
    guard: (scope, _store, token) => {
      const cell = cellOf(scope.election);
      return { token, superseded: () => (cell.record?.token ?? 0n) > token };
    },
  });
}
