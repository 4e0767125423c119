/** Command lines, read by commander. */
import { Command, CommanderError, Option } from 'commander';
import { UsageError } from './failure.ts';
import type { Host } from './host.ts';

/** One command of several. */
export interface Entry {
  readonly name: string;
  /** One line for the list of commands, without a full stop. */
  readonly summary: string;
  /** For the help of the command (default: the summary). */
  readonly description?: string;
  /** Under which heading the list of commands has it. */
  readonly group?: string;
  readonly examples?: readonly { readonly line: string; readonly about: string }[];
  /** Adds options and operands. */
  define(command: Command): void;
}

export interface CommandLine<E extends Entry> {
  /** Of the program. */
  readonly name: string;
  readonly commands: readonly E[];
  readonly usageExitCode: number;
  /** A usage error points to the help, on a line of its own. */
  readonly hints: boolean;
  /** Adds what the help of the program says, and its own options. Its commands inherit some settings. */
  define(program: Command): void;
  /** The words of a usage error (default: commander's). */
  explain?(refusal: Refusal<E>): string;
}

export interface Refusal<E extends Entry> {
  readonly error: CommanderError;
  /** Undefined: what stands in front of the command, or the command itself, is refused. */
  readonly entry: E | undefined;
  readonly command: Command;
  readonly argv: readonly string[];
}

export type Parsed<E extends Entry> =
  | {
      readonly kind: 'help';
      readonly text: string;
      /** Else it is shown because nothing was asked for. */
      readonly isAskedFor: boolean;
    }
  | { readonly kind: 'version' }
  | ({ readonly kind: 'run' } & Chosen<E>);

const versionCode = 'incumbent.version';

/**
 * Reads a command line, and runs nothing.
 * @param argv without the program
 * @throws UsageError
 */
export function parse<E extends Entry>(
  argv: readonly string[],
  line: CommandLine<E>,
  host: Pick<Host, 'stdout' | 'stderr'>,
): Parsed<E> {
  let [text, asError] = ['', ''];
  const came: { to?: Chosen<E>; refused?: Chosen<E> } = {};
  const program = new Command(line.name)
    .configureHelp({ subcommandTerm: (command) => command.name() })
    .addOption(new Option('-V, --version', 'print the version'))
    .on('option:version', () => {
      throw new CommanderError(0, versionCode, '');
    });
  // Inherited by the commands, which are made after this.
  program
    .exitOverride()
    .helpOption('-h, --help', 'show this help')
    .configureOutput({
      writeOut: (more) => {
        text += more;
      },
      writeErr: (more) => {
        asError += more;
      },
      // Errors are reported by who asked.
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
    entry.define(command);
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
    return { kind: 'help', text: asError, isAskedFor: false };
  }
  try {
    program.parse(argv, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.code === versionCode) return { kind: 'version' };
    // Its exit code may be one that this process has from elsewhere.
    if (text !== '') return { kind: 'help', text, isAskedFor: true };
    const { entry, command } = came.refused ?? { entry: undefined, command: program };
    const refusal = { error, entry, command, argv };
    const words = line.explain?.(refusal) ?? wordsOf(refusal);
    throw new UsageError(words, line.usageExitCode, hintOf(line, entry));
  }
  if (came.to === undefined) throw new Error(`${line.name} has no command for that`);
  return { kind: 'run', ...came.to };
}

interface Chosen<E extends Entry> {
  readonly entry: E;
  readonly command: Command;
}

/** Commander's own words. */
export function wordsOf<E extends Entry>({ error, argv }: Refusal<E>): string {
  // It shows the help instead of an error for `help COMMAND` of no command.
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
