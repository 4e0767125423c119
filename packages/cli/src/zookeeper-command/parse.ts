import { parseArgs } from 'node:util';
import { nearest } from '../nearest.ts';
import { Arguments } from './arguments.ts';
import { UsageError } from './failure.ts';
import { ofZkCli } from './of-zk-cli.ts';
import type { CommandEntry, OptionSpec } from './table.ts';
import { commands, globalOptions, versionOption } from './table.ts';

export type CommandLine =
  | { readonly kind: 'help'; readonly command: CommandEntry | undefined }
  | { readonly kind: 'version' }
  | { readonly kind: 'run'; readonly command: CommandEntry; readonly args: Arguments };

const rootOptions: readonly OptionSpec[] = [...globalOptions, versionOption];
const tryHelp = 'try `incumbent-zk --help`';

/**
 * Reads a command line. What stands in front of the command is global; what stands behind it is the
 * command's, and global where the command has nothing of that name: `-s` and `--version` are both.
 * @param argv without the program
 * @throws UsageError
 */
export function parseCommandLine(argv: readonly string[]): CommandLine {
  const at = indexOfCommand(argv);
  const front = readOptions(argv.slice(0, at), rootOptions, tryHelp);
  if (front.values.has('help')) return { kind: 'help', command: undefined };
  if (front.values.has('version')) return { kind: 'version' };
  const word = argv[at];
  if (word === undefined) throw new UsageError(`a command is missing; ${tryHelp}`);
  if (word === 'help') {
    const about = argv.slice(at + 1).find((each) => !each.startsWith('-'));
    return { kind: 'help', command: about === undefined ? undefined : findCommand(about) };
  }
  const command = findCommand(word);
  const hint = `try \`incumbent-zk ${command.name} --help\``;
  const specs = optionsBehind(command);
  const behind = readOptions(argv.slice(at + 1), specs, hint);
  if (behind.values.has('help')) return { kind: 'help', command };
  checkOperands(command, behind.operands, hint);
  const values = new Map(behind.values);
  for (const [name, given] of front.values) {
    values.set(name, [...given, ...(values.get(name) ?? [])]);
  }
  return { kind: 'run', command, args: new Arguments(behind.operands, specs, values) };
}

/** The command's options, and the global ones without the letters that the command uses itself. */
export function optionsBehind(command: CommandEntry): readonly OptionSpec[] {
  const own = new Set(command.options.map(({ short }) => short));
  const global = globalOptions.map((spec) => {
    if (spec.short === undefined || !own.has(spec.short)) return spec;
    const { short: _, ...rest } = spec;
    return rest;
  });
  return [...command.options, ...global];
}

function findCommand(word: string): CommandEntry {
  const command = commands.find(({ name }) => name === word);
  if (command !== undefined) return command;
  const instead = ofZkCli[word];
  if (instead !== undefined)
    throw new UsageError(`unknown command "${word}"; here it is ${instead}`);
  const near = nearest(word, ['help', ...commands.map(({ name }) => name)]);
  const hint = near === undefined ? tryHelp : `did you mean \`${near}\`?`;
  throw new UsageError(`unknown command "${word}"; ${hint}`);
}

function indexOfCommand(argv: readonly string[]): number {
  const first = tokensOf(argv, rootOptions).find(({ kind }) => kind === 'positional');
  return first?.index ?? argv.length;
}

function tokensOf(args: readonly string[], specs: readonly OptionSpec[]) {
  const options = Object.fromEntries(
    specs.map(({ name, short, value }) => [
      name,
      {
        type: value === undefined ? ('boolean' as const) : ('string' as const),
        ...(short === undefined ? {} : { short }),
      },
    ]),
  );
  // Not strict: its messages cannot be ours, so what it would refuse is refused below.
  return parseArgs({ args: [...args], options, strict: false, tokens: true }).tokens;
}

interface Read {
  readonly operands: readonly string[];
  readonly values: ReadonlyMap<string, readonly string[]>;
}

function readOptions(args: readonly string[], specs: readonly OptionSpec[], hint: string): Read {
  const operands: string[] = [];
  const values = new Map<string, readonly string[]>();
  for (const token of tokensOf(args, specs)) {
    if (token.kind === 'positional') operands.push(token.value);
    if (token.kind !== 'option') continue;
    const { name, rawName, value, inlineValue } = token;
    const spec = specs.find((each) => each.name === name);
    if (spec === undefined) throw new UsageError(`unknown option ${rawName}; ${instead(name)}`);
    if (spec.value === undefined) {
      if (value !== undefined) throw new UsageError(`${rawName} takes no value; ${hint}`);
    } else if (value === undefined || (!inlineValue && /^-\D/.test(value))) {
      // A value that begins with "-" is more often the next option than meant.
      throw new UsageError(`${rawName} needs a value: ${rawName} ${spec.value}; ${hint}`);
    }
    values.set(name, [...(spec.many ? (values.get(name) ?? []) : []), value ?? '']);
  }
  return { operands, values };

  function instead(name: string): string {
    const near = nearest(
      name,
      specs.map((spec) => spec.name),
    );
    return near === undefined || name.length < 2 ? hint : `did you mean --${near}?`;
  }
}

function checkOperands(command: CommandEntry, given: readonly string[], hint: string): void {
  const missing = command.operands[given.length];
  if (missing !== undefined && missing.optional === undefined) {
    throw new UsageError(`\`${command.name}\` needs a ${missing.name}; ${hint}`);
  }
  const isOpen = command.operands.some(({ many }) => many);
  const extra = given[command.operands.length];
  if (extra !== undefined && !isOpen) {
    throw new UsageError(
      `\`${command.name}\` does not know what to do with "${extra}"; quote what belongs together`,
    );
  }
}
