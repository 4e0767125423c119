/** The command lines of `incumbent-zk`: those of its table, read by commander. */
import type { Command } from 'commander';
import { Argument, Option } from 'commander';
import { nearest } from '../terminal/nearest.ts';
import type { CommandLine, Entry, Parsed, Refusal } from '../terminal/parse.ts';
import { parse, wordsOf } from '../terminal/parse.ts';
import { Arguments } from './arguments.ts';
import { exitCodes, UsageError } from './failure.ts';
import { commandHelp, rootHelp } from './help.ts';
import { ofZkCli } from './of-zk-cli.ts';
import type { CommandEntry, OperandSpec, OptionSpec } from './table.ts';
import { commands, globalOptions, optionsBehind, versionOption } from './table.ts';

/** One command, as `terminal/` takes it. */
export interface TableEntry extends Entry {
  readonly spec: CommandEntry;
}

const rootOptions: readonly OptionSpec[] = [...globalOptions, versionOption];
const tryHelp = 'try `incumbent-zk --help`';
/** Commander and `terminal/parse.ts` add these. */
const addedByOthers: ReadonlySet<string> = new Set(['help', 'version']);

/** @throws UsageError */
export function parseCommandLine(argv: readonly string[]): Parsed<TableEntry> {
  return parse(argv, lineOf(argv), { stdout: { write() {} }, stderr: { write() {} } });
}

/**
 * Options in front of the command are global. Behind it they are the command's, and global where the
 * command has none of that name: `-s` and `--version` are both.
 */
export function lineOf(argv: readonly string[]): CommandLine<TableEntry> {
  return {
    name: 'incumbent-zk',
    usageExitCode: exitCodes.usage,
    hints: false,
    commands: commands.map((spec) => ({
      name: spec.name,
      summary: spec.summary,
      spec,
      define(command) {
        for (const operand of spec.operands) command.addArgument(argumentOf(operand));
        const hint = hintOf(spec);
        for (const option of optionsBehind(spec)) {
          if (option.name !== 'help') command.addOption(optionOf(option, argv, hint));
        }
      },
    })),
    define(program) {
      program
        .enablePositionalOptions()
        .showSuggestionAfterError(false)
        .helpCommand(false)
        .configureHelp({
          formatHelp: (command) => {
            const spec = commands.find(({ name }) => name === command.name());
            return spec === undefined ? rootHelp() : commandHelp(spec);
          },
        });
      for (const option of globalOptions) {
        if (!addedByOthers.has(option.name)) program.addOption(optionOf(option, argv, tryHelp));
      }
      addHelpCommand(program);
    },
    explain,
  };
}

/** The command line, as a command gets it. */
export function argumentsOf({ spec }: TableEntry, command: Command): Arguments {
  const specs = optionsBehind(spec);
  const front = command.parent?.opts() ?? {};
  const behind = command.opts();
  const values = specs.map(({ name }): [string, readonly string[]] => {
    const key = new Option(`--${name}`).attributeName();
    const isGlobal = globalOptions.some((option) => option.name === name);
    return [name, [...(isGlobal ? given(front[key]) : []), ...given(behind[key])]];
  });
  return new Arguments(command.args, specs, new Map(values));
}

/** A flag has the value ''. */
function given(value: unknown): readonly string[] {
  if (value === undefined) return [];
  return Array.isArray(value) ? value : [value === true ? '' : String(value)];
}

function argumentOf({ name, optional, many }: OperandSpec): Argument {
  const word = many ? `${name}...` : name;
  return new Argument(optional ? `[${word}]` : `<${word}>`);
}

function optionOf(spec: OptionSpec, argv: readonly string[], hint: string): Option {
  const { name, short, value, many, about } = spec;
  const flags = `${short === undefined ? '' : `-${short}, `}--${name}`;
  if (value === undefined) return new Option(flags, about);
  return new Option(`${flags} <${value}>`, about).argParser(
    (text, before: readonly string[] | undefined) => {
      // A value that begins with "-" is more often the next option than meant.
      if (/^-\D/.test(text)) refuseNextOption(spec, text, argv, hint);
      return many ? [...(before ?? []), text] : [text];
    },
  );
}

