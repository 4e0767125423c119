import { expect, test } from 'vitest';
import { UsageError } from '../../src/zookeeper-command/failure.ts';
import { commandHelp, rootHelp } from '../../src/zookeeper-command/help.ts';
import { argumentsOf, parseCommandLine } from '../../src/zookeeper-command/parse.ts';
import { commands } from '../../src/zookeeper-command/table.ts';

function run(...argv: string[]) {
  const line = parseCommandLine(argv);
  if (line.kind !== 'run') throw new Error(`it is ${line.kind}`);
  return { command: line.entry.spec, args: argumentsOf(line.entry, line.command) };
}

function refusal(...argv: string[]): string {
  try {
    parseCommandLine(argv);
  } catch (error) {
    if (error instanceof UsageError) return error.message;
    throw error;
  }
  throw new Error('it was understood');
}

test('global options stand in front of the command or behind it', () => {
  for (const argv of [
    ['--server', 'zk://a', '--json', 'ls', '/x'],
    ['ls', '/x', '--json', '-s', 'zk://a'],
    ['-szk://a', 'ls', '--json', '/x'],
  ]) {
    const { command, args } = run(...argv);
    expect(command.name).toBe('ls');
    expect(args.operands).toEqual(['/x']);
    expect(args.value('server')).toBe('zk://a');
    expect(args.has('json')).toBe(true);
    expect(args.has('recursive')).toBe(false);
  }
});

test('-s is the server, and behind `create` --sequential', () => {
  const { args } = run('-s', 'zk://a', 'create', '-es', '/x');
  expect(args.value('server')).toBe('zk://a');
  expect(args.has('sequential')).toBe(true);
  expect(args.has('ephemeral')).toBe(true);
  // The long name means the server in every command.
  expect(run('create', '--server', 'zk://a', '/x').args.value('server')).toBe('zk://a');
});

test('--version is ours in front of the command, and behind it that of a node', () => {
  expect(parseCommandLine(['--version'])).toEqual({ kind: 'version' });
  expect(parseCommandLine(['-V', 'ls'])).toEqual({ kind: 'version' });
  expect(run('set', '/x', 'y', '--version', '3').args.nodeVersion()).toBe(3);
  expect(run('set', '/x', 'y', '--version', '-1').args.nodeVersion()).toBe(-1);
  expect(refusal('ls', '--version', '/x')).toContain('unknown option --version');
});

test('help is asked for in four ways', () => {
  const rm = commandHelp(commands.find(({ name }) => name === 'rm')!);
  const help = { kind: 'help', isAskedFor: true };
  expect(parseCommandLine(['--help'])).toEqual({ ...help, text: rootHelp() });
  expect(parseCommandLine(['help'])).toEqual({ ...help, text: rootHelp() });
  expect(parseCommandLine(['help', 'rm'])).toEqual({ ...help, text: rm });
  // Also when the rest of the line could not be used.
  expect(parseCommandLine(['rm', '-h'])).toEqual({ ...help, text: rm });
});

test('help is help, also in a process that is to end with another exit code', () => {
  const { exitCode } = process;
  process.exitCode = 1;
  try {
    expect(parseCommandLine(['help'])).toMatchObject({ kind: 'help', isAskedFor: true });
    expect(process.exitCode).toBe(1);
  } finally {
    process.exitCode = exitCode;
  }
});

test('repeated options add up where that makes sense, else the last one counts', () => {
  const { args } = run('--auth', 'a:1', '-s', 'x', 'ls', '--auth', 'b:2', '-s', 'y');
  expect(args.all('auth')).toEqual(['a:1', 'b:2']);
  expect(args.value('server')).toBe('y');
});

test('what stands behind -- is no option', () => {
  expect(run('set', '/x', '--', '-1').args.operands).toEqual(['/x', '-1']);
  expect(run('set', '/x', '-').args.operands).toEqual(['/x', '-']);
});

test.each<[string[], string]>([
  [['lss'], 'unknown command "lss"; did you mean `ls`?'],
  [['creat', '/x'], 'unknown command "creat"; did you mean `create`?'],
  [['deleteall', '/x'], 'unknown command "deleteall"; here it is `rm -r`'],
  [['getAcl', '/x'], 'unknown command "getAcl"; here it is `acl`'],
  [['toString'], 'unknown command "toString"; try `incumbent-zk --help`'],
  [['--json'], 'a command is missing; try `incumbent-zk --help`'],
  [['get'], '`get` needs a PATH; try `incumbent-zk get --help`'],
  [['get', '/x', '/y'], '`get` does not know what to do with "/y"; quote what belongs together'],
  [['ls', '--recursiv'], 'unknown option --recursiv; did you mean --recursive?'],
  [['ls', '-x'], 'unknown option -x; try `incumbent-zk ls --help`'],
  [['--stat', 'ls', '/'], 'unknown option --stat; try `incumbent-zk --help`'],
  [['ls', '--json=1'], '--json takes no value; try `incumbent-zk ls --help`'],
  [['ls', '-s'], '-s needs a value: -s URL; try `incumbent-zk ls --help`'],
  [
    ['ls', '--server', '--json'],
    '--server needs a value: --server URL; try `incumbent-zk ls --help`',
  ],
])('%j is refused with what to do', (argv, message) => {
  expect(refusal(...argv)).toBe(message);
});

test.each(['', '1.5', 'x', '-2147483649', '2147483648', '1e3'])(
  '"%s" is no version of a node',
  (text) => {
    const { args } = run('rm', '/x', `--version=${text}`);
    expect(() => args.nodeVersion()).toThrow('--version is a whole number from -2147483648 to');
  },
);

test.each([
  ['500ms', 500],
  ['1.5s', 1500],
  ['2m', 120_000],
  ['1h', 3_600_000],
  ['1d', 86_400_000],
])('a timeout of %s is %i ms', (text, ms) => {
  expect(run('ls', '--timeout', text).args.durationMs('timeout')).toBe(ms);
});

test.each(['10', '0s', 'soon', '1w', '0.1ms'])('"%s" is no timeout', (text) => {
  expect(() => run('ls', '--timeout', text).args.durationMs('timeout')).toThrow(
    /--timeout ".*" (has no unit|is no duration): write 500ms, 10s, 2m or 1h/,
  );
});

test('a command cannot ask for an option that is not in the table', () => {
  expect(() => run('ls').args.has('recursve')).toThrow('no option --recursve');
});
