import { elsewhere } from './errors.ts';
import type { Table } from './options.ts';
import { quoteText } from './options.ts';
import { schemaOf } from './schema.ts';

/** Stands between the two schemas that a refusal names. No name of a schema contains it. */
export const elsewhereSeparator = '\n';

/** Columns that a table of elections has in every version of ours, and other tables hardly have. */
const marks = ['name', 'token', 'record', 'version'];

/**
 * SQL for the schemas outside this user's search path with a table of elections of this name.
 * Candidates that find such a table elect a leader of their own. The result is a column of names.
 */
export function schemasWith({ name, sql }: Table): string {
  return `select spaces.nspname::text as schema
  from pg_class as found join pg_namespace as spaces on spaces.oid = found.relnamespace
  where found.relname = ${quoteText(name.split('.').at(-1) ?? '')}
    and found.relkind in ('r', 'p', 'v', 'f') and found.relpersistence <> 't'
    and found.oid is distinct from to_regclass(${quoteText(sql)})
    and ${marks.length} = (
      select count(*) from pg_attribute as a
      where a.attrelid = found.oid and a.attname in (${marks.map(quoteText).join(', ')})
        and not a.attisdropped
    )
  order by spaces.nspname`;
}

/**
 * Makes the table, but no second one. A user with another search path does not find the first one.
 * Then there would be two tables with a leader each. A user that names the schema has chosen.
 */
export function makingOf(table: Table): string {
  // Made by one at a time. Two would meet an error of the catalogues, or miss each other's table.
  // So the lookup must be newer than the wait, whatever the default isolation is.
  const lock = `set transaction isolation level read committed;
select pg_advisory_xact_lock(hashtextextended('incumbent', 0));
`;
  return lock + (table.name.includes('.') ? '' : refusal(table)) + schemaOf(table);
}

function refusal(table: Table): string {
  const body = `
declare
  found text;
begin
  if to_regclass(${quoteText(table.sql)}) is not null then return; end if;
  found := (${schemasWith(table)} limit 1);
  if found is not null then
    raise exception using errcode = '${elsewhere}',
      message = found || ${quoteText(elsewhereSeparator)} || coalesce(current_schema(), '');
  end if;
end`;
  return `do ${quoteText(body)};
`;
}
