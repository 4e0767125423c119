import type { ClockErrors } from '../harness/host.ts';
import { Random } from '../harness/random.ts';
import type { EnsemblePlan } from '../harness/zookeeper/ensemble.ts';
import type { GivenSettings } from '../redis/index.ts';

export interface NodePlan {
  readonly settings: GivenSettings;
  /** How long reading and copying take, whatever there is. */
  readonly loadMs: number;
  readonly copyMs: number;
}

export interface Scenario {
  readonly seed: number;
  readonly nodes: readonly NodePlan[];
  readonly managers: readonly ClockErrors[];
  readonly writers: readonly ClockErrors[];
  readonly ensemble: EnsemblePlan;
  readonly link: {
    readonly latencyMs: number;
    readonly spikes: number;
    readonly spikeMs: number;
    readonly breaks: number;
  };
  readonly nodeLatencyMs: number;
  readonly rejoin: 'proven' | 'always';
  readonly viewMs: number;
  readonly sessionTimeoutMs: number;
  readonly checkEveryMs: number;
  readonly nodeTimeoutMs: number;
  readonly maxFailures: number;
  readonly commandTimeoutMs: number;
  readonly verifiesRole: boolean;
  readonly writeEveryMs: number;
  readonly faults: FaultMix;
  /** Until then the replicas copy the primary. */
  readonly syncMs: number;
  readonly calmMs: number;
  readonly chaosMs: number;
  readonly faultEveryMs: number;
}

export type FaultMix =
  | 'mixed'
  | 'nodes'
  | 'links'
  | 'managers'
  | 'zookeeper'
  | 'edges'
  | 'operators';

const drift = 0.05;

/** What a seed is about. Everything is decided here or drawn from streams of the same seed. */
export function drawScenario(seed: number): Scenario {
  const random = new Random(seed, 7);
  const viewMs = random.pick([300, 500, 1_000]);
  const size = random.weighted<1 | 3>([
    [4, 1],
    [1, 3],
  ]);
  const persistence = random.pick(['none', 'rdb', 'aof', 'mixed'] as const);
  const common: GivenSettings = {
    'repl-timeout': random.pick(['3', '10', '60']),
    'repl-ping-replica-period': random.pick(['1', '2', '10']),
    'repl-backlog-ttl': random.weighted([
      [5, '3600'],
      [1, '5'],
    ]),
    'repl-diskless-sync': random.pick(['yes', 'no']),
    'repl-diskless-sync-delay': random.pick(['0', '1', '5']),
    'repl-diskless-load': random.weighted([
      [5, 'disabled'],
      [1, 'on-empty-db'],
      [1, 'swapdb'],
    ]),
  };
  const count = random.weighted([
    [1, 2],
    [3, 3],
  ]);
  return {
    seed,
    nodes: Array.from({ length: count }, () => ({
      settings: { ...common, ...persisted(random, persistence) },
      loadMs: random.weighted([
        [4, 0],
        [1, random.between(10, 2_500)],
      ]),
      copyMs: random.weighted([
        [3, 0],
        [1, random.between(50, 3_000)],
      ]),
    })),
    managers: drawHosts(
      random,
      random.weighted([
        [2, 1],
        [3, 2],
        [2, 3],
      ]),
    ),
    writers: drawHosts(random, random.pick([1, 2, 2])),
    ensemble: {
      size,
      tickMs: 500,
      syncLimit: random.pick([2, 5]),
      latencyMs: random.pick([0.5, 3]),
      pingsPass: random.chance(0.6),
      rates: Array.from({ length: size }, () => random.pick([1 - drift, 1, 1 + drift])),
    },
    link: {
      latencyMs: random.pick([0.5, 3]),
      spikes: random.chance(0.3) ? 0.05 : 0,
      spikeMs: random.between(10, 100),
      breaks: random.chance(0.7) ? 0 : random.between(0, 0.005),
    },
    nodeLatencyMs: random.pick([0.2, 2, 10]),
    rejoin: random.weighted<Scenario['rejoin']>([
      [3, 'proven'],
      [1, 'always'],
    ]),
    viewMs,
    sessionTimeoutMs: random.pick([2_000, 4_000, 6_000]),
    checkEveryMs: random.pick([200, 500]),
    nodeTimeoutMs: random.pick([200, 500]),
    maxFailures: random.pick([1, 2, 3]),
    commandTimeoutMs: random.pick([500, 2_000, 5_000]),
    verifiesRole: random.chance(0.7),
    writeEveryMs: random.pick([50, 150, 400]),
    faults: random.weighted<FaultMix>([
      [3, 'mixed'],
      [4, 'nodes'],
      [3, 'links'],
      [2, 'managers'],
      [1, 'zookeeper'],
      [3, 'edges'],
      [3, 'operators'],
    ]),
    ...drawCalm(random, common),
    chaosMs: random.between(6_000, 18_000),
    faultEveryMs: random.between(800, 5_000),
  };
}

function drawCalm(random: Random, settings: GivenSettings): Pick<Scenario, 'syncMs' | 'calmMs'> {
  const syncMs = 1_000 * Number(settings['repl-diskless-sync-delay']) + 1_000;
  return { syncMs, calmMs: syncMs + random.between(2_000, 4_000) };
}

function persisted(random: Random, persistence: 'none' | 'rdb' | 'aof' | 'mixed'): GivenSettings {
  const kind = persistence === 'mixed' ? random.pick(['none', 'rdb', 'aof'] as const) : persistence;
  if (kind === 'none') return { save: '' };
  if (kind === 'rdb') return { save: random.pick(['1 1', '5 1', '3600 1']) };
  return { save: '', appendonly: 'yes', appendfsync: random.pick(['always', 'everysec', 'no']) };
}

function drawHosts(random: Random, count: number): readonly ClockErrors[] {
  const rate = () => random.pick([1 - drift, 1, 1 + drift]);
  return Array.from({ length: count }, () => ({
    monotonicRate: rate(),
    wallRate: rate(),
    monotonicStartMs: random.between(0, 1e7),
    wallStartMs: 1.7e12 + random.between(-1e5, 1e5),
    coarseTimers: random.chance(0.3),
    timerLagMs: random.chance(0.3) ? random.between(0, 20) : 0,
  }));
}
