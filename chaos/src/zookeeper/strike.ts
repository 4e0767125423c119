import type { TestMember, TestProxy } from '@incumbent/zookeeper/testing';
import { StuckError } from './auditor.ts';
import type { NetworkFault, Round, ServerFault, Strike } from './plan.ts';
import type { Arena, Player } from './player.ts';
import { monotonicMs, pause } from './time.ts';

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
  if (server !== undefined) strikes.push(strikeServers(server, players, arena));
  await Promise.all(strikes);
  try {
    await arena.ensemble.waitForQuorum({ atLeast: 3, timeoutMs: 90_000 });
  } catch (error) {
    throw new StuckError(`the servers do not come back: ${(error as Error).message}`);
  }
}

async function strikeNetwork(player: Player, strike: Strike<NetworkFault>): Promise<void> {
  const { fault, forMs, choice } = strike;
  const hit = fault === 'silence one' ? [player.proxy] : player.proxies;
  for (const proxy of hit) breakProxy(proxy, fault, choice);
  await pause(forMs);
  await Promise.all(hit.map((proxy) => heal(proxy)));
}

function breakProxy(proxy: TestProxy, fault: NetworkFault, choice: number): void {
  if (fault === 'cut') proxy.cut();
  else if (fault === 'drop replies') proxy.dropReplies();
  else if (fault === 'half a frame') proxy.cutAfterBytes(1 + Math.floor(choice * 300));
  else if (fault === 'refuse') proxy.refuse();
  else proxy.silence();
}

/** Another process may have the port of a proxy that refused, for a moment. */
async function heal(proxy: TestProxy): Promise<void> {
  const endMs = monotonicMs() + 30_000;
  for (;;) {
    try {
      return await proxy.pass();
    } catch (error) {
      if (monotonicMs() > endMs) throw new StuckError(`a proxy's port is taken: ${error}`);
      await pause(100);
    }
  }
}

async function strikeServers(
  { fault, afterMs, forMs, choice }: Strike<ServerFault>,
  players: readonly Player[],
  arena: Arena,
): Promise<void> {
  const { ensemble, log } = arena;
  await pause(afterMs);
  const leader = await ensemble.leader();
  const followers = ensemble.members.filter((member) => member !== leader);
  const follower = followers[choice < 0.5 ? 0 : 1] as TestMember;
  log(`servers: ${fault} for ${forMs} ms; ${leader.id} leads, ${follower.id} is chosen`);
  const killed = async (...members: TestMember[]) => {
    await Promise.all(members.map((member) => member.kill()));
    await pause(forMs);
    await Promise.all(members.map((member) => member.restart()));
  };
  const frozen = async (member: TestMember) => {
    await member.freeze();
    await pause(forMs);
    member.thaw();
  };
  switch (fault) {
    case 'kill leader':
      await killed(leader);
      break;
    case 'kill follower':
      await killed(follower);
      break;
    case 'lose quorum':
      await killed(leader, follower);
      break;
    case 'freeze leader':
      await frozen(leader);
      break;
    case 'freeze follower':
      await frozen(follower);
      break;
    case 'stop leader':
      await leader.stop();
      await pause(forMs);
      await leader.restart();
      break;
    case 'rolling restart':
      await ensemble.rollingRestart({ timeoutMs: 90_000 });
      break;
    case 'cut everybody': {
      const proxies = players.flatMap((player) => player.proxies);
      for (const proxy of proxies) proxy.cut();
      await pause(forMs);
      await Promise.all(proxies.map((proxy) => heal(proxy)));
      break;
    }
    default:
      fault satisfies never;
  }
  log(`servers: ${fault} is over`);
}
