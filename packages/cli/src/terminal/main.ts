import type { Command } from 'commander';
import type { Failure } from './failure.ts';
import { commonExitCodes, reportFailure, UsageError } from './failure.ts';
import type { Host } from './host.ts';
import type { CommandLine, Entry } from './parse.ts';
import { hintOf, parse } from './parse.ts';

/** A command that can be run. `Options` holds the values of its command line. */
export interface RunnableEntry<Options, Context> extends Entry {
  /** Imports the code of the command, which is loaded only when the command runs. */
  load(): Promise<(options: Options, context: Context) => Promise<number>>;
}

export interface Program<Options, Context, E extends RunnableEntry<Options, Context>>
  extends CommandLine<E> {
  optionsOf(entry: E, command: Command): Options;
  /** Called before anything is awaited, so that no signal is missed. */
  open(entry: E, json: boolean): Opened<Context>;
  describeFailure(error: unknown): Failure;
  /** Show line breaks of a failure as escapes. */
  readonly oneLine?: boolean;
  /** Removes secrets from the text that INCUMBENT_DEBUG shows. */
  redact?(text: string): string;
}

/** The context of one command. `close` undoes what `open` did. */
export interface Opened<Context> {
  readonly context: Context;
  close(): void | Promise<void>;
}

/**
 * Runs one command line.
 * @param argv the words after the name of the program
 * @returns the exit code; never rejects
 */
export async function runCommandLine<Options, Context, E extends RunnableEntry<Options, Context>>(
  argv: readonly string[],
  program: Program<Options, Context, E>,
  host: Host,
): Promise<number> {
  let json = wantsJson(argv);
  let chosen: E | undefined;
  try {
    const parsed = parse(argv, program, host);
    switch (parsed.kind) {
      case 'help':
        (parsed.isAskedFor ? host.stdout : host.stderr).write(parsed.text);
        return parsed.isAskedFor ? commonExitCodes.ok : program.usageExitCode;
      case 'version':
        host.stdout.write(`${await readVersion()}\n`);
        return commonExitCodes.ok;
      case 'run': {
        const { entry, command } = parsed;
        chosen = entry;
        json = command.optsWithGlobals()['json'] === true;
        const { context, close } = program.open(entry, json);
        try {
          const execute = await entry.load();
          return await execute(program.optionsOf(entry, command), context);
        } finally {
          await close();
        }
      }
      default:
        return parsed satisfies never;
    }
  } catch (error) {
    const hint = error instanceof UsageError ? (error.hint ?? hintOf(program, chosen)) : undefined;
    const { name, oneLine, redact } = program;
    const { stderr, env } = host;
    const describe = (failed: unknown) => program.describeFailure(failed);
    return reportFailure(error, { name, stderr, env, json, hint, oneLine, describe, redact });
  }
}

/** The options of a command, named as commander names them, and its operands. */
export function commanderOptions(_entry: Entry, command: Command): object {
  return { ...command.opts(), operands: command.args };
}

/** Looks at the raw words, because a command line that cannot be parsed needs the answer too. */
function wantsJson(argv: readonly string[]): boolean {
  const end = argv.indexOf('--');
  return (end === -1 ? argv : argv.slice(0, end)).includes('--json');
}

/** The version of this package. */
export async function readVersion(): Promise<string> {
  const { readFile } = await import('node:fs/promises');
  const manifest: { version: string } = JSON.parse(
    await readFile(new URL('../../package.json', import.meta.url), 'utf8'),
  );
  return manifest.version;
}
