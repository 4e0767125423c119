import type { PostgresOptions, Table } from './options.ts';
import { checkOptions } from './options.ts';

/** The columns that the table must have, with their types. */
export const columns: Readonly<Record<string, string>> = {
  name: 'text',
  token: 'numeric',
  held: 'boolean',
  record: 'text',
  version: 'text',
  written_at: 'timestamp with time zone',
  life: 'text',
  token_floor: 'numeric',
  waiting: 'jsonb',
};

/**
 * The SQL that makes the table, for a migration. `election.init()` runs the same, and
 * `incumbent schema postgres` prints it. It may run again.
 * @throws InvalidOptionError for a table name that is not plain
 */
export function schema(options: Pick<PostgresOptions, 'table'> = {}): string {
  return schemaOf(checkOptions(options).table);
}

export function schemaOf(table: Table): string {
  return `-- Elections of incumbent: one row for each, which all of its candidates read and write.
-- They need:  grant select, insert, update on ${table.sql} to …;
create table if not exists ${table.sql} (
  name         text primary key,
  -- Of the term that leads, or led last. Never falls.
  token        numeric not null default 0,
  -- Whether that term still holds the seat, and no operator has taken it away.
  held         boolean not null default false,
  -- Who leads and led, as JSON; null until somebody has led. Text, so that nothing reorders it.
  record       text,
  -- Another one with every write.
  version      text not null,
  -- By the server's clock, and in which life of the table: another one begins when the server is
  -- started again, when a standby is promoted, and when the table is made anew or restored.
  written_at   timestamptz not null default clock_timestamp(),
  life         text not null default '',
  -- No later term has this token or a lower one: an earlier life may have known terms that are lost.
  token_floor  numeric not null default 0,
  -- Candidates that wait, for people to look at.
  waiting      jsonb not null default '{}',
  -- Makes the token part of a key: who holds the row "for key share" keeps out a new term, but not
  -- the renewals of the present one. Guarded writes need that.
  unique (name, token)
)
-- Room for the next version of a row on its page: renewals then touch no index.
with (fillfactor = 50);

-- Preparing it says nothing of who may lead: since when its present life is known is written by the
-- first candidate that looks, in a row without a name.
comment on table ${table.sql} is 'Leader elections of incumbent. Do not delete rows while candidates run.';
`;
}
