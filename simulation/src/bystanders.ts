/** Those who do not campaign: an operator who asks for things, and an observer who watches. */
import type { AdminResult, Election, View } from 'incumbent';
import type { Host } from './host.ts';
import type { Client, Link } from './network.ts';
import { storeOf } from './network.ts';
import type { Simulation } from './simulation.ts';

abstract class Bystander implements Client {
  readonly name: string;
  readonly number: number;
  readonly host: Host;
  readonly link: Link;
  readonly alive = true;
  protected readonly sim: Simulation;
  protected readonly election: Election<bigint>;

  constructor(sim: Simulation, host: Host, link: Link, leaseMs: number) {
    this.sim = sim;
    this.host = host;
    this.link = link;
    this.number = sim.newNumber();
    this.name = host.name;
    const { library } = sim;
    this.election = library.createElection({
      name: 'seat',
      lease: leaseMs,
      clock: host.clockOf(this),
      random: () => sim.world.random.next(),
      backend: library.leaseBackend({
        kind: 'simulated',
        description: 'the simulated store',
        openStore: () => storeOf(sim, this),
        guard: (_scope, _store, token) => token,
      }),
    });
  }
}

/** What an operator may do, and how often it was attempted in vain is nobody's concern. */
export class Operator extends Bystander {
  ask(what: string, request: (election: Election<bigint>) => Promise<AdminResult>): void {
    const { world, coverage } = this.sim;
    world.trace.add(world.nowMs, this.name, `asks for ${what}`);
    request(this.election).then(
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
        const name = error instanceof Error ? error.name : '';
        if (!expected.includes(code) && name !== 'StoreTrouble') {
          world.fail('errors', `the operator's ${what}: ${String(error)}`);
        }
      },
    );
  }
}

export class Observer extends Bystander {
  last: View | undefined;
  readonly #stop = new AbortController();

  async watch(): Promise<void> {
    const { world, coverage, scenario } = this.sim;
    let highest = 0n;
    for await (const view of this.election.observe({ signal: this.#stop.signal })) {
      world.trace.add(world.nowMs, this.name, `sees ${view.state} ${view.token ?? ''}`);
      coverage.count('views seen by observers');
      if (this.last !== undefined && outline(this.last) === outline(view)) {
        world.fail('observer', `the view "${outline(view)}" twice in a row`);
      }
      this.last = view;
      if (view.token === undefined || scenario.meddles) continue;
      if (view.token < highest) {
        world.fail('observer', `token ${view.token} after ${highest}`);
      }
      highest = view.token;
      if (view.state === 'led' && !this.sim.guarantees.announced.has(view.token)) {
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
