import type { SeatIdentity } from 'incumbent/backend';
import type { Host } from '../harness/host.ts';
import type { Random } from '../harness/random.ts';
import type { ClientLink } from '../harness/zookeeper/connection.ts';
import type { Operation } from '../harness/zookeeper/tree.ts';
import { Bystander } from './bystanders.ts';
import type { Candidacy } from './candidacy.ts';
import type { Spelling } from './scenario.ts';
import type { QueueSimulation } from './simulation.ts';

/** A death, as a witness has seen it. */
export interface SeenDeath {
  readonly candidacy: Candidacy;
  readonly token: bigint;
  /** It says that the work is dead as well. */
  readonly hasWorkEnded: boolean;
}

/** As the witness of the lease: with a session of its own. */
export class QueueWitness extends Bystander {
  /** For which death a write is. */
  readonly writes: WeakMap<readonly Operation[], SeenDeath> = new WeakMap();
  readonly #random: Random;
  #deaths = 0;

  constructor(
    sim: QueueSimulation,
    host: Host,
    link: ClientLink,
    spelling: Spelling,
    random: Random,
  ) {
    super(sim, host, link, spelling);
    this.#random = random;
    this.client.onRequest = (request) => {
      if (request.kind !== 'write' || this.#asking === undefined) return;
      this.writes.set(request.operations, this.#asking);
    };
  }

  #asking: SeenDeath | undefined;

  /** @param deadAtMs since then nothing of it acts any more, no child either */
  sees(candidacy: Candidacy, seat: SeatIdentity, deadAtMs: number): void {
    const { world, scenario } = this.sim;
    const random = this.#random;
    const told = random.chance(0.1) ? seat.nonces.slice(0, -1) : seat.nonces;
    const hasWorkEnded = random.chance(0.7);
    const afterMs =
      scenario.timeoutMs *
      random.weighted([
        [4, random.next() * 0.05],
        [2, random.next()],
        [1, random.next() * 4],
      ]);
    world.at(Math.max(world.nowMs, deadAtMs) + afterMs, () => {
      if (!this.isReady) return false;
      this.#giveBack(
        { ...seat, nonces: told },
        { candidacy, token: BigInt(seat.token), hasWorkEnded },
      );
      return true;
    });
  }

  #giveBack({ id, incarnation, nonces }: SeatIdentity, death: SeenDeath): void {
    const { world, library, coverage } = this.sim;
    const { token, hasWorkEnded, candidacy } = death;
    const backend = this.backend(this.#clientFor(death));
    this.#deaths += 1;
    const number = this.#deaths;
    let writes = 0;
    const opened = backend.open({
      election: candidacy.contest.name,
      clock: this.host.clockOf(this),
      timing: library.resolveTiming({}, backend.limits),
      random: () => world.random.next(),
      uniqueId: () => {
        writes += 1;
        return `witness ${number} ${writes}`;
      },
      onTrouble: () => {},
    });
    world.trace.add(world.nowMs, this.name, `saw ${candidacy.name} die`);
    const leader = { id, incarnation, token, nonces, hasWorkEnded };
    opened.giveBackFor?.(leader, new AbortController().signal).then(
      (isGivenBack) => {
        if (!isGivenBack) coverage.count('seats that a witness found to be gone');
      },
      () => coverage.count('witnesses whom the store did not answer'),
    );
  }

  /** Its client, by which it is known for which death a transaction is. */
  #clientFor(death: SeenDeath): typeof this.client {
    const { client } = this;
    const transaction = () => {
      const made = client.transaction();
      const commit = made.commit.bind(made);
      made.commit = (options) => {
        this.#asking = death;
        try {
          return commit(options);
        } finally {
          this.#asking = undefined;
        }
      };
      return made;
    };
    return new Proxy(client, {
      get(_, key) {
        if (key === 'transaction') return transaction;
        const value: unknown = Reflect.get(client, key, client);
        return typeof value === 'function' ? value.bind(client) : value;
      },
    });
  }
}
