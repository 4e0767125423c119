import type { Clock } from 'incumbent';
import type { Host, Owner } from '../harness/host.ts';
import { SimulatedClient } from '../harness/zookeeper/client.ts';
import type { ClientLink } from '../harness/zookeeper/connection.ts';
import type { NodeSocket } from './nodes.ts';
import type { RedisFailoverSimulation } from './simulation.ts';
import { ZooKeeperFace } from './zookeeper.ts';

/** A machine on which a manager or an application runs, or none at the moment. */
export interface Seat {
  readonly host: Host;
  readonly link: ClientLink;
  process: Process | undefined;
}

/** One process, from its start to its end: nothing of it runs after that. */
export abstract class Process implements Owner {
  readonly name: string;
  readonly host: Host;
  readonly sockets: Set<NodeSocket> = new Set();
  alive = true;
  protected readonly sim: RedisFailoverSimulation;
  protected readonly clock: Clock;
  readonly #link: ClientLink;

  constructor(sim: RedisFailoverSimulation, seat: Seat) {
    this.sim = sim;
    this.host = seat.host;
    this.#link = seat.link;
    this.name = `${seat.host.name}.${sim.newNumber()}`;
    this.clock = seat.host.clockOf(this);
  }

  protected connectZooKeeper(timeoutMs: number): ZooKeeperFace {
    const { world, ensemble, library } = this.sim;
    const who = { world, host: this.host, owner: this, link: this.#link };
    const client = new SimulatedClient(who, ensemble, timeoutMs);
    return new ZooKeeperFace(client, library, this.clock, this);
  }

  /** From one moment to the next. Its machine closes what it had open. */
  crash(): void {
    if (!this.alive) return;
    this.alive = false;
    for (const socket of [...this.sockets]) socket.abandon();
    this.sim.trace.add(this.sim.world.nowMs, this.name, 'crashes');
  }

  /** A wait of the application, on its host's clock. */
  protected pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.host.setTimer(this, resolve, ms);
    });
  }
}
