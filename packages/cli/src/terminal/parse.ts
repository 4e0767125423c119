/** Command lines, read by commander. */
import { Command, CommanderError, Option } from 'commander';
import { UsageError } from './failure.ts';
import type { Host } from './host.ts';
import { nearest } from './nearest.ts';

/** One command of several. */
export interface Entry {
  readonly name: string;
  /** One line for the list of commands, without a full stop. */
  readonly summary: string;
  /** The first lines of the help of the command. Default: the summary. */
  readonly description?: string;
  /** The heading under which the list of commands shows it. */
  readonly group?: string;
  readonly examples?: readonly { readonly line: string; readonly about: string }[];
  /** Adds options and operands. */
  define(command: Command): void;
}

export interface CommandLine<E extends Entry> {
  /** The name of the program. */
  readonly name: string;
  readonly commands: readonly E[];
  readonly usageExitCode: number;
  /** A usage error points to the help, on a line of its own. */
  readonly hints: boolean;
  /** Adds the help and the options of the program. Its commands inherit some settings. */
  define(program: Command): void;
  /** The words of a usage error. Default: commander's. */
  explain?(refusal: Refusal<E>): string;
}

export interface Refusal<E extends Entry> {
  readonly error: CommanderError;
  /** Undefined: the command itself, or a word in front of it, is refused. */
  readonly entry: E | undefined;
  readonly command: Command;
  readonly argv: readonly string[];
}

export type Parsed<E extends Entry> =
  | {
      readonly kind: 'help';
      readonly text: string;
      /** False: it is shown because the command line is empty. */
      readonly isAskedFor: boolean;
    }
  | { readonly kind: 'version' }
  | ({ readonly kind: 'run' } & Chosen<E>);

const versionCode = 'incumbent.version';

/**
 * Reads a command line, and runs nothing.
 * @param argv the words after the name of the program
 * @throws UsageError
 */
export function parse<E extends Entry>(
  argv: readonly string[],
  line: CommandLine<E>,
  host: Pick<Host, 'stdout' | 'stderr'>,
): Parsed<E> {
  let text = '';
  const came: { to?: Chosen<E>; refused?: Chosen<E> } = {};
  const program = new Command(line.name)
    .configureHelp({ subcommandTerm: (command) => command.name() })
    .addOption(new Option('-V, --version', 'print the version'))
    .on('option:version', () => {
      throw new CommanderError(0, versionCode, '');
    });
  // Inherited by the commands, which are made after this.
  const write = (more: string) => {
    text += more;
  };
  program
    .exitOverride()
    .helpOption('-h, --help', 'show this help')
    .configureOutput({
      writeOut: write,
      writeErr: write,
      // The caller reports errors.
      outputError: () => {},
      getOutHelpWidth: () => host.stdout.columns ?? 80,
      getErrHelpWidth: () => host.stderr.columns ?? 80,
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    });
  line.define(program);
  for (const entry of line.commands) {
    const command = program.command(entry.name).summary(entry.summary);
    command.description(entry.description ?? asSentence(entry.summary));
    if (entry.group !== undefined) command.helpGroup(entry.group);
    if (entry.examples !== undefined) command.addHelpText('after', asHelp(entry.examples));
    // Only a command that is named can be chosen, and some have dozens of options.
    if (argv.includes(entry.name)) entry.define(command);
    command
      .exitOverride((error) => {
        came.refused = { entry, command };
        throw error;
      })
      .action(() => {
        came.to = { entry, command };
      });
  }
  if (argv.length === 0) {
    program.outputHelp({ error: true });
    return { kind: 'help', text, isAskedFor: false };
  }
  // For help, commander takes the exit code that the process has got so far.
  const { exitCode } = process;
  process.exitCode = undefined;
  try {
    program.parse(argv, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.code === versionCode) return { kind: 'version' };
    if (error.exitCode === 0) return { kind: 'help', text, isAskedFor: true };
    const { entry, command } = came.refused ?? { entry: undefined, command: program };
    const isMissing = error.code === 'commander.missingMandatoryOptionValue';
    const misspelled = isMissing ? misspelledIn(argv, entry, command) : undefined;
    const refusal = { error: misspelled ?? error, entry, command, argv };
    const words = line.explain?.(refusal) ?? wordsOf(refusal);
    throw new UsageError(words, line.usageExitCode, hintOf(line, entry));
  } finally {
    process.exitCode = exitCode;
  }
  if (came.to === undefined) throw new Error(`${line.name} has no command for that`);
  return { kind: 'run', ...came.to };
}

/**
 * Commander looks first whether an option is missing. One that is misspelled is the better news: it may be
 * the missing one.
 */
function misspelledIn(
  argv: readonly string[],
  entry: Entry | undefined,
  command: Command,
): CommanderError | undefined {
  if (entry === undefined) return undefined;
  // It was parsed up to the missing option, so this finds the same and refuses nothing.
  const { unknown } = command.parseOptions(argv.slice(argv.indexOf(entry.name) + 1));
  const flag = unknown[0]?.split('=')[0];
  if (flag === undefined || !flag.startsWith('-')) return undefined;
  const meant = nearest(
    flag,
    command.options.flatMap(({ long }) => long ?? []),
  );
  const hint = meant === undefined ? '' : `\n(Did you mean ${meant}?)`;
  return new CommanderError(1, 'commander.unknownOption', `error: unknown option '${flag}'${hint}`);
}

interface Chosen<E extends Entry> {
  readonly entry: E;
  readonly command: Command;
}

/** Commander's own words for a refusal. */
export function wordsOf<E extends Entry>({ error, argv }: Refusal<E>): string {
  // For `help COMMAND` with an unknown command, commander shows the help instead of an error.
  if (error.code === 'commander.help') return `unknown command '${argv.at(-1)}'`;
  return error.message.replace(/^error: /, '');
}

export function hintOf<E extends Entry>(
  { name, hints }: CommandLine<E>,
  entry: E | undefined,
): string | undefined {
  if (!hints) return undefined;
  return `Try \`${[name, ...(entry === undefined ? [] : [entry.name])].join(' ')} --help\`.`;
}

export function asSentence(summary: string): string {
  return `${summary[0]?.toUpperCase()}${summary.slice(1)}.`;
}

function asHelp(examples: NonNullable<Entry['examples']>): string {
  const lines = examples.flatMap(({ line, about }) => [`  # ${about}`, `  ${line}`]);
  return `\nExamples:\n${lines.join('\n')}`;
}
