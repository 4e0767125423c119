/**
 * A set of Redis nodes and its record, as a move of the primary sees them, with a clock of their
 * own.
 */
import type { Nodes, PositionRecord, PrimaryRecord } from '../../src/layout.ts';
import type { ManagerEvent, ManagerStep } from '../../src/manager/events.ts';
import type { Hands } from '../../src/manager/hands.ts';
import type { Joined } from '../../src/manager/join.ts';
import { join, StreamNotes } from '../../src/manager/join.ts';
import type { Change, Keeper } from '../../src/manager/keeper.ts';
import { recordedLineage } from '../../src/manager/lineage.ts';
import { movePrimary } from '../../src/manager/move.ts';
import type { MovePlan, MoveWorld } from '../../src/manager/move-world.ts';
import { newMemory } from '../../src/manager/move-world.ts';
import type { NodeAddress } from '../../src/node-address.ts';
import { NodeRefusedError } from '../../src/redis/errors.ts';
import type { Replication } from '../../src/redis/node-connection.ts';
import { replication } from './replication.ts';

export const viewMs = 1_000;
/** How long clients' views are waited for: their clocks may run slow, and ours fast. */
export const lapseMs = (viewMs * 1.05) / 0.95;

/** A Redis that follows its orders, unless the test says otherwise. */
export class FakeNode {
  readonly address: NodeAddress;
  says: Replication;
  keys: readonly string[];
  /** It does not answer this manager. */
  isSilent = false;
  /** It refuses our password. */
  isRefusing = false;
  refusesPromotion = false;
  /** Its report after a promotion, if that is not the usual one. */
  promotes: (says: Replication) => Replication = (says) => says;
  isPaused = false;
  promotedAtMs: number | undefined;
  /** Bytes on their way to it. It executes them before the next order. */
  underWay = 0;

  constructor(address: NodeAddress, says: Partial<Replication>, keys: readonly string[] = []) {
    this.address = address;
    this.says = replication({ runId: `run-${address}`, ...says });
    this.keys = keys;
  }
}

/** The stream of the primary at the start is `a`. */
export const primary = (offset: number): Partial<Replication> => ({ replicationId: 'a', offset });
export const replicaOf = (of: NodeAddress, offset: number): Partial<Replication> => ({
  ...primary(offset),
  role: 'replica',
  primary: of,
});

export class FakeWorld {
  readonly nodes: ReadonlyMap<NodeAddress, FakeNode>;
  /** The nodes that this manager lists. The others are on the lists of other managers. */
  readonly list: NodeAddress[];
  nowMs = 1_000_000;
  record: PrimaryRecord;
  published: Nodes | undefined;
  position: PositionRecord | undefined;
  rejoin: 'proven' | 'always' = 'proven';
  readonly revokedAtMs: number[] = [];
  readonly publishedAtMs: number[] = [];
  /** Nodes that were told to keep their configuration, in order. */
  readonly keptConfigs: NodeAddress[] = [];
  /** The events that the manager has reported, in order. */
  readonly told: ManagerEvent[] = [];
  /** Called at a step, once. */
  readonly at = new Map<`before ${ManagerStep}` | `after ${ManagerStep}`, () => void>();
  /** Called each time while the manager sleeps. */
  whileSleeping: () => void = () => {};
  /** How many managers report. */
  managers = 1;
  /** The next write is done, and its reply is lost. */
  losesNextReply = false;
  readonly #world: MoveWorld;

  /** The first node is the primary on record. */
  constructor(...nodes: readonly FakeNode[]) {
    this.nodes = new Map(nodes.map((node) => [node.address, node]));
    this.list = [...this.nodes.keys()];
    const [first] = nodes;
    this.record = {
      ...{ term: 1, primary: first?.address ?? null, former: null },
      ...{ replicationId: 'a', runId: first?.says.runId ?? null, gemViews: false },
      ...{ viewMs, manager: 'm', token: '1', manualSeen: '0' },
    };
    const rejoin = () => this.rejoin;
    this.#world = {
      get rejoin() {
        return rejoin();
      },
      keeper: this.#keeper(),
      hands: this.#hands(),
      hooks: { onStep: (step) => this.#onStep(step) },
      tell: (event) => void this.told.push(event),
      signal: new AbortController().signal,
      nowMs: () => this.nowMs,
      sleep: async (forMs) => {
        // Everything that needs no time comes first.
        await new Promise((resolve) => setImmediate(resolve));
        this.nowMs += forMs;
        this.whileSleeping();
      },
      clientViewMs: viewMs,
      nodes: this.list,
      others: () => [...this.nodes.keys()].filter((node) => !this.list.includes(node)),
      author: { manager: 'm', token: '1' },
      revokedAtMs: undefined,
      earlierRevokedAtMs: 0,
      refused: new Set(),
      errors: new Map(),
      memory: newMemory(),
      managers: () => this.managers,
      othersLapseAtMs: Number.NEGATIVE_INFINITY,
      quarantined: new Map(),
    };
  }

