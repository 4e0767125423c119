/**
 * One seed of the queue. Hosts, an ensemble of ZooKeeper servers, candidates that run the real
 * library with its real backend, and a plan of faults. It ends with the first violation, or after
 * faults have stopped, somebody has led undisturbed, and everybody has left in good order.
 */
import { Coverage } from '../harness/coverage.ts';
import { Host, perfectClock } from '../harness/host.ts';
import type { Library } from '../harness/library.ts';
import type { Simulation } from '../harness/mechanism.ts';
import { Random } from '../harness/random.ts';
import { Resource } from '../harness/resource.ts';
import { Trace } from '../harness/trace.ts';
import { World } from '../harness/world.ts';
import { ClientLink } from '../harness/zookeeper/connection.ts';
import { Ensemble } from '../harness/zookeeper/ensemble.ts';
import type { Node, Operation } from '../harness/zookeeper/tree.ts';
import { emptyNode, nameOf } from '../harness/zookeeper/tree.ts';
import { QueueObserver, QueueOperator } from './bystanders.ts';
import { longestIgnorance } from './candidacy.ts';
import { QueueChaos } from './chaos.ts';
import type { Ground } from './ground.ts';
import type { QueueGuarantees, TermEntry } from './guarantees.ts';
import { describeRecord } from './guarantees.ts';
import { QueueProcess } from './process.ts';
import type { ProcessPlan, QueueScenario } from './scenario.ts';
import { QueueWitness } from './witness.ts';

/** A host, what runs on it now, and what will run on it again. */
export interface Seat {
  readonly host: Host;
  readonly link: ClientLink;
  readonly plan: ProcessPlan;
  process: QueueProcess | undefined;
}

/** One election, and what is checked of it. */
export interface Contested {
  readonly name: string;
  /** The node with its record. */
  readonly path: string;
  readonly guarantees: QueueGuarantees;
  readonly resource: Resource;
  /** The requests of operators that are under way. */
  readonly requests: string[];
  /** An operator has forced a leader out, whoever that was. */
  mayRemoveStrangers: boolean;
}

export class QueueSimulation implements Simulation {
  readonly ground: Ground;
  readonly library: Library;
  readonly scenario: QueueScenario;
  readonly trace: Trace;
  readonly world: World;
  readonly ensemble: Ensemble;
  readonly coverage: Coverage = new Coverage();
  readonly contests: readonly Contested[];
  readonly seats: Seat[] = [];
  /** Those that live. */
  readonly processes: Set<QueueProcess> = new Set();
  readonly operator: QueueOperator;
  readonly observer: QueueObserver | undefined;
  readonly witness: QueueWitness | undefined;
  /** Told of the next announcement, once. */
  onAnnounced: ((place: string) => void) | undefined;
  /** Faults are over. */
  isQuiet = false;
  quietSinceMs = 0;
  readonly #beside: Library | undefined;
  readonly #random: Random;
  readonly #owners = new Map<string, QueueProcess>();
  readonly #sessions = new Map<bigint, QueueProcess>();
  readonly #links: ClientLink[] = [];
  #operations: readonly Operation[] = [];
  #expiring: bigint | undefined;
  #isEnding = false;
  #lastNumber = 0;
  #readyStreams = 0;

