import type { DriverConnection } from '../../../packages/redis-failover/dist/client/driver.js';
import type { Router } from '../../../packages/redis-failover/dist/client/router.js';
import type { Random } from '../harness/random.ts';
import type { Reply } from '../redis/reply.ts';
import { NodeSocket } from './nodes.ts';
import type { Seat } from './process.ts';
import { Process } from './process.ts';
import type { RedisFailoverSimulation } from './simulation.ts';

interface Redis {
  set(key: string, value: string): Promise<Reply>;
}

/** An application: writes numbered values through the real router, one after the other. */
export class Writer extends Process {
  readonly #random: Random;
  readonly #router: Router<Redis>;
  #lastNumber = 0;

  constructor(sim: RedisFailoverSimulation, seat: Seat, random: Random) {
    super(sim, seat);
    this.#random = random;
    const { library, scenario } = sim;
    const { clock } = this;
    const zk = this.connectZooKeeper(scenario.sessionTimeoutMs);
    const view = new library.ViewFollower(zk as never, library.pathsBelow(sim.root), clock, {
      rubyViewMs: 9_000,
      safeMode: true,
    });
    const connections = new library.Connections<Redis>(
      {
        name: 'node-redis',
        model: {} as Redis,
        own: new Set(),
        open: ({ host, port }) => this.#drive(`${host}:${port}`),
      },
      {
        connectTimeoutMs: scenario.commandTimeoutMs,
        commandTimeoutMs: scenario.commandTimeoutMs,
        verifyRole: scenario.verifiesRole,
        runIdOf: (reign) => view.runIdOf(reign),
        isGemLeading: async () => {
          // So that seeds without the gem take the course that they had before there was one.
          if (sim.gem === undefined) return false;
          const paths = library.pathsBelow(sim.root);
          return (await library.gemManagers(zk as never, paths).catch(() => [])).length > 0;
        },
        clock,
        timers: clock,
      },
    );
    this.#router = new library.Router(view, connections, {
      maxWaitMs: 10_000,
      reads: 'primary',
      retryAmbiguous: false,
      timers: clock,
    });
    // As RedisFailover does it.
    view.onChange(() => {
      connections.keep(view.picture, view.reign);
      connections.abandon((each) => view.isHopeless(each));
    });
    void this.#work();
  }

  async #work(): Promise<void> {
    for (;;) {
      await this.#write();
      await this.pause(this.#random.exponential(this.sim.scenario.writeEveryMs));
    }
  }

  async #write(): Promise<void> {
    const { library, guarantees, trace, coverage, world } = this.sim;
    this.#lastNumber += 1;
    const key = `${this.host.name}:${this.#lastNumber}`;
    const startedMs = world.nowMs;
    let to = '';
    let term: number | undefined;
    try {
      await this.#router.perform({
        label: 'SET',
        isRead: false,
        use: (connection, reign) => {
          to = connection.address;
          term = reign?.term;
          return connection.run((redis) => redis.set(key, `${this.#lastNumber}`));
        },
        kindOf: (error) => library.kindOf(error, { isPipeline: false, isScript: false }),
        isRefused: () => false,
      });
    } catch (error) {
      const { code = 'none', message } = error as { code?: string; message: string };
      trace.add(this.host.presentMs, this.name, `fails to write: ${code}`, () => message);
      coverage.count(`writes: ${code}`);
      if (code === 'NO_PRIMARY' || code === 'OUTCOME_UNKNOWN') return;
      world.fail('errors', `${this.name}: ${String(error)}`);
      return;
    }
    coverage.count('writes acknowledged');
    if (term === undefined) coverage.count('writes acknowledged without a term');
    guarantees.acknowledged({ key, to, term, startedMs });
  }

  #drive(address: string): DriverConnection<Redis> {
    const { redis, world } = this.sim;
    const socket = new NodeSocket(redis, world, this.host, this);
    return {
      client: { set: (key, value) => socket.send(['SET', key, value]) },
      get isOpen() {
        return socket.isOpen;
      },
      connect: () => socket.connect(address),
      command: (parts) => socket.send(parts),
      close: () => socket.close(),
      onClose: (listener) => {
        socket.onEnd = listener;
      },
    };
  }
}
