import { expect, test } from 'vitest';
import { hostWords, parsePostgresUrl, postgresParameters } from '../src/postgres/url.ts';
import { refusal } from './support/refusal.ts';

const parse = (url: string, env: Readonly<Record<string, string>> = {}) =>
  parsePostgresUrl(url, '--store', env);

test('user, password, host, port and database', () => {
  expect(parse('postgres://joe:s3cret@db.example:5433/app')).toMatchObject({
    hosts: [{ host: 'db.example', port: 5433 }],
    user: 'joe',
    password: { kind: 'literal', text: 's3cret' },
    database: 'app',
    ssl: { mode: 'prefer', rootCert: undefined, cert: undefined, key: undefined },
    applicationName: 'incumbent',
    url: 'postgres://joe:***@db.example:5433/app',
    origin: '--store',
  });
  expect(parse('POSTGRESQL://[::1]').hosts).toEqual([{ host: '::1', port: 5432 }]);
  expect(parse('postgres://h')).toMatchObject({
    user: undefined,
    password: undefined,
    database: undefined,
    url: 'postgres://h:5432',
  });
  expect(parse('postgres://')).toMatchObject({ hosts: [{ host: 'localhost', port: 5432 }] });
});

test('several hosts, of which one is the primary', () => {
  const location = parse('postgres://h1,h2:5433,[::1]:5434/app');
  expect(location.hosts).toEqual([
    { host: 'h1', port: 5432 },
    { host: 'h2', port: 5433 },
    { host: '::1', port: 5434 },
  ]);
  expect(hostWords(location)).toBe('h1:5432, h2:5433, [::1]:5434');
});

test('escapes, and a password with everything in it', () => {
  expect(parse('postgres://j%40e:a%2Fb%3Fc%23d%25@h/d%2Fb')).toMatchObject({
    user: 'j@e',
    password: { kind: 'literal', text: 'a/b?c#d%' },
    database: 'd/b',
    url: 'postgres://j%40e:***@h:5432/d%2Fb',
  });
  expect(parse('postgres://joe:a@b:c@h').password).toEqual({ kind: 'literal', text: 'a@b:c' });
});

test('a directory of sockets', () => {
  const location = parse('postgres:///app?host=/var/run/postgresql');
  expect(location).toMatchObject({
    hosts: [{ host: '/var/run/postgresql', port: 5432 }],
    database: 'app',
    url: 'postgres:///app?host=/var/run/postgresql',
  });
  expect(hostWords(location)).toBe('/var/run/postgresql/.s.PGSQL.5432');
});

test('its plain form is read as the same again', () => {
  const url =
    'postgres://h1:1,h2:2/app?user=joe&password=file:/run/secrets/pg%20x&sslmode=verify-full' +
    '&sslrootcert=ca.pem&sslcert=c.pem&sslkey=k.pem&application_name=cron%26me&options=-c%20x=y' +
    '&channel_binding=prefer&table=ops.elections&listen=false&age=on&clock-step=5s';
  const parsed = parse(url);
  expect(parse(parsed.url)).toEqual(parsed);
  expect(parsed).toMatchObject({
    user: 'joe',
    password: { kind: 'file', path: '/run/secrets/pg x' },
    ssl: { mode: 'verify-full', rootCert: 'ca.pem', cert: 'c.pem', key: 'k.pem' },
    applicationName: 'cron&me',
    sessionOptions: '-c x=y',
    options: { table: 'ops.elections', listen: false, age: 'on', clockStep: '5s' },
  });
  // None of them was left out above, but the one that stands for the hosts.
  for (const name of postgresParameters) if (name !== 'host') expect(url).toContain(`${name}=`);
});

test('the variables of libpq fill the gaps of the URL', () => {
  const env = {
    PGHOST: 'db',
    PGPORT: '6432',
    PGUSER: 'ann',
    PGPASSWORD: 's3cret',
    PGDATABASE: 'app',
    PGSSLMODE: 'verify-ca',
    PGSSLROOTCERT: '/ca.pem',
    PGAPPNAME: 'nightly',
    PGOPTIONS: '-c a=b',
  };
  expect(parse('postgres://', env)).toMatchObject({
    hosts: [{ host: 'db', port: 6432 }],
    user: 'ann',
    password: { kind: 'env', name: 'PGPASSWORD' },
    database: 'app',
    ssl: { mode: 'verify-ca', rootCert: '/ca.pem' },
    applicationName: 'nightly',
    sessionOptions: '-c a=b',
    url: 'postgres://ann@db:6432/app',
  });
  expect(parse('postgres://joe:own@h:1/x?sslmode=disable', env)).toMatchObject({
    hosts: [{ host: 'h', port: 1 }],
    user: 'joe',
    password: { kind: 'literal', text: 'own' },
    database: 'x',
    ssl: { mode: 'disable' },
  });
});

