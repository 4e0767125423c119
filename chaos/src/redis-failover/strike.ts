import { pause, until } from '../harness/time.ts';
import type { Arena } from './arena.ts';
import { primaryOf } from './arena.ts';
import type { Client } from './clients.ts';
import type { Manager, Waiting } from './managers.ts';
import type { RedisNode } from './nodes.ts';
import type { AtStep, FaultOf, Round, Strike } from './plan.ts';
import { isAtStep } from './plan.ts';

/** A strike at a step of a move may wait for ever: there may be no move. */
const atWithinMs = 6_000;
/** For another one to take over; who does not come back empty comes back with its data. */
const takeOverMs = 25_000;
/** Between what an evicted manager does, and what its successor does next. */
const crossingMs = 300;

/** The nodes that were struck, as far as data are concerned. */
export interface Struck {
  readonly nodes: Set<RedisNode>;
  primary: boolean;
  cameBackEmpty: boolean;
}

/** Does everything that a round plans. Resolves when all of it is over. */
export async function strikeAll(arena: Arena, { strikes }: Round): Promise<Struck> {
  const { primary, replica, manager, client, server } = strikes;
  const struck: Struck = { nodes: new Set(), primary: false, cameBackEmpty: false };
  await Promise.all([
    primary && strikePrimary(arena, primary, struck),
    replica && strikeReplica(arena, replica, struck),
    manager && strikeManager(arena, manager, struck),
    client && strikeClient(arena, client),
    server && strikeServer(arena, server),
  ]);
  return struck;
}

/** For as long as the plan has it. */
async function last(
  { records }: Arena,
  { forMs, untilMovedMs }: Pick<Strike, 'forMs' | 'untilMovedMs'>,
): Promise<void> {
  if (untilMovedMs === undefined) return pause(forMs);
  const term = records.last?.term ?? 0;
  await until(forMs, () => {
    const { last: record } = records;
    return record !== undefined && record.term > term && record.primary !== null;
  });
  await pause(untilMovedMs);
}

async function strikePrimary(
  arena: Arena,
  strike: Strike<FaultOf<'primary'>>,
  struck: Struck,
): Promise<void> {
  const { fault, afterMs, forMs, choice, step } = strike;
  const { note } = arena;
  await pause(afterMs);
  const node = primaryOf(arena);
  note(`strike: primary ${node.address}: ${fault} for ${forMs} ms`);
  if (fault !== 'fail over' && fault !== 'fail over to' && fault !== 'promoted by hand') {
    struck.primary = true;
    struck.nodes.add(node);
  }
  switch (fault) {
    case 'kill':
    case 'restart':
      await node.kill();
      await last(arena, strike);
      await node.start(false);
      break;
    case 'restart empty':
      struck.cameBackEmpty = true;
      await node.kill();
      await pause(forMs);
      await node.start(true);
      break;
    case 'kill, back empty': {
      const { term = 0 } = arena.records.last ?? {};
      await node.kill();
      await last(arena, { forMs: takeOverMs, untilMovedMs: forMs });
      const isReplaced = (arena.records.last?.term ?? 0) > term;
      await node.start(isReplaced);
      break;
    }
    case 'kill, back at': {
      const waits = arena.managers.waitAt(step, atWithinMs);
      await node.kill();
      const waiting = await waits;
      await node.start(false);
      await pause(forMs);
      waiting?.goOn();
      break;
    }
    case 'freeze':
      await node.freeze();
      await last(arena, strike);
      node.thaw();
      break;
    case 'hide':
      await hide(arena, arena.managers.all, node, strike);
      break;
    case 'fail over':
    case 'fail over to':
      await failOver(arena, fault === 'fail over' ? undefined : replicaBy(arena, choice), choice);
      break;
    case 'kill, promoted by hand':
      await node.kill();
      await promoteByHand(arena, replicaBy(arena, choice), choice, struck);
      await pause(forMs);
      await node.start(false);
      break;
    case 'promoted by hand':
      await promoteByHand(arena, replicaBy(arena, choice), choice, struck);
      break;
    default:
      fault satisfies never;
  }
  note(`strike: primary ${node.address}: ${fault} is over`);
}

async function hide(
  arena: Arena,
  managers: readonly Manager[],
  { address }: RedisNode,
  strike: Strike,
): Promise<void> {
  arena.note(`hidden from ${managers.map(({ name }) => name).join(', ')}: ${address}`);
  // Half of the time they are told so.
  for (const { wires } of managers) wires.cutNode(address, strike.choice < 0.5);
  await last(arena, strike);
  await Promise.all(managers.map(({ wires }) => wires.healNode(address)));
}

