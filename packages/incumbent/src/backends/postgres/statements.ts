import type { Table } from './options.ts';

/** All elections of a database share it; the payload says which one it is. */
export const channel = 'incumbent';

/** The payload for an election. */
export function topicOf(table: Table, election: string): string {
  return `${table.name}/${election}`;
}

export interface Statements {
  /**
   * `$1` name → record, version, age in ms, whether the server is in recovery, life, age of that life
   * in ms. Always a row.
   */
  readonly read: string;
  /**
   * `$1` name, `$2` record, `$3` version, `$4` token, `$5` lock timeout, `$6` topic or null, `$7` life,
   * `$8` held, `$9` version expected → a row if it was replaced
   */
  readonly replace: string;
  /** The first one, whether a candidate has made the row before or not: without `$9`. */
  readonly insert: string;
  /** `$1` name, `$2` incarnation, `$3` candidate, `$4` pid, `$5` version of a row that this makes */
  readonly enlist: string;
  /** `$1` name, `$2` incarnation */
  readonly delist: string;
  /** `$1` name → candidates as JSON */
  readonly list: string;
}

/**
 * One run of the server. A restart begins another one, and a standby that is promoted is another one:
 * either may have forgotten what was confirmed before.
 */
const life = '(extract(epoch from pg_postmaster_start_time()) * 1000000)::bigint::text';

const age = (since: string) => `(extract(epoch from clock_timestamp() - ${since}) * 1000)::text`;

/**
 * Evaluated before a row is locked or written. A lock is waited for no longer than an answer is: or
 * every attempt would leave a process of the server waiting behind it. And a win that a crash of the
 * server may undo is no win, whatever the session thinks of its other writes.
 */
const settings = `settings as (
  select
    set_config('lock_timeout', $5::text, true),
    set_config('synchronous_commit',
      case current_setting('synchronous_commit')
        when 'off' then 'on' else current_setting('synchronous_commit') end, true)
)`;

/** Both must hold, the first for its effect. */
const condition = `exists (select from settings) and ${life} = $7::text`;

/** Of a mere renewal nobody is told: its topic is null. A notification takes a lock that all share. */
const announce = `select '' from written
where case when $6::text is null then true else pg_notify('${channel}', $6::text) is not null end`;

/**
 * Whether the process of an entry of \`waiting\` still serves its connection. Another user's start
 * cannot be seen without the role pg_read_all_stats.
 */
const isAlive = `exists (
    select from pg_stat_activity served
    where served.pid::text = entry.value ->> 'pid'
      and coalesce(extract(epoch from served.backend_start)::text, entry.value ->> 'start')
        = entry.value ->> 'start'
  )`;

export function statementsFor({ sql }: Table): Statements {
  return {
    read: `
select
  election.record,
  election.version,
  case when election.server_start = pg_postmaster_start_time()
    then ${age('election.written_at')} end,
  pg_is_in_recovery()::text,
  ${life},
  case
    when election.name is null then ${age("'epoch'::timestamptz")}
    when election.server_start = pg_postmaster_start_time() then ${age('election.server_since')}
  end
from (select) as one left join ${sql} as election on election.name = $1::text`,
    replace: `
with ${settings}, written as (
  update ${sql} set
    record = $2::text, version = $3::text, token = $4::text::numeric, held = $8::text::boolean,
    written_at = clock_timestamp(), server_start = pg_postmaster_start_time(),
    server_since = case when server_start = pg_postmaster_start_time()
      then server_since else clock_timestamp() end
  where name = $1::text and version = $9::text and ${condition}
  returning name
)
${announce}`,
    insert: `
with ${settings}, written as (
  insert into ${sql} as election (name, record, version, token, held)
  select $1::text, $2::text, $3::text, $4::text::numeric, $8::text::boolean
  where ${condition}
  on conflict (name) do update set
    record = excluded.record, version = excluded.version, token = excluded.token,
    held = excluded.held, written_at = clock_timestamp(), server_start = excluded.server_start,
    server_since = case when election.server_start = excluded.server_start
      then election.server_since else clock_timestamp() end
  where election.record is null
  returning election.name
)
${announce}`,
    enlist: `
insert into ${sql} as election (name, version, waiting)
values ($1::text, $5::text, jsonb_build_object($2::text, jsonb_build_object(
  'candidate', $3::text,
  'pid', $4::text,
  'start', (
    select extract(epoch from served.backend_start)::text
    from pg_stat_activity served where served.pid::text = $4::text
  )
)))
on conflict (name) do update set waiting =
  coalesce((
    select jsonb_object_agg(entry.key, entry.value)
    from jsonb_each(election.waiting) as entry
    where ${isAlive}
  ), '{}') || excluded.waiting`,
    delist: `
update ${sql} set waiting = waiting - $2::text where name = $1::text`,
    list: `
select entry.value ->> 'candidate'
from ${sql} as election, jsonb_each(election.waiting) as entry
where election.name = $1::text and ${isAlive}
order by entry.key`,
  };
}
