import type { PostgresClient } from './client.ts';
import { Connection } from './connection.ts';
import type { Driver } from './driver.ts';
import { asStoreError } from './errors.ts';
import { examineTable } from './examine-table.ts';
import { schemasWith } from './make-table.ts';
import type { PostgresOptions } from './options.ts';
import { checkOptions } from './options.ts';
import { channel } from './statements.ts';
import { isDirect } from './wake-ups.ts';

/** The state of a server, for operators of elections on it. */
export interface PostgresExamination {
  /** The version, such as `15.18`. */
  readonly serverVersion: string;
  /**
   * True: a read replica, or a primary before it is promoted. No candidate can be elected on it.
   */
  readonly inRecovery: boolean;
  /** Why LISTEN does not work here, so that waiting candidates poll. Undefined when it works. */
  readonly noWakeUps: string | undefined;
  /** The server's clock when it answered, in ms since 1970. */
  readonly serverUnixMs: number;
  readonly tableExists: boolean;
  /** The fault of the table. Undefined when it has none, or is missing. */
  readonly tableProblem: string | undefined;
  /**
   * Schemas outside this user's search path with a table of that name. Candidates that find such a
   * table elect a leader of their own. Empty when the option `table` names the schema.
   */
  readonly otherSchemas: readonly string[];
  /**
   * The rights among `select`, `insert` and `update` that this user lacks on the table. Empty
   * without a table.
   */
  readonly missingPrivileges: readonly string[];
  /** False: confirmed writes are lost when the machine crashes. */
  readonly fsync: boolean;
  readonly fullPageWrites: boolean;
  /** `synchronous_commit` of this session. Elections never write with `off`, whatever it says. */
  readonly synchronousCommit: string;
  /** Empty: a fail-over may forget confirmed writes, and the tokens with them. */
  readonly synchronousStandbyNames: string;
  /** How many replicas follow. */
  readonly replicas: number;
}

/**
 * Looks at the server and the table, and changes nothing.
 * @throws InvalidOptionError
 * @throws StoreUnavailableError, StoreUnsuitableError when the server cannot be asked
 */
export async function examinePostgres(
  client: PostgresClient,
  options: Pick<PostgresOptions, 'table'> = {},
  signal: AbortSignal = new AbortController().signal,
): Promise<PostgresExamination> {
  const { table } = checkOptions(options);
  const { driver, hasWorked } = Connection.of(client);
  try {
    const [row = []] = await driver.query(
      `select
        current_setting('server_version'),
        pg_is_in_recovery()::text,
        (extract(epoch from clock_timestamp()) * 1000)::text,
        current_setting('fsync'),
        current_setting('full_page_writes'),
        current_setting('synchronous_commit'),
        current_setting('synchronous_standby_names'),
        (select count(*) from pg_stat_replication)::text`,
      [],
      signal,
    );
    const state = await examineTable(driver, table, signal);
    const rights = state.exists
      ? await driver.query(
          `select wanted from unnest(array['select', 'insert', 'update']) as wanted
            where not has_table_privilege(to_regclass($1::text), wanted)`,
          [table.sql],
          signal,
        )
      : [];
    const others = table.name.includes('.')
      ? []
      : await driver.query(schemasWith(table), [], signal);
    return {
      serverVersion: row[0] ?? '',
      inRecovery: row[1] === 'true',
      noWakeUps: row[1] === 'true' ? 'the server is in recovery' : await whyNoWakeUps(driver),
      serverUnixMs: Number(row[2]),
      tableExists: state.exists,
      tableProblem: state.problem,
      otherSchemas: others.map(([name]) => name ?? ''),
      missingPrivileges: rights.map(([name]) => name ?? ''),
      fsync: row[3] === 'on',
      fullPageWrites: row[4] === 'on',
      synchronousCommit: row[5] ?? '',
      synchronousStandbyNames: row[6] ?? '',
      replicas: Number(row[7]),
    };
  } catch (error) {
    throw asStoreError(error, table, hasWorked, false);
  }
}

async function whyNoWakeUps(driver: Driver): Promise<string | undefined> {
  if (driver.cannotListen !== undefined) return driver.cannotListen;
  const listener = await driver.listen(
    channel,
    () => {},
    () => {},
  );
  try {
    return (await isDirect(driver, listener.pid)) ? undefined : 'a pooler stands between';
  } finally {
    await listener.close();
  }
}
