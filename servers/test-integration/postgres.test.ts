import { describe, expect, test } from 'vitest';
import {
  pgBouncerAvailable,
  postgresAvailable,
  startPgBouncer,
  startPostgres,
  startPostgresStandby,
  waitFor,
} from '../src/index.ts';

const reason = postgresAvailable();
const withoutPooler = reason ?? pgBouncerAvailable();
if (withoutPooler !== undefined && process.env['CI'] === 'true') throw new Error(withoutPooler);

describe.skipIf(reason !== undefined)('a PostgreSQL of our own', () => {
  test('keeps its data when it is killed, and is read-only while in recovery', async () => {
    await using server = await startPostgres();
    await server.sql('create table kept as select 1 as n');
    await server.kill();
    await server.start();
    expect(await server.sql('select n from kept')).toBe('1');
    await server.restartInRecovery();
    await expect(server.sql('insert into kept values (2)')).rejects.toThrow('read-only');
    await server.promote();
    await server.sql('insert into kept values (2)');
  });

  test('is followed by a standby that can be promoted, and can be frozen', async () => {
    await using primary = await startPostgres();
    await using standby = await startPostgresStandby(primary);
    await primary.sql('create table copied as select 1 as n');
    await waitFor('it is copied', async () => (await standby.sql('select n from copied')) === '1');
    await primary.freeze();
    await standby.promote();
    await standby.sql('insert into copied values (2)');
    primary.thaw();
    expect(await primary.sql('select count(*) from copied')).toBe('1');
    expect(await standby.sql('select count(*) from copied')).toBe('2');
  });

  test.skipIf(withoutPooler !== undefined)('can stand behind a pooler', async () => {
    await using server = await startPostgres();
    await using pooler = await startPgBouncer({ server });
    expect(await server.sql('select 1')).toBe('1');
    expect(pooler.url).not.toBe(server.url);
  });
});
