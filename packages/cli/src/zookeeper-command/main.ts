import type { Context, Host, SignalName } from './context.ts';
import { CommandError, exitCodes, InterruptedError, reportFailure } from './failure.ts';
import { visible } from './output/text.ts';
import { parseCommandLine } from './parse.ts';

/**
 * Runs one command line.
 * @param argv without the program
 * @returns the exit code; never rejects
 */
export async function main(argv: readonly string[], host: Host): Promise<number> {
  const json = wantsJson(argv);
  const { context, close } = openContext(host, json);
  try {
    if (argv.length === 0) {
      const { rootHelp } = await import('./help.ts');
      host.stderr.write(rootHelp());
      return exitCodes.usage;
    }
    const line = parseCommandLine(argv);
    switch (line.kind) {
      case 'help': {
        const { commandHelp, rootHelp } = await import('./help.ts');
        await context.print(line.command === undefined ? rootHelp() : commandHelp(line.command));
        return exitCodes.ok;
      }
      case 'version':
        await context.print(`${await readVersion()}\n`);
        return exitCodes.ok;
      case 'run': {
        const execute = await line.command.load();
        const code = await execute(line.args, context);
        // An error of the output may have come after the last word.
        context.signal.throwIfAborted();
        return code;
      }
      default:
        return line satisfies never;
    }
  } catch (error) {
    // Whatever fails because we were interrupted fails for that reason.
    const { aborted, reason } = context.signal;
    return await reportFailure(aborted ? reason : error, {
      ...{ stderr: host.stderr, env: host.env, json },
    });
  } finally {
    close();
  }
}

/** The context of one command, and what must be undone after it. */
function openContext(
  host: Host,
  json: boolean,
): { readonly context: Context; readonly close: () => void } {
  const interruption = new AbortController();
  const names: readonly SignalName[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];
  const removers = names.map((name) =>
    host.onSignal(name, () => {
      const error = new InterruptedError(name);
      // Whoever asks twice does not want to wait for an orderly end.
      if (interruption.signal.aborted) host.exit(error.exitCode);
      interruption.abort(error);
    }),
  );
  removers.push(
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
          // Whoever reads may have stopped reading without leaving.
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
    close() {
      for (const remove of removers) remove();
    },
  };
}

/** Asked of the raw words, because it must be known of a command line that cannot be parsed, too. */
function wantsJson(argv: readonly string[]): boolean {
  const end = argv.indexOf('--');
  return (end === -1 ? argv : argv.slice(0, end)).includes('--json');
}

async function readVersion(): Promise<string> {
  const { readFile } = await import('node:fs/promises');
  const manifest: { version: string } = JSON.parse(
    await readFile(new URL('../../package.json', import.meta.url), 'utf8'),
  );
  return manifest.version;
}
