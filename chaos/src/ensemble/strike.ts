import type { CandidateProcess, FencedLog } from '@incumbent/cli/trial';
import { waitUntil } from '@incumbent/cli/trial';
import type { TestProxy } from '@incumbent/zookeeper/testing';
import { StuckError } from '../stuck.ts';
import { strikeProxies } from '../zookeeper/strike-network.ts';
import { chooseServers, strikeServers } from '../zookeeper/strike-servers.ts';
import { monotonicMs, pause } from '../zookeeper/time.ts';
import type { Crew, Seat } from './crew.ts';
import type { Liveness } from './liveness.ts';
import type { Loss } from './network.ts';
import type { Places } from './places.ts';
import type {
  LeaderFault,
  PartingFault,
  Round,
  ServerFault,
  Strike,
  WaitingFault,
} from './plan.ts';
import type { Servers } from './servers.ts';

export interface Arena {
  readonly crew: Crew;
  readonly servers: Servers;
  readonly places: Places;
  readonly log: FencedLog;
  readonly liveness: Liveness;
  /** For faults of the servers: the longest of all sessions. */
  readonly longestLeaseMs: number;
  readonly longestBeliefMs: number;
  /** An operator asks the leader to go. Rejects when the command fails. */
  readonly vacate: () => Promise<void>;
  readonly note: (line: string) => void;
}

/** Beyond every bound: what never comes ends the run. */
export const stuckMs = 60_000;

/** A client that finds another server does so at once. */
const longestMoveMs = 500;

/** Does everything that a round plans. Resolves when all is healed. */
export async function strikeAll(arena: Arena, round: Round): Promise<void> {
  const { leader, waiting, server, restartMs } = round;
  await Promise.all([
    leader && strikeLeader(arena, leader, restartMs),
    waiting && strikeWaiting(arena, waiting, restartMs),
    server && strikeBehind(arena, server),
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
  const { crew, log, places } = arena;
  const leader = log.judge.newest?.candidate;
  const free = crew.free.filter(({ id, hasEnded }) => id !== leader && !hasEnded);
  const waiting = (await places.list()).flatMap((place) => {
    const candidate = free.find(({ id }) => id === place.candidate);
    return candidate === undefined ? [] : [{ candidate, token: place.czxid }];
  });
  // Whoever is next matters most.
  const index = strike.choice < 0.6 ? 0 : Math.floor(strike.choice * waiting.length);
  const victim = waiting[index];
  if (victim === undefined) return arena.note(`nobody to ${strike.fault} while it waits`);
  await strikeCandidate(arena, victim.candidate, strike, restartMs, victim);
}

async function strikeCandidate(
  arena: Arena,
  victim: CandidateProcess,
  { fault, length, choice }: Strike<LeaderFault>,
  restartMs: number,
  { token, group }: { readonly token: bigint; readonly group?: number },
): Promise<void> {
  const { crew, liveness } = arena;
  const { fleet } = crew;
  const seat = crew.seatOf(victim);
  const forMs = Math.round(length * seat.leaseMs);
  arena.note(`${victim.id} (token ${token}): ${fault} for ${forMs} ms`);
  const struck = () => liveness.struck(monotonicMs());
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
        return kill({ supervisor: true, guard: true, ...(group === undefined ? {} : { group }) });
      case 'kill next':
        return killNext(arena, victim, choice, restartMs);
      case 'freeze supervisor':
        return freeze(true, false);
      case 'freeze guard':
        return freeze(false, true);
      case 'freeze both':
        return freeze(true, true);
      case 'withdraw':
        return fleet.withdraw(victim, crew.recruit(seat), restartMs);
      case 'vacate':
        return arena.vacate().catch((error: Error) => arena.note(`refused: ${error.message}`));
      case 'delete place':
        return deletePlace(arena, token);
      case 'freeze and delete': {
        const thawed = freeze(true, true);
        await deletePlace(arena, token);
        return thawed;
      }
      case 'cut':
      case 'silence':
      case 'drop replies':
        return strikeProxies(seat.proxies, fault, { forMs, choice });
      case 'strand':
        return strand(arena, seat, forMs, choice);
      default:
        return fault satisfies never;
    }
  };
  await crew.alone(victim, async () => {
    struck();
    await act();
    // What was deleted or asked for was so at the end.
    if (forMs === 0) struck();
  });
  arena.note(`${victim.id}: ${fault} is over`);
}

