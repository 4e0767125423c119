import { monotonicMs, pause } from '../harness/time.ts';
import type { Arena } from './arena.ts';
import { primaryOf } from './arena.ts';
import type { RedisNode } from './nodes.ts';
import { Operator } from './operator.ts';

const lookEveryMs = 100;

/** Everything runs and reaches everything. */
export async function heal({ nodes, managers, clients }: Arena): Promise<void> {
  for (const node of nodes) {
    node.thaw();
    await node.start(false);
    await node.unlock();
    await node.relink();
  }
  await managers.heal();
  await Promise.all(clients.map((client) => client.heal()));
}

/**
 * Whether all is well again: every client writes, there is one primary, all others follow it, and
 * what is published is the truth.
 * @param boundMs of the time since `fromMs` or since ZooKeeper serves, whichever is later
 * @returns what is not, when the time is over; nothing when all is well
 */
export async function settle(
  arena: Arena,
  fromMs: number,
  boundMs: (fromMs: number) => number,
): Promise<readonly string[]> {
  const operator = new Operator(arena, fromMs);
  const arrived: Arrived = new Map();
  for (;;) {
    const wrong = await lookAll(arena, fromMs, arrived);
    if (wrong.length === 0) return [];
    await operator.decide();
    const sinceMs = Math.max(fromMs, arena.servers.lastUpMs);
    if (monotonicMs() - sinceMs > boundMs(sinceMs)) return wrong;
    await pause(lookEveryMs);
  }
}

/**
 * How much of its primary's stream each replica had at the last look, while it was connected. Redis
 * 7.0 counts a replica that has taken a whole copy for `min-replicas-to-write`, and answers its
 * clients, before it sends anything more to it. That lasts up to a second, where the process that
 * wrote the copy ends late. So what counts is not that a replica is connected, but that more
 * arrives there.
 */
type Arrived = Map<RedisNode, number>;

async function lookAll(arena: Arena, fromMs: number, arrived: Arrived): Promise<readonly string[]> {
  const { clients, records, auditor, nodes } = arena;
  const wrong: string[] = [];
  for (const { name, wroteMs } of clients) {
    if (wroteMs < fromMs) wrong.push(`nobody is stuck: ${name} has not written again`);
  }
  if (records.last === undefined || records.last.primary === null) {
    return [...wrong, 'one primary: the record names none'];
  }
  const primary = primaryOf(arena);
  for (const node of nodes) {
    try {
      const { isPrimary, follows, isLinked, offset } = await node.role();
      const before = arrived.get(node);
      arrived.delete(node);
      if (node === primary) {
        if (!isPrimary) wrong.push(`one primary: ${node.address} is a replica of ${follows}`);
      } else if (isPrimary) wrong.push(`one primary: ${node.address} is one, too`);
      else if (follows !== primary.address || !isLinked) {
        const how = isLinked ? 'follows' : 'is not connected to';
        wrong.push(`replicas follow: ${node.address} ${how} ${follows}`);
      } else {
        arrived.set(node, offset);
        if (before === undefined || offset <= before) {
          wrong.push(`replicas follow: nothing arrives at ${node.address}`);
        }
      }
    } catch (error) {
      wrong.push(`replicas follow: ${node.address}: ${String(error)}`);
    }
  }
  const published = await auditor.nodes();
  const others = nodes.filter((node) => node !== primary).map(({ address }) => address);
  const truth =
    published?.master === primary.address &&
    published.unavailable.length === 0 &&
    [...published.slaves].sort().join() === [...others].sort().join();
  if (!truth) wrong.push(`what is published is true: nodes holds ${JSON.stringify(published)}`);
  return wrong;
}
