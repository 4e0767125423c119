import { Interruption } from '../terminal/interruption.ts';
import type { Opened } from '../terminal/main.ts';
import { commanderOptions, runCommandLine } from '../terminal/main.ts';
import type { CommandEntry } from './command-table.ts';
import type { Context, Host } from './context.ts';
import { describeFailure, exitCodes, withoutUserInfo } from './failure.ts';

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
  return runCommandLine<object, Context, CommandEntry>(
    argv,
    {
      name: 'incumbent-redis',
      commands,
      usageExitCode: exitCodes.usage,
      hints: true,
      define(program) {
        program
          .description(
            'Automatic failover of a Redis primary, decided by managers that meet in ZooKeeper.',
          )
          .usage('COMMAND [options]')
          .helpCommand('help [command]', 'show the help of a command')
          .addHelpText('after', rootExamples);
      },
      optionsOf: commanderOptions,
      open: () => openContext(host),
      describeFailure,
      redact: withoutUserInfo,
    },
    host,
  );
}

function openContext(host: Host): Opened<Context> {
  const interruption = new Interruption(host, ['SIGINT', 'SIGTERM']);
  const hangUps: (() => void)[] = [];
  interruption.on('SIGHUP', () => {
    if (hangUps.length === 0) interruption.interrupt('SIGHUP');
    for (const listener of hangUps) listener();
  });
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
    close: () => interruption.close(),
  };
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
