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
   * in ms, token floor. Always a row.
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

/** More than can have begun in what a server had not told its follower yet. */
const lostTerms = 1_000;

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

/**
 * Of the row of no election, which stands for those that have none: rewritten once in each life of the
 * server, by whoever writes first. Whoever lost a row has lost fewer terms than are left out.
 */
const beginLife = (table: string) => `born as (
  update ${table} set
    server_start = pg_postmaster_start_time(), server_since = clock_timestamp(),
    token_floor = token_floor + ${lostTerms}
  where name = '' and server_start <> pg_postmaster_start_time()
)`;

/** What a row that is made now starts with. Without the row of no election nothing can be proved. */
const newRow = (table: string) => `
  coalesce((select server_since from ${table}
    where name = '' and server_start = pg_postmaster_start_time()), clock_timestamp()),
  coalesce((select ${floorOf('marker', '0')} from ${table} as marker where name = ''), ${lostTerms})`;

/** What the last run of the server may have known besides is skipped. */
function floorOf(row: string, token: string): string {
  return `case when ${row}.server_start = pg_postmaster_start_time() then ${row}.token_floor
    else greatest(${row}.token_floor, ${token}) + ${lostTerms} end`;
}

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
    when known.server_start = pg_postmaster_start_time() then ${age('known.server_since')}
  end,
  coalesce(${floorOf('known', 'known.token')}, ${lostTerms})::text
from (select) as one
  left join ${sql} as election on election.name = $1::text
  left join ${sql} as known on known.name = coalesce(election.name, '')`,
    replace: `
with ${settings}, ${beginLife(sql)}, written as (
  update ${sql} as election set
    record = $2::text, version = $3::text, token = $4::text::numeric, held = $8::text::boolean,
    written_at = clock_timestamp(), server_start = pg_postmaster_start_time(),
    server_since = case when server_start = pg_postmaster_start_time()
      then server_since else clock_timestamp() end,
    token_floor = ${floorOf('election', 'election.token')}
  where name = $1::text and version = $9::text and ${condition}
  returning name
)
${announce}`,
    insert: `
with ${settings}, ${beginLife(sql)}, written as (
  insert into ${sql} as election
    (name, record, version, token, held, server_since, token_floor)
  select $1::text, $2::text, $3::text, $4::text::numeric, $8::text::boolean, ${newRow(sql)}
  where ${condition}
  on conflict (name) do update set
    record = excluded.record, version = excluded.version, token = excluded.token,
    held = excluded.held, written_at = clock_timestamp(), server_start = excluded.server_start,
    server_since = case when election.server_start = excluded.server_start
      then election.server_since else clock_timestamp() end,
    token_floor = ${floorOf('election', 'election.token')}
  where election.record is null
  returning election.name
)
${announce}`,
    enlist: `
insert into ${sql} as election (name, version, waiting, server_since, token_floor)
select $1::text, $5::text, jsonb_build_object($2::text, jsonb_build_object(
  'candidate', $3::text,
  'pid', $4::text,
  'start', (
    select extract(epoch from served.backend_start)::text
    from pg_stat_activity served where served.pid::text = $4::text
  )
)), ${newRow(sql)}
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