  /** @param beside another version, of which every second process is */
  constructor(ground: Ground, library: Library, seed: number, readable: boolean, beside?: Library) {
    this.ground = ground;
    this.library = library;
    this.#beside = beside;
    this.scenario = ground.drawScenario(seed);
    const { scenario } = this;
    this.#random = new Random(seed, 11);
    this.trace = new Trace(readable);
    this.world = new World(new Random(seed, 12), this.trace);
    const { world } = this;
    this.contests = scenario.elections.map((name) => this.#contest(name));
    this.ensemble = new Ensemble(world, new Random(seed, 13), scenario.ensemble);
    this.#prepareTree();
    this.#listen();
    world.check = () => {
      for (const { guarantees } of this.contests) guarantees.check();
    };
    for (const [index, plan] of scenario.hosts.entries()) {
      const stream = 100 * (index + 1) + 50;
      const host = new Host(world, `n${index + 1}`, plan.clock, new Random(seed, stream));
      this.seats.push({
        host,
        link: this.#link(stream + 1),
        plan: plan.process,
        process: undefined,
      });
    }
    const host = (name: string, stream: number) =>
      new Host(world, name, perfectClock, new Random(seed, stream));
    const { operator, observer } = scenario.spellings;
    this.operator = new QueueOperator(this, host('op', 31), this.#link(32), operator);
    if (scenario.observes) {
      this.observer = new QueueObserver(this, host('eye', 33), this.#link(34), observer);
    }
    if (scenario.witnesses) {
      const random = new Random(seed, 37);
      this.witness = new QueueWitness(this, host('wit', 35), this.#link(36), operator, random);
    }
  }

  #contest(name: string): Contested {
    const contest = {
      name,
      path: this.ground.recordOf(`${this.scenario.parent}/${name}`),
      resource: new Resource(this.world, this.coverage),
      requests: [],
      mayRemoveStrangers: false,
    };
    const guarantees = this.ground.guarantees(this, contest as unknown as Contested);
    return Object.assign(contest, { guarantees });
  }

  #link(stream: number): ClientLink {
    const link = new ClientLink(this.scenario.link, new Random(this.scenario.seed, stream));
    this.#links.push(link);
    return link;
  }

  /** Often the nodes are there, with numbers that others have used up. */
  #prepareTree(): void {
    const { ensemble, scenario } = this;
    const isNew = this.#random.chance(0.2);
    const parents = pathsTo(scenario.parent);
    // The chroot of a client has to be there.
    if (isNew && parents.length === 1) return;
    const zxid = ensemble.nextZxid;
    const node = (children: readonly string[], sequence = 0) => ({
      ...emptyNode(zxid, 0n, null),
      children,
      sequence,
    });
    const changes = new Map(
      ['/', ...parents].map((path, index) => {
        const child = parents[index];
        return [path, node(child === undefined ? [] : [nameOf(child)])];
      }),
    );
    if (!isNew) {
      changes.set(scenario.parent, node(this.contests.map(({ path }) => nameOf(path))));
      for (const { path } of this.contests) changes.set(path, node([], scenario.firstNumber));
    }
    ensemble.commit({ zxid, changes, events: [] }, 0n);
  }

  #listen(): void {
    const { ensemble, coverage, world } = this;
    ensemble.onOperations = (operations, session, results) => {
      this.#operations = operations;
      const process = this.processOf(session);
      if (process === undefined) return;
      for (const { type, path, node } of results) {
        if (type !== 'create' || node?.owner !== session) continue;
        this.#owners.set(this.ground.placeOf(path, node), process);
      }
    };
    ensemble.onExpired = (session) => {
      this.#expiring = session;
      world.trace.add(
        world.nowMs,
        'zk',
        'expires a session',
        () => `${session} of ${ensemble.clients.get(session)}`,
      );
    };
    ensemble.onCommit = (transaction, session) => {
      const operations = this.#operations;
      this.#operations = [];
      const isExpiry = this.#expiring === transaction.ends && transaction.ends !== undefined;
      this.#expiring = undefined;
      if (transaction.begins !== undefined) this.#onSession(transaction.begins);
      this.#noteLateWrite(operations, session);
      const why = isExpiry ? 'expired' : session === 0n ? 'by hand' : 'own';
      for (const { guarantees } of this.contests) {
        guarantees.onCommit(transaction, session, operations, why);
      }
    };
    ensemble.onElected = () => {
      coverage.count('elections inside the ensemble');
      world.trace.add(world.nowMs, 'zk', `is led by ${ensemble.leadership.server.name}`);
    };
    ensemble.onRefusedMoved = () => coverage.count('requests of a moved session refused');
  }

