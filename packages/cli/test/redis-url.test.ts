import { expect, test } from 'vitest';
import { hostWords, parseRedisUrl, redisParameters } from '../src/redis/url.ts';
import { refusal } from './support/refusal.ts';

const parse = (url: string, env: Readonly<Record<string, string>> = {}) =>
  parseRedisUrl(url, '--store', env);

test('one server: user, password, host, port, database and TLS', () => {
  expect(parse('redis://joe:s3cret@cache:6380/2')).toMatchObject({
    kind: 'server',
    hosts: [{ host: 'cache', port: 6380 }],
    user: 'joe',
    password: { kind: 'literal', text: 's3cret' },
    database: 2,
    tls: undefined,
    url: 'redis://joe:***@cache:6380/2',
    origin: '--store',
  });
  // As redis-cli has it: a password alone.
  expect(parse('redis://:s3cret@h')).toMatchObject({
    user: undefined,
    password: { kind: 'literal', text: 's3cret' },
    url: 'redis://:***@h:6379',
  });
  expect(parse('REDISS://[::1]')).toMatchObject({
    hosts: [{ host: '::1', port: 6379 }],
    tls: {},
    url: 'rediss://[::1]:6379',
  });
  expect(parse('redis://')).toMatchObject({ hosts: [{ host: 'localhost', port: 6379 }] });
});

test('sentinels, and the nodes of a cluster', () => {
  const sentinels = parse(
    'redis://joe:s3cret@s1,s2:26380,s3/1?sentinel=main&sentinel-user=s&sentinel-password=env:S',
  );
  expect(sentinels).toMatchObject({
    kind: 'sentinel',
    master: 'main',
    hosts: [
      { host: 's1', port: 26379 },
      { host: 's2', port: 26380 },
      { host: 's3', port: 26379 },
    ],
    user: 'joe',
    database: 1,
    sentinelUser: 's',
    sentinelPassword: { kind: 'env', name: 'S' },
  });
  expect(hostWords(sentinels)).toBe('s1:26379, s2:26380, s3:26379');
  expect(parse('redis://h1,h2?cluster=true')).toMatchObject({ kind: 'cluster', database: 0 });
  expect(parse('redis://h1?cluster=false')).toMatchObject({ kind: 'server' });
});

test('its plain form is read as the same again', () => {
  const common =
    'password=file:/run/secrets/r&tls-ca=ca.pem&tls-cert=c.pem&tls-key=k.pem&tls-servername=r.x' +
    '&prefix=app%26:&age=on&clock-step=3s&token-floor=41&wait=2&wait-timeout=500ms' +
    '&durable=true&listen=false';
  const urls = [
    `rediss://h:1/3?${common}`,
    'redis://s1:1,s2:2?sentinel=main&sentinel-user=joe&sentinel-password=env:S',
    'redis://h1:1,h2:2?cluster=true',
  ];
  for (const url of urls) expect(parse(parse(url).url)).toEqual(parse(url));
  expect(parse(urls[0]!)).toMatchObject({
    password: { kind: 'file', path: '/run/secrets/r' },
    tls: { ca: 'ca.pem', cert: 'c.pem', key: 'k.pem', servername: 'r.x' },
    options: {
      prefix: 'app&:',
      age: 'on',
      clockStep: '3s',
      tokenFloor: 41n,
      wait: { replicas: 2, timeout: '500ms' },
      durable: true,
      listen: false,
    },
  });
  // None of them was left out above.
  for (const name of redisParameters) expect(urls.join('&')).toContain(`${name}=`);
});

test('a password comes from the environment too, and that of the URL wins', () => {
  const env = { REDIS_USERNAME: 'ann', REDISCLI_AUTH: 'b' };
  expect(parse('redis://h', env)).toMatchObject({
    user: 'ann',
    password: { kind: 'env', name: 'REDISCLI_AUTH' },
  });
  expect(parse('redis://h', { ...env, REDIS_PASSWORD: 'a' }).password).toEqual({
    kind: 'env',
    name: 'REDIS_PASSWORD',
  });
  expect(parse('redis://joe:c@h', env)).toMatchObject({
    user: 'joe',
    password: { kind: 'literal', text: 'c' },
  });
});

