import { Command, CommanderError, Option } from 'commander';
import type { CommandEntry } from './command-table.ts';
import type { Context, Host, SignalName } from './context.ts';
import { exitCodes, InterruptedError, reportFailure, UsageError } from './failure.ts';

const helpHint = 'Try `incumbent-redis --help`.';

/**
 * Runs one command line.
 * @param argv without the program
 * @returns the exit code; never rejects
 */
export async function main(
  argv: readonly string[],
  commands: readonly CommandEntry[],
  host: Host,
): Promise<number> {
  let exitCode: number = exitCodes.ok;
  let hint = helpHint;
  let json = argv.includes('--json');
  const program = new Command('incumbent-redis')
    .description(
      'Automatic failover of a Redis primary, decided by managers that meet in ZooKeeper.',
    )
    .usage('COMMAND [options]')
    .helpCommand('help [command]', 'show the help of a command')
    .configureHelp({ subcommandTerm: (command) => command.name() })
    .addOption(new Option('-V, --version', 'print the version'))
    .addHelpText('after', rootExamples);
  // Inherited by the commands, which are made after this.
  program
    .exitOverride()
    .helpOption('-h, --help', 'show this help')
    .configureOutput({
      writeOut: (text) => host.stdout.write(text),
      writeErr: (text) => host.stderr.write(text),
      // Errors are reported below.
      outputError: () => {},
      getOutHelpWidth: () => host.stdout.columns ?? 80,
      getErrHelpWidth: () => host.stderr.columns ?? 80,
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    });
  program.on('option:version', () => {
    throw new CommanderError(0, 'incumbent-redis.version', '');
  });
  for (const entry of commands) {
    const command = program
      .command(entry.name)
      .summary(entry.summary)
      .description(entry.description)
      .addHelpText('after', formatExamples(entry.examples));
    entry.define(command);
    const ownHint = `Try \`incumbent-redis ${entry.name} --help\`.`;
    command.exitOverride((error) => {
      hint = ownHint;
      throw error;
    });
    command.action(async () => {
      hint = ownHint;
      json = command.opts()['json'] === true;
      const { context, close } = openContext(host);
      try {
        const execute = await entry.load();
        exitCode = await execute({ ...command.opts(), operands: command.args }, context);
      } finally {
        close();
      }
    });
  }
  const report = (error: unknown, ...withHint: [hint?: string]) =>
    reportFailure(error, { stderr: host.stderr, env: host.env, json }, ...withHint);
  try {
    if (argv.length === 0) program.outputHelp({ error: true });
    if (argv.length === 0) return exitCodes.usage;
    await program.parseAsync(argv, { from: 'user' });
    return exitCode;
  } catch (error) {
    if (!(error instanceof CommanderError)) {
      return error instanceof UsageError ? report(error, hint) : report(error);
    }
    if (error.code === 'incumbent-redis.version') {
      const { readVersion } = await import('./version.ts');
      host.stdout.write(`${await readVersion()}\n`);
      return exitCodes.ok;
    }
    if (error.exitCode === 0) return exitCodes.ok;
    return report(new UsageError(error.message.replace(/^error: /, '')), hint);
  }
}

/** The context of one command, and what must be undone after it. */
function openContext(host: Host): { readonly context: Context; readonly close: () => void } {
  const interruption = new AbortController();
  const hangUps: (() => void)[] = [];
  const interrupt = (name: SignalName) => {
    const error = new InterruptedError(name);
    // Whoever asks twice does not want to wait for an orderly end.
    if (interruption.signal.aborted) host.exit(error.exitCode);
    interruption.abort(error);
  };
  const removers = [
    host.onSignal('SIGINT', () => interrupt('SIGINT')),
    host.onSignal('SIGTERM', () => interrupt('SIGTERM')),
    host.onSignal('SIGHUP', () => {
      if (hangUps.length === 0) interrupt('SIGHUP');
      for (const listener of hangUps) listener();
    }),
  ];
  return {
    context: {
      env: host.env,
      cwd: host.cwd,
      get stdout() {
        return host.stdout;
      },
      stderr: host.stderr,
      openLog: () => host.openLog(),
      signal: interruption.signal,
      onHangUp: (listener) => {
        hangUps.push(listener);
      },
    },
    close() {
      for (const remove of removers) remove();
    },
  };
}

function formatExamples(examples: CommandEntry['examples']): string {
  const lines = examples.flatMap(({ line, about }) => [`  # ${about}`, `  ${line}`]);
  return `\nExamples:\n${lines.join('\n')}`;
}

const rootExamples = `
Examples:
  # On each of two or three machines: they elect one of themselves, which fails over
  incumbent-redis manage -n redis1:6379,redis2:6379,redis3:6379 -z zk1,zk2,zk3
  # Who is the primary, and is all well?
  incumbent-redis status -z zk1,zk2,zk3
  # Make another node the primary, without losing a write
  incumbent-redis failover redis2:6379 -z zk1,zk2,zk3

ZooKeeper is given by --zookeeper, INCUMBENT_REDIS_ZOOKEEPER or a configuration file (--config).
Exit codes: 0 done or healthy, 1 refused or degraded, 2 usage or configuration, 3 no ZooKeeper.`;
