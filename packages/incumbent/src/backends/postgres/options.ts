import { describeValue } from '../../base/candidate.ts';
import { checkNames } from '../../base/check-names.ts';
import type { Duration } from '../../base/duration.ts';
import { parseDuration } from '../../base/duration.ts';
import { InvalidOptionError } from '../../base/errors.ts';

/** The default name of the table of elections, which `schema` makes. */
export const defaultTable = 'incumbent_election';

/** The options of `postgres`. */
export interface PostgresOptions {
  /**
   * The table of the elections, `name` or `schema.name`, as it is spelt there (letters of both
   * cases are kept). Default `incumbent_election`, where the connection's search path finds it.
   */
  readonly table?: string;
  /**
   * `on` (default): a candidate that starts beside a dead leader counts the lease from when
   * the record was written, by the server's own clock. `off`: it counts from when it has first
   * seen the record.
   */
  readonly age?: 'on' | 'off';
  /**
   * How far the server's clock may be set forward within a lease. It is taken off every age.
   * Default 2 s.
   */
  readonly clockStep?: Duration;
  /**
   * False: no LISTEN, so waiting candidates poll, and cannot be listed. Needed behind a pooler that
   * shares connections between transactions. Default true.
   */
  readonly listen?: boolean;
  /**
   * True: the server never loses a write that it has confirmed. No standby that lags takes over,
   * and the table is never dropped or restored. Then no candidate waits after a restart, nor on a
   * new table. Default false.
   */
  readonly durable?: boolean;
}

export interface CheckedOptions {
  readonly table: Table;
  /** Undefined: ages are not told. */
  readonly clockStepMs: number | undefined;
  readonly listens: boolean;
  readonly durable: boolean;
}

/** A table's name, for people and in SQL. */
export interface Table {
  readonly name: string;
  /** Quoted. */
  readonly sql: string;
}

const known: Readonly<Record<keyof PostgresOptions, true>> = {
  table: true,
  age: true,
  clockStep: true,
  listen: true,
  durable: true,
};

/** @throws InvalidOptionError */
export function checkOptions(options: PostgresOptions): CheckedOptions {
  checkNames('postgres()', options, known);
  const { age = 'on', listen = true, durable = false, clockStep } = options;
  if (age !== 'on' && age !== 'off') {
    throw new InvalidOptionError(`age must be "on" or "off", not ${describeValue(age)}`);
  }
  for (const [name, value] of Object.entries({ listen, durable })) {
    if (typeof value === 'boolean') continue;
    throw new InvalidOptionError(`${name} must be true or false, not ${describeValue(value)}`);
  }
  if (age === 'off' && clockStep !== undefined) {
    throw new InvalidOptionError(
      'clockStep says how far ages are believed, and age is "off": leave one of them out',
    );
  }
  return {
    table: checkTable(options.table ?? defaultTable),
    clockStepMs: age === 'off' ? undefined : parseDuration('clockStep', clockStep ?? 2_000),
    listens: listen,
    durable,
  };
}

/** @throws InvalidOptionError for a name that is not plain */
export function checkTable(value: unknown, what = 'table'): Table {
  // The server would cut longer names off, and they would then be another table's.
  const plain = /^([A-Za-z_][A-Za-z0-9_$]{0,62}\.)?[A-Za-z_][A-Za-z0-9_$]{0,62}$/;
  if (typeof value !== 'string' || !plain.test(value)) {
    throw new InvalidOptionError(
      `${what} must be a name such as "incumbent_election" or "app.election" (letters, digits, "_" ` +
        `and "$", at most 63 each), not ${describeValue(value)}`,
    );
  }
  return { name: value, sql: value.split('.').map(quoteName).join('.') };
}

export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** A literal that reads the same whatever `standard_conforming_strings` says. */
export function quoteText(text: string): string {
  const quoted = `'${text.replaceAll("'", "''").replaceAll('\\', '\\\\')}'`;
  return text.includes('\\') ? ` E${quoted}` : quoted;
}
