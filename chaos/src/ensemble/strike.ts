import { waitUntil } from '@incumbent/cli/trial';
import type { TestProxy } from '@incumbent/zookeeper-testing';
import type { Seat } from '../harness/crew.ts';
import type { Loss } from '../harness/network.ts';
import type { Strike } from '../harness/rounds.ts';
import type { Blow, Blows, Field } from '../harness/strike-candidates.ts';
import {
  strikeCandidate,
  strikeLeader,
  usualBlows,
  whoWaits,
} from '../harness/strike-candidates.ts';
import { strikeProxies } from '../harness/strike-network.ts';
import { StuckError } from '../harness/stuck.ts';
import { monotonicMs, pause } from '../harness/time.ts';
import { chooseServers, strikeServers } from '../zookeeper/strike-servers.ts';
import type { Places } from './places.ts';
import type { LeaderFault, PartingFault, Round, ServerFault, WaitingFault } from './plan.ts';
import { stuckMs } from './play.ts';
import type { Servers } from './servers.ts';

export interface Arena extends Field {
  readonly servers: Servers;
  readonly places: Places;
}

/** A client that finds another server does so at once. */
const longestMoveMs = 500;

const blows: Blows<LeaderFault, Arena> = {
  ...usualBlows,
  'kill next': killNext,
  'delete place': deletePlace,
  async 'freeze and delete'(arena, blow) {
    const thawed = usualBlows['freeze both'](arena, blow);
    await deletePlace(arena, blow);
    return thawed;
  },
  strand,
};

/** Does everything that a round plans. Resolves when all is healed. */
export async function strikeAll(arena: Arena, round: Round): Promise<void> {
  const { leader, waiting, server, restartMs } = round;
  await Promise.all([
    leader && strikeLeader(arena, leader, restartMs, blows),
    waiting && strikeWaiting(arena, waiting, restartMs),
    server && strikeBehind(arena, server),
  ]);
}

async function strikeWaiting(
  arena: Arena,
  strike: Strike<WaitingFault>,
  restartMs: number,
): Promise<void> {
  await pause(strike.afterMs);
  const free = whoWaits(arena);
  const waiting = (await arena.places.list()).flatMap((place) => {
    const candidate = free.find(({ id }) => id === place.candidate);
    return candidate === undefined ? [] : [{ candidate, token: place.czxid }];
  });
  // The next in the queue matters most.
  const index = strike.choice < 0.6 ? 0 : Math.floor(strike.choice * waiting.length);
  const victim = waiting[index];
  if (victim === undefined) return arena.note(`nobody to ${strike.fault} while it waits`);
  await strikeCandidate(arena, victim.candidate, strike, restartMs, blows, victim);
}

/** Kills the leader, and the next one as soon as that reports to lead, so before its program works. */
async function killNext(
  { crew: { fleet }, liveness }: Arena,
  { victim: first, choice, restartMs }: Blow,
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

async function deletePlace(arena: Arena, { token }: Blow): Promise<void> {
  if (token === undefined) return;
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
async function strand(arena: Arena, { seat, forMs, choice }: Blow): Promise<void> {
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
