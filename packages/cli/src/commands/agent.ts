import { hostname } from 'node:os';
import { resolve } from 'node:path';
import type { LeadOptions } from 'incumbent';
import { createElection, formatDuration, parseDuration } from 'incumbent';
import { Agent } from '../agent/agent.ts';
import type { AgentDurations } from '../agent/bounds.ts';
import { agentBounds, boundsInWords, killMs } from '../agent/bounds.ts';
import { parseCall } from '../agent/calls.ts';
import { isLoopback, parseFence, parsePlace, toldPorts } from '../agent/fencing.ts';
import { machineMetadata, metadataKeys, thisMachine } from '../agent/machine.ts';
import type { ServiceProcess } from '../agent/process-guard.ts';
import { ProcessGuard } from '../agent/process-guard.ts';
import type { Context } from '../context.ts';
import { CommandError, exitCodes, UsageError } from '../failure.ts';
import type { AgentCommandOptions } from '../options.ts';
import { EventLog } from '../run/events.ts';
import { GuardKeeper } from '../run/guard-keeper.ts';
import { listen } from '../run/listen.ts';
import { patienceMs } from '../run/reach-store.ts';
import { shortestCheckMs } from '../run/shell-check.ts';
import { killMarginMs, shortestRunLeaseMs, timingOf } from '../timing-flags.ts';
import { checkEventsFd, definedEntries, introduce, otherThanMeant } from './run.ts';

/** More than the work needs, so that its own bound is the one that ends it. */
const slackMs = 5_000;

export async function agent(options: AgentCommandOptions, context: Context): Promise<number> {
  const { cwd } = context;
  if (context.platform === 'win32') {
    throw new CommandError(
      'UNSUPPORTED',
      exitCodes.usage,
      'agent cannot promise on Windows that its commands end with its belief: there are no process ' +
        'groups to kill. Use the library there',
    );
  }
  const calls = {
    becomeActive: parseCall('--become-active', options.becomeActive),
    becomeStandby: parseCall('--become-standby', options.becomeStandby),
    health: parseCall('--health', options.health),
  };
  const fences = (options.fence ?? []).map(parseFence);
  const target = serviceProcess(options, cwd);
  const addresses = options.address ?? [];
  // By which others fence this service.
  const told = addresses.map(parsePlace).find((place) => place !== undefined);
  checkFencing(options, target);
  checkMetadata(options.metadata ?? {});
  checkEventsFd(options.eventsFd, 'agent');
  const machine = thisMachine();
  const own = durationsOf(options, fences.length);

  const store = await context.openStore(options.store, {
    timeoutMs: patienceMs,
    signal: context.signal,
    lease: options.lease,
    patient: true,
  });
  store.servers?.checkLease?.(shortestRunLeaseMs);
  const candidate = {
    id: options.id ?? hostname(),
    addresses,
    metadata: {
      ...options.metadata,
      ...machineMetadata(machine),
      [metadataKeys.guard]: target === undefined ? 'none' : 'pid',
      // As long as `done`, so that what fits now fits then.
      [metadataKeys.activation]: 'none',
    },
  };
  const timing = {
    ...timingOf(options, store.backend.limits),
    stopTimeout: own.standbyTimeoutMs + killMs,
  };
  const election = createElection({
    name: options.election,
    backend: store.backend,
    candidate,
    ...timing,
  });
  const { leaseMs, stopMarginMs } = election.timing;
  if (leaseMs < shortestRunLeaseMs) {
    throw new UsageError(
      `--lease ${options.lease} is too short for an agent: its commands would have to be stopped and ` +
        `killed within ${Math.round(stopMarginMs)} ms; give 2s or more`,
    );
  }
  const events = new EventLog(context.stderr, options, {
    election: options.election,
    candidate: candidate.id,
  });
  const env = {
    ...definedEntries(context.env),
    INCUMBENT_ELECTION: options.election,
    INCUMBENT_CANDIDATE: candidate.id,
  };
  const processGuard =
    target &&
    (await ProcessGuard.start(target, killMarginMs(election.timing), {
      killed: () => steered.killed(),
      ended: () => steered.processEnded(),
    }));
  const guard = new GuardKeeper({
    stopMarginMs,
    killMarginMs: killMarginMs(election.timing),
    onTrouble: ({ code, message }) =>
      events.emit({ event: 'trouble', sentence: message, fields: { code } }),
  });
  const steered = new Agent(election, guard, processGuard, events, {
    ...calls,
    ...own,
    calls: { env, cwd },
    fences,
    ssh: { options: options.sshOption ?? [], connectTimeoutMs: own.fenceTimeoutMs / 2 },
    candidate,
    machine,
    fencedAtPorts: usesSsh(options) ? toldPorts(addresses) : [],
    hasServers: store.servers !== undefined,
  });
  // It answers with the status of the agent, so not before there is one.
  const listener = options.listen && (await listen(options.listen, () => steered.status()));
  if (listener !== undefined) {
    events.emit({
      event: 'listening',
      sentence: `listening on ${listener.url}`,
      fields: { url: listener.url },
    });
  }
  const campaign: LeadOptions = {
    actors: 'declared',
    ready: 'manual',
    readyTimeout: own.activeTimeoutMs + slackMs,
    onBelief: (deadline) => steered.belief(deadline),
    health: {
      check: (signal) => steered.check(signal),
      every: own.healthEveryMs,
      timeout: own.healthTimeoutMs,
      failures: own.healthFailures,
    },
    // One hook runs all methods.
    hookTimeout: fences.length * (own.fenceTimeoutMs + killMs) + own.standbyTimeoutMs + slackMs,
    ...(options.takeoverDelay === undefined ? {} : { takeoverDelay: options.takeoverDelay }),
  };
  await introduce(`election ${election.name}`, store, events, () =>
    otherThanMeant(election, store, timing),
  );
  const bounds = agentBounds(election.timing, own, {
    hasProcess: target !== undefined,
    onSession: store.backend.limits?.sessionTimeoutMs !== undefined,
  });
  events.emit({ event: 'bounds', sentence: boundsInWords(bounds), fields: { ...bounds } });
  if (usesSsh(options) && told !== undefined && isLoopback(told)) {
    const message =
      `--address ${told.host}:${told.port} means another machine everywhere else: only agents of this ` +
      'machine can fence this service by sshfence';
    events.emit({ event: 'warning', sentence: message, fields: { message } });
  }
  const stopFollowing = await store.servers?.follow?.(events);
  try {
    return await steered.run(campaign);
  } finally {
    stopFollowing?.();
    listener?.close();
  }
}

