import type { Benchmark } from '../../benchmark.ts';
import { jitter, monotonicMs, sleep } from '../../clock.ts';
import { figureOf } from '../../figure.ts';
import { TermLog } from '../../term-log.ts';
import type { CandidateMethods, PeerName } from '../messages.ts';
import type { Candidate, Stage, Topology } from '../stage.ts';
import { present, startCandidate, tickTimeMs, topologies } from '../stage.ts';

const sessionTimeoutMs = 4_000;
/** H by default, which a successor waits out unless it is told not to. */
const beliefMs = 0.4 * sessionTimeoutMs;
const peers: readonly { readonly name: PeerName; readonly goalMs?: number }[] = [
  { name: 'ours', goalMs: sessionTimeoutMs + beliefMs + 2 * tickTimeMs },
  { name: 'ours, predecessorWait off', goalMs: sessionTimeoutMs + 2 * tickTimeMs },
  { name: 'bare socket' },
  { name: 'kazoo' },
  { name: 'Curator' },
];
/** Until a follower watches, when all processes have started. */
const settleMs = 1_000;
const leadsWithinMs = 60_000;

interface Pair {
  readonly key: string;
  readonly leader: Candidate;
  /** When the follower leads. */
  readonly next: Promise<CandidateMethods['campaign']['result']>;
  readonly terms: TermLog;
}

/**
 * All leaders are killed at the same moment, so that their sessions expire in the same tick or the
 * next. The time runs from the SIGKILL to the first statement of the successor's work.
 */
export function kill(stage: Stage): Benchmark {
  const samples = new Map<string, number[]>();
  const troubles = new Set<string>();
  let rounds = 0;

  /** A leader, and a follower that has entered. @param started gets whatever is to be killed */
  async function prepare(topology: Topology, name: PeerName, started: Candidate[]): Promise<Pair> {
    const servers = await stage.servers(topology);
    const start = async (index: number): Promise<Candidate> => {
      const port = servers.at(index)?.port ?? servers[0]?.port ?? 0;
      const candidate = await startCandidate(stage, name, { port, sessionTimeoutMs });
      started.push(candidate);
      return candidate;
    };
    // Both of ours would be in one and the same election.
    const number = peers.findIndex((peer) => peer.name === name);
    const election = `kill-${rounds}-${number}`;
    const leader = await start(-1);
    const follower = await start(-2);
    const terms = new TermLog(`${name}, ${election}`);
    const led = await leader.call('campaign', { election });
    if (led.token !== null) terms.begins(BigInt(led.token), led.atMs);
    const next = follower.call('campaign', { election }, leadsWithinMs);
    next.catch(() => {});
    return { key: `${topology} ${name}`, leader, next, terms };
  }

  async function strike({ key, leader, next, terms }: Pair): Promise<void> {
    const killedAtMs = monotonicMs();
    terms.ends(killedAtMs);
    await leader.kill();
    const { atMs, token } = await next;
    if (token !== null) terms.begins(BigInt(token), atMs);
    samples.set(key, [...(samples.get(key) ?? []), atMs - killedAtMs]);
  }

  /** All at once. @throws what goes wrong with ours; who else fails is left out */
  async function each<Item, Result>(
    items: readonly Item[],
    start: (item: Item) => { readonly name: string; readonly done: Promise<Result> },
  ): Promise<readonly Result[]> {
    const running = items.map(start);
    const results = await Promise.allSettled(running.map(({ done }) => done));
    return results.flatMap((result, index) => {
      if (result.status === 'fulfilled') return [result.value];
      const name = running[index]?.name ?? '';
      const error = result.reason as Error;
      if (name.includes('ours')) throw error;
      troubles.add(`${name}: ${error.message.split('\n')[0]}`);
      return [];
    });
  }

  return {
    name: 'kill',
    about: 'leaders killed',
    roundsOf: (all) => all,
    async round() {
      const started: Candidate[] = [];
      const names = present(
        stage,
        peers.map(({ name }) => name),
      );
      const everybody = topologies.flatMap((topology) => names.map((name) => ({ topology, name })));
      try {
        const pairs = await each(everybody, ({ topology, name }) => ({
          name,
          done: prepare(topology, name, started),
        }));
        // No phase of the servers' tick is met every time.
        await sleep(settleMs + jitter(tickTimeMs));
        await each(pairs, (pair) => ({ name: pair.key, done: strike(pair) }));
      } finally {
        await Promise.all(started.map((candidate) => candidate.kill()));
      }
      rounds += 1;
    },
    figures: () =>
      topologies.flatMap((topology) =>
        peers.flatMap(({ name, goalMs }) => {
          const all = samples.get(`${topology} ${name}`);
          if (all === undefined) return [];
          return [figureOf('kill', `SIGKILL, ${topology}: ${name}`, 'ms', all, goalMs)];
        }),
      ),
    troubles: () => [...troubles],
  };
}
