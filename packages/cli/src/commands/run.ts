import { fstatSync } from 'node:fs';
import { hostname } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { CampaignOnceOptions, Election, Timing, TimingOptions } from 'incumbent';
import { createElection, formatDuration, parseDuration, StoreUnsuitableError } from 'incumbent';
import { missingPlace } from '../ask.ts';
import type { Context, OpenStore } from '../context.ts';
import { fileSystemType, fileSystemWarnings } from '../doctor/file-system.ts';
import { othersThan } from '../elections.ts';
import { CommandError, exitCodes, UsageError } from '../failure.ts';
import type { Heir } from '../guard/index.ts';
import { findProgram } from '../guard/index.ts';
import type { GuardProcess } from '../guard/spawn.ts';
import type { RunOptions, TimingFlags } from '../options.ts';
import { isLedOnce } from '../output/describe.ts';
import { EventLog } from '../run/events.ts';
import type { Bequest } from '../run/give-seat-back.ts';
import { GuardKeeper } from '../run/guard-keeper.ts';
import { fenceHook } from '../run/leadership.ts';
import { patienceMs } from '../run/reach-store.ts';
import type { Readiness } from '../run/readiness.ts';
import { Runner } from '../run/runner.ts';
import { requireCommand, runShellCheck, shortestCheckMs } from '../run/shell-check.ts';
import { killMarginMs, shortestRunLeaseMs, timingOf } from '../timing-flags.ts';

/** The built one, also for our own tests. */
const heirFile = fileURLToPath(new URL('../../dist/run/give-seat-back.js', import.meta.url));
/** Longer than this a start does not wait for a hint. */
const hintMs = 2_000;

export async function run(
  options: RunOptions,
  context: Context,
  early?: GuardProcess,
): Promise<number> {
  const { cwd } = context;
  requireShards(options);
  if (!options.settle && options.try !== true) {
    throw new UsageError(
      '--no-settle goes with --try: without it `run` waits for everything anyway',
    );
  }
  const [program = '', ...args] = options.operands;
  const env = definedEntries(context.env);
  requireProgram(program, env, context);

  if (options.health !== undefined) requireCommand('--health', options.health);
  for (const command of options.onUnclean ?? []) requireCommand('--on-unclean', command);
  if (options.healthEvery !== undefined && options.health === undefined) {
    throw new UsageError(
      `--health-every ${options.healthEvery} says how often --health runs, and there is no --health: ` +
        'give both, or neither',
    );
  }
  const readiness = readinessOf(options);
  checkEventsFd(options.eventsFd);

  const store = await context.openStore(options.store, {
    timeoutMs: patienceMs,
    signal: context.signal,
    lease: options.lease,
    patient: true,
  });
  store.servers?.checkLease?.(shortestRunLeaseMs);
  const candidate = {
    id: options.id ?? `${hostname()}-${process.pid}`,
    addresses: options.address ?? [],
    metadata: options.metadata ?? {},
  };
  const timing = timingOf(options, store.backend.limits);
  const election = createElection({
    name: options.election,
    backend: store.backend,
    candidate,
    ...timing,
    ...(options.seats !== undefined && { seats: options.seats }),
  });
  const { leaseMs, stopMarginMs } = election.timing;
  requireLease(options, election.timing);
  const events = new EventLog(context.stderr, options, {
    election: options.election,
    candidate: candidate.id,
    hasSeats: options.seats !== undefined,
  });
  const programEnv = {
    ...env,
    INCUMBENT_ELECTION: options.election,
    INCUMBENT_CANDIDATE: candidate.id,
    INCUMBENT_LEASE_MS: String(leaseMs),
  };
  const guard = new GuardKeeper(
    {
      stopMarginMs,
      killMarginMs: killMarginMs(election.timing),
      stdin: options.stdin === true,
      ...(options.releaseOnCrash && { heir: heirOf(options, context) }),
      onTrouble: ({ code, message }) =>
        events.emit({ event: 'trouble', sentence: message, fields: { code } }),
    },
    early,
  );
  const runner = new Runner(election, guard, events, {
    spec: { program, args, env: programEnv, cwd },
    restart: options.restart,
    once: options.once === true,
    hasServers: store.servers !== undefined,
    hasSeats: options.seats !== undefined,
    holdAtLeastMs: parseDuration('--hold-at-least', options.holdAtLeast ?? 0),
    ...(readiness === undefined ? {} : { readiness }),
    ...(options.listen === undefined ? {} : { listen: options.listen }),
  });
  const { health, onUnclean = [] } = options;
  const campaign: CampaignOnceOptions & { holdAtLeast?: string } = {
    actors: 'declared',
    onBelief: (deadline) => guard.belief(deadline),
    ...(options.releaseOnCrash && { onSeat: (seat) => guard.seat(seat) }),
    onUnclean: onUnclean.map((command) => fenceHook(command, programEnv, cwd, runner)),
    ...(readiness === undefined ? {} : { ready: 'manual', readyTimeout: readiness.withinMs }),
    ...(options.takeoverDelay === undefined ? {} : { takeoverDelay: options.takeoverDelay }),
    ...(options.holdAtLeast === undefined ? {} : { holdAtLeast: options.holdAtLeast }),
    ...(options.try
      ? { wait: 0, settle: options.settle }
      : options.wait === undefined
        ? {}
        : { wait: options.wait }),
    ...(health === undefined
      ? {}
      : {
          health: {
            check: (signal: AbortSignal) =>
              runShellCheck('--health', health, programEnv, cwd, signal),
            ...(options.healthEvery === undefined ? {} : { every: options.healthEvery }),
          },
        }),
  };
  let stopFollowing: (() => void) | undefined;
  try {
    await introduce(`election ${election.name}`, store, events, () =>
      otherThanMeant(election, store, timing),
    );
    stopFollowing = await store.servers?.follow?.(events);
  } catch (error) {
    await guard.close();
    throw error;
  }
  try {
    return await runner.run(campaign);
  } finally {
    stopFollowing?.();
  }
}

