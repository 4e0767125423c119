import { expect, test } from 'vitest';
import { commands } from '../src/command-table.ts';
import type { RunOptions } from '../src/options.ts';
import { invoke, jsonLines } from './support/invoke.ts';

/** The options that `run` gets from that command line. */
async function runOptions(...argv: string[]): Promise<RunOptions> {
  let seen: RunOptions | undefined;
  const table = commands.map((entry) =>
    entry.name !== 'run'
      ? entry
      : {
          ...entry,
          load: async () => async (options: unknown) => {
            seen = options as RunOptions;
            return 0;
          },
        },
  );
  const { code, stderr } = await invoke(['run', ...argv], { table });
  if (code !== 0 || seen === undefined) throw new Error(stderr);
  return seen;
}

test('--help lists every command and shows examples', async () => {
  const { code, stdout, stderr } = await invoke(['--help']);
  expect(code).toBe(0);
  expect(stderr).toBe('');
  for (const { name } of commands) expect(stdout).toMatch(new RegExp(`^  ${name} `, 'm'));
  expect(stdout).toContain('Examples:');
});

test.each(commands.map(({ name }) => name))('`%s --help` has examples', async (name) => {
  const { code, stdout } = await invoke([name, '--help']);
  expect(code).toBe(0);
  expect(stdout).toContain(`Usage: incumbent ${name}`);
  expect(stdout).toMatch(new RegExp(`Examples:\n  # .*\n  .*incumbent ${name}`));
  expect((await invoke(['help', name])).stdout).toBe(stdout);
});

test.each(
  commands.filter(({ name }) => name !== 'demo' && name !== 'schema').map(({ name }) => name),
)('`%s --help` names every store that it takes', async (name) => {
  const { stdout } = await invoke([name, '--help']);
  for (const scheme of ['file:', 'postgres:', 'redis:', 'etcd:', 'zk:', 'k8s:', 's3:', 'gs:']) {
    expect(stdout).toContain(scheme);
  }
});

test('these are the commands', () => {
  expect(commands.map(({ name }) => name)).toEqual([
    'run',
    'agent',
    'demo',
    'status',
    'list',
    'dashboard',
    'leader',
    'watch',
    'candidates',
    'history',
    'record',
    'vacate',
    'transfer',
    'failover',
    'drain',
    'shards',
    'end',
    'init',
    'schema',
    'doctor',
  ]);
});

test('--version prints the version of the package', async () => {
  const { code, stdout } = await invoke(['--version']);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^\d+\.\d+\.\d+\S*\n$/);
  expect((await invoke(['-V'])).stdout).toBe(stdout);
});

test('no command at all shows the help as an error', async () => {
  const { code, stdout, stderr } = await invoke([]);
  expect(code).toBe(64);
  expect(stdout).toBe('');
  expect(stderr).toContain('Usage: incumbent COMMAND');
});

