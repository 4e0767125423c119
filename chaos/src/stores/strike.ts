import type { Strike } from '../harness/rounds.ts';
import type { Blows, Field } from '../harness/strike-candidates.ts';
import {
  strikeCandidate,
  strikeLeader,
  usualBlows,
  whoWaits,
} from '../harness/strike-candidates.ts';
import { strikeProxies } from '../harness/strike-network.ts';
import { monotonicMs, pause } from '../harness/time.ts';
import type { LeaderFault, Round, WaitingFault } from './plan.ts';
import type { Stage } from './stage.ts';

export interface Arena extends Field {
  readonly stage: Stage;
}

const blows: Blows<LeaderFault, Arena> = {
  ...usualBlows,
  async 'freeze and delete'(arena, blow) {
    const thawed = usualBlows['freeze both'](arena, blow);
    if (blow.token !== undefined) await arena.stage.evict?.(blow.token);
    arena.liveness.struck(monotonicMs());
    return thawed;
  },
  async strand({ stage }, { seat, forMs, choice }) {
    await stage.strand?.(seat.proxies, forMs, choice);
  },
};

/** Does everything that a round plans. Resolves when all is healed. */
export async function strikeAll(arena: Arena, round: Round): Promise<void> {
  const { leader, waiting, server, restartMs } = round;
  await Promise.all([
    leader && strikeLeader(arena, leader, restartMs, blows),
    waiting && strikeWaiting(arena, waiting, restartMs),
    server && strikeServers(arena, server),
  ]);
}

async function strikeWaiting(
  arena: Arena,
  strike: Strike<WaitingFault>,
  restartMs: number,
): Promise<void> {
  await pause(strike.afterMs);
  const waiting = whoWaits(arena);
  const victim = waiting[Math.floor(strike.choice * waiting.length)];
  if (victim === undefined) return arena.note(`nobody to ${strike.fault} while it waits`);
  await strikeCandidate(arena, victim, strike, restartMs, blows);
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
