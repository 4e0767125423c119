import { expect, test } from 'vitest';
import { etcdParameters, hostWords, parseEtcdUrl } from '../src/etcd/url.ts';
import { refusal } from './support/refusal.ts';

const parse = (url: string, env: Readonly<Record<string, string>> = {}) =>
  parseEtcdUrl(url, '--store', env);

test('hosts, root, user, password and TLS', () => {
  const location = parse('etcd://h1,h2:2380,[::1]/apps/mine?ttl=4s');
  expect(location).toMatchObject({
    hosts: [
      { host: 'h1', port: 2379 },
      { host: 'h2', port: 2380 },
      { host: '::1', port: 2379 },
    ],
    options: { root: '/apps/mine/' },
    user: undefined,
    password: undefined,
    tls: undefined,
    ttlMs: 4_000,
    url: 'etcd://h1:2379,h2:2380,[::1]:2379/apps/mine?ttl=4s',
    origin: '--store',
  });
  expect(hostWords(location)).toBe('h1:2379, h2:2380, [::1]:2379');
  expect(parse('etcd://joe:s3cret@h')).toMatchObject({
    user: 'joe',
    password: { kind: 'literal', text: 's3cret' },
    url: 'etcd://joe:***@h:2379',
  });
  for (const url of ['ETCDS://h', 'etcd://h?tls=true']) expect(parse(url).tls).toEqual({});
  for (const url of ['etcd://h/', 'etcd://h']) expect(parse(url).options).toEqual({});
  expect(parse('etcd://h?root=app-').options).toEqual({ root: 'app-' });
});

test('its plain form is read as the same again', () => {
  const url =
    'etcds://h1:1,h2:2/a%20b/c?ttl=10s&tls=true&user=joe&password=env:ETCD&tls-ca=ca.pem' +
    '&tls-cert=c.pem&tls-key=k.pem&tls-servername=etcd.x&predecessor-wait=off&recheck=5s' +
    '&on-disconnect=step-down&election-timeout=500ms&delay-after-win=250ms';
  const parsed = parse(url);
  expect(parse(parsed.url)).toEqual(parsed);
  expect(parsed).toMatchObject({
    user: 'joe',
    password: { kind: 'env', name: 'ETCD' },
    tls: { ca: 'ca.pem', cert: 'c.pem', key: 'k.pem', servername: 'etcd.x' },
    ttlMs: 10_000,
    options: {
      root: '/a b/c/',
      onDisconnect: 'step-down',
      predecessorWait: 'off',
      recheck: '5s',
      electionTimeout: '500ms',
      delayAfterWin: '250ms',
    },
  });
  // None of them was left out above.
  for (const name of etcdParameters) if (name !== 'root') expect(url).toContain(`${name}=`);
});

test('the variables of etcdctl fill the gaps of the URL', () => {
  const env = {
    ETCDCTL_USER: 'joe:s3:cret',
    ETCDCTL_CACERT: 'ca',
    ETCDCTL_CERT: 'c',
    ETCDCTL_KEY: 'k',
  };
  expect(parse('etcds://h', env)).toMatchObject({
    user: 'joe',
    password: { kind: 'literal', text: 's3:cret' },
    tls: { ca: 'ca', cert: 'c', key: 'k' },
    url: 'etcds://joe@h:2379',
  });
  expect(parse('etcd://h', { ETCDCTL_USER: 'joe', ETCDCTL_PASSWORD: 'x' })).toMatchObject({
    user: 'joe',
    password: { kind: 'env', name: 'ETCDCTL_PASSWORD' },
    tls: undefined,
  });
  expect(parse('etcd://ann@h', { ETCDCTL_PASSWORD: 'x' })).toMatchObject({
    user: 'ann',
    password: { kind: 'env', name: 'ETCDCTL_PASSWORD' },
  });
  // A certificate may say who we are.
  expect(parse('etcds://ann@h?tls-cert=c&tls-key=k')).toMatchObject({ user: 'ann' });
});

test.each([
  ['etcd:h', 'has no "//" behind its scheme'],
  ['etcd://', 'names no host'],
  ['etcd://h,,i', 'has an empty host'],
  ['etcd://http://h', 'has no port behind "http:"'],
  ['etcd://h:99999', 'has no port behind "h:"'],
  ['etcd://h/a//b', 'has an empty name in its path'],
  ['etcd://joe@h', 'has the user "joe" and no password: set ETCDCTL_PASSWORD, or add'],
  ['etcd://h?password=env:X', 'has a password and no user'],
  ['etcd://joe:x@h?user=ann', 'has two users'],
  ['etcd://h/a?root=b', 'has two roots'],
  ['etcd://h?on-disconnect=x', 'which is hold, step-down, not "x"'],
  ['etcd://h?ttl=10', 'has the parameter ttl, which is a duration such as'],
  ['etcd://h?ttl=0s', 'which is a duration of 1ms or more, not "0s"'],
  ['etcd://h?tls-ca=ca.pem', 'has the parameter tls-ca, which is for TLS: write etcds://'],
  ['etcds://h?tls=false', 'has etcds: in front and tls=false behind'],
  ['etcds://h?tls-key=k.pem', 'has one of tls-cert and tls-key'],
  ['etcd://h?prefix=/x', 'has the unknown parameter "prefix"; there are ttl, tls, user,'],
  ['etcd://h?predecessor-wait=no', 'which is belief, off, not "no"'],
  ['etcd://h?recheck=soon', 'has the parameter recheck, which is a duration'],
])('%s is refused: %s', (url, words) => {
  const error = refusal(() => parse(url));
  expect(error).toMatchObject({ code: 'BAD_STORE_URL', exitCode: 64 });
  expect(error.message).toContain('the etcd URL of --store ');
  expect(error.message).toContain(words);
  expect(error.message).toContain(
    'one looks like etcd://h1:2379,h2:2379,h3:2379/elections?ttl=10s',
  );
});

test.each([
  'etcd://joe:s3cret',
  'etcd://joe:a/s3cret@h',
  'etcd://joe:a?s3cret@h',
  'etcd://joe:a#s3cret@h',
  'etcd://joe:s3cret%@h',
  'etcd://joe:s3cret@h?password=s3cret',
  'etcd://joe:s3cret@h?ttl=x',
  'etcd://h?user=joe&password=x&s3cret',
  'etcd:joe:s3cret@h',
])('what may be a password is not repeated: %s', (url) => {
  expect(refusal(() => parse(url)).message).not.toContain('s3cret');
});

test('a password in the URL is read, and not shown', () => {
  expect(parse('etcd://joe:s3cret@h').url).toBe('etcd://joe:***@h:2379');
  expect(parse('etcd://h?user=joe&password=s3cret').url).toBe(
    'etcd://h:2379?user=joe&password=***',
  );
});