test('a user without a password is refused, for the client would be the user "default"', () => {
  const rule = 'has the user "joe" and no password: set REDIS_PASSWORD, or add password=env:NAME';
  expect(refusal(() => parse('redis://joe@h')).message).toContain(rule);
  expect(refusal(() => parse('redis://joe:@h')).message).toContain(rule);
  expect(refusal(() => parse('redis://h', { REDIS_USERNAME: 'joe' })).message).toContain(
    'has the user "joe" (REDIS_USERNAME) and no password',
  );
  expect(parse('redis://joe@h', { REDIS_PASSWORD: 'x' }).user).toBe('joe');
  expect(parse('redis://joe@h?password=file:/p').user).toBe('joe');
  const sentinel = 'redis://h?sentinel=m&sentinel-user=joe';
  expect(refusal(() => parse(sentinel)).message).toContain(
    'has the sentinel-user "joe" and no password: add sentinel-password=env:NAME',
  );
});

test.each([
  ['redis:h', 'has no "//" behind its scheme'],
  ['redis://h1,h2', 'has several hosts: for sentinels add sentinel=NAME'],
  ['redis://h1,h2?cluster=true&sentinel=m', 'has both sentinel and cluster'],
  ['redis://h?sentinel-user=x', 'has the parameter sentinel-user and no sentinel=NAME'],
  ['redis://h?cluster=true&sentinel-password=env:X', 'sentinel-password and no sentinel=NAME'],
  ['redis://h/1?cluster=true', 'has the database 1, and a cluster has only 0'],
  ['redis://h/app', 'has the database "app", which is a number: /0'],
  ['redis://h:0', 'has no port behind "h:"'],
  ['redis://h?db=1', 'has the unknown parameter "db"; there are sentinel, cluster, password,'],
  ['redis://h?toString=1', 'has the unknown parameter "toString"'],
  ['redis://h?tls-ca=ca.pem', 'has the parameter tls-ca, which is for TLS: write rediss://'],
  ['rediss://h?tls-cert=c.pem', 'has one of tls-cert and tls-key'],
  ['redis://h?cluster=yes', 'has the parameter cluster, which is true or false, not "yes"'],
  ['redis://h?wait=0', 'is a whole number from 1 to 100, not "0"'],
  ['redis://h?cluster=true&wait=1', 'has the parameter wait, which a cluster cannot do'],
  ['redis://h?wait-timeout=1s', 'has the parameter wait-timeout and no wait=REPLICAS'],
  [
    'redis://h?age=off&clock-step=1s',
    'has the parameter clock-step, which means nothing with age=off',
  ],
  ['redis://h?token-floor=x', 'is a token such as 42, not "x"'],
  ['redis://h?clock-step=3', 'is a duration such as'],
  ['redis://h?age=server', 'which is on, off, not "server"'],
])('%s is refused: %s', (url, words) => {
  const error = refusal(() => parse(url));
  expect(error).toMatchObject({ code: 'BAD_STORE_URL', exitCode: 64 });
  expect(error.message).toContain('the Redis URL of --store ');
  expect(error.message).toContain(words);
  expect(error.message).toContain('one looks like redis://host:6379/0');
});

test.each([
  'redis://:s3cret',
  'redis://joe:s3cret',
  'redis://:a/s3cret@h',
  'redis://:a?s3cret@h',
  'redis://:a#s3cret@h',
  'redis://:s3cret%@h',
  'redis://:s3cret@h/x',
  'redis://:s3cret@h1,h2',
  'redis://:s3cret@h?password=s3cret',
  'redis://h?password=x&s3cret',
  'redis://h?sentinel-password=s3cret',
  'redis://h?sentinel=m&sentinel-password=s3cret&age=x',
  'redis:s3cret@h',
])('what may be a password is not repeated: %s', (url) => {
  expect(refusal(() => parse(url)).message).not.toContain('s3cret');
});

test('a password in the URL is read, and not shown', () => {
  const url = 'redis://s1?sentinel=m&password=s3cret&sentinel-password=s3cret';
  expect(parse(url).url).toBe('redis://s1:26379?sentinel=m&password=***&sentinel-password=***');
});