/** The process that gives our seat back when we and the program are dead. */
function heirOf({ election, store, json, ...flags }: RunOptions, { env, cwd }: Context): Heir {
  const { lease, belief, stopMargin, renewEvery, operationTimeout, stopTimeout } = flags;
  const timing: TimingFlags = definedEntries({
    ...{ lease, belief, stopMargin, renewEvery, operationTimeout, stopTimeout },
  });
  const input: Bequest = { election, store, timing, json: json === true, pid: process.pid };
  return { argv: [heirFile], cwd, env: definedEntries(env), input };
}

/** @throws CommandError when the program cannot be run here */
export function requireProgram(
  program: string,
  env: Readonly<Record<string, string>>,
  { platform, cwd }: Context,
): void {
  if (platform === 'win32') {
    throw new CommandError(
      'UNSUPPORTED',
      exitCodes.usage,
      'run cannot promise on Windows that a program ends before somebody else leads: there are no ' +
        'process groups to kill. Use the library there, and give its token to whatever you write to',
    );
  }
  const { problem } = findProgram(program, env, cwd);
  if (problem === undefined) return;
  throw new CommandError('CANNOT_RUN', problem.exitCode, problem.message);
}

/** @throws UsageError when the lease leaves no time to stop and kill a program */
export function requireLease(
  { lease }: Pick<RunOptions, 'lease'>,
  { leaseMs, stopMarginMs }: Timing,
): void {
  if (leaseMs >= shortestRunLeaseMs) return;
  throw new UsageError(
    `--lease ${lease} is too short for a program: it would have to be stopped and ` +
      `killed within ${Math.round(stopMarginMs)} ms; give 2s or more`,
  );
}

/**
 * Tells what is held where, makes what is missing there, and warns of what looks wrong.
 * @param what such as `election nightly`
 * @param meantInstead tells what else the user may have meant
 */
