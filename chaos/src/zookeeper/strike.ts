import { strikeProxies } from '../harness/strike-network.ts';
import { pause } from '../harness/time.ts';
import type { NetworkFault, Round, ServerFault, Strike } from './plan.ts';
import type { Arena, Player } from './player.ts';
import { allServe, strikeServers } from './strike-servers.ts';

/** Does everything that a round plans. Resolves when all is healed and all servers serve. */
export async function strikeAll(
  round: Round,
  players: readonly Player[],
  arena: Arena,
): Promise<void> {
  const { server, clients } = round;
  const strikes = clients.map(async ({ client, ...strike }) => {
    const player = players[client] as Player;
    await pause(strike.afterMs);
    arena.log(`${player.name}: ${strike.fault} for ${strike.forMs} ms`);
    await strikeNetwork(player, strike);
    arena.log(`${player.name}: ${strike.fault} is over`);
  });
  if (server !== undefined) strikes.push(strikeBehind(server, players, arena));
  await Promise.all(strikes);
  await allServe(arena.ensemble);
}

async function strikeNetwork(player: Player, strike: Strike<NetworkFault>): Promise<void> {
  const hit = strike.fault === 'silence one' ? [player.proxy] : player.proxies;
  await strikeProxies(hit, strike.fault, strike);
}

async function strikeBehind(
  { fault, afterMs, ...how }: Strike<ServerFault>,
  players: readonly Player[],
  { ensemble, log }: Arena,
): Promise<void> {
  await pause(afterMs);
  if (fault !== 'cut everybody') return strikeServers(ensemble, fault, how, log);
  log(`servers: ${fault} for ${how.forMs} ms`);
  const proxies = players.flatMap((player) => player.proxies);
  await strikeProxies(proxies, 'cut', how);
  log(`servers: ${fault} is over`);
}
