import { expect, test } from 'vitest';
import { commands } from '../../src/redis-failover-command/command-table.ts';
import { invoke, Running } from './invoke.ts';

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
  expect(stdout).toContain(`Usage: incumbent-redis ${name}`);
  expect(stdout).toMatch(new RegExp(`Examples:\n  # .*\n  .*incumbent-redis ${name}`));
  // The help does not show the insecure way to give a password.
  expect(stdout).not.toMatch(/--password(?!-file)/);
});

test('every example of a help is a command line that is understood', async () => {
  const table = commands.map((entry) => ({ ...entry, load: async () => async () => 0 }));
  for (const { examples } of commands) {
    for (const { line } of examples) {
      const words = (line.split(' | ')[0] ?? '').split(' ').slice(1);
      expect(await invoke(words, { table }), line).toEqual({ code: 0, stdout: '', stderr: '' });
    }
  }
});

test('--version prints the version of the package', async () => {
  const { code, stdout } = await invoke(['--version']);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^\d+\.\d+\.\d+\S*\n$/);
});

test('no command at all shows the help as an error', async () => {
  const { code, stdout, stderr } = await invoke([]);
  expect(code).toBe(2);
  expect(stdout).toBe('');
  expect(stderr).toContain('Usage: incumbent-redis COMMAND');
});

test.each<[argv: readonly string[], words: string, hint: string]>([
  [['stauts', '-z', 'h'], "unknown command 'stauts'", 'Did you mean status?'],
  [['status'], 'it is not said where ZooKeeper is', 'INCUMBENT_REDIS_ZOOKEEPER'],
  [['status', '-z', 'h', '--timeout', '5'], 'It has no unit', 'write 500ms'],
  [['status', '-z', 'h', 'x'], 'too many arguments', 'status --help'],
  [
    ['failover', 'a', '-z', 'h'],
    'is not host:port with a port from 1 to 65535: "a"',
    'write it as',
  ],
  [['failover', 'a:1', 'b:1', '-z', 'h'], 'too many arguments', 'failover --help'],
  [['failover', '-z', 'h', '--wait', 'ever'], 'It is not a duration', 'failover --help'],
  [['watch', '-z', 'h', '--root', 'x'], '--root is the path of a node', ''],
])('%j is refused with 2, the rule and the way out', async (argv, words, hint) => {
  const { code, stdout, stderr } = await invoke(argv);
  expect(code).toBe(2);
  expect(stdout).toBe('');
  expect(stderr).toMatch(/^incumbent-redis: /);
  expect(stderr).toContain(words);
  expect(stderr).toContain(hint);
});

test('with --json a failure is one object on stderr', async () => {
  const { code, stderr } = await invoke(['status', '--json']);
  expect(code).toBe(2);
  expect(JSON.parse(stderr)).toMatchObject({ error: { code: 'CONFIGURATION' } });
});

test('an interrupted command ends with 128 and the number of the signal', async () => {
  const running = new Running(['status', '-z', '127.0.0.1:1']);
  running.signal('SIGTERM');
  // The signal may come before its listeners are there, or after. Both are an interruption.
  const interrupt = setInterval(() => running.signal('SIGTERM'), 5);
  const { code, stderr } = await running.result;
  clearInterval(interrupt);
  expect(code).toBe(143);
  expect(stderr).toBe('');
  expect(running.handlers).toBe(0);
});
