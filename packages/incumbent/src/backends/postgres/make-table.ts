import { elsewhere } from './errors.ts';
import type { Table } from './options.ts';
import { quoteText } from './options.ts';
import { schemaOf } from './schema.ts';

/** Between the two schemas that a refusal names; no name of a schema has one in it. */
export const elsewhereSeparator = '\n';

/** What a table of elections has in every version of ours, and hardly a table of something else. */
const marks = ['name', 'token', 'record', 'version'];

/**
 * SQL for the schemas, other than those that this user's search path leads to, with a table of
 * elections of this name: those who find that one elect a leader of their own. A column of names.
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
 * Makes the table, but no second one: a user with another search path does not find the first one,
 * and in each of two tables somebody is elected. Who names the schema has chosen.
 */
export function makingOf(table: Table): string {
  // By one at a time: two would meet an error of the catalogues, or miss each other's table. So what
  // is looked up must be newer than the wait, whatever transactions are by default.
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
