import { describe, expect, test } from 'vitest';
import { guardFor } from '../src/backends/postgres/guard.ts';
import type { PostgresClient, PostgresOptions } from '../src/backends/postgres/index.ts';
import { fenceTrigger, postgres, schema } from '../src/backends/postgres/index.ts';
import { checkOptions, quoteText } from '../src/backends/postgres/options.ts';
import { InvalidOptionError } from '../src/base/errors.ts';

const pool = {
  connect: async () => Promise.reject(new Error('nobody connects here')),
  query() {},
  on() {},
  totalCount: 0,
  idleCount: 0,
};

describe('options of postgres()', () => {
  test.each<[string, object, RegExp]>([
    ['an unknown one', { tabel: 'x' }, /no option "tabel"; it knows table, age, clockStep, listen/],
    [
      'a table that is no name',
      { table: 'x; drop table y' },
      /table must be a name .* not "x; drop/,
    ],
    ['a table in two schemas', { table: 'a.b.c' }, /table must be a name/],
    ['a name that the server would cut off', { table: 'x'.repeat(64) }, /at most 63/],
    ['no table', { table: 7 }, /not 7/],
    ['an age that is neither', { age: true }, /age must be "on" or "off", not true/],
    ['a step without ages', { age: 'off', clockStep: '1s' }, /leave one of them out/],
    ['a step that is no duration', { clockStep: 'soon' }, /clockStep "soon" is not a duration/],
    ['listening that is neither', { listen: 'no' }, /listen must be true or false, not "no"/],
    ['durability that is neither', { durable: 'yes' }, /durable must be true or false, not "yes"/],
  ])('refuse %s', (_what, options, message) => {
    const make = () => postgres(pool, options as PostgresOptions);
    expect(make).toThrow(InvalidOptionError);
    expect(make).toThrow(message);
  });

  test('have defaults', () => {
    expect(checkOptions({})).toEqual({
      table: { name: 'incumbent_election', sql: '"incumbent_election"' },
      clockStepMs: 2_000,
      listens: true,
      durable: false,
    });
    expect(checkOptions({ age: 'off' }).clockStepMs).toBeUndefined();
    expect(checkOptions({ table: 'App.Election' }).table.sql).toBe('"App"."Election"');
  });
});

describe('a client of postgres()', () => {
  test.each<[string, unknown, RegExp]>([
    ['a connection string', 'postgres://ann:secret@db', /not a string: postgres\(new pg.Pool\(\{/],
    ['nothing', undefined, /a Pool or a Client of the package "pg", or the sql .* not undefined/],
    ['another library’s', { raw() {}, transaction() {} }, /not a value of type object/],
    [
      'the sql of a transaction',
      Object.assign(() => {}, { unsafe() {} }),
      /not that of a transaction/,
    ],
  ])('is refused: %s', (_what, client, message) => {
    const make = () => postgres(client as PostgresClient);
    expect(make).toThrow(InvalidOptionError);
    expect(make).toThrow(message);
  });

  test('is named in the description, without its password', () => {
    expect(postgres(pool, { table: 'app.e' }).description).toBe(
      'PostgreSQL by the Pool of pg, table app.e',
    );
    const sql = Object.assign(() => {}, { unsafe() {}, listen() {} });
    expect(postgres(sql as unknown as PostgresClient).description).toContain('the sql of postgres');
    const client = { query() {}, connect() {}, on() {} };
    expect(postgres(client as unknown as PostgresClient).description).toContain('the Client of pg');
  });
});

describe('printed SQL', () => {
  test('makes the table that is named', () => {
    expect(schema()).toContain('create table if not exists "incumbent_election" (');
    expect(schema({ table: 'app.e' })).toContain('create table if not exists "app"."e" (');
    expect(() => schema({ table: '"' })).toThrow(InvalidOptionError);
  });

  test('protects the table and column that are named, and no other', () => {
    expect(fenceTrigger({ table: 'app.orders', column: 'Token' })).toContain(
      'alter table "app"."orders" add column if not exists "Token" bigint',
    );
    expect(() => fenceTrigger({ table: 'orders; drop' })).toThrow(InvalidOptionError);
    expect(() => fenceTrigger({ table: 'orders', column: 'a"b' })).toThrow(InvalidOptionError);
  });

  test('quotes the names of elections, however strings are read', () => {
    expect(quoteText("o'clock")).toBe("'o''clock'");
    expect(quoteText("\\'")).toBe(" E'\\\\'''");
    const { table } = checkOptions({});
    expect(guardFor(table, "it's", 7n)).toEqual({
      token: 7n,
      sql: `exists (select 1 from "incumbent_election" where name = 'it''s' and token = 7 and held for key share)`,
    });
  });
});
