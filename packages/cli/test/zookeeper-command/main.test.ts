import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { commands, globalOptions } from '../../src/zookeeper-command/table.ts';
import { invoke } from './invoke.ts';

const page = readFileSync(
  new URL('../../../../docs/reference/zookeeper-cli.md', import.meta.url),
  'utf8',
);
const environment = [
  ...['INCUMBENT_ZK', 'INCUMBENT_ZK_AUTH', 'INCUMBENT_ZK_SASL', 'INCUMBENT_ZK_TLS_PASSPHRASE'],
  ...['INCUMBENT_DEBUG', 'NO_COLOR'],
];

/** The words that a shell would make of it, as far as the examples go. */
function wordsOf(line: string): string[] {
  const own = line.replace(/ [|>].*$/, '').replace(/^.*?(?=incumbent-zk )/, '');
  return own.split(' ').slice(1);
}

/** The section of the page that has this title. */
function sectionOf(title: string): string {
  const section = page.split(/^## /m).find((text) => text.startsWith(`${title}\n`));
  if (section === undefined)
    throw new Error(`docs/reference/zookeeper-cli.md has no section "${title}"`);
  return section;
}

test.each(commands.map(({ name }) => name))(
  'docs/reference/zookeeper-cli.md has a section on `%s` with an example and every option',
  (name) => {
    const section = sectionOf(name);
    expect(section).toMatch(/^```sh\n(.*\n)*?.*incumbent-zk /m);
    for (const { short, name: long } of commands.find((each) => each.name === name)!.options) {
      const isGlobal = section.includes(`\`--${long} `) || section.includes(`\`--${long}\``);
      expect(isGlobal, `--${long} of ${name}`).toBe(true);
      if (short !== undefined) expect(section).toContain(`\`-${short}\``);
    }
    expect(sectionOf('For programs')).toContain(`\`${name}\``);
  },
);

test('docs/reference/zookeeper-cli.md has every global option and variable', () => {
  const section = sectionOf('Options that all of them know');
  for (const { name, short } of globalOptions) {
    expect(section).toMatch(new RegExp(`\`--${name}[ \`]`));
    if (short !== undefined) expect(section).toContain(`\`-${short}\``);
  }
  for (const name of environment) expect(sectionOf('Environment')).toContain(`\`${name}\``);
});

