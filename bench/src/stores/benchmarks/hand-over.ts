import type { Benchmark } from '../../benchmark.ts';
import { sleep } from '../../clock.ts';
import type { Figure } from '../../figure.ts';
import { figureOf, median, p99Of } from '../../figure.ts';
import type { Samples } from '../../samples.ts';
import { makeSamples } from '../../samples.ts';
import { TermLog } from '../../term-log.ts';
import type { Address, CandidateMethods, ContenderName } from '../messages.ts';
import { contenders } from '../messages.ts';
import type { Candidate, Stage } from '../stage.ts';
import { electionName, rotated, startCandidate } from '../stage.ts';

/** Measured with the bare client: the least that the store takes. */
const floors = ['read', 'write', 'bare'] as const;
const floorNames: Readonly<Record<(typeof floors)[number], string>> = {
  read: 'one read',
  write: 'one write',
  bare: 'write and wake, read, write',
};
/** Until who has just entered again is woken. */
const settleMs = 400;
const leadsWithinMs = 90_000;

/** Two candidates that hand the seat to and fro. */
export interface Pair {
  readonly name: ContenderName;
  readonly terms: TermLog;
  readonly election: string;
  leader: Candidate;
  follower: Candidate;
  /** When the follower leads. */
  next: Promise<CandidateMethods['campaign']['result']>;
  enteredAtMs: number;
}

/**
 * The seat is handed over again and again, by each process in turn. The time runs from the call
 * that gives it up to the first statement of the work in the other process. Just before, the
 * follower's bare client reads and writes a record.
 */
export function handOver(stage: Stage): Benchmark {
  const samples = makeSamples();
  const troubles = new Set<string>();
  let rounds = 0;

  /** @throws what goes wrong with ours, for then there is nothing to compare */
  async function attempt(name: ContenderName, measure: () => Promise<void>): Promise<boolean> {
    try {
      await measure();
      return true;
    } catch (error) {
      if (contenders[name].isOurs) throw error;
      troubles.add(`${name}: ${(error as Error).message.split('\n')[0]}`);
      return false;
    }
  }

  /** One hand-over by each; who fails takes no further part. */
  async function turn(pairs: Pair[], by: number, into: Samples | undefined): Promise<void> {
    for (const pair of rotated([...pairs], by)) {
      const done = await attempt(pair.name, () => handOnce(pair, into));
      if (done) continue;
      pairs.splice(pairs.indexOf(pair), 1);
      await Promise.all([pair.leader.kill(), pair.follower.kill()]);
    }
  }

  return {
    name: 'hand-over',
    about: 'clean hand-overs',
    roundsOf: (all) => all,
    async round() {
      const { warmUps, perRound } = stage.scale.handOver;
      const pairs: Pair[] = [];
      const own = makeSamples();
      try {
        const started = await Promise.allSettled(
          stage.names.map((name) =>
            attempt(name, async () => {
              pairs.push(await startPair(stage, name, rounds));
            }),
          ),
        );
        for (const each of started) if (each.status === 'rejected') throw each.reason;
        for (let i = 0; i < warmUps; i += 1) await turn(pairs, i, undefined);
        for (let i = 0; i < perRound; i += 1) await turn(pairs, i, own);
      } finally {
        await Promise.all(
          pairs.flatMap(({ leader, follower }) => [leader.kill(), follower.kill()]),
        );
      }
      for (const name of stage.names) {
        const taken = own.of(name);
        if (taken.length === 0) continue;
        samples.add(name, ...taken);
        for (const key of floors) {
          const least = own.of(`${name} ${key}`);
          if (least.length === 0) continue;
          samples.add(`${name} ${key}`, ...least);
          samples.add(`${name} beside ${key}`, median(taken) / median(least));
        }
      }
      rounds += 1;
    },
    figures: () => [
      ...stage.names.flatMap((name) => timesOf(name, samples)),
      ...stage.names.flatMap((name) => ratiosOf(name, samples)),
    ],
    troubles: () => [...troubles],
  };
}

