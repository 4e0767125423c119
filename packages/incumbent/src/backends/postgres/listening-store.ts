import type { CandidateInfo } from '../../base/candidate.ts';
import { anyOf } from '../../base/wait.ts';
import type { Scope } from '../../core/contest.ts';
import type { LeaseStore, Reading } from '../../mechanisms/lease/store.ts';
import { decodeCandidates, encodeCandidate } from '../../record/candidate-entry.ts';
import type { Connection } from './connection.ts';
import { wasOvertaken } from './errors.ts';
import type { CheckedOptions } from './options.ts';
import { PostgresStore } from './store.ts';

/** How often an entry is tried, if others write the row at the same time. */
const mostTries = 3;

/**
 * A candidate that is to be on the list, and the server process of the connection that lists it.
 */
interface Entry {
  readonly candidate: CandidateInfo;
  /** Aborted: the candidate waits no longer, and is not to be written any more. */
  readonly left: AbortSignal;
  pid?: number;
}

/**
 * The store with wake-ups and with the list of waiting candidates. An entry names the
 * connection that listens for its candidate. So it counts until that connection is gone,
 * however its process ends.
 */
export class ListeningPostgresStore extends PostgresStore implements LeaseStore {
  /** The candidates that are to be on the list, each with the connection that lists it. */
  readonly #enlisted = new Map<string, Entry>();
  /** Incarnations that are to be taken off the list. */
  readonly #leaving = new Set<string>();
  #lastTurn: Promise<unknown> = Promise.resolve();
  readonly #watches = new Set<() => void>();
  #leave: (() => void) | undefined;
  #isCatchingUp = false;
  /**
   * Aborted when the store is closed. A pool that was ended forgets calls that wait
   * for a connection.
   */
  readonly #open = new AbortController();

  constructor(connection: Connection, scope: Scope, options: CheckedOptions) {
    super(connection, scope, options);
  }

  /**
   * Without ages, a look once per lease could not tell a dead leader's last renewal from a new one.
   */
  get hintsWork(): boolean {
    return this.clockStepMs !== undefined && this.connection.wakeUps.work;
  }

  watch(onHint: () => void): () => void {
    this.#join();
    const remove = this.connection.wakeUps.add(this.topic, onHint);
    this.#watches.add(remove);
    return () => {
      remove();
      this.#watches.delete(remove);
    };
  }

  override async read(signal: AbortSignal): Promise<Reading> {
    const reading = await super.read(signal);
    void this.#catchUp();
    return reading;
  }

  async enlist(candidate: CandidateInfo, left: AbortSignal): Promise<() => Promise<void>> {
    this.#join();
    const { incarnation } = candidate;
    const entry = { candidate, left };
    this.#enlisted.set(incarnation, entry);
    if (!this.connection.wakeUps.work) await this.#startListening(left);
    // If it fails, the next read tries again.
    await this.#write().catch((error: unknown) => this.#complain(error));
    return async () => {
      // The same incarnation may be on the list again, as a candidate with other addresses.
      if (this.#enlisted.get(incarnation) !== entry) return;
      this.#enlisted.delete(incarnation);
      this.#leaving.add(incarnation);
      await this.#write();
    };
  }

  async list(signal: AbortSignal): Promise<readonly CandidateInfo[]> {
    const rows = await this.ask(this.statements.list, [this.scope.election], signal);
    return decodeCandidates(rows.map(([text]) => text ?? ''));
  }

  /** Ends listening for this election, even if there are still watches. The client stays open. */
  async close(): Promise<void> {
    this.#open.abort();
    for (const remove of this.#watches) remove();
    this.#leave?.();
    this.#leave = undefined;
  }

  /**
   * Listens from the first use until the store is closed, so that nothing is missed between a
   * campaign and its term.
   */
  #join(): void {
    if (this.#leave !== undefined || this.#open.signal.aborted) return;
    const { wakeUps } = this.connection;
    const forget = wakeUps.tell(this.scope.onTrouble);
    // Raised also when it listens again, by another connection. The old entries are dead then.
    const remove = wakeUps.add(this.topic, () => void this.#catchUp());
    this.#leave = () => {
      remove();
      forget();
    };
  }

  /**
   * Listening begins only after a primary has answered. If none does now, the list
   * is written later.
   */
  async #startListening(left: AbortSignal): Promise<void> {
    const { wakeUps } = this.connection;
    const settled = wakeUps.settled();
    const [stop, forget] = anyOf(left, this.#open.signal);
    try {
      await this.read(stop);
      await settled;
    } catch {
      // The next read reports it.
    } finally {
      forget();
    }
  }

  /**
   * Writes the missing entries of the list, if any. A failure is reported, and tried again at
   * the next read.
   */
  async #catchUp(): Promise<void> {
    if (this.#isCatchingUp || this.#open.signal.aborted) return;
    const { pid } = this.connection.wakeUps;
    const isDue =
      pid !== undefined && [...this.#enlisted.values()].some((each) => lacks(each, pid));
    if (!isDue && this.#leaving.size === 0) return;
    this.#isCatchingUp = true;
    try {
      await this.#write();
    } catch (error) {
      this.#complain(error);
    } finally {
      this.#isCatchingUp = false;
    }
  }

  #complain(error: unknown): void {
    this.scope.onTrouble('listing the candidate', error);
  }

  /** Writes the entries that name no connection, or one that is gone. */
  #write(): Promise<void> {
    return this.#inTurn(async () => {
      for (const incarnation of this.#leaving) {
        if (!this.#enlisted.has(incarnation)) {
          await this.ask(
            this.statements.delist,
            [this.scope.election, incarnation],
            this.#open.signal,
          );
        }
        this.#leaving.delete(incarnation);
      }
      for (const [incarnation, entry] of this.#enlisted) {
        const { pid } = this.connection.wakeUps;
        if (pid === undefined || !lacks(entry, pid)) continue;
        await this.#put(incarnation, entry.candidate, pid);
        entry.pid = pid;
      }
    });
  }

  async #put(incarnation: string, candidate: CandidateInfo, pid: number): Promise<void> {
    const { election } = this.scope;
    // As a text within the column, because its type refuses U+0000, which metadata may have.
    const text = encodeCandidate(candidate);
    for (let tries = 1; ; tries += 1) {
      const values = [election, incarnation, text, `${pid}`, this.scope.uniqueId()];
      try {
        await this.ask(this.statements.enlist, values, this.#open.signal);
        return;
      } catch (error) {
        if (tries === mostTries || !wasOvertaken((error as Error).cause)) throw error;
      }
    }
  }

  #inTurn(job: () => Promise<void>): Promise<void> {
    const turn = this.#lastTurn.then(job);
    this.#lastTurn = turn.catch(() => {});
    return turn;
  }
}

/** True when the entry still has to be written, by the connection of this process. */
function lacks(entry: Entry, pid: number): boolean {
  return entry.pid !== pid && !entry.left.aborted;
}
