/** The table that all elections of a database share. */
import { createElection } from 'incumbent';
import { examinePostgres, postgres } from 'incumbent/postgres';
import { CommandError, exitCodes } from '../failure.ts';
import type { PostgresConnections } from './connect.ts';
import type { PostgresLocation } from './url.ts';
import { showTarget } from './url.ts';

export const defaultTable = 'incumbent_election';

export interface ElectionTable {
  readonly name: string;
  /** Quoted. */
  readonly sql: string;
  /** The command that prints its SQL. */
  readonly schemaCommand: string;
}

export function tableOf({ options: { table = defaultTable } }: PostgresLocation): ElectionTable {
  const named = table === defaultTable ? '' : ` --table ${table}`;
  return {
    name: table,
    sql: table
      .split('.')
      .map((part) => `"${part}"`)
      .join('.'),
    schemaCommand: `incumbent schema postgres${named}`,
  };
}

export async function isTableMissing({ pool, location }: PostgresConnections): Promise<boolean> {
  const { rows } = await pool.query<{ readonly missing: boolean }>(
    'select to_regclass($1) is null as missing',
    [tableOf(location).sql],
  );
  return rows[0]?.missing === true;
}

/**
 * Creates the table if it is missing.
 * @returns the table created; undefined: it was there
 * @throws CommandError for a user who has no right to, with the steps for the owner of the database
 */
export async function prepareTable(
  connections: PostgresConnections,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (!(await isTableMissing(connections))) return undefined;
  const { pool, location } = connections;
  const { name, sql, schemaCommand } = tableOf(location);
  const { rows } = await pool.query<{
    readonly user: string;
    readonly schema: string | null;
    readonly may: boolean | null;
  }>(
    `select current_user as user, named.schema,
      (select has_schema_privilege(oid, 'create') from pg_namespace where nspname = named.schema) as may
      from (select coalesce($1::text, current_schema()) as schema) as named`,
    [name.includes('.') ? name.split('.')[0] : null],
  );
  const { user = 'this user', schema, may } = rows[0] ?? {};
  // When there is a second such table, `init` refuses for everybody: the owner must not create one
  // either.
  const { otherSchemas } = await examinePostgres(pool, { table: name }, signal);
  if (may !== true && otherSchemas.length === 0) {
    const why =
      schema === null || schema === undefined
        ? 'its search path names no schema that exists'
        : may === null
          ? `there is no schema "${schema}"`
          : `it may not create in the schema "${schema}"`;
    throw new CommandError(
      'TABLE_MISSING',
      exitCodes.storeUnavailable,
      `there is no table "${name}", and the user "${user}" cannot make it: ${why}. Let the owner of ` +
        'the database run\n' +
        `  ${schemaCommand} | psql ${showTarget(location)}\n` +
        `and then, in SQL\n  grant select, insert, update on ${sql} to "${user}";`,
    );
  }
  // `init` creates only the table, so the name of the election does not matter.
  const backend = postgres(pool, { table: name, listen: false });
  const election = createElection({ name: 'incumbent-init', backend });
  try {
    await election.init({ signal });
  } finally {
    await election.close();
  }
  return `the table "${name}"`;
}
