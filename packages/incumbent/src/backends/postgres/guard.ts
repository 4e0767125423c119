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
  /** The token of the term. */
  readonly token: bigint;
  /**
   * A condition without values of its own. It is true until this term has given its seat back, an
   * operator has taken it away (`vacate --force`), or a newer term has been elected.
   *
   * A newer term begins only after every transaction has ended in which the condition was found
   * true. Renewals do not wait for that. So no write under the condition comes after a newer term
   * has begun. A transaction that never ends keeps all other candidates from leading. So do
   * transactions one after the other without a gap, by a leader that does not stop.
   *
   * It needs the right to update the table of the elections.
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

/** The options of `fenceTrigger`. */
export interface FenceTriggerOptions {
  /** The table to protect, `name` or `schema.name`, as it is spelt there. */
  readonly table: string;
  /** Its column, of type bigint, for the token of the last write. Default `fence`. */
  readonly column?: string;
}

/**
 * The SQL of a trigger for a table that a leader writes. Every row remembers the highest token that
 * has written it. A write with a lower token fails with SQLSTATE `LE001`, one without a token with
 * `LE002`. Put it into a migration. It may run again. It adds the column if it is missing.
 *
 * Writers set the column (`update jobs set …, fence = $2 where id = $1`). Or they name the
 * token once in a transaction (`select set_config('incumbent.token', $1, true)`), which a
 * delete needs. The trigger does not use the elections' own table: that may be in another
 * database, or another store.
 *
 * Each row is a resource of its own. An older term can still write a row that no newer term has
 * written yet, or that was deleted. Where that is too little, use `term.guard.sql`.
 * @throws InvalidOptionError for a name that is not plain
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
  // Names are cut off at 63 bytes: those for two long names of tables would become the same.
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
