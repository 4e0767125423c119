import type { Command } from 'commander';
import { Argument, Option } from 'commander';
import type { Context } from './context.ts';
import type {
  AgentCommandOptions,
  DashboardOptions,
  DemoOptions,
  DoctorOptions,
  DrainOptions,
  ElectionQuestion,
  EndOptions,
  FailoverOptions,
  HistoryOptions,
  InitOptions,
  LeaderOptions,
  ListOptions,
  RecordOptions,
  RunOptions,
  SchemaOptions,
  SeatQuestion,
  ShardsCommandOptions,
  StatusOptions,
  TransferOptions,
  VacateOptions,
} from './options.ts';
import {
  collect,
  duration,
  keyValue,
  listenAddress,
  shardList,
  waitDuration,
  wholeNumber,
} from './parsers.ts';
import { anyOf, fileForm, serverForms } from './store-forms.ts';
import type { RunnableEntry } from './terminal/main.ts';
import type { Entry as TerminalEntry } from './terminal/parse.ts';

interface Entry<Options> extends RunnableEntry<Options, Context> {
  readonly group: 'Run:' | 'Look:' | 'Steer:' | 'Set up:';
  readonly examples: NonNullable<TerminalEntry['examples']>;
  /** The command sees to INT, TERM and HUP itself; others are told by `context.signal`. */
  readonly handlesSignals?: boolean;
}

export type CommandEntry = Entry<unknown>;

/** `define` has made the options; here the compiler takes our word for their type. */
function command<Options>(entry: Entry<Options>): CommandEntry {
  return entry as CommandEntry;
}

/** An option without a value of its own when it is left out. */
function option(flags: string, about: string, byDefault?: string): Option {
  return new Option(flags, byDefault === undefined ? about : `${about} (default: ${byDefault})`);
}

const electionOption = () => option('-e, --election <name>', 'the election').makeOptionMandatory();
const storeOption = () =>
  option(
    '--store <url>',
    `where elections are held: ${anyOf([fileForm, ...serverForms])}`,
    'INCUMBENT_STORE, else a directory in your home',
  );
/** Of commands that follow several stores. */
const storesOption = () =>
  option(
    '--store <url>',
    `where elections are held (repeatable): ${anyOf([fileForm, ...serverForms])}`,
    'INCUMBENT_STORE, else a directory in your home',
  ).argParser(collect);
const jsonOption = () => option('--json', 'print one JSON object a line');
const timeoutOption = () =>
  option('--timeout <duration>', 'how long the store may take to answer')
    .argParser(duration)
    .default('10s', '10s');

const waitOption = () =>
  option('--wait [duration]', 'end when the new leader is ready; alone: 3m').argParser(duration);

const seatOption = () =>
  option('--seat <n>', 'which seat, of an election that has several').argParser(
    wholeNumber(1, 100),
  );

function questionOptions(command: Command): Command {
  return command
    .addOption(electionOption())
    .addOption(storeOption())
    .addOption(timeoutOption())
    .addOption(jsonOption());
}

/** Options of `run` that concern one leader. */
const notForShards = [
  'seats',
  'health',
  'healthEvery',
  'readyWhen',
  'readyEvery',
  'notify',
  'readyTimeout',
  'try',
  'settle',
  'wait',
  'once',
  'holdAtLeast',
  'takeoverDelay',
  'releaseOnCrash',
] as const;

/** @param heading what they stand under in the help */
function timingOptions(command: Command, heading: string): Command {
  const timing = (flags: string, about: string, byDefault: string) =>
    option(flags, about, byDefault).argParser(duration).helpGroup(heading);
  return command
    .addOption(
      timing(
        '--lease <duration>',
        'how long the seat stays taken when its leader stops renewing; on ZooKeeper and etcd the ' +
          'session or lease to ask for',
        '15s; ZooKeeper 10s; S3, Cloud Storage 45s',
      ),
    )
    .addOption(
      timing(
        '--belief <duration>',
        'how long a leader may act after its last renewal',
        '0.8 lease; ZooKeeper, etcd 0.4 lease',
      ),
    )
    .addOption(
      timing(
        '--stop-margin <duration>',
        'how long before the belief ends its program gets TERM',
        '2/15 lease; ZooKeeper, etcd 1/8 belief',
      ),
    )
    .addOption(
      timing(
        '--renew-every <duration>',
        'time between renewals',
        '1/5 lease; ZooKeeper, etcd 1/4 belief',
      ),
    )
    .addOption(
      timing(
        '--operation-timeout <duration>',
        'how long one request to the store may take',
        '1/6 lease; ZooKeeper, etcd 1/4 belief',
      ),
    );
}

