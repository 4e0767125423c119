import type { Random } from '../harness/random.ts';
import type { Request, Server } from '../harness/zookeeper/ensemble.ts';
import type { QueueProcess } from './process.ts';
import type { FaultMix } from './scenario.ts';
import type { Contested, QueueSimulation, Seat } from './simulation.ts';

type Fault = (chaos: QueueChaos) => void;

/** Everything that goes wrong, at random moments, until it stops. */
export class QueueChaos {
  readonly sim: QueueSimulation;
  readonly random: Random;
  #isOver = false;
  #victim: Seat | undefined;

  constructor(sim: QueueSimulation, random: Random) {
    this.sim = sim;
    this.random = random;
  }

  begin(): void {
    const { world, scenario } = this.sim;
    const faults = mixes[scenario.faults];
    const next = () => {
      world.at(world.nowMs + this.random.exponential(scenario.faultEveryMs), () => {
        if (this.#isOver) return false;
        const fault = this.random.weighted(faults);
        this.sim.trace.add(world.nowMs, '*', fault.name);
        fault(this);
        next();
        return true;
      });
    };
    next();
    if (scenario.strangers) this.sim.ground.visit(this);
    if (scenario.crowded) this.#repeat(this.timeoutMs, [takeSomePlaces]);
    if (scenario.interferes) {
      this.#repeat(1.5 * this.timeoutMs, [operateOnWin, operateOnRelease, operateTooLate]);
    }
    if (scenario.meetsNamed) this.#repeat(0.5 * this.timeoutMs, [meetNamed]);
    if (scenario.restarts) this.#repeat(1.5 * this.timeoutMs, [restartWhileWriting]);
  }

  end(): void {
    this.#isOver = true;
    const { sim } = this;
    for (const server of sim.ensemble.servers) {
      server.isIsolated = false;
      server.lagMs = 0;
      server.thaw();
      server.isUp = true;
    }
    for (const { host } of sim.seats) {
      host.armHiccup(Number.POSITIVE_INFINITY, 0);
      if (host.isPaused || host.isSuspended) host.resume();
    }
    // Strangers leave.
    for (const { guarantees } of sim.contests) {
      for (const place of guarantees.places()) {
        if (sim.ownerOf(place) === undefined) this.#removeSurely(place);
      }
    }
  }

  /** One of these now and then, beside the others. */
  #repeat(everyMs: number, faults: readonly Fault[]): void {
    this.later(this.random.exponential(everyMs), () => {
      const fault = this.random.pick(faults);
      this.sim.trace.add(this.sim.world.nowMs, '*', fault.name);
      fault(this);
      this.#repeat(everyMs, faults);
    });
  }

