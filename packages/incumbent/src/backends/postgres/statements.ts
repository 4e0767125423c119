import type { Table } from './options.ts';
import { quoteText } from './options.ts';

/** All elections of a database share this channel. The payload says which one it is. */
export const channel = 'incumbent';

/** The payload for an election. */
export function topicOf(table: Table, election: string): string {
  return `${table.name}/${election}`;
}

/** As all clients spell it. Some name the schema, others have it in their search path. */
export function withoutSchema(topic: string): string {
  return topic.replace(/^[^/.]*\./, '');
}

export interface Statements {
  /**
   * `$1` name → record, version, age in ms, whether the server is in recovery, life, age of that
   * life in ms, token floor. The age of the life is null when it was not written down yet.
   * Always a row.
   */
  readonly read: string;
  /** `$1` a JSON array of names → for each of them a row as `read` gives it, and its name. */
  readonly readMany: string;
  /**
   * Writes down since when the present life is known. Does nothing when that is written already,
   * unless it lies in the future. The clock has then been set back since, and all candidates would
   * wait for it.
   */
  readonly beginLife: string;
  /**
   * `$1` name, `$2` record, `$3` version, `$4` token, `$5` lock timeout, `$6` topic or null, `$7`
   * life, `$8` held. `$9` version expected → a row if it was replaced.
   */
  readonly replace: string;
  /**
   * Replaces many records, and tells no candidate. `$1` JSON: an array of objects with `name`,
   * `record`, `version`, `token`, `held` and `expected`. `$2` lock timeout, `$3` life → a row with
   * its name for each that was replaced. One that is locked, or not as expected, is left out.
   */
  readonly replaceMany: string;
  /** Writes the first record, whether a candidate has made the row before or not. Without `$9`. */
  readonly insert: string;
  /** `$1` name, `$2` incarnation, `$3` candidate, `$4` pid, `$5` version of a row that this makes */
  readonly enlist: string;
  /** `$1` name, `$2` incarnation */
  readonly delist: string;
  /** `$1` name → candidates as JSON */
  readonly list: string;
  /**
   * `$1` name → the rows behind it, up to `pageRows`, by name: name, record, version, age in ms,
   * whether the server is in recovery, life, age of that life in ms, candidates as a JSON list.
   * Always a row: without a name, there is none behind it. Not all rows are elections.
   */
  readonly page: string;
  /**
   * As `page`, with nothing but the name, whether there is a record (`shards` for one of those), and
   * candidates.
   */
  readonly pageOfNames: string;
}

/** How many rows a page has. A record may have tens of kilobytes. */
export const pageRows = 500;

/** More terms than can have begun in the writes that a server had not sent to its follower yet. */
const lostTerms = 1_000;

/**
 * Lives that start from one row differ by up to so much, whatever their clocks say. A mask of bits.
 * A larger one would bring tokens ahead of the clock for longer than two of the shortest leases.
 */
const spread = 1_023;

/**
 * One run of the server on one file of the table. Another run or file may lack confirmed
 * writes. Either the server was started again, or a standby was promoted, or the table was made
 * anew or restored.
 */
const lifeOf = ({ sql }: Table) => `(
    (extract(epoch from pg_postmaster_start_time()) * 1000000)::bigint::text || '.' ||
    translate(coalesce(pg_relation_filepath(to_regclass(${quoteText(sql)})), ''), '/', '.'))`;

const age = (since: string) => `(extract(epoch from clock_timestamp() - ${since}) * 1000)::text`;

/**
 * Evaluated before a row is locked or written. A lock is not waited for longer than an answer.
 * Otherwise every attempt would leave a process of the server waiting behind it. And a win that a
 * crash of the server may undo is no win, whatever the session's setting for its other writes.
 */
const settingsWith = (lockTimeout: string) => `settings as (
  select
    set_config('lock_timeout', ${lockTimeout}, true),
    set_config('synchronous_commit',
      case current_setting('synchronous_commit')
        when 'off' then 'on' else current_setting('synchronous_commit') end, true)
)`;
const settings = settingsWith('$5::text');

const unixMs = (time: string) => `(extract(epoch from ${time}) * 1000)::bigint`;

/**
 * The token before the first one of a row. A row that was lost, alone or with its table, is made
 * anew later. Terms are never as frequent as one in a millisecond all the time, so none of its
 * tokens comes again.
 */
const firstFloor = unixMs('clock_timestamp()');

/**
 * Skips the tokens that another life of the server may have given besides. Several lives may start
 * from one row: a standby is promoted and lost, and the old primary is put back. Each of them must
 * give other tokens. So the floor rises with the clock, to the ms in which the life was known
 * first. It stays the same for as long as the life lasts. Even if the clock was set back below the
 * tokens, the names of the lives differ.
 */
function floorOf(row: string, life: string, bornAt: string): string {
  const skipped = `${lostTerms} + (hashtext(${life}) & ${spread})`;
  return `case when ${row}.life = ${life} then ${row}.token_floor else greatest(
      greatest(${row}.token_floor, ${row}.token) + ${skipped},
      ${unixMs(`coalesce(${bornAt}, clock_timestamp())`)}
    ) end`;
}

/** Both must hold, the first for its effect. */
const condition = (life: string, expected = '$7::text') =>
  `exists (select from settings) and ${life} = ${expected}`;

/**
 * A mere renewal is not announced: its topic is null. A notification takes a lock that all share.
 */
