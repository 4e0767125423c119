import type { PostgresExamination } from 'incumbent/postgres';
import { expect, test } from 'vitest';
import type { Finding } from '../src/doctor/finding.ts';
import {
  durabilityFindings,
  serverFinding,
  tableFinding,
  tlsFinding,
  wakeUpFinding,
} from '../src/doctor/postgres.ts';
import { parsePostgresUrl } from '../src/postgres/url.ts';

const well: PostgresExamination = {
  serverVersion: '15.18 (Debian 15.18-0+deb12u1)',
  inRecovery: false,
  noWakeUps: undefined,
  serverUnixMs: 0,
  tableExists: true,
  tableProblem: undefined,
  otherSchemas: [],
  missingPrivileges: [],
  fsync: true,
  fullPageWrites: true,
  synchronousCommit: 'on',
  synchronousStandbyNames: '',
  replicas: 0,
};

const line = ({ check, level, message }: Finding) => `${level} ${check} ${message}`;
const at = (url: string) => parsePostgresUrl(url, '--store', {});

test('a server that is well', () => {
  expect(line(serverFinding(well, 'PostgreSQL at h:5432'))).toBe(
    'ok server PostgreSQL at h:5432, version 15.18, primary',
  );
  expect(durabilityFindings(well).map(line)).toEqual([
    'ok durability synchronous_commit on, fsync on',
    'note replicas none: while the server is away nobody is elected',
  ]);
  expect(line(tableFinding(well, 'incumbent_election', 'joe'))).toBe(
    'ok table "incumbent_election" is as it should be; joe may select, insert, update',
  );
  expect(wakeUpFinding(well, at('postgres://h'))).toMatchObject({ level: 'ok' });
});

test.each([
  [{ inRecovery: true }, 'broken', 'is a read replica (or not promoted yet)'],
  [{ serverVersion: '11.22' }, 'warn', 'older than 12'],
])('a server that is %j', (change, level, words) => {
  const finding = serverFinding({ ...well, ...change }, 'PostgreSQL at h:5432');
  expect(finding).toMatchObject({ level, message: expect.stringContaining(words) });
});

test.each([
  [{ fsync: false }, 'warn durability fsync is off: a crash of the machine loses'],
  [{ fullPageWrites: false }, 'warn durability full_page_writes is off'],
  [{ synchronousCommit: 'off' }, 'note durability synchronous_commit is off here; the writes of'],
  [{ synchronousCommit: 'local' }, 'ok durability synchronous_commit local, fsync on'],
  [{ replicas: 2 }, 'warn replicas 2 replicas follow, none synchronously'],
  [
    { replicas: 1, synchronousStandbyNames: 'ANY 1 (*)' },
    'ok replicas 1 replica follows, synchronously those of "ANY 1 (*)"',
  ],
  [{ synchronousStandbyNames: 'a' }, 'warn replicas 0 replicas follow, synchronously those'],
])('durability with %j', (change, words) => {
  const found = durabilityFindings({ ...well, ...change }).map(line);
  expect(found.some((each) => each.startsWith(words))).toBe(true);
});

test.each([
  [
    { tableExists: false },
    'there is no table "x.y": `incumbent init` or `incumbent schema postgres --table x.y`',
  ],
  [{ tableProblem: 'it has no column "token"' }, '"x.y": it has no column "token"; compare it'],
  [
    { tableExists: false, otherSchemas: ['app'] },
    'no table "y" on the search path of joe, but there is one in the schema "app": name it with `?table=app.y`',
  ],
  [{ missingPrivileges: ['insert', 'update'] }, '"x.y": joe may not insert, update: grant'],
])('a table with %j', (change, words) => {
  const table = 'otherSchemas' in change ? 'y' : 'x.y';
  const { level, message } = tableFinding({ ...well, ...change }, table, 'joe');
  expect(level).toBe('broken');
  expect(message).toContain(words);
});

test('a table that is not the only one of its name', () => {
  const { level, message } = tableFinding({ ...well, otherSchemas: ['app'] }, 'y', 'joe');
  expect(level).toBe('warn');
  expect(message).toContain('the schema "app" has a table "y" as well');
});

test.each([
  [undefined, 'postgres://127.0.0.1', 'note', 'none, and the server is on this machine'],
  [undefined, 'postgres:///db?host=/run/pg', 'note', 'on this machine'],
  [undefined, 'postgres://db.example', 'warn', 'can be read on the way; sslmode=verify-full'],
  ['none', 'postgres://db?sslmode=require', 'note', 'is not looked at (sslmode=require)'],
  ['chain', 'postgres://db?sslmode=verify-ca', 'note', 'its name is not'],
  ['full', 'postgres://db?sslmode=verify-full', 'ok', 'and its name are checked'],
] as const)('TLS verified to %s on %s', (verification, url, level, words) => {
  const finding = tlsFinding(verification, at(url));
  expect(finding).toMatchObject({ level, message: expect.stringContaining(words) });
});

test('notifications that do not come', () => {
  const pooled = { ...well, noWakeUps: 'a pooler stands between' };
  expect(wakeUpFinding(pooled, at('postgres://h'))).toMatchObject({
    level: 'warn',
    message: expect.stringContaining('a pooler stands between; changes are found by polling'),
  });
  expect(wakeUpFinding(pooled, at('postgres://h?listen=false'))).toMatchObject({ level: 'note' });
});
