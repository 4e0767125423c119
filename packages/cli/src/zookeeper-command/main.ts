import { Interruption } from '../terminal/interruption.ts';
import type { Opened, RunnableEntry } from '../terminal/main.ts';
import { runCommandLine } from '../terminal/main.ts';
import { visible } from '../terminal/text.ts';
import type { Arguments } from './arguments.ts';
import type { Context, Host } from './context.ts';
import { CommandError, describeFailure, exitCodes, InterruptedError } from './failure.ts';
import type { TableEntry } from './parse.ts';
import { argumentsOf, lineOf } from './parse.ts';
import type { Execute } from './table.ts';

type Entry = TableEntry & RunnableEntry<Arguments, Context>;

/**
 * Runs one command line.
 * @param argv without the program
 * @returns the exit code; never rejects
 */
export function main(argv: readonly string[], host: Host): Promise<number> {
  const line = lineOf(argv);
  return runCommandLine<Arguments, Context, Entry>(
    argv,
    {
      ...line,
      commands: line.commands.map((entry) => ({
        ...entry,
        load: async () => untilInterrupted(await entry.spec.load()),
      })),
      optionsOf: argumentsOf,
      open: (_entry, json) => openContext(host, json),
      describeFailure,
      oneLine: true,
    },
    host,
  );
}

/** A command that fails because it was interrupted fails for that reason. */
function untilInterrupted(execute: Execute): Execute {
  return async (args, context) => {
    try {
      return await execute(args, context);
    } finally {
      // Also when an error of the output has come after the last word.
      context.signal.throwIfAborted();
    }
  };
}

function openContext(host: Host, json: boolean): Opened<Context> {
  const interruption = new Interruption(host);
  interruption.undo(
    host.onOutputError((error) => {
      const why = `the output cannot be written: ${error.message}`;
      interruption.abort(
        error.code === 'EPIPE'
          ? new InterruptedError('EPIPE')
          : new CommandError('OUTPUT', exitCodes.output, why, { cause: error }),
      );
    }),
  );
  const { env, stdout, stderr } = host;
  const { signal } = interruption;
  return {
    context: {
      ...{ env, stdout, stderr, signal, json },
      stdin: () => host.stdin(),
      async print(data) {
        signal.throwIfAborted();
        await new Promise<void>((resolve) => {
          // The reader may have stopped reading without leaving.
          signal.addEventListener('abort', finish);
          stdout.write(data, finish);
          function finish() {
            signal.removeEventListener('abort', finish);
            resolve();
          }
        });
        signal.throwIfAborted();
      },
      note(text) {
        if (!json) stderr.write(`${visible(text)}\n`);
      },
    },
    close: () => interruption.close(),
  };
}