test.each([
  [['stauts', '-e', 'x'], "unknown command 'stauts'", 'Did you mean status?'],
  [['status'], 'status needs -e, --election <name>', 'as in `incumbent status -e nightly`'],
  [['status', 'nightly'], 'status needs -e, --election <name>', 'write `-e nightly`'],
  [['status', '-e'], "option '-e, --election <name>' argument missing", 'status --help'],
  [['status', '-e', 'x', '--jsn'], "unknown option '--jsn'", 'Did you mean --json?'],
  [['status', '-e', 'x', 'y'], 'takes options only, and "y" is none', '-e names the election'],
  [['status', '-e', 'x', '--timeout', '5'], 'It has no unit', 'status --help'],
  [['status', '-e', 'x', '--timeout=-5s'], 'It is negative', 'write 500ms, 15s, 2m or 1h'],
  [['status', '-e', 'x', '--timeout', 'Infinity'], 'It is not a duration', '15s'],
  [['status', '-e', 'x', '--timeout', '3000h'], '2^31 - 1 ms', ''],
  [['status', '-e', ''], 'the election name must not be empty', ''],
  [['status', '-e', 'a\u0007b'], 'control character U+0007', ''],
  [['leader', '-e', 'x', '--all', '--id'], "'--all' cannot be used with option '--id'", ''],
  [['transfer', '-e', 'x'], 'transfer needs --to <id>', 'transfer -e nightly --to host-7'],
  [['transfer', '-e', 'x', '--to', ''], 'the candidate id must not be empty', ''],
  [['drain', '-e', 'x', '--until', '2h'], 'drain needs --id <id>', '--id host-7 --until 2h'],
  [['drain', '-e', 'x', '--id', 'a'], 'drain needs --until', 'drain --help'],
  [['drain', '-e', 'x', '--id', 'a', '--until', '2'], '"2" has no unit', 'drain --help'],
  [['drain', '-e', 'x', '--id', 'a', '--until', '2h', '--lift'], 'cannot be used with', ''],
  [['doctor', '--samples', '0'], 'It must be a whole number from 1 to 10000', 'doctor --help'],
  [
    ['doctor', '--lease', '15'],
    "'--lease <duration>' argument '15' is invalid. It has no unit",
    '',
  ],
  [['doctor', '-e', ''], 'the election name must not be empty', ''],
  [['run', '-e', 'x'], 'run needs <program>', 'incumbent run -e nightly -- node worker.js'],
  [['run', '-e', 'x', '--'], 'run needs <program>', 'incumbent run -e nightly -- node worker.js'],
  [['run', '--elction', 'x', '--', 'p'], "unknown option '--elction'", 'Did you mean --election?'],
  [['status', '--elction=db'], "unknown option '--elction'", 'Did you mean --election?'],
  [['run', '--', 'sleep', '1'], 'run needs -e, --election <name>', 'as in `incumbent run -e night'],
  [
    ['run', '-e', 'x', '--health-every', '1s', '--', '/bin/sh'],
    'there is no --health',
    'give both',
  ],
  [['run', '-e', 'x', '--health', ' ', '--', '/bin/sh'], '--health is empty', 'give a command'],
  [['run', '-e', 'x', '--on-unclean', '', '--', '/bin/sh'], '--on-unclean is empty', ''],
  [['run', '-e', 'x', '--ready-when', '', '--', '/bin/sh'], '--ready-when is empty', ''],
  [
    ['run', '-e', 'x', '--ready-when', 'true', '--ready-every', '0s', '--', '/bin/sh'],
    '--ready-every 0s',
    'give at least 10ms',
  ],
  [['run', '-e', 'x', '--events-fd', '999', '--', '/bin/sh'], '999 is not open', '999>events.log'],
  [['run', '-e', 'x', '--once', '--try', '--', 'p'], 'cannot be used with option', ''],
  [['run', '-e', 'x', '--try', '--wait', '1s', '--', 'p'], 'cannot be used with option', ''],
  [['run', '-e', 'x', '--restart', 'maybe', '--', 'p'], 'Allowed choices are no, on-failure', ''],
  [['run', '-e', 'x', '--metadata', 'zone', '--', 'p'], 'Write KEY=VALUE', ''],
  [['run', '-e', 'x', '--metadata', '=1', '--', 'p'], 'Write KEY=VALUE', ''],
  [['run', '-e', 'x', '--metadata', 'a=1', '--metadata', 'a=2', '--', 'p'], 'given twice', ''],
  [['run', '-e', 'x', '--events-fd', '1', '--', 'p'], 'a whole number from 2', ''],
  [['run', '-e', 'x', '--listen', '8080', '--', 'p'], 'Write HOST:PORT', ''],
  [['run', '-e', 'x', '--listen', 'localhost:65536', '--', 'p'], 'Write HOST:PORT', ''],
])('%j is refused with 64, the rule and the way out', async (argv, rule, wayOut) => {
  const { code, stdout, stderr } = await invoke(argv);
  expect(code).toBe(64);
  expect(stdout).toBe('');
  expect(stderr).toMatch(/^incumbent: /);
  expect(stderr).toContain(rule);
  expect(stderr).toContain(wayOut);
  // No stack, no file of ours.
  expect(stderr).not.toMatch(/\.ts:\d|\n\s+at /);
});

