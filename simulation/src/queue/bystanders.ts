/** Those who do not campaign: an operator, an observer, and members who are not ours. */
import type { Backend, Election, View } from 'incumbent';
import type { Command } from '../harness/command.ts';
import { describeCommand, perform } from '../harness/command.ts';
import type { Host, Owner } from '../harness/host.ts';
import { outline } from '../harness/view.ts';
import { SimulatedClient } from '../harness/zookeeper/client.ts';
import type { ClientLink } from '../harness/zookeeper/connection.ts';
import type { Operation } from '../harness/zookeeper/tree.ts';
import { nameOf } from '../harness/zookeeper/tree.ts';
import type { Spelling } from './scenario.ts';
import type { Contested, QueueSimulation } from './simulation.ts';

export class Bystander implements Owner {
  readonly name: string;
  readonly alive = true;
  readonly host: Host;
  readonly link: ClientLink;
  readonly client: SimulatedClient;
  protected readonly sim: QueueSimulation;
  readonly #spelling: Spelling;

  constructor(sim: QueueSimulation, host: Host, link: ClientLink, spelling: Spelling) {
    this.sim = sim;
    this.#spelling = spelling;
    this.host = host;
    this.link = link;
    this.name = host.name;
    this.client = new SimulatedClient(
      { world: sim.world, host, owner: this, link },
      sim.ensemble,
      sim.scenario.timeoutMs,
      spelling.chroot,
    );
  }

  /** False before its client was connected, and after its session has expired until the next. */
  get isReady(): boolean {
    return this.client.state !== 'expired' && this.client.session !== undefined;
  }

  /** @param client its own, or the same by another way */
  open(contest: Contested, client: SimulatedClient = this.client): Election<unknown> {
    const { library, world } = this.sim;
    return library.createElection({
      name: contest.name,
      clock: this.host.clockOf(this),
      random: () => world.random.next(),
      onTrouble: () => {},
      backend: this.backend(client),
    });
  }

  protected backend(client: SimulatedClient): Backend<unknown> {
    const { library, scenario } = this.sim;
    return library.zookeeper(client as never, {
      layout: scenario.layout,
      root: this.#spelling.root,
      tickTime: scenario.ensemble.tickMs,
      recheck: scenario.recheckMs,
    }) as Backend<unknown>;
  }
}

/** One request of an operator. */
export class QueueRequest {
  readonly command: Command;
  readonly contest: Contested;
  /** Token of the term that it found first: a later one is not meant. */
  meant: bigint | undefined;
  /** It has asked for something to be written. */
  hasWritten = false;

  constructor(command: Command, contest: Contested) {
    this.command = command;
    this.contest = contest;
  }
}

export class QueueOperator extends Bystander {
  /** Of which request a write is. */
  readonly requests: WeakMap<readonly Operation[], QueueRequest> = new WeakMap();
  #asking: QueueRequest | undefined;

  constructor(sim: QueueSimulation, host: Host, link: ClientLink, spelling: Spelling) {
    super(sim, host, link, spelling);
    this.client.onRequest = (request) => {
      if (request.kind !== 'write' || this.#asking === undefined) return;
      this.requests.set(request.operations, this.#asking);
    };
  }

  ask(contest: Contested, command: Command): void {
    const { world, coverage } = this.sim;
    if (!this.isReady) return;
    const what = describeCommand(command);
    world.trace.add(world.nowMs, this.name, `asks for ${what}`);
    contest.requests.push(what);
    if (what === 'vacate by force') contest.mayRemoveStrangers = true;
    const request = new QueueRequest(command, contest);
    const since = contest.guarantees.records.length;
    const before = contest.guarantees.record;
    perform(this.open(contest, this.#clientOf(request)), command)
      .then(
        ({ changed }) => {
          world.trace.add(
            world.nowMs,
            this.name,
            `${what}: ${changed ? 'recorded' : 'nothing to do'}`,
          );
          if (changed) coverage.count(`operator: ${what}`);
          contest.guarantees.checkGranted(command, before, since);
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

  /** The client as this request sees it: so it is known what it reads first, and what it writes. */
  #clientOf(request: QueueRequest): SimulatedClient {
    const { client } = this;
    const transaction = () => {
      const made = client.transaction();
      const commit = made.commit.bind(made);
      made.commit = (options) => {
        this.#asking = request;
        request.hasWritten = true;
        try {
          return commit(options);
        } finally {
          this.#asking = undefined;
        }
      };
      return made;
    };
    const get: SimulatedClient['get'] = async (path, options) => {
      const content = await client.get(path, options);
      const { contest } = request;
      // Before the node of the record is there, a place is what is read first.
      if (nameOf(path) !== nameOf(contest.path)) return content;
      // A node that is read together with others may be read again before anything follows from it.
      if (this.sim.ground.readsTogether && !request.hasWritten) request.meant = undefined;
      request.meant ??= contest.guarantees.tokenIn(content.data);
      return content;
    };
    return new Proxy(client, {
      get(_, key) {
        if (key === 'transaction') return transaction;
        if (key === 'get') return get;
        const value: unknown = Reflect.get(client, key, client);
        return typeof value === 'function' ? value.bind(client) : value;
      },
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
    const election = this.open(contest);
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
      contest.guarantees.readiness.check(view.token, view.ready === true, this.name);
      if (view.state === 'led' && !contest.guarantees.announcements.has(view.token)) {
        world.fail('observer', `term ${view.token} is seen to lead, no record says so`);
      }
    }
  }

  stop(): void {
    this.#stop.abort();
  }
}
