import type { KnownTerm } from './known-term.ts';
import { mergeTerms, sameTerm } from './known-term.ts';
import type { Database, Statement } from './sqlite.ts';
import { termOf } from './term-row.ts';

/** An election as a store showed it. */
export interface Shown {
  readonly state: 'led' | 'vacant' | 'unknown' | 'ended' | 'gone';
  readonly token: string | null;
  readonly leader: string | null;
  readonly incarnation: string | null;
  readonly ready: boolean;
  /** Why it is unknown. */
  readonly why: string | null;
}

export interface Finding {
  /** As `HistoryWriter.store` says. */
  readonly store: number;
  readonly election: string;
  readonly atUnixMs: number;
  readonly shown: Shown;
  /** Null: as at the finding before. */
  readonly terms: readonly KnownTerm[] | null;
}

interface KnownElection {
  readonly id: number;
  /** The last change on file. */
  last: string | undefined;
}

/** How many rows one transaction deletes: recording goes on in between. */
const pruneBatch = 1_000;

/** Writes what stores show. It is the only writer of the file. */
export class HistoryWriter {
  readonly #database: Database;
  readonly #keepMs: number;
  readonly #sql: ReturnType<typeof statementsOf>;
  readonly #elections = new Map<string, KnownElection>();

  constructor(database: Database, keepMs: number) {
    this.#database = database;
    this.#keepMs = keepMs;
    this.#sql = statementsOf(database);
  }

  store(url: string): number {
    this.#sql.addStore.run(url);
    return Number(this.#sql.findStore.get(url)?.['id']);
  }

  /** The elections that the store had when they were last seen. */
  listed(store: number): readonly string[] {
    return this.#sql.listed.all(store).map(({ name }) => String(name));
  }

  /** All of it, or nothing. A row that is on file already is not written again. */
  write(findings: readonly Finding[]): void {
    this.#database.exec('BEGIN IMMEDIATE');
    try {
      for (const finding of findings) this.#add(finding);
      this.#database.exec('COMMIT');
    } catch (error) {
      // The rows behind it may have been taken back.
      this.#elections.clear();
      this.#rollBack();
      throw error;
    }
  }

  #rollBack(): void {
    try {
      this.#database.exec('ROLLBACK');
    } catch {
      // After some errors SQLite has done it already. The caller needs the first error.
    }
  }

  #add({ store, election: name, atUnixMs, shown, terms }: Finding): void {
    const election = this.#election(store, name);
    for (const term of terms ?? []) this.#addTerm(election.id, term, atUnixMs - this.#keepMs);
    const { state, token, leader, incarnation, ready, why } = shown;
    const values = [state, token, leader, incarnation, Number(ready)] as const;
    // The words of an error may have other numbers each time: they make no change.
    const now = JSON.stringify(values);
    if (now === election.last) return;
    this.#sql.addChange.run(election.id, atUnixMs, ...values, why);
    election.last = now;
  }

  #addTerm(election: number, term: KnownTerm, oldestMs: number): void {
    const { token, incarnation } = term;
    const row = this.#sql.findTerm.get(election, token, incarnation);
    const before = row === undefined ? undefined : termOf(row);
    // A store can keep a term for years: what was pruned here does not come back.
    if (before === undefined && term.end !== null && term.end.toUnixMs < oldestMs) return;
    const merged = before === undefined ? term : mergeTerms(before, term);
    if (before !== undefined && sameTerm(before, merged)) return;
    const { id, fromUnixMs, end } = merged;
    const ending = [end?.toUnixMs ?? null, end?.why ?? null] as const;
    this.#sql.putTerm.run(election, token, incarnation, id, fromUnixMs, ...ending);
  }

  #election(store: number, name: string): KnownElection {
    const key = `${store} ${name}`;
    let known = this.#elections.get(key);
    if (known === undefined) {
      this.#sql.addElection.run(store, name);
      const id = Number(this.#sql.findElection.get(store, name)?.['id']);
      const last = this.#sql.lastChange.get(id);
      known = { id, last: last === undefined ? undefined : JSON.stringify(Object.values(last)) };
      this.#elections.set(key, known);
    }
    return known;
  }

  /**
   * Deletes a batch of what is too old. A term without an end stays until a newer one is known, or its election
   * has been gone as long. The last change of an election stays as long as the store lists it.
   * @returns whether there is more
   */
  prune(nowUnixMs: number): boolean {
    const oldestMs = nowUnixMs - this.#keepMs;
    const { pruneEnded, pruneLost, pruneChanges, pruneElections } = this.#sql;
    let isMore = false;
    // Without changes an election has been gone for long: they are pruned before the terms.
    for (const statement of [pruneEnded, pruneChanges, pruneLost]) {
      if (Number(statement.run(oldestMs, pruneBatch).changes) === pruneBatch) isMore = true;
    }
    if (!isMore && Number(pruneElections.run().changes) > 0) this.#elections.clear();
    return isMore;
  }
}

