import { hostname } from 'node:os';
import { resolve } from 'node:path';
import type { LeadOptions } from 'incumbent';
import { createElection, parseDuration } from 'incumbent';
import { Agent, hostKey } from '../agent/agent.ts';
import { agentBounds, boundsInWords, killMs } from '../agent/bounds.ts';
import { parseCall } from '../agent/calls.ts';
import { parseFence, parsePlace } from '../agent/fencing.ts';
import type { ServiceProcess } from '../agent/process-guard.ts';
import { ProcessGuard } from '../agent/process-guard.ts';
import type { Context } from '../context.ts';
import { CommandError, exitCodes, UsageError } from '../failure.ts';
import type { AgentCommandOptions } from '../options.ts';
import { EventLog } from '../run/events.ts';
import { GuardKeeper } from '../run/guard-keeper.ts';
import { listen } from '../run/listen.ts';
import { patienceMs } from '../run/reach-store.ts';
import { killMarginMs, shortestRunLeaseMs, timingOf } from '../timing-flags.ts';
import { checkEventsFd, definedEntries, introduce } from './run.ts';

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
  checkFencing(options, target);
  checkEventsFd(options.eventsFd, 'agent');
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
    metadata: { ...options.metadata, [hostKey]: hostname() },
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
  const listener = options.listen && (await listen(options.listen, () => steered.status()));
  if (listener !== undefined) {
    events.emit({
      event: 'listening',
      sentence: `listening on ${listener.url}`,
      fields: { url: listener.url },
    });
  }
  const processGuard =
    target &&
    (await ProcessGuard.start(target, killMarginMs(election.timing), () => steered.killed()));
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
    hasServers: store.servers !== undefined,
  });
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
    ...(fences.length === 0
      ? {}
      : { hookTimeout: fences.length * own.fenceTimeoutMs + own.standbyTimeoutMs + slackMs }),
    ...(options.takeoverDelay === undefined ? {} : { takeoverDelay: options.takeoverDelay }),
  };
  await introduce(election, store, events, timing);
  const bounds = agentBounds(election.timing, own, {
    hasProcess: target !== undefined,
    onSession: store.backend.limits?.sessionTimeoutMs !== undefined,
  });
  events.emit({ event: 'bounds', sentence: boundsInWords(bounds), fields: { ...bounds } });
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
      'agent needs --fence: when an agent dies, its service goes on being active, and the next leader ' +
        'must end that first. With --pid on every agent the guards kill their services instead',
    );
  }
  const usesSsh = fence.some((text) => text.startsWith('sshfence'));
  if (usesSsh && !address.some((one) => parsePlace(one) !== undefined)) {
    throw new UsageError(
      '--fence sshfence kills the process that listens at the address which a leader told: give ' +
        '--address HOST:PORT, the one of this service, so that others can fence it',
    );
  }
  if (sshOption.length > 0 && !usesSsh) {
    throw new UsageError('--ssh-option goes with --fence sshfence, and there is none');
  }
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

function durationsOf(options: AgentCommandOptions, fenceMethods: number) {
  return {
    healthEveryMs: parseDuration('--health-every', options.healthEvery),
    healthTimeoutMs: parseDuration('--health-timeout', options.healthTimeout),
    healthFailures: options.healthFailures,
    activeTimeoutMs: parseDuration('--active-timeout', options.activeTimeout),
    standbyTimeoutMs: parseDuration('--standby-timeout', options.standbyTimeout),
    fenceTimeoutMs: parseDuration('--fence-timeout', options.fenceTimeout),
    fenceMethods,
  };
}
