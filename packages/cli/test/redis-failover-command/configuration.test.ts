// The meaning of flags, variables and files, and what is refused. Each refusal names its source.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { ManagerOptions } from '../../../redis-failover/src/manager/options.ts';
import type { FakeManager } from './fake-manager.ts';
import { tableOf } from './fake-manager.ts';
import type { Invocation } from './invoke.ts';
import { Running } from './invoke.ts';

function directory(files: Readonly<Record<string, string>>): string {
  const path = mkdtempSync(join(tmpdir(), 'incumbent-redis-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(path, name), text, { mode: 0o600 });
  }
  return path;
}

interface Outcome {
  readonly options: ManagerOptions | undefined;
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The options that `manage` gives to its manager. */
async function manage(argv: readonly string[], invocation: Invocation = {}): Promise<Outcome> {
  const managers: FakeManager[] = [];
  const table = tableOf((manager) => managers.push(manager));
  const running = new Running(['manage', ...argv], { ...invocation, table });
  await Promise.race([running.result, running.printed(/"event":"started"/)]);
  running.signal('SIGTERM');
  const result = await running.result;
  return { options: managers[0]?.options, ...result };
}

async function manageFile(yaml: string, ...argv: string[]): Promise<Outcome> {
  return manage(['-C', 'config.yml', ...argv], { cwd: directory({ 'config.yml': yaml }) });
}

test('flags', async () => {
  const argv = ['-n', 'a:1, b:2,[::1]:3', '-z', 'zk1,zk2:2182/ch', '--root', '/r/s', '--id', 'm1'];
  const more = [
    ...['--max-failures', '5', '--check-every', '1s', '--node-timeout', '250ms'],
    ...['--node-strategy', 'single', '--failover-strategy', 'latency'],
    ...['--required-node-managers', '2', '--client-view', '2s', '--session-timeout', '8s'],
  ];
  const { options, code } = await manage([...argv, ...more]);
  expect(code).toBe(0);
  expect(options).toEqual({
    nodes: ['a:1', 'b:2', '[::1]:3'],
    zookeeper: 'zk1,zk2:2182/ch',
    root: '/r/s',
    id: 'm1',
    maxFailures: 5,
    checkEvery: '1s',
    nodeTimeout: '250ms',
    nodeStrategy: 'single',
    failoverStrategy: 'latency',
    requiredNodeManagers: 2,
    clientView: '2s',
    sessionTimeout: '8s',
    zookeeperOptions: { auth: [] },
    onEvent: expect.any(Function),
  });
});

test('the flags of the gem', async () => {
  const argv = [
    '--nodes',
    'a:1',
    '--zkservers',
    'zk1',
    '--znode-path',
    '/x',
    '--with-chroot',
    '/c',
  ];
  const { options } = await manage(argv);
  expect(options).toMatchObject({ nodes: ['a:1'], zookeeper: 'zk1/c', root: '/x' });
});

test("the gem's examples/config.yml", async () => {
  const { options, stdout } = await manageFile(`# Sample configuration file for Node Manager.
#   redis_node_manager -C config.yml
---
:max_failures: 2
:node_strategy: majority
:failover_strategy: latency
:required_node_managers: 2
:nodes:
  - localhost:6379
  - localhost:1111
:zkservers:
  - localhost:2181
  - localhost:2182
:password: foobar
`);
  expect(options).toMatchObject({
    nodes: ['localhost:6379', 'localhost:1111'],
    zookeeper: 'localhost:2181,localhost:2182',
    root: '/redis_failover',
    maxFailures: 2,
    nodeStrategy: 'majority',
    requiredNodeManagers: 2,
    password: 'foobar',
  });
  expect(stdout).not.toContain('foobar');
});

const environments = `defaults: &defaults
  max_failures: 4
:development:
  :nodes:
    - localhost:6379
    - localhost:6389
  :zkservers:
    - localhost:2181
  :chroot: /with/chroot_development

:staging:
  <<: *defaults
  :nodes: redis01:6379,redis02:6379
  :node_strategy: :consensus
  :zkservers: [zk01:2181, zk02:2181]
`;

test('environments, also with symbols and merged sections', async () => {
  const development = await manageFile(environments, '-E', 'development');
  expect(development.options).toMatchObject({
    nodes: ['localhost:6379', 'localhost:6389'],
    zookeeper: 'localhost:2181/with/chroot_development',
  });
  expect(development.options?.maxFailures).toBeUndefined();
  const staging = await manageFile(environments, '--environment', 'staging');
  expect(staging.options).toMatchObject({
    nodes: ['redis01:6379', 'redis02:6379'],
    zookeeper: 'zk01:2181,zk02:2181',
    nodeStrategy: 'consensus',
    maxFailures: 4,
  });
});

test('a flag wins over a variable, and a variable over the file', async () => {
  const cwd = directory({ 'c.yml': 'nodes: [a:1]\nzookeeper: f\nroot: /file\nmax_failures: 9\n' });
  const env = { INCUMBENT_REDIS_ROOT: '/variable', INCUMBENT_REDIS_ZOOKEEPER: 'v' };
  const argv = ['-C', 'c.yml', '--root', '/flag', '--max-failures', '1'];
  const { options } = await manage(argv, { cwd, env });
  expect(options).toMatchObject({ zookeeper: 'v', root: '/flag', maxFailures: 1, nodes: ['a:1'] });
});

test('a chroot of the file does not go with a connection string of a flag that has one', async () => {
  const cwd = directory({ 'c.yml': 'nodes: [a:1]\nzookeeper: f\nchroot: /file\n' });
  const first = await manage(['-C', 'c.yml', '-z', 'h/own'], { cwd });
  expect(first.options?.zookeeper).toBe('h/own');
  const second = await manage(['-C', 'c.yml', '-z', 'zk://h?timeout=8s'], { cwd });
  expect(second.options?.zookeeper).toBe('zk://h/file?timeout=8s');
});

test('passwords: a file, a variable, or the configuration; texts stay as they were written', async () => {
  const cwd = directory({
    secret: 'from file\n',
    'c.yml': 'nodes: a:1\nzookeeper: h\npassword: 0123\n',
    'd.yml': 'nodes: a:1\nzookeeper: h\nusername: joe\npassword_file: secret\n',
  });
  const base = ['-n', 'a:1', '-z', 'h'];
  const env = { INCUMBENT_REDIS_PASSWORD: 'from variable', INCUMBENT_REDIS_USERNAME: 'jane' };
  const one = await manage([...base, '--password-file', 'secret'], { cwd, env });
  expect(one.options).toMatchObject({ password: 'from file', username: 'jane' });
  const two = await manage(base, { cwd, env });
  expect(two.options).toMatchObject({ password: 'from variable' });
  const three = await manage(['-C', 'c.yml'], { cwd });
  expect(three.options).toMatchObject({ password: '0123' });
  const four = await manage(['-C', 'd.yml'], { cwd });
  expect(four.options).toMatchObject({ username: 'joe', password: 'from file' });
});

test('TLS', async () => {
  const cwd = directory({ ca: 'CA', cert: 'CERT', key: 'KEY' });
  const base = ['-n', 'a:1', '-z', 'h'];
  const plain = await manage([...base, '--tls'], { cwd });
  expect(plain.options?.tls).toEqual({});
  const argv = [
    '--tls-ca',
    'ca',
    '--tls-cert',
    'cert',
    '--tls-key',
    'key',
    '--tls-servername',
    'n',
  ];
  const full = await manage([...base, ...argv], { cwd });
  expect(full.options?.tls).toEqual({ ca: 'CA', cert: 'CERT', key: 'KEY', servername: 'n' });
});

test('the login to ZooKeeper', async () => {
  const cwd = directory({
    ca: 'CA',
    'c.yml': 'nodes: a:1\nzookeeper: zks://h\nzookeeper_tls_ca: ca\n',
  });
  const env = { INCUMBENT_ZK_AUTH: 'digest:joe:s3cret\n', INCUMBENT_ZK_SASL: 'jane:s3:cret' };
  const { options } = await manage(['-C', 'c.yml'], { cwd, env });
  expect(options?.zookeeperOptions).toEqual({
    auth: [{ scheme: 'digest', credentials: 'joe:s3cret' }],
    sasl: { username: 'jane', password: 's3:cret' },
    tls: { ca: 'CA' },
  });
  const plain = await manage(['-n', 'a:1', '-z', 'h', '--zookeeper-tls-ca', 'ca'], { cwd });
  expect(plain).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--zookeeper is not zks://'),
  });
  const broken = await manage(['-n', 'a:1', '-z', 'h'], { env: { INCUMBENT_ZK_SASL: 's3cret' } });
  expect(broken.code).toBe(2);
  expect(broken.stderr).toBe('incumbent-redis: INCUMBENT_ZK_SASL is not USER:PASSWORD\n');
});

