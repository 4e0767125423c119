import type { CandidateProcess, FencedLog } from '@incumbent/cli/trial';
import { waitUntil } from '@incumbent/cli/trial';
import type { Crew } from '../ensemble/crew.ts';
import type { Liveness } from '../ensemble/liveness.ts';
import { strikeProxies } from '../zookeeper/strike-network.ts';
import { monotonicMs, pause } from '../zookeeper/time.ts';
import type { LeaderFault, Round, Strike, WaitingFault } from './plan.ts';
import type { Stage } from './stage.ts';

export interface Arena {
  readonly crew: Crew;
  readonly stage: Stage;
  readonly log: FencedLog;
  readonly liveness: Liveness;
  readonly longestLeaseMs: number;
  readonly longestBeliefMs: number;
  /** An operator asks the leader to go. Rejects when the command fails. */
  readonly vacate: () => Promise<void>;
  readonly note: (line: string) => void;
}

/** Does everything that a round plans. Resolves when all is healed. */
export async function strikeAll(arena: Arena, round: Round): Promise<void> {
  const { leader, waiting, server, restartMs } = round;
  await Promise.all([
    leader && strikeLeader(arena, leader, restartMs),
    waiting && strikeWaiting(arena, waiting, restartMs),
    server && strikeServers(arena, server),
  ]);
}

async function strikeLeader(
  arena: Arena,
  strike: Strike<LeaderFault>,
  restartMs: number,
): Promise<void> {
  await pause(strike.afterMs);
  const { crew, log } = arena;
  const newest = log.judge.newest;
  // Its report may come after its first effect.
  const victim = newest && (await waitUntil(() => crew.fleet.leaderOf(newest.token), 5_000));
  if (newest === undefined || victim === undefined || victim.hasEnded || !crew.isFree(victim)) {
    arena.note(`nobody to ${strike.fault}`);
    return;
  }
  await strikeCandidate(arena, victim, strike, restartMs, newest);
}

async function strikeWaiting(
  arena: Arena,
  strike: Strike<WaitingFault>,
  restartMs: number,
): Promise<void> {
  await pause(strike.afterMs);
  const { crew, log } = arena;
  const leader = log.judge.newest?.candidate;
  const free = crew.free.filter(({ id, hasEnded }) => id !== leader && !hasEnded);
  const victim = free[Math.floor(strike.choice * free.length)];
  if (victim === undefined) return arena.note(`nobody to ${strike.fault} while it waits`);
  await strikeCandidate(arena, victim, strike, restartMs);
}

async function strikeCandidate(
  arena: Arena,
  victim: CandidateProcess,
  { fault, length, choice }: Strike<LeaderFault>,
  restartMs: number,
  term?: { readonly token: bigint; readonly group: number },
): Promise<void> {
  const { crew, liveness, stage } = arena;
  const { fleet } = crew;
  const seat = crew.seatOf(victim);
  const forMs = Math.round(length * seat.leaseMs);
  arena.note(`${victim.id}: ${fault} for ${forMs} ms`);
  const kill = (who: Parameters<typeof fleet.kill>[1]) => fleet.kill(victim, who, restartMs);
  const freeze = async (supervisor: boolean, guard: boolean) => {
    await fleet.freeze(victim, { supervisor, guard }, forMs);
  };
  const act = async (): Promise<void> => {
    switch (fault) {
      case 'kill supervisor':
        return kill({ supervisor: true, guard: false });
      case 'kill guard':
        return kill({ supervisor: false, guard: true });
      case 'kill both':
        return kill({ supervisor: true, guard: true });
      case 'kill all':
        return kill({
          supervisor: true,
          guard: true,
          ...(term === undefined ? {} : { group: term.group }),
        });
      case 'freeze supervisor':
        return freeze(true, false);
      case 'freeze guard':
        return freeze(false, true);
      case 'freeze both':
        return freeze(true, true);
      case 'freeze and delete': {
        const thawed = freeze(true, true);
        if (term !== undefined) await stage.evict?.(term.token);
        liveness.struck(monotonicMs());
        return thawed;
      }
      case 'withdraw':
        return fleet.withdraw(victim, crew.recruit(seat), restartMs);
      case 'vacate':
        return arena.vacate().catch((error: Error) => arena.note(`refused: ${error.message}`));
      case 'cut':
      case 'silence':
      case 'drop replies':
        return strikeProxies(seat.proxies, fault, { forMs, choice });
      case 'strand':
        return stage.strand?.(seat.proxies, forMs, choice);
      default:
        return fault satisfies never;
    }
  };
  await crew.alone(victim, async () => {
    liveness.struck(monotonicMs());
    await act();
    // What was asked for was so at the end.
    if (forMs === 0) liveness.struck(monotonicMs());
  });
  arena.note(`${victim.id}: ${fault} is over`);
}

async function strikeServers(arena: Arena, strike: Strike<string>): Promise<void> {
  const { crew, stage, liveness, note, longestLeaseMs } = arena;
  const { fault, length, choice } = strike;
  const forMs = Math.round(length * longestLeaseMs);
  await pause(strike.afterMs);
  note(`servers: ${fault} for ${forMs} ms`);
  liveness.struck(monotonicMs());
  if (fault === 'cut everybody') {
    const proxies = crew.seats.flatMap((seat) => seat.proxies);
    await strikeProxies(proxies, 'cut', { forMs, choice });
  } else {
    await stage.strike(fault, forMs, choice);
  }
  note(`servers: ${fault} is over`);
}
