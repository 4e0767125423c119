import type { Benchmark } from '../../benchmark.ts';
import { sleep } from '../../clock.ts';
import type { Figure } from '../../figure.ts';
import { figureOf, median, spreadOf } from '../../figure.ts';
import { TermLog } from '../../term-log.ts';
import type { CandidateMethods, PeerName } from '../messages.ts';
import type { Candidate, Stage, Topology } from '../stage.ts';
import { present, rotated, sessionTimeoutMs, startCandidate, topologies } from '../stage.ts';

const names: readonly PeerName[] = [
  'ours',
  'bare socket with a check',
  'bare socket',
  'kazoo',
  'node-zookeeper-client',
  'zookeeper (C client)',
  'Curator',
];
const reference: PeerName = 'bare socket with a check';
/** At most so many times the reference. */
const goal = 1.3;
/** Ahead of these. */
const slower: readonly PeerName[] = [
  'kazoo',
  'node-zookeeper-client',
  'zookeeper (C client)',
  'Curator',
];
const warmUps = 20;
/** Each round has so many parts, and each part a median of its own for the ratios. */
const partsPerRound = 4;
const handoversPerPart = 12;
/** Until who has just entered again watches the one before it. */
const settleMs = 60;

/** Two candidates that hand the seat to and fro. */
interface Pair {
  readonly name: PeerName;
  readonly terms: TermLog;
  leader: Candidate;
  follower: Candidate;
  readonly election: string;
  /** When the follower leads. */
  next: Promise<CandidateMethods['campaign']['result']>;
  /** When the follower entered. */
  enteredAtMs: number;
}

/**
 * The seat is handed over again and again, by each process in turn. The time runs from the call
 * that gives it up to the first statement of the work in the other process.
 */
export function resign(stage: Stage): Benchmark {
  const samples = new Map<string, number[]>();
  const ratios = new Map<string, number[]>();
  const troubles = new Set<string>();
  let rounds = 0;

  async function round(topology: Topology): Promise<void> {
    const servers = await stage.servers(topology);
    // Where both are at followers, or one of them at the leader, a hand-over takes other ways.
    const [first, second] = rotated(servers, rounds + 1);
    const ports = [first, second ?? first].map((server) => server?.port ?? 0) as [number, number];
    const pairs: Pair[] = [];
    try {
      for (const name of present(stage, names)) {
        await attempt(name, async () => {
          pairs.push(await startPair(stage, name, ports, `${topology}-${rounds}`));
        });
      }
      for (let handover = 0; handover < warmUps; handover += 1) await turn(pairs, handover);
      for (let part = 0; part < partsPerRound; part += 1) {
        const taken = new Map<PeerName, number[]>();
        for (let handover = 0; handover < handoversPerPart; handover += 1) {
          for (const [name, ms] of await turn(pairs, part + handover)) {
            append(taken, name, ms);
            append(samples, `${topology} ${name}`, ms);
          }
        }
        const own = taken.get('ours');
        if (own === undefined) continue;
        for (const [name, all] of taken) {
          append(ratios, `${topology} ${name}`, median(own) / median(all));
        }
      }
    } finally {
      await Promise.all(pairs.flatMap(({ leader, follower }) => [leader.kill(), follower.kill()]));
    }
  }

  /** One hand-over by each; who fails takes no further part. */
  async function turn(pairs: Pair[], by: number): Promise<Map<PeerName, number>> {
    const taken = new Map<PeerName, number>();
    for (const pair of rotated([...pairs], by)) {
      const done = await attempt(pair.name, async () => {
        taken.set(pair.name, await handOver(pair));
      });
      if (!done) {
        pairs.splice(pairs.indexOf(pair), 1);
        await Promise.all([pair.leader.kill(), pair.follower.kill()]);
      }
    }
    return taken;
  }

  /** @throws what goes wrong with ours, for then there is nothing to compare */
  async function attempt(name: PeerName, measure: () => Promise<void>): Promise<boolean> {
    try {
      await measure();
      return true;
    } catch (error) {
      if (name === 'ours') throw error;
      troubles.add(`${name}: ${(error as Error).message.split('\n')[0]}`);
      return false;
    }
  }

  return {
    name: 'resign',
    about: 'clean hand-overs',
    roundsOf: (all) => all,
    async round() {
      for (const topology of topologies) await round(topology);
      rounds += 1;
    },
    figures: () => [
      ...topologies.flatMap((topology) => timesOf(topology, samples)),
      ...topologies.flatMap((topology) => ratiosOf(topology, ratios)),
    ],
    troubles: () => [...troubles],
  };
}

async function startPair(
  stage: Stage,
  name: PeerName,
  [port, otherPort]: readonly [number, number],
  election: string,
): Promise<Pair> {
  const leader = await startCandidate(stage, name, { port, sessionTimeoutMs });
  const follower = await startCandidate(stage, name, { port: otherPort, sessionTimeoutMs });
  const terms = new TermLog(`${name}, ${election}`);
  const led = await leader.call('campaign', { election });
  if (led.token !== null) terms.begins(BigInt(led.token), led.atMs);
  const next = campaign(follower, election);
  return { name, terms, leader, follower, next, enteredAtMs: performance.now(), election };
}

/** @returns how long it took */
async function handOver(pair: Pair): Promise<number> {
  await sleep(Math.max(0, settleMs - (performance.now() - pair.enteredAtMs)));
  const { leader, follower, next, terms } = pair;
  const [{ atMs }, led] = await Promise.all([leader.call('resign', {}), next]);
  if (led.token !== null) {
    terms.ends(atMs);
    terms.begins(BigInt(led.token), led.atMs);
  }
  pair.leader = follower;
  pair.follower = leader;
  pair.next = campaign(leader, pair.election);
  pair.enteredAtMs = performance.now();
  return led.atMs - atMs;
}

function campaign(candidate: Candidate, election: string): Pair['next'] {
  const led = candidate.call('campaign', { election });
  // A candidate that is killed at the end of a round never leads.
  led.catch(() => {});
  return led;
}

function timesOf(
  topology: Topology,
  samples: ReadonlyMap<string, readonly number[]>,
): readonly Figure[] {
  return names.flatMap((name) => {
    const all = samples.get(`${topology} ${name}`);
    if (all === undefined) return [];
    const sorted = [...all].sort((a, b) => a - b);
    const p99 = sorted[Math.ceil(0.99 * sorted.length) - 1] as number;
    const label = `resign, ${topology}: ${name}`;
    return [
      figureOf('resign', label, 'ms', all),
      { benchmark: 'resign', name: `${label}, p99`, unit: 'ms', value: p99, spread: spreadOf(all) },
    ];
  });
}

function ratiosOf(
  topology: Topology,
  ratios: ReadonlyMap<string, readonly number[]>,
): readonly Figure[] {
  return [reference, ...slower].flatMap((name) => {
    const all = ratios.get(`${topology} ${name}`);
    if (all === undefined) return [];
    const label = `resign, ${topology}: ours beside ${name}`;
    return [figureOf('resign', label, '×', all, name === reference ? goal : 1)];
  });
}

function append<Key>(samples: Map<Key, number[]>, key: Key, value: number): void {
  const all = samples.get(key) ?? [];
  all.push(value);
  samples.set(key, all);
}
