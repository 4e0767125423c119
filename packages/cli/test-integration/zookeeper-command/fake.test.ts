/** Every command against FakeZooKeeper, as text and as JSON. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FakeZooKeeper } from '@incumbent/zookeeper-testing';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { acl, connect } from '../../../zookeeper/src/index.ts';
import type { Place, Result } from './program.ts';
import { jsonLines, Program } from './program.ts';

// A command that hangs fails soon.
vi.setConfig({ testTimeout: 30_000 });

let fake: FakeZooKeeper;

beforeEach(async () => {
  fake = await FakeZooKeeper.start({ realTime: true, tickTimeMs: 100 });
});
afterEach(() => fake.close());

function start(args: readonly string[], place?: Place): Program {
  return new Program(fake.connectionString, args, place);
}

function zk(...args: string[]): Promise<Result> {
  return start(args).result;
}

/** Makes nodes without the command. */
async function make(nodes: Readonly<Record<string, string | null>>): Promise<void> {
  await using client = await connect(fake.connectionString);
  for (const [path, data] of Object.entries(nodes)) await client.create(path, data);
}

function nodes(): string[] {
  return [...fake.tree().keys()].filter((path) => path !== '/' && !/^\/zookeeper/.test(path));
}

function dataOf(path: string): string | undefined {
  const data = fake.tree().get(path)?.data;
  return data == null ? undefined : Buffer.from(data).toString();
}

const iso = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
const ok = { code: 0, stderr: '' };

test('ls and tree show names, paths, stats and data', async () => {
  await make({ '/b': 'x', '/b/n-10': null, '/b/n-9': 'line\u001b[2J', '/b/n-9/deep': '' });
  const [plain, deep, long, json, longJson, tree, cut, treeJson] = await Promise.all([
    zk('ls', '/b'),
    zk('ls', '-R', '/b'),
    zk('ls', '--stat', '/b'),
    zk('ls', '-R', '--json', '/b'),
    zk('ls', '-l', '--json', '/b'),
    zk('tree', '--data', '/b'),
    zk('tree', '--depth', '1', '/b'),
    zk('tree', '--data', '--json', '/b'),
  ]);
  expect(plain).toEqual({ ...ok, stdout: 'n-9\nn-10\n' });
  expect(deep).toEqual({ ...ok, stdout: '/b/n-9\n/b/n-9/deep\n/b/n-10\n' });
  expect(long.stdout.split('\n')).toEqual([
    expect.stringMatching(/^VERSION +CHILDREN +BYTES +MODIFIED +OWNER +NAME$/),
    expect.stringMatching(/^ {6}0 {9}1 {9}8 {2}\d{4}-[\d :-]+ {2}- +n-9$/),
    expect.stringMatching(/^ {6}0 {9}0 {9}0 {2}\d{4}-[\d :-]+ {2}- +n-10$/),
    '',
  ]);
  expect(jsonLines(json.stdout)).toEqual([
    { path: '/b/n-9' },
    { path: '/b/n-9/deep' },
    { path: '/b/n-10' },
  ]);
  expect(jsonLines(longJson.stdout)).toMatchObject([
    { path: '/b/n-9', stat: { version: 0, numChildren: 1, czxid: expect.any(String), ctime: iso } },
    { path: '/b/n-10' },
  ]);
  expect(tree.stdout).toBe(
    ['/b  = "x"', '├── n-9  = "line\\x1b[2J"', '│   └── deep  = ""', '└── n-10  = null', ''].join(
      '\n',
    ),
  );
  expect(cut.stdout).toBe('/b\n├── n-9  (1 child)\n└── n-10\n');
  expect(jsonLines(treeJson.stdout)).toMatchObject([
    { path: '/b', depth: 0, data: 'eA==', text: 'x', stat: { numChildren: 2 } },
    { path: '/b/n-9', depth: 1 },
    { path: '/b/n-9/deep', depth: 2, data: '', text: '' },
    { path: '/b/n-10', depth: 1, data: null },
  ]);
});

