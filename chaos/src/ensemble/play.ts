import type { TermActivity } from '@incumbent/cli/trial';
import { waitUntil } from '@incumbent/cli/trial';
import { inSeconds } from '@incumbent/servers';
import { leftBehind } from '../file-store/play-round.ts';
import type { Overruns } from '../harness/overruns.ts';
import type { Played } from '../harness/report.ts';
import type { Round } from '../harness/rounds.ts';
import { faultsOf } from '../harness/rounds.ts';
import type { Field } from '../harness/strike-candidates.ts';
import { StuckError } from '../harness/stuck.ts';
import { monotonicMs } from '../harness/time.ts';
import type { Verdict } from '../harness/verdict.ts';

/** Beyond every bound: what never comes ends the run. */
export const stuckMs = 60_000;

/** Resolves when somebody works. @throws StuckError */
export async function firstLeader({ log }: Pick<Field, 'log'>): Promise<TermActivity> {
  const first = await waitUntil(() => log.judge.newest, stuckMs);
  if (first === undefined) throw new StuckError('liveness: nobody has ever led');
  return first;
}

/** How many rounds passed and failed, and what became of the leader by what was done. */
export class Score {
  readonly played: Played<string>[] = [];
  passed = 0;
  failed = 0;

  count(isBad: boolean): void {
    if (isBad) this.failed += 1;
    else this.passed += 1;
  }
}

export interface Match<AnyRound extends Round> {
  readonly rounds: Iterable<AnyRound>;
  /** Does what the round plans. Resolves when all is healed. */
  readonly strike: (round: AnyRound) => Promise<void>;
  readonly score: Score;
  readonly verdict: Verdict;
  readonly overruns: Overruns;
  readonly say: (line: string) => void;
  /** No round begins after this. */
  readonly deadlineMs: number;
}

/** @throws StuckError */
export async function playRounds<AnyRound extends Round>(
  field: Field,
  { rounds, strike, score, verdict, overruns, say, deadlineMs }: Match<AnyRound>,
): Promise<void> {
  const buried = new Set<bigint>();
  for (const round of rounds) {
    field.note(`round ${round.number}`);
    const outcome = await playRound(field, round, buried, () => strike(round));
    const isNew = outcome.leader.token > outcome.before.token;
    for (const fault of faultsOf(round)) {
      score.played.push({ fault, takeoverMs: isNew ? outcome.idleMs : undefined });
    }
    verdict.blame(...outcome.problems, ...overruns.judge(field.log.judge));
    say(progress(round, outcome));
    score.count(verdict.tell());
    if (monotonicMs() > deadlineMs) break;
  }
}

interface Outcome {
  readonly before: TermActivity;
  readonly leader: TermActivity;
  /** The longest time in which nobody worked. */
  readonly idleMs: number;
  readonly problems: readonly string[];
}

/**
 * Plays a round, and waits until somebody works.
 * @param strike does what the round plans; resolves when all is healed
 * @throws StuckError
 */
async function playRound(
  field: Field,
  round: Round,
  buried: Set<bigint>,
  strike: () => Promise<void>,
): Promise<Outcome> {
  const { log, liveness } = field;
  log.read();
  const before = await firstLeader(field);
  liveness.takeIdle();
  await strike();
  const leader = await somebodyWorks(field, `round ${round.number}`, before.token);
  return { before, leader, idleMs: liveness.takeIdle(), problems: leftBehind(log, leader, buried) };
}

/** One line about a round that was played. */
function progress(round: Round, { before, leader, idleMs }: Outcome): string {
  const from = `${before.candidate} (term ${before.token})`;
  const to =
    leader.token === before.token
      ? 'goes on'
      : `-> ${leader.candidate} (term ${leader.token}), nobody for ${inSeconds(idleMs)}`;
  return `${String(round.number).padStart(4)}  ${faultsOf(round).join(', ').padEnd(52)} ${from} ${to}`;
}

/**
 * From now on: somebody of a newer term than `token`, or whoever still does when the belief is over
 * that it had until now.
 * @throws StuckError
 */
export async function somebodyWorks(
  { log, longestBeliefMs }: Pick<Field, 'log' | 'longestBeliefMs'>,
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
