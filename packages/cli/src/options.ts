/**
 * The values that commands get from the command line. Durations are still text (`"15s"`): the
 * library reads them, and it is not loaded before a command runs.
 */

/** The operands of a command, in `operands`. */
export interface WithOperands {
  readonly operands: readonly string[];
}

export interface StoreOptions extends WithOperands {
  readonly store?: string;
  readonly json?: true;
}

/** Of every command that asks the store something. */
export interface ElectionQuestion extends StoreOptions {
  readonly election: string;
  /** How long the store may take. */
  readonly timeout: string;
}

/** The durations of a lease, as `TimingOptions` of the library. */
export interface TimingFlags {
  readonly lease?: string;
  readonly belief?: string;
  readonly stopMargin?: string;
  readonly renewEvery?: string;
  readonly operationTimeout?: string;
  readonly stopTimeout?: string;
}

export interface ListOptions extends StoreOptions {
  readonly timeout: string;
  /** At most one of these two. */
  readonly led?: true;
  readonly vacant?: true;
  /** A pattern with `*` and `?`. */
  readonly name?: string;
  readonly watch?: true;
  /** How often, with `watch`. */
  readonly every?: string;
}

/** Of commands that concern one seat, where the election has several. */
export interface SeatQuestion extends ElectionQuestion {
  readonly seat?: number;
}

export interface StatusOptions extends SeatQuestion {
  /** End with 1 unless there is a leader. */
  readonly exitCode?: true;
}

export interface HistoryOptions extends SeatQuestion {
  /** A file that `record` writes, instead of the store. */
  readonly from?: string;
  readonly since?: string;
}

export interface RecordOptions extends WithOperands {
  readonly store?: readonly string[];
  /** The file. */
  readonly to: string;
  readonly keep: string;
  readonly timeout: string;
  readonly json?: true;
}

export interface LeaderOptions extends ElectionQuestion {
  readonly all?: true;
  readonly id?: true;
  /** Wait for a leader that is ready. */
  readonly ready?: true;
  /** For how long, with `ready`. */
  readonly wait?: string;
}

export interface VacateOptions extends SeatQuestion {
  readonly force?: true;
}

/** `operands`: what to do, and the shard or the member. */
export interface ShardsCommandOptions extends ElectionQuestion {
  readonly operands: readonly [
    'status' | 'watch' | 'owner' | 'drain' | 'undrain' | 'move',
    ...(readonly string[]),
  ];
  /** Of `move`: exactly one of these two. */
  readonly to?: string;
  readonly clear?: true;
  /** Of `drain`. */
  readonly until?: string;
  readonly force?: true;
}

export interface DrainOptions extends ElectionQuestion {
  readonly id: string;
  readonly until?: string;
  readonly lift?: true;
  /** Also a candidate that the store does not list. */
  readonly force?: true;
}

export interface EndOptions extends ElectionQuestion {
  /** Also an election that has never been led. */
  readonly force?: true;
  /** Also deletes the candidates, the mark of the end and the election's node. */
  readonly remove?: true;
}

/** Of commands that wait for what they have asked for. */
export interface HandOverOptions extends SeatQuestion {
  /** How long; true: as long as the default. Absent: not at all. */
  readonly wait?: string | true;
}

export interface TransferOptions extends HandOverOptions {
  readonly to: string;
}

export interface FailoverOptions extends HandOverOptions {
  readonly to?: string;
}

export interface AgentCommandOptions extends StoreOptions, TimingFlags {
  readonly election: string;
  readonly id?: string;
  readonly address?: readonly string[];
  readonly metadata?: Readonly<Record<string, string>>;
  /** Commands for the shell, or URLs of this machine. */
  readonly becomeActive: string;
  readonly becomeStandby: string;
  readonly health: string;
  readonly healthEvery: string;
  readonly healthTimeout: string;
  readonly healthFailures: number;
  readonly activeTimeout: string;
  readonly standbyTimeout: string;
  readonly fence?: readonly string[];
  readonly fenceTimeout: string;
  readonly sshOption?: readonly string[];
  /** A number, or a file that holds it. */
  readonly pid?: string;
  readonly pidGroup?: true;
  readonly takeoverDelay?: string;
  readonly listen?: ListenAddress;
  readonly eventsFd?: number;
}

export interface InitOptions extends StoreOptions {
  /** Absent: only what all elections of the store share. */
  readonly election?: string;
  readonly timeout: string;
  readonly reopen?: true;
}

/** `operands`: `postgres` or `kubernetes`. */
export interface SchemaOptions extends WithOperands {
  readonly table?: string;
  /** A table of the user's, to be protected. */
  readonly fence?: string;
  readonly fenceColumn?: string;
  readonly namespace?: string;
  readonly account?: string;
  readonly election?: readonly string[];
}

export interface DoctorOptions extends StoreOptions, TimingFlags {
  readonly election?: string;
  readonly timeout: string;
  readonly samples: number;
  /** How long the event loop is watched. */
  readonly watchLoop: string;
  readonly verbose?: true;
}

export interface RunOptions extends StoreOptions, TimingFlags {
  readonly election: string;
  /** How many candidates may lead at once. Absent: one, and the program is told no seat. */
  readonly seats?: number;
  /** How many, or their names. Absent: the program is for the leader of an election. */
  readonly shards?: number | readonly string[];
  /** Only with `shards`, as the next two: one program for each shard. */
  readonly perShard?: true;
  readonly weight?: number;
  readonly zone?: string;
  readonly id?: string;
  readonly address?: readonly string[];
  readonly metadata?: Readonly<Record<string, string>>;
  readonly takeoverDelay?: string;
  readonly holdAtLeast?: string;
  /** Commands for the shell, in order. */
  readonly onUnclean?: readonly string[];
  /** A command for the shell. */
  readonly health?: string;
  readonly healthEvery?: string;
  /** A command for the shell. */
  readonly readyWhen?: string;
  readonly readyEvery?: string;
  readonly readyTimeout?: string;
  readonly notify?: true;
  readonly listen?: ListenAddress;
  readonly restart: 'no' | 'on-failure' | 'always';
  /** At most one of these three. */
  readonly once?: true;
  readonly try?: true;
  /** False with `--no-settle`. */
  readonly settle: boolean;
  readonly wait?: string;
  /** False with `--no-release-on-crash`. */
  readonly releaseOnCrash: boolean;
  readonly stdin?: true;
  readonly eventsFd?: number;
  /** `operands`: the program and its arguments. At least one. */
}

export interface ListenAddress {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
}

export interface DashboardOptions extends WithOperands {
  /** Several are shown side by side. */
  readonly store?: readonly string[];
  readonly timeout: string;
  readonly listen?: ListenAddress;
  readonly allowSteering?: true;
  /** A file that `record` writes. */
  readonly history?: string;
  /** Holds `USER:PASSWORD`. */
  readonly authFile?: string;
  /** Files in PEM format. */
  readonly cert?: string;
  readonly key?: string;
  /** Further names of the machine, by which browsers open the page. */
  readonly hostName?: readonly string[];
  readonly json?: true;
}

export interface DemoOptions extends Pick<StoreOptions, 'json'> {
  /** A person plays it in a browser. */
  readonly web?: true;
  readonly listen?: ListenAddress;
}