/** Kills the leader, and the next one as soon as that reports to lead, so before its program works. */
async function killNext(
  { crew: { fleet }, liveness }: Arena,
  first: CandidateProcess,
  choice: number,
  restartMs: number,
): Promise<void> {
  let isOver = false;
  const stopListening = fleet.onLeading((_token, next) => {
    if (next === first) return;
    stopListening();
    setTimeout(() => {
      fleet.kill(next, { supervisor: true, guard: choice < 0.5 }, restartMs);
      liveness.struck(monotonicMs());
      isOver = true;
    }, choice * 80);
  });
  fleet.kill(first, { supervisor: true, guard: false }, restartMs);
  const isKilled = await waitUntil(() => isOver, stuckMs);
  if (!isKilled) throw new StuckError(`liveness: nobody took over from ${first.id}`);
}

async function deletePlace(arena: Arena, token: bigint): Promise<void> {
  try {
    const there = await arena.places.delete(token);
    arena.note(there ? `place ${token} is deleted` : `place ${token} is not there`);
  } catch (error) {
    if (!(error instanceof StuckError)) throw error;
    arena.note(`place ${token} could not be deleted: ${error.message}`);
  }
  arena.liveness.struck(monotonicMs());
}

/** A candidate is left with one follower, and that one answers it without a quorum. */
async function strand(arena: Arena, seat: Seat, forMs: number, choice: number): Promise<void> {
  const { servers, note } = arena;
  const { members } = servers.ensemble;
  const connected = () => members[seat.proxies.findIndex(({ counters }) => counters.open > 0)];
  const { leader, follower } = await chooseServers(servers.ensemble, choice);
  let server = connected();
  if (server === undefined || server === leader) {
    // Cut off, a server that leads serves nobody after a while; and it would be elected anew.
    server = follower;
    const others = proxiesBut(seat, members.indexOf(server));
    for (const proxy of others) proxy.cut();
    await waitUntil(() => connected() === server, longestMoveMs);
  }
  note(`it is left with server ${server.id}; ${leader.id} leads`);
  servers.part(server, 'both');
  await strikeProxies(proxiesBut(seat, members.indexOf(server)), 'silence', { forMs, choice });
  servers.heal(server);
}

function proxiesBut({ proxies }: Seat, index: number): readonly TestProxy[] {
  return proxies.filter((_proxy, i) => i !== index);
}

async function strikeBehind(arena: Arena, strike: Strike<ServerFault>): Promise<void> {
  const { crew, servers, liveness, note, longestLeaseMs } = arena;
  const { fault, length, choice } = strike;
  const forMs = Math.round(length * longestLeaseMs);
  await pause(strike.afterMs);
  const { ensemble } = servers;
  if (fault === 'cut everybody') {
    note(`servers: ${fault} for ${forMs} ms`);
    liveness.struck(monotonicMs());
    const proxies = crew.seats.flatMap((seat) => seat.proxies);
    return strikeProxies(proxies, 'cut', { forMs, choice });
  }
  if (!isParting(fault)) return strikeServers(ensemble, fault, { forMs, choice }, note);
  const { leader, follower } = await chooseServers(ensemble, choice);
  const member = fault === 'part follower' ? follower : leader;
  note(`servers: ${fault} (${member.id}) for ${forMs} ms`);
  servers.part(member, losses[fault]);
  await pause(forMs);
  servers.heal(member);
  note(`servers: ${fault} is over`);
}

const losses: Readonly<Record<PartingFault, Loss>> = {
  'part leader': 'both',
  'part follower': 'both',
  'deafen leader': 'in',
  'mute leader': 'out',
};

function isParting(fault: ServerFault): fault is PartingFault {
  return Object.hasOwn(losses, fault);
}
