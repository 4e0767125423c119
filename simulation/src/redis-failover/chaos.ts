import type { Random } from '../harness/random.ts';
import type { Link, RedisNode } from '../redis/index.ts';
import type { Seat } from './process.ts';
import type { FaultMix } from './scenario.ts';
import type { RedisFailoverSimulation } from './simulation.ts';

type Fault = (chaos: Chaos) => void;
type FaultsByWeight = readonly (readonly [number, Fault])[];

/** The faults, and their times. */
export class Chaos {
  readonly sim: RedisFailoverSimulation;
  readonly random: Random;
  #isOver = false;

  constructor(sim: RedisFailoverSimulation, random: Random) {
    this.sim = sim;
    this.random = random;
  }

  begin(mix: FaultsByWeight = mixes[this.sim.scenario.faults]): void {
    const { scenario } = this.sim;
    const next = () => {
      this.later(this.random.exponential(scenario.faultEveryMs), () => {
        const fault = this.random.weighted(mix);
        fault(this);
        next();
      });
    };
    next();
  }

  /** Nothing more goes wrong. */
  stop(): void {
    this.#isOver = true;
  }

  /** Everything that was broken is repaired; nodes start again, links and processes go on. */
  end(): void {
    this.stop();
    const { sim } = this;
    for (const link of sim.links) mend(link);
    for (const { host, link } of sim.seats) {
      host.resume();
      link.heal();
    }
    for (const server of sim.ensemble.servers) {
      server.isIsolated = false;
      server.lagMs = 0;
      server.thaw();
      server.isUp = true;
      server.drain();
    }
    for (const node of sim.nodes) {
      node.resume();
      if (!node.isRunning) sim.startNode(node);
    }
    for (const seat of sim.managers) if (seat.process === undefined) sim.startManager(seat);
    for (const seat of sim.writers) if (seat.process === undefined) sim.startWriter(seat);
  }

