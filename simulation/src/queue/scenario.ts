import type { TimingOptions } from 'incumbent';
import type { ClockErrors } from '../harness/host.ts';
import { Random } from '../harness/random.ts';
import type { EnsemblePlan } from '../harness/zookeeper/ensemble.ts';

/** How the application on a host uses the library. */
export interface ProcessPlan {
  readonly id: string;
  /** T: the session timeout that its client asks for. */
  readonly timeoutMs: number;
  readonly timing: TimingOptions;
  readonly spelling: Spelling;
  readonly style: 'lead' | 'campaign' | 'terms';
  readonly hooks: number;
  readonly takeoverDelayMs: number;
  readonly hookTimeoutMs: number;
  readonly health: boolean;
  readonly stepsDown: boolean;
  readonly delayAfterWinMs: number;
  /** A lock only: looks so often at it instead of watching it. */
  readonly pollMs?: number;
  /** Candidates in each election, all on one client. Default 1. */
  readonly handles?: number;
}

/** How a client reaches the elections: the same nodes have other paths for each. */
export interface Spelling {
  readonly chroot: string;
  readonly root: string;
}

export interface HostPlan {
  readonly clock: ClockErrors;
  readonly process: ProcessPlan;
}

export interface LinkPlan {
  readonly latencyMs: number;
  readonly spikes: number;
  readonly spikeMs: number;
  /** How often a request or its reply breaks the connection. */
  readonly breaks: number;
}

export type FaultMix =
  | 'mixed'
  | 'servers'
  | 'network'
  | 'stalls'
  | 'crashes'
  | 'operators'
  | 'edges';

export interface QueueScenario {
  readonly seed: number;
  /** ρ: no clock's rate is off by more. */
  readonly drift: number;
  /** The longest session timeout of all. */
  readonly timeoutMs: number;
  readonly elections: readonly string[];
  /** The full path of the node that they are below. */
  readonly parent: string;
  /** Of the operator and the observer. */
  readonly spellings: { readonly operator: Spelling; readonly observer: Spelling };
  /** Places of one session vanish together, and one by one. */
  readonly crowded: boolean;
  /** As of the lease. */
  readonly interferes: boolean;
  readonly restarts: boolean;
  readonly witnesses: boolean;
  /** Successors meet something in the moment in which they are named. */
  readonly meetsNamed: boolean;
  readonly hosts: readonly HostPlan[];
  readonly link: LinkPlan;
  readonly ensemble: EnsemblePlan;
  readonly layout: 'incumbent' | 'recipe' | 'kazoo' | 'hadoop' | 'node';
  /** Winners wait until the belief of a leader that ended unclean is over. */
  readonly waits: boolean;
  /** Members that are not ours come and go. */
  readonly strangers: boolean;
  readonly recheckMs: number;
  /** Where the numbers of places begin: some are about to run over. */
  readonly firstNumber: number;
  readonly faults: FaultMix;
  readonly chaosMs: number;
  readonly faultEveryMs: number;
  readonly observes: boolean;
  /** Besides the promises, check the rules that give them: see the lease's scenario. */
  readonly checksRules: boolean;
  readonly looksAlways: boolean;
}

/**
 * The plan of a seed. Everything is decided here or drawn from streams of the same seed.
 * @param always the layout, if it is not to be drawn
 */
export function drawQueueScenario(seed: number, always?: QueueScenario['layout']): QueueScenario {
  const random = new Random(seed, 7);
  // A stream of its own: what is drawn here leaves everything else as it is.
  const more = new Random(seed, 8);
  const spelled = drawSpellings(more);
  const crowded = more.chance(0.12);
  const drift = random.pick([0.05, 0.05, 0.05, 0.01, 0.2]);
  const baseMs = random.pick([1_000, 1_000, 2_000, 4_000, 10_000]);
  const faults = random.weighted<FaultMix>([
    [3, 'mixed'],
    [4, 'servers'],
    [3, 'network'],
    [2, 'stalls'],
    [2, 'crashes'],
    [3, 'operators'],
    [4, 'edges'],
  ]);
  const hostCount = random.weighted([
    [4, 2],
    [5, 3],
    [2, 4],
    [1, 5],
  ]);
  const mayMix = random.chance(0.35);
  const drawn = random.weighted<QueueScenario['layout']>([
    [7, 'incumbent'],
    [1, 'recipe'],
    [1, 'kazoo'],
  ]);
  const layout = always ?? drawn;
  // Where others do not wait for us, belief is short by then.
  const isMixedTiming = mayMix && ['incumbent', 'hadoop', 'node'].includes(layout);
  const tickMs = baseMs * random.pick(layout === 'incumbent' ? [0.05, 0.1, 0.2, 0.3] : [0.05, 0.1]);
  const sharedId = random.chance(0.1);
  const skewMs = random.pick([0.05 * baseMs, 3e10]);
  const hooked = random.chance(0.35);
  const hosts = Array.from({ length: hostCount }, (_, index) => {
    const timeoutMs = isMixedTiming ? Math.max(1_000, baseMs * random.pick([0.5, 1, 2])) : baseMs;
    const maxBeliefMs =
      layout === 'incumbent' ? Number.POSITIVE_INFINITY : timeoutMs - timeoutMs / 3 - tickMs;
    return drawHost(random, {
      drift,
      timeoutMs,
      maxBeliefMs,
      skewMs,
      hooked,
      id: sharedId && index < 2 ? 'twin' : `n${index + 1}`,
      spelling: spelled.of(index),
    });
  });
  const timeoutMs = Math.max(...hosts.map(({ process }) => process.timeoutMs));
  const shortestMs = Math.min(...hosts.map(({ process }) => process.timeoutMs));
  const size = random.weighted<1 | 3 | 5>([
    [2, 1],
    [9, 3],
    [1, 5],
  ]);
  const isCalm = faults === 'edges' || random.chance(0.4);
  return {
    seed,
    drift,
    timeoutMs,
    elections: drawElections(random.chance(0.3), crowded ? 3 + more.below(3) : 0),
    parent: spelled.parent,
    spellings: { operator: spelled.of(more.below(3)), observer: spelled.of(more.below(3)) },
    crowded,
    interferes: more.chance(0.25),
    restarts: more.chance(0.2),
    // A lock has no write that gives it back for another.
    witnesses: always === undefined && new Random(seed, 9).chance(0.25),
    meetsNamed: layout === 'incumbent' && new Random(seed, 10).chance(0.15),
    hosts,
    link: {
      latencyMs: shortestMs * random.pick([0.0002, 0.001, 0.003]),
      spikes: random.chance(0.5) ? random.between(0.02, 0.15) : 0,
      spikeMs: shortestMs * random.pick([0.02, 0.06]),
      breaks: isCalm ? 0 : random.between(0, 0.02),
    },
    ensemble: {
      size,
      tickMs,
      syncLimit: random.pick([2, 5, 8]),
      latencyMs: shortestMs * random.pick([0.0002, 0.001, 0.003]),
      pingsPass: random.chance(0.6),
      rates: Array.from({ length: size }, () => random.pick([1 - drift, 1, 1 + drift])),
    },
    layout,
    waits: true,
    strangers: layout !== 'incumbent' && random.chance(0.8),
    recheckMs: timeoutMs * random.pick([1, 3, 10]),
    firstNumber: random.chance(0.05) ? 2 ** 31 - 1 - random.below(12) : random.below(1_000),
    faults,
    chaosMs: timeoutMs * random.between(5, 9),
    faultEveryMs: timeoutMs * random.between(0.25, 0.8),
    observes: random.chance(0.2),
    checksRules: random.chance(0.5),
    looksAlways: random.chance(0.5),
  };
}