test('a tree of a thousand nodes is listed whole and in order', async () => {
  await using client = await connect(fake.connectionString);
  await client.create('/big');
  const names = Array.from({ length: 1000 }, (_, i) => `/big/n${i}`);
  await Promise.all(names.map((path) => client.create(path)));
  const { stdout, ...rest } = await zk('ls', '-R', '/big');
  expect(rest).toEqual(ok);
  expect(stdout).toBe(names.map((path) => `${path}\n`).join(''));
});

test('get prints bytes as they are, a hex dump, a stat, or JSON', async () => {
  await using client = await connect(fake.connectionString);
  const data = Uint8Array.from([0, 0xff, 0x0a, 0x1b, 0xc3]);
  await client.create('/bin', data);
  await client.create('/null');
  const raw = start(['get', '/bin']);
  const [, hex, stat, json, nothing, nothingJson] = await Promise.all([
    raw.result,
    zk('get', '--hex', '/bin'),
    zk('get', '--stat', '/bin'),
    zk('get', '--json', '/bin'),
    zk('get', '/null'),
    zk('get', '--json', '/null'),
  ]);
  expect(Buffer.concat(raw.chunks)).toEqual(Buffer.from(data));
  expect(hex.stdout).toMatch(/^00000000 {2}00 ff 0a 1b c3 +\.{5}\n$/);
  expect(stat.stdout).toMatch(/\nczxid +0x\w+\n(.*\n)*dataLength +5 bytes\nnumChildren +0\n$/);
  expect(jsonLines(json.stdout)).toEqual([
    { path: '/bin', data: 'AP8KG8M=', stat: expect.objectContaining({ dataLength: 5 }) },
  ]);
  expect(nothing).toEqual({ code: 0, stdout: '', stderr: '/null has no data (null)\n' });
  expect(jsonLines(nothingJson.stdout)).toMatchObject([{ path: '/null', data: null }]);
});

test('get --watch prints every value, also of a node that is not there yet', async () => {
  const text = start(['get', '--watch', '/w']);
  const json = start(['get', '-w', '--json', '/w']);
  await text.printed(/there is no such node; waiting for it/);
  await json.printed(/"missing":true/);
  await make({ '/w': 'one' });
  await Promise.all([text.printed(/^one\n/), json.printed(/"text":"one"/)]);
  expect(await zk('set', '/w', 'two')).toMatchObject({ code: 0 });
  await Promise.all([text.printed(/^one\ntwo\n/), json.printed(/"text":"two"/)]);
  text.child.kill('SIGTERM');
  json.child.kill('SIGINT');
  expect(await text.result).toMatchObject({ code: 143 });
  expect(await json.result).toMatchObject({ code: 130, stderr: '' });
});

test('stat prints what is known about a node', async () => {
  await make({ '/a': 'hello' });
  const [text, json, missing] = await Promise.all([
    zk('stat', '/a'),
    zk('stat', '--json', '/a'),
    zk('stat', '/b'),
  ]);
  expect(text.stdout).toMatch(/^czxid +0x\w+\nctime +\d{4}-\d\d-\d\d [\d:]{8} \(.*\)\n/);
  expect(text.stdout).toMatch(/\ndataLength +5 bytes\n/);
  expect(jsonLines(json.stdout)).toMatchObject([
    { path: '/a', stat: { version: 0, mtime: iso, ephemeralOwner: '0' } },
  ]);
  expect(missing).toEqual({
    code: 66,
    stdout: '',
    stderr: 'incumbent-zk: /b: there is no such node\n',
  });
});

