import type { RedisNode } from '../node.ts';
import type { GivenSettings } from '../settings.ts';
import type { Layout } from './layout.ts';
import { calm, password, savesAtTheEnd } from './layout.ts';
import type { LinkFault, Step } from './steps.ts';

/** What is drawn from. */
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
  #blocked = 0;

  constructor(chance: Chance, layout: Layout, nodes: readonly RedisNode[]) {
    this.#chance = chance;
    this.#layout = layout;
    this.#nodes = nodes;
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
    if (isPaused) {
      return [{ type: chance.chance(0.85) ? 'resume' : 'kill', node }];
    }
    return chance.weighted<() => readonly Step[]>([
      [26, () => this.#writes(node)],
      [3, () => this.#bigWrites(node)],
      [14, () => this.#replicaOf(node)],
      [6, () => [{ type: 'command', node, parts: ['REPLICAOF', 'NO', 'ONE'] }]],
      [5, () => [{ type: 'kill', node }]],
      [4, () => [{ type: 'settle' }, { type: 'stop', node }]],
      [3, () => [{ type: 'settle' }, { type: 'pause', node }]],
      [8, () => this.#link()],
      [5, () => this.#configures(node)],
      [3, () => this.#pausesWrites(node)],
      [3, () => this.#blocks(node)],
      [2, () => [{ type: 'command', node, parts: [chance.pick(['SAVE', 'BGSAVE'])] }]],
      [3, () => [{ type: 'settle' }]],
      [1, () => [this.#write(node, ['FLUSHALL'])]],
      [2, () => [{ type: 'command', node, parts: ['CONFIG', 'REWRITE'] }]],
    ])();
  }

  #ofOneThatIsDown(node: number): readonly Step[] {
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
    const others = this.#layout.ways.filter(
      ({ from, to }) => from === node && !this.#leads(to, node),
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
    return { type: 'command', node: from, parts: ['REPLICAOF', '127.0.0.1', `${way?.port}`] };
  }

  #configures(node: number): readonly Step[] {
    const [name, value] = this.#chance.weighted<readonly [string, string]>([
      [2, ['replica-serve-stale-data', this.#chance.pick(['yes', 'no', 'yes'])]],
      [2, ['min-replicas-to-write', `${this.#chance.pick([0, 0, 1, 2])}`]],
      [1, ['repl-diskless-sync', this.#chance.pick(['yes', 'no'])]],
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
      [{ type: 'block', node, parts: wait, first: ['INCR', 'n0'] }],
    ]);
  }
}

function withoutPrimary(settings: GivenSettings): GivenSettings {
  const { replicaof: _, ...rest } = settings;
  return rest;
}