const announce = `select '' from written
where case when $6::text is null then true else pg_notify('${channel}', $6::text) is not null end`;

/**
 * True when the process of an entry of `waiting` still serves its connection. Another user's start
 * cannot be seen without the role pg_read_all_stats.
 */
const isAlive = `exists (
    select from pg_stat_activity served
    where served.pid::text = entry.value ->> 'pid'
      and coalesce(extract(epoch from served.backend_start)::text, entry.value ->> 'start')
        = entry.value ->> 'start'
  )`;

/** Long, because it is a list of SQL statements. */
export function statementsFor(table: Table): Statements {
  const { sql } = table;
  const life = lifeOf(table);
  const bornOf = (its: string) => `(select marker.written_at from ${sql} as marker
      where marker.name = '' and marker.life = ${its})`;
  const bornAt = bornOf('$7::text');
  // The row without a name is no election. It says since when the present life is known.
  const rowsBehind = `(
    select * from ${sql} where name > $1::text and name <> '' order by name limit ${pageRows}
  ) as election`;
  const waiting = `case when election.waiting <> '{}' then (
    select jsonb_agg(entry.value ->> 'candidate' order by entry.key)::text
    from jsonb_each(election.waiting) as entry where ${isAlive}
  ) end`;
  const columns = `
  election.record,
  election.version,
  case when election.life = present.life then ${age('election.written_at')} end,
  pg_is_in_recovery()::text,
  present.life,
  ${age('marker.written_at')},
  (case when election.name is null then ${firstFloor}
    else ${floorOf('election', 'present.life', 'marker.written_at')} end)::text`;
  return {
    read: `
select ${columns}
from (select ${life} as life) as present
  left join ${sql} as election on election.name = $1::text
  left join ${sql} as marker on marker.name = '' and marker.life = present.life`,
    readMany: `
select ${columns}, wanted.name
from (select ${life} as life) as present
  cross join json_array_elements_text($1::text::json) as wanted (name)
  left join ${sql} as election on election.name = wanted.name
  left join ${sql} as marker on marker.name = '' and marker.life = present.life`,
    beginLife: `
insert into ${sql} as marker (name, version, life)
select '', '', ${life}
where not exists (
  select from ${sql} where name = '' and life = ${life} and written_at <= clock_timestamp()
)
on conflict (name) do update set life = excluded.life, written_at = excluded.written_at
where marker.life <> excluded.life or marker.written_at > excluded.written_at`,
    replace: `
with ${settings}, written as (
  update ${sql} as election set
    record = $2::text, version = $3::text, token = $4::text::numeric, held = $8::text::boolean,
    written_at = clock_timestamp(), life = $7::text, token_floor = ${floorOf('election', '$7::text', bornAt)}
  where name = $1::text and version = $9::text and ${condition(life)}
  returning name
)
${announce}`,
    replaceMany: `
with ${settingsWith('$2::text')}, renewal as (
  select * from json_to_recordset($1::text::json) as each
    (name text, record text, version text, token numeric, held boolean, expected text)
), free as (
  select election.name from ${sql} as election join renewal
    on election.name = renewal.name and election.version = renewal.expected
  where ${condition(life, '$3::text')}
  for no key update of election skip locked
), written as (
  update ${sql} as election set
    record = renewal.record, version = renewal.version, token = renewal.token, held = renewal.held,
    written_at = clock_timestamp(), life = $3::text,
    token_floor = ${floorOf('election', '$3::text', bornOf('$3::text'))}
  from renewal
  where election.name = renewal.name and election.version = renewal.expected
    and election.name in (select name from free) and ${condition(life, '$3::text')}
  returning election.name
)
select name from written`,
    insert: `
with ${settings}, written as (
  insert into ${sql} as election (name, record, version, token, held, life, token_floor)
  select $1::text, $2::text, $3::text, $4::text::numeric, $8::text::boolean, $7::text,
    -- The first term has its token from a floor that was read a little earlier.
    coalesce(nullif($4::text::numeric, 0), ${firstFloor})
  where ${condition(life)}
  on conflict (name) do update set
    record = excluded.record, version = excluded.version, token = excluded.token,
    held = excluded.held, written_at = clock_timestamp(), life = excluded.life,
    token_floor = ${floorOf('election', '$7::text', bornAt)}
  where election.record is null
  returning election.name
)
${announce}`,
    enlist: `
insert into ${sql} as election (name, version, waiting, life, token_floor)
select $1::text, $5::text, jsonb_build_object($2::text, jsonb_build_object(
  'candidate', $3::text,
  'pid', $4::text,
  'start', (
    select extract(epoch from served.backend_start)::text
    from pg_stat_activity served where served.pid::text = $4::text
  )
)), ${life}, ${firstFloor}
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
    page: `
select
  election.name,
  election.record,
  election.version,
  case when election.life = present.life then ${age('election.written_at')} end,
  pg_is_in_recovery()::text,
  present.life,
  ${age('marker.written_at')},
  ${waiting}
from (select ${life} as life) as present
  left join ${rowsBehind} on true
  left join ${sql} as marker on marker.name = '' and marker.life = present.life
order by election.name`,
    pageOfNames: `
select
  election.name,
  case when election.record like '{"format":2,%' then 'shards' else (election.record is not null)::text end,
  null, null, pg_is_in_recovery()::text, null, null,
  ${waiting}
from (select) as present left join ${rowsBehind} on true
order by election.name`,
  };
}
