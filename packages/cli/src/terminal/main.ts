import type { Command } from 'commander';
import type { Failure } from './failure.ts';
import { commonExitCodes, reportFailure, UsageError } from './failure.ts';
import type { Host } from './host.ts';
import type { CommandLine, Entry } from './parse.ts';
import { hintOf, parse } from './parse.ts';

/** A command that can be run: `Options` is what it gets of its command line. */
export interface RunnableEntry<Options, Context> extends Entry {
  /** Imports the command: nothing is loaded before it runs. */
  load(): Promise<(options: Options, context: Context) => Promise<number>>;
}

export interface Program<Options, Context, E extends RunnableEntry<Options, Context>>
  extends CommandLine<E> {
  optionsOf(entry: E, command: Command): Options;
  /** Called before anything is awaited: no signal is missed. */
  open(entry: E, json: boolean): Opened<Context>;
  describeFailure(error: unknown): Failure;
  /** Line breaks of a failure are shown as escapes. */
  readonly oneLine?: boolean;
  /** Takes secrets out of what is shown for debugging. */
  redact?(text: string): string;
}

/** The context of one command, and what must be undone after it. */
export interface Opened<Context> {
  readonly context: Context;
  close(): void | Promise<void>;
}

/**
 * Runs one command line.
 * @param argv without the program
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

/** The options of a command as commander has them, and its operands. */
export function commanderOptions(_entry: Entry, command: Command): object {
  return { ...command.opts(), operands: command.args };
}

/** Asked of the raw words, because it must be known of a command line that cannot be parsed, too. */
function wantsJson(argv: readonly string[]): boolean {
  const end = argv.indexOf('--');
  return (end === -1 ? argv : argv.slice(0, end)).includes('--json');
}

/** That of this package. */
export async function readVersion(): Promise<string> {
  const { readFile } = await import('node:fs/promises');
  const manifest: { version: string } = JSON.parse(
    await readFile(new URL('../../package.json', import.meta.url), 'utf8'),
  );
  return manifest.version;
}
