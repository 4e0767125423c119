import type { Random } from '../harness/random.ts';
import type { CandidateProcess } from './candidate.ts';
import type { FaultMix } from './scenario.ts';
import type { LeaseSimulation, Place } from './simulation.ts';

type Fault = (chaos: Chaos) => void;

/** Everything that goes wrong, at random moments, until it stops. */
export class Chaos {
  readonly sim: LeaseSimulation;
  readonly random: Random;
  #isOver = false;

  constructor(sim: LeaseSimulation, random: Random) {
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
    if (scenario.meddles) this.later(this.random.next() * scenario.chaosMs, () => meddle(this));
    if (scenario.interferes) this.#repeat([operateOnWin, operateOnRelease, operateTooLate]);
    if (scenario.restarts) this.#repeat([restartWhileWriting, withdrawWhileWriting]);
  }

  /** One of these now and then, beside the others. */
  #repeat(faults: readonly Fault[]): void {
    this.later(this.random.exponential(1.5 * this.leaseMs), () => {
      const fault = this.random.pick(faults);
      this.sim.trace.add(this.sim.world.nowMs, '*', fault.name);
      fault(this);
      this.#repeat(faults);
    });
  }

  end(): void {
    this.#isOver = true;
    const { sim } = this;
    sim.outage = 'none';
    for (const { host, link } of sim.places) {
      link.heal();
      host.armHiccup(Number.POSITIVE_INFINITY, 0);
      if (host.isPaused || host.isSuspended) host.resume();
    }
  }

  // --- what the faults use ---

  get leaseMs(): number {
    return this.sim.scenario.leaseMs;
  }

  /** More often than not somebody who leads. */
  target(): Place {
    const { places } = this.sim;
    const leading = places.find(({ process }) => process?.believes() === true);
    return leading !== undefined && this.random.chance(0.75) ? leading : this.random.pick(places);
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

  /**
   * A host whose wall clock was set back is suspended only after its leader has had the time to
   * look at the clocks. The same holds the other way round: until then the library promises
   * nothing.
   */
  maySuspend(place: Place): boolean {
    const { host } = place;
    return !host.isPaused && !host.isAhead && (host.setBackAtMs < 0 || this.#hasLooked(place));
  }

  maySetBack(place: Place): boolean {
    const { host } = place;
    return !host.isPaused && !host.isAhead && (host.suspendedUntilMs < 0 || this.#hasLooked(place));
  }

  #hasLooked({ host, process }: Place): boolean {
    if (process === undefined) return true;
    return host.lastDisturbedMs < this.sim.world.nowMs - this.lookedAfterMs(process);
  }

  /**
   * A candidate that was undisturbed for so long has looked at its clocks: a renewal was due, or
   * retried.
   */
  lookedAfterMs({ timing, host }: CandidateProcess): number {
    const { renewEveryMs, operationTimeoutMs, retryBackoffMs } = timing;
    const betweenMs = renewEveryMs + operationTimeoutMs + retryBackoffMs;
    return (1.05 * betweenMs + 5 + 3 * host.errors.timerLagMs) / host.errors.monotonicRate;
  }

  /** Short or long against the lease; often about as long as a belief. */
  span(): number {
    return (
      this.leaseMs *
      this.random.weighted([
        [2, this.random.next() * 0.3],
        [3, 0.5 + this.random.next()],
        [2, this.random.next() * 3],
      ])
    );
  }
}

function cutLink(chaos: Chaos): void {
  const { link } = chaos.target();
  const which = chaos.random.pick(['both', 'both', 'requests', 'replies'] as const);
  link.requestsCut = which !== 'replies';
  link.repliesCut = which !== 'requests';
  chaos.sim.coverage.count('links cut');
  chaos.later(chaos.span(), () => {
    link.requestsCut = false;
    link.repliesCut = false;
  });
}

function slowLink(chaos: Chaos): void {
  const { link } = chaos.target();
  link.slowMs = chaos.leaseMs * chaos.random.pick([0.05, 0.1, 0.3, 1]);
  chaos.later(chaos.span(), () => {
    link.slowMs = 0;
  });
}

/** One operation of the target meets something special. */
function oddOperation(chaos: Chaos): void {
  const { random, leaseMs } = chaos;
  const { link } = chaos.target();
  const fate = random.pick([
    { requestLost: true },
    { replyLost: true },
    { error: 'instead' as const },
    { error: 'although' as const },
    { againAfterMs: random.next() * 2 * leaseMs },
    { requestLost: true, againAfterMs: random.next() * leaseMs },
    { requestMs: random.next() * 2 * leaseMs },
    { requestMs: random.next() * leaseMs, errorAfterMs: random.next() * 0.1 * leaseMs },
    { replyMs: random.next() * leaseMs },
  ]);
  const kind = random.pick(['swap', 'swap', 'swap', 'read'] as const);
  for (let times = 1 + random.below(2); times > 0; times -= 1) link.armed.push({ kind, fate });
  chaos.sim.coverage.count('operations with odd fates');
}

/** The last that the target hears, at once or as late as it may, is that its write was applied. */
function confirmationThenSilence(chaos: Chaos): void {
  const place = chaos.target();
  const { link, host, process } = place;
  if (process === undefined) return;
  const { random } = chaos;
  const ms = chaos.leaseMs * random.between(1, 2.5);
  const silence = random.pick([
    () => {
      link.requestsCut = true;
      chaos.later(ms, () => {
        link.requestsCut = false;
      });
    },
    () => host.stall(ms),
    () => (chaos.maySuspend(place) ? host.suspend(ms) : host.stall(ms)),
  ]);
  const isLate = random.chance(0.6);
  const late = isLate
    ? { replyMs: process.timing.operationTimeoutMs * random.between(0.3, 0.99) }
    : {};
  link.armed.push({
    kind: 'swap',
    fate: {
      ...late,
      onAnswer: () => {
        if (!host.isAhead && !host.isPaused) chaos.later(0, silence);
      },
    },
  });
}

/** The leader stands still while a renewal is under way, for not quite as long as that is worth. */
function stallWhileAsking(chaos: Chaos): void {
  const { link, host, process } = chaos.target();
  if (process === undefined) return;
  const ms = (process.timing.beliefMs * chaos.random.between(0.8, 1)) / host.errors.monotonicRate;
  const onSend = () => chaos.later(0, () => host.stall(ms));
  link.armed.push({ kind: 'swap', fate: { onSend } });
}

/** A follower's look takes long on its way; once it is back the leader is cut off. */
function slowLookThenSilence(chaos: Chaos): void {
  const { places } = chaos.sim;
  const leading = places.find(({ process }) => process?.believes() === true);
  const following = places.filter((place) => place !== leading && place.process !== undefined);
  if (leading === undefined || following.length === 0) return;
  const { link, process } = chaos.random.pick(following);
  const requestMs = (process?.timing.operationTimeoutMs ?? 0) * chaos.random.between(0.4, 0.9);
  const onAnswer = () =>
    chaos.later(0, () => {
      leading.link.requestsCut = true;
      chaos.later(chaos.leaseMs * chaos.random.between(1, 2.5), () => {
        leading.link.requestsCut = false;
      });
    });
  link.armed.push({ kind: 'read', fate: { requestMs, onAnswer } });
}

/**
 * The wall clock of the leader is set back, and some time after that its host sleeps. Nothing is
 *  confirmed meanwhile, for a confirmation would make a new start.
 */
function setBackThenSuspend(chaos: Chaos): void {
  const place = chaos.target();
  const { host, process, link } = place;
  if (process === undefined || host.isAhead || !chaos.maySetBack(place)) return;
  const { random, leaseMs } = chaos;
  chaos.sim.coverage.count('wall clocks set back');
  host.stepWall(-leaseMs * random.between(1, 5));
  link.requestsCut = true;
  chaos.later(random.between(1, 1.3) * chaos.lookedAfterMs(process), () => {
    if (!chaos.maySuspend(place) || !process.believes()) return;
    chaos.sim.coverage.count('suspensions of a leader beyond its belief');
    host.suspend(leaseMs * random.between(1, 2.5));
  });
  chaos.later(3 * leaseMs, () => {
    link.requestsCut = false;
  });
}

/**
 * The leader's host sleeps for a part of the belief. Some time after that its wall clock is set
 *  back, as when the time is corrected after waking up.
 */
function suspendThenSetBack(chaos: Chaos): void {
  const place = chaos.target();
  const { host, process, link } = place;
  if (process === undefined || !chaos.maySuspend(place)) return;
  const { random, leaseMs } = chaos;
  const ms = process.timing.beliefMs * random.between(0.1, 0.5);
  host.suspend(ms);
  link.requestsCut = true;
  chaos.later(ms + random.between(1, 1.3) * chaos.lookedAfterMs(process), () => {
    if (!host.isAhead && chaos.maySetBack(place)) host.stepWall(-leaseMs * random.between(1, 5));
    chaos.later(leaseMs * random.next(), () => {
      link.requestsCut = false;
    });
  });
}

/**
 * The leader's host sleeps while a confirmation is under way, and the wall clock is set back before
 * its answer is known. That answer is the last that the leader hears.
 */
function suspendWhileAsking(chaos: Chaos): void {
  const place = chaos.target();
  const { host, process, link } = place;
  if (process === undefined) return;
  const { random, leaseMs } = chaos;
  const ms = process.timing.beliefMs * random.between(0.2, 0.5);
  const answered = () => {
    link.requestsCut = true;
    chaos.later(leaseMs * random.between(1, 2.5), () => {
      link.requestsCut = false;
    });
  };
  const asleep = () => {
    if (!chaos.maySuspend(place)) return;
    host.suspend(ms);
    link.requestsCut = true;
    chaos.later(ms + random.between(1, 1.1) * chaos.lookedAfterMs(process), () => {
      if (!host.isAhead && chaos.maySetBack(place)) host.stepWall(-ms * random.between(1, 2));
      // The next attempt meets what was written before, and reads it back.
      link.armed.push({ kind: 'read', fate: { onAnswer: () => chaos.later(0, answered) } });
      link.requestsCut = false;
    });
  };
  link.armed.push({
    kind: 'swap',
    fate: { replyLost: true, onSend: () => chaos.later(leaseMs * 0.02, asleep) },
  });
}

/** A write of the target lands, nobody hears of it, and then the target is cut off. */
function unheardWriteThenCut(chaos: Chaos): void {
  const { random } = chaos;
  const { link } = chaos.target();
  const fate = random.pick([
    { replyLost: true },
    { error: 'although' as const },
    { requestLost: true },
  ]);
  link.armed.push({ kind: 'swap', fate });
  chaos.later(random.next() * 0.3 * chaos.leaseMs, () => {
    link.requestsCut = true;
    chaos.later(chaos.leaseMs * random.between(0.5, 2), () => {
      link.requestsCut = false;
    });
  });
}

function stall(chaos: Chaos): void {
  const { host, process } = chaos.target();
  if (host.isPaused) return;
  const ms = chaos.span();
  if (process?.believes() === true && ms > process.timing.beliefMs) {
    chaos.sim.coverage.count('stalls of a leader beyond its belief');
  }
  host.stall(ms);
}

function hiccup(chaos: Chaos): void {
  const { host } = chaos.target();
  if (host.isPaused) return;
  host.armHiccup(1 + chaos.random.below(40), chaos.span());
  chaos.sim.coverage.count('stalls in the middle of a turn');
}

function suspend(chaos: Chaos): void {
  const { random, sim } = chaos;
  const able = sim.places.filter((place) => chaos.maySuspend(place));
  if (able.length === 0) return;
  const leading = able.find(({ process }) => process?.believes() === true);
  const { host, process } = leading ?? random.pick(able);
  const ms = chaos.span();
  if (process?.believes() === true && ms > process.timing.beliefMs) {
    sim.coverage.count('suspensions of a leader beyond its belief');
  }
  host.suspend(ms);
}

function stepWall(chaos: Chaos): void {
  const { random } = chaos;
  const place = chaos.target();
  const { host } = place;
  if (host.isAhead) return;
  const back = random.chance(0.5) && chaos.maySetBack(place);
  const ms = random.pick([0.2, 1, 3, 100]) * random.next() * chaos.leaseMs;
  chaos.sim.coverage.count(back ? 'wall clocks set back' : 'wall clocks set forward');
  host.stepWall(back ? -ms : ms);
}

function crash(chaos: Chaos): void {
  const place = chaos.target();
  const { process } = place;
  if (process === undefined) return;
  chaos.sim.coverage.count('crashes');
  process.crash();
  if (chaos.random.chance(0.85)) {
    chaos.later(chaos.random.next() * 1.5 * chaos.leaseMs, () => {
      if (place.process !== undefined) return;
      chaos.sim.coverage.count('restarts under the same name');
      chaos.sim.start(place);
    });
  }
}

function leave(chaos: Chaos): void {
  const place = chaos.target();
  chaos.sim.coverage.count('handles closed');
  place.process?.close(() => {
    chaos.later(chaos.random.next() * chaos.leaseMs, () => {
      if (place.process === undefined) chaos.sim.start(place);
    });
  });
}

function withdraw(chaos: Chaos): void {
  const { process } = chaos.target();
  if (process === undefined) return;
  chaos.sim.coverage.count('withdrawals');
  process.withdraw();
  chaos.later(chaos.random.next() * 1.5 * chaos.leaseMs, () => process.join());
}

function resign(chaos: Chaos): void {
  chaos.target().process?.resign();
}

function sicken(chaos: Chaos): void {
  const { process } = chaos.target();
  if (process === undefined) return;
  process.isHealthy = false;
  chaos.later(chaos.span(), () => {
    process.isHealthy = true;
  });
}

function outage(chaos: Chaos): void {
  const { sim, random } = chaos;
  sim.outage = random.pick(['silent', 'refuses', 'read-only'] as const);
  sim.coverage.count(`outages: ${sim.outage}`);
  chaos.later(chaos.span(), () => {
    sim.outage = 'none';
  });
}

/** The store's own clock is set: forward by σ at the most, back by anything. */
function stepStoreClock(chaos: Chaos): void {
  const { server } = chaos.sim;
  const { clockStepMs } = server.options;
  if (clockStepMs === undefined) return;
  // Forward steps are bounded per lease: one in every three of the longest.
  const nowMs = chaos.sim.world.nowMs;
  const isForward = chaos.random.chance(0.8) && nowMs - server.steppedAtMs > 3 * chaos.leaseMs;
  server.stepClock(isForward ? clockStepMs : -chaos.random.next() * chaos.leaseMs);
}

function operate(chaos: Chaos): void {
  const { sim, random, leaseMs } = chaos;
  const { operator } = sim;
  const { plan } = random.pick(sim.places);
  random.weighted<() => void>([
    [2, () => operator.ask({ kind: 'vacate' })],
    [2, () => operator.ask({ kind: 'vacate', force: true })],
    [2, () => operator.ask({ kind: 'transfer', to: plan.id })],
    [2, () => drain(chaos, chaos.target())],
    [
      1,
      () => {
        operator.ask({ kind: 'end' });
        chaos.later(random.next() * leaseMs, () => operator.ask({ kind: 'reopen' }));
      },
    ],
  ])();
}

function drain({ sim, random, leaseMs }: Chaos, { host, plan }: Place): void {
  const until = new Date(host.wallMs() + random.next() * 2 * leaseMs);
  sim.operator.ask({ kind: 'drain', id: plan.id, until });
}

/** An operator's request meets a write of the leader that nobody has heard of yet. */
function operateOnUnheard(chaos: Chaos): void {
  const place = chaos.target();
  place.link.armed.push({
    kind: 'swap',
    fate: chaos.random.pick([{ replyLost: true }, { error: 'although' as const }]),
  });
  chaos.later(chaos.random.next() * 0.3 * chaos.leaseMs, () => operate(chaos));
}

/** A few messages later. */
function soon(chaos: Chaos, run: () => void): void {
  chaos.later(chaos.random.between(1, 8) * chaos.sim.network.latencyMs, run);
}

/** The leader makes room. */
function makeRoom(chaos: Chaos): Place | undefined {
  const { places } = chaos.sim;
  const leading = places.find(({ process }) => process?.believes() === true);
  leading?.process?.resign();
  return leading;
}

/** An operator's request lands between a write that wins and the winner's look at what has become of it. */
function operateOnWin(chaos: Chaos): void {
  const { sim, random } = chaos;
  const leading = makeRoom(chaos);
  for (const place of sim.places) {
    const { process, link } = place;
    if (place === leading || process === undefined) continue;
    const ask = random.pick([
      () => sim.operator.ask({ kind: 'vacate', force: true }),
      () => sim.operator.ask({ kind: 'vacate' }),
      () => drain(chaos, place),
      () => drain(chaos, random.pick(sim.places)),
      () => operate(chaos),
    ]);
    const fate = random.pick([
      { replyLost: true },
      { error: 'although' as const, replyMs: process.timing.operationTimeoutMs * random.next() },
    ]);
    link.armed.push({ kind: 'swap', fate: { ...fate, onSend: () => soon(chaos, ask) } });
  }
  sim.coverage.count('operators that ask at a win');
}

/** An operator's request lands between the last that a leader knows of the record and its release. */
function operateOnRelease(chaos: Chaos): void {
  const { sim, random } = chaos;
  const leading = sim.places.find(({ process }) => process?.believes() === true);
  const { process } = leading ?? {};
  if (leading === undefined || process === undefined) return;
  sim.coverage.count('operators that ask at a release');
  const fate = {
    requestMs: process.timing.operationTimeoutMs * random.between(0.2, 0.8),
    onSend: () =>
      chaos.later(0, () => {
        if (random.chance(0.6)) drain(chaos, random.pick(sim.places));
        else operate(chaos);
      }),
  };
  leading.link.armed.push({ kind: 'swap', fate });
  process.resign();
}

/** The request of an operator to one term is on its way for so long that the next term begins. */
function operateTooLate(chaos: Chaos): void {
  const { sim, random } = chaos;
  const { link } = sim.operator;
  const process = sim.places.find((place) => place.process?.believes() === true)?.process;
  if (process === undefined) return;
  sim.coverage.count('operators that ask too late');
  const onSend = () => soon(chaos, () => process.resign());
  const requestMs = random.between(0.2, 0.9) * sim.operator.timing.operationTimeoutMs;
  link.armed.push({ kind: 'swap', fate: { requestMs, onSend } });
  const force = random.chance(0.5);
  const { id } = random.pick(sim.places).plan;
  sim.operator.ask(random.chance(0.7) ? { kind: 'vacate', force } : { kind: 'transfer', to: id });
}

/** A process dies while a write of it is on its way, and another begins under its id before that lands. */
function restartWhileWriting(chaos: Chaos): void {
  const { sim, random, leaseMs } = chaos;
  const place = chaos.target();
  const { process } = place;
  if (process === undefined) return;
  const requestMs = leaseMs * random.pick([0.05, 0.3, 1]) * random.next();
  const restart = () => {
    if (place.process !== process) return;
    sim.coverage.count('crashes');
    process.crash();
    chaos.later(random.next() * requestMs, () => {
      if (place.process !== undefined) return;
      sim.coverage.count('restarts while a write of before is on its way');
      sim.start(place);
    });
  };
  const onSend = () => chaos.later(0, restart);
  place.link.armed.push({ kind: 'swap', fate: { requestMs, onSend } });
  if (random.chance(0.5)) makeRoom(chaos);
}

/** A candidate that is about to win withdraws while the answer is on its way, or lost. */
function withdrawWhileWriting(chaos: Chaos): void {
  const { sim, random, leaseMs } = chaos;
  const leading = makeRoom(chaos);
  for (const { process, link } of sim.places) {
    if (process === undefined || process === leading?.process) continue;
    const onSend = () =>
      soon(chaos, () => {
        process.withdraw();
        chaos.later(random.next() * leaseMs, () => process.join());
      });
    const fate = random.pick([{ replyLost: true }, { error: 'although' as const }]);
    link.armed.push({ kind: 'swap', fate: { ...fate, onSend } });
  }
  sim.coverage.count('withdrawals while a write is on its way');
}

/** Somebody deletes or overwrites the record by hand, against all advice. */
function meddle(chaos: Chaos): void {
  const { sim, random } = chaos;
  const { record } = sim.server.current;
  if (record === undefined) return;
  if (sim.scenario.store.forgets === 'lives' && random.chance(0.6)) {
    sim.coverage.count('older records that came back');
    const back = sim.server.commits.at(-1 - random.below(6));
    sim.meddle(back?.record, 'lost');
    return;
  }
  if (random.chance(0.5)) {
    sim.coverage.count('records deleted by hand');
    sim.meddle(undefined, 'lost');
    return;
  }
  sim.coverage.count('records overwritten by hand');
  sim.meddle(
    {
      ...record,
      token: record.token + 1n,
      nonce: 'by hand',
      leaseMs: chaos.leaseMs,
      holding: {
        candidate: { id: 'stranger', incarnation: 'by hand', addresses: [], metadata: {} },
        electedAtUnixMs: 1.7e12,
        announced: true,
        actors: null,
        revoked: false,
        request: undefined,
      },
    },
    'overwritten',
  );
}

const mixes: Record<FaultMix, readonly (readonly [number, Fault])[]> = {
  mixed: [
    [2, cutLink],
    [1, slowLink],
    [3, oddOperation],
    [2, confirmationThenSilence],
    [1, unheardWriteThenCut],
    [2, stall],
    [1, stallWhileAsking],
    [1, slowLookThenSilence],
    [1, setBackThenSuspend],
    [1, suspendThenSetBack],
    [1, suspendWhileAsking],
    [1, hiccup],
    [1, suspend],
    [1, stepWall],
    [2, crash],
    [1, leave],
    [1, withdraw],
    [1, resign],
    [3, sicken],
    [1, outage],
    [1, stepStoreClock],
    [2, operate],
    [1, operateOnUnheard],
  ],
  network: [
    [3, cutLink],
    [2, slowLink],
    [6, oddOperation],
    [3, confirmationThenSilence],
    [3, unheardWriteThenCut],
    [2, outage],
    [2, stepStoreClock],
    [1, resign],
    [1, crash],
  ],
  stalls: [
    [3, stall],
    [2, hiccup],
    [2, suspend],
    [1, stepWall],
    [2, stallWhileAsking],
    [4, setBackThenSuspend],
    [4, suspendThenSetBack],
    [3, suspendWhileAsking],
    [1, cutLink],
    [1, oddOperation],
  ],
  crashes: [
    [4, crash],
    [2, leave],
    [2, withdraw],
    [1, resign],
    [1, stall],
    [1, unheardWriteThenCut],
  ],
  operators: [
    [5, operate],
    [3, operateOnUnheard],
    [2, sicken],
    [1, resign],
    [1, withdraw],
    [1, crash],
    [1, cutLink],
    [1, oddOperation],
  ],
  edges: [
    [5, confirmationThenSilence],
    [3, slowLookThenSilence],
    [2, stallWhileAsking],
    [2, suspendThenSetBack],
    [2, suspendWhileAsking],
    [1, setBackThenSuspend],
    [2, cutLink],
    [1, stall],
    [1, suspend],
    [1, stepWall],
    [2, stepStoreClock],
    [1, crash],
    [1, slowLink],
  ],
};
