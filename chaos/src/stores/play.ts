import type { TermActivity } from '@incumbent/cli/trial';
import { firstLeader, somebodyWorks } from '../ensemble/play.ts';
import { leftBehind } from '../play-round.ts';
import type { Round } from './plan.ts';
import type { Arena } from './strike.ts';
import { strikeAll } from './strike.ts';

export interface Outcome {
  readonly before: TermActivity;
  readonly leader: TermActivity;
  /** The longest time in which nobody worked. */
  readonly idleMs: number;
  readonly problems: readonly string[];
}

/**
 * Does what the round plans, and waits until all is healed and somebody works.
 * @throws StuckError
 */
export async function playRound(arena: Arena, round: Round, buried: Set<bigint>): Promise<Outcome> {
  const { log, liveness, stage } = arena;
  log.read();
  const before = await firstLeader(arena);
  liveness.takeIdle();
  await strikeAll(arena, round);
  await stage.ready();
  const leader = await somebodyWorks(arena, `round ${round.number}`, before.token);
  return { before, leader, idleMs: liveness.takeIdle(), problems: leftBehind(log, leader, buried) };
}
