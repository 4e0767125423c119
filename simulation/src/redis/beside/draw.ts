import type { RedisNode } from '../node.ts';
import type { GivenSettings } from '../settings.ts';
import type { Layout } from './layout.ts';
import { calm, password, savesAtTheEnd } from './layout.ts';
import type { LinkFault, Step } from './steps.ts';

/** The source of the draws. */
export interface Chance {
  chance(probability: number): boolean;
  below(bound: number): number;
  pick<T>(list: readonly T[]): T;
  weighted<T>(entries: readonly (readonly [weight: number, value: T])[]): T;
}

const persistences: readonly GivenSettings[] = [
  { save: '', appendonly: 'no' },
  { save: savesAtTheEnd, appendonly: 'no' },
  { save: '', appendonly: 'yes' },
  { save: savesAtTheEnd, appendonly: 'yes' },
];

/** How the three nodes are configured at first. */
export function drawSettings(chance: Chance): readonly GivenSettings[] {
  const isClosed = chance.chance(0.2);
  return [0, 1, 2].map(() => ({
    ...calm,
    ...chance.pick(persistences),
    'repl-diskless-sync': chance.pick(['yes', 'no']),
    'repl-diskless-load': chance.weighted([
      [3, 'disabled'],
      [1, 'swapdb'],
      [1, 'on-empty-db'],
    ]),
    'repl-backlog-size': chance.pick(['16384', '1048576']),
    'replica-priority': chance.pick(['100', '0', '10']),
    'rdb-del-sync-files': chance.pick(['no', 'no', 'yes']),
    ...(isClosed ? { requirepass: password, masterauth: password } : {}),
  }));
}

/** Draws what is done next, from what the model says. */
export class Drawing {
  readonly #chance: Chance;
  readonly #layout: Layout;
  readonly #nodes: readonly RedisNode[];
  readonly #links = new Map<string, LinkFault>();
  /** Those whose copies are never done. */
  readonly #slow = new Set<number>();
  readonly #isClosed: boolean;
  #blocked = 0;

  constructor(chance: Chance, layout: Layout, nodes: readonly RedisNode[]) {
    this.#chance = chance;
    this.#layout = layout;
    this.#nodes = nodes;
    this.#isClosed = nodes[0]?.configuration.requirepass !== undefined;
  }