/** Of commands that lead, and tell how that goes. */
function eventOptions(command: Command): Command {
  return command
    .addOption(option('--json', 'write events as JSON, one object a line'))
    .addOption(
      option('--events-fd <n>', 'write events to this file descriptor', 'stderr').argParser(
        wholeNumber(2, 1_048_575),
      ),
    )
    .addOption(
      option('--listen <host:port>', 'serve /healthz, /leader, /status and /metrics').argParser(
        listenAddress,
      ),
    );
}

export const commands: readonly CommandEntry[] = [
  command<RunOptions>({
    name: 'run',
    group: 'Run:',
    summary: 'run a program while this candidate leads',
    description:
      'Campaigns, starts PROGRAM while this candidate leads, and stops it, with everything it ' +
      'started, before anybody else can lead. Ends with the exit code of the program.\n\n' +
      'With --shards, each piece of work is done by one process at a time. PROGRAM gets HUP when its ' +
      'list of shards has changed. It writes the version of the list to the file $INCUMBENT_SHARDS_ACK ' +
      'when it has stopped all other work.\n\n' +
      'With --try or --wait, without having led: 1 when somebody else leads or has the seat reserved, ' +
      '69 when the store cannot be used, 75 when nobody can be elected yet because the store was ' +
      'restarted or is new, 76 when --health fails, 77 when an operator drained this candidate.',
    examples: [
      { line: 'incumbent run -e nightly -- node worker.js', about: 'one worker at a time' },
      {
        line: "incumbent run -e api --address 10.0.0.7:8080 --ready-when 'curl -fs localhost:8080/ok' -- ./api",
        about: 'tell others where the leader is; give the seat up when it is not well',
      },
      {
        line: 'incumbent run -e report --try --hold-at-least 10m -- ./report.sh',
        about: 'from cron on several machines of one store: once, whoever comes first',
      },
      {
        line: 'incumbent run -e tenants --shards 64 --per-shard -- ./tenant.sh',
        about: 'one of 64 programs for each shard, shared by all machines',
      },
      {
        line: "incumbent run -e db --on-unclean './fence.sh' --restart on-failure -- ./serve",
        about: 'after a leader that ended badly, fence it first',
      },
    ],
    handlesSignals: true,
    define: (command) => {
      command
        .usage('-e NAME [options] -- PROGRAM [ARGS...]')
        .argument('<program>', 'the program to run')
        .argument('[args...]', 'its arguments')
        .passThroughOptions()
        .addOption(electionOption())
        .addOption(storeOption())
        .addOption(
          option(
            '--seats <n>',
            'so many candidates may lead at once, each in a seat of its own; all give the same number',
            '1',
          ).argParser(wholeNumber(1, 100)),
        )
        .optionsGroup('Shards instead of a leader (docs/guides/shards.md):')
        .addOption(
          option(
            '--shards <n|names>',
            'so many pieces of work, or their names with commas, shared among all that run; ' +
              'PROGRAM reads its own in the file $INCUMBENT_SHARDS',
          )
            .argParser(shardList)
            .conflicts([...notForShards]),
        )
        .addOption(
          option(
            '--per-shard',
            'one PROGRAM for each shard, which is in $INCUMBENT_SHARD',
          ).conflicts(['restart', 'stdin']),
        )
        .addOption(
          option('--weight <n>', 'how much this process takes beside others', '1').argParser(
            wholeNumber(1, 1_000),
          ),
        )
        .addOption(
          option('--zone <name>', 'processes that may fail together; each zone gets its share'),
        )
        .optionsGroup('This candidate:')
        .addOption(option('--id <id>', 'its name, for people and operators', 'HOST-PID'))
        .addOption(
          option(
            '--address <address>',
            'where it can be reached while it leads (repeatable)',
          ).argParser(collect),
        )
        .addOption(
          option('--metadata <key=value>', 'what observers should know (repeatable)').argParser(
            keyValue,
          ),
        )
        .addOption(
          option('--health <command>', 'it may lead only while this shell command ends with 0'),
        )
        .addOption(
          option(
            '--health-every <duration>',
            'how often --health runs, and how long it may take',
            'as --renew-every',
          ).argParser(duration),
        )
        .addOption(
          option(
            '--ready-when <command>',
            'others send it nothing before this shell command has ended with 0',
          ).conflicts('notify'),
        )
        .addOption(
          option(
            '--ready-every <duration>',
            'how often --ready-when runs, and how long it may take',
            '1s',
          ).argParser(duration),
        )
        .addOption(
          option(
            '--notify',
            'others send it nothing before it has written READY=1 to the file $INCUMBENT_NOTIFY',
          ).conflicts('readyWhen'),
        )
        .addOption(
          option(
            '--ready-timeout <duration>',
            'with either: the term ends when it is not ready after so long',
            '60s',
          ).argParser(duration),
        )
        .optionsGroup('How long to wait, and what comes after:')
        .addOption(
          option(
            '--try',
            'do not wait for another candidate: end with 1 when somebody else leads',
          ).conflicts(['once', 'wait']),
        )
        .addOption(
          option(
            '--no-settle',
            'with --try: do not wait for a store that was restarted or is new either; end with 75',
          ).conflicts(['once', 'wait']),
        )
        .addOption(
          option('--wait <duration>', 'end when it does not lead after so long')
            .argParser(waitDuration)
            .conflicts(['once', 'try']),
        )
        .addOption(
          option('--once', 'lead once: end with 75 when leadership is lost').conflicts([
            'try',
            'wait',
          ]),
        )
        .addOption(
          option('--restart <when>', 'campaign again after the program ended')
            .choices(['no', 'on-failure', 'always'])
            .default('no'),
        )
        .addOption(
          option(
            '--hold-at-least <duration>',
            'keep the seat so long from the start of the term, even if the program ends sooner',
            '0s',
          ).argParser(duration),
        )
        .optionsGroup('After a leader that crashed:')
        .addOption(
          option(
            '--on-unclean <command>',
            'shell command that fences it, before the program starts (repeatable)',
          ).argParser(collect),
        )
        .addOption(
          option('--takeover-delay <duration>', 'pause before the program starts', '0s').argParser(
            duration,
          ),
        )
        .addOption(
          option(
            '--no-release-on-crash',
            'when we are killed, let the lease run out, even when the program is seen to be dead',
          ),
        );
      timingOptions(command, 'Timing:')
        .optionsGroup('Program, events and HTTP:')
        .addOption(
          option(
            '--stop-timeout <duration>',
            'how long the program may take to stop after TERM or INT',
            '30s',
          ).argParser(duration),
        )
        .addOption(option('--stdin', 'give our stdin to the program; else it reads /dev/null'));
      eventOptions(command);
    },
    load: async () => (await import('./run/begin.ts')).begin,
  }),
  command<AgentCommandOptions>({
    name: 'agent',
    group: 'Run:',
    summary: 'steer a service that already runs: active on one machine, standby on the others',
    description:
      'Makes the service standby, campaigns while it is healthy, and makes it active while this ' +
      'candidate leads. First it fences the service of a leader that ended badly. COMMANDs are for the ' +
      'shell; http://127.0.0.1:PORT/… is asked by GET for --health and by POST for the others.',
    examples: [
      {
        line: "incumbent agent -e db --address db1:5000 --health ./ok --become-active ./up --become-standby ./down --fence 'sshfence:ops@'",
        about: 'kill the process of a dead agent over ssh, at the address that it told',
      },
      {
        line: 'incumbent agent -e db --health http://127.0.0.1:5000/ok --become-active http://127.0.0.1:5000/up --become-standby http://127.0.0.1:5000/down --pid /run/db.pid',
        about: 'the guard of each agent kills its own service instead',
      },
    ],
    handlesSignals: true,
    define: (command) => {
      command
        .usage('-e NAME --become-active … --become-standby … --health … [options]')
        .addOption(electionOption())
        .addOption(storeOption())
        .optionsGroup('The service:')
        .addOption(option('--become-active <command|url>', 'makes it active').makeOptionMandatory())
        .addOption(
          option(
            '--become-standby <command|url>',
            'makes it standby; harmless when it is already',
          ).makeOptionMandatory(),
        )
        .addOption(option('--health <command|url>', 'whether it is well').makeOptionMandatory())
        .addOption(
          option('--active-timeout <duration>', 'how long --become-active may take')
            .argParser(duration)
            .default('60s', '60s'),
        )
        .addOption(
          option('--standby-timeout <duration>', 'how long --become-standby may take')
            .argParser(duration)
            .default('10s', '10s'),
        )
        .addOption(
          option('--health-every <duration>', 'time between two looks')
            .argParser(duration)
            .default('1s', '1s'),
        )
        .addOption(
          option('--health-timeout <duration>', 'how long one look may take')
            .argParser(duration)
            .default('5s', '5s'),
        )
        .addOption(
          option('--health-failures <n>', 'failures in a row after which it is not well')
            .argParser(wholeNumber(1, 1_000))
            .default(1),
        )
        .addOption(
          option(
            '--pid <file|number>',
            'its process: killed before another candidate leads, if it is not standby by then',
          ),
        )
        .addOption(option('--pid-group', 'kill the whole process group of --pid'))
        .optionsGroup('After a leader that crashed:')
        .addOption(
          option(
            '--fence <method>',
            'sshfence:USER@HOST:PORT, sshfence:USER@ or shell:COMMAND; the first that succeeds ' +
              'counts (repeatable)',
          ).argParser(collect),
        )
        .addOption(
          option('--fence-timeout <duration>', 'how long one method may take')
            .argParser(duration)
            .default('30s', '30s'),
        )
        .addOption(
          option('--ssh-option <name=value>', 'for ssh -o (repeatable)').argParser(collect),
        )
        .addOption(
          option('--takeover-delay <duration>', 'pause before fencing', '0s').argParser(duration),
        )
        .optionsGroup('This candidate:')
        .addOption(
          option('--id <id>', 'its name, another one on every machine', 'the name of the host'),
        )
        .addOption(
          option('--address <host:port>', 'where its service listens (repeatable)').argParser(
            collect,
          ),
        )
        .addOption(
          option('--metadata <key=value>', 'what observers should know (repeatable)').argParser(
            keyValue,
          ),
        );
      eventOptions(timingOptions(command, 'Timing:').optionsGroup('Events and HTTP:'));
    },
    load: async () => (await import('./commands/agent.ts')).agent,
  }),
  command<DemoOptions>({
    name: 'demo',
    group: 'Run:',
    summary: 'watch five candidates of this machine compete',
    description:
      'Five candidates compete on this machine. The leader is killed, the next is frozen, the ' +
      'next is asked to resign. Their program leaves a line in a log for everything it does; at ' +
      'the end the log is searched for moments with two leaders. Ends with 0 if there was none.',
    examples: [
      { line: 'incumbent demo', about: 'under a minute, touches nothing of yours' },
      {
        line: 'incumbent demo --web',
        about: 'in the browser: kill, freeze, thaw and resign them yourself',
      },
    ],
    define: (command) => {
      command.addOption(jsonOption());
      command.addOption(
        option(
          '--web',
          'show it in the browser, where you decide who is killed, frozen, or resigns',
        ),
      );
      command.addOption(
        option(
          '--listen <host:port>',
          'where --web is served (default: a free port of 127.0.0.1)',
        ).argParser(listenAddress),
      );
    },
    load: async () => (await import('./commands/demo.ts')).demo,
  }),
  command<StatusOptions>({
    name: 'status',
    group: 'Look:',
    summary: 'who leads, since when, and what operators asked for',
    examples: [
      { line: 'incumbent status -e nightly', about: 'for people' },
      { line: "incumbent status -e nightly --json | jq -r '.token'", about: 'for programs' },
      {
        line: 'incumbent status -e nightly --exit-code >/dev/null || echo "nobody leads"',
        about: 'for scripts',
      },
    ],
    define: (command) => {
      questionOptions(command)
        .addOption(seatOption())
        .addOption(option('--exit-code', 'end with 1 unless somebody leads'));
    },
    load: async () => (await import('./commands/status.ts')).status,
  }),
  command<ListOptions>({
    name: 'list',
    group: 'Look:',
    summary: 'all elections of the store: who leads each, since when, and why it changed',
    description:
      'Lists the elections of the store, sorted by name. It only reads. One look cannot always tell ' +
      'that a leader is dead: with --watch, the list finds out after a lease. A record that cannot be ' +
      'read is shown as unknown, and the others are listed all the same.',
    examples: [
      { line: 'incumbent list', about: 'all of them' },
      { line: 'incumbent list --vacant', about: 'those without a leader' },
      { line: "incumbent list --name 'orders-*' --watch", about: 'some of them, kept up to date' },
      {
        line: `incumbent list --json | jq -r 'select(.state != "led") | .election'`,
        about: 'for programs',
      },
    ],
    define: (command) => {
      command
        .addOption(storeOption())
        .addOption(option('--led', 'only those that somebody leads').conflicts('vacant'))
        .addOption(option('--vacant', 'only those that nobody leads').conflicts('led'))
        .addOption(
          option('--name <pattern>', 'only names like this: * is any text, ? any character'),
        )
        .addOption(option('--watch', 'go on, and show every change, until it is interrupted'))
        .addOption(
          option('--every <duration>', 'with --watch: time between two looks', '2s').argParser(
            duration,
          ),
        )
        .addOption(timeoutOption())
        .addOption(jsonOption());
    },
    load: async () => (await import('./commands/list.ts')).list,
  }),
  command<DashboardOptions>({
    name: 'dashboard',
    group: 'Look:',
    summary: 'serve a page that shows all elections and shards of one or several stores',
    description:
      'Serves a page with every election of the stores: who leads, since when, who waits, and the terms ' +
      'before. A grid shows which process owns which shard. All changes as the stores change. The page is for this machine, unless --listen says otherwise. ' +
      'It only shows, unless --allow-steering is given. Ends with Ctrl-C.',
    examples: [
      { line: 'incumbent dashboard', about: 'the elections of INCUMBENT_STORE' },
      {
        line: 'incumbent dashboard --store zk://zk1:2181 --store postgres://db/app --allow-steering',
        about: 'two stores; leaders can be asked to go',
      },
      {
        line: 'incumbent dashboard --listen :7443 --auth-file auth --cert cert.pem --key key.pem --host-name ops.example',
        about: 'for others: with a password, encrypted',
      },
    ],
    define: (command) => {
      command
        .addOption(storesOption())
        .addOption(timeoutOption())
        .addOption(
          option('--listen <host:port>', 'where the page is served', '127.0.0.1:7070').argParser(
            listenAddress,
          ),
        )
        .addOption(
          option('--allow-steering', 'the page can ask leaders to go, hand over, and more'),
        )
        .addOption(
          option('--history <file>', 'also show the terms of this file, which `record` writes'),
        )
        .addOption(option('--auth-file <file>', 'a line USER:PASSWORD that browsers must know'))
        .addOption(option('--cert <file>', 'serve by TLS, with this certificate (PEM)'))
        .addOption(option('--key <file>', 'and its key (PEM)'))
        .addOption(
          option(
            '--host-name <name>',
            'a name of this machine by which the page is opened (repeatable)',
          ).argParser(collect),
        )
        .addOption(jsonOption());
    },
    load: async () => (await import('./commands/dashboard.ts')).dashboard,
  }),
  command<LeaderOptions>({
    name: 'leader',
    group: 'Look:',
    summary: "print the leader's address, for scripts",
    description:
      "Prints the leader's first address and nothing else. Ends with 1 when nobody leads. A leader " +
      'may still prepare its work: --ready waits until it is ready.',
    examples: [
      { line: 'curl "http://$(incumbent leader -e api)/"', about: 'ask the leader something' },
      { line: 'incumbent leader -e api --ready --wait 30s', about: 'once it can serve' },
      { line: 'incumbent leader -e api --all', about: 'all its addresses, one a line' },
      { line: 'incumbent leader -e nightly --id', about: 'its id, where it has no address' },
    ],
    define: (command) => {
      questionOptions(command)
        .addOption(option('--all', 'print all its addresses, one a line').conflicts('id'))
        .addOption(option('--id', 'print its id instead').conflicts('all'))
        .addOption(option('--ready', 'wait for a leader that is ready'))
        .addOption(
          option('--wait <duration>', 'how long --ready waits', '60s').argParser(duration),
        );
    },
    load: async () => (await import('./commands/leader.ts')).leader,
  }),
  command<SeatQuestion>({
    name: 'watch',
    group: 'Look:',
    summary: 'print a line whenever the leader changes',
    description: 'Prints who leads, and then a line for every change, until it is interrupted.',
    examples: [
      { line: 'incumbent watch -e nightly', about: 'for people' },
      {
        line: 'incumbent watch -e api --json | while read -r change; do ./reload "$change"; done',
        about: 'do something at every change',
      },
    ],
    define: (command) => {
      questionOptions(command).addOption(seatOption());
    },
    load: async () => (await import('./commands/watch.ts')).watch,
  }),
  command<ElectionQuestion>({
    name: 'candidates',
    group: 'Look:',
    summary: 'who leads and who waits',
    examples: [{ line: 'incumbent candidates -e nightly', about: 'the leader comes first' }],
    define: (command) => {
      questionOptions(command);
    },
    load: async () => (await import('./commands/candidates.ts')).candidates,
  }),
  command<HistoryOptions>({
    name: 'history',
    group: 'Look:',
    summary: 'the last terms: who, from, to, and why each ended',
    description:
      'Prints the terms that the store keeps, the last 50. With --from it prints those that `record` has ' +
      'written to a file, and asks no store.',
    examples: [
      { line: 'incumbent history -e nightly', about: 'the last 50, the oldest first' },
      {
        line: `incumbent history -e nightly --json | jq -r 'select(.why == "unclean") | .id'`,
        about: 'who crashed',
      },
      {
        line: 'incumbent history -e nightly --from history.db --since 30d',
        about: 'the terms of 30 days, from the file of `record`',
      },
    ],
    define: (command) => {
      questionOptions(command)
        .addOption(seatOption())
        .addOption(
          option(
            '--from <file>',
            'read this file of `record`; --store then chooses among its stores',
          ).conflicts('timeout'),
        )
        .addOption(option('--since <duration>', 'with --from: only so far back, such as 30d'));
    },
    load: async () => (await import('./commands/history.ts')).history,
  }),
  command<RecordOptions>({
    name: 'record',
    group: 'Look:',
    summary: 'keep every term and change of state in a file',
    description:
      'Follows all elections of the stores, and keeps their terms and changes of state in one SQLite file, ' +
      'for longer than the stores do. At each start it first reads what the stores still keep: the last 50 ' +
      'terms of each election. It only reads the stores. Ends with Ctrl-C.',
    examples: [
      { line: 'incumbent record --to history.db', about: 'the elections of INCUMBENT_STORE' },
      {
        line: 'incumbent record --store zk://zk1:2181 --store postgres://db/app --to history.db --keep 365d',
        about: 'two stores, for a year',
      },
    ],
    define: (command) => {
      command
        .addOption(storesOption())
        .addOption(
          option('--to <file>', 'the file; made where it is missing').makeOptionMandatory(),
        )
        .addOption(
          option('--keep <duration>', 'how long a term stays in the file after its end').default(
            '90d',
            '90d',
          ),
        )
        .addOption(timeoutOption())
        .addOption(jsonOption());
    },
    load: async () => (await import('./commands/record.ts')).record,
  }),
  command<VacateOptions>({
    name: 'vacate',
    group: 'Steer:',
    summary: 'ask the leader to go',
    description:
      'Leaves a request for the leader, which stops its work and gives the seat up. The seat is ' +
      'never taken from under it. A seat that is only held (`--hold-at-least`) by somebody who is dead ' +
      'is opened.',
    examples: [
      { line: 'incumbent vacate -e nightly', about: 'somebody else shall lead' },
      {
        line: 'incumbent vacate -e nightly --force',
        about: 'the leader does not listen, or only holds the seat: its lease is still waited out',
      },
    ],
    define: (command) => {
      questionOptions(command)
        .addOption(seatOption())
        .addOption(
          option('--force', 'its term ends even if its work does not stop; lifts any hold'),
        );
    },
    load: async () => (await import('./commands/vacate.ts')).vacate,
  }),
  command<TransferOptions>({
    name: 'transfer',
    group: 'Steer:',
    summary: 'ask the leader to hand over to a waiting candidate',
    examples: [
      { line: 'incumbent transfer -e nightly --to host-7', about: '`candidates` lists the ids' },
      {
        line: 'incumbent transfer -e nightly --to host-7 --wait 2m',
        about: 'end when host-7 leads and is ready',
      },
    ],
    define: (command) => {
      questionOptions(command)
        .addOption(seatOption())
        .addOption(option('--to <id>', 'the candidate that shall lead').makeOptionMandatory())
        .addOption(waitOption());
    },
    load: async () => (await import('./commands/transfer.ts')).transfer,
  }),
  command<FailoverOptions>({
    name: 'failover',
    group: 'Steer:',
    summary: 'make another candidate lead, and end when that is done',
    description:
      'Asks the leader to give way: to the candidate of --to, else to any other. With --wait it ends ' +
      'with 0 when another candidate leads and is ready, with 1 when the request is refused and ' +
      'nothing is changed, with 78 when another one leads than the wanted one, and with 75 when the ' +
      'time is over. The message says who leads.',
    examples: [
      { line: 'incumbent failover -e db --wait', about: 'before maintenance of the leader' },
      { line: 'incumbent failover -e db --to host-7 --wait 2m', about: 'to a certain candidate' },
    ],
    define: (command) => {
      questionOptions(command)
        .addOption(seatOption())
        .addOption(option('--to <id>', 'the candidate that shall lead', 'any other'))
        .addOption(waitOption());
    },
    load: async () => (await import('./commands/failover.ts')).failover,
  }),
  command<DrainOptions>({
    name: 'drain',
    group: 'Steer:',
    summary: 'keep a candidate out until a time',
    description: 'Keeps the candidate out until a time. If it leads, it gives the seat up.',
    examples: [
      { line: 'incumbent drain -e nightly --id host-7 --until 2h', about: 'for two hours' },
      {
        line: "incumbent drain -e nightly --id host-7 --until '2030-05-01 06:00'",
        about: 'until a local time; with Z or +02:00 behind it, a time of that zone',
      },
      { line: 'incumbent drain -e nightly --id host-7 --lift', about: 'let it take part again' },
    ],
    define: (command) => {
      questionOptions(command)
        .addOption(option('--id <id>', 'the candidate').makeOptionMandatory())
        .addOption(
          option('--until <time|duration>', 'such as 2h, 3d or 2030-05-01T06:00').conflicts('lift'),
        )
        .addOption(option('--lift', 'let it take part again').conflicts('until'))
        .addOption(option('--force', 'also a candidate that nobody knows').conflicts('lift'));
    },
    load: async () => (await import('./commands/drain.ts')).drain,
  }),
  command<ShardsCommandOptions>({
    name: 'shards',
    group: 'Steer:',
    summary: 'look at shards, and steer them: who owns what, drain, move',
    description:
      'Looks at the shards that programs share by `run --shards` or by @incumbent/shards, and steers ' +
      'them. `status` shows all members, `watch` each change, and `owner SHARD` the owner; without one it ' +
      'ends with 1. `drain MEMBER` moves its shards to others, and `undrain MEMBER` lets it have some ' +
      'again. `move SHARD --to MEMBER` pins a shard to a member. It counts in the balance, and sleeps ' +
      'while that member is gone. No command can make two owners.',
    examples: [
      { line: 'incumbent shards status -e tenants', about: 'which process owns how many' },
      { line: 'incumbent shards owner 17 -e tenants', about: 'the process that has shard 17' },
      { line: 'incumbent shards drain host-7 -e tenants', about: 'before that machine is stopped' },
      {
        line: 'incumbent shards move 17 --to host-8 -e tenants',
        about: 'keep a shard at one process',
      },
      { line: 'incumbent shards move 17 --clear -e tenants', about: 'give it back to the balance' },
    ],
    define: (command) => {
      command
        .usage('VERB [SHARD|MEMBER] -e NAME [options]')
        .addArgument(
          new Argument('<verb>', 'what to do').choices([
            ...['status', 'watch', 'owner', 'drain', 'undrain', 'move'],
          ]),
        )
        .argument('[names...]', 'the shard, or the member');
      questionOptions(command)
        .addOption(option('--to <member>', 'move: where the shard is to be').conflicts('clear'))
        .addOption(option('--clear', 'move: give the shard back to the balance').conflicts('to'))
        .addOption(
          option(
            '--until <time|duration>',
            'drain: such as 2h, 3d or 2030-05-01T06:00',
            'until undrain',
          ),
        )
        .addOption(option('--force', 'drain: also a member that nobody knows'));
    },
    load: async () => (await import('./commands/shards.ts')).shards,
  }),
  command<EndOptions>({
    name: 'end',
    group: 'Steer:',
    summary: 'finish the election for everybody',
    description:
      'Finishes the election: the leader stops, and all candidates end. `init --reopen` opens it ' +
      'again, with its tokens going on from where they were. `--remove` then deletes the election, on ' +
      'ZooKeeper in the layout golea. It waits until the leader has left, and until no leader can ' +
      'believe any more, so give it a `--timeout` that is long enough for that.',
    examples: [
      { line: 'incumbent end -e migration-42', about: 'the job is done for good' },
      {
        line: 'incumbent end -e app/leader --remove --timeout 1m',
        about: "also delete the candidates and the election's node",
      },
    ],
    define: (command) => {
      questionOptions(command)
        .addOption(option('--force', 'also an election that nobody has led'))
        .addOption(option('--remove', "also delete the election's node (ZooKeeper, layout golea)"));
    },
    load: async () => (await import('./commands/end.ts')).end,
  }),
  command<InitOptions>({
    name: 'init',
    group: 'Set up:',
    summary: 'prepare the store for elections',
    description:
      'Makes what all elections of a store share: in PostgreSQL the table, on ZooKeeper the chroot ' +
      'and the node above the elections, on a file store the directory. Elsewhere nothing is needed. ' +
      'Harmless when repeated.',
    examples: [
      {
        line: 'incumbent init --store postgres://ann@db/app',
        about: 'make the table of the elections; `schema` prints it for a migration',
      },
      { line: 'incumbent init -e nightly', about: 'see that this election can be held and read' },
      { line: 'incumbent init -e nightly --reopen', about: 'open an election that was ended' },
    ],
    define: (command) => {
      command
        .addOption(option('-e, --election <name>', 'also prepare and read this election'))
        .addOption(storeOption())
        .addOption(option('--reopen', 'open the election again if it was ended; needs -e'))
        .addOption(timeoutOption())
        .addOption(jsonOption());
    },
    load: async () => (await import('./commands/init.ts')).init,
  }),
  command<SchemaOptions>({
    name: 'schema',
    group: 'Set up:',
    summary: 'print what PostgreSQL or Kubernetes has to be given first',
    description:
      'Prints the SQL of the table, for a migration, or the ServiceAccount, Role and RoleBinding for ' +
      'elections in Kubernetes. Asks nobody and changes nothing.',
    examples: [
      { line: 'incumbent schema postgres | psql app', about: 'what `init` makes' },
      {
        line: 'incumbent schema postgres --fence jobs > 0042_fence.sql',
        about: 'a trigger that keeps stale leaders from writing to the table jobs',
      },
      {
        line: 'incumbent schema kubernetes --namespace ops | kubectl apply -f -',
        about: 'an account that may hold elections in the namespace ops',
      },
    ],
    define: (command) => {
      command
        .usage('postgres|kubernetes [options]')
        .addArgument(new Argument('<store>', 'whose schema').choices(['postgres', 'kubernetes']))
        .addOption(
          option('--table <name>', 'postgres: the table of the elections', 'incumbent_election'),
        )
        .addOption(
          option('--fence <table>', 'postgres: instead a trigger that refuses stale tokens there'),
        )
        .addOption(option('--fence-column <name>', 'postgres: where that keeps the token', 'fence'))
        .addOption(option('--namespace <name>', 'kubernetes: where the Leases are', 'default'))
        .addOption(
          option(
            '--account <name>',
            'kubernetes: the ServiceAccount, Role and RoleBinding',
            'incumbent',
          ),
        )
        .addOption(
          option(
            '-e, --election <name>',
            'kubernetes: only for this election (repeatable)',
          ).argParser(collect),
        );
    },
    load: async () => (await import('./commands/schema.ts')).schema,
  }),
  command<DoctorOptions>({
    name: 'doctor',
    group: 'Set up:',
    summary: 'measure the store and this machine, and check the timing against them',
    description:
      'Measures reads and writes (on an election of its own), clock and event loop, looks at the ' +
      'servers where there are some, and checks the rules of the timing against all that. Ends ' +
      'with 1 when something is broken.',
    examples: [
      { line: 'incumbent doctor', about: 'the default store at the default timing' },
      {
        line: 'incumbent doctor --store file:/var/lib/incumbent -e nightly --lease 3s',
        about: 'would a lease of 3 s do here?',
      },
      {
        line: 'incumbent doctor --store zk://h1:2181,h2:2181,h3:2181 -e nightly',
        about: 'servers, quorum, session, rights and latency of ZooKeeper',
      },
      {
        line: 'incumbent doctor --store postgres://ann@db/app -e nightly',
        about: 'durability, replicas, pooler, table, rights, clock and latency of PostgreSQL',
      },
    ],
    define: (command) => {
      command
        .addOption(option('-e, --election <name>', 'also look at this election'))
        .addOption(storeOption());
      timingOptions(command, 'Timing to check:')
        .addOption(
          option('--samples <n>', 'how many reads and writes are measured')
            .argParser(wholeNumber(1, 10_000))
            .default(50),
        )
        .addOption(
          option('--watch-loop <duration>', 'how long the event loop is watched')
            .argParser(duration)
            .default('1s', '1s'),
        )
        .addOption(option('--verbose', 'also show the rules that the library always keeps'))
        .addOption(timeoutOption())
        .addOption(jsonOption());
    },
    load: async () => (await import('./commands/doctor.ts')).doctor,
  }),
];
