import type { CandidateInfo } from '../base/candidate.ts';
import type { Clock } from '../base/clock.ts';
import { StoreUnavailableError } from '../base/errors.ts';
import type { Backend } from '../core/contest.ts';
import { leaseBackend } from '../mechanisms/lease/backend.ts';
import type { ListedLease } from '../mechanisms/lease/listing.ts';
import type { LeaseStore, Reading, SwapResult, Version } from '../mechanisms/lease/store.ts';
import type { LeaseRecord } from '../record/lease-record.ts';

/** The fate of one operation. Without fields: it is applied and answered at once. */
export interface Fault {
  /** The request reaches the store this much later. */
  readonly requestMs?: number;
  /** The reply reaches the caller this much later. */
  readonly replyMs?: number;
  /** `request`: never applied and never answered. `reply`: applied and never answered. */
  readonly lose?: 'request' | 'reply';
  /** Answered with an error. `before`: and not applied. `after`: although it was applied. */
  readonly fail?: 'before' | 'after';
  /** The request arrives a second time, this much after the first. */
  readonly againAfterMs?: number;
}

/** `silent`: nothing is applied or answered. `refuses`: every operation, or every write, fails. */
export type Outage = 'none' | 'silent' | 'refuses' | 'refuses-writes';

/** The operations of a lease store, by which faults are set. */
export type OperationKind = 'read' | 'swap';

/** An operation that waits until the test lets it go on. */
export interface HeldOperation {
  readonly kind: OperationKind;
  readonly election: string;
  /** The record that a swap would write. */
  readonly next: LeaseRecord | undefined;
  /**
   * The request reaches the store: it is applied, and the caller does not hear of it
   * yet. Once only.
   */
  apply(): void;
  /** The reply reaches the caller. Applies the operation first if that was not done. */
  answer(): void;
  /** The caller gets an error, whatever the outcome of the operation. */
  fail(error?: Error): void;
}

interface Cell {
  record: LeaseRecord | undefined;
  version: number;
  readonly listeners: Set<() => void>;
  readonly waiting: Map<string, CandidateInfo>;
}

/**
 * A lease store in memory. A test can delay, lose, repeat, fail and hold its operations, for each
 * connection by itself.
 *
 * ```ts
 * const clock = new SimulatedClock();
 * const store = new SimulatedLeaseStore({ clock });
 * const [a, b] = [store.connect(), store.connect()];
 * const election = createElection({ name: 'jobs', backend: a.backend, clock });
 * a.next('swap', { lose: 'reply' }); // applied, and a never hears of it
 * ```
 */
export class SimulatedLeaseStore {
  readonly #clock: Clock;
  readonly #cells = new Map<string, Cell>();

  /** @param options.clock the clock that counts delays */
  constructor(options: { readonly clock: Clock }) {
    this.#clock = options.clock;
  }

  /** Another way to the same store, as another process has it. */
  connect(): SimulatedConnection {
    return new SimulatedConnection(
      this.#clock,
      (election) => this.#cell(election),
      () => this.#cells,
    );
  }

  /** The record in the store. */
  record(election: string): LeaseRecord | undefined {
    return this.#cell(election).record;
  }

  /** The version of the record, which grows with every write. */
  version(election: string): number {
    return this.#cell(election).version;
  }

  /** Changes the record by hand. Undefined deletes it. */
  put(election: string, record: LeaseRecord | undefined): void {
    write(this.#cell(election), record);
  }

  #cell(election: string): Cell {
    let cell = this.#cells.get(election);
    if (cell === undefined) {
      cell = { record: undefined, version: 0, listeners: new Set(), waiting: new Map() };
      this.#cells.set(election, cell);
    }
    return cell;
  }
}

/** One process's way to a `SimulatedLeaseStore`, with its own faults. */
export class SimulatedConnection {
  /** For `createElection`. Its guard is the token. */
  readonly backend: Backend<bigint>;
  /** A lasting fault of all operations. Default `none`. */
  outage: Outage = 'none';
  /** Operations that wait for the test, the oldest first. */
  readonly held: readonly HeldOperation[];
  /** How many operations were sent. */
  readonly sent: Record<OperationKind, number> = { read: 0, swap: 0 };
  readonly #clock: Clock;
  readonly #cellOf: (election: string) => Cell;
  readonly #faults: { readonly kind: OperationKind; readonly fault: Fault }[] = [];
  readonly #waiting: HeldOperation[] = [];
  readonly #holding = new Set<OperationKind>();

