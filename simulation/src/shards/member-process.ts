import type { Shards, ShardTerm } from '@incumbent/shards';
import type { Host } from '../harness/host.ts';
import type { Random } from '../harness/random.ts';
import type { TermEntry } from './guarantees.ts';
import type { ShardsSimulation } from './simulation.ts';
import type { Client, Link } from './store.ts';
import { leasesOf } from './store.ts';

/** How a process takes part. */
export interface MemberPlan {
  readonly weight: number;
  readonly zone: string | undefined;
}

/** One process with a handle on the shards. Its work has effects, and settles late or early. */
export class MemberProcess implements Client {
  readonly name: string;
  readonly number: number;
  readonly host: Host;
  readonly link: Link;
  readonly plan: MemberPlan;
  readonly shards: Pick<Shards, 'owned' | 'joined' | 'drain' | 'close'>;
  /** By the number of a shard. */
  readonly term: (shard: number) => ShardTerm | undefined;
  alive = true;
  isLeaving = false;
  hasLeft = false;
  /** It is killed when so many of its swaps have arrived. */
  swapsUntilDeath: number = Number.POSITIVE_INFINITY;
  /** Works that run, whatever their belief. */
  running = 0;
  readonly #sim: ShardsSimulation;
  readonly #random: Random;

  constructor(
    sim: ShardsSimulation,
    host: Host,
    link: Link,
    plan: MemberPlan,
    number: number,
    random: Random,
  ) {
    this.#sim = sim;
    this.host = host;
    this.link = link;
    this.plan = plan;
    this.number = number;
    this.#random = random;
    this.name = `${host.name}.${number}`;
    const { library, world, server, scenario } = sim;
    const { weight, zone } = plan;
    const leases = leasesOf(library, world, server, scenario.store, this, (dead) =>
      sim.isDead(dead),
    );
    const common = {
      name: 'set',
      backend: library.leaseBackend({
        kind: 'simulated',
        description: 'the simulated store',
        openStore: leases.open,
        leases,
        guard: () => undefined,
      }),
      candidate: { id: host.name },
      weight,
      ...(zone === undefined ? {} : { zone }),
      maxMoving: scenario.maxMoving,
      lease: scenario.leaseMs,
      clockDrift: scenario.drift,
      stopTimeout: scenario.stopTimeoutMs,
      onUnclean: async () => {
        sim.coverage.count('hooks run');
        await this.#sleep(this.#random.next() * 0.1 * scenario.leaseMs);
        if (!sim.isQuiet && this.#random.chance(0.1)) throw new Error('a hook failed');
      },
      clock: host.clockOf(this),
      random: () => this.#random.next(),
      onTrouble: () => {},
    };
    if (scenario.isNamed) {
      const shards = library.createShards({
        ...common,
        shards: () => this.#list(),
        own: (name, term) => this.#work(Number(name.slice(1)), term),
      });
      this.shards = shards;
      this.term = (shard) => shards.term(`s${shard}`);
    } else {
      const shards = library.createShards({
        ...common,
        shards: scenario.shards,
        own: (shard, term) => this.#work(shard, term),
      });
      this.shards = shards;
      this.term = (shard) => shards.term(shard);
    }
    this.shards.joined.then(
      () => sim.coverage.count('joined'),
      () => {},
    );
  }

  onSwapped(): void {
    this.swapsUntilDeath -= 1;
    if (this.swapsUntilDeath > 0) return;
    this.swapsUntilDeath = Number.POSITIVE_INFINITY;
    this.#sim.coverage.count('killed right after a write');
    this.#sim.kill(this);
  }

  leave(how: 'drain' | 'close'): void {
    if (this.isLeaving) return;
    this.isLeaving = true;
    this.#sim.coverage.count(`leaves: ${how}`);
    const left = how === 'drain' ? this.shards.drain() : this.shards.close();
    void left.then(() => this.#sim.left(this));
  }

  /** The list, as a database tells it. */
  async #list(): Promise<readonly string[]> {
    const sim = this.#sim;
    sim.coverage.count('lists told');
    const names = [...sim.listed].map((shard) => `s${shard}`);
    await this.#sleep(this.#random.next() * 0.1 * sim.scenario.leaseMs);
    if (!sim.isQuiet && this.#random.chance(0.1)) throw new Error('the list cannot be told');
    return names;
  }

  async #work(shard: number, term: ShardTerm): Promise<void> {
    const sim = this.#sim;
    const { leaseMs } = sim.scenario;
    const entry: TermEntry = { process: this, shard, term };
    sim.guarantees.onBegin(entry);
    sim.trace.add(sim.world.nowMs, this.name, 'begins', () => `shard ${shard}, ${term.token}`);
    this.running += 1;
    const returnsEarly = !sim.isQuiet && this.#random.chance(0.05);
    const isDeaf = !sim.isQuiet && this.#random.chance(0.05);
    try {
      for (let steps = 0; ; steps += 1) {
        await this.#sleep((0.02 + this.#random.next() * 0.3) * leaseMs, term.signal);
        if (term.isLeading()) {
          term.assertLeading();
          sim.guarantees.onEffect(entry);
        }
        if (term.signal.aborted) break;
        if (!returnsEarly || steps < 2 || sim.isQuiet) continue;
        sim.coverage.count('works that return early');
        if (this.#random.chance(0.5)) throw new Error('the work failed');
        return;
      }
      const settleMs = this.#random.next() * (isDeaf ? 2 : 0.1) * leaseMs;
      for (let leftMs = settleMs; leftMs > 0; leftMs -= 0.1 * leaseMs) {
        await this.#sleep(Math.min(leftMs, 0.1 * leaseMs));
        if (!term.isLeading()) continue;
        term.assertLeading();
        sim.guarantees.onEffect(entry);
      }
    } finally {
      this.running -= 1;
      sim.settled(entry);
      sim.trace.add(sim.world.nowMs, this.name, 'settles', () => `shard ${shard}, ${term.token}`);
    }
  }

  #sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.host.setTimer(this, resolve, ms);
      signal?.addEventListener('abort', () => {
        timer.cancel();
        resolve();
      });
    });
  }
}