  later(ms: number, act: () => void): void {
    const { world } = this.sim;
    world.at(world.nowMs + ms, () => {
      if (!this.#isOver) act();
      return true;
    });
  }

  /** Mostly short, sometimes longer than anything waits. */
  span(): number {
    const { random } = this;
    return random.weighted([
      [3, random.between(20, 400)],
      [4, random.between(400, 2_500)],
      [3, random.between(2_500, 9_000)],
    ]);
  }

  note(who: string, what: string): void {
    const { trace, world, coverage } = this.sim;
    trace.add(world.nowMs, '*', `${who} ${what}`);
    coverage.count(what);
  }

  /** Mostly the primary. */
  node(): RedisNode {
    const { primary, nodes } = this.sim;
    if (primary !== undefined && this.random.chance(0.6)) return primary;
    return this.random.pick(nodes);
  }
}

function mend(link: Link): void {
  link.refuses = false;
  link.letGo();
}

function kill(chaos: Chaos, node: RedisNode, downMs: number, loses: boolean): void {
  if (!node.isRunning) return;
  chaos.note(node.name, 'is killed');
  chaos.sim.endNode(node, () => node.kill());
  chaos.later(downMs, () => {
    if (node.isRunning) return;
    if (loses) {
      chaos.note(node.name, 'has lost its data directory');
      chaos.sim.endNode(node, () => node.loseData());
    }
    chaos.note(node.name, 'starts again');
    chaos.sim.startNode(node);
  });
}

const crash: Fault = (chaos) => kill(chaos, chaos.node(), chaos.span(), false);

const loseData: Fault = (chaos) => kill(chaos, chaos.node(), chaos.span(), true);

/** Before anybody can have noticed that it was away. */
const restart: Fault = (chaos) => {
  const { random } = chaos;
  kill(chaos, chaos.node(), random.between(0, 700), random.chance(0.4));
};

const powerCut: Fault = (chaos) => {
  const node = chaos.node();
  if (!node.isRunning) return;
  chaos.note(node.name, 'loses its power');
  chaos.sim.endNode(node, () => node.cutPower());
  chaos.later(chaos.span(), () => {
    if (node.isRunning) return;
    chaos.note(node.name, 'starts again');
    chaos.sim.startNode(node);
  });
};

const shutDown: Fault = (chaos) => {
  const node = chaos.node();
  if (!node.isRunning || node.isPaused) return;
  chaos.note(node.name, 'is told to end');
  chaos.sim.stopNode(node);
  chaos.later(500 + chaos.span(), () => {
    if (node.isRunning) return;
    chaos.note(node.name, 'starts again');
    chaos.sim.startNode(node);
  });
};

const stall: Fault = (chaos) => {
  const node = chaos.node();
  if (!node.isRunning || node.isPaused) return;
  chaos.note(node.name, 'stands still');
  const { server } = node;
  node.pause();
  chaos.later(chaos.span(), () => {
    if (node.server === server) node.resume();
  });
};

function cutLink(chaos: Chaos, from: string, node: RedisNode): void {
  const link = chaos.sim.link(from, node);
  const { random } = chaos;
  const how = random.pick(['forth', 'back', 'both', 'both', 'reset', 'refused'] as const);
  chaos.note(`${from}-${node.name}`, `link cut: ${how}`);
  if (how === 'forth' || how === 'both') link.forth.hold();
  if (how === 'back' || how === 'both') link.back.hold();
  if (how === 'refused') link.refuses = true;
  if (how === 'reset' || how === 'refused') link.reset();
  chaos.later(chaos.span(), () => mend(link));
}

/** Between two nodes: replication stops, and nobody else sees it. */
const cutReplication: Fault = (chaos) => {
  const { nodes } = chaos.sim;
  const from = chaos.random.pick(nodes);
  const to = chaos.node();
  if (from !== to) cutLink(chaos, from.name, to);
};

const cutManager: Fault = (chaos) => {
  cutLink(chaos, chaos.random.pick(chaos.sim.managers).host.name, chaos.node());
};

const cutWriter: Fault = (chaos) => {
  cutLink(chaos, chaos.random.pick(chaos.sim.writers).host.name, chaos.node());
};

/** A node that nobody reaches for a while, and that reaches nobody. */
const partition: Fault = (chaos) => {
  const { sim, random } = chaos;
  const node = chaos.node();
  chaos.note(node.name, 'is cut off');
  const places = [...sim.seats.map(({ host }) => host.name), ...sim.nodes.map(({ name }) => name)];
  const except = random.chance(0.4) ? random.pick(places) : undefined;
  const links = places
    .filter((place) => place !== node.name && place !== except)
    .map((place) => sim.link(place, node));
  const others = sim.nodes.filter((each) => each !== node);
  const own = others.map((other) => sim.link(node.name, other));
  for (const link of [...links, ...own]) link.hold();
  chaos.later(chaos.span(), () => {
    for (const link of [...links, ...own]) mend(link);
  });
};

function crashProcess(chaos: Chaos, seat: Seat, start: () => void): void {
  if (seat.process === undefined) return;
  seat.process.crash();
  seat.process = undefined;
  chaos.later(chaos.span(), () => {
    if (seat.process === undefined) start();
  });
}

function leadingSeat(chaos: Chaos): Seat {
  const { sim, random } = chaos;
  const leading = sim.managers.find(({ process }) => process === sim.leading);
  return leading !== undefined && random.chance(0.7) ? leading : random.pick(sim.managers);
}

const crashManager: Fault = (chaos) => {
  const seat = leadingSeat(chaos);
  chaos.note(seat.host.name, 'manager crashes');
  crashProcess(chaos, seat, () => chaos.sim.startManager(seat));
};

const stallManager: Fault = (chaos) => {
  const { host } = leadingSeat(chaos);
  chaos.note(host.name, 'manager stands still');
  const ms = chaos.span();
  if (chaos.random.chance(0.5)) host.armHiccup(1 + chaos.random.below(40), ms);
  else host.stall(ms);
};

const stallWriter: Fault = (chaos) => {
  const { host } = chaos.random.pick(chaos.sim.writers);
  chaos.note(host.name, 'client stands still');
  const ms = chaos.span();
  if (chaos.random.chance(0.5)) host.armHiccup(1 + chaos.random.below(20), ms);
  else if (chaos.random.chance(0.3)) host.suspend(ms);
  else host.stall(ms);
};

const cutZooKeeper: Fault = (chaos) => {
  const { sim, random } = chaos;
  const { host, link } = random.chance(0.6) ? leadingSeat(chaos) : random.pick(sim.seats);
  chaos.note(host.name, 'is cut off from ZooKeeper');
  const which = random.pick(['both', 'requests', 'replies']);
  link.requestsCut = which !== 'replies';
  link.repliesCut = which !== 'requests';
  chaos.later(chaos.span(), () => {
    link.requestsCut = false;
    link.repliesCut = false;
    link.mend();
  });
};

const zooKeeperServer: Fault = (chaos) => {
  const { sim, random } = chaos;
  const server = random.pick(sim.ensemble.servers);
  if (server.isFrozen || !server.isUp || server.isIsolated) return;
  if (random.chance(0.5) && sim.ensemble.servers.length > 1) {
    chaos.note(server.name, 'ZooKeeper server is cut off');
    server.isIsolated = true;
    chaos.later(chaos.span(), () => {
      server.isIsolated = false;
      server.drain();
    });
    return;
  }
  chaos.note(server.name, 'ZooKeeper server stands still');
  server.isFrozen = true;
  chaos.later(chaos.span(), () => server.thaw());
};

const expire: Fault = (chaos) => {
  const { sim } = chaos;
  const sessions = [...sim.ensemble.sessions.keys()];
  if (sessions.length === 0) return;
  if (sim.ensemble.endSession(chaos.random.pick(sessions))) {
    chaos.note('zk', 'a session is ended');
  }
};

/** While the primary is being moved, something else goes wrong. */
const inTheMiddle: Fault = (chaos) => {
  const { sim, random } = chaos;
  const { primary } = sim;
  if (primary === undefined) return;
  chaos.note(primary.name, 'a second fault is prepared');
  const second = random.weighted<Fault>([
    [3, crash],
    [2, crashManager],
    [2, restart],
    [2, stallManager],
    [1, cutZooKeeper],
    [2, cutManager],
    [1, stall],
  ]);
  sim.onRevoked = () =>
    chaos.later(random.pick([0, 5, 50, 500, 1_500]) * random.next(), () => second(chaos));
  random.weighted<Fault>([
    [3, crash],
    [2, partition],
    [1, stall],
    [2, restart],
  ])(chaos);
};

/** A replica is cut off for a while, and just when it is back its primary dies. */
const staleReplica: Fault = (chaos) => {
  const { sim, random } = chaos;
  const { primary } = sim;
  if (primary === undefined) return;
  const replica = random.pick(sim.nodes.filter((node) => node !== primary));
  chaos.note(replica.name, 'is left behind');
  const link = sim.link(replica.name, primary);
  link.hold();
  const awayMs = random.between(300, 4_000);
  chaos.later(awayMs, () => {
    kill(chaos, primary, chaos.span(), random.chance(0.3));
    if (random.chance(0.5)) mend(link);
    else chaos.later(chaos.span(), () => mend(link));
  });
};

/** Somebody wants another primary, or a certain one. */
const request: Fault = ({ sim, random }) => {
  const node = random.chance(0.5) ? null : sim.addressOf(random.pick(sim.nodes));
  sim.coverage.count('requests for a failover');
  sim.request({ node, requestedBy: 'operator' });
};

/** A request, while a replica lacks something. */
const requestBehind: Fault = (chaos) => {
  const { sim, random } = chaos;
  const { primary } = sim;
  if (primary === undefined) return;
  const replica = random.pick(sim.nodes.filter((node) => node !== primary));
  chaos.note(replica.name, 'is left behind');
  const link = sim.link(replica.name, primary);
  link.hold();
  if (random.chance(0.5)) link.reset();
  chaos.later(random.between(100, 3_000), () => {
    const node = sim.addressOf(replica);
    sim.coverage.count('requests for a failover');
    sim.request({ node: random.chance(0.7) ? node : null, requestedBy: 'operator' });
    chaos.later(chaos.span(), () => mend(link));
  });
};

/** The managers are away, the primary dies, and an operator helps himself. */
const promoteByHand: Fault = (chaos) => {
  const { sim, random } = chaos;
  const { primary } = sim;
  if (primary === undefined || !primary.isRunning) return;
  for (const seat of sim.managers) crashProcess(chaos, seat, () => sim.startManager(seat));
  const others = random.shuffle(sim.nodes.filter((node) => node !== primary));
  const [chosen, other] = others;
  if (chosen === undefined) return;
  chaos.note(chosen.name, 'is promoted by hand');
  kill(chaos, primary, 1_000 + chaos.span(), random.chance(0.3));
  // The other one may hear nothing of it.
  if (other !== undefined && random.chance(0.5)) cutLink(chaos, other.name, chosen);
  chaos.later(random.between(100, 1_000), () => {
    sim.say(chosen, ['REPLICAOF', 'NO', 'ONE']);
    for (let write = random.below(4); write > 0; write -= 1) {
      chaos.later(random.between(10, 400), () =>
        sim.say(chosen, ['SET', `op:${sim.newNumber()}`, '1']),
      );
    }
    if (other === undefined) return;
    sim.say(other, ['REPLICAOF', ...placeOf(sim, chosen)]);
  });
};

/** An operator makes a replica of a replica. */
const chain: Fault = (chaos) => {
  const { sim, random } = chaos;
  const { primary } = sim;
  const [node, above] = random.shuffle(sim.nodes.filter((each) => each !== primary));
  if (primary === undefined || node === undefined || above === undefined || !node.isRunning) return;
  chaos.note(node.name, 'is told to follow a replica');
  sim.say(node, ['REPLICAOF', ...placeOf(sim, above)]);
};

function placeOf(sim: RedisFailoverSimulation, node: RedisNode): readonly [string, string] {
  return sim.addressOf(node).split(':') as [string, string];
}

export const onlyChains: FaultsByWeight = [[1, chain]];

const all: FaultsByWeight = [
  [4, crash],
  [2, loseData],
  [3, restart],
  [1, powerCut],
  [1, shutDown],
  [3, stall],
  [3, cutReplication],
  [3, cutManager],
  [2, cutWriter],
  [3, partition],
  [3, crashManager],
  [3, stallManager],
  [2, stallWriter],
  [2, cutZooKeeper],
  [1, zooKeeperServer],
  [1, expire],
  [3, inTheMiddle],
  [3, staleReplica],
  [2, request],
  [3, requestBehind],
  [2, promoteByHand],
];

function only(...faults: readonly Fault[]): FaultsByWeight {
  return all.filter(([, fault]) => faults.includes(fault));
}

const mixes: Readonly<Record<FaultMix, FaultsByWeight>> = {
  mixed: all,
  nodes: only(crash, loseData, restart, powerCut, shutDown, stall, staleReplica),
  links: only(cutReplication, cutManager, cutWriter, partition, staleReplica, crash),
  managers: only(crashManager, stallManager, cutManager, crash, restart, inTheMiddle),
  zookeeper: only(cutZooKeeper, zooKeeperServer, expire, crash, stallWriter),
  edges: only(inTheMiddle, staleReplica, restart),
  operators: only(request, requestBehind, promoteByHand, crash, cutReplication),
};
