/** A term of an elected manager among nodes and a ZooKeeper that are played, look by look. */
import type { Clock } from '@incumbent/zookeeper';
import {
  BadVersionError,
  NodeExistsError,
  NoNodeError,
  TransactionError,
} from '@incumbent/zookeeper';
import type { Term } from 'incumbent';
import type { ZooKeeperGuard } from 'incumbent/zookeeper';
import type { FailoverRequest, Nodes, PrimaryRecord, Report } from '../../src/layout.ts';
import {
  decodeNodes,
  decodePrimary,
  decodeRequest,
  encodeNodes,
  encodePrimary,
  encodeRequest,
  pathsBelow,
} from '../../src/layout.ts';
import type { ManagerEvent, ManagerStep, Trouble } from '../../src/manager/events.ts';
import { newMemory } from '../../src/manager/move-world.ts';
import { resolveOptions } from '../../src/manager/options.ts';
import type { Realm } from '../../src/manager/reign.ts';
import { reign } from '../../src/manager/reign.ts';
import type { NodeAddress } from '../../src/node-address.ts';
import { NodeRefusedError } from '../../src/redis/errors.ts';
import type { NodeLink } from '../../src/redis/node-connection.ts';
import type { FakeNode } from './move-world.ts';
import { replication } from './replication.ts';

const paths = pathsBelow('/set');
const placePath = '/set/managers/place';

interface Znode {
  text: string;
  version: number;
  czxid: bigint;
  mzxid: bigint;
  owner: bigint;
}

type Plan = readonly [type: string, path: string, act: () => void];

export class FakeZooKeeper {
  readonly znodes = new Map<string, Znode>();
  /** The paths of all writes outside transactions. */
  readonly sets: string[] = [];
  /** The error of the next such write. The write is not done. */
  readonly failsNext = new Map<'set' | 'commit', Error>();
  #zxid = 0n;
  #places = 1;

  put(path: string, text: string, owner = 0n): void {
    this.#zxid += 1n;
    this.#write(path, text, owner);
  }

  #failOnce(name: 'set' | 'commit'): void {
    const error = this.failsNext.get(name);
    this.failsNext.delete(name);
    if (error !== undefined) throw error;
  }

  /** A write in the transaction that is under way. */
  #write(path: string, text: string, owner = 0n): void {
    const before = this.znodes.get(path);
    const [version, mzxid] = [(before?.version ?? -1) + 1, this.#zxid];
    this.znodes.set(path, { text, version, mzxid, czxid: before?.czxid ?? mzxid, owner });
  }

  at(path: string, version = -1): Znode {
    const znode = this.znodes.get(path);
    if (znode === undefined) throw new NoNodeError({ path });
    if (version !== -1 && version !== znode.version) throw new BadVersionError({ path });
    return znode;
  }

  /** The part of a client that a term uses. */
  client() {
    const statOf = ({ version, czxid, mzxid, owner }: Znode) => ({
      ...{ version, czxid, mzxid, ephemeralOwner: owner },
    });
    const session = { id: 7n };
    return {
      session,
      ensurePath: async (path: string) => {
        if (!this.znodes.has(path)) this.put(path, '');
      },
      /** Sequential and ephemeral. */
      create: async (path: string, text: string) => {
        const name = `${path}${String(this.#places++).padStart(10, '0')}`;
        this.put(name, text, session.id);
        return { path: name };
      },
      delete: async (path: string) => void this.znodes.delete(path),
      get: async (path: string) => {
        const znode = this.at(path);
        return { text: znode.text, stat: statOf(znode) };
      },
      stat: async (path: string) => {
        const znode = this.znodes.get(path);
        return { stat: znode === undefined ? null : statOf(znode) };
      },
      set: async (path: string, text: string, { version }: { version: number }) => {
        this.#failOnce('set');
        this.at(path, version);
        this.sets.push(path);
        this.put(path, text);
      },
      getChildren: async (path: string) => {
        this.at(path);
        const below = [...this.znodes.keys()].filter((each) => each.startsWith(`${path}/`));
        return { children: below.map((each) => each.slice(path.length + 1)) };
      },
      sync: async () => {},
      transaction: () => this.#transaction(),
    };
  }

  #transaction() {
    const plans: Plan[] = [];
    const add = (type: string, path: string, act: () => void) => void plans.push([type, path, act]);
    return {
      check: (path: string, version: number) => add('check', path, () => this.at(path, version)),
      create: (path: string, text: string) =>
        add('create', path, () => {
          if (this.znodes.has(path)) throw new NodeExistsError({ path });
          this.#write(path, text);
        }),
      set: (path: string, text: string, version: number) =>
        add('set', path, () => {
          this.at(path, version);
          this.#write(path, text);
        }),
      delete: (path: string, version: number) =>
        add('delete', path, () => {
          this.at(path, version);
          this.znodes.delete(path);
        }),
      commit: async () => {
        this.#failOnce('commit');
        const before = new Map(this.znodes);
        this.#zxid += 1n;
        const results = plans.map(([type, path, act], index) => {
          try {
            act();
          } catch (error) {
            this.znodes.clear();
            for (const [each, znode] of before) this.znodes.set(each, znode);
            throw new TransactionError({ index, error: error as NoNodeError }, [], 0n);
          }
          return { type, path, stat: { version: this.znodes.get(path)?.version ?? 0 } };
        });
        return { results };
      },
    };
  }
}

