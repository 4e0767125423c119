import type { ClockErrors } from '../harness/host.ts';
import { Random } from '../harness/random.ts';
import type { EnsemblePlan } from '../harness/zookeeper/ensemble.ts';
import type { GivenSettings } from '../redis/index.ts';
import type { GemPlan } from './gem-life.ts';
import { drawGem } from './gem-life.ts';

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
  readonly layout: Layout;
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
  /** Managers of the Ruby gem run, too. */
  readonly gem: GemPlan | undefined;
}

/** The rarer ways in which nodes are joined and named. */
export interface Layout {
  /** The last replica follows the one before it. */
  readonly hasChain: boolean;
  /** Each node has a second address, which operators use, too. */
  readonly hasAliases: boolean;
  /** The replicas follow the first primary by that. */
  readonly followsAlias: boolean;
  /** An operator tells replicas to follow other replicas. */
  readonly isChainedByHand: boolean;
  /** The list of one manager lacks a node, or has its second address. */
  readonly wrongList: WrongList | undefined;
}

export interface WrongList {
  /** Their places. */
  readonly manager: number;
  readonly node: number;
  readonly isAlias: boolean;
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

/** The plan of a seed. Everything is decided here or drawn from streams of the same seed. */
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
  const drawNode = (own: Random): NodePlan => ({
    settings: { ...common, ...persisted(own, persistence) },
    loadMs: own.weighted([
      [4, 0],
      [1, own.between(10, 2_500)],
    ]),
    copyMs: own.weighted([
      [3, 0],
      [1, own.between(50, 3_000)],
    ]),
  });
  const nodes = Array.from({ length: count }, () => drawNode(random));
  const managers = drawHosts(
    random,
    random.weighted([
      [2, 1],
      [3, 2],
      [2, 3],
    ]),
  );
  // From a stream of its own: all other seeds keep their course.
  const rare = new Random(seed, 8);
  const isRare = rare.chance(1 / 3);
  if (isRare && rare.chance(0.2)) while (nodes.length < 4) nodes.push(drawNode(rare));
  const layout = isRare ? drawLayout(rare, nodes.length, managers.length) : plain;
  return {
    seed,
    nodes,
    managers,
    layout,
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
    ...drawCalm(random, common, layout),
    chaosMs: random.between(6_000, 18_000),
    faultEveryMs: random.between(800, 5_000),
    gem: drawGem(seed, drawHosts),
  };
}

const plain: Layout = {
  ...{ hasChain: false, hasAliases: false, followsAlias: false },
  ...{ isChainedByHand: false, wrongList: undefined },
};

function drawLayout(random: Random, nodes: number, managers: number): Layout {
  const hasAliases = random.chance(0.6);
  const hasWrongList = managers > 1 && random.chance(0.6);
  return {
    hasChain: nodes > 2 && random.chance(0.4),
    hasAliases,
    followsAlias: hasAliases && random.chance(0.6),
    isChainedByHand: nodes > 2 && random.chance(0.5),
    wrongList: hasWrongList
      ? {
          manager: random.below(managers),
          node: random.below(nodes),
          isAlias: hasAliases && random.chance(0.4),
        }
      : undefined,
  };
}

function drawCalm(
  random: Random,
  settings: GivenSettings,
  { hasChain }: Layout,
): Pick<Scenario, 'syncMs' | 'calmMs'> {
  const copyMs = 1_000 * Number(settings['repl-diskless-sync-delay']) + 1_000;
  const syncMs = hasChain ? 2 * copyMs : copyMs;
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
