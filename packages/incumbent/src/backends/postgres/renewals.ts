import { onAbort, unlessAborted } from '../../base/wait.ts';
import type { Driver, Row } from './driver.ts';

/** The replacement of one record that nobody is told of. */
export interface Renewal {
  /** One statement for one record, with its values. */
  readonly text: string;
  readonly values: readonly (string | null)[];
  /** One statement for many: `$1` is a JSON array of `row`s, and then come the `shared` values. */
  readonly manyText: string;
  readonly shared: readonly string[];
  readonly row: Readonly<Record<string, string>> & { readonly name: string };
}

interface Waiting {
  readonly renewal: Renewal;
  readonly signal: AbortSignal;
  readonly resolve: (rows: readonly Row[]) => void;
  readonly reject: (error: unknown) => void;
  readonly forget: () => void;
  isOver: boolean;
}

/**
 * Statements of renewals under way at once. Renewals that come meanwhile share the next one. A
 * statement is over for us when no caller waits for it any more. The drivers may go on to wait for
 * a connection that is dead, and other connections work. A late write does no harm, because each is
 * conditional on the version.
 */
const statementsAtOnce = 4;
/**
 * Of these, the statements for one record, which wait for its row. The others wait for no row, so
 * rows that are locked hold up no renewal of another row.
 */
const onesAtOnce = statementsAtOnce - 1;
const renewalsInOne = 100;

/**
 * SQLSTATE, by the classes that PostgreSQL has: the server has said no, and has undone the
 * statement. Names of errno, such as EPIPE, have five letters too, and say no such thing.
 */
const sqlState = /^[0-9][0-9A-Z]{4}$|^(?:F0|HV|P0|XX)[0-9A-Z]{3}$/;

/**
 * The renewals of all elections on one client. A statement for many neither waits for a row that
 * others have locked, nor fails with one: it leaves out such a row, and one that has moved on. Each
 * renewal that was left out is then tried by itself, and its own statement says why.
 */
export class Renewals {
  readonly #driver: Pick<Driver, 'query'>;
  readonly #waiting: Set<Waiting> = new Set();
  /** A statement for many has left them out. */
  readonly #leftOut: Set<Waiting> = new Set();
  #underWay = 0;
  #onesUnderWay = 0;

  constructor(driver: Pick<Driver, 'query'>) {
    this.#driver = driver;
  }

  /** @returns a row for each record that was replaced, as the statement for one does */
  replace(renewal: Renewal, signal: AbortSignal): Promise<readonly Row[]> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const waiting: Waiting = {
        ...{ renewal, signal, resolve, reject, isOver: false },
        forget: onAbort(signal, () => {
          // One that has not been sent never is.
          if (this.#waiting.delete(waiting) || this.#leftOut.delete(waiting)) {
            finish(waiting, () => reject(signal.reason));
          }
        }),
      };
      this.#waiting.add(waiting);
      this.#next();
    });
  }

  #next(): void {
    while (this.#underWay < statementsAtOnce) {
      const [leftOut] = this.#leftOut;
      if (leftOut !== undefined && this.#onesUnderWay < onesAtOnce) {
        this.#leftOut.delete(leftOut);
        this.#startOne(leftOut);
        continue;
      }
      const [first] = this.#waiting;
      if (first === undefined) return;
      const together = this.#likeThat(first.renewal);
      for (const each of together) this.#waiting.delete(each);
      if (together.length === 1 && this.#onesUnderWay === 0) this.#startOne(first);
      else this.#start(this.#sendMany(together));
    }
  }

  #startOne(waiting: Waiting): void {
    this.#onesUnderWay += 1;
    const sent = this.#sendOne(waiting).finally(() => {
      this.#onesUnderWay -= 1;
    });
    this.#start(sent);
  }

  /** @param sent never rejects */
  #start(sent: Promise<void>): void {
    this.#underWay += 1;
    void sent.finally(() => {
      this.#underWay -= 1;
      this.#next();
    });
  }

  /** Those that wait for the same statement with the same values for all. */
  #likeThat({ manyText, shared }: Renewal): Waiting[] {
    const names = new Set<string>();
    const together: Waiting[] = [];
    for (const each of this.#waiting) {
      const { renewal } = each;
      const isLike =
        renewal.manyText === manyText &&
        renewal.shared.every((value, index) => value === shared[index]);
      // Two writes of one row would be of one moment.
      if (!isLike || names.has(renewal.row.name)) continue;
      names.add(renewal.row.name);
      together.push(each);
      if (together.length === renewalsInOne) break;
    }
    return together;
  }

  /** Never rejects. */
  async #sendOne(waiting: Waiting): Promise<void> {
    const { renewal, signal, resolve, reject } = waiting;
    try {
      const query = this.#driver.query(renewal.text, renewal.values, signal);
      const rows = await unlessAborted(query, signal);
      finish(waiting, () => resolve(rows));
    } catch (error) {
      finish(waiting, () => reject(error));
    }
  }

  /** Never rejects. */
  async #sendMany(together: readonly Waiting[]): Promise<void> {
    const [first] = together as [Waiting];
    const { manyText, shared } = first.renewal;
    // Given up when no caller waits for it any more.
    const stop = new AbortController();
    let wanted = together.length;
    const forgets = together.map((each) =>
      onAbort(each.signal, () => {
        finish(each, () => each.reject(each.signal.reason));
        wanted -= 1;
        if (wanted === 0) stop.abort(each.signal.reason);
      }),
    );
    const rowsOf = new Map<string, Row[]>();
    try {
      const json = JSON.stringify(together.map(({ renewal }) => renewal.row));
      const query = this.#driver.query(manyText, [json, ...shared], stop.signal);
      const rows = await unlessAborted(query, stop.signal);
      for (const row of rows) {
        const name = row[0] ?? '';
        rowsOf.set(name, [...(rowsOf.get(name) ?? []), row]);
      }
    } catch (error) {
      const code = String((error as { readonly code?: unknown } | null)?.code);
      // Without an answer of the server nothing is known of any of them.
      if (!sqlState.test(code)) {
        for (const each of together) finish(each, () => each.reject(error));
      }
    } finally {
      for (const forget of forgets) forget();
    }
    for (const each of together) {
      if (each.isOver) continue;
      const rows = rowsOf.get(each.renewal.row.name);
      if (rows === undefined) this.#leftOut.add(each);
      else finish(each, () => each.resolve(rows));
    }
  }
}

function finish(waiting: Waiting, settle: () => void): void {
  if (waiting.isOver) return;
  waiting.isOver = true;
  waiting.forget();
  settle();
}