/** @param addresses of the two, if not the store's own */
export async function startPair(
  stage: Stage,
  name: ContenderName,
  round: number,
  addresses: readonly Address[] = [],
): Promise<Pair> {
  const { leaseMs } = stage.scale;
  const started: Candidate[] = [];
  try {
    for (let i = 0; i < 2; i += 1) {
      started.push(await startCandidate(stage, name, leaseMs, addresses[i]));
    }
    const [leader, follower] = started as [Candidate, Candidate];
    const election = electionName('hand-over', name, round);
    const terms = new TermLog(election);
    const { atMs, token } = await leader.call('campaign', { election }, leadsWithinMs);
    if (token !== null) terms.begins(BigInt(token), atMs);
    const next = campaign(follower, election);
    return { name, terms, election, leader, follower, next, enteredAtMs: performance.now() };
  } catch (error) {
    await Promise.all(started.map((candidate) => candidate.kill()));
    throw error;
  }
}

export async function handOnce(
  pair: Pair,
  into: Samples | undefined,
  beforeResign?: () => void,
): Promise<void> {
  const { name, terms, leader, follower, election } = pair;
  const settledMs = settleMs - (performance.now() - pair.enteredAtMs);
  if (settledMs > 0) await sleep(settledMs);
  const { readMs, writeMs } = await follower.call('roundTrips', { times: 2 });
  const bareMs = into === undefined ? undefined : await bareHandOver(pair, into.of(name).length);
  beforeResign?.();
  const resigned = leader.call('resign', {});
  resigned.catch(() => {});
  const led = await pair.next;
  const { atMs } = await resigned;
  // It may have led until then; that it did not is for its own tests to show.
  terms.ends(atMs);
  if (led.token !== null) terms.begins(BigInt(led.token), led.atMs);
  pair.leader = follower;
  pair.follower = leader;
  pair.next = campaign(leader, election);
  pair.enteredAtMs = performance.now();
  if (into === undefined) return;
  into.add(name, led.atMs - atMs);
  if (bareMs !== undefined) into.add(`${name} bare`, bareMs);
  // The first ones after a pause wait for what has gone to sleep.
  into.add(`${name} read`, ...readMs.slice(1));
  into.add(`${name} write`, ...writeMs.slice(1));
}

/** The same three round trips by bare clients, between the same processes. */
async function bareHandOver(
  { leader, follower, election }: Pair,
  times: number,
): Promise<number | undefined> {
  const topic = `${election}-${times}`;
  if (!(await follower.call('listen', { topic }))) return undefined;
  const woken = follower.call('woken', {});
  woken.catch(() => {});
  const { atMs } = await leader.call('wake', { topic });
  return (await woken).atMs - atMs;
}

function campaign(candidate: Candidate, election: string): Pair['next'] {
  const led = candidate.call('campaign', { election }, leadsWithinMs);
  // A candidate that is killed at the end of a round never leads.
  led.catch(() => {});
  return led;
}

function timesOf(name: ContenderName, samples: Samples): readonly Figure[] {
  const all = samples.of(name);
  if (all.length === 0) return [];
  const label = `hand-over: ${name}`;
  return [
    figureOf('hand-over', label, 'ms', all),
    p99Of('hand-over', label, 'ms', all),
    ...floors.flatMap((key) => {
      const each = samples.of(`${name} ${key}`);
      if (each.length === 0) return [];
      return [figureOf('hand-over', `floor: ${name}: ${floorNames[key]}`, 'ms', each)];
    }),
  ];
}

function ratiosOf(name: ContenderName, samples: Samples): readonly Figure[] {
  return floors.flatMap((key) => {
    const all = samples.of(`${name} beside ${key}`);
    if (all.length === 0) return [];
    return [figureOf('hand-over', `hand-over: ${name}, beside ${floorNames[key]}`, '×', all)];
  });
}
