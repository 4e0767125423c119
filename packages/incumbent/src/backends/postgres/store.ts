import { StoreUnsuitableError } from '../../base/errors.ts';
import type { Scope } from '../../core/contest.ts';
import { KnownRecord } from '../../mechanisms/lease/known-record.ts';
import { orItsFault } from '../../mechanisms/lease/read-all.ts';
import type { LeaseStore, Reading, SwapResult, Version } from '../../mechanisms/lease/store.ts';
import type { LeaseRecord } from '../../record/lease-record.ts';
import { decodeRecordOf, encodeLeaseRecord } from '../../record/lease-record.ts';
import type { Connection } from './connection.ts';
import type { Row } from './driver.ts';
import { PoolExhaustedError } from './driver.ts';
import {
  asStoreError,
  describe,
  inRecovery,
  isElsewhere,
  isForbidden,
  isMissing,
  mayNotMake,
  missingTable,
  tableElsewhere,
  wasOvertaken,
  wrongShape,
} from './errors.ts';
import { examineTable } from './examine-table.ts';
import { elsewhereSeparator, makingOf } from './make-table.ts';
import type { CheckedOptions, Table } from './options.ts';
import type { Renewal } from './renewals.ts';
import type { Statements } from './statements.ts';
import { statementsFor, topicOf } from './statements.ts';

/**
 * Stands between the life in which a version was read, and the version of the record. Without a
 * record nothing follows it.
 */
const separator = '/';

/** The answer to a read. */
interface Rows {
  readonly rows: readonly Row[];
  /** False: the table does not say yet since when the present life is known. */
  readonly hasBegun: boolean;
}

/** The record of an election in a row of its own. */
export class PostgresStore implements LeaseStore {
  readonly clockStepMs?: number;
  /** A standby may take over without the last writes, and a table may be lost and made anew. */
  readonly forgets: boolean;
  tokenFloor?: bigint;
  protected readonly connection: Connection;
  protected readonly statements: Statements;
  protected readonly scope: Scope;
  protected readonly topic: string;
  readonly #table: Table;
  /** The steps that this handle has already taken with the table. */
  #hasRead = false;
  #hasWritten = false;
  /** True: this user may not write down since when a life is known. */
  #onlyReads = false;
  readonly #known = new KnownRecord();

  constructor(connection: Connection, scope: Scope, options: CheckedOptions) {
    const { table, clockStepMs, durable } = options;
    this.connection = connection;
    this.scope = scope;
    this.#table = table;
    this.forgets = !durable;
    this.statements = statementsFor(table);
    this.topic = topicOf(table, scope.election);
    if (clockStepMs !== undefined) this.clockStepMs = clockStepMs;
  }

  async read(signal: AbortSignal): Promise<Reading> {
    const { rows, hasBegun } = await this.#rows(this.statements.read, this.scope.election, signal);
    if (!hasBegun) await this.#beginLife(signal);
    return this.#readingOf(rows);
  }

  /** One statement for all of them. They are of one table, but may be of several handles. */
  static async readAll(
    stores: readonly PostgresStore[],
    signal: AbortSignal,
  ): Promise<readonly (Reading | Error)[]> {
    const [first] = stores;
    if (first === undefined) return [];
    const names = [...new Set(stores.map(({ scope }) => scope.election))];
    const text = JSON.stringify(names);
    const { rows, hasBegun } = await first.#rows(first.statements.readMany, text, signal);
    if (!hasBegun) await first.#beginLife(signal);
    const rowsOf = new Map<string | null | undefined, Row[]>(names.map((name) => [name, []]));
    for (const row of rows) rowsOf.get(row[7])?.push(row);
    return Promise.all(
      stores.map((store) =>
        orItsFault(() => store.#readingOf(rowsOf.get(store.scope.election) ?? [])),
      ),
    );
  }

  #readingOf(rows: readonly Row[]): Reading {
    this.#requireOne(rows);
    this.#hasRead = true;
    const [record = null, own = null, age = null, , life, lifeAge = null, floor] = rows[0] ?? [];
    const version = `${life ?? ''}${separator}${record === null ? '' : own}`;
    const found = record === null ? undefined : this.#recordOf(record, version);
    // In an earlier life there may have been terms that are lost, but whose tokens
    // resources have seen.
    this.tokenFloor = BigInt(floor ?? 0);
    return {
      record: found,
      version,
      ...(this.forgets ? { life: life ?? '' } : {}),
      ...(this.clockStepMs === undefined ? {} : ages(age, lifeAge)),
    };
  }

