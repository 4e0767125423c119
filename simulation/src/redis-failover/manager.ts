import type { ManagerEvent } from '../../../packages/redis-failover/dist/manager/events.js';
import type { NodeManager } from '../../../packages/redis-failover/dist/manager/node-manager.js';
import type { Random } from '../harness/random.ts';
import { openNodeOf } from './node-link.ts';
import type { Seat } from './process.ts';
import { Process } from './process.ts';
import type { RedisFailoverSimulation } from './simulation.ts';

/** A process that runs the real manager. */
export class ManagerProcess extends Process {
  readonly manager: NodeManager;
  isLeading = false;
  /** The trouble that it has told of since it was elected, if that is not over. */
  trouble: string | undefined;
  readonly #ending = new AbortController();

  constructor(sim: RedisFailoverSimulation, seat: Seat, random: Random) {
    super(sim, seat);
    const { library, redis, world, scenario } = sim;
    const { clock, host } = this;
    this.manager = new library.NodeManager(
      {
        nodes: sim.listOf(seat),
        zookeeper: 'zk:2181',
        id: this.name,
        sessionTimeout: scenario.sessionTimeoutMs,
        checkEvery: scenario.checkEveryMs,
        nodeTimeout: scenario.nodeTimeoutMs,
        maxFailures: scenario.maxFailures,
        clientView: scenario.viewMs,
        rejoin: scenario.rejoin,
        onEvent: (event) => this.#told(event),
      },
      {},
      {
        clock,
        forElection: { clock, random: () => random.next() },
        openNode: openNodeOf({ library, redis, world, host, owner: this }),
        openZooKeeper: (_, { sessionTimeoutMs = 6_000 }) =>
          this.connectZooKeeper(sessionTimeoutMs) as never,
      },
    );
    this.manager.run(this.#ending.signal).catch((error: unknown) => {
      const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
      world.fail('errors', `${this.name}: ${text}`);
    });
  }

  /** TERM. It may take its time, and nothing of it runs after that. */
  stop(): void {
    this.sim.trace.add(this.sim.world.nowMs, this.name, 'is told to end');
    this.#ending.abort();
  }

  #told(event: ManagerEvent): void {
    if (event.type === 'stopped') this.crash();
    if (event.type === 'sight' || event.type === 'zookeeper') return;
    const { trace, coverage } = this.sim;
    if (event.type === 'elected') {
      this.sim.leading = this;
      this.isLeading = true;
    }
    if (event.type === 'ousted') this.isLeading = false;
    if (event.type === 'trouble') {
      this.trouble = event.trouble.message;
      if (this.isLeading) this.sim.troubleSaid(event.trouble.message);
    }
    if (event.type === 'recovered' || event.type === 'elected') this.trouble = undefined;
    trace.add(this.host.presentMs, this.name, event.type, () => describe(event));
    coverage.count(event.type === 'moved' ? `moved: ${event.reason}` : `told: ${event.type}`);
    if (event.type === 'moved') this.sim.guarantees.moved(event);
  }
}

function describe(event: ManagerEvent): string {
  if (event.type === 'trouble') return `${event.trouble.code}: ${event.trouble.message}`;
  if (event.type === 'move-failed') return `${event.reason}: ${event.error.message}`;
  if (event.type === 'step') return `${event.step} ${event.node}`;
  if (event.type === 'primary') return `${event.primary} in term ${event.term}`;
  if (event.type === 'moved')
    return `from ${event.from} to ${event.to} (${event.reason}), term ${event.term}`;
  if (event.type === 'quarantined')
    return `${event.node} beside ${event.primary}: ${event.missing}`;
  if (event.type === 'reconciled') return `${event.node} follows ${event.primary}`;
  if (event.type === 'judged') return `${event.node} ${event.state}`;
  if (event.type === 'ousted') return event.reason;
  return 'node' in event ? event.node : '';
}
