import { InvalidOptionError } from '../../base/errors.ts';
import type { Wanted } from '../../core/listing.ts';
import type { LeaseLister, LeasePage, ListedLease } from '../../mechanisms/lease/listing.ts';
import type { Reading } from '../../mechanisms/lease/store.ts';
import { decodeCandidates } from '../../record/candidate-entry.ts';
import type { Connection } from './connection.ts';
import type { Row } from './driver.ts';
import { asStoreError, inRecovery } from './errors.ts';
import type { CheckedOptions } from './options.ts';
import { pageRows, statementsFor } from './statements.ts';
import { ages, decodeRow } from './store.ts';

/** The rows of the table, in pages by name. */
export function postgresLister(connection: Connection, options: CheckedOptions): LeaseLister {
  const { table, clockStepMs, durable, listens } = options;
  const statements = statementsFor(table);
  let hasRead = false;
  return {
    forgets: !durable,
    ...(clockStepMs === undefined ? {} : { clockStepMs }),
    async page(after, wanted, signal): Promise<LeasePage> {
      const { page, pageOfNames } = statements;
      const rows = await ask(wanted === 'names' ? pageOfNames : page, after, signal);
      // A server in recovery may lag, and its ages and lives are its own.
      if (rows[0]?.[4] !== 'false') throw inRecovery(connection.hasWorked);
      hasRead = true;
      const named = rows.filter(([name]) => name !== null);
      return {
        elections: named.flatMap((row) => listed(row, wanted)),
        next: named.length < pageRows ? undefined : named.at(-1)?.[0],
      };
    },
  };

  async function ask(text: string, after: unknown, signal: AbortSignal): Promise<readonly Row[]> {
    try {
      return await connection.driver.query(text, [String(after ?? '')], signal);
    } catch (error) {
      if (signal.aborted || error instanceof InvalidOptionError) throw error;
      throw asStoreError(error, table, connection.hasWorked, hasRead);
    }
  }

  /** A row without a record is an election only while candidates wait for it. */
  function listed([name, text = null, ...rest]: Row, wanted: Wanted): ListedLease[] {
    const [version, age = null, , life, lifeAge = null, entries = null] = rest;
    const waiting = entries === null ? [] : decodeCandidates(JSON.parse(entries) as string[]);
    const hasRecord = text !== null && text !== 'false';
    if (name === null || name === undefined || (!hasRecord && waiting.length === 0)) return [];
    const reading = (): Reading => ({
      record: text === null ? undefined : decodeRow(table, name, text),
      version: `${life ?? ''}/${version ?? ''}`,
      ...(durable ? {} : { life: life ?? '' }),
      ...(clockStepMs === undefined ? {} : ages(age, lifeAge)),
    });
    const ofShards = wanted === 'names' ? { hasShards: text === 'shards' } : {};
    return [{ name, reading, ...ofShards, ...(listens ? { waiting } : {}) }];
  }
}
