import type { SeatIdentity } from 'incumbent/backend';
import type { Host } from '../harness/host.ts';
import type { Random } from '../harness/random.ts';
import type { CandidateProcess } from './candidate.ts';
import type { Client, Link } from './network.ts';
import { storeOf } from './network.ts';
import type { LeaseSimulation } from './simulation.ts';

/** A death, as a witness has seen it. */
export interface Death {
  readonly process: CandidateProcess;
  readonly token: bigint;
  /** It says that the work is dead as well. */
  readonly hasWorkEnded: boolean;
}

/**
 * Sees processes die, and gives their seats back at any later moment, while requests of the dead
 * still land. It is the guard of `incumbent run`, and what that starts.
 */
export class WitnessHost {
  readonly #sim: LeaseSimulation;
  readonly #host: Host;
  readonly #link: Link;
  readonly #random: Random;

  constructor(sim: LeaseSimulation, host: Host, link: Link, random: Random) {
    this.#sim = sim;
    this.#host = host;
    this.#link = link;
    this.#random = random;
  }

  /** @param deadAtMs since then nothing of it acts any more, no child either */
  sees(process: CandidateProcess, seat: SeatIdentity, deadAtMs: number): void {
    const { world, scenario } = this.#sim;
    const random = this.#random;
    // The last that it was told may still have been under way.
    const told = random.chance(0.1) ? seat.nonces.slice(0, -1) : seat.nonces;
    const hasWorkEnded = random.chance(0.7);
    const afterMs =
      scenario.leaseMs *
      random.weighted([
        [4, random.next() * 0.05],
        [2, random.next()],
        [1, random.next() * 4],
      ]);
    world.at(Math.max(world.nowMs, deadAtMs) + afterMs, () => {
      // On its way for so long that a successor may come before it, or a renewal of the dead.
      if (random.chance(0.4)) {
        const requestMs = scenario.leaseMs * random.next();
        this.#link.armed.push({ kind: 'swap', fate: { requestMs } });
      }
      const death = { process, token: BigInt(seat.token), hasWorkEnded };
      new Witness(this.#sim, this.#host, this.#link, death).giveBack({ ...seat, nonces: told });
      return true;
    });
  }
}

export class Witness implements Client {
  readonly name: string;
  /** No process acts for it. */
  readonly number: number = 0;
  readonly host: Host;
  readonly link: Link;
  readonly alive = true;
  readonly death: Death;
  readonly #sim: LeaseSimulation;

  constructor(sim: LeaseSimulation, host: Host, link: Link, death: Death) {
    this.#sim = sim;
    this.host = host;
    this.link = link;
    this.name = host.name;
    this.death = death;
  }

  giveBack(seat: SeatIdentity): void {
    const { world, library, coverage, scenario } = this.#sim;
    const backend = library.leaseBackend({
      kind: 'simulated',
      description: 'the simulated store',
      openStore: () => storeOf(this.#sim, this),
      guard: (_scope, _store, token) => token,
    });
    let nonces = 0;
    const opened = backend.open({
      election: 'seat',
      clock: this.host.clockOf(this),
      timing: library.resolveTiming({ lease: scenario.leaseMs }),
      random: () => world.random.next(),
      uniqueId: () => {
        nonces += 1;
        return `witness ${this.death.process.name} ${seat.token} ${nonces}`;
      },
      onTrouble: () => {},
    });
    const { id, incarnation } = seat;
    const { token, hasWorkEnded } = this.death;
    const leader = { id, incarnation, token, nonces: seat.nonces, hasWorkEnded };
    world.trace.add(world.nowMs, this.name, `saw ${this.death.process.name} die`);
    opened.giveBackFor?.(leader, new AbortController().signal).then(
      (isGivenBack) => {
        if (!isGivenBack) coverage.count('seats that a witness found to be gone');
      },
      () => coverage.count('witnesses whom the store did not answer'),
    );
  }
}
