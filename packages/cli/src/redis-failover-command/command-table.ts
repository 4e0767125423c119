import type { Command } from 'commander';
import { InvalidArgumentError, Option } from 'commander';
import type { RunnableEntry } from '../terminal/main.ts';
import type { Entry } from '../terminal/parse.ts';
import { commonSettings, managerSettings, optionsOf } from './config/settings.ts';
import type { Context } from './context.ts';

type Execute = (options: never, context: Context) => Promise<number>;

export interface CommandEntry extends RunnableEntry<object, Context> {
  readonly description: string;
  readonly examples: NonNullable<Entry['examples']>;
}

/** The options are what `define` said; here the compiler takes our word for it. */
function loaded(execute: Execute): (options: object, context: Context) => Promise<number> {
  return execute as (options: object, context: Context) => Promise<number>;
}

const configOption = () =>
  new Option('-C, --config <file>', 'configuration file (YAML); flags and variables win over it');
const environmentOption = () =>
  new Option('-E, --environment <name>', 'which section of the configuration file');
/** Hidden, because its only use is a message about the safe way: the gem has this option. */
const passwordOption = () => new Option('-p, --password [password]').hideHelp();
const timeoutOption = () =>
  new Option('--timeout <duration>', 'how long ZooKeeper may take to answer')
    .argParser(duration)
    .default('10s', '10s');
const waitOption = () =>
  new Option('--wait <duration>', 'how long to wait until it is done')
    .argParser(duration)
    .default('30s', '30s');
const jsonOption = () => new Option('--json', 'print one JSON object a line');

function commonOptions(command: Command): void {
  for (const option of optionsOf(commonSettings)) command.addOption(option);
  command.addOption(configOption()).addOption(environmentOption()).addOption(passwordOption());
}

function questionOptions(command: Command): void {
  commonOptions(command);
  command.addOption(timeoutOption()).addOption(jsonOption());
}

function decisionOptions(command: Command): void {
  command.argument('<host:port>', 'the node');
  questionOptions(command);
  command.addOption(waitOption());
}

export const commands: readonly CommandEntry[] = [
  {
    name: 'manage',
    summary: 'watch the Redis servers, and fail over while elected',
    description:
      'Runs a manager: it watches every Redis of the set, and the managers elect one of themselves, ' +
      'which promotes a replica when the primary is down. Run two or three, on different machines. ' +
      'Logs to stdout. Ends with 0 after INT or TERM; HUP is ignored.',
    examples: [
      {
        line: 'incumbent-redis manage -n redis1:6379,redis2:6379 -z zk1,zk2,zk3',
        about: 'two Redis servers, three ZooKeeper servers',
      },
      {
        line: 'incumbent-redis manage -C redis.yml -E production --listen 127.0.0.1:9121',
        about: 'settings from a file; health and metrics for whoever asks on this machine',
      },
      {
        line: 'incumbent-redis manage -C redis.yml --password-file /run/secrets/redis',
        about: 'never a password on the command line',
      },
    ],
    define: (command) => {
      const [nodes, ...others] = optionsOf(managerSettings);
      if (nodes !== undefined) command.addOption(nodes);
      commonOptions(command);
      for (const option of others) command.addOption(option);
    },
    load: async () => {
      const [{ manageWith }, { NodeManager }] = await Promise.all([
        import('./commands/manage.ts'),
        import('@incumbent/redis-failover'),
      ]);
      return loaded(manageWith((options) => new NodeManager(options)));
    },
  },
  {
    name: 'status',
    summary: 'who is the primary, who leads, and what is wrong',
    description:
      'Reads what the managers keep in ZooKeeper and asks every Redis for its role. Ends with 0 when ' +
      'all is well, with 1 when something is not: no primary, a node down, a role that differs from ' +
      'the record, no manager that leads.',
    examples: [
      { line: 'incumbent-redis status -z zk1,zk2,zk3', about: 'for people' },
      { line: "incumbent-redis status -z zk1 --json | jq -r '.primary'", about: 'for programs' },
    ],
    define: (command) => {
      questionOptions(command);
      command.addOption(
        new Option('--node-timeout <duration>', 'how long each Redis may take to answer')
          .argParser(duration)
          .default('2s', '2s'),
      );
    },
    load: async () => loaded((await import('./commands/status.ts')).status),
  },
  {
    name: 'failover',
    summary: 'make another node the primary',
    description:
      'Asks the elected manager to promote a node, or without an operand the best replica, and waits ' +
      'until it has. No acknowledged write is lost: the old primary stops taking writes, and the new ' +
      'one is promoted when it has them all. Ends with 1 when it was refused or nobody did it; then ' +
      'the request is withdrawn, and nobody does it later.',
    examples: [
      { line: 'incumbent-redis failover -z zk1,zk2,zk3', about: 'whichever replica is best' },
      { line: 'incumbent-redis failover redis2:6379 -z zk1,zk2,zk3 --wait 1m', about: 'this one' },
    ],
    define: (command) => {
      command.argument('[host:port]', 'the node to promote');
      questionOptions(command);
      command.addOption(waitOption());
    },
    load: async () => loaded((await import('./commands/failover.ts')).failover),
  },
  {
    name: 'keep',
    summary: 'the data of a node that is set aside are the ones to keep',
    description:
      'Makes a node the primary that is set aside (status: QUARANTINED). Nodes that have what it lacks ' +
      'are set aside in its place. Ends with 1 when it was refused or nobody did it; then the request ' +
      'is withdrawn.',
    examples: [
      { line: 'incumbent-redis keep redis1:6379 -z zk1,zk2,zk3', about: 'go on with its data' },
    ],
    define: decisionOptions,
    load: async () => loaded((await import('./commands/failover.ts')).keep),
  },
  {
    name: 'discard',
    summary: 'throw away what only a node has that is set aside',
    description:
      'Makes a node a replica of the primary that is set aside (status: QUARANTINED). What only that ' +
      'node has is lost. Ends with 1 when it was refused or nobody did it; then the request is withdrawn.',
    examples: [
      {
        line: 'incumbent-redis discard redis1:6379 -z zk1,zk2,zk3',
        about: 'it copies the primary',
      },
    ],
    define: decisionOptions,
    load: async () => loaded((await import('./commands/failover.ts')).discard),
  },
  {
    name: 'watch',
    summary: 'print every change until interrupted',
    description:
      'Prints how things are, and then every change: of the primary, of nodes that go down and come ' +
      'back, of managers, and of which of them leads.',
    examples: [
      { line: 'incumbent-redis watch -z zk1,zk2,zk3', about: 'for people' },
      { line: 'incumbent-redis watch -C redis.yml -E production --json', about: 'for programs' },
    ],
    define: questionOptions,
    load: async () => loaded((await import('./commands/watch.ts')).watch),
  },
];

/** A duration with a unit, as text. Its range is checked where it is used. */
function duration(text: string): string {
  if (/^(?:\d+(?:\.\d+)?|\.\d+)\s*(?:ms|s|m|h)$/.test(text.trim())) return text;
  const why = /^[\d.]+$/.test(text.trim()) ? 'It has no unit' : 'It is not a duration';
  throw new InvalidArgumentError(`${why}: write 500ms, 15s, 2m or 1h.`);
}