  #removeSurely(place: string): void {
    const { world } = this.sim;
    if (this.sim.nodeOf(place) === undefined) return;
    if (this.sim.deletePlace(place)) return;
    world.at(world.nowMs + this.timeoutMs * 0.1, () => {
      this.#removeSurely(place);
      return false;
    });
  }

  // --- what the faults use ---

  get timeoutMs(): number {
    return this.sim.scenario.timeoutMs;
  }

  get contest(): Contested {
    return this.random.pick(this.sim.contests);
  }

  /** The process that the record of an election names. */
  leaderOf({ guarantees }: Contested): QueueProcess | undefined {
    const place = guarantees.record?.holding?.place;
    const owner = place === undefined ? undefined : this.sim.ownerOf(place);
    return owner?.alive === true ? owner : undefined;
  }

  /** More often than not somebody who leads. */
  target(): Seat {
    if (this.#victim !== undefined) return this.#victim;
    const { seats } = this.sim;
    const leading = seats.find(({ process }) => process?.believes() === true);
    return leading !== undefined && this.random.chance(0.75) ? leading : this.random.pick(seats);
  }

  /** A fault that is to hit this one. */
  hit(victim: Seat, fault: Fault): void {
    this.#victim = victim;
    fault(this);
    this.#victim = undefined;
  }

  follower(leading: Seat): Seat | undefined {
    const others = this.sim.seats.filter((seat) => seat !== leading && seat.process !== undefined);
    return others.length === 0 ? undefined : this.random.pick(others);
  }

  /** More often than not the one that a leader is attached to. */
  server(): Server {
    const { servers } = this.sim.ensemble;
    const attached = this.target().process?.client.server;
    return attached !== undefined && this.random.chance(0.7) ? attached : this.random.pick(servers);
  }

  /** For `ms` from now, or until faults stop. */
  later(ms: number, run: () => void): void {
    const { world } = this.sim;
    world.at(world.nowMs + ms, () => {
      if (this.#isOver) return false;
      run();
      return true;
    });
  }

  maySuspend(seat: Seat): boolean {
    const { host } = seat;
    return !host.isPaused && !host.isAhead && (host.setBackAtMs < 0 || this.#hasLooked(seat));
  }

  maySetBack(seat: Seat): boolean {
    const { host } = seat;
    return !host.isPaused && !host.isAhead && (host.suspendedUntilMs < 0 || this.#hasLooked(seat));
  }

  #hasLooked({ host, process }: Seat): boolean {
    if (process === undefined) return true;
    return host.lastDisturbedMs < this.sim.world.nowMs - this.lookedAfterMs(process);
  }

  /**
   * A candidate that was undisturbed for so long has looked at its clocks: a renewal was due, or
   * retried.
   */
  lookedAfterMs({ candidacies, host, plan }: QueueProcess): number {
    const timing = candidacies[0]?.timing;
    if (timing === undefined) return plan.timeoutMs;
    const betweenMs = timing.renewEveryMs + timing.operationTimeoutMs + timing.retryBackoffMs;
    return (1.05 * betweenMs + 5 + 3 * host.errors.timerLagMs) / host.errors.monotonicRate;
  }

  /** Short or long against the session timeout; often about as long as a belief. */
  span(): number {
    const { random } = this;
    return (
      this.timeoutMs *
      random.weighted([
        [2, random.next() * 0.2],
        [3, 0.2 + 0.6 * random.next()],
        [3, 0.7 + random.next()],
        [2, random.next() * 3],
      ])
    );
  }

  readonly isAnnouncement = (request: Request): boolean => this.sim.ground.isAnnouncement(request);

  isolate(server: Server, ms: number): void {
    if (server.isIsolated) return;
    server.isIsolated = true;
    this.sim.coverage.count('servers cut off');
    this.later(ms, () => {
      server.isIsolated = false;
      server.drain();
    });
  }

  freeze(server: Server, ms: number): void {
    if (server.isFrozen || !server.isUp) return;
    server.isFrozen = true;
    this.sim.coverage.count('servers frozen');
    this.later(ms, () => server.thaw());
  }
}

const isConfirmation = (request: Request) =>
  request.kind === 'write' && request.operations.every(({ type }) => type === 'check');
const isEntry = (request: Request) =>
  request.kind === 'write' && request.operations[0]?.type === 'create';
const isDeletion = (request: Request) =>
  request.kind === 'write' && request.operations.some(({ type }) => type === 'delete');
const isNaming = (request: Request) =>
  isDeletion(request) && isWrite(request) && request.operations.length === 3;
const isWrite = (request: Request) => request.kind === 'write';
const isRead = (request: Request) => ['get', 'exists', 'children'].includes(request.kind);

// --- servers ---

function cutServerOff(chaos: QueueChaos): void {
  chaos.isolate(chaos.server(), chaos.span());
}

function freezeServer(chaos: QueueChaos): void {
  chaos.freeze(chaos.server(), chaos.span());
}

function crashServer(chaos: QueueChaos): void {
  const server = chaos.server();
  if (!server.isUp) return;
  chaos.sim.coverage.count('servers crashed');
  server.crash();
  chaos.later(chaos.span() * 0.5, () => {
    server.isUp = true;
  });
}

function cutLeaderOff(chaos: QueueChaos): void {
  chaos.isolate(chaos.sim.ensemble.leadership.server, chaos.span());
}

function slowServer(chaos: QueueChaos): void {
  const server = chaos.server();
  server.lagMs = chaos.timeoutMs * chaos.random.pick([0.02, 0.1, 0.4]);
  chaos.sim.coverage.count('servers that lag');
  chaos.later(chaos.span(), () => {
    server.lagMs = 0;
  });
}

/** All that the leader hears for long is that its place was there: then its server is cut off. */
function confirmedThenCutOff(chaos: QueueChaos): void {
  const { link, process } = chaos.target();
  const { random } = chaos;
  const ms = chaos.timeoutMs * random.between(1, 2.5);
  const strike = random.pick([
    (server: Server) => chaos.isolate(server, ms),
    (server: Server) => chaos.isolate(server, ms),
    (server: Server) => chaos.freeze(server, ms),
  ]);
  const isLate = random.chance(0.5);
  const replyMs =
    (process?.candidacies[0]?.timing.operationTimeoutMs ?? 0) * random.between(0.2, 0.9);
  link.armed.push({
    meets: random.pick([isConfirmation, isConfirmation, chaos.isAnnouncement]),
    fate: {
      ...(isLate ? { replyMs } : {}),
      onAnswer: () => {
        const server = process?.client.server;
        if (server !== undefined) chaos.later(0, () => strike(server));
      },
    },
  });
}

/** The server goes on reading and answering pings, and its client's session is ended elsewhere. */
function cutOffAndExpire(chaos: QueueChaos): void {
  const { process } = chaos.target();
  const server = process?.client.server;
  const session = process?.client.sessionId;
  if (server === undefined || session === undefined) return;
  chaos.isolate(server, chaos.span());
  chaos.later(chaos.random.next() * 0.2 * chaos.timeoutMs, () => {
    if (chaos.sim.ensemble.endSession(session)) chaos.sim.coverage.count('sessions ended by hand');
  });
}

// --- the way to them ---

function cutLink(chaos: QueueChaos): void {
  const { link } = chaos.target();
  const which = chaos.random.pick(['both', 'both', 'requests', 'replies'] as const);
  link.requestsCut = which !== 'replies';
  link.repliesCut = which !== 'requests';
  chaos.sim.coverage.count('links cut');
  chaos.later(chaos.span(), () => {
    link.requestsCut = false;
    link.repliesCut = false;
    link.mend();
  });
}

function cutOneServer(chaos: QueueChaos): void {
  const { link, process } = chaos.target();
  const server = process?.client.server ?? chaos.server();
  link.cutServers.add(server);
  chaos.sim.coverage.count('links to one server cut');
  chaos.later(chaos.span(), () => {
    link.cutServers.delete(server);
    link.mend();
  });
}

function slowLink(chaos: QueueChaos): void {
  const { link } = chaos.target();
  link.slowMs = chaos.timeoutMs * chaos.random.pick([0.02, 0.05, 0.1, 0.3]);
  chaos.later(chaos.span(), () => {
    link.slowMs = 0;
  });
}

/** A request of the target meets something special. */
function oddRequest(chaos: QueueChaos): void {
  const { random, timeoutMs } = chaos;
  const { link } = chaos.target();
  const fate = random.pick([
    { breaks: 'before' as const },
    { breaks: 'after' as const },
    { breaks: 'after' as const, requestMs: random.next() * 0.3 * timeoutMs },
    { requestMs: random.next() * 0.6 * timeoutMs },
    { replyMs: random.next() * 0.5 * timeoutMs },
  ]);
  const meets = random.pick([
    isEntry,
    chaos.isAnnouncement,
    isDeletion,
    isConfirmation,
    isWrite,
    isRead,
  ]);
  for (let times = 1 + random.below(2); times > 0; times -= 1) link.armed.push({ meets, fate });
  chaos.sim.coverage.count('requests with odd fates');
}

function confirmationThenSilence(chaos: QueueChaos): void {
  const seat = chaos.target();
  const { link, host, process } = seat;
  if (process === undefined) return;
  const { random } = chaos;
  const ms = chaos.timeoutMs * random.between(1, 2.5);
  const silence = random.pick([
    () => {
      link.requestsCut = true;
      chaos.later(ms, () => {
        link.requestsCut = false;
        link.mend();
      });
    },
    () => host.stall(ms),
    () => (chaos.maySuspend(seat) ? host.suspend(ms) : host.stall(ms)),
  ]);
  const operationMs = process.candidacies[0]?.timing.operationTimeoutMs ?? 0;
  const late = random.chance(0.6) ? { replyMs: operationMs * random.between(0.3, 0.99) } : {};
  link.armed.push({
    meets: random.pick([isConfirmation, chaos.isAnnouncement]),
    fate: {
      ...late,
      onAnswer: () => {
        if (!host.isAhead && !host.isPaused) chaos.later(0, silence);
      },
    },
  });
}

/** The leader stands still while a confirmation is under way, for not quite as long as it is worth. */
function stallWhileAsking(chaos: QueueChaos): void {
  const { link, host, process } = chaos.target();
  if (process === undefined) return;
  const ms = (process.beliefMs * chaos.random.between(0.8, 1)) / host.errors.monotonicRate;
  const onSend = () => chaos.later(0, () => host.stall(ms));
  link.armed.push({
    meets: chaos.random.pick([isConfirmation, chaos.isAnnouncement]),
    fate: { onSend },
  });
}

/** A follower's look takes long on its way back, and the leader's place is taken away meanwhile. */
function slowLookThenDeath(chaos: QueueChaos): void {
  const leading = chaos.target();
  const following = chaos.follower(leading);
  if (following === undefined) return;
  const operationMs = following.process?.candidacies[0]?.timing.operationTimeoutMs ?? 0;
  const ms = operationMs * chaos.random.between(0.4, 0.95);
  following.link.armed.push({
    meets: isRead,
    fate: chaos.random.pick([{ requestMs: ms }, { replyMs: ms }]),
  });
  chaos.later(chaos.random.next() * ms, () => deletePlace(chaos));
}

/** Leaves the queue and enters again. */
function reenter(chaos: QueueChaos, { process }: Seat): void {
  process?.withdraw();
  chaos.later(0.1 * chaos.random.next() * chaos.timeoutMs, () => process?.join());
}

/** The next looks at the queue take long on their way. */
function slowLooks(chaos: QueueChaos, { process, link }: Seat, onSend = (_ms: number) => {}): void {
  const operationMs = process?.candidacies[0]?.timing.operationTimeoutMs ?? 0;
  const requestMs = operationMs * chaos.random.between(0.6, 0.95);
  for (let times = 2; times > 0; times -= 1) {
    link.armed.push({
      meets: (request) => chaos.sim.ground.isLook(request),
      fate: { requestMs, onSend: () => onSend(requestMs) },
    });
  }
}

/** While somebody's look is under way, the leader is confirmed a last time and loses its place. */
function slowLookThenLastConfirmation(chaos: QueueChaos): void {
  const { sim } = chaos;
  const leading = chaos.target();
  const following = chaos.follower(leading);
  const place = chaos.contest.guarantees.record?.holding?.place;
  if (following === undefined || place === undefined) return;
  const { link } = leading;
  const die = (untilMs: number) => {
    if (sim.world.nowMs > untilMs || link.requestsCut) return;
    if (!sim.deletePlace(place)) return;
    sim.coverage.count('leaders that die while somebody looks');
    link.requestsCut = true;
    link.repliesCut = true;
    chaos.later(1.5 * chaos.timeoutMs, () => {
      link.requestsCut = false;
      link.repliesCut = false;
      link.mend();
    });
  };
  slowLooks(chaos, following, (ms) => {
    const untilMs = sim.world.nowMs + ms;
    link.armed.push({
      meets: isConfirmation,
      fate: { onAnswer: () => chaos.later(0, () => die(untilMs)) },
    });
  });
  reenter(chaos, following);
  // A candidate that enters has nobody before it but the leader.
  for (const { process } of sim.seats) {
    if (process === leading.process || process === following.process) continue;
    process?.withdraw();
    chaos.later(chaos.timeoutMs, () => process?.join());
  }
}

/** The last that a leader hears, as late as it may, is that it was there; by then it is not. */
function lateAnswerThenDeath(chaos: QueueChaos): void {
  dieBeforeAnswer(chaos, chaos.target(), isConfirmation);
}

/** The same, and it is what made it the leader. */
function lateAnnouncementThenDeath(chaos: QueueChaos): void {
  const leading = chaos.target();
  const following = chaos.follower(leading);
  if (following === undefined) return;
  dieBeforeAnswer(chaos, following, chaos.isAnnouncement);
  leading.process?.resign();
}

function dieBeforeAnswer(
  chaos: QueueChaos,
  { link, process }: Seat,
  meets: (request: Request) => boolean,
): void {
  const { sim, random, contest } = chaos;
  const operationMs = process?.candidacies[0]?.timing.operationTimeoutMs ?? 0;
  link.armed.push({
    meets,
    fate: {
      replyMs: operationMs * random.between(0.5, 0.97),
      onReply: () => {
        // Nothing comes behind the answer.
        link.repliesCut = true;
        const place = contest.guarantees.record?.holding?.place;
        if (place !== undefined && sim.ownerOf(place) === process) {
          sim.deletePlace(place);
          sim.coverage.count('leaders that die before their answer');
        }
      },
      onAnswer: () => {
        link.requestsCut = true;
      },
    },
  });
  chaos.later(3 * chaos.timeoutMs, () => {
    link.requestsCut = false;
    link.repliesCut = false;
    link.mend();
  });
}

/** A leader that is about to be announced loses its place on the way. */
function deletedBeforeAnnounced(chaos: QueueChaos): void {
  const { sim, random, contest } = chaos;
  const leading = chaos.target();
  for (const { link, process } of sim.seats) {
    if (process === leading.process) continue;
    const operationMs = process?.candidacies[0]?.timing.operationTimeoutMs ?? 0;
    link.armed.push({
      meets: chaos.isAnnouncement,
      fate: {
        requestMs: 0.5 * operationMs,
        onSend: () =>
          chaos.later(0.4 * random.next() * operationMs, () => {
            const [place] = contest.guarantees.places();
            if (place === undefined || sim.ownerOf(place) !== process) return;
            sim.deletePlace(place);
          }),
      },
    });
  }
  leading.process?.resign();
}

/** An entry is applied and nobody hears of it until the session is about to end. */
function unheardEntryThenExpiry(chaos: QueueChaos): void {
  const seat = chaos.target();
  const { link } = seat;
  link.armed.push({
    meets: isEntry,
    fate: {
      breaks: 'after',
      onSend: () =>
        chaos.later(0.05 * chaos.timeoutMs, () => {
          link.requestsCut = true;
          const ms = (seat.process?.plan.timeoutMs ?? 0) * chaos.random.between(0.85, 1.2);
          chaos.later(ms, () => {
            link.requestsCut = false;
            link.mend();
          });
        }),
    },
  });
  reenter(chaos, seat);
}

/** Between a look at the record and the one at the queue, a leader is announced and dies. */
function straddledLook(chaos: QueueChaos): void {
  const { sim, random } = chaos;
  const leading = chaos.target();
  const following = chaos.follower(leading);
  if (following === undefined || sim.seats.length < 3) return;
  slowLooks(chaos, following, () => leading.process?.resign());
  reenter(chaos, following);
  sim.onAnnounced = (place) => {
    const owner = sim.ownerOf(place);
    if (owner === undefined || owner === following.process) return;
    chaos.later(0.005 * random.next() * chaos.timeoutMs, () => {
      owner.link.requestsCut = true;
      const isDeleted = sim.deletePlace(place);
      if (isDeleted) sim.coverage.count('leaders that die as soon as they are announced');
      owner.link.repliesCut = random.chance(0.5);
      chaos.later(random.between(0.5, 1.5) * chaos.timeoutMs, () => {
        owner.link.requestsCut = false;
        owner.link.repliesCut = false;
        owner.link.mend();
      });
    });
  };
}

/** Somebody deletes a place by hand, against all advice: the leader's, or another one. */
function deletePlace(chaos: QueueChaos): void {
  const { sim, random, contest } = chaos;
  const places = contest.guarantees.places().filter((place) => sim.ownerOf(place) !== undefined);
  const place = random.chance(0.6) ? places[0] : places[random.below(places.length)];
  if (place === undefined) return;
  if (sim.deletePlace(place)) {
    sim.coverage.count('places deleted by hand');
  }
}

/**
 * Somebody deletes some of the places that lead for one process, at once or one after the other. The
 * server of that process may be late to tell it of them.
 */
function takeSomePlaces(chaos: QueueChaos): void {
  const { sim, random, timeoutMs } = chaos;
  const { process } = chaos.target();
  const places = sim.contests.flatMap(({ guarantees }) => {
    const place = guarantees.places()[0];
    return place !== undefined && sim.ownerOf(place) === process ? [place] : [];
  });
  if (process === undefined || places.length < 2) return;
  sim.coverage.count('sessions that led several elections lost some places');
  const { server } = process.client;
  if (server !== undefined && random.chance(0.5)) {
    server.lagMs = timeoutMs * random.pick([0.05, 0.2, 0.4]);
    chaos.later(timeoutMs, () => {
      server.lagMs = 0;
    });
  }
  const isTogether = random.chance(0.6);
  for (const place of random.shuffle([...places]).slice(0, 1 + random.below(places.length))) {
    chaos.later(isTogether ? 0 : random.next() * 0.3 * timeoutMs, () => {
      if (sim.deletePlace(place)) {
        sim.coverage.count('places deleted by hand');
      }
    });
  }
}

/** Confirmed, cut off, and deleted by hand. */
function confirmedThenDeleted(chaos: QueueChaos): void {
  const { link, process } = chaos.target();
  const { random } = chaos;
  link.armed.push({
    meets: isConfirmation,
    fate: {
      onAnswer: () => {
        const server = process?.client.server;
        if (server === undefined) return;
        const isCut = random.chance(0.7);
        if (isCut) chaos.later(0, () => chaos.isolate(server, chaos.span()));
        chaos.later(random.next() * 0.02 * chaos.timeoutMs, () => deletePlace(chaos));
      },
    },
  });
}

function expireSession(chaos: QueueChaos): void {
  const session = chaos.target().process?.client.sessionId;
  if (session === undefined || !chaos.sim.ensemble.endSession(session)) return;
  chaos.sim.coverage.count('sessions ended by hand');
}

/** A reply to an entry, an announcement or a release is lost, and then the client is cut off. */
function unheardWriteThenCut(chaos: QueueChaos): void {
  const { random } = chaos;
  const { link } = chaos.target();
  link.armed.push({
    meets: random.pick([isEntry, chaos.isAnnouncement, isDeletion]),
    fate: { breaks: random.pick(['before', 'after', 'after'] as const) },
  });
  chaos.later(random.next() * 0.2 * chaos.timeoutMs, () => {
    link.requestsCut = true;
    chaos.later(chaos.timeoutMs * random.between(0.1, 1.5), () => {
      link.requestsCut = false;
      link.mend();
    });
  });
}

// --- hosts ---

function stall(chaos: QueueChaos): void {
  const { host, process } = chaos.target();
  if (host.isPaused) return;
  const ms = chaos.span();
  if (process?.believes() === true && ms > process.beliefMs) {
    chaos.sim.coverage.count('stalls of a leader beyond its belief');
  }
  host.stall(ms);
}

function hiccup(chaos: QueueChaos): void {
  const { host } = chaos.target();
  if (host.isPaused) return;
  host.armHiccup(1 + chaos.random.below(40), chaos.span());
  chaos.sim.coverage.count('stalls in the middle of a turn');
}

function suspend(chaos: QueueChaos): void {
  const { random, sim } = chaos;
  const able = sim.seats.filter((seat) => chaos.maySuspend(seat));
  if (able.length === 0) return;
  const leading = able.find(({ process }) => process?.believes() === true);
  const { host, process } = leading ?? random.pick(able);
  const ms = chaos.span();
  if (process?.believes() === true && ms > process.beliefMs) {
    sim.coverage.count('suspensions of a leader beyond its belief');
  }
  host.suspend(ms);
}

function stepWall(chaos: QueueChaos): void {
  const { random } = chaos;
  const seat = chaos.target();
  const { host } = seat;
  if (host.isAhead) return;
  const back = random.chance(0.5) && chaos.maySetBack(seat);
  const ms = random.pick([0.2, 1, 3, 100]) * random.next() * chaos.timeoutMs;
  chaos.sim.coverage.count(back ? 'wall clocks set back' : 'wall clocks set forward');
  host.stepWall(back ? -ms : ms);
}

// --- processes ---

function crash(chaos: QueueChaos): void {
  const seat = chaos.target();
  const { process } = seat;
  if (process === undefined) return;
  chaos.sim.coverage.count('crashes');
  process.crash();
  if (chaos.random.chance(0.85)) {
    chaos.later(chaos.random.next() * 1.5 * chaos.timeoutMs, () => {
      if (seat.process !== undefined) return;
      chaos.sim.coverage.count('restarts under the same name');
      chaos.sim.start(seat);
    });
  }
}

function leave(chaos: QueueChaos): void {
  const seat = chaos.target();
  chaos.sim.coverage.count('handles closed');
  seat.process?.close(() => {
    chaos.later(chaos.random.next() * chaos.timeoutMs, () => {
      if (seat.process === undefined) chaos.sim.start(seat);
    });
  });
}

function withdraw(chaos: QueueChaos): void {
  const { process } = chaos.target();
  if (process === undefined) return;
  chaos.sim.coverage.count('withdrawals');
  process.withdraw();
  chaos.later(chaos.random.next() * 1.5 * chaos.timeoutMs, () => process.join());
}

function resign(chaos: QueueChaos): void {
  chaos.target().process?.resign();
}

function sicken(chaos: QueueChaos): void {
  const { process } = chaos.target();
  if (process === undefined) return;
  process.isHealthy = false;
  chaos.later(chaos.span(), () => {
    process.isHealthy = true;
  });
}

// --- operators ---

function operate(chaos: QueueChaos, contest = chaos.contest): void {
  const { sim, random } = chaos;
  const { operator } = sim;
  const { plan } = random.pick(sim.seats);
  random.weighted<() => void>([
    [2, () => operator.ask(contest, { kind: 'vacate' })],
    [2, () => operator.ask(contest, { kind: 'vacate', force: true })],
    [3, () => operator.ask(contest, { kind: 'transfer', to: plan.id })],
    [2, () => drain(chaos, contest, chaos.target())],
    [1, () => end(chaos, contest)],
  ])();
}

function end(chaos: QueueChaos, contest = chaos.contest): void {
  const { sim, random, timeoutMs } = chaos;
  sim.operator.ask(contest, { kind: 'end' });
  chaos.later(random.next() * timeoutMs, () => sim.operator.ask(contest, { kind: 'reopen' }));
}

function drainTarget(chaos: QueueChaos): void {
  drain(chaos, chaos.contest, chaos.target());
}

function drain({ sim, random, timeoutMs }: QueueChaos, contest: Contested, seat: Seat): void {
  const until = new Date(seat.host.wallMs() + random.next() * 4 * timeoutMs);
  sim.operator.ask(contest, { kind: 'drain', id: seat.plan.id, until });
}

/** An operator's request meets a write that nobody has heard of yet. */
function operateOnUnheard(chaos: QueueChaos): void {
  const { link } = chaos.target();
  link.armed.push({ meets: isWrite, fate: { breaks: chaos.random.pick(['before', 'after']) } });
  chaos.later(chaos.random.next() * 0.2 * chaos.timeoutMs, () => operate(chaos));
}

/** A few messages later. */
function soon(chaos: QueueChaos, run: () => void): void {
  chaos.later(chaos.random.between(1, 8) * chaos.sim.scenario.link.latencyMs, run);
}

/** An operator's request meets an announcement whose answer is late or lost. */
function operateOnWin(chaos: QueueChaos): void {
  const { sim, random, contest } = chaos;
  const leading = chaos.target();
  for (const seat of sim.seats) {
    if (seat === leading) continue;
    const operationMs = seat.process?.candidacies[0]?.timing.operationTimeoutMs ?? 0;
    const ask = random.pick([
      () => sim.operator.ask(contest, { kind: 'vacate', force: true }),
      () => sim.operator.ask(contest, { kind: 'vacate' }),
      () => drain(chaos, contest, seat),
      () => operate(chaos, contest),
    ]);
    const fate = random.pick([
      { breaks: 'after' as const },
      { replyMs: operationMs * random.between(0.3, 1.2) },
    ]);
    seat.link.armed.push({
      meets: chaos.isAnnouncement,
      fate: { ...fate, onSend: () => soon(chaos, ask) },
    });
  }
  sim.coverage.count('operators that ask at a win');
  leading.process?.resign();
}

/** An operator's request lands between the last that a leader knows of the record and its release. */
function operateOnRelease(chaos: QueueChaos): void {
  const { sim, random, contest } = chaos;
  const { process, link } = chaos.target();
  if (process === undefined) return;
  sim.coverage.count('operators that ask at a release');
  const operationMs = process.candidacies[0]?.timing.operationTimeoutMs ?? 0;
  link.armed.push({
    meets: isDeletion,
    fate: {
      requestMs: operationMs * random.between(0.2, 0.8),
      onSend: () =>
        chaos.later(0, () => {
          if (random.chance(0.6)) drain(chaos, contest, random.pick(sim.seats));
          else operate(chaos, contest);
        }),
    },
  });
  process.resign();
}

/** The request of an operator to one term is on its way for so long that the next term begins. */
function operateTooLate(chaos: QueueChaos): void {
  const { sim, random, contest } = chaos;
  const process = chaos.leaderOf(contest);
  if (process === undefined) return;
  sim.coverage.count('operators that ask too late');
  const { link } = sim.operator;
  const onSend = () => soon(chaos, () => process.resign());
  const requestMs = random.between(0.02, 0.2) * chaos.timeoutMs;
  link.armed.push({ meets: chaos.isAnnouncement, fate: { requestMs, onSend } });
  const force = random.chance(0.5);
  const { id } = random.pick(sim.seats).plan;
  const command = random.chance(0.7)
    ? ({ kind: 'vacate', force } as const)
    : ({ kind: 'transfer', to: id } as const);
  sim.operator.ask(contest, command);
}

/** Something happens to a candidate while the leader before it names it. */
function meetNamed(chaos: QueueChaos): void {
  const { sim, random, contest } = chaos;
  const leader = chaos.leaderOf(contest);
  if (leader === undefined) return;
  const { latencyMs } = sim.scenario.link;
  const requestMs = random.between(3, 10) * latencyMs;
  // Often between a read that was answered before the naming, and the write that follows from it.
  const afterMs = random.pick([
    2 * random.next() * requestMs,
    requestMs + random.between(-3, 2) * latencyMs,
  ]);
  const meeting = random.weighted<Fault>([
    [8, withdraw],
    [2, leave],
    [1, drainTarget],
    [1, end],
    [1, crash],
    [1, stall],
    [2, cutLink],
    [1, cutOneServer],
  ]);
  const onSend = () => {
    const [, next] = contest.guarantees.places();
    const seat = sim.seats.find(
      ({ process }) => process !== undefined && next !== undefined && process === sim.ownerOf(next),
    );
    if (seat === undefined) return;
    chaos.later(afterMs, () => {
      if (seat.process === undefined) return;
      sim.coverage.count('successors that met something when they were named');
      sim.trace.add(sim.world.nowMs, '*', `${meeting.name} meets ${seat.process.name}`);
      chaos.hit(seat, meeting);
    });
  };
  leader.link.armed.push({ meets: isNaming, fate: { requestMs, onSend } });
  leader.resign();
}

/** A process dies while a write of it is on its way, and another begins under its id before that lands. */
function restartWhileWriting(chaos: QueueChaos): void {
  const { sim, random } = chaos;
  const seat = chaos.target();
  const { process, link } = seat;
  if (process === undefined) return;
  const meets = random.pick([isEntry, chaos.isAnnouncement, isDeletion, isConfirmation, isWrite]);
  const requestMs = chaos.timeoutMs * random.pick([0.02, 0.2, 0.6]) * random.next();
  const restart = () => {
    if (seat.process !== process) return;
    sim.coverage.count('crashes');
    process.crash();
    chaos.later(random.next() * requestMs, () => {
      if (seat.process !== undefined) return;
      sim.coverage.count('restarts while a write of before is on its way');
      sim.start(seat);
    });
  };
  link.armed.push({ meets, fate: { requestMs, onSend: () => chaos.later(0, restart) } });
  if (meets === isEntry) reenter(chaos, seat);
  if (meets === isDeletion) process.resign();
}

const mixes: Record<FaultMix, readonly (readonly [number, Fault])[]> = {
  mixed: [
    [2, cutServerOff],
    [1, freezeServer],
    [1, crashServer],
    [1, slowServer],
    [2, confirmedThenCutOff],
    [2, cutLink],
    [1, cutOneServer],
    [1, slowLink],
    [3, oddRequest],
    [2, confirmationThenSilence],
    [1, slowLookThenDeath],
    [1, unheardWriteThenCut],
    [1, deletePlace],
    [1, confirmedThenDeleted],
    [1, expireSession],
    [2, stall],
    [1, stallWhileAsking],
    [1, hiccup],
    [1, suspend],
    [1, stepWall],
    [2, crash],
    [1, leave],
    [1, withdraw],
    [1, resign],
    [2, sicken],
    [2, operate],
    [1, operateOnUnheard],
  ],
  servers: [
    [5, cutServerOff],
    [3, freezeServer],
    [3, crashServer],
    [3, cutLeaderOff],
    [2, slowServer],
    [4, confirmedThenCutOff],
    [2, cutOffAndExpire],
    [1, oddRequest],
    [1, resign],
    [1, crash],
  ],
  network: [
    [3, cutLink],
    [3, cutOneServer],
    [2, slowLink],
    [6, oddRequest],
    [3, confirmationThenSilence],
    [3, unheardWriteThenCut],
    [2, unheardEntryThenExpiry],
    [1, slowServer],
    [1, cutServerOff],
    [1, resign],
    [1, crash],
  ],
  stalls: [
    [3, stall],
    [2, hiccup],
    [2, suspend],
    [1, stepWall],
    [3, stallWhileAsking],
    [1, cutLink],
    [1, oddRequest],
    [1, freezeServer],
  ],
  crashes: [
    [4, crash],
    [2, leave],
    [2, withdraw],
    [1, resign],
    [1, stall],
    [2, unheardWriteThenCut],
    [2, unheardEntryThenExpiry],
    [1, expireSession],
  ],
  operators: [
    [5, operate],
    [3, operateOnUnheard],
    [2, deletePlace],
    [1, straddledLook],
    [2, sicken],
    [1, resign],
    [1, withdraw],
    [1, crash],
    [1, slowServer],
    [1, cutLink],
    [1, oddRequest],
  ],
  edges: [
    [5, slowLookThenLastConfirmation],
    [4, lateAnswerThenDeath],
    [4, lateAnnouncementThenDeath],
    [2, deletedBeforeAnnounced],
    [3, straddledLook],
    [4, confirmedThenCutOff],
    [4, confirmationThenSilence],
    [3, confirmedThenDeleted],
    [3, slowLookThenDeath],
    [2, cutOffAndExpire],
    [2, stallWhileAsking],
    [2, expireSession],
    [1, slowServer],
    [1, cutLink],
    [1, stall],
    [1, suspend],
    [1, stepWall],
    [1, crash],
    [1, slowLink],
  ],
};