  #noteLateWrite(operations: readonly Operation[], session: bigint): void {
    const process = this.processOf(session);
    if (process === undefined || process.alive || operations.length === 0) return;
    const isReplaced = this.seats.some(
      (seat) => seat.host === process.host && seat.process !== undefined,
    );
    if (!isReplaced) return;
    this.coverage.count('writes of the dead that landed after their successor began');
  }

  #onSession(session: bigint): void {
    const name = this.ensemble.clients.get(session);
    for (const process of this.processes) {
      if (process.name !== name) continue;
      this.#sessions.set(session, process);
      process.sessions.add(session);
    }
  }

  async run(): Promise<void> {
    const watching = this.observer?.watch();
    for (const seat of this.seats) {
      this.world.at(this.#random.next() * 0.3 * this.scenario.timeoutMs, () => {
        this.start(seat);
        return true;
      });
    }
    await this.#endure();
    for (const contest of this.contests) await this.#expectLeader(contest);
    await this.#expectOrderlyEnd();
    this.observer?.stop();
    if (this.world.violation === undefined) await watching;
  }

  /** The number of the stream from which a candidacy draws its readiness. */
  nextReadyStream(): number {
    this.#readyStreams += 1;
    return this.#readyStreams;
  }

  // --- the phases ---

  async #endure(): Promise<void> {
    const chaos = new QueueChaos(this, new Random(this.scenario.seed, 14));
    chaos.begin();
    await this.world.run(this.scenario.chaosMs);
    if (this.world.violation !== undefined) return;
    chaos.end();
    for (const link of this.#links) link.heal();
    this.isQuiet = true;
    this.quietSinceMs = Math.max(
      this.world.nowMs,
      ...this.seats.map(({ host }) => host.pausedUntilMs),
    );
    this.trace.add(this.world.nowMs, '-', 'faults stop');
    await this.world.run(this.quietSinceMs);
    // The operator's orders to processes are undone; everybody takes part.
    for (const seat of this.seats) {
      if (seat.process === undefined) this.start(seat);
      else {
        seat.process.isHealthy = true;
        seat.process.join();
      }
    }
    this.#restoreOrder();
  }

  /**
   * L. Every duration is stretched by the slowest clock, 1/(1 − ρ). The servers have to find each
   * other, and sessions without a process have to expire. Each of those before the leader may have
   * to wait a belief out and run its hooks in vain. Candidates may be pausing, and their work deaf.
   */
  #leaderBoundMs(): number {
    const { timeoutMs, drift, ensemble } = this.scenario;
    const { tickMs, syncLimit } = ensemble;
    const stretch = (1 + drift) / (1 - drift);
    let bound = 0;
    for (const { plan, process } of this.seats) {
      const timing = process?.candidacies[0]?.timing;
      const beliefMs = timing?.beliefMs ?? plan.timeoutMs;
      const stoppingMs = (timing?.stopTimeoutMs ?? 2 * plan.timeoutMs) + beliefMs;
      const operationsMs = 20 * (timing?.operationTimeoutMs ?? 0.25 * plan.timeoutMs);
      const hooksMs = 20 * plan.hooks * 0.3 * plan.timeoutMs;
      const winningMs = beliefMs * stretch + plan.takeoverDelayMs + plan.delayAfterWinMs + hooksMs;
      const pollMs = plan.pollMs ?? 0;
      const standingAsideMs = pollMs === 0 ? 1_000 : 1_000 + 1.1 * pollMs + 0.05 * operationsMs;
      // After hooks that failed, for a lease at the most.
      const failedMs = plan.hooks > 0 ? timeoutMs : 0;
      const pausingMs = 2 * (standingAsideMs + pollMs) + timeoutMs + failedMs;
      const health = plan.health ? 4 * (timing?.renewEveryMs ?? timeoutMs) : 0;
      bound = Math.max(bound, stoppingMs + operationsMs + 2 * winningMs + pausingMs + health);
    }
    const serversMs = (syncLimit + 6) * tickMs;
    const sessionsMs = 2 * timeoutMs + 2 * tickMs;
    // Work and hooks that do not heed their signal keep their candidate from campaigning.
    return (bound + serversMs + sessionsMs + longestIgnorance * timeoutMs) / (1 - drift);
  }

  async #expectLeader(contest: Contested): Promise<void> {
    const { world, scenario } = this;
    if (world.violation !== undefined) return;
    const boundMs = this.#leaderBoundMs();
    const untilMs = Math.max(this.quietSinceMs + boundMs, world.nowMs + scenario.timeoutMs);
    const leader = () => {
      world.looking = true;
      const found = [...contest.guarantees.terms].find((entry) => isSafelyLeading(entry));
      world.looking = false;
      return found;
    };
    for (;;) {
      await world.run(untilMs, () => leader() !== undefined);
      if (world.violation !== undefined) return;
      const entry = leader();
      if (entry === undefined) {
        const places = contest.guarantees
          .places()
          .map((place) => this.ownerOf(place)?.name ?? 'a stranger');
        world.fail(
          'leader',
          `election ${contest.name}: nobody leads ${boundMs.toFixed(0)} ms after faults stopped; ` +
            `in the queue: ${places.join(', ')}; the record: ` +
            describeRecord(contest.guarantees.record),
        );
        return;
      }
      await world.run(world.nowMs + 1.2 * scenario.timeoutMs, () => entry.term.signal.aborted);
      if (world.violation !== undefined || !entry.term.signal.aborted) return;
      // Faults of before may still end a belief or a session, and some ends are chosen by somebody.
      const disturbedMs =
        (2 * scenario.timeoutMs + (scenario.ensemble.syncLimit + 6) * scenario.ensemble.tickMs) /
        (1 - scenario.drift);
      if (this.#isChosen(entry) || world.nowMs < this.quietSinceMs + disturbedMs) continue;
      world.fail(
        'keeping',
        `term ${entry.token} of ${entry.candidacy.name} ended undisturbed: ` +
          String(entry.term.signal.reason),
      );
      return;
    }
  }

  /** An end that somebody chose is no failure to keep a term. */
  #isChosen(entry: TermEntry): boolean {
    const reason: unknown = entry.term.signal.reason;
    const why = reason instanceof Error && 'reason' in reason ? String(reason.reason) : '';
    return ![
      'renewal-failed',
      'stalled',
      'superseded',
      'record-gone',
      'session-expired',
      'disconnected',
    ].includes(why);
  }

  async #expectOrderlyEnd(): Promise<void> {
    const { world } = this;
    if (world.violation !== undefined) return;
    if (this.observer !== undefined) this.#checkObserver(this.observer);
    const { timeoutMs, drift } = this.scenario;
    this.#isEnding = true;
    const leaving = this.seats.map(({ process }) => process).filter((each) => each !== undefined);
    for (const process of leaving) {
      if (this.#random.chance(0.5)) process.withdraw();
      else process.close(() => {});
    }
    const timeouts = Math.max(
      ...leaving.map(({ candidacies, plan }) =>
        Math.max(plan.timeoutMs / 4, ...candidacies.map(({ timing }) => timing.operationTimeoutMs)),
      ),
    );
    const boundMs = (longestIgnorance * timeoutMs + 8 * timeouts + 0.5 * timeoutMs) / (1 - drift);
    const isOver = () =>
      leaving.every((process) => !process.alive || (!process.isCampaigning && !process.isClosing));
    await world.run(world.nowMs + boundMs, isOver);
    if (world.violation !== undefined) return;
    for (const process of leaving) {
      if (process.alive && (process.isCampaigning || process.isClosing)) {
        world.fail(
          'settling',
          `${process.name} was told to leave ${boundMs.toFixed(0)} ms ago, and has not`,
        );
      }
    }
    // A place that could not be given up at once is given up soon.
    await world.run(world.nowMs + timeoutMs, () => this.#zombies().length === 0);
    const [zombie] = this.#zombies();
    if (world.violation !== undefined || zombie === undefined) return;
    world.fail('zombie', zombie);
  }

  /** Places of processes that live on and have left. */
  #zombies(): readonly string[] {
    return this.contests.flatMap(({ guarantees, name }) =>
      guarantees.places().flatMap((place) => {
        const owner = this.ownerOf(place);
        if (owner === undefined || !owner.alive) return [];
        return [`${owner.name} has left election ${name}, and its place is still in the queue`];
      }),
    );
  }

  #checkObserver(observer: QueueObserver): void {
    for (const contest of this.contests) {
      const { record } = contest.guarantees;
      const last = observer.last.get(contest);
      const isThere =
        record?.holding !== undefined && this.nodeOf(record.holding.place) !== undefined;
      if (!isThere || last?.token === record?.token) continue;
      this.world.fail(
        'observer',
        `term ${record?.token} has led for a while, the last view is ${last?.state} ${last?.token}`,
      );
    }
  }

  /** Requests of before may still be under way, so this looks again until nothing is left to do. */
  #restoreOrder(): void {
    for (const contest of this.contests) {
      const { record } = contest.guarantees;
      const ids = new Set((record?.drains ?? []).map(({ id }) => id));
      if (record?.ended === true) {
        this.operator.ask(contest, { kind: 'reopen' });
      }
      for (const id of ids) this.operator.ask(contest, { kind: 'lift', id });
    }
    this.world.at(this.world.nowMs + 0.3 * this.scenario.timeoutMs, () => {
      this.#restoreOrder();
      return true;
    });
  }

  // --- what everybody asks it ---

  start(seat: Seat): true {
    const { host, link, plan } = seat;
    const random = new Random(this.scenario.seed, 20_000 + this.#lastNumber);
    const process = new QueueProcess(this, host, link, plan, random);
    seat.process = process;
    this.processes.add(process);
    this.trace.add(this.world.nowMs, process.name, 'starts');
    process.join();
    return true;
  }

  libraryOf(number: number): Library {
    return (number % 2 === 0 ? this.#beside : undefined) ?? this.library;
  }

  newNumber(): number {
    this.#lastNumber += 1;
    return this.#lastNumber;
  }

  exit(process: QueueProcess): void {
    process.alive = false;
    this.processes.delete(process);
    const seat = this.seats.find((each) => each.process === process);
    if (seat === undefined) return;
    seat.process = undefined;
    if (this.isQuiet && !this.#isEnding) this.world.at(this.world.nowMs, () => this.start(seat));
  }

  /** The process that has made a place; undefined: somebody who is not ours. */
  ownerOf(place: string): QueueProcess | undefined {
    return this.#owners.get(place);
  }

  /** The node of a place in the store; undefined: it is gone. */
  nodeOf(place: string): Node | undefined {
    const path = this.ground.pathOf(place);
    const node = this.ensemble.tree.get(path);
    return node !== undefined && this.ground.placeOf(path, node) === place ? node : undefined;
  }

  /** By hand. @returns whether it was there, and is gone */
  deletePlace(place: string): boolean {
    if (this.nodeOf(place) === undefined) return false;
    const path = this.ground.pathOf(place);
    return this.ensemble.byHand([{ type: 'delete', path, version: -1 }]);
  }

  processOf(session: bigint): QueueProcess | undefined {
    return this.#sessions.get(session);
  }
}

/** A node and all above it but the root, from the top. */
function pathsTo(path: string): readonly string[] {
  const names = path.slice(1).split('/');
  return names.map((_, index) => `/${names.slice(0, index + 1).join('/')}`);
}

function isSafelyLeading({ candidacy, term }: TermEntry): boolean {
  return candidacy.process.alive && term.isLeading() && !term.signal.aborted;
}