/** Where the value stands in a word of its own, behind the option. */
function refuseNextOption(
  { name, short, value }: OptionSpec,
  text: string,
  argv: readonly string[],
  hint: string,
): void {
  const isShort = (word: string) =>
    short !== undefined && /^-[^-=]+$/.test(word) && word.endsWith(short);
  const at = argv.findIndex(
    (word, i) => argv[i + 1] === text && (word === `--${name}` || isShort(word)),
  );
  if (at === -1) return;
  const flag = argv[at] === `--${name}` ? `--${name}` : `-${short}`;
  throw new UsageError(`${flag} needs a value: ${flag} ${value}; ${hint}`);
}

/** `help`, and `help COMMAND` whatever else is on the line. */
function addHelpCommand(program: Command): void {
  const help = program
    .command('help')
    .argument('[COMMAND]')
    .allowUnknownOption()
    .allowExcessArguments();
  help.action(() => {
    const about = help.args.find((word) => !word.startsWith('-'));
    if (about === undefined) program.help();
    const { name } = findCommand(String(about));
    program.commands.find((command) => command.name() === name)?.help();
  });
}

function explain(refusal: Refusal<TableEntry>): string {
  const { error, entry, command, argv } = refusal;
  const hint = entry === undefined ? tryHelp : hintOf(entry.spec);
  const specs = entry === undefined ? rootOptions : optionsBehind(entry.spec);
  const quoted = /'(.*)'/s.exec(error.message)?.[1] ?? '';
  switch (error.code) {
    case 'commander.help':
      return `a command is missing; ${tryHelp}`;
    case 'commander.unknownCommand':
      return unknownCommand(quoted);
    case 'commander.unknownOption':
      return unknownOption(quoted, specs, hint);
    case 'commander.optionMissingArgument': {
      // Nothing is behind it.
      const last = argv.at(-1) ?? '';
      const flag = last.startsWith('--') ? last : `-${last.at(-1)}`;
      const spec = specs.find(({ name, short }) => flag === `--${name}` || flag === `-${short}`);
      return `${flag} needs a value: ${flag} ${spec?.value}; ${hint}`;
    }
    case 'commander.missingArgument':
      return `\`${entry?.name}\` needs a ${quoted}; ${hint}`;
    case 'commander.excessArguments': {
      const extra = command.args[entry?.spec.operands.length ?? 0];
      return `\`${entry?.name}\` does not know what to do with "${extra}"; quote what belongs together`;
    }
    default:
      return wordsOf(refusal);
  }
}

function unknownOption(word: string, specs: readonly OptionSpec[], hint: string): string {
  const isLong = word.startsWith('--');
  const [flag = ''] = isLong ? word.split('=') : [word.slice(0, 2)];
  const name = flag.replace(/^-+/, '');
  if (isLong && specs.some((spec) => spec.name === name)) return `${flag} takes no value; ${hint}`;
  const near = nearest(
    name,
    specs.map((spec) => spec.name),
  );
  const instead = near === undefined || name.length < 2 ? hint : `did you mean --${near}?`;
  return `unknown option ${flag}; ${instead}`;
}

function findCommand(word: string): CommandEntry {
  const spec = commands.find(({ name }) => name === word);
  if (spec === undefined) throw new UsageError(unknownCommand(word));
  return spec;
}

function unknownCommand(word: string): string {
  const instead = ofZkCli[word];
  if (instead !== undefined) return `unknown command "${word}"; here it is ${instead}`;
  const near = nearest(word, ['help', ...commands.map(({ name }) => name)]);
  const hint = near === undefined ? tryHelp : `did you mean \`${near}\`?`;
  return `unknown command "${word}"; ${hint}`;
}

function hintOf({ name }: CommandEntry): string {
  return `try \`incumbent-zk ${name} --help\``;
}