export class FakeReign {
  readonly zk: FakeZooKeeper = new FakeZooKeeper();
  readonly nodes: ReadonlyMap<NodeAddress, FakeNode>;
  readonly told: ManagerEvent[] = [];
  readonly at = new Map<`before ${ManagerStep}` | `after ${ManagerStep}`, () => void>();
  nowMs = 1_000_000;
  trouble: Trouble | undefined;
  requiredNodeManagers = 1;
  /** Whether this manager has reported what it sees. */
  isReporting = true;
  /** Nodes that are down by the managers' reports, although this one may reach them. */
  readonly down = new Set<NodeAddress>();
  /**
   * Nodes that this manager's list lacks. The list of the other manager, if there is one, has all.
   */
  readonly unlisted = new Set<NodeAddress>();
  hasOtherManager = false;
  /** These answer, and refuse our password. */
  readonly refusesUs = new Set<NodeAddress>();
  /** These answer, and do not follow the node that they are told to follow. */
  readonly refusesOrders = new Set<NodeAddress>();
  /** How often the code asked for another look at once. */
  wakes = 0;
  /** These answer when the promise resolves. */
  readonly standsStill = new Map<NodeAddress, Promise<void>>();
  rejoin: 'proven' | 'always' = 'proven';
  /** The orders to follow a node, in sequence, such as `a:1 → p:1`. */
  readonly orders: string[] = [];
  /** Called before a node answers. */
  whenAsked: (node: NodeAddress) => void = () => {};
  /** Until this resolves, the board does not have all reports. */
  hasRead: Promise<void> = Promise.resolve();
  /** Ends the term that is under way. */
  endTerm: () => void = () => {};

  /** The first node is the primary on record. */
  constructor(...nodes: readonly FakeNode[]) {
    this.nodes = new Map(nodes.map((node) => [node.address, node]));
    const [first] = nodes as [FakeNode];
    const slaves = nodes.slice(1).map(({ address }) => address);
    this.zk.put(placePath, '');
    this.zk.put(paths.requests, '');
    this.zk.put(paths.nodes, encodeNodes({ master: first.address, slaves, unavailable: [] }));
    this.zk.put(
      paths.primary,
      encodePrimary({
        ...{ term: 1, primary: first.address, former: null, replicationId: 'a', gemViews: false },
        ...{ runId: first.says.runId, viewMs: 1_000, manager: 'm', token: '1', manualSeen: '0' },
      }),
    );
  }

  get record(): PrimaryRecord {
    return decodePrimary(paths.primary, this.zk.at(paths.primary).text);
  }

  set record(record: PrimaryRecord) {
    this.zk.put(paths.primary, encodePrimary(record));
  }

  get published(): Nodes {
    return decodeNodes(paths.nodes, this.zk.at(paths.nodes).text);
  }

  set published(nodes: Nodes) {
    this.zk.put(paths.nodes, encodeNodes(nodes));
  }

  /** How often the position of the primary was written. */
  get positionsWritten(): number {
    return (this.zk.znodes.get(paths.position)?.version ?? -1) + 1;
  }

  node(address: NodeAddress): FakeNode {
    return this.nodes.get(address) as FakeNode;
  }

  /** @returns the path of the request */
  ask(node: NodeAddress | null, more: Partial<FailoverRequest> = {}): string {
    const path = `${paths.requests}/request-${`${this.zk.znodes.size}`.padStart(10, '0')}`;
    this.zk.put(path, encodeRequest({ node, requestedBy: 'a test', waitMs: 30_000, ...more }));
    return path;
  }

  request(path: string): FailoverRequest {
    return decodeRequest(path, this.zk.at(path).text);
  }

  /** Requests a failover as a client of the gem does. */
  askAsGem(node: NodeAddress): void {
    this.zk.put(paths.manualFailover, node);
  }

