/** Which cuts are made in a run, and which elections are held while they are. */

/** The libraries of A and B. In the last two they share an election in kazoo's layout. */
export type Who = 'ours' | 'kazoo' | 'ours before kazoo' | 'kazoo before ours';

/**
 * - `cut`: A leads, then its server is cut off.
 * - `deleted after`, `deleted before`: and an operator on the other side deletes A's place by hand.
 * - `quiet`: A has sent nothing but pings for more than half its timeout when its predecessor
 *   resigns. Its server is struck the moment A's first check is answered. This election says when
 *   the round's fault comes.
 * - `quiet, killed`: the same, but the predecessor is killed, so A waits when it is struck.
 */
export type Scenario = 'cut' | 'deleted after' | 'deleted before' | 'quiet' | 'quiet, killed';

export interface ElectionPlan {
  readonly who: Who;
  readonly scenario: Scenario;
  readonly timeoutMs: number;
}

export interface RoundPlan {
  /** The fault of A's server. */
  readonly fault: 'cut' | 'freeze';
  /** At most one is `quiet`. */
  readonly elections: readonly ElectionPlan[];
}

export const shortestTimeoutMs = 4_000;
export const usualTimeoutMs = 10_000;

/** One run of everything. One cut serves many elections: each has processes of its own. */
export function planRun(
  timeoutsMs: readonly number[],
  kazoo: boolean,
  length: 'short' | 'long',
): readonly RoundPlan[] {
  const ours = (scenario: Scenario, timeoutMs: number): ElectionPlan => {
    return { who: 'ours', scenario, timeoutMs };
  };
  const each = (scenario: Scenario): ElectionPlan[] =>
    timeoutsMs.map((timeoutMs) => ours(scenario, timeoutMs));
  const peers = kazoo
    ? timeoutsMs.map((timeoutMs): ElectionPlan => ({ who: 'kazoo', scenario: 'cut', timeoutMs }))
    : [];
  const shortest = Math.min(...timeoutsMs);
  const mixed = (kazoo ? (['ours before kazoo', 'kazoo before ours'] as const) : []).map(
    (who): ElectionPlan => ({ who, scenario: 'cut', timeoutMs: shortest }),
  );
  const all: RoundPlan[] = [
    {
      fault: 'cut',
      elections: [ours('quiet', shortest), ...each('cut'), ...each('deleted after'), ...peers],
    },
    { fault: 'freeze', elections: [ours('quiet', shortest)] },
  ];
  if (length === 'short') return all;
  const longer = timeoutsMs.filter((timeoutMs) => timeoutMs !== shortest);
  return [
    ...all,
    ...longer.flatMap((timeoutMs): RoundPlan[] => [
      { fault: 'cut', elections: [ours('quiet', timeoutMs)] },
      { fault: 'freeze', elections: [ours('quiet', timeoutMs)] },
    ]),
    { fault: 'cut', elections: [...each('deleted before'), ...mixed] },
    { fault: 'cut', elections: [ours('quiet, killed', shortest)] },
  ];
}
