import { acl, permissions } from '@incumbent/zookeeper';
import { expect, test } from 'vitest';
import { CommandError } from '../src/failure.ts';
import { parameterNames } from '../src/zookeeper/parameters.ts';
import { parseZooKeeperUrl } from '../src/zookeeper/url.ts';

const parse = (url: string) => parseZooKeeperUrl(url, '--store');
const options = (query: string) => parse(`zk://h?${query}`).parameters.options;

function refusal(url: string): CommandError {
  try {
    parse(url);
  } catch (error) {
    if (error instanceof CommandError) return error;
    throw error;
  }
  throw new Error(`${url} was not refused`);
}

test('hosts, ports, chroot and scheme', () => {
  expect(parse('zk://h1:2181,[::1]:2182,h3/app/x')).toMatchObject({
    scheme: 'zk',
    hosts: [
      { host: 'h1', port: 2181 },
      { host: '::1', port: 2182 },
      { host: 'h3', port: 2181 },
    ],
    chroot: '/app/x',
    url: 'zk://h1:2181,[::1]:2182,h3:2181/app/x',
    origin: '--store',
  });
  expect(parse('ZKS://h')).toMatchObject({ scheme: 'zks', chroot: '/', url: 'zks://h:2181' });
  expect(parse('zk://h/')).toMatchObject({ chroot: '/', url: 'zk://h:2181' });
});

test('its plain form is read as the same again', () => {
  const url =
    'zks://h:1/a%20b%3Fc?timeout=4s&layout=kazoo&root=/x&acl=world:anyone:r&acl=auth::rwcda' +
    '&create=false&on-disconnect=step-down&predecessor-wait=off&recheck=5s&tick-time=1s&poll=2s' +
    '&delay-after-win=250ms&active-data=a%26b%2Bc&auth=env:ZK&auth=file:/etc/a%20b&sasl=env:S' +
    '&tls-ca=ca.pem&tls-cert=c.pem&tls-key=k.pem&tls-servername=zk.example&compatibility=3.5';
  const parsed = parse(url);
  expect(parse(parsed.url)).toEqual(parsed);
  expect(parsed.parameters).toEqual({
    timeoutMs: 4_000,
    compatibility: '3.5',
    auth: [
      { kind: 'env', name: 'ZK' },
      { kind: 'file', path: '/etc/a b' },
    ],
    sasl: { kind: 'env', name: 'S' },
    tls: { ca: 'ca.pem', cert: 'c.pem', key: 'k.pem', servername: 'zk.example' },
    options: {
      layout: 'kazoo',
      root: '/x',
      acl: [acl.world(permissions.read), acl.auth()],
      create: false,
      onDisconnect: 'step-down',
      predecessorWait: 'off',
      recheck: '5s',
      tickTime: '1s',
      poll: '2s',
      delayAfterWin: '250ms',
      activeData: 'a&b+c',
    },
  });
  // None of them was left out above.
  for (const name of parameterNames) expect(url).toContain(`${name}=`);
});

test('a "+" is a "+": passwords have them', () => {
  expect(parse('zk://h?auth=digest:joe:a+b').parameters.auth).toEqual([
    { kind: 'literal', text: 'digest:joe:a+b' },
  ]);
});

test('ACLs are written as for incumbent-zk', () => {
  expect(options('acl=creator').acl).toBe('creator');
  expect(options('acl=open').acl).toBe('open');
  expect(options('acl=digest:joe:secret:rw').acl).toEqual([acl.digest('joe', 'secret', 3)]);
  expect(options('acl=digest-hash:joe:aGFzaA==:r').acl).toEqual([
    { scheme: 'digest', id: 'joe:aGFzaA==', perms: 1 },
  ]);
  expect(options('acl=ip:10.0.0.0/8:rwcda&acl=x509:CN=joe,O=us:r').acl).toEqual([
    acl.ip('10.0.0.0/8'),
    acl.x509('CN=joe,O=us', 1),
  ]);
});