interface HostOptions {
  readonly drift: number;
  readonly timeoutMs: number;
  readonly maxBeliefMs: number;
  readonly skewMs: number;
  readonly hooked: boolean;
  readonly id: string;
  readonly spelling: Spelling;
}

/** Mostly one, or two; in a crowd as many as `most`, and a session holds several places. */
function drawElections(two: boolean, most: number): readonly string[] {
  return ['a', 'b', 'c', 'd', 'e'].slice(0, Math.max(most, two ? 2 : 1));
}

/** Mostly all clients spell a path alike; else each of three that follow each other does it otherwise. */
function drawSpellings(random: Random): {
  readonly parent: string;
  of(index: number): Spelling;
} {
  if (!random.chance(0.25)) {
    return { parent: '/incumbent', of: () => ({ chroot: '', root: '/incumbent' }) };
  }
  const spellings = random.shuffle([
    { chroot: '', root: '/app/incumbent' },
    { chroot: '/app', root: '/incumbent' },
    { chroot: '/app/incumbent', root: '/' },
  ]);
  return { parent: '/app/incumbent', of: (index) => spellings[index % 3] as Spelling };
}

function drawHost(random: Random, options: HostOptions): HostPlan {
  const { drift, timeoutMs, skewMs, hooked, id, spelling } = options;
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
      timerLagMs: random.chance(0.3) ? timeoutMs * random.between(0, 0.005) : 0,
    },
    process: {
      id,
      timeoutMs,
      timing: drawTiming(random, options),
      spelling,
      style: random.weighted<ProcessPlan['style']>([
        [4, 'lead'],
        [1, 'campaign'],
        [1, 'terms'],
      ]),
      hooks: hooked && random.chance(0.8) ? 1 + random.below(2) : 0,
      takeoverDelayMs: random.chance(0.15) ? timeoutMs * random.between(0.05, 0.8) : 0,
      hookTimeoutMs: timeoutMs * random.between(0.3, 1),
      health: random.chance(0.2),
      stepsDown: random.chance(0.15),
      delayAfterWinMs: random.chance(0.08) ? timeoutMs * random.between(0.05, 0.5) : 0,
    },
  };
}

/** Often longer beliefs than the default, so that an error finds more to hide in. */
function drawTiming(random: Random, options: HostOptions): TimingOptions {
  const { drift, timeoutMs, maxBeliefMs } = options;
  const common = {
    clockDrift: drift,
    stopTimeout: timeoutMs * random.pick([0.3, 1, 2]),
    ...(random.chance(0.3) ? { pollEvery: timeoutMs * random.between(0.05, 0.4) } : {}),
  };
  if (random.chance(0.4)) return common;
  const longestMs = Math.min((timeoutMs * (1 - drift)) / (1 + drift), maxBeliefMs);
  const belief = Math.max(
    0.2 * timeoutMs,
    Math.min(longestMs, timeoutMs * random.pick([0.2, 0.4, 0.6, 0.9])),
  );
  return {
    ...common,
    belief: Math.min(belief, longestMs),
    stopMargin: belief * random.pick([0.05, 0.1]),
    renewEvery: belief * random.pick([0.15, 0.22]),
    operationTimeout: belief * random.pick([0.15, 0.25]),
    retryBackoff: Math.max(10, belief * 0.03),
  };
}