  /** Use `SimulatedLeaseStore.connect`. */
  constructor(
    clock: Clock,
    cellOf: (election: string) => Cell,
    cells: () => ReadonlyMap<string, Cell>,
  ) {
    this.#clock = clock;
    this.#cellOf = cellOf;
    this.held = this.#waiting;
    this.backend = leaseBackend<bigint>({
      kind: 'simulated',
      description: 'a simulated store',
      openStore: (scope) => this.open(scope.election),
      guard: (_scope, _store, token) => token,
      list: {
        page: async (_after, _wanted, signal) => ({
          elections: await this.#send('read', '', undefined, signal, () => listed(cells())),
          next: undefined,
        }),
      },
    });
  }

  /**
   * Gives the next `times` operations of this kind this fault, unless another fault comes first.
   */
  next(kind: OperationKind, fault: Fault, times: number = 1): void {
    for (let i = 0; i < times; i += 1) this.#faults.push({ kind, fault });
  }

  /** From now on operations of this kind wait in `held`. */
  hold(kind: OperationKind): void {
    this.#holding.add(kind);
  }

  /** Operations of this kind go through again. Those that wait are answered. */
  release(kind: OperationKind): void {
    this.#holding.delete(kind);
    for (const operation of this.#waiting.filter((each) => each.kind === kind)) operation.answer();
  }

  open(election: string): LeaseStore {
    const cell = this.#cellOf(election);
    return {
      read: (signal) =>
        this.#send<Reading>('read', election, undefined, signal, () => ({
          record: cell.record,
          version: cell.version,
        })),
      swap: (expected, next, signal) =>
        this.#send<SwapResult>('swap', election, next, signal, () => swap(cell, expected, next)),
      watch: (onHint) => {
        const listener = () => {
          if (this.outage === 'none') onHint();
        };
        cell.listeners.add(listener);
        return () => cell.listeners.delete(listener);
      },
      async enlist(candidate) {
        cell.waiting.set(candidate.incarnation, candidate);
        return async () => {
          cell.waiting.delete(candidate.incarnation);
        };
      },
      list: async () => [...cell.waiting.values()],
    };
  }

  #send<T>(
    kind: OperationKind,
    election: string,
    next: LeaseRecord | undefined,
    signal: AbortSignal,
    apply: () => T,
  ): Promise<T> {
    this.sent[kind] += 1;
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      if (this.#holding.has(kind)) {
        this.#wait({ kind, election, next }, apply, resolve, reject);
        return;
      }
      const { outage } = this;
      if (outage === 'silent') return;
      if (outage === 'refuses' || (outage === 'refuses-writes' && kind === 'swap')) {
        return reject(new StoreUnavailableError(`the simulated store ${outage}`));
      }
      const fault = this.#takeFault(kind);
      if (fault.lose === 'request') return;
      this.#after(fault.requestMs, () => {
        const refused = fault.fail === 'before';
        const result = refused ? undefined : apply();
        if (fault.againAfterMs !== undefined) this.#after(fault.againAfterMs, apply);
        if (fault.lose === 'reply') return;
        this.#after(fault.replyMs, () => {
          if (fault.fail === undefined) resolve(result as T);
          else reject(new StoreUnavailableError(`the simulated store failed ${fault.fail} it`));
        });
      });
    });
  }

  #takeFault(kind: OperationKind): Fault {
    const index = this.#faults.findIndex((each) => each.kind === kind);
    return index < 0 ? {} : (this.#faults.splice(index, 1)[0]?.fault ?? {});
  }

  #after(ms: number | undefined, run: () => void): void {
    if (ms === undefined) run();
    else this.#clock.setTimer(run, ms);
  }

  #wait<T>(
    what: { kind: OperationKind; election: string; next: LeaseRecord | undefined },
    apply: () => T,
    resolve: (result: T) => void,
    reject: (error: unknown) => void,
  ): void {
    let result: { readonly value: T } | undefined;
    const over = () => {
      const index = this.#waiting.indexOf(operation);
      if (index >= 0) this.#waiting.splice(index, 1);
    };
    const operation: HeldOperation = {
      ...what,
      apply() {
        result ??= { value: apply() };
      },
      answer() {
        result ??= { value: apply() };
        over();
        resolve(result.value);
      },
      fail(error: Error = new StoreUnavailableError('the simulated store failed')) {
        over();
        reject(error);
      },
    };
    this.#waiting.push(operation);
  }
}

function listed(cells: ReadonlyMap<string, Cell>): readonly ListedLease[] {
  return [...cells].flatMap(([name, { record, version, waiting }]) =>
    record === undefined && waiting.size === 0
      ? []
      : { name, waiting: [...waiting.values()], reading: () => ({ record, version }) },
  );
}

function swap(cell: Cell, expected: Version, next: LeaseRecord): SwapResult {
  if (cell.version !== expected) return { outcome: 'conflict' };
  write(cell, next);
  return { outcome: 'ok', version: cell.version };
}

function write(cell: Cell, record: LeaseRecord | undefined): void {
  cell.record = record;
  cell.version += 1;
  for (const listener of [...cell.listeners]) listener();
}