  node(address: NodeAddress): FakeNode {
    const node = this.nodes.get(address);
    if (node === undefined) throw new Error(`no node ${address}`);
    return node;
  }

  /** Takes a node off this manager's list. Other managers still list it. */
  forget(address: NodeAddress): void {
    this.list.splice(this.list.indexOf(address), 1);
  }

  /** @param plan `available` left out: all nodes of the set */
  async move(plan: Partial<MovePlan> & Pick<MovePlan, 'reason'>) {
    const more = { available: [...this.nodes.keys()], latencyMs: () => 1, unavailableTo: () => 0 };
    return movePrimary({ ...more, ...plan }, this.#world);
  }

  /** Does what the elected manager does with a node that does not follow the primary on record. */
  join(node: NodeAddress, primary: NodeAddress): Promise<Joined> {
    const streams = new StreamNotes(recordedLineage(this.record), async () => {});
    return join({ node, primary, streams }, this.#world);
  }

  /** The nodes that say that they are a primary, whatever is published. */
  get primaries(): readonly NodeAddress[] {
    const found = [...this.nodes.values()].filter(({ says }) => says.role === 'primary');
    return found.map(({ address }) => address);
  }

  #onStep(step: `before ${ManagerStep}` | `after ${ManagerStep}`): void {
    const happens = this.at.get(step);
    this.at.delete(step);
    happens?.();
  }

  #keeper(): Keeper {
    const keeper: Pick<Keeper, 'read' | 'write' | 'forget' | 'position' | 'writePosition'> = {
      position: async () => this.position,
      writePosition: async (position) => {
        this.position = position;
      },
      read: async () => ({ record: this.record, nodes: this.published, isMovedByGem: false }),
      write: async ({ record = this.record, nodes }: Change) => {
        if (record.primary === null && this.record.primary !== null) {
          this.revokedAtMs.push(this.nowMs);
        }
        if (record.term > this.record.term) this.publishedAtMs.push(this.nowMs);
        this.record = record;
        if (nodes !== undefined) this.published = nodes ?? undefined;
        if (!this.losesNextReply) return;
        this.losesNextReply = false;
        throw new Error('the connection to ZooKeeper was lost');
      },
      forget: () => {},
    };
    return keeper as Keeper;
  }

  #hands(): Hands {
    const reach = (address: NodeAddress) => {
      const node = this.node(address);
      if (node.isSilent) throw new Error(`${address} does not answer`);
      if (node.isRefusing) throw new NodeRefusedError(address, 'set the password', 'WRONGPASS');
      return node;
    };
    const hands: Pick<Hands, Exclude<keyof Hands, symbol>> = {
      replication: async (address) => reach(address).says,
      look: async (address) => {
        if (this.list.includes(address)) throw new Error(`${address} is looked at, and not held`);
        return reach(address).says;
      },
      makePrimary: async (address) => {
        const node = reach(address);
        if (node.refusesPromotion) throw new Error(`${address}: unknown command 'REPLICAOF'`);
        if (node.says.role === 'replica') {
          const { replicationId, offset } = node.says;
          node.says = node.promotes(
            replication({
              ...{ runId: node.says.runId, offset, replicationId: `${replicationId}${address}` },
              ...{ formerReplicationId: replicationId, formerOffset: offset + 1 },
            }),
          );
          node.promotedAtMs = this.nowMs;
        }
        return node.says;
      },
      makeReplica: async (address, of) => {
        const [node, source] = [reach(address), this.node(of)];
        node.says = { ...source.says, runId: node.says.runId, role: 'replica', primary: of };
        node.keys = source.keys;
      },
      hold: async (address) => {
        const node = reach(address);
        node.says = { ...node.says, offset: node.says.offset + node.underWay };
        node.underWay = 0;
        node.says = { ...node.says, role: 'replica', primary: '127.0.0.1:2', linkUp: false };
        return node.says;
      },
      setAside: async (address) => {
        const node = reach(address);
        const aside = { role: 'replica', primary: '127.0.0.1:1', isAside: true } as const;
        const offset = node.says.offset + node.underWay;
        node.underWay = 0;
        node.says = { ...node.says, ...aside, offset, linkUp: false };
        return node.says;
      },
      keepConfig: async (address) => {
        await new Promise((resolve) => setImmediate(resolve));
        this.keptConfigs.push(address);
      },
      readTail: async () => undefined,
      hasAny: async () => true,
      pauseWrites: async (address) => {
        reach(address).isPaused = true;
      },
      resumeWrites: async (address) => {
        reach(address).isPaused = false;
      },
    };
    return hands as Hands;
  }
}
