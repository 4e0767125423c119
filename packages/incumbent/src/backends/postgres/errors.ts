import { ElectionError, StoreUnavailableError, StoreUnsuitableError } from '../../base/errors.ts';
import { ClientEndedError, PoolExhaustedError } from './driver.ts';
import type { Table } from './options.ts';
import { defaultTable } from './options.ts';

/** SQLSTATE: the statement was undone, because another transaction came between. */
const overtaken = ['40001', '40P01', '23505'];

/** SQLSTATE: no such table, no such schema. */
const missing = ['42P01', '3F000'];

/** SQLSTATE: this user lacks the right to do it. */
const forbidden = '42501';

/** SQLSTATE of ours: there is such a table in a schema outside this user's search path. */
export const elsewhere = 'LE003';

/** The table is there, but is not the one that `schema` makes. */
const otherShape = [
  ...['42703', '42704', '42804', '42883', '42809', '42P10', '428C9'],
  ...['23502', '23503', '23514', '22P02', '22003', '21000'],
];

/** True when a write was certainly not applied, because another one was. */
export function wasOvertaken(error: unknown): boolean {
  const code = codeOf(error);
  return code !== undefined && overtaken.includes(code);
}

/** True when this user lacks the right to do it. */
export function isForbidden(error: unknown): boolean {
  return codeOf(error) === forbidden;
}

/** True when no second table was made. */
export function isElsewhere(error: unknown): boolean {
  return codeOf(error) === elsewhere;
}

/**
 * A driver's error as an error that says what to do.
 * @param hasWorked true: the client has reached a database that takes writes before. An apparent
 * wrong setting is then more likely an outage, such as a fail-over, and passes
 * @param wasAllowed true: the same was done with this table before. A migration, or a fail-over to
 * a server that lacks it so far, may have taken it away, and it may come again
 */
export function asStoreError(
  error: unknown,
  table: Table,
  hasWorked: boolean,
  wasAllowed: boolean,
): unknown {
  if (error instanceof ElectionError) return error;
  const text = describe(error);
  if (error instanceof ClientEndedError) return new StoreUnsuitableError(text);
  if (error instanceof PoolExhaustedError) {
    return new StoreUnavailableError(`PostgreSQL cannot be asked: ${text}`, { cause: error });
  }
  const code = codeOf(error) ?? '';
  const refusal = refusalOf(code, table, text);
  if (refusal !== undefined) {
    return wasAllowed
      ? new StoreUnavailableError(`${refusal} (it was allowed before)`, { cause: error })
      : new StoreUnsuitableError(refusal, { cause: error });
  }
  if (otherShape.includes(code)) return new StoreUnsuitableError(wrongShape(table, text));
  if (code === '22P05' || code === '22021') {
    return new StoreUnsuitableError(
      `the database's encoding cannot hold this record: ${text}; use a database in UTF8`,
    );
  }
  if (code === '25006' && !hasWorked) return new StoreUnsuitableError(readOnly(text));
  if (isSetting(code, text) && !hasWorked) {
    return new StoreUnsuitableError(
      `PostgreSQL does not let this client in: ${text}; its address, user, password, database or ` +
        'TLS setting is wrong',
    );
  }
  const wayOut = waysOut[code];
  return new StoreUnavailableError(
    `PostgreSQL cannot be used: ${text}${wayOut === undefined ? '' : `; ${wayOut}`}`,
    { cause: error },
  );
}

/** True when there is no such table, as far as the search path of this user goes. */
export function isMissing(error: unknown): boolean {
  return missing.includes(codeOf(error) ?? '');
}

function refusalOf(code: string, table: Table, text: string): string | undefined {
  if (missing.includes(code)) return missingTable(table);
  if (code !== forbidden) return undefined;
  return (
    `this user of PostgreSQL may not use the table "${table.name}": ${text}; run as its owner: ` +
    `grant select, insert, update on ${table.sql} to … (and usage on its schema)`
  );
}

export function missingTable(table: Table): string {
  return (
    `there is no table "${table.name}" in this database (as far as the search path of this user ` +
    "goes): pass `init: 'auto'` to createElection, or call `await election.init()` once, or make it by a " +
    'migration with what `incumbent schema postgres` prints'
  );
}

/**
 * Why no second table was made.
 * @param schema the schema with a table
 * @param own the schema where the table would have been made. Empty: none
 */
export function tableElsewhere({ name }: Table, schema: string, own: string): string {
  return (
    `there is no table "${name}" on the search path of this user, but there is one in the schema ` +
    `"${schema}". None was made: whoever uses a second table elects a second leader. Name the first ` +
    `one (\`table: '${schema}.${name}'\`, or \`?table=${schema}.${name}\` in a URL), or put ` +
    `"${schema}" on the search path of this role. If you want elections apart from those, name the ` +
    `schema of your own table (\`table: '${own || 'other'}.${name}'\`)`
  );
}

/** The reason why `init` was refused. `text`: the words of the server. */
export function mayNotMake(table: Table, text: string): string {
  const named = table.name === defaultTable ? '' : ` --table ${table.name}`;
  return (
    `there is no table "${table.name}" in this database, and this user of PostgreSQL may not make it: ` +
    `${text}. Let the owner of the database run \`incumbent schema postgres${named} | psql\`, and then ` +
    `grant select, insert, update on ${table.sql} to this user`
  );
}

export function wrongShape(table: Table, why: string): string {
  return (
    `the table "${table.name}" is not one of elections (${why}): compare it with what ` +
    '`incumbent schema postgres` prints, or name another one with the option `table`'
  );
}

/** @param hasWorked see `asStoreError` */
export function inRecovery(hasWorked: boolean): Error {
  const text = 'the server is in recovery: a read replica';
  return hasWorked
    ? new StoreUnavailableError(
        `PostgreSQL cannot be used: ${text}, or a primary that is not promoted yet`,
      )
    : new StoreUnsuitableError(readOnly(text));
}

function readOnly(text: string): string {
  return (
    `this PostgreSQL takes no writes (${text}), so nobody can be elected on it, and what it shows ` +
    'may be old: connect to the primary (target_session_attrs=read-write)'
  );
}

const waysOut: Readonly<Record<string, string>> = {
  '25006': 'it takes no writes at the moment: it is being failed over, or its disk is full',
  '53300': 'raise max_connections, or lower the pools of its clients',
  '53100': 'free some space on its disk',
  '55P03':
    'another transaction holds the row of this election: a guarded write that has not ended, or ' +
    'somebody in psql; set idle_in_transaction_session_timeout',
  '57P03': 'it is starting or stopping',
};

/** True for a setting that is wrong from the beginning or never: user, database, TLS. */
function isSetting(code: string, text: string): boolean {
  return (
    code.startsWith('28') ||
    code === '3D000' ||
    /^(ERR_TLS|ERR_SSL|EPROTO|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_)/.test(code) ||
    /does not support SSL|SASL|password must be a string/i.test(text)
  );
}

/** SQLSTATE, or the code of a network error. */
function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null | undefined)?.code;
  return typeof code === 'string' ? code : undefined;
}

/** Node leaves the message empty when all addresses of a name were tried in vain. */
export function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.message !== '') return error.message;
  if (!(error instanceof AggregateError)) return codeOf(error) ?? error.name;
  return error.errors.map((each) => describe(each)).join(', ');
}