test('with --json an error is one object on stderr', async () => {
  const bad = await invoke(['status', '--json']);
  expect(bad.code).toBe(64);
  expect(bad.stdout).toBe('');
  expect(jsonLines(bad.stderr)).toEqual([
    { error: { code: 'USAGE', message: expect.stringContaining('needs -e, --election <name>') } },
  ]);
  const refused = await invoke(['leader', '-e', 'x', '--json']);
  expect(refused.code).toBe(1);
  expect(jsonLines(refused.stderr)).toMatchObject([{ error: { code: 'NO_LEADER' } }]);
});

test("a --json that belongs to the program does not change run's own errors", async () => {
  const { stderr } = await invoke(['run', '--wait', '5', '-e', 'x', '--', 'p', '--json']);
  expect(stderr).toMatch(/^incumbent: /);
});

test('run hands the program its words untouched', async () => {
  expect((await runOptions('-e', 'x', '--', 'p', '-e', 'y', '--', '--json')).operands).toEqual([
    'p',
    '-e',
    'y',
    '--',
    '--json',
  ]);
  // Also without the dashes.
  const { operands, json } = await runOptions('-e', 'x', 'p', '--json', '-v');
  expect(operands).toEqual(['p', '--json', '-v']);
  expect(json).toBeUndefined();
});

test('run reads its options', async () => {
  expect(await runOptions('-e', 'x', '--', 'p')).toEqual({
    election: 'x',
    restart: 'no',
    settle: true,
    releaseOnCrash: true,
    operands: ['p'],
  });
  const kept = await runOptions('-e', 'x', '--no-release-on-crash', '--', 'p');
  expect(kept.releaseOnCrash).toBe(false);
  const all = await runOptions(
    ...['-e', 'x', '--store', 'file:/s', '--id', 'me', '--address', 'a:1', '--address', 'b:2'],
    ...['--metadata', 'k=v=w', '--metadata', '__proto__=', '--lease', '15s', '--belief', '12s'],
    ...['--stop-margin', '2s', '--renew-every', '3s', '--operation-timeout', '2s'],
    ...['--takeover-delay', '1s', '--hold-at-least', '1m', '--on-unclean', 'one'],
    ...['--on-unclean', 'two', '--health', 'true', '--health-every', '5s'],
    ...['--listen', '[::1]:8080', '--restart', 'always', '--wait', '30s', '--stop-timeout', '9s'],
    ...['--stdin', '--json', '--events-fd', '3', '--', 'p', 'q'],
  );
  expect(all).toMatchObject({
    store: 'file:/s',
    id: 'me',
    address: ['a:1', 'b:2'],
    lease: '15s',
    belief: '12s',
    stopMargin: '2s',
    renewEvery: '3s',
    operationTimeout: '2s',
    takeoverDelay: '1s',
    holdAtLeast: '1m',
    onUnclean: ['one', 'two'],
    health: 'true',
    healthEvery: '5s',
    listen: { host: '::1', port: 8080 },
    restart: 'always',
    wait: '30s',
    stopTimeout: '9s',
    stdin: true,
    json: true,
    eventsFd: 3,
    operands: ['p', 'q'],
  });
  expect(Object.entries(all.metadata ?? {})).toEqual([
    ['k', 'v=w'],
    ['__proto__', ''],
  ]);
});

test.each([
  [':8080', { host: '', port: 8080 }],
  ['127.0.0.1:0', { host: '127.0.0.1', port: 0 }],
  ['localhost:80', { host: 'localhost', port: 80 }],
])('--listen %s', async (text, listen) => {
  expect((await runOptions('-e', 'x', '--listen', text, '--', 'p')).listen).toEqual(listen);
});

test('nothing is loaded for --help, and one command for a command', async () => {
  const loaded: string[] = [];
  const table = commands.map((entry) => ({
    ...entry,
    load: () => {
      loaded.push(entry.name);
      return entry.load();
    },
  }));
  await invoke(['--help'], { table });
  expect(loaded).toEqual([]);
  await invoke(['status', '-e', 'x'], { table });
  expect(loaded).toEqual(['status']);
});
