import type { CommanderError } from 'commander';
import type { CommandEntry } from './command-table.ts';
import type { Context, Host, OpenStore } from './context.ts';
import { describeFailure, exitCodes } from './failure.ts';
import { anyOf, serverForms } from './store-forms.ts';
import { Interruption } from './terminal/interruption.ts';
import type { Opened } from './terminal/main.ts';
import { commanderOptions, runCommandLine } from './terminal/main.ts';
import type { Refusal } from './terminal/parse.ts';
import { wordsOf } from './terminal/parse.ts';

/**
 * Runs one command line.
 * @param argv without the program
 * @returns the exit code; never rejects
 */
export function main(
  argv: readonly string[],
  commands: readonly CommandEntry[],
  host: Host,
): Promise<number> {
  return runCommandLine<unknown, Context, CommandEntry>(
    argv,
    {
      name: 'incumbent',
      commands,
      usageExitCode: exitCodes.usage,
      hints: true,
      define(program) {
        program
          .description(
            'Leader election: run a program in one place at a time, and watch and steer who leads.',
          )
          .usage('COMMAND [options]')
          // Options behind the name of a program are the program's.
          .enablePositionalOptions()
          .commandsGroup('Set up:')
          .helpCommand('help [command]', 'show the help of a command')
          .addHelpText('after', rootExamples);
      },
      explain: wayOut,
      optionsOf: commanderOptions,
      open: (entry) => openContext(host, entry.handlesSignals === true),
      describeFailure,
    },
    host,
  );
}

/** Says which part is missing or too much, with a command line that has it right. */
function wayOut(refusal: Refusal<CommandEntry>): string {
  const { error, entry, command } = refusal;
  if (entry === undefined) return wordsOf(refusal);
  const { name, examples } = entry;
  const [named] = command.args;
  switch (error.code) {
    case 'commander.missingMandatoryOptionValue': {
      const flags = quotedIn(error);
      // Of \`run\` an operand is the program, and of \`shards\` what to do.
      const takesWords = name === 'run' || name === 'shards';
      const isMeant = flags.startsWith('-e') && !takesWords && named !== undefined;
      const meant = isMeant ? `: write \`-e ${named}\`` : `, as in \`${examples[0]?.line}\``;
      return `${name} needs ${flags}${meant}`;
    }
    case 'commander.missingArgument':
      return `${name} needs <${quotedIn(error)}>, as in \`${examples[0]?.line}\``;
    case 'commander.excessArguments':
      return `${name} takes options only, and "${named}" is none; -e names the election`;
    default:
      return wordsOf(refusal);
  }
}

function quotedIn({ message }: CommanderError): string {
  return /'(.*)'/.exec(message)?.[1] ?? '';
}

function openContext(host: Host, handlesSignals: boolean): Opened<Context> {
  const stores: OpenStore[] = [];
  const interruption = new Interruption(host, handlesSignals ? [] : undefined);
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
        interruption.close();
      }
    },
  };
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