const base = ['-n', 'a:1', '-z', 'h'];

test.each<[argv: readonly string[], words: string]>([
  [['-z', 'h'], 'give --nodes HOST:PORT'],
  [['-n', 'a:1'], 'give --zookeeper HOST:PORT'],
  [['-n', 'a:1,b', '-z', 'h'], '--nodes[1] is not host:port with a port from 1 to 65535: "b"'],
  [['-n', 'a:1,a:1', '-z', 'h'], '--nodes names a:1 twice'],
  [['-n', 'a:1', '-z', 'a:b:c'], '--zookeeper cannot be used'],
  [['-n', 'a:1', '-z', 'http://h'], 'it is zk or zks'],
  [['-n', 'a:1', '-z', 'h/a', '--chroot', '/b'], '--chroot is a second chroot: --zookeeper has /a'],
  [['-n', 'a:1', '-z', 'h', '--with-chroot', 'b'], '--with-chroot is the path of a node such as'],
  [['-n', 'a:1', '-z', 'h', '--zkservers', 'i'], '--zookeeper and --zkservers are the same option'],
  [[...base, '--max-failures', 'x'], '--max-failures is a whole number from 1 to 100, not "x"'],
  [[...base, '--max-failures', '0'], '--max-failures is a whole number from 1 to 100, not 0'],
  [[...base, '--required-node-managers', '1.5'], '--required-node-managers is a whole number'],
  [[...base, '--node-strategy', 'any'], 'is one of majority, consensus, single, not "any"'],
  [[...base, '--failover-strategy', 'luck'], '--failover-strategy is one of latency, not "luck"'],
  [[...base, '--check-every', '5'], '--check-every "5" has no unit: write 500ms'],
  [[...base, '--check-every', '1ms'], '--check-every is from 10ms to 1m, not 1ms'],
  [[...base, '--client-view', 'soon'], '--client-view "soon" is not a duration'],
  [[...base, '--root', 'x'], '--root is the path of a node such as /redis_failover'],
  [[...base, '--id', 'a b'], '--id has 1 to 100 letters'],
  [[...base, '--listen', '80'], '--listen is HOST:PORT'],
  [[...base, '--log-level', 'loud'], '--log-level is one of debug, info, warn, error, not "loud"'],
  [[...base, '--log-format', 'xml'], '--log-format is one of json, pretty, not "xml"'],
  [[...base, '--password-file', 'none'], '--password-file names "none", which is not there'],
  [[...base, '--username', 'joe'], '--username names a user without a password'],
  [[...base, '--tls-cert', 'c'], '--tls-cert needs the other'],
  [[...base, '--environment', 'prod'], 'give --config FILE with it'],
  [[...base, '-C', 'none.yml'], "File none.yml can't be found"],
  [[...base, '--nodess'], 'Did you mean --nodes?'],
  [[...base, 'more'], 'too many arguments'],
])('%j is refused with 2', async (argv, words) => {
  const { code, stdout, stderr, options } = await manage(argv, { cwd: directory({}) });
  expect(stderr).toContain(words);
  expect(stderr).toMatch(/^incumbent-redis: /);
  expect(stdout).toBe('');
  expect(code).toBe(2);
  expect(options).toBeUndefined();
});