  async swap(expected: Version, next: LeaseRecord, signal: AbortSignal): Promise<SwapResult> {
    const { scope, statements } = this;
    const [life = '', replaced = ''] = String(expected).split(separator);
    const own = scope.uniqueId();
    const record = encodeLeaseRecord(next);
    const token = next.token.toString();
    // Shorter than the timeout: the server then reports the lock that it waited for before
    // we give up.
    const lockTimeout = `${Math.ceil(0.75 * scope.timing.operationTimeoutMs)}`;
    const held = `${next.holding !== undefined && !next.holding.revoked}`;
    const isRenewal = this.#known.isRenewal(expected, next);
    const values = [
      scope.election,
      record,
      // Not a number that is counted up: after a fail-over that has forgotten writes, two of them
      // could be equal.
      own,
      token,
      lockTimeout,
      isRenewal ? null : this.topic,
      life,
      held,
    ];
    const replace = () => {
      const all = [...values, replaced];
      if (!isRenewal) return this.ask(statements.replace, all, signal, this.#hasWritten);
      const renewal: Renewal = {
        ...{ text: statements.replace, values: all, manyText: statements.replaceMany },
        shared: [lockTimeout, life],
        row: { name: scope.election, record, version: own, token, held, expected: replaced },
      };
      const job = () => this.connection.renewals.replace(renewal, signal);
      return this.attempt(job, signal, this.#hasWritten);
    };
    let rows: readonly Row[];
    try {
      rows =
        replaced === ''
          ? await this.ask(statements.insert, values, signal, this.#hasWritten)
          : await replace();
    } catch (error) {
      const { cause } = error as { readonly cause?: unknown };
      if (wasOvertaken(cause)) return { outcome: 'conflict' };
      throw error;
    }
    this.#hasWritten = true;
    if (rows.length === 0) return { outcome: 'conflict' };
    this.#requireOne(rows);
    const version = `${life}${separator}${own}`;
    this.#known.learn(version, next);
    return { outcome: 'ok', version };
  }

  async init(signal: AbortSignal): Promise<void> {
    const { driver } = this.connection;
    const isThere = async () => {
      const found = await this.attempt(() => examineTable(driver, this.#table, signal), signal);
      if (found.problem !== undefined) {
        throw new StoreUnsuitableError(wrongShape(this.#table, found.problem));
      }
      return found.exists;
    };
    if (await isThere()) return;
    await this.attempt(async () => {
      try {
        await driver.script(makingOf(this.#table), signal);
      } catch (error) {
        if (isElsewhere(error)) {
          const [schema = '', own = ''] = describe(error).split(elsewhereSeparator);
          throw new StoreUnsuitableError(tableElsewhere(this.#table, schema, own));
        }
        if (!isForbidden(error)) throw error;
        throw new StoreUnsuitableError(mayNotMake(this.#table, describe(error)), { cause: error });
      }
    }, signal);
    if (!(await isThere())) throw new StoreUnsuitableError(missingTable(this.#table));
  }

  /**
   * Makes here what `init: 'auto'` asks for, because every use begins with a read. A table
   * that goes away later is not made again. It may be on its way to a server that has
   * become the primary.
   */
  async #rows(text: string, value: string, signal: AbortSignal): Promise<Rows> {
    const read = async () => {
      const rows = await this.ask(text, [value], signal);
      const [, , , recovers, , lifeAge] = rows[0] ?? [];
      if (recovers !== 'false') throw inRecovery(this.connection.hasWorked);
      this.connection.hasWorked = true;
      this.connection.wakeUps.ensure();
      return { rows, hasBegun: !this.forgets || Number(lifeAge ?? -1) >= 0 };
    };
    if (this.scope.makesMissing !== true || this.#hasRead) return read();
    try {
      return await read();
    } catch (error) {
      if (!isMissing((error as { readonly cause?: unknown }).cause)) throw error;
      await this.init(signal);
      return read();
    }
  }

  protected ask(
    text: string,
    values: readonly (string | null)[],
    signal: AbortSignal | undefined,
    wasAllowed: boolean = this.#hasRead,
  ): Promise<readonly Row[]> {
    const job = () => this.connection.driver.query(text, values, signal);
    return this.attempt(job, signal, wasAllowed);
  }

  protected async attempt<T>(
    job: () => Promise<T>,
    signal: AbortSignal | undefined,
    wasAllowed: boolean = false,
  ): Promise<T> {
    signal?.throwIfAborted();
    try {
      return await job();
    } catch (error) {
      const shown = asStoreError(error, this.#table, this.connection.hasWorked, wasAllowed);
      if (error instanceof PoolExhaustedError && signal?.aborted === true) {
        // The caller is told only that there was no answer.
        this.scope.onTrouble('waiting for a connection', shown);
      }
      throw shown;
    }
  }

  /**
   * This life is new to all candidates. Those that come later count from now. A candidate that may
   * only read, or is not answered, counts for itself.
   */
  async #beginLife(signal: AbortSignal): Promise<void> {
    if (this.#onlyReads) return;
    try {
      await this.connection.driver.query(this.statements.beginLife, [], signal);
    } catch (error) {
      signal.throwIfAborted();
      this.#onlyReads = isForbidden(error);
    }
  }

  #recordOf(text: string, version: Version): LeaseRecord {
    return this.#known.at(version, () => decodeRow(this.#table, this.scope.election, text));
  }

  #requireOne(rows: readonly Row[]): void {
    if (rows.length === 1) return;
    throw new StoreUnsuitableError(
      wrongShape(this.#table, `it has ${rows.length} rows named "${this.scope.election}"`),
    );
  }
}

/** @throws RecordDamagedError, RecordTooNewError */
export function decodeRow(table: Table, election: string, text: string): LeaseRecord {
  return decodeRecordOf(election, text, `the row "${election}" of the table "${table.name}"`);
}

export function ages(
  age: string | null,
  lifeAge: string | null,
): Pick<Reading, 'ageMs' | 'lifeAgeMs'> {
  return {
    ...(age === null ? {} : { ageMs: Number(age) }),
    ...(lifeAge === null ? {} : { lifeAgeMs: Number(lifeAge) }),
  };
}