async function failOver(
  { clients, note }: Arena,
  node: RedisNode | undefined,
  choice: number,
): Promise<void> {
  const client = clients[Math.floor(choice * clients.length)] as Client;
  const order = { order: 'failover', node: node?.address } as const;
  const { done, text } = await client.process.ask(order, 'requested');
  note(`failover that ${client.name} asked for ${done ? 'done' : 'not done'}: ${text}`);
}

/** The data of a node are not asked for when its operator tells it to follow another one. */
async function promoteByHand(
  arena: Arena,
  node: RedisNode,
  choice: number,
  struck: Struck,
): Promise<void> {
  const primary = primaryOf(arena);
  const isFollowed = (choice * 4) % 1 < 0.5;
  const others = arena.nodes.filter((each) => each !== node && each !== primary);
  const told = isFollowed ? others : [];
  for (const each of [node, ...told]) struck.nodes.add(each);
  const followers = told.map(({ address }) => address).join(', ') || 'nobody';
  arena.note(`by hand: ${node.address} is promoted, followed by ${followers}`);
  await onEach(arena, [node], (each) => each.promote());
  await onEach(arena, told, async (each) => {
    await each.command('REPLICAOF', '127.0.0.1', node.port);
  });
}

function replicaBy(arena: Arena, choice: number): RedisNode {
  const primary = primaryOf(arena);
  const replicas = arena.nodes.filter((node) => node !== primary);
  return replicas[Math.floor(choice * replicas.length)] as RedisNode;
}

async function strikeReplica(
  arena: Arena,
  strike: Strike<FaultOf<'replica'>>,
  struck: Struck,
): Promise<void> {
  const { fault, afterMs, forMs, choice } = strike;
  const primary = primaryOf(arena);
  await pause(afterMs);
  const both = fault === 'unlink both';
  const chosen = replicaBy(arena, choice);
  // The primary may have moved meanwhile: whoever it was is struck otherwise.
  const nodes = arena.nodes.filter((node) => (both ? node !== primary : node === chosen));
  for (const node of nodes) struck.nodes.add(node);
  if (nodes.some((node) => node === primaryOf(arena))) struck.primary = true;
  const names = nodes.map(({ address }) => address).join(', ');
  arena.note(`strike: replica ${names}: ${fault} for ${forMs} ms`);
  const [node] = nodes as [RedisNode];
  switch (fault) {
    case 'kill':
    case 'kill, back empty':
      await node.kill();
      await pause(forMs);
      await node.start(fault !== 'kill');
      break;
    case 'freeze':
      await node.freeze();
      await pause(forMs);
      node.thaw();
      break;
    case 'unlink':
    case 'unlink both':
      await onEach(arena, nodes, (each) => each.unlink());
      await last(arena, strike);
      await onEach(arena, nodes, (each) => each.relink());
      break;
    case 'hide':
      await hide(arena, arena.managers.all, node, strike);
      break;
    case 'other password':
      await onEach(arena, nodes, (each) => each.lock());
      await pause(forMs);
      await onEach(arena, nodes, (each) => each.unlock());
      break;
    default:
      fault satisfies never;
  }
  arena.note(`strike: replica ${names}: ${fault} is over`);
}

/** A node that another fault has struck does not hear it. */
async function onEach(
  { note }: Arena,
  nodes: readonly RedisNode[],
  act: (node: RedisNode) => Promise<void>,
): Promise<void> {
  await Promise.all(
    nodes.map((node) => act(node).catch((error) => note(`${node.address}: ${String(error)}`))),
  );
}