  /** All run, and mostly one leads the others, straight or in a chain. */
  begin(): readonly Step[] {
    const starts = this.#nodes.map((_, node): Step => ({ type: 'start', node }));
    if (this.#chance.chance(0.1)) return starts;
    const chain = this.#chance.chance(0.3);
    return [
      ...starts,
      ...this.#writes(0),
      this.#follow(1, 0),
      this.#follow(2, chain ? 1 : 0),
      ...this.#writes(0),
    ];
  }

  /** One step, or several that belong together. */
  next(): readonly Step[] {
    const chance = this.#chance;
    const node = chance.below(this.#nodes.length);
    const { isRunning, isPaused } = this.#nodes[node] as RedisNode;
    if (!isRunning) return this.#ofOneThatIsDown(node);
    if (isPaused) return [{ type: chance.chance(0.85) ? 'resume' : 'kill', node }];
    const isSlow = this.#slow.has(node);
    return chance.weighted<() => readonly Step[]>([
      [26, () => this.#writes(node)],
      [3, () => this.#bigWrites(node)],
      [14, () => this.#replicaOf(node)],
      [6, () => [{ type: 'command', node, parts: ['REPLICAOF', 'NO', 'ONE'] }]],
      [5, () => [{ type: 'kill', node }]],
      [3, () => this.#failsOver()],
      // It would save before it ends.
      [isSlow ? 0 : 4, () => [{ type: 'settle' }, this.#ends(node)]],
      [isSlow ? 0 : 2, () => [{ type: 'command', node, parts: ['SAVE'] }]],
      [3, () => [{ type: 'settle' }, { type: 'pause', node }]],
      [8, () => this.#link()],
      [5, () => this.#configures(node)],
      [3, () => this.#pausesWrites(node)],
      [3, () => this.#blocks(node)],
      [2, () => [{ type: 'command', node, parts: ['BGSAVE'] }]],
      [2, () => this.#copiesSlowly(node)],
      [2, () => this.#pings(node)],
      [1, () => this.#forgetsBacklog(node)],
      [2, () => this.#closesConnections(node)],
      [2, () => this.#losesPausedLink(node)],
      [3, () => [{ type: 'settle' }]],
      [1, () => [this.#write(node, ['FLUSHALL'])]],
      [2, () => [{ type: 'command', node, parts: ['CONFIG', 'REWRITE'] }]],
    ])();
  }

  /** The way that a failover goes, with some of its steps left out. */
  #failsOver(): readonly Step[] {
    const chance = this.#chance;
    const [former, next, third] = chance.pick([
      [0, 1, 2],
      [0, 2, 1],
      [1, 0, 2],
      [2, 1, 0],
    ] as const);
    const nodes = this.#nodes;
    if ([former, next, third].some((node) => nodes[node]?.isRunning !== true)) return [];
    if ([former, next, third].some((node) => nodes[node]?.isPaused === true)) return [];
    const isFrozen = chance.chance(0.4);
    const steps: readonly (readonly Step[])[] = [
      [{ type: 'settle' }],
      isFrozen ? [{ type: 'pause', node: former }] : [{ type: 'kill', node: former }],
      [{ type: 'command', node: next, parts: ['REPLICAOF', 'NO', 'ONE'] }],
      [this.#follow(third, next)],
      this.#writes(next),
      isFrozen ? [{ type: 'resume', node: former }] : [{ type: 'start', node: former }],
      chance.chance(0.3) ? this.#writes(former) : [],
      [this.#follow(former, next)],
    ];
    if (!isFrozen) this.#slow.delete(former);
    return steps.flat();
  }

  #ends(node: number): Step {
    const words = this.#chance.weighted<readonly string[] | undefined>([
      [3, undefined],
      [1, ['SHUTDOWN', 'SAVE']],
      [1, ['SHUTDOWN', 'NOSAVE']],
      [1, ['SHUTDOWN', 'NOW']],
    ]);
    return words === undefined ? { type: 'stop', node } : { type: 'block', node, parts: words };
  }

  /** Only as files: the child that streams one sees that nobody reads it when it writes on. */
  #copiesSlowly(node: number): readonly Step[] {
    const areSlow = !this.#slow.has(node);
    if (areSlow) this.#slow.add(node);
    return [
      { type: 'command', node, parts: ['CONFIG', 'SET', 'repl-diskless-sync', 'no'] },
      { type: 'slow-copies', node, areSlow },
    ];
  }

  #pings(node: number): readonly Step[] {
    const server = this.#nodes[node]?.server;
    const hasReplicas = server?.upstream === undefined && server?.downstream.attached.length !== 0;
    return hasReplicas ? [{ type: 'pings', node }] : [];
  }

  #forgetsBacklog(node: number): readonly Step[] {
    const setting = ['CONFIG', 'SET', 'repl-backlog-ttl'];
    return [
      { type: 'command', node, parts: [...setting, '1'] },
      { type: 'command', node, parts: [...setting, '0'] },
    ];
  }

  #closesConnections(node: number): readonly Step[] {
    const kind = this.#chance.pick(['replica', 'master']);
    return [{ type: 'command', node, parts: ['CLIENT', 'KILL', 'TYPE', kind] }];
  }

  /** A connection to the primary is not gone on from if a pause held up what came over it. */
  #losesPausedLink(node: number): readonly Step[] {
    const server = this.#nodes[node]?.server;
    const port = server?.upstream?.port;
    const way = this.#layout.ways.find((each) => each.from === node && each.port === port);
    const isWhole = way !== undefined && this.#faultOf(node, way.to) === 'pass';
    const primary = isWhole ? this.#nodes[way.to] : undefined;
    if (!isWhole || primary?.isRunning !== true || primary.isPaused) return [];
    const { from, to } = way;
    return [
      { type: 'command', node, parts: ['CLIENT', 'PAUSE', '100000000', 'WRITE'] },
      ...this.#writes(to),
      { type: 'settle' },
      { type: 'link', from, to, how: 'refuse' },
      { type: 'command', node, parts: ['CLIENT', 'UNPAUSE'] },
      { type: 'link', from, to, how: 'pass' },
    ];
  }

  #ofOneThatIsDown(node: number): readonly Step[] {
    this.#slow.delete(node);
    const start: Step = { type: 'start', node };
    const { configuration } = this.#nodes[node] as RedisNode;
    return this.#chance.weighted<readonly Step[]>([
      [6, [start]],
      [2, [{ type: 'lose-data', node }, start]],
      [
        1,
        [
          {
            type: 'configure',
            node,
            settings: { ...configuration, ...this.#chance.pick(persistences) },
          },
          start,
        ],
      ],
      [1, [{ type: 'configure', node, settings: withoutPrimary(configuration) }, start]],
    ]);
  }

  #writes(node: number): readonly Step[] {
    const chance = this.#chance;
    const count = 1 + chance.below(4);
    return Array.from({ length: count }, (): Step => {
      const key = `k${chance.below(20)}`;
      const parts = chance.weighted<readonly string[]>([
        [6, ['SET', key, 'v'.repeat(1 + chance.below(30))]],
        [2, ['SET', key, `${chance.below(1000)}`]],
        [1, ['SET', key, 'once', 'NX']],
        [3, ['INCR', `n${chance.below(3)}`]],
        [2, ['DEL', key, `k${chance.below(20)}`]],
        [1, ['PUBLISH', 'channel', 'word']],
        [1, ['GET', key]],
      ]);
      return this.#write(node, parts);
    });
  }

  /** Where writes are paused it has no answer before that is over. */
  #write(node: number, parts: readonly string[]): Step {
    const waits = this.#nodes[node]?.server?.pausesWrites === true;
    return { type: waits ? 'block' : 'command', node, parts };
  }

  /** More than the smallest backlog holds. */
  #bigWrites(node: number): readonly Step[] {
    return Array.from({ length: 1 + this.#chance.below(6) }, (_, index): Step => {
      const value = 'w'.repeat(5_000 + this.#chance.below(15_000));
      return this.#write(node, ['SET', `big${index}`, value]);
    });
  }

  #replicaOf(node: number): readonly Step[] {
    const mayGoRound = this.#chance.chance(0.1);
    const others = this.#layout.ways.filter(
      ({ from, to }) => from === node && (mayGoRound || !this.#leads(to, node)),
    );
    if (others.length === 0) return [{ type: 'command', node, parts: ['REPLICAOF', 'NO', 'ONE'] }];
    return [this.#follow(node, this.#chance.pick(others).to)];
  }

  /** Whether what `from` follows comes to `node` in the end: a circle is of no use. */
  #leads(from: number, node: number): boolean {
    for (let at = from, hops = 0; hops < this.#nodes.length; hops += 1) {
      if (at === node) return true;
      const upstream = this.#nodes[at]?.server?.upstream;
      const port =
        upstream?.port ?? Number(this.#nodes[at]?.configuration.replicaof?.split(' ')[1]);
      const way = this.#layout.ways.find((each) => each.from === at && each.port === port);
      if (way === undefined) return false;
      at = way.to;
    }
    return true;
  }

  #link(): readonly Step[] {
    const broken = this.#layout.ways.filter(({ from, to }) => this.#faultOf(from, to) !== 'pass');
    const ways = broken.length > 0 && this.#chance.chance(0.7) ? broken : this.#layout.ways;
    const { from, to } = this.#chance.pick(ways);
    const before = this.#faultOf(from, to);
    const how: LinkFault =
      before === 'pass'
        ? this.#chance.pick(['refuse', 'hold-replies', 'hold-requests'] as const)
        : 'pass';
    this.#links.set(`${from}${to}`, how);
    return [{ type: 'settle' }, { type: 'link', from, to, how }];
  }

  #faultOf(from: number, to: number): LinkFault {
    return this.#links.get(`${from}${to}`) ?? 'pass';
  }

  #follow(from: number, to: number): Step {
    const way = this.#layout.ways.find((each) => each.from === from && each.to === to);
    // Another name of the same.
    const host = this.#chance.chance(0.15) ? '127.1' : '127.0.0.1';
    return { type: 'command', node: from, parts: ['REPLICAOF', host, `${way?.port}`] };
  }

  #configures(node: number): readonly Step[] {
    const [name, value] = this.#chance.weighted<readonly [string, string]>([
      [2, ['replica-serve-stale-data', this.#chance.pick(['yes', 'no', 'yes'])]],
      [2, ['min-replicas-to-write', `${this.#chance.pick([0, 0, 1, 2])}`]],
      [this.#slow.has(node) ? 0 : 1, ['repl-diskless-sync', this.#chance.pick(['yes', 'no'])]],
      [1, ['replica-read-only', this.#chance.pick(['yes', 'yes', 'no'])]],
      [1, ['repl-backlog-size', this.#chance.pick(['16384', '65536', '1mb'])]],
      [this.#isClosed ? 2 : 0, ['requirepass', this.#chance.pick([password, ''])]],
      [1, ['repl-diskless-load', this.#chance.pick(['disabled', 'swapdb', 'on-empty-db'])]],
      [2, ['appendonly', this.#chance.pick(['yes', 'no'])]],
      [1, ['save', this.#chance.pick(['', savesAtTheEnd])]],
      [1, ['replica-priority', this.#chance.pick(['0', '100'])]],
      [1, ['masterauth', this.#chance.pick([password, 'wrong'])]],
    ]);
    return [{ type: 'command', node, parts: ['CONFIG', 'SET', name, value] }];
  }

  #pausesWrites(node: number): readonly Step[] {
    if (this.#nodes[node]?.server?.pausesWrites === true) {
      return [{ type: 'command', node, parts: ['CLIENT', 'UNPAUSE'] }];
    }
    return [{ type: 'command', node, parts: ['CLIENT', 'PAUSE', '100000000', 'WRITE'] }];
  }

  /** Something whose answer comes later, or never. */
  #blocks(node: number): readonly Step[] {
    this.#blocked += 1;
    const wait = ['WAIT', this.#chance.pick(['1', '2']), '0'];
    return this.#chance.pick<readonly Step[]>([
      [{ type: 'block', node, parts: ['XREAD', 'BLOCK', '0', 'STREAMS', 'nothing', '$'] }],
      [{ type: 'block', node, parts: ['SET', `blocked${this.#blocked}`, 'value'] }],
      // Whether replicas are asked depends on whether they have reported.
      [{ type: 'settle' }, { type: 'block', node, parts: wait }],
      [{ type: 'block', node, parts: wait, first: [['INCR', 'n0']] }],
      [
        {
          type: 'block',
          node,
          parts: ['EXEC'],
          first: [['MULTI'], ['INCR', 'n0'], ['GET', 'n0'], ['SET', 'm', 'v'], ['DEL', 'n2']],
        },
      ],
    ]);
  }
}

function withoutPrimary(settings: GivenSettings): GivenSettings {
  const { replicaof: _, ...rest } = settings;
  return rest;
}
