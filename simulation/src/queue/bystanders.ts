/** Those who do not campaign: an operator, an observer, and members who are not ours. */
import type { AdminResult, Backend, Election, View } from 'incumbent';
import type { Host, Owner } from '../host.ts';
import { SimulatedClient } from './client.ts';
import type { ClientLink } from './connection.ts';
import type { Contested, QueueSimulation } from './simulation.ts';

class Bystander implements Owner {
  readonly name: string;
  readonly alive = true;
  readonly host: Host;
  readonly link: ClientLink;
  readonly client: SimulatedClient;
  protected readonly sim: QueueSimulation;
  #elections: Map<Contested, Election<unknown>> | undefined;

  constructor(sim: QueueSimulation, host: Host, link: ClientLink, timeoutMs: number) {
    this.sim = sim;
    this.host = host;
    this.link = link;
    this.name = host.name;
    this.client = new SimulatedClient(
      { world: sim.world, host, owner: this, link },
      sim.ensemble,
      timeoutMs,
    );
  }

  /** Undefined before its client was connected for the first time. */
  election(contest: Contested): Election<unknown> | undefined {
    if (this.#elections === undefined && this.client.state !== 'connected') return undefined;
    this.#elections ??= this.#open();
    return this.#elections.get(contest);
  }

  #open(): Map<Contested, Election<unknown>> {
    const { library, scenario, world, contests } = this.sim;
    const backend = library.zookeeper(this.client as never, {
      layout: scenario.layout,
      root: '/incumbent',
      tickTime: scenario.ensemble.tickMs,
      recheck: scenario.recheckMs,
    }) as Backend<unknown>;
    const clock = this.host.clockOf(this);
    return new Map(
      contests.map((contest) => [
        contest,
        library.createElection({
          name: contest.name,
          clock,
          random: () => world.random.next(),
          backend,
        }),
      ]),
    );
  }
}

export class QueueOperator extends Bystander {
  ask(
    contest: Contested,
    what: string,
    request: (election: Election<unknown>) => Promise<AdminResult>,
  ): void {
    const { world, coverage } = this.sim;
    const election = this.election(contest);
    if (election === undefined) return;
    world.trace.add(world.nowMs, this.name, `asks for ${what}`);
    contest.requests.push(what);
    if (what === 'vacate by force') contest.mayRemoveStrangers = true;
    request(election)
      .then(
        ({ changed }) => {
          world.trace.add(
            world.nowMs,
            this.name,
            `${what}: ${changed ? 'recorded' : 'nothing to do'}`,
          );
          if (changed) coverage.count(`operator: ${what}`);
        },
        (error: unknown) => {
          const expected = ['REFUSED', 'OPERATION_TIMEOUT', 'STORE_UNAVAILABLE'];
          const code = error instanceof Error && 'code' in error ? String(error.code) : '';
          if (code === 'REFUSED') coverage.count('operators refused');
          if (!expected.includes(code)) {
            world.fail('errors', `the operator's ${what}: ${String(error)}`);
          }
        },
      )
      .finally(() => {
        contest.requests.splice(contest.requests.indexOf(what), 1);
      });
  }
}

export class QueueObserver extends Bystander {
  readonly last: Map<Contested, View> = new Map();
  readonly #stop = new AbortController();

  async watch(): Promise<void> {
    await this.client.connected();
    await Promise.all(this.sim.contests.map((contest) => this.#watch(contest)));
  }

  async #watch(contest: Contested): Promise<void> {
    const { world, coverage, scenario } = this.sim;
    const election = this.election(contest);
    if (election === undefined) return;
    let highest = 0n;
    for await (const view of election.observe({ signal: this.#stop.signal })) {
      world.trace.add(world.nowMs, this.name, `sees ${view.state} ${view.token ?? ''}`);
      coverage.count('views seen by observers');
      const before = this.last.get(contest);
      if (before !== undefined && outline(before) === outline(view)) {
        world.fail('observer', `the view "${outline(view)}" twice in a row`);
      }
      this.last.set(contest, view);
      if (view.token === undefined || scenario.strangers) continue;
      if (view.token < highest) {
        world.fail('observer', `token ${view.token} after ${highest}`);
      }
      highest = view.token;
      if (view.state === 'led' && !contest.guarantees.announcements.has(view.token)) {
        world.fail('observer', `term ${view.token} is seen to lead, no record says so`);
      }
    }
  }

  stop(): void {
    this.#stop.abort();
  }
}

function outline({ state, token, leader }: View): string {
  const who = leader === undefined ? '' : `${leader.id} ${leader.incarnation}`;
  return `${state} ${token ?? ''} ${who} ${leader?.addresses.join() ?? ''} ${JSON.stringify(leader?.metadata ?? {})}`;
}