async function strikeManager(
  arena: Arena,
  strike: Strike<FaultOf<'manager'>>,
  struck: Struck,
): Promise<void> {
  const { managers, note } = arena;
  const { fault, afterMs, forMs, choice, step } = strike;
  if (isAtStep(fault)) {
    const waiting = await managers.waitAt(step, atWithinMs + afterMs);
    if (waiting === undefined) return note(`nobody came to ${step}, to ${fault}`);
    note(`strike: ${waiting.manager.name} ${fault} ${step} for ${forMs} ms`);
    await strikeWaiting(arena, fault, forMs, waiting);
    return note(`strike: ${waiting.manager.name} ${fault} ${step} is over`);
  }
  await pause(afterMs);
  const chosen = managers.elected ?? (managers.all[Math.floor(choice * 3)] as Manager);
  note(`strike: ${chosen.name} ${fault} for ${forMs} ms`);
  switch (fault) {
    case 'kill':
      await chosen.kill();
      await pause(forMs);
      await chosen.start();
      break;
    case 'kill all':
      await Promise.all(managers.all.map((manager) => manager.kill()));
      await pause(forMs);
      await managers.start();
      break;
    case 'freeze':
      chosen.process?.signal('SIGSTOP');
      await pause(forMs);
      chosen.process?.signal('SIGCONT');
      break;
    case 'offline':
      chosen.wires.cutZooKeeper();
      await pause(forMs);
      await chosen.wires.healZooKeeper();
      break;
    case 'blind':
    case 'blind two': {
      const others = managers.all.filter((manager) => manager !== chosen);
      const blind = fault === 'blind' ? [choice < 0.5 ? chosen : others[0]] : [chosen, others[1]];
      // The primary that they move away from counts as struck.
      struck.primary = true;
      struck.nodes.add(primaryOf(arena));
      await hide(
        arena,
        blind.filter((each) => each !== undefined),
        primaryOf(arena),
        strike,
      );
      break;
    }
    case 'blind to a replica':
      await hide(arena, [chosen], replicaBy(arena, choice), strike);
      break;
    default:
      fault satisfies never;
  }
  note(`strike: ${chosen.name} ${fault} is over`);
}

async function strikeWaiting(
  { managers, auditor, note }: Arena,
  fault: AtStep<FaultOf<'manager'>>,
  forMs: number,
  { manager, goOn }: Waiting,
): Promise<void> {
  const { wires } = manager;
  const child = manager.process;
  const replaced = () =>
    managers.hear((other, told) => other !== manager && told.say === 'moved', forMs);
  switch (fault) {
    case 'kill at':
      await manager.kill();
      await pause(forMs);
      await manager.start();
      break;
    case 'freeze at':
      child?.signal('SIGSTOP');
      // It hears it when it is thawed, and goes on at once.
      goOn();
      await replaced();
      child?.signal('SIGCONT');
      break;
    case 'slow at':
      await pause(forMs);
      goOn();
      break;
    case 'offline at':
      wires.cutZooKeeper();
      goOn();
      await pause(forMs);
      await wires.healZooKeeper();
      break;
    case 'held up at':
      wires.holdNodes();
      wires.cutZooKeeper();
      goOn();
      await replaced();
      wires.letNodesGo();
      await wires.healZooKeeper();
      break;
    case 'evict at': {
      const hasPlace = await auditor.evict(child?.name ?? '');
      note(`the place of ${manager.name} ${hasPlace ? 'is deleted' : 'was gone'}`);
      const successor = await managers.waitAt('before redirect', forMs);
      goOn();
      await pause(crossingMs);
      successor?.goOn();
      break;
    }
    default:
      fault satisfies never;
  }
}

async function strikeClient(arena: Arena, strike: Strike<FaultOf<'client'>>): Promise<void> {
  const { clients, managers, note } = arena;
  const { fault, afterMs, forMs, choice, step } = strike;
  const client = clients[Math.floor(choice * clients.length)] as Client;
  let goOn = (): void => {};
  if (isAtStep(fault)) {
    const waiting = await managers.waitAt(step, atWithinMs + afterMs);
    if (waiting === undefined) return note(`nobody came to ${step}, so ${client.name} goes on`);
    ({ goOn } = waiting);
  } else {
    await pause(afterMs);
  }
  note(`strike: ${client.name} ${fault} for ${forMs} ms`);
  if (fault === 'offline' || fault === 'offline at') {
    client.wires.cutZooKeeper();
    goOn();
    await last(arena, strike);
    await client.wires.healZooKeeper();
  } else {
    client.process.signal('SIGSTOP');
    goOn();
    await pause(forMs);
    client.process.signal('SIGCONT');
  }
  note(`strike: ${client.name} ${fault} is over`);
}

async function strikeServer(
  { servers, note }: Arena,
  strike: Strike<FaultOf<'server'>>,
): Promise<void> {
  await pause(strike.afterMs);
  note(`strike: ZooKeeper ${strike.fault} for ${strike.forMs} ms`);
  await servers.strike(strike);
  note(`strike: ZooKeeper ${strike.fault} is over`);
}