test.each([
  ['zk:h', 'has no "//" behind its scheme'],
  ['zk://', 'names no host'],
  ['zk://h,,i', 'has an empty host'],
  ['zk://h:99999', 'has the port "99999" in "h:99999"; ports are 1 to 65535'],
  ['zk://::1:2181', 'has the host "::1:2181", which is none (an IPv6 address stands in brackets'],
  ['zk://h/a//b', 'has a chroot that cannot be'],
  ['zk://h/a/../b', 'has a chroot that cannot be'],
  ['zk://h/%zz', 'has a chroot with a broken "%" escape'],
  ['zk://h/a,i/a', 'has hosts behind the chroot'],
  ['zk://h?layout=zk', 'has the parameter layout, which is incumbent, golea, curator-latch'],
  ['zk://h?layout', 'has no value for the parameter layout'],
  ['zk://h?layout=', 'has no value for the parameter layout'],
  ['zk://h?layout=golea&layout=kazoo', 'has two parameters layout'],
  [
    'zk://h?onDisconnect=hold',
    'has the unknown parameter "onDisconnect"; there are timeout, layout, root, acl,',
  ],
  ['zk://h?toString=1', 'has the unknown parameter "toString"'],
  [
    'zk://h?timeout=10',
    'has the parameter timeout, which is a duration such as 500ms, 10s or 2m, not "10"',
  ],
  ['zk://h?timeout=0s', 'which is a duration of 1ms or more, not "0s"'],
  ['zk://h?timeout=10s?layout=golea', 'not "10s?layout=golea"'],
  ['zk://h?recheck=soon', 'has the parameter recheck, which is a duration'],
  ['zk://h?tick-time=-2s', 'has the parameter tick-time, which is a duration'],
  ['zk://h?poll=2', 'has the parameter poll, which is a duration'],
  ['zk://h?delay-after-win=x', 'has the parameter delay-after-win, which is a duration'],
  [
    'zk://h?root=elections',
    'has the parameter root, which is the path of a node such as /elections, not "elections"',
  ],
  ['zk://h?create=yes', 'has the parameter create, which is true or false, not "yes"'],
  [
    'zk://h?on-disconnect=stop',
    'has the parameter on-disconnect, which is hold, step-down, not "stop"',
  ],
  [
    'zk://h?predecessor-wait=on',
    'has the parameter predecessor-wait, which is belief, off, not "on"',
  ],
  ['zk://h?compatibility=3.3', 'has the parameter compatibility, which is 3.4, 3.5, not "3.3"'],
  ['zk://h?active-data=%', 'has a "%" without two hex digits in the parameter active-data'],
  ['zk://h?tls-ca=ca.pem', 'has the parameter tls-ca, which is for TLS: write zks://'],
  ['zks://h?tls-cert=c.pem', 'has one of tls-cert and tls-key'],
  ['zk://h/a#b', 'has a "#"'],
  ['zk://h?acl=open&acl=auth::r', 'has the parameter acl=open, which stands alone'],
  ['zk://h?acl=auth::r&acl=creator', 'has the parameter acl=creator, which stands alone'],
  ['zk://h?acl=world:joe:r', 'has of the scheme world only world:anyone'],
  ['zk://h?acl=world:anyone:rx', 'allows some of r, w, c, d, a'],
  ['zk://h?acl=everybody', 'which is open, creator, or SCHEME:ID:PERMISSIONS'],
  ['zk://h?auth=env:A-B', 'has behind env: no name of a variable'],
  ['zk://h?auth=file:', 'has behind file: no path'],
])('%s is refused: %s', (url, words) => {
  const error = refusal(url);
  expect(error).toMatchObject({ code: 'BAD_STORE_URL', exitCode: 64 });
  expect(error.message).toContain(`the ZooKeeper URL of --store `);
  expect(error.message).toContain(words);
  expect(error.message).toContain('one looks like zk://h1:2181,h2:2181,h3:2181/chroot?timeout=10s');
});

test.each([
  'zk://joe:s3cret@h',
  'zk://h?auth=s3cret',
  'zk://h?auth=:s3cret',
  'zk://h?sasl=s3cret',
  'zk://h?acl=digest:s3cret:r',
  'zk://h?acl=digest:joe:s3cret',
  'zk://h?acl=digest:joe:s3cret:xyz',
  'zk://h?auth=digest:joe:s3cret%',
  'zk://h?auth=digest:joe:x&s3cret',
  'zk://h?auth=digest:joe:x&s3cret=y',
  'zk://h?auth=digest:joe:s3cret#x',
  'zk://h?auth=digest:joe:s3cret&timeout=never',
  'zk://h/chroot&auth=digest:joe:s3cret',
  'zk://h&auth=digest:joe:s3cret',
  'zk://h;auth=digest:joe:s3cret',
  'zk:h?auth=digest:joe:s3cret',
])('what may be a password is not repeated: %s', (url) => {
  expect(refusal(url).message).not.toContain('s3cret');
});

test('a password in the URL is read, and not shown', () => {
  const { url, parameters } = parse(
    'zk://h?auth=digest:joe:s3cret&auth=foo:s3cret&sasl=joe:s3cret&acl=digest:joe:s3cret:rw',
  );
  expect(url).toBe('zk://h:2181?auth=digest:***&auth=***&sasl=***&acl=digest:***:rw');
  expect(parameters.auth).toEqual([
    { kind: 'literal', text: 'digest:joe:s3cret' },
    { kind: 'literal', text: 'foo:s3cret' },
  ]);
  expect(parameters.sasl).toEqual({ kind: 'literal', text: 'joe:s3cret' });
});
