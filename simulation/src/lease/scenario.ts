import type { TimingOptions } from 'incumbent';
import type { ClockErrors } from '../harness/host.ts';
import { Random } from '../harness/random.ts';

/** How the application on a host uses the library. */
export interface CandidatePlan {
  readonly id: string;
  readonly style: 'lead' | 'campaign' | 'terms';
  readonly timing: TimingOptions & { readonly lease: number };
  readonly hooks: number;
  readonly takeoverDelayMs: number;
  readonly hookTimeoutMs: number;
  readonly health: boolean;
  readonly actors: 'self' | 'declared';
}

export interface HostPlan {
  readonly clock: ClockErrors;
  readonly candidate: CandidatePlan;
}

export interface NetworkPlan {
  readonly latencyMs: number;
  /** How often a message takes up to `spikeMs` instead. */
  readonly spikes: number;
  readonly spikeMs: number;
  readonly losesRequests: number;
  readonly losesReplies: number;
  readonly duplicates: number;
  readonly errors: number;
  /** The client library rejects as soon as its signal aborts. */
  readonly honoursAbort: boolean;
}

export interface StorePlan {
  readonly hints: boolean;
  readonly lists: boolean;
  readonly proves: boolean;
  /** Records travel as text. */
  readonly encodes: boolean;
  readonly clockStepMs: number | undefined;
  /**
   * - `records`: it says that it may lose its record, so its loss excuses nobody.
   * - `lives`: it also tells each time of it, so that an old record may come back as well.
   */
  readonly forgets: 'never' | 'records' | 'lives';
  readonly clockRate: number;
}

export type FaultMix = 'mixed' | 'network' | 'stalls' | 'crashes' | 'operators' | 'edges';

export interface Scenario {
  readonly seed: number;
  /** ρ: no clock's rate is off by more. */
  readonly drift: number;
  /** The longest lease of all candidates. */
  readonly leaseMs: number;
  readonly hosts: readonly HostPlan[];
  readonly network: NetworkPlan;
  readonly store: StorePlan;
  readonly faults: FaultMix;
  readonly chaosMs: number;
  /** Mean time between two faults. */
  readonly faultEveryMs: number;
  readonly observes: boolean;
  /** Somebody may delete or overwrite the record by hand. */
  readonly meddles: boolean;
  /** An operator asks for things at the very moments at which a term begins and ends. */
  readonly interferes: boolean;
  /** Processes die while they write, and come back under the same id before the write lands. */
  readonly restarts: boolean;
  /** A witness sees processes die, and gives their seats back. */
  readonly witnesses: boolean;
  /**
   * Besides the promises, check the rule that gives them (nobody takes a seat before its lease has
   * run out). Not in every seed: the promises have to be found broken by themselves, too.
   */
  readonly checksRules: boolean;
  /**
   * Ask every term at every event whether it leads. Else only when two might lead, for a look at
   * the clocks is part of how a belief ends. Applications do not look all the time.
   */
  readonly looksAlways: boolean;
  /** All candidates are copies of one process. */
  readonly copies: boolean;
}