test.each([
  ['postgres:h', 'has no "//" behind its scheme'],
  ['postgres://h,,i', 'has an empty host'],
  ['postgres://h:99999', 'has no port behind "h:": a port is a number from 1 to 65535'],
  ['postgres://h:x', 'has no port behind "h:"'],
  ['postgres://::1/db', 'an IPv6 address stands in brackets: [::1]:5432'],
  ['postgres://h&sslmode=require', 'has parameters without a "?"'],
  ['postgres://h/a#b', 'has a "#": in a password or a value write %23'],
  ['postgres://h/%zz', 'has a "%" without two hex digits in its path; write %25'],
  ['postgres://%2Fvar%2Frun/db', 'write postgres:///database?host=/var/run/postgresql'],
  ['postgres://h/db?host=i', 'has two hosts'],
  ['postgres://joe@h/db?user=ann', 'has two users'],
  [
    'postgres://h/db?ssl=true',
    'has the unknown parameter "ssl"; there are user, password, host, sslmode, sslrootcert,',
  ],
  ['postgres://h/db?sslmode', 'has no value for the parameter sslmode'],
  ['postgres://h/db?sslmode=', 'has no value for the parameter sslmode'],
  ['postgres://h/db?table=a&table=b', 'has two parameters table'],
  [
    'postgres://h/db?sslmode=yes',
    'has the parameter sslmode, which is disable, prefer, require, verify-ca, verify-full, not "yes"',
  ],
  ['postgres://h/db?sslcert=c.pem', 'has one of sslcert and sslkey'],
  [
    'postgres://h/db?sslmode=disable&sslrootcert=ca',
    'has the parameter sslrootcert, which is for TLS',
  ],
  ['postgres://h/db?channel_binding=require', 'is disable or prefer: this client cannot insist'],
  [
    'postgres://h/db?table=a.b.c',
    'is a table such as incumbent_election or app.election, not "a.b.c"',
  ],
  ['postgres://h/db?table=a;drop', 'is a table such as'],
  ['postgres://h/db?listen=no', 'has the parameter listen, which is true or false, not "no"'],
  ['postgres://h/db?age=yes', 'has the parameter age, which is on, off, not "yes"'],
  ['postgres://h/db?age=off&clock-step=1s', 'clock-step, which means nothing with age=off'],
  ['postgres://h/db?clock-step=5', 'which is a duration such as 500ms, 10s or 2m, not "5"'],
  [
    'postgres://h/db?password=env:A-B',
    'has behind env: no name of a variable, such as env:PGPASSWORD',
  ],
  ['postgres://h/db?password=file:', 'has behind file: no path'],
])('%s is refused: %s', (url, words) => {
  const error = refusal(() => parse(url));
  expect(error).toMatchObject({ code: 'BAD_STORE_URL', exitCode: 64 });
  expect(error.message).toContain('the PostgreSQL URL of --store ');
  expect(error.message).toContain(words);
  expect(error.message).toContain('one looks like postgres://user@host:5432/database');
});

test('a variable that cannot be used is named', () => {
  const { message } = refusal(() => parse('postgres://h', { PGSSLMODE: 'on' }));
  expect(message).toContain('is to go by the variable PGSSLMODE, which is disable, prefer');
});

test.each([
  'postgres://joe:s3cret',
  'postgres://joe:s3cret:5432',
  'postgres://joe:[s3cret]',
  'postgres://joe:a/s3cret@h/db',
  'postgres://joe:5432/s3cret@h/db',
  'postgres://joe:a?s3cret@h/db',
  'postgres://joe:5432?s3cret@h/db',
  'postgres://joe:a?s3cret=x@h/db',
  'postgres://joe:a#s3cret@h/db',
  'postgres://joe:s3cret%@h/db',
  'postgres://joe:s3cret@h:x',
  'postgres://joe:s3cret@h/a@b',
  'postgres://joe:s3cret@h/db?password=s3cret',
  'postgres://joe:s3cret@h?sslmode=x',
  'postgres://h?password=s3cret%',
  'postgres://h?password=x&s3cret',
  'postgres://h?password=x&s3cret=y',
  'postgres://h?password=s3cret&listen=x',
  'postgres:joe:s3cret@h',
])('what may be a password is not repeated: %s', (url) => {
  expect(refusal(() => parse(url)).message).not.toContain('s3cret');
});

test('a password in the URL is read, and not shown', () => {
  expect(parse('postgres://joe:s3cret@h').url).toBe('postgres://joe:***@h:5432');
  const { url, password } = parse('postgres://joe@h?password=s3cret');
  expect(url).toBe('postgres://joe@h:5432?password=***');
  expect(password).toEqual({ kind: 'literal', text: 's3cret' });
});
