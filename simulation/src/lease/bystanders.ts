/** Those who do not campaign: an operator who asks for things, and an observer who watches. */
import type { AdminResult, Election, Timing, View } from 'incumbent';
import type { Command } from '../harness/command.ts';
import { describeCommand, perform } from '../harness/command.ts';
import type { Host } from '../harness/host.ts';
import { outline } from '../harness/view.ts';
import type { Client, Link } from './network.ts';
import { storeOf } from './network.ts';
import type { LeaseSimulation } from './simulation.ts';

abstract class Bystander implements Client {
  readonly name: string;
  readonly number: number;
  readonly host: Host;
  readonly link: Link;
  readonly alive = true;
  readonly sim: LeaseSimulation;
  protected readonly election: Election<bigint>;

  constructor(
    sim: LeaseSimulation,
    host: Host,
    link: Link,
    leaseMs: number,
    number: number = sim.newNumber(),
  ) {
    this.sim = sim;
    this.host = host;
    this.link = link;
    this.number = number;
    this.name = host.name;
    const { library } = sim;
    this.election = library.createElection({
      name: 'seat',
      lease: leaseMs,
      clock: host.clockOf(this),
      random: () => sim.world.random.next(),
      onTrouble: () => {},
      backend: library.leaseBackend({
        kind: 'simulated',
        description: 'the simulated store',
        openStore: () => storeOf(sim, this),
        guard: (_scope, _store, token) => token,
      }),
    });
  }
}

/** One request of an operator, by a handle of its own: so it is known which writes are its. */
export class Request extends Bystander {
  readonly command: Command;
  /** The term that it found first: a later one is not meant. */
  meant: bigint | undefined;

  constructor(operator: Operator, command: Command) {
    super(operator.sim, operator.host, operator.link, operatorLeaseMs, operator.number);
    this.command = command;
  }

  make(): Promise<AdminResult> {
    return perform(this.election, this.command);
  }
}

/** An operator's own lease is nobody else's business: it may be far shorter than theirs. */
const operatorLeaseMs = 1_000;

/** Asks for things; how often in vain is nobody's concern. */
export class Operator extends Bystander {
  get timing(): Timing {
    return this.election.timing;
  }

  constructor(sim: LeaseSimulation, host: Host, link: Link) {
    super(sim, host, link, operatorLeaseMs);
  }

  ask(command: Command): void {
    const { world, coverage, guarantees } = this.sim;
    const what = describeCommand(command);
    world.trace.add(world.nowMs, this.name, `asks for ${what}`);
    const request = new Request(this, command);
    const since = this.sim.server.current.version;
    request.make().then(
      ({ changed }) => {
        world.trace.add(
          world.nowMs,
          this.name,
          `${what}: ${changed ? 'recorded' : 'nothing to do'}`,
        );
        if (changed) coverage.count(`operator: ${what}`);
        guarantees.checkGranted(command, since);
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
      this.sim.guarantees.readiness.check(view.token, view.ready === true, this.name);
      if (view.state === 'led' && !this.sim.guarantees.announced.has(view.token)) {
        world.fail('observer', `term ${view.token} is seen to lead, no record says so`);
      }
    }
  }

  stop(): void {
    this.#stop.abort();
  }
}