test('set takes text, stdin and files, and a version', async () => {
  await make({ '/a': '', '/b': '', '/c': '' });
  const directory = mkdtempSync(join(tmpdir(), 'incumbent-zk-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const file = join(directory, 'data');
  writeFileSync(file, 'from a file');
  const [text, stdin, fromFile] = await Promise.all([
    zk('set', '/a', '--', '-1'),
    start(['set', '--json', '/b', '-'], { stdin: 'from\nstdin\n' }).result,
    zk('set', '/c', '--file', file, '--version', '0'),
  ]);
  expect(text).toEqual({ ...ok, stdout: '/a has version 1 now\n' });
  expect(jsonLines(stdin.stdout)).toMatchObject([{ path: '/b', stat: { version: 1 } }]);
  expect(fromFile).toMatchObject(ok);
  expect(['/a', '/b', '/c'].map(dataOf)).toEqual(['-1', 'from\nstdin\n', 'from a file']);
  const [stale, missing] = await Promise.all([
    zk('set', '/a', 'x', '--version', '0'),
    zk('set', '/nope', 'x', '--json'),
  ]);
  expect(stale).toMatchObject({
    code: 1,
    stderr: 'incumbent-zk: /a: the node has another version; `stat` shows it\n',
  });
  expect(missing.code).toBe(66);
  expect(JSON.parse(missing.stderr)).toEqual({
    error: { code: 'NO_NODE', message: '/nope: there is no such node' },
  });
});

test('create makes nodes of every kind, and prints their paths', async () => {
  expect(await zk('create', '-p', '/a/b/c', 'deep')).toEqual({ ...ok, stdout: '/a/b/c\n' });
  const [sequential, container, ttl, guarded, piped] = await Promise.all([
    zk('create', '-s', '/a/b/n-'),
    zk('create', '-c', '/box'),
    zk('create', '--ttl', '10m', '/ttl'),
    zk('create', '/guarded', '--acl', 'world:anyone:r', '--acl', 'digest:joe:secret:all'),
    start(['create', '--json', '/piped', '-'], { stdin: 'x' }).result,
  ]);
  expect(sequential.stdout).toMatch(/^\/a\/b\/n-\d{10}\n$/);
  expect([container, ttl, guarded].map(({ code }) => code)).toEqual([0, 0, 0]);
  expect(fake.tree().get('/guarded')?.acl).toEqual([acl.world(1), acl.digest('joe', 'secret')]);
  expect(jsonLines(piped.stdout)).toMatchObject([{ path: '/piped', stat: { dataLength: 1 } }]);
  const [exists, orphan] = await Promise.all([zk('create', '/a'), zk('create', '/x/y')]);
  expect(exists).toMatchObject({
    code: 1,
    stderr: 'incumbent-zk: /a: the node exists; `set` changes it\n',
  });
  expect(orphan).toMatchObject({
    code: 66,
    stderr: 'incumbent-zk: /x/y: there is no node /x to create it in; -p makes what is missing\n',
  });
});

test('create -e holds the node until ctrl-C, and takes it away with the session', async () => {
  const holder = start(['create', '-e', '-s', '/e-', 'mine']);
  await holder.printed(/held until ctrl-C ends this session/);
  const path = holder.stdout.trim();
  expect(path).toMatch(/^\/e-\d{10}$/);
  const [text, json, tree, none] = await Promise.all([
    zk('ephemerals'),
    zk('ephemerals', '--json', '/'),
    zk('tree', path),
    zk('ephemerals', '/zookeeper'),
  ]);
  expect(text.stdout).toMatch(/^SESSION +CREATED +PATH\n0x\w+ +\d{4}-[\d: -]+ \/e-\d{10}\n$/);
  expect(jsonLines(json.stdout)).toMatchObject([
    { path, owner: expect.stringMatching(/^0x/), stat: { dataLength: 4 } },
  ]);
  expect(tree.stdout).toBe(`${path}  (ephemeral)\n`);
  expect(none.stderr).toBe('there is no ephemeral node at or below /zookeeper\n');
  expect(nodes()).toEqual([path]);
  holder.child.kill('SIGINT');
  expect(await holder.result).toMatchObject({ code: 130, stdout: `${path}\n` });
  // The session was closed in an orderly way, and not left to expire.
  expect(nodes()).toEqual([]);
  expect(fake.sessions).toEqual([]);
});

test('create -e says when its session has expired', async () => {
  const holder = start(['create', '-e', '/e']);
  await holder.printed(/held until/);
  fake.expireSession(fake.sessions[0]!.id);
  const { code, stderr } = await holder.result;
  expect(code).toBe(69);
  expect(stderr).toContain('the session has expired, and /e with it; create it again\n');
});

test('rm deletes a node, or with -r all below it, but not too much', async () => {
  await make({ '/a': '', '/a/b': '', '/a/b/c': '', '/one': '', '/two': '' });
  const [full, many, stale] = await Promise.all([
    zk('rm', '/a'),
    zk('rm', '-r', '--max-nodes', '2', '/a'),
    zk('rm', '/one', '--version', '7'),
  ]);
  expect(full).toMatchObject({ code: 1, stderr: expect.stringContaining('`rm -r` deletes') });
  expect(many).toMatchObject({ code: 1, stderr: expect.stringContaining('nothing was deleted') });
  expect(stale.code).toBe(1);
  expect(nodes()).toHaveLength(5);
  const [one, all, json, missing] = await Promise.all([
    zk('rm', '/one', '--version', '0'),
    zk('rm', '-r', '/a'),
    zk('rm', '-r', '--json', '/two'),
    zk('rm', '-r', '/nope'),
  ]);
  expect(one).toEqual({ ...ok, stdout: 'deleted /one\n' });
  expect(all).toEqual({ ...ok, stdout: 'deleted /a and 2 below it\n' });
  expect(jsonLines(json.stdout)).toEqual([{ path: '/two', deleted: 1 }]);
  expect(missing.code).toBe(66);
  expect(nodes()).toEqual([]);
});

test('watch prints events as they come, and the gaps between them', async () => {
  const text = start(['watch', '-R', '/w', '--count', '5']);
  const json = start(['watch', '/w', '--count', '2', '--json']);
  await Promise.all([text.printed(/ watching +\/w\n/), json.printed(/"type":"watching"/)]);
  await make({ '/w': '', '/w/x': '' });
  await text.printed(/created +\/w\/x\n/);
  expect(jsonLines((await json.result).stdout)).toEqual([
    { time: iso, type: 'watching', path: '/w' },
    { time: iso, type: 'created', path: '/w' },
    { time: iso, type: 'children-changed', path: '/w' },
  ]);
  fake.dropConnections();
  await text.printed(/gap +the connection was lost for a while: changes may have been missed\n/);
  expect(text.stderr).toMatch(/^the connection is lost; looking for a server\nconnected again/);
  await zk('rm', '-r', '/w');
  const { code, stdout } = await text.result;
  expect(code).toBe(0);
  const shown = stdout.split('\n').map((line) => line.slice(25).replace(/ +/, ' '));
  expect(shown.slice(0, 3)).toEqual(['watching /w', 'created /w', 'created /w/x']);
  expect(shown.slice(4)).toEqual(['deleted /w/x', 'deleted /w', '']);
});

test('acl prints what can be set again', async () => {
  await make({ '/a': 'secret' });
  const joe = ['--auth', 'digest:joe:secret'];
  expect(await zk('acl', '/a')).toEqual({ ...ok, stdout: 'world:anyone:rwcda\n' });
  const changed = await zk(...joe, 'acl', '/a', '--set', 'auth::rwcda', 'world:anyone:c');
  expect(changed).toEqual({ ...ok, stdout: 'the ACL of /a has version 1 now\n' });
  const [refused, allowed, byEnvironment, json] = await Promise.all([
    zk('get', '/a'),
    zk('get', '/a', ...joe),
    start(['acl', '/a'], { env: { INCUMBENT_ZK_AUTH: 'digest:eve:x\ndigest:joe:secret' } }).result,
    zk(...joe, 'acl', '/a', '--json'),
  ]);
  expect(refused).toMatchObject({
    code: 77,
    stdout: '',
    stderr: expect.stringMatching(/^incumbent-zk: \/a: the ACL does not allow it; log in .*\n$/),
  });
  expect(allowed.stdout).toBe('secret');
  expect(byEnvironment.stdout).toMatch(/^digest-hash:joe:\S+=:rwcda\nworld:anyone:c\n$/);
  expect(jsonLines(json.stdout)).toMatchObject([
    {
      path: '/a',
      acl: [
        { scheme: 'digest', perms: 31, spec: expect.stringMatching(/^digest-hash:joe:/) },
        { scheme: 'world', id: 'anyone', perms: 4, spec: 'world:anyone:c' },
      ],
      stat: { aversion: 1 },
    },
  ]);
  const again = await zk(
    ...joe,
    'acl',
    '/a',
    '--version',
    '1',
    '--set',
    ...byEnvironment.stdout.trim().split('\n'),
  );
  expect(again).toMatchObject({ code: 0, stdout: 'the ACL of /a has version 2 now\n' });
  expect(await zk(...joe, 'acl', '/a', '--version', '1', '--set', 'world:anyone:r')).toMatchObject({
    code: 1,
  });
});

test('what may not be read does not hide the rest of a tree', async () => {
  await using client = await connect(fake.connectionString);
  await client.create('/t');
  await client.create('/t/a', null, { acl: [acl.digest('joe', 'secret')] });
  await client.create('/t/b');
  const [ls, json, tree] = await Promise.all([
    zk('ls', '-R', '/t'),
    zk('ls', '-R', '--json', '/t'),
    zk('tree', '/t'),
  ]);
  expect(ls).toMatchObject({ code: 77, stdout: '/t/a\n/t/b\n' });
  expect(ls.stderr).toMatch(/^incumbent-zk: \/t\/a: the ACL does not allow it; .*\n$/);
  expect(jsonLines(json.stdout)).toMatchObject([
    { path: '/t/a', error: { code: 'NO_AUTH' } },
    { path: '/t/b' },
  ]);
  expect(json).toMatchObject({ code: 77, stderr: '' });
  expect(tree).toMatchObject({ code: 77, stdout: '/t\n├── a  (may not be read)\n└── b\n' });
});

test('srvr, config and whoami tell about servers and the session', async () => {
  const two = `${fake.connectionString},127.0.0.1:1`;
  const [text, json, none, config, configJson, who, whoJson] = await Promise.all([
    zk('srvr', '-s', two),
    zk('srvr', '-s', two, '--json'),
    zk('srvr', '-s', `zk://${Array.from({ length: 12 }, () => '127.0.0.1:1').join(',')}`),
    zk('config'),
    zk('config', '--json'),
    zk('whoami', '--auth', 'digest:joe:secret'),
    zk('whoami', '--json'),
  ]);
  expect(text).toMatchObject(ok);
  expect(text.stdout.split('\n')).toEqual([
    expect.stringMatching(
      /^SERVER +MODE +VERSION +CONNECTIONS +OUTSTANDING +NODES +LATENCY .* +ZXID$/,
    ),
    expect.stringMatching(new RegExp(`^127.0.0.1:${fake.port} +standalone +.* 0x\\w+$`)),
    expect.stringMatching(/^127.0.0.1:1 +unavailable +- +.*ECONNREFUSED/),
    '',
  ]);
  expect(jsonLines(json.stdout)).toMatchObject([
    { server: `127.0.0.1:${fake.port}`, mode: 'standalone', error: null },
    { server: '127.0.0.1:1', mode: null, error: expect.stringContaining('ECONNREFUSED') },
  ]);
  expect(none).toMatchObject({ code: 69, stderr: '' });
  expect(config).toMatchObject({ code: 0, stdout: '' });
  expect(jsonLines(configJson.stdout)).toEqual([{ version: null, servers: [] }]);
  expect(who).toEqual({ ...ok, stdout: 'ip      127.0.0.1\ndigest  joe\n' });
  expect(jsonLines(whoJson.stdout)).toEqual([{ scheme: 'ip', user: '127.0.0.1' }]);
});

test('a server that is silent or absent is given up in time, with what to look at', async () => {
  fake.silence();
  const [silent, absent, silentWord] = await Promise.all([
    zk('ls', '/', '--timeout', '300ms'),
    zk('ls', '/', '--timeout', '300ms', '-s', 'zk://127.0.0.1:1'),
    zk('srvr', '--timeout', '300ms'),
  ]);
  for (const { code, stdout, stderr } of [silent, absent]) {
    expect({ code, stdout }).toEqual({ code: 69, stdout: '' });
    expect(stderr).toMatch(/^incumbent-zk: none of .* within 300 ms.*; look at --server, .*\n$/);
  }
  expect(silentWord).toMatchObject({ code: 69, stderr: '' });
  expect(silentWord.stdout).toMatch(/unavailable .*no answer within 300 ms\n$/);
});

test('a write whose connection is lost may have been applied, and the message says so', async () => {
  await make({ '/a': 'old' });
  fake.faults.next({ opcode: 'setData', path: '/a' }, 'dropAfter');
  const { code, stderr } = await zk('set', '/a', 'new');
  expect(code).toBe(69);
  expect(stderr).toMatch(/^incumbent-zk: \/a: .*; it may have been applied; try again\n$/);
  expect(dataOf('/a')).toBe('new');
});

test('credentials that the server refuses end with 77', async () => {
  expect(await zk('ls', '--auth', 'nosuchscheme:x', '/')).toEqual({
    code: 77,
    stdout: '',
    stderr: 'incumbent-zk: the server refuses the credentials; look at --auth and --sasl\n',
  });
});

test('a chroot is where paths begin', async () => {
  await make({ '/app': '', '/app/x': 'in' });
  const chroot = `${fake.connectionString}/app`;
  const [ls, get, missing] = await Promise.all([
    zk('ls', '-R', '-s', chroot),
    zk('get', '-s', chroot, '/x'),
    zk('get', '-s', chroot, '/app'),
  ]);
  expect(ls.stdout).toBe('/x\n');
  expect(get.stdout).toBe('in');
  expect(missing.stderr).toBe('incumbent-zk: /app: there is no such node\n');
});

test('a command that waits for stdin, or for a server, ends with the signal', async () => {
  await make({ '/a': 'old' });
  const reader = start(['set', '/a', '-'], { stdin: 'open' });
  reader.child.stdin?.write('half');
  const watcher = start(['watch', '/a']);
  await watcher.printed(/watching/);
  fake.silence();
  const waiter = start(['ls', '/']);
  for (const { child } of [reader, watcher, waiter]) {
    // It may not listen for signals yet. Then the signal ends it, as it does any program.
    child.kill('SIGTERM');
  }
  for (const { result } of [reader, watcher, waiter]) {
    const { code, stderr } = await result;
    expect([143, 255]).toContain(code);
    expect(stderr).toBe('');
  }
  expect(await watcher.result).toMatchObject({ code: 143 });
  expect(dataOf('/a')).toBe('old');
});

test('a reader of the output that has gone is no error, and the session is closed', async () => {
  const names = Array.from({ length: 200 }, (_, i) => [`/n${i}`, ''] as const);
  await make(Object.fromEntries(names));
  const watcher = start(['watch', '-R', '/']);
  await watcher.printed(/watching/);
  watcher.child.stdout?.destroy();
  const more = start(['ls', '-R', '/']);
  more.child.stdout?.destroy();
  await make({ '/event': '' });
  expect(await watcher.result).toMatchObject({ code: 0, stderr: '' });
  expect(await more.result).toMatchObject({ code: 0, stderr: '' });
  expect(fake.sessions).toEqual([]);
});
