import { Command, CommanderError, Option } from 'commander';
import type { CommandEntry } from './command-table.ts';
import type { Context, Host, OpenStore, SignalName } from './context.ts';
import { exitCodes, InterruptedError, reportFailure, UsageError } from './failure.ts';
import { anyOf, serverForms } from './store-forms.ts';

const helpHint = 'Try `incumbent --help`.';

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
  let json = wantsJson(argv);
  const program = new Command('incumbent')
    .description(
      'Leader election: run a program in one place at a time, and watch and steer who leads.',
    )
    .usage('COMMAND [options]')
    // Options behind the name of a program are the program's.
    .enablePositionalOptions()
    .commandsGroup('Set up:')
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
    throw new CommanderError(0, 'incumbent.version', '');
  });
  for (const entry of commands) {
    const command = program
      .command(entry.name)
      .summary(entry.summary)
      .description(
        entry.description ?? `${entry.summary[0]?.toUpperCase()}${entry.summary.slice(1)}.`,
      )
      .helpGroup(entry.group)
      .addHelpText('after', formatExamples(entry.examples));
    entry.define(command);
    const ownHint = `Try \`incumbent ${entry.name} --help\`.`;
    command.exitOverride((error) => {
      hint = ownHint;
      throw withWayOut(error, entry, command.args);
    });
    command.action(async () => {
      hint = ownHint;
      json = command.opts()['json'] === true;
      const { context, close } = openContext(host, entry.handlesSignals === true);
      try {
        const execute = await entry.load();
        exitCode = await execute({ ...command.opts(), operands: command.args }, context);
      } finally {
        await close();
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
    if (error.code === 'incumbent.version') {
      host.stdout.write(`${await readVersion()}\n`);
      return exitCodes.ok;
    }
    if (error.exitCode === 0) return exitCodes.ok;
    return report(new UsageError(error.message.replace(/^error: /, '')), hint);
  }
}

/** Names the option or operand that is missing or too much, and shows a correct command line. */
function withWayOut(
  error: CommanderError,
  { name, examples }: CommandEntry,
  operands: readonly string[],
): CommanderError {
  const [named] = operands;
  const instead = (message: string) => new CommanderError(error.exitCode, error.code, message);
  switch (error.code) {
    case 'commander.missingMandatoryOptionValue': {
      const [, flags = ''] = /'(.*)'/.exec(error.message) ?? [];
      // The operand of `run` is the program.
      const isMeant = flags.startsWith('-e') && name !== 'run' && named !== undefined;
      const meant = isMeant ? `: write \`-e ${named}\`` : `, as in \`${examples[0]?.line}\``;
      return instead(`${name} needs ${flags}${meant}`);
    }
    case 'commander.missingArgument': {
      const [, argument = ''] = /'(.*)'/.exec(error.message) ?? [];
      return instead(`${name} needs <${argument}>, as in \`${examples[0]?.line}\``);
    }
    case 'commander.excessArguments':
      return instead(`${name} takes options only, and "${named}" is none; -e names the election`);
    default:
      return error;
  }
}

/** The context of one command, with the function that releases it. */
function openContext(
  host: Host,
  handlesSignals: boolean,
): { readonly context: Context; readonly close: () => Promise<void> } {
  const stores: OpenStore[] = [];
  const interruption = new AbortController();
  const names: readonly SignalName[] = handlesSignals ? [] : ['SIGINT', 'SIGTERM', 'SIGHUP'];
  const removers = names.map((name) =>
    host.onSignal(name, () => {
      const error = new InterruptedError(name);
      // A second signal means that the user does not want to wait for an orderly end.
      if (interruption.signal.aborted) host.exit(error.exitCode);
      interruption.abort(error);
    }),
  );
  const { env, cwd, platform, stdout, stderr } = host;
  return {
    context: {
      env,
      cwd,
      platform,
      stdout,
      stderr,
      async openStore(url, needs) {
        const store = await host.openStore(url, needs);
        stores.push(store);
        return store;
      },
      signal: interruption.signal,
    },
    async close() {
      try {
        for (const store of stores) await store.close?.();
      } finally {
        for (const remove of removers) remove();
      }
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
    await readFile(new URL('../package.json', import.meta.url), 'utf8'),
  );
  return manifest.version;
}

function formatExamples(examples: CommandEntry['examples']): string {
  const lines = examples.flatMap(({ line, about }) => [`  # ${about}`, `  ${line}`]);
  return `\nExamples:\n${lines.join('\n')}`;
}

const rootExamples = `
Examples:
  # On each of several terminals: one worker at a time, another takes over when it stops
  incumbent run -e nightly -- node worker.js
  # Who leads, and who led before
  incumbent status -e nightly
  incumbent history -e nightly

Elections are held on a store, which --store or the variable INCUMBENT_STORE names.
  for one machine:    file:/var/lib/incumbent
  for several:        ${serverForms.slice(0, 4).join(', ')},
                      ${anyOf(serverForms.slice(4))}
Without either it is a directory in your home. \`incumbent doctor\` looks whether a store will do.`;
