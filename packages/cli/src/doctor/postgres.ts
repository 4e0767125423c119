/** Findings about a PostgreSQL server and its table, as far as elections depend on them. */
import type { Timing } from 'incumbent';
import { formatDuration, parseDuration } from 'incumbent';
import type { PostgresExamination } from 'incumbent/postgres';
import { examinePostgres, postgres } from 'incumbent/postgres';
import type { PostgresConnections } from '../postgres/connect.ts';
import { nameOf } from '../postgres/connect.ts';
import { defaultTable, tableOf } from '../postgres/table.ts';
import type { Verification } from '../postgres/tls.ts';
import type { PostgresLocation } from '../postgres/url.ts';
import type { Finding } from './finding.ts';
import type { Scratch, Unmeasured } from './scratch.ts';
import { serverClockFinding } from './server-clock.ts';

const oldestVersion = 12;

export async function examinePostgresStore(
  connections: PostgresConnections,
  timing: Timing,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const { pool, location, verification } = connections;
  const { name: table } = tableOf(location);
  const options = { table };
  const seen = await examinePostgres(pool, options, signal);
  const { rows } = await pool.query<{ readonly user: string }>('select current_user as user');
  const clock = await serverClockFinding(async () => {
    const told = await pool.query<{ readonly ms: string }>(
      'select extract(epoch from clock_timestamp()) * 1000 as ms',
    );
    return Number(told.rows[0]?.ms);
  }, clockUse(location));
  return [
    serverFinding(seen, nameOf(location)),
    tlsFinding(verification, location),
    wakeUpFinding(seen, location),
    ...durabilityFindings(seen),
    tableFinding(seen, table, rows[0]?.user ?? 'this user'),
    takeoverFinding(timing, location),
    clock,
  ];
}

/** The election to measure on. */
export async function scratchOnPostgres(
  name: string,
  { pool, location }: PostgresConnections,
): Promise<Scratch | Unmeasured> {
  const { name: table, sql } = tableOf(location);
  const { inRecovery, tableExists, tableProblem, missingPrivileges } = await examinePostgres(pool, {
    table,
  });
  // To look is not to make, and `init` of the election that is measured would.
  if (inRecovery || !tableExists || tableProblem !== undefined || missingPrivileges.length > 0) {
    return { unmeasured: 'no election can be held there', mayLook: false };
  }
  const { rows } = await pool.query<{ readonly may: boolean }>(
    "select has_table_privilege(to_regclass($1), 'delete') as may",
    [sql],
  );
  // No other process has this election, so none of its records can be lost: there is nothing to
  // wait for.
  const backend = postgres(pool, { table, durable: true, listen: false });
  // Elections themselves never delete a row, so a user may be without that right.
  if (rows[0]?.may !== true) return { name: 'incumbent-doctor', backend, look: async () => [] };
  return {
    name,
    backend,
    look: async () => [],
    async remove() {
      await pool.query(`delete from ${sql} where name = $1`, [name]);
    },
  };
}

export function serverFinding(
  { serverVersion, inRecovery }: PostgresExamination,
  name: string,
): Finding {
  const data = { version: serverVersion, inRecovery };
  const finding = (level: Finding['level'], message: string): Finding => ({
    check: 'server',
    level,
    message,
    data,
  });
  const facts = `${name}, version ${serverVersion.split(' ')[0]}`;
  if (inRecovery) {
    return finding(
      'broken',
      `${facts}, is a read replica (or not promoted yet): nobody can be elected on it; name the primary`,
    );
  }
  if (Number.parseInt(serverVersion, 10) < oldestVersion) {
    return finding('warn', `${facts}: older than ${oldestVersion}, which nobody keeps up any more`);
  }
  return finding('ok', `${facts}, primary`);
}

export function tlsFinding(
  verification: Verification | undefined,
  { hosts, ssl }: Pick<PostgresLocation, 'hosts' | 'ssl'>,
): Finding {
  const data = { sslmode: ssl.mode, tls: verification !== undefined };
  if (verification === undefined) {
    const isNear = hosts.every(({ host }) => /^(?:\/|localhost$|127\.|::1$)/.test(host));
    return {
      check: 'tls',
      level: isNear ? 'note' : 'warn',
      message: isNear
        ? 'none, and the server is on this machine'
        : 'none: passwords and records can be read on the way; sslmode=verify-full',
      data,
    };
  }
  const message = {
    none: `the server's certificate is not looked at (sslmode=${ssl.mode}): sslmode=verify-full`,
    chain:
      "the server's certificate is checked, its name is not: sslmode=verify-full checks that too",
    full: "the server's certificate and its name are checked",
  }[verification];
  return { check: 'tls', level: verification === 'full' ? 'ok' : 'note', message, data };
}