/** The plan of a seed. Everything is decided here or drawn from streams of the same seed. */
export function drawScenario(seed: number): Scenario {
  const random = new Random(seed);
  // A stream of its own: what is drawn here leaves everything else as it is.
  const more = new Random(seed, 8);
  const drift = random.pick([0.05, 0.05, 0.05, 0.01, 0.2]);
  const baseLeaseMs = random.pick([1_000, 1_000, 2_000, 3_000, 10_000]);
  const faults = random.weighted<FaultMix>([
    [3, 'mixed'],
    [3, 'network'],
    [3, 'stalls'],
    [2, 'crashes'],
    [2, 'operators'],
    [4, 'edges'],
  ]);
  const proves = baseLeaseMs <= 2_000 && random.chance(0.25);
  const sharedId = random.chance(0.12);
  const hostCount = random.weighted([
    [4, 2],
    [5, 3],
    [1, 4],
  ]);
  const meddles = random.chance(0.1);
  const forgets = meddles ? random.pick(['never', 'records', 'lives', 'lives'] as const) : 'never';
  // A candidate that finds no record knows of no other lease than its own.
  const mixed = forgets === 'never' && random.chance(0.35);
  // Wall clocks agree about as well as they do in a data centre, or not at all.
  const skewMs = random.pick([0.05 * baseLeaseMs, 3e10]);
  const hosts: HostPlan[] = [];
  for (let index = 0; index < hostCount; index += 1) {
    const leaseMs = mixed
      ? Math.max(1_000, baseLeaseMs * random.pick([0.5, 1, 2, 3]))
      : baseLeaseMs;
    hosts.push(
      drawHost(random, {
        drift,
        leaseMs,
        skewMs,
        proves,
        id: sharedId && index < 2 ? 'twin' : `n${index + 1}`,
      }),
    );
  }
  const leaseMs = Math.max(...hosts.map((host) => host.candidate.timing.lease));
  // Far below the shortest timeout: a store that is slower than that keeps nobody elected.
  const shortestMs = Math.min(...hosts.map((host) => host.candidate.timing.lease));
  const quietNetwork = faults === 'edges' || random.chance(0.4);
  return {
    seed,
    drift,
    leaseMs,
    hosts,
    network: {
      latencyMs: shortestMs * random.pick([0.0002, 0.001, 0.005]),
      spikes: random.chance(0.5) ? random.between(0.02, 0.2) : 0,
      spikeMs: baseLeaseMs * random.pick([0.05, 0.15, 0.3]),
      losesRequests: quietNetwork ? 0 : random.between(0, 0.1),
      losesReplies: quietNetwork ? 0 : random.between(0, 0.15),
      duplicates: random.chance(0.4) ? random.between(0, 0.15) : 0,
      errors: quietNetwork ? 0 : random.between(0, 0.1),
      honoursAbort: random.chance(0.5),
    },
    store: {
      hints: random.chance(0.6),
      lists: random.chance(0.5),
      proves,
      encodes: random.chance(0.05),
      clockStepMs: random.chance(0.3) ? baseLeaseMs * random.between(0, 0.3) : undefined,
      forgets,
      clockRate: random.pick([1 - drift, 1, 1 + drift]),
    },
    faults,
    chaosMs: leaseMs * random.between(6, 10),
    faultEveryMs: leaseMs * random.between(0.3, 0.9),
    observes: random.chance(0.15),
    meddles,
    interferes: more.chance(0.25),
    restarts: more.chance(0.2),
    witnesses: new Random(seed, 9).chance(0.25),
    checksRules: random.chance(0.5),
    looksAlways: random.chance(0.5),
    copies: random.chance(0.1),
  };
}

interface HostOptions {
  readonly drift: number;
  readonly leaseMs: number;
  readonly skewMs: number;
  readonly proves: boolean;
  readonly id: string;
}

function drawHost(random: Random, options: HostOptions): HostPlan {
  const { drift, leaseMs, skewMs, proves, id } = options;
  const rate = () =>
    random.weighted([
      [4, 1 - drift],
      [4, 1 + drift],
      [1, 1],
      [1, random.between(1 - drift, 1 + drift)],
    ]);
  return {
    clock: {
      monotonicRate: rate(),
      wallRate: random.chance(0.6) ? 1 - drift : rate(),
      monotonicStartMs: random.between(0, 1e7),
      wallStartMs: 1.7e12 + random.between(-skewMs, skewMs),
      coarseTimers: random.chance(0.3),
      timerLagMs: random.chance(0.3) ? leaseMs * random.between(0, 0.01) : 0,
    },
    candidate: {
      id,
      style: random.weighted<CandidatePlan['style']>([
        [4, 'lead'],
        [1, 'campaign'],
        [1, 'terms'],
      ]),
      timing: drawTiming(random, drift, leaseMs),
      hooks: random.chance(0.35) ? 1 + random.below(2) : 0,
      takeoverDelayMs: random.chance(0.15) ? leaseMs * random.between(0.05, 1.2) : 0,
      hookTimeoutMs: leaseMs * random.between(0.3, 1),
      health: random.chance(0.25),
      actors: proves && random.chance(0.5) ? 'declared' : 'self',
    },
  };
}

/** Mostly at the edge of what P1 allows, so that an error finds no slack to hide in. */
function drawTiming(random: Random, drift: number, leaseMs: number): CandidatePlan['timing'] {
  const common = {
    lease: leaseMs,
    clockDrift: drift,
    stopTimeout: leaseMs * random.pick([0.3, 1, 2]),
    ...(random.chance(0.3) ? { pollEvery: leaseMs * random.between(0.05, 0.6) } : {}),
  };
  if (drift <= 0.05 && random.chance(0.3)) return common;
  return {
    ...common,
    belief: (leaseMs * (1 - drift)) / (1 + drift),
    stopMargin: leaseMs * random.pick([0.04, 0.08, 0.15]),
    renewEvery: leaseMs * random.pick([0.1, 1 / 6, 0.2]),
    operationTimeout: leaseMs * random.pick([0.05, 0.08, 0.1]),
    retryBackoff: leaseMs * random.pick([0.01, 0.04]),
  };
}
