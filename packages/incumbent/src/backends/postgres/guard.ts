import { InvalidOptionError } from '../../base/errors.ts';
import type { Table } from './options.ts';
import { checkTable, quoteName, quoteText } from './options.ts';

/**
 * For writes that must not be made once a newer term leads.
 *
 * In the database of the elections:
 * `` await pool.query(`update jobs set state = 'sent' where id = $1 and ${term.guard.sql}`, [id]) ``,
 * or `` await sql`update jobs set state = 'sent' where id = ${id} and ${sql.unsafe(term.guard.sql)}` ``.
 * Elsewhere: hand `token` over, and let the resource refuse lower ones than it has seen.
 */
export interface PostgresGuard {
  readonly token: bigint;
  /**
   * A condition without values of its own: true until this term has given its seat back, an operator
   * has taken it away (`vacate --force`), or a newer term has been elected. The last of these waits
   * for the end of every transaction in which it was found true (renewals do not): so nothing that was
   * written under it is written after a newer term has begun. A transaction that never ends, or one
   * after the other without a gap, by a leader that does not stop, keeps everybody from leading.
   *
   * Needs the right to update the table of the elections.
   */
  readonly sql: string;
}

export function guardFor(table: Table, election: string, token: bigint): PostgresGuard {
  return {
    token,
    sql:
      `exists (select 1 from ${table.sql} where name = ${quoteText(election)} ` +
      `and token = ${token} and held for key share)`,
  };
}

export interface FenceTriggerOptions {
  /** The table to protect, `name` or `schema.name`, as it is spelt there. */
  readonly table: string;
  /** Its column, of type bigint, that keeps the token of the last write. Default `fence`. */
  readonly column?: string;
}

/**
 * The SQL of a trigger that lets every row remember the highest token that has written it, and
 * refuses lower ones with SQLSTATE `LE001`; and writes that name none with `LE002`. For a migration;
 * may be run again. Adds the column if it is missing.
 *
 * Writers set the column (`update jobs set …, fence = $2 where id = $1`), or name the token once in
 * a transaction (`select set_config('incumbent.token', $1, true)`), which a delete needs. It needs
 * nothing of the elections' own table: they may be in another database, or another store.
 *
 * Each row is a resource of its own: one that no newer term has written yet, or that was deleted, can
 * be written by an older one. Where that is too little, use `term.guard.sql`.
 * @throws InvalidOptionError for what is no plain name
 */
export function fenceTrigger(options: FenceTriggerOptions): string {
  const table = checkTable(options.table);
  const column = options.column ?? 'fence';
  if (typeof column !== 'string' || !/^[A-Za-z_][A-Za-z0-9_$]{0,62}$/.test(column)) {
    throw new InvalidOptionError(
      `column must be a name such as "fence", not ${JSON.stringify(column)}`,
    );
  }
  const parts = table.name.split('.');
  const inSchema = (name: string) => [...parts.slice(0, -1), name].map(quoteName).join('.');
  // Names are cut off at 63 bytes: two long ones of tables would become the same.
  const base = (parts.at(-1) ?? '').slice(0, 40);
  const check = inSchema(`${base}_fence_check`);
  const named = inSchema(`${base}_fence_named`);
  const fence = quoteName(column);
  return `alter table ${table.sql} add column if not exists ${fence} bigint;

-- Fires only for updates that set the column, and before the other one: it marks them.
create or replace function ${named}() returns trigger language plpgsql as $$
begin
  if new.${fence} is not null then new.${fence} := -1 - new.${fence}; end if;
  return new;
end $$;

create or replace function ${check}() returns trigger language plpgsql as $$
declare
  token bigint;
begin
  if tg_op = 'INSERT' then
    token := new.${fence};
  elsif tg_op = 'UPDATE' and new.${fence} < 0 then
    token := -1 - new.${fence};
  end if;
  token := coalesce(token, nullif(current_setting('incumbent.token', true), '')::bigint);
  if token is null or token < 0 then
    raise exception '% of a row of % names no token: set "%", or incumbent.token, to the term''s',
      lower(tg_op), tg_relid::regclass, ${quoteText(column)} using errcode = 'LE002';
  end if;
  if tg_op <> 'INSERT' and token < old.${fence} then
    raise exception 'token % is stale: the row of % has been written with token %',
      token, tg_relid::regclass, old.${fence} using errcode = 'LE001';
  end if;
  if tg_op = 'DELETE' then return old; end if;
  new.${fence} := token;
  return new;
end $$;

drop trigger if exists fence_1_named on ${table.sql};
create trigger fence_1_named before update of ${fence} on ${table.sql}
  for each row execute function ${named}();
drop trigger if exists fence_2_check on ${table.sql};
create trigger fence_2_check before insert or update or delete on ${table.sql}
  for each row execute function ${check}();
`;
}
