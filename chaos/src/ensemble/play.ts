import type { TermActivity } from '@incumbent/cli/trial';
import { waitUntil } from '@incumbent/cli/trial';
import { leftBehind } from '../play-round.ts';
import { StuckError } from '../stuck.ts';
import { allServe } from '../zookeeper/strike-servers.ts';
import { monotonicMs } from '../zookeeper/time.ts';
import type { Round } from './plan.ts';
import type { Arena } from './strike.ts';
import { strikeAll, stuckMs } from './strike.ts';

export interface Outcome {
  readonly before: TermActivity;
  readonly leader: TermActivity;
  /** The longest time in which nobody worked. */
  readonly idleMs: number;
  readonly problems: readonly string[];
}

/** Resolves when somebody works. @throws StuckError */
export async function firstLeader({ log }: Pick<Arena, 'log'>): Promise<TermActivity> {
  const first = await waitUntil(() => log.judge.newest, stuckMs);
  if (first === undefined) throw new StuckError('liveness: nobody has ever led');
  return first;
}

/**
 * Does what the round plans, and waits until all is healed and somebody works.
 * @throws StuckError
 */
export async function playRound(arena: Arena, round: Round, buried: Set<bigint>): Promise<Outcome> {
  const { log, liveness, servers } = arena;
  log.read();
  const before = await firstLeader(arena);
  liveness.takeIdle();
  await strikeAll(arena, round);
  await allServe(servers.ensemble);
  const leader = await somebodyWorks(arena, `round ${round.number}`, before.token);
  return { before, leader, idleMs: liveness.takeIdle(), problems: leftBehind(log, leader, buried) };
}

/**
 * From now on: somebody of a newer term than `token`, or whoever still does when the belief is over
 * that it had until now.
 * @throws StuckError
 */
export async function somebodyWorks(
  { log, longestBeliefMs }: Pick<Arena, 'log' | 'longestBeliefMs'>,
  since: string,
  token?: bigint,
): Promise<TermActivity> {
  const fromMs = monotonicMs();
  const leader = await waitUntil(() => {
    const { newest } = log.judge;
    if (newest === undefined) return undefined;
    const isSame = newest.token === token;
    return Number(newest.lastNs) / 1e6 > fromMs + (isSame ? longestBeliefMs : 0) && newest;
  }, stuckMs);
  if (leader === undefined) {
    throw new StuckError(`liveness: nobody works since ${since}, given up on`);
  }
  return leader;
}
