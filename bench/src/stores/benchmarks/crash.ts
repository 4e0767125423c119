import type { Benchmark } from '../../benchmark.ts';
import { jitter, monotonicMs, sleep } from '../../clock.ts';
import { figureOf } from '../../figure.ts';
import { makeSamples } from '../../samples.ts';
import { TermLog } from '../../term-log.ts';
import type { CandidateMethods, ContenderName } from '../messages.ts';
import { contenders } from '../messages.ts';
import type { Candidate, Stage } from '../stage.ts';
import { electionName, startCandidate } from '../stage.ts';

interface Pair {
  readonly name: ContenderName;
  readonly leader: Candidate;
  readonly next: Promise<CandidateMethods['campaign']['result']>;
  readonly terms: TermLog;
}

/** All leaders are killed at the same moment: from the SIGKILL to the first statement of the successor's work. */
export function crash(stage: Stage): Benchmark {
  const samples = makeSamples();
  const troubles = new Set<string>();
  let rounds = 0;

  async function prepare(
    name: ContenderName,
    leaseMs: number,
    started: Candidate[],
  ): Promise<Pair> {
    const limitMs = 3 * leaseMs + 30_000;
    const start = async () => {
      const candidate = await startCandidate(stage, name, leaseMs);
      started.push(candidate);
      return candidate;
    };
    const [leader, follower] = [await start(), await start()];
    const election = electionName('crash', name, rounds);
    const terms = new TermLog(election);
    const { atMs, token } = await leader.call('campaign', { election }, limitMs);
    if (token !== null) terms.begins(BigInt(token), atMs);
    const next = follower.call('campaign', { election }, limitMs);
    next.catch(() => {});
    return { name, leader, next, terms };
  }

  async function strike({ name, leader, next, terms }: Pair, leaseMs: number): Promise<void> {
    const killedAtMs = monotonicMs();
    terms.ends(killedAtMs);
    await leader.kill();
    const { atMs, token } = await next;
    if (token !== null) terms.begins(BigInt(token), atMs);
    samples.add(`${name} ${leaseMs}`, (atMs - killedAtMs) / leaseMs);
  }

  /** All at once. @throws what goes wrong with ours; who else fails is left out */
  async function each<Item, Result>(
    items: readonly Item[],
    nameOf: (item: Item) => ContenderName,
    start: (item: Item) => Promise<Result>,
  ): Promise<readonly Result[]> {
    const results = await Promise.allSettled(items.map(start));
    return results.flatMap((result, index) => {
      if (result.status === 'fulfilled') return [result.value];
      const name = nameOf(items[index] as Item);
      if (contenders[name].isOurs) throw result.reason;
      troubles.add(`${name}: ${(result.reason as Error).message.split('\n')[0]}`);
      return [];
    });
  }

  async function roundOf(leaseMs: number): Promise<void> {
    const started: Candidate[] = [];
    try {
      const pairs = await each(
        stage.names,
        (name) => name,
        (name) => prepare(name, leaseMs, started),
      );
      // Until all followers have settled, at no moment that is bound to when they entered.
      await sleep(1_000 + jitter(leaseMs));
      await each(
        pairs,
        ({ name }) => name,
        (pair) => strike(pair, leaseMs),
      );
    } finally {
      await Promise.all(started.map((candidate) => candidate.kill()));
    }
  }

  return {
    name: 'crash',
    about: 'leaders killed',
    roundsOf: (all) => all,
    async round() {
      for (const leaseMs of stage.scale.leasesMs) await roundOf(leaseMs);
      rounds += 1;
    },
    figures: () =>
      stage.scale.leasesMs.flatMap((leaseMs) =>
        stage.names.flatMap((name) => {
          const all = samples.of(`${name} ${leaseMs}`);
          if (all.length === 0) return [];
          const label = `SIGKILL, D = ${leaseMs / 1_000} s: ${name}`;
          return [figureOf('crash', label, '× D', all)];
        }),
      ),
    troubles: () => [...troubles],
  };
}
