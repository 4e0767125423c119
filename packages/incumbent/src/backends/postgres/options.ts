import { describeValue } from '../../base/candidate.ts';
import { checkNames } from '../../base/check-names.ts';
import type { Duration } from '../../base/duration.ts';
import { parseDuration } from '../../base/duration.ts';
import { InvalidOptionError } from '../../base/errors.ts';

/** Of the table of elections, which `schema` makes. */
export const defaultTable = 'incumbent_election';

export interface PostgresOptions {
  /**
   * The table of the elections, `name` or `schema.name`, as it is spelt there (letters of both cases
   * are kept). Default `incumbent_election`, where the connection's search path finds it.
   */
  readonly table?: string;
  /**
   * `on`: a candidate that starts beside a dead leader counts the lease from when the record was
   * written, by the server's own clock. `off`: from when it has seen it. Default `on`.
   */
  readonly age?: 'on' | 'off';
  /**
   * How far the server's clock may be set forward within a lease: ages are believed less this.
   * Default 2 s.
   */
  readonly clockStep?: Duration;
  /**
   * False: no LISTEN, so those who wait poll, and nobody can list them. Needed behind a pooler that
   * shares connections between transactions. Default true.
   */
  readonly listen?: boolean;
  /**
   * True: the server never loses what it has confirmed (no standby that lags takes over, nobody drops
   * or restores the table), so nobody waits after a restart, nor on a new table. Default false.
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

/** @throws InvalidOptionError for what is no plain name */
export function checkTable(value: unknown, what = 'table'): Table {
  // Longer names would be cut off by the server, and then be another table's.
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