/** @throws UsageError when a service that is left active could stay so */
function checkFencing(
  { fence = [], address = [], sshOption = [] }: AgentCommandOptions,
  target: ServiceProcess | undefined,
): void {
  if (fence.length === 0 && target === undefined) {
    throw new UsageError(
      'agent needs --fence or --pid: an agent that dies leaves its service active, and the next leader ' +
        'must stop that service first. Give --fence METHOD, or give --pid to every agent: then guards ' +
        'kill the services',
    );
  }
  const hasSsh = usesSsh({ fence });
  if (hasSsh && !address.some((one) => parsePlace(one) !== undefined)) {
    throw new UsageError(
      '--fence sshfence kills the process that listens at the address which a leader told: give ' +
        '--address HOST:PORT, the one of this service, so that others can fence it',
    );
  }
  if (sshOption.length > 0 && !hasSsh) {
    throw new UsageError('--ssh-option goes with --fence sshfence, and there is none');
  }
}

/** @throws UsageError */
function checkMetadata(metadata: Readonly<Record<string, string>>): void {
  const own = Object.keys(metadata).find((key) => key.startsWith('service-'));
  if (own === undefined) return;
  throw new UsageError(
    `--metadata ${own}: keys that begin with "service-" are those of the agent, by which others decide ` +
      'how to fence this service; give another key',
  );
}

function usesSsh({ fence = [] }: Pick<AgentCommandOptions, 'fence'>): boolean {
  return fence.some((text) => text.startsWith('sshfence'));
}

function serviceProcess(
  { pid, pidGroup }: AgentCommandOptions,
  cwd: string,
): ServiceProcess | undefined {
  if (pid === undefined) {
    if (pidGroup) throw new UsageError('--pid-group goes with --pid, which names the process');
    return undefined;
  }
  const group = pidGroup === true;
  if (!/^\d+$/.test(pid)) return { file: resolve(cwd, pid), pid: null, group };
  if (Number(pid) < 2) throw new UsageError(`--pid ${pid} is not the number of a service`);
  return { file: null, pid: Number(pid), group };
}

/** @throws UsageError */
function durationsOf(options: AgentCommandOptions, fenceMethods: number): AgentDurations {
  /** Nothing can be done in no time. Looks at the health have the least that the library takes. */
  const bound = (flag: string, value: string, leastMs = 1) => {
    const ms = parseDuration(flag, value);
    if (ms >= leastMs) return ms;
    throw new UsageError(`${flag} ${value} is too short: give at least ${formatDuration(leastMs)}`);
  };
  return {
    healthEveryMs: bound('--health-every', options.healthEvery, shortestCheckMs),
    healthTimeoutMs: bound('--health-timeout', options.healthTimeout, shortestCheckMs),
    healthFailures: options.healthFailures,
    activeTimeoutMs: bound('--active-timeout', options.activeTimeout),
    standbyTimeoutMs: bound('--standby-timeout', options.standbyTimeout),
    fenceTimeoutMs: bound('--fence-timeout', options.fenceTimeout),
    fenceMethods,
    takeoverDelayMs: parseDuration('--takeover-delay', options.takeoverDelay ?? 0),
  };
}
