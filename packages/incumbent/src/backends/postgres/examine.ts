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

/** What can be seen of a server by whoever looks after elections on it. */
export interface PostgresExamination {
  /** Such as `15.18`. */
  readonly serverVersion: string;
  /** True: a read replica, or a primary before it is promoted. Nobody can be elected on it. */
  readonly inRecovery: boolean;
  /** Why LISTEN does not work here, so that those who wait poll; undefined when it does. */
  readonly noWakeUps: string | undefined;
  /** The server's clock when it answered, in ms since 1970. */
  readonly serverUnixMs: number;
  readonly tableExists: boolean;
  /** What the table lacks; undefined when it is as it should be, or missing. */
  readonly tableProblem: string | undefined;
  /**
   * Schemas that this user's search path does not lead to, with a table of that name: those who find
   * that one elect a leader of their own. Empty when the option `table` names the schema.
   */
  readonly otherSchemas: readonly string[];
  /** Of `select`, `insert` and `update` on the table those that this user may not; empty without it. */
  readonly missingPrivileges: readonly string[];
  /** False: what was confirmed is lost when the machine crashes. */
  readonly fsync: boolean;
  readonly fullPageWrites: boolean;
  /** Of this session. The elections' own writes are not made with `off`, whatever it says. */
  readonly synchronousCommit: string;
  /** Empty: a fail-over may forget what was confirmed, and the tokens with it. */
  readonly synchronousStandbyNames: string;
  /** How many replicas follow. */
  readonly replicas: number;
}

/**
 * Looks at the server and the table, and changes nothing.
 * @throws InvalidOptionError; StoreUnavailableError, StoreUnsuitableError when it cannot be asked
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
