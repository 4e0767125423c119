import { hostname } from 'node:os';
import type { CampaignOnceOptions } from 'incumbent';
import { createElection } from 'incumbent';
import type { Context } from '../context.ts';
import { fileSystemType, fileSystemWarnings } from '../doctor/file-system.ts';
import { CommandError, exitCodes, UsageError } from '../failure.ts';
import { findProgram } from '../guard/index.ts';
import type { RunOptions } from '../options.ts';
import { EventLog } from '../run/events.ts';
import { GuardKeeper } from '../run/guard-keeper.ts';
import { runHealthCommand } from '../run/health-command.ts';
import { fenceHook } from '../run/leadership.ts';
import { patienceMs, Runner } from '../run/runner.ts';
import { killMarginMs, shortestRunLeaseMs, timingOf } from '../timing-flags.ts';

export async function run(options: RunOptions, context: Context): Promise<number> {
  const { cwd } = context;
  if (context.platform === 'win32') {
    throw new CommandError(
      'UNSUPPORTED',
      exitCodes.usage,
      'run cannot promise on Windows that a program ends before somebody else leads: there are no ' +
        'process groups to kill. Use the library there, and give its token to whatever you write to',
    );
  }
  const [program = '', ...args] = options.operands;
  const env = definedEntries(context.env);
  const { problem } = findProgram(program, env, cwd);
  if (problem !== undefined)
    throw new CommandError('CANNOT_RUN', problem.exitCode, problem.message);

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
  const election = createElection({
    name: options.election,
    backend: store.backend,
    candidate,
    ...timingOf(options, store.backend.limits),
  });
  const { leaseMs, stopMarginMs } = election.timing;
  if (leaseMs < shortestRunLeaseMs) {
    throw new UsageError(
      `--lease ${options.lease} is too short for a program: it would have to be stopped and ` +
        `killed within ${Math.round(stopMarginMs)} ms; give 2s or more`,
    );
  }
  const events = new EventLog(context.stderr, options, {
    election: options.election,
    candidate: candidate.id,
  });
  const programEnv = {
    ...env,
    INCUMBENT_ELECTION: options.election,
    INCUMBENT_CANDIDATE: candidate.id,
    INCUMBENT_LEASE_MS: String(leaseMs),
  };
  const guard = new GuardKeeper({
    stopMarginMs,
    killMarginMs: killMarginMs(election.timing),
    stdin: options.stdin === true,
    onTrouble: ({ code, message }) =>
      events.emit({ event: 'trouble', sentence: message, fields: { code } }),
  });
  const runner = new Runner(election, guard, events, {
    spec: { program, args, env: programEnv, cwd },
    restart: options.restart,
    once: options.once === true,
    hasServers: store.servers !== undefined,
    ...(options.listen === undefined ? {} : { listen: options.listen }),
  });
  const { health } = options;
  const campaign: CampaignOnceOptions & { holdAtLeast?: string } = {
    actors: 'declared',
    onBelief: (deadline) => guard.belief(deadline),
    onUnclean: (options.onUnclean ?? []).map((command) =>
      fenceHook(command, programEnv, cwd, runner),
    ),
    ...(options.takeoverDelay === undefined ? {} : { takeoverDelay: options.takeoverDelay }),
    ...(options.holdAtLeast === undefined ? {} : { holdAtLeast: options.holdAtLeast }),
    ...(options.try ? { wait: 0 } : options.wait === undefined ? {} : { wait: options.wait }),
    ...(health === undefined
      ? {}
      : {
          health: {
            check: (signal: AbortSignal) => runHealthCommand(health, programEnv, cwd, signal),
            ...(options.healthEvery === undefined ? {} : { every: options.healthEvery }),
          },
        }),
  };
  // Said even where it is the default: different users have different default stores.
  events.emit({
    event: 'store',
    sentence: `election ${options.election} on ${store.url}`,
    fields: { store: store.url },
  });
  const fileSystem = store.directory && (await fileSystemType(store.directory));
  for (const { message } of fileSystemWarnings(fileSystem)) {
    events.emit({ event: 'warning', sentence: message, fields: { message } });
  }
  const stopFollowing = await store.servers?.follow?.(events);
  try {
    return await runner.run(campaign);
  } finally {
    stopFollowing?.();
  }
}

/** Without the entries that are undefined. */
function definedEntries(
  entries: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(entries).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}
