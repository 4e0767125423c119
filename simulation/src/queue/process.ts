import type { Backend, Clock } from 'incumbent';
import type { Host, Owner } from '../harness/host.ts';
import type { Random } from '../harness/random.ts';
import { SimulatedClient } from '../harness/zookeeper/client.ts';
import type { ClientLink } from '../harness/zookeeper/connection.ts';
import type { Operation } from '../harness/zookeeper/tree.ts';
import { Candidacy } from './candidacy.ts';
import type { ProcessPlan } from './scenario.ts';
import type { Contested, QueueSimulation } from './simulation.ts';

/**
 * One process of an application, from its start to its exit or crash: one client, and a candidacy
 * in each election, all on one session.
 */
export class QueueProcess implements Owner {
  readonly name: string;
  readonly number: number;
  readonly host: Host;
  readonly link: ClientLink;
  readonly plan: ProcessPlan;
  readonly client: SimulatedClient;
  readonly requestTimes: number[] = [];
  /** When each write that may still land was made, by the monotonic clock. */
  readonly requestsMadeMs: WeakMap<readonly Operation[], number> = new WeakMap();
  alive = true;
  /** Of each election, once the client is connected. */
  candidacies: readonly Candidacy[] = [];
  closingSinceMs: number | undefined;
  isClosed = false;
  isHealthy = true;
  /** When its client connected or lost its connection last. */
  lastStateMs = 0;
  /** All sessions it has had. */
  readonly sessions: Set<bigint> = new Set();
  readonly #sim: QueueSimulation;
  readonly #random: Random;
  #wantsToJoin = false;

  constructor(
    sim: QueueSimulation,
    host: Host,
    link: ClientLink,
    plan: ProcessPlan,
    random: Random,
  ) {
    this.#sim = sim;
    this.host = host;
    this.link = link;
    this.plan = plan;
    this.#random = random;
    this.number = sim.newNumber();
    this.name = `${host.name}.${this.number}`;
    this.client = new SimulatedClient(
      { world: sim.world, host, owner: this, link },
      sim.ensemble,
      plan.timeoutMs,
      plan.spelling.chroot,
    );
    this.client.onState(() => {
      this.lastStateMs = sim.world.nowMs;
    });
    this.client.onRequest = (request) => {
      if (request.kind === 'write') {
        this.requestsMadeMs.set(request.operations, host.monotonicMs());
      }
      for (const { guarantees } of sim.contests) guarantees.onRequest(this, request);
    };
    // One clock for all its elections: they share their confirmations.
    const clock = host.clockOf(this);
    void this.client.connected().then(() => this.#begin(clock));
  }

  #begin(clock: Clock): void {
    const { scenario } = this.#sim;
    const library = this.#sim.libraryOf(this.number);
    const { plan } = this;
    // Lost again before this code could run.
    if (this.client.state !== 'connected') {
      void this.client.connected().then(() => this.#begin(clock));
      return;
    }
    const backend = library.zookeeper(this.client as never, {
      layout: scenario.layout,
      root: plan.spelling.root,
      tickTime: scenario.ensemble.tickMs,
      recheck: scenario.recheckMs,
      onDisconnect: plan.stepsDown ? 'step-down' : 'hold',
      delayAfterWin: plan.delayAfterWinMs,
      predecessorWait: scenario.waits ? 'belief' : 'off',
      // Some are as all were before there was this option.
      ...(scenario.layout === 'incumbent' && { nameSuccessor: this.number % 4 !== 3 }),
      ...(plan.pollMs === undefined ? {} : { poll: plan.pollMs }),
    }) as Backend<unknown>;
    const handles = Array.from({ length: plan.handles ?? 1 }, (_, index) => index + 1);
    this.candidacies = this.#sim.contests.flatMap((contest) =>
      handles.map(
        (handle) => new Candidacy(this.#sim, contest, this, backend, clock, this.#random, handle),
      ),
    );
    if (this.#wantsToJoin) this.join();
  }

  get isCampaigning(): boolean {
    return this.candidacies.some((candidacy) => candidacy.isCampaigning);
  }

  get isClosing(): boolean {
    return this.closingSinceMs !== undefined && !this.isClosed;
  }

  join(): void {
    this.#wantsToJoin = true;
    for (const candidacy of this.candidacies) candidacy.join();
  }

  withdraw(): void {
    this.#wantsToJoin = false;
    for (const candidacy of this.candidacies) candidacy.withdraw();
  }

  resign(): void {
    for (const candidacy of this.candidacies) candidacy.resign();
  }

  /** Leaves in good order: closes its elections, then its client, and exits. */
  close(exited: () => void): void {
    if (this.closingSinceMs !== undefined || !this.alive) return;
    this.closingSinceMs = this.#sim.world.nowMs;
    this.#wantsToJoin = false;
    void Promise.all(this.candidacies.map((candidacy) => candidacy.close())).then(async () => {
      this.isClosed = true;
      await Promise.all(this.candidacies.map((candidacy) => candidacy.settled()));
      if (!this.#random.chance(0.3)) await this.client.close();
      this.#sim.exit(this);
      exited();
    });
  }

  /** From one moment to the next: nothing of it ever runs again. */
  crash(): void {
    if (!this.alive) return;
    for (const candidacy of this.candidacies) candidacy.crash();
    this.alive = false;
    this.#sim.exit(this);
  }

  candidaciesIn(contest: Contested): readonly Candidacy[] {
    return this.candidacies.filter((candidacy) => candidacy.contest === contest);
  }

  believes(): boolean {
    return this.candidacies.some((candidacy) => candidacy.believes());
  }

  /** The shortest belief of the process, for faults that are to be about as long. */
  get beliefMs(): number {
    return this.candidacies[0]?.timing.beliefMs ?? 0.4 * this.plan.timeoutMs;
  }
}