export async function introduce(
  what: string,
  store: OpenStore,
  events: EventLog,
  meantInstead: () => Promise<string | undefined> = async () => undefined,
): Promise<void> {
  // Said even where it is the default: different users have different default stores.
  events.emit({
    event: 'store',
    sentence: `${what} on ${store.url}`,
    fields: { store: store.url },
  });
  const made = await prepare(store);
  if (made !== undefined) {
    events.emit({ event: 'made', sentence: `made ${made}, which was missing`, fields: { made } });
  }
  const meant = await meantInstead();
  if (meant !== undefined) {
    events.emit({ event: 'warning', sentence: meant, fields: { message: meant } });
  }
  const fileSystem = store.directory && (await fileSystemType(store.directory));
  for (const { message } of fileSystemWarnings(fileSystem)) {
    events.emit({ event: 'warning', sentence: message, fields: { message } });
  }
}

/**
 * Creates the objects that servers lack. The campaign itself makes a directory.
 * @throws CommandError that names the role that may create them; StoreUnsuitableError with the
 * reason why they must not be created
 */
async function prepare({ servers, prepare: make }: OpenStore): Promise<string | undefined> {
  if (servers === undefined || make === undefined) return undefined;
  try {
    return await make(AbortSignal.timeout(patienceMs));
  } catch (error) {
    if (error instanceof CommandError || error instanceof StoreUnsuitableError) throw error;
    // Servers may be away just now: the campaign is more patient, and says what is wrong.
    return undefined;
  }
}

/** A new election is named if another one of nearly the same name has been led. Only a hint. */
export async function otherThanMeant(
  election: Election,
  store: OpenStore,
  timing: TimingOptions,
): Promise<string | undefined> {
  try {
    const signal = AbortSignal.timeout(hintMs);
    const missing = await missingPlace(store, election.name, signal);
    if (missing === undefined && isLedOnce(await election.leader({ signal, seat: 1 })))
      return undefined;
    const { nearest } = (await othersThan(store, election.name, timing, signal)) ?? {};
    if (nearest === undefined) return undefined;
    return (
      `this store has no record of a leader of election "${election.name}"; did you mean ` +
      `"${nearest}"?`
    );
  } catch {
    return undefined;
  }
}

/**
 * How the program becomes ready. Undefined: it is ready when the term begins.
 * @throws UsageError
 */
function readinessOf(options: RunOptions): Readiness | undefined {
  const { readyWhen: command, readyEvery, readyTimeout, notify } = options;
  const withinMs = parseDuration('--ready-timeout', readyTimeout ?? '60s');
  if (withinMs === 0) {
    throw new UsageError(
      `--ready-timeout ${readyTimeout}: no program could become ready before it is over; give more ` +
        'than 0',
    );
  }
  if (readyEvery !== undefined && command === undefined) {
    throw new UsageError(
      `--ready-every ${readyEvery} says how often --ready-when runs, and there is no --ready-when: ` +
        'give both, or neither',
    );
  }
  if (command !== undefined) {
    requireCommand('--ready-when', command);
    const everyMs = parseDuration('--ready-every', readyEvery ?? '1s');
    if (everyMs < shortestCheckMs) {
      throw new UsageError(
        `--ready-every ${readyEvery} is both the pause between two checks and the longest time of one: ` +
          `give at least ${formatDuration(shortestCheckMs)}`,
      );
    }
    return { by: 'command', command, everyMs, withinMs };
  }
  if (notify) return { by: 'notification', withinMs };
  if (readyTimeout === undefined) return undefined;
  throw new UsageError(
    `--ready-timeout ${readyTimeout} bounds the time until the program is ready, and nothing says ` +
      'when it is: give --ready-when or --notify too',
  );
}

/** @throws UsageError for an option that only counts together with --shards */
function requireShards({ perShard, weight, zone }: RunOptions): void {
  for (const [flag, value] of Object.entries({
    '--per-shard': perShard,
    '--weight': weight,
    '--zone': zone,
  })) {
    if (value !== undefined) throw new UsageError(`${flag} is for --shards: give both, or neither`);
  }
}

/** A descriptor that is not open would swallow every event. */
export function checkEventsFd(fd: number | undefined, command = 'run'): void {
  if (fd === undefined) return;
  try {
    fstatSync(fd);
  } catch {
    throw new UsageError(
      `--events-fd ${fd} is not open: redirect it, as in \`incumbent ${command} --events-fd ${fd} … ` +
        `${fd}>events.log\``,
    );
  }
}

/** Without the entries that are undefined. */
export function definedEntries(
  entries: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(entries).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}