/** A pooler that shares connections between transactions delivers no notifications. */
export function wakeUpFinding(
  { noWakeUps }: PostgresExamination,
  { options }: Pick<PostgresLocation, 'options'>,
): Finding {
  const finding = (level: Finding['level'], message: string): Finding => ({
    check: 'wake-ups',
    level,
    message,
    data: { listen: options.listen !== false, problem: noWakeUps ?? null },
  });
  if (options.listen === false) {
    return finding('note', 'listen=false: changes are found by polling, who waits is not listed');
  }
  if (noWakeUps === undefined)
    return finding('ok', 'waiting candidates are notified by LISTEN/NOTIFY');
  return finding(
    'warn',
    `${noWakeUps}; changes are found by polling: add listen=false, or name the server itself`,
  );
}

export function durabilityFindings(seen: PostgresExamination): Finding[] {
  const { fsync, fullPageWrites, synchronousCommit, synchronousStandbyNames, replicas } = seen;
  const data = {
    ...{ fsync, fullPageWrites, synchronousCommit, synchronousStandbyNames, replicas },
  };
  const finding = (check: string, level: Finding['level'], message: string): Finding => ({
    check,
    level,
    message,
    data,
  });
  const findings: Finding[] = [];
  if (!fsync || !fullPageWrites) {
    findings.push(
      finding(
        'durability',
        'warn',
        `${fsync ? 'full_page_writes' : 'fsync'} is off: a crash of the machine loses what was confirmed, ` +
          'and tokens with it',
      ),
    );
  } else if (synchronousCommit === 'off') {
    findings.push(
      finding(
        'durability',
        'note',
        'synchronous_commit is off here; the writes of elections are made durable all the same',
      ),
    );
  } else {
    findings.push(finding('durability', 'ok', `synchronous_commit ${synchronousCommit}, fsync on`));
  }
  const followers = `${replicas} ${replicas === 1 ? 'replica follows' : 'replicas follow'}`;
  if (synchronousStandbyNames !== '') {
    const message = `${followers}, synchronously those of "${synchronousStandbyNames}"`;
    findings.push(finding('replicas', replicas > 0 ? 'ok' : 'warn', message));
  } else if (replicas > 0) {
    findings.push(
      finding(
        'replicas',
        'warn',
        `${followers}, none synchronously: a fail-over may forget a term, and then nobody new leads for one ` +
          'lease; synchronous_standby_names keeps that from happening',
      ),
    );
  } else {
    findings.push(finding('replicas', 'note', 'none: while the server is away nobody is elected'));
  }
  return findings;
}

export function tableFinding(
  { tableExists, tableProblem, missingPrivileges, otherSchemas }: PostgresExamination,
  table: string,
  user: string,
): Finding {
  const data = { table, exists: tableExists, missing: missingPrivileges, otherSchemas };
  const elsewhere = otherSchemas[0];
  const schema = `incumbent schema postgres${table === defaultTable ? '' : ` --table ${table}`}`;
  const finding = (level: Finding['level'], message: string): Finding => ({
    check: 'table',
    level,
    message,
    data,
  });
  if (!tableExists && elsewhere !== undefined) {
    return finding(
      'broken',
      `there is no table "${table}" on the search path of ${user}, but there is one in the schema ` +
        `"${elsewhere}": name it with \`?table=${elsewhere}.${table}\``,
    );
  }
  if (!tableExists) {
    return finding('broken', `there is no table "${table}": \`incumbent init\` or \`${schema}\``);
  }
  if (tableProblem !== undefined) {
    return finding('broken', `"${table}": ${tableProblem}; compare it with \`${schema}\``);
  }
  if (missingPrivileges.length > 0) {
    const rights = missingPrivileges.join(', ');
    return finding('broken', `"${table}": ${user} may not ${rights}: grant ${rights} on it`);
  }
  if (elsewhere !== undefined) {
    return finding(
      'warn',
      `the schema "${elsewhere}" has a table "${table}" as well: candidates that find that one elect a ` +
        'leader of their own; let all of them name one with `?table=schema.name`',
    );
  }
  return finding('ok', `"${table}" is as it should be; ${user} may select, insert, update`);
}

function takeoverFinding({ leaseMs }: Timing, { options }: PostgresLocation): Finding {
  const isOff = options.age === 'off';
  const stepMs = isOff ? 0 : parseDuration('clock-step', options.clockStep ?? '2s');
  const later = isOff ? ', who comes later waits as long from when it came' : '';
  return {
    check: 'takeover',
    level: 'note',
    message: `after a crash somebody leads within ${formatDuration(leaseMs + stepMs)} of the last renewal${later}`,
    data: { leaseMs },
  };
}

function clockUse({ options }: PostgresLocation): string {
  if (options.age === 'off') return 'no election depends on it (age=off)';
  const step = options.clockStep ?? '2s';
  return `how far off it is does not matter, only that nobody sets it forward by more than ${step} while somebody leads (clock-step)`;
}