function statementsOf(
  database: Database,
): Readonly<
  Record<
    | 'addStore'
    | 'findStore'
    | 'addElection'
    | 'findElection'
    | 'listed'
    | 'findTerm'
    | 'putTerm'
    | 'addChange'
    | 'lastChange'
    | 'pruneEnded'
    | 'pruneLost'
    | 'pruneChanges'
    | 'pruneElections',
    Statement
  >
> {
  return {
    addStore: database.prepare('INSERT INTO stores (url) VALUES (?) ON CONFLICT DO NOTHING'),
    findStore: database.prepare('SELECT id FROM stores WHERE url = ?'),
    addElection: database.prepare(
      'INSERT INTO elections (store, name) VALUES (?, ?) ON CONFLICT DO NOTHING',
    ),
    findElection: database.prepare('SELECT id FROM elections WHERE store = ? AND name = ?'),
    listed: database.prepare(
      `SELECT name FROM elections WHERE store = ? AND 'gone' <> (
         SELECT state FROM changes WHERE election = elections.id ORDER BY id DESC LIMIT 1)`,
    ),
    findTerm: database.prepare(
      'SELECT * FROM terms WHERE election = ? AND token = ? AND incarnation = ?',
    ),
    putTerm: database.prepare(
      `INSERT INTO terms (election, token, incarnation, leader, from_unix_ms, to_unix_ms, why)
       VALUES (?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (election, token, incarnation) DO UPDATE SET leader = excluded.leader,
         from_unix_ms = excluded.from_unix_ms, to_unix_ms = excluded.to_unix_ms, why = excluded.why`,
    ),
    addChange: database.prepare(
      `INSERT INTO changes (election, at_unix_ms, state, token, leader, incarnation, ready, why)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
    lastChange: database.prepare(
      `SELECT state, token, leader, incarnation, ready FROM changes
       WHERE election = ? ORDER BY id DESC LIMIT 1`,
    ),
    pruneEnded: database.prepare(
      'DELETE FROM terms WHERE rowid IN (SELECT rowid FROM terms WHERE to_unix_ms < ? LIMIT ?)',
    ),
    // Nobody has told how they ended, and a newer one is known or their election is gone.
    pruneLost: database.prepare(
      `DELETE FROM terms WHERE rowid IN (
         SELECT rowid FROM terms AS old WHERE to_unix_ms IS NULL AND from_unix_ms < ?
         AND (EXISTS (SELECT 1 FROM terms AS new WHERE new.election = old.election
             AND (length(new.token), new.token) > (length(old.token), old.token))
           OR NOT EXISTS (SELECT 1 FROM changes WHERE election = old.election)) LIMIT ?)`,
    ),
    pruneChanges: database.prepare(
      `DELETE FROM changes WHERE id IN (
         SELECT id FROM changes AS old WHERE at_unix_ms < ? AND (state = 'gone'
           OR EXISTS (SELECT 1 FROM changes AS new WHERE new.election = old.election
             AND new.id > old.id)) LIMIT ?)`,
    ),
    pruneElections: database.prepare(
      `DELETE FROM elections WHERE NOT EXISTS (SELECT 1 FROM terms WHERE election = elections.id)
       AND NOT EXISTS (SELECT 1 FROM changes WHERE election = elections.id)`,
    ),
  };
}