  /** Runs one term of so many looks, unless it ends earlier. */
  async looks(most: number, afterLook: () => void = () => {}): Promise<void> {
    const ending = new AbortController();
    this.endTerm = () => ending.abort();
    let looks = 0;
    const wait = async (forMs: number) => {
      // Lets timers end that run beside it.
      await new Promise((resolve) => setImmediate(resolve));
      looks += 1;
      this.nowMs += forMs;
      afterLook();
      if (looks >= most) ending.abort();
    };
    const call = () => {
      this.wakes += 1;
    };
    await reign({ ...this.#realm(), wake: { call, wait } as unknown as Realm['wake'] }, {
      signal: ending.signal,
      token: 1n,
      guard: { path: placePath, version: 0 },
      assertLeading: () => {},
    } as unknown as Term<ZooKeeperGuard>);
  }

  #realm(): Omit<Realm, 'wake'> {
    const all = [...this.nodes.keys()];
    const nodes = all.filter((node) => !this.unlisted.has(node));
    const options = resolveOptions({
      ...{ zookeeper: 'zk://z', nodes, id: 'm', clientView: '1s' },
      ...{ requiredNodeManagers: this.requiredNodeManagers, rejoin: this.rejoin },
    });
    const isUp = (node: NodeAddress) => !this.node(node).isSilent;
    const isSeen = (node: NodeAddress) => isUp(node) && !this.down.has(node);
    const report = (list: readonly NodeAddress[]): Report => ({
      available: Object.fromEntries(list.filter(isSeen).map((node) => [node, 0.001])),
      unavailable: list.filter((node) => !isSeen(node)),
    });
    const reports = (): [string, Report][] => [
      ...(this.isReporting ? [['m', report(nodes)] as [string, Report]] : []),
      ...(this.hasOtherManager ? [['n', report(all)] as [string, Report]] : []),
    ];
    const clock: Clock = {
      monotonicMs: () => this.nowMs,
      wallMs: () => this.nowMs,
      setTimer: (callback, delayMs) => {
        const timer = setImmediate(() => {
          this.nowMs += delayMs;
          callback();
        });
        return { cancel: () => clearImmediate(timer) };
      },
    };
    return {
      ...{ options, paths, clock, memory: newMemory() },
      zk: this.zk.client() as unknown as Realm['zk'],
      hooks: {
        onStep: (step) => {
          const happens = this.at.get(step);
          this.at.delete(step);
          happens?.();
        },
      },
      board: {
        current: () => new Map(reports()),
        whenRead: () => this.hasRead,
      } as unknown as Realm['board'],
      sightOf: (address) => ({
        ...{ address, state: isUp(address) ? 'available' : 'unavailable', failures: 0 },
        ...{ latencyMs: 1, error: undefined },
      }),
      tell: (event) => void this.told.push(event),
      show: (shown) => {
        if ('trouble' in shown) this.trouble = shown.trouble;
      },
      openNode: async (address) => {
        if (this.refusesUs.has(address)) throw new NodeRefusedError(address, 'a test', 'WRONGPASS');
        return this.#link(this.node(address));
      },
    };
  }

  #link(node: FakeNode): NodeLink {
    const reach = () => {
      if (node.isSilent) throw new Error(`${node.address} does not answer`);
    };
    const link: NodeLink = {
      isOpen: true,
      closed: new AbortController().signal,
      replication: async () => {
        this.whenAsked(node.address);
        await this.standsStill.get(node.address);
        reach();
        return node.says;
      },
      command: async (parts) => {
        reach();
        if (parts[0] !== 'REPLICAOF') return '';
        if (this.refusesOrders.has(node.address)) throw new Error(`${node.address} will not`);
        this.#follow(node, `${parts[1]}:${parts[2]}`);
        return '';
      },
      close: () => {},
    };
    return link;
  }

  #follow(node: FakeNode, of: NodeAddress): void {
    const { says } = node;
    this.orders.push(`${node.address} → ${of}`);
    const source = this.nodes.get(of);
    if (of === 'NO:ONE') {
      if (says.role === 'primary') return;
      const { runId, offset, replicationId } = says;
      node.says = replication({
        ...{ runId, offset, replicationId: `${replicationId}2` },
        ...{ formerReplicationId: replicationId, formerOffset: offset + 1 },
      });
    } else if (source === undefined) {
      const isAside = of === '127.0.0.1:1';
      node.says = { ...says, role: 'replica', primary: of, linkUp: false, isAside };
    } else {
      node.says = { ...source.says, runId: says.runId, role: 'replica', primary: of };
    }
  }
}
