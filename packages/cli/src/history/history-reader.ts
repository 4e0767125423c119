import { HistoryError, openToRead } from './history-file.ts';
import type { KnownTerm } from './known-term.ts';
import type { Database, Row, Sqlite } from './sqlite.ts';
import { termOf } from './term-row.ts';

/** A place in the history of an election: what is older comes next. */
export interface Place {
  readonly fromUnixMs: number;
  readonly token: string;
  readonly incarnation: string;
}

/** The terms of one election from some time on, the newest first. */
export interface TermPage {
  readonly terms: readonly KnownTerm[];
  /** The term before the oldest of them, if one is on file: a gap may be between them. */
  readonly predecessor: KnownTerm | undefined;
  /** Where older ones begin; undefined: there are none in the window. */
  readonly next: Place | undefined;
}

export interface RecordedChange {
  /** When the recorder saw it, by its clock. */
  readonly atUnixMs: number;
  readonly state: string;
  readonly token: string | null;
  readonly leader: string | null;
  readonly incarnation: string | null;
  readonly ready: boolean;
  readonly why: string | null;
}

/** Reads a history, also while a recorder writes it. */
export class HistoryReader {
  readonly #path: string;
  readonly #database: Database;

  /** @throws HistoryError */
  constructor(path: string, sqlite: Sqlite) {
    this.#path = path;
    this.#database = openToRead(path, sqlite);
  }

  close(): void {
    this.#database.close();
  }

  /**
   * @param url of its store, as the recorder was given it, without secrets; undefined: the only one that has
   * such an election
   * @throws HistoryError
   */
  election(name: string, url: string | undefined): number {
    const found = this.#all(
      `SELECT elections.id AS id, url FROM elections JOIN stores ON stores.id = store
       WHERE name = ? ORDER BY url`,
      name,
    );
    const those = url === undefined ? found : found.filter((each) => each['url'] === url);
    const [only, ...others] = those;
    if (only === undefined) {
      throw new HistoryError(this.#whyNot(name, url, found));
    }
    if (others.length > 0) {
      throw new HistoryError(
        `${this.#path} has an election "${name}" of ${those.length} stores: give --store, one of ` +
          those.map((each) => each['url']).join(', '),
      );
    }
    return Number(only['id']);
  }

  #whyNot(name: string, url: string | undefined, found: readonly Row[]): string {
    if (found.length > 0) {
      const urls = found.map((each) => each['url']).join(', ');
      return `${this.#path} has no election "${name}" of the store ${url}, but of ${urls}`;
    }
    const [stores] = this.#all("SELECT group_concat(url, ', ') AS urls FROM stores");
    const urls = stores?.['urls'] ?? 'no store';
    return `${this.#path} has no election "${name}"; it records ${urls}`;
  }

  /**
   * @param before from here on, and older; undefined: from the newest on
   * @param limit at most so many
   */
  terms(election: number, sinceUnixMs: number, limit: number, before?: Place): TermPage {
    // Tokens start again when an election was removed and made anew: times order the terms.
    const last = this.#terms(election, sinceUnixMs, limit + 1, before);
    const terms = last.slice(0, limit);
    const oldest = terms.at(-1);
    if (oldest === undefined) return { terms, predecessor: undefined, next: undefined };
    const { fromUnixMs, token, incarnation } = oldest;
    const place = { fromUnixMs, token, incarnation };
    return {
      terms,
      predecessor: this.#terms(election, -Infinity, 1, place)[0],
      next: last.length > limit ? place : undefined,
    };
  }

  #terms(election: number, sinceUnixMs: number, limit: number, before?: Place): KnownTerm[] {
    const older = 'AND (from_unix_ms, length(token), token, incarnation) < (?, length(?), ?, ?)';
    const place =
      before === undefined
        ? []
        : [before.fromUnixMs, before.token, before.token, before.incarnation];
    // A term whose end nobody told went on until the next one began, or leads.
    return this.#all(
      `SELECT * FROM terms AS term WHERE election = ? AND (to_unix_ms >= ? OR to_unix_ms IS NULL
         AND (from_unix_ms >= ? OR NOT EXISTS (SELECT 1 FROM terms AS next
           WHERE next.election = term.election AND next.from_unix_ms > term.from_unix_ms
           AND next.from_unix_ms < ?)))
       ${before === undefined ? '' : older}
       ORDER BY from_unix_ms DESC, length(token) DESC, token DESC, incarnation DESC LIMIT ?`,
      ...[election, sinceUnixMs, sinceUnixMs, sinceUnixMs, ...place, limit],
    ).map(termOf);
  }

  /** The oldest first. */
  changes(election: number, sinceUnixMs: number): readonly RecordedChange[] {
    return this.#all(
      'SELECT * FROM changes WHERE election = ? AND at_unix_ms >= ? ORDER BY id',
      election,
      sinceUnixMs,
    ).map(changeOf);
  }

  lastChange(election: number): RecordedChange | undefined {
    const [row] = this.#all(
      'SELECT * FROM changes WHERE election = ? ORDER BY id DESC LIMIT 1',
      election,
    );
    return row && changeOf(row);
  }

  #all(sql: string, ...values: (string | number)[]): Row[] {
    return this.#database.prepare(sql).all(...values);
  }
}

function changeOf(row: Row): RecordedChange {
  const { at_unix_ms: at, state, token, leader, incarnation, ready, why } = row;
  return {
    ...{ atUnixMs: Number(at), state: String(state), token: text(token), leader: text(leader) },
    ...{ incarnation: text(incarnation), ready: ready === 1, why: text(why) },
  };
}

function text(value: Row[string] | undefined): string | null {
  return typeof value === 'string' ? value : null;
}