test.each([
  ['-p', 's3cret'],
  ['-ps3cret'],
  ['--password', 's3cret'],
  ['--password=s3cret'],
  ['-p'],
])(
  'a password on the command line (%s …) is refused, not repeated, and the way out is said',
  async (...argv) => {
    for (const command of [
      ['manage', ...base],
      ['status', '-z', 'h'],
      ['watch', '-z', 'h'],
    ]) {
      const { code, stderr } = await new Running([...command, ...argv]).result;
      expect(code).toBe(2);
      expect(stderr).toContain('can be read by everybody on this machine');
      expect(stderr).toContain('--password-file');
      expect(stderr).not.toContain('s3cret');
    }
  },
);

test('a password in an address is not repeated', async () => {
  const { code, stderr } = await manage(['-n', 'redis://joe:s3cret@h:1', '-z', 'h']);
  expect(code).toBe(2);
  expect(stderr).toContain('--nodes[0] is not host:port');
  expect(stderr).not.toContain('s3cret');
});

const good = 'nodes: [a:1]\nzookeeper: h\n';

test.each<[name: string, yaml: string, argv: readonly string[], words: string]>([
  [
    'a wrong number',
    `${good}max_failures: x\n`,
    [],
    'config.yml:3:1: max_failures is a whole number',
  ],
  ['a number as text', `${good}max_failures: "3"\n`, [], 'config.yml:3:1: max_failures is a whole'],
  ['a wrong item', 'zookeeper: h\nnodes:\n  - a:1\n  - b\n', [], 'config.yml:4:5: nodes[1] is not'],
  ['no unit', `${good}check_every: 500\n`, [], 'config.yml:3:1: check_every "500" has no unit'],
  ['a wrong choice', `${good}node_strategy: :any\n`, [], 'config.yml:3:1: node_strategy is one of'],
  ['an unknown key', `${good}max_failure: 3\n`, [], 'did you mean max_failures?'],
  [
    'an unknown symbol',
    `${good}:zk_servers: h\n`,
    [],
    'config.yml:3:1: there is no setting "zk_se',
  ],
  ['a strange key', `${good}wibble: 3\n`, [], 'there is no setting "wibble": it can be zookeeper,'],
  ['a key twice', `${good}nodes: [b:1]\n`, [], 'config.yml:3:1: '],
  ['a key twice, once as a symbol', `${good}:nodes: [b:1]\n`, [], 'nodes stands in line 1 already'],
  [
    'two names of one',
    `${good}zkservers: i\n`,
    [],
    'zkservers stands in line 2 already as zookeeper',
  ],
  ['a syntax error', `${good}  root: /x\n`, [], 'config.yml:'],
  ['a tab', 'nodes:\n\t- a:1\n', [], 'config.yml:2:1: '],
  ['an open quote', `${good}root: "/x\n`, [], 'config.yml:'],
  ['two documents', `${good}---\n${good}`, [], 'a second document'],
  ['a list', '- a\n- b\n', [], 'config.yml:1:1: the file holds `key: value` lines'],
  ['nothing', '# nothing\n', [], 'config.yml is empty'],
  ['no value', `${good}root:\n`, [], 'config.yml:3:1: root has no value'],
  ['a section for a value', `${good}root:\n  a: b\n`, [], 'root is one value, not a section'],
  [
    'a section for a list',
    'zookeeper: h\nnodes:\n  a: 1\n',
    [],
    'or a list of them, not a section',
  ],
  ['a list in a list', 'zookeeper: h\nnodes: [[a:1]]\n', [], 'nodes is a list of values'],
  ['tls: maybe', `${good}tls: maybe\n`, [], 'config.yml:3:1: tls is true or false, not "maybe"'],
  [
    'tls off with files',
    `${good}tls: false\ntls_servername: n\n`,
    [],
    'tls is false, and there are settings for TLS besides',
  ],
  [
    'a file that is not there',
    `${good}password_file: no\n`,
    [],
    'password_file names "no", which is',
  ],
  ['two passwords', `${good}password: s3cret\npassword_file: f\n`, [], 'keep one of them'],
  ['a wrong path', `${good}root: x\n`, [], 'config.yml:3:1: root is the path of a node'],
  [
    'a wrong ZooKeeper',
    'nodes: [a:1]\nzookeeper: [h, "i:x"]\n',
    [],
    'config.yml:2:1: zookeeper can',
  ],
  ['no environment chosen', environments, [], 'environments (defaults, development, staging)'],
  ['an unknown one', environments, ['-E', 'prod'], 'it has defaults, development, staging'],
  ['none at all', good, ['-E', 'prod'], "Environment prod can't be found in config.yml: it has no"],
  ['a key as one', good, ['-E', 'nodes'], "Environment nodes can't be found"],
  [
    'an error in one',
    'x:\n  nodes: [a]\n  zookeeper: h\n',
    ['-E', 'x'],
    'config.yml:2:11: nodes[0]',
  ],
  [
    'a section that merges itself',
    'x: &x\n  nodes: [a:1]\n  <<: *x\n',
    ['-E', 'x'],
    'config.yml:3:3: << brings a section into itself',
  ],
  ['a merged word', `x:\n  <<: y\n`, ['-E', 'x'], '<< takes a section, such as *defaults'],
  ['a key with dashes', `${good}max-failures: 3\n`, [], 'did you mean max_failures?'],
  ['no such alias', `${good}root: *nobody\n`, [], 'config.yml:3:'],
])('a file with %s is refused, with its line', async (_name, yaml, argv, words) => {
  const { code, stdout, stderr } = await manageFile(yaml, ...argv);
  expect(stderr).toContain(words);
  expect(stderr).not.toContain('s3cret');
  expect(stdout).toBe('');
  expect(code).toBe(2);
});

test('a file that holds a password and that everybody can read is told of', async () => {
  const cwd = directory({});
  const path = join(cwd, 'c.yml');
  writeFileSync(path, `${good}password: s3cret\n`, { mode: 0o644 });
  const { code, stdout } = await manage(['-C', path], { cwd });
  expect(code).toBe(0);
  expect(stdout).toContain('chmod o-r');
  expect(stdout).not.toContain('s3cret');
});