test('the help of a command shows its options and the global ones, within 110 columns', async () => {
  for (const { name, options, operands } of commands) {
    const { code, stdout, stderr } = await invoke([name, '--help']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(new RegExp(`^Usage: incumbent-zk ${name}\\b`));
    for (const { name: long } of [...options, ...globalOptions]) {
      expect(stdout).toContain(`--${long}`);
    }
    for (const operand of operands) expect(stdout.split('\n')[0]).toContain(operand.name);
    const longest = Math.max(...stdout.split('\n').map((line) => line.length));
    expect(longest, name).toBeLessThanOrEqual(110);
    // The meaning of a letter is explained once.
    const letters = [...stdout.matchAll(/^ {2}-(\w),/gm)].map(([, letter]) => letter);
    expect(new Set(letters).size).toBe(letters.length);
  }
});

test('the help lists every command', async () => {
  const { stdout } = await invoke(['--help']);
  for (const { name, summary } of commands) {
    expect(stdout).toMatch(new RegExp(`^ {2}${name} `, 'm'));
    expect(stdout).toContain(summary);
  }
});

test('every example of the helps and of the page is a command line that is understood', async () => {
  const { parseCommandLine } = await import('../../src/zookeeper-command/parse.ts');
  const ofPage = [...page.matchAll(/^(?:\$ |.*\| )?(incumbent-zk .*)$/gm)]
    .map(([, line]) => line!.replace(/ {2,}#.*$/, ''))
    .filter((line) => !line.includes('`'));
  expect(ofPage.length).toBeGreaterThan(20);
  for (const line of [...commands.flatMap(({ examples }) => examples), ...ofPage]) {
    expect(() => parseCommandLine(wordsOf(line)), line).not.toThrow();
  }
});

test('without a command the help is on stderr, and it is an error', async () => {
  const { code, stdout, stderr } = await invoke([]);
  expect({ code, stdout }).toEqual({ code: 64, stdout: '' });
  expect(stderr).toContain('Usage: incumbent-zk');
});

test('--version prints that of the package', async () => {
  const manifest = JSON.parse(
    readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
  ) as { version: string };
  expect(await invoke(['--version'])).toMatchObject({ code: 0, stdout: `${manifest.version}\n` });
});

test.each<[string[], string]>([
  [['ls', 'a'], 'the path "a" is relative; a path begins with "/"'],
  [['ls', '/a/'], 'the path "/a/" ends with "/"'],
  [['rm', '/'], '/ is not deleted: name the nodes below it'],
  [['rm', '-r', '/zookeeper'], '/zookeeper is not deleted: name the nodes below it'],
  [['rm', '-r', '--version', '1', '/a'], '--version is for one node: it does not go with -r'],
  [['rm', '--max-nodes', '1', '/a'], '--max-nodes goes with -r'],
  [
    ['rm', '-r', '--max-nodes', '0', '/a'],
    '--max-nodes is a whole number from 1 to 2147483647, not "0"',
  ],
  [
    ['rm', '--version', 'x', '/a'],
    '--version is a whole number from -2147483648 to 2147483647, not "x"',
  ],
  [['set', '/a'], "`set` needs DATA, - for stdin, or --file; '' empties the node"],
  [['set', '/a', 'x', '--file', 'y'], 'give the data as an operand or with --file, not both'],
  [
    ['create', '-c', '-e', '/a'],
    'a container (-c) is neither ephemeral nor sequential, and has no --ttl',
  ],
  [
    ['create', '-e', '--ttl', '1s', '/a'],
    'an ephemeral node (-e) ends with its session: it takes no --ttl',
  ],
  [['create', '--ttl', '10', '/a'], '--ttl "10" has no unit: write 500ms, 10s, 2m or 1h'],
  [['create', '--acl', 'x', '/a'], 'an ACL is SCHEME:ID:PERMISSIONS, such as'],
  [['acl', '/a', 'world:anyone:r'], 'an ACL is changed with --set: `acl PATH --set ACL ...`'],
  [['acl', '/a', '--version', '1'], '--version goes with --set'],
  [['tree', '--depth', '-1'], '--depth is a whole number from 0 to 2147483647, not "-1"'],
  [['watch', '--count', '0', '/a'], '--count is a whole number from 1 to 2147483647, not "0"'],
  [['ls', '--timeout', '5'], '--timeout "5" has no unit: write 500ms, 10s, 2m or 1h'],
  [['ls', '-s', 'http://x'], 'has the scheme "http"; it is zk or zks (TLS)'],
  [['ls', '--tls-servername', 'x'], '--tls-… options are for TLS: write --server zks://HOST:PORT'],
  [['ls', '--tls-cert', 'x'], '--tls-cert and --tls-key belong together: give both'],
  [['ls', '--auth', 'secret'], '--auth is SCHEME:CREDENTIALS, such as digest:USER:PASSWORD'],
  [['ls', '--sasl', 'secret'], '--sasl is USER:PASSWORD'],
])('%j is refused before anything is connected to', async (argv, message) => {
  // Nothing listens there, and the timeout is far away.
  const env = { INCUMBENT_ZK: 'zk://127.0.0.1:1' };
  const { code, stdout, stderr, listeners } = await invoke(argv, { env });
  expect({ code, stdout, listeners }).toEqual({ code: 64, stdout: '', listeners: 0 });
  expect(stderr).toContain(`incumbent-zk: `);
  expect(stderr).toContain(message);
  expect(stderr.split('\n')).toHaveLength(2);
});

test('a secret that is malformed is not printed', async () => {
  const env = { INCUMBENT_ZK_AUTH: 'hunter2', INCUMBENT_ZK: 'zk://127.0.0.1:1' };
  const { code, stderr } = await invoke(['ls', '/'], { env });
  expect(code).toBe(64);
  expect(stderr).toContain('INCUMBENT_ZK_AUTH is SCHEME:CREDENTIALS');
  expect(stderr).not.toContain('hunter2');
  const sasl = await invoke(['ls'], { env: { INCUMBENT_ZK_SASL: 'hunter2' } });
  expect(sasl.stderr).toBe('incumbent-zk: INCUMBENT_ZK_SASL is USER:PASSWORD\n');
});

test('a file that cannot be read is missing', async () => {
  for (const argv of [
    ['set', '/a', '--file', '/nonexistent/x'],
    ['ls', '-s', 'zks://127.0.0.1:1', '--tls-ca', '/nonexistent/x'],
  ]) {
    const { code, stderr } = await invoke(argv);
    expect(code).toBe(66);
    expect(stderr).toMatch(
      /^incumbent-zk: --(file|tls-ca) "\/nonexistent\/x" cannot be read: .*\n$/,
    );
  }
});

test('stdin is read up to what a request may have', async () => {
  const { code, stderr } = await invoke(['set', '/a', '-'], {
    stdin: ['x'.repeat(1_000_000), 'x'.repeat(100_000)],
  });
  expect(code).toBe(1);
  expect(stderr).toContain('the data is longer than the 1048575 bytes');
});

test('a wait for stdin ends with a signal, also with one that came before it', async () => {
  const argv = ['set', '/a', '-'];
  const before = await invoke(argv, {
    stdin: 'open',
    onHost: (tell) => tell.signal('SIGTERM'),
  });
  expect(before).toMatchObject({ code: 143, stderr: '' });
  const amidst = await invoke(argv, {
    stdin: 'open',
    onHost: (tell) => void tell.reading.then(() => tell.signal('SIGINT')),
  });
  expect(amidst).toMatchObject({ code: 130, stderr: '' });
});

test('errors are objects with --json, also of a command line that cannot be parsed', async () => {
  const { code, stderr } = await invoke(['lss', '--json']);
  expect(code).toBe(64);
  expect(JSON.parse(stderr)).toEqual({
    error: { code: 'USAGE', message: 'unknown command "lss"; did you mean `ls`?' },
  });
});

test('a second signal does not wait for an orderly end', async () => {
  const { code, exits } = await invoke(['ls', '-s', 'zk://127.0.0.1:1'], {
    onHost(tell) {
      tell.signal('SIGINT');
      tell.signal('SIGTERM');
    },
  });
  expect({ code, exits }).toEqual({ code: 130, exits: [143] });
});

test('a reader that is gone ends the command quietly, a full disk does not', async () => {
  const error = (code: string) => Object.assign(new Error(`write ${code}`), { code });
  const argv = ['ls', '-s', 'zk://127.0.0.1:1'];
  const gone = await invoke(argv, { onHost: (tell) => tell.outputError(error('EPIPE')) });
  expect(gone).toMatchObject({ code: 0, stderr: '' });
  const full = await invoke(argv, { onHost: (tell) => tell.outputError(error('ENOSPC')) });
  expect(full).toMatchObject({
    code: 74,
    stderr: 'incumbent-zk: the output cannot be written: write ENOSPC\n',
  });
});
