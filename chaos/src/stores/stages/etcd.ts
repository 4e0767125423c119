import { waitUntil } from '@incumbent/cli/trial';
import type { EtcdCluster, EtcdServer } from '@incumbent/servers';
import { startEtcdCluster } from '@incumbent/servers';
import type { TestProxy } from '@incumbent/zookeeper-testing';
import { startProxy } from '@incumbent/zookeeper-testing';
import type { Timing } from 'incumbent';
import { resolveTiming } from 'incumbent';
import type { Member } from '../../harness/network.ts';
import { Network } from '../../harness/network.ts';
import type { Card } from '../../harness/rounds.ts';
import { StuckError } from '../../harness/stuck.ts';
import { pause } from '../../harness/time.ts';
import { queueBoundMs } from '../bound.ts';
import type { Opening } from '../plan.ts';
import type { Stage, Strand, Told } from '../stage.ts';
import { election } from '../stage.ts';

/** As the servers of tests have it, and longer than a client needs to find another member. */
const electionTimeoutMs = 500;
/** Leases end that late; and each new leader of the cluster grants them anew. */
const lateMs = 2 * electionTimeoutMs + 500;
const lookEveryMs = 200;
/** A client that finds another member does so at once. */
const longestMoveMs = 500;
const patienceMs = 60_000;

const processFaults: Readonly<Record<string, Card>> = {
  'kill leader': { cards: 3, from: 0.1, to: 0.9 },
  'kill follower': { cards: 1, from: 0.1, to: 0.9 },
  'freeze leader': { cards: 3, from: 0.2, to: 1.5 },
  'freeze follower': { cards: 1, from: 0.2, to: 1.5 },
  'lose quorum': { cards: 2, from: 0.1, to: 0.9 },
  'cut everybody': { cards: 1, to: 0.3 },
};

const partingFaults: Readonly<Record<string, Card>> = {
  'part leader': { cards: 3, from: 0.3, to: 1.8 },
  'part follower': { cards: 1, from: 0.3, to: 1.8 },
};

const openings: readonly Opening[] = [
  { leader: 'strand', leaderLength: 2.4 },
  { leader: 'freeze and delete', leaderLength: 0.45 },
  { leader: 'kill both', server: 'freeze leader' },
  { leader: 'freeze both', leaderLength: 2.4 },
  { waiting: 'silence', server: 'kill leader' },
  { server: 'part leader', serverLength: 1.5 },
];

/** Three members, each in a network of its own where there are networks. */
export class EtcdStage implements Stage {
  readonly leasesMs: readonly number[] = [3_000, 4_000];
  readonly openings: readonly Opening[];
  readonly serverFaults: Readonly<Record<string, Card>>;
  readonly untested: string | undefined;
  readonly #cluster: EtcdCluster;
  readonly #network: Network | undefined;
  readonly #told: Told;
  readonly #parameters: string;
  readonly #proxies: TestProxy[] = [];
  /** Servers that are killed, frozen or cut off. */
  readonly #away = new Set<EtcdServer>();
  readonly #seats = new Map<EtcdServer, Member>();
  readonly #watching: Promise<void>;
  #isClosing = false;

  private constructor(
    cluster: EtcdCluster,
    network: Network | undefined,
    told: Told,
    { noNetwork, parameters }: EtcdStageOptions,
  ) {
    this.#cluster = cluster;
    this.#network = network;
    this.#told = told;
    this.#parameters = parameters;
    this.untested = noNetwork && `members cut off: ${noNetwork}`;
    this.serverFaults =
      network === undefined ? processFaults : { ...processFaults, ...partingFaults };
    this.openings = openings.filter(
      ({ leader, server }) =>
        network !== undefined || (leader !== 'strand' && server !== 'part leader'),
    );
    this.#watching = this.#watch();
  }

  static async start(told: Told, options: EtcdStageOptions): Promise<EtcdStage> {
    const network = options.noNetwork === undefined ? new Network(3) : undefined;
    const seats = network?.seats.map(({ host, command }) => ({ host, within: command }));
    const cluster = await startEtcdCluster(3, seats === undefined ? {} : { seats });
    return new EtcdStage(cluster, network, told, options);
  }

  get about(): string {
    return `etcd, three members${this.#network === undefined ? '' : ', each in a network of its own'}`;
  }

  get operatorUrl(): string {
    return `etcd://${this.#cluster.endpoints.join(',')}?${this.#query}`;
  }

  timingOf(leaseMs: number): Timing {
    return resolveTiming({}, { sessionTimeoutMs: leaseMs });
  }

  boundMs(timings: readonly Timing[]): number {
    return queueBoundMs(timings, lateMs);
  }

  async connect(): Promise<readonly TestProxy[]> {
    const { members } = this.#cluster;
    const proxies = await Promise.all(members.map((member) => startProxy(member)));
    this.#proxies.push(...proxies);
    return proxies;
  }

  url(proxies: readonly TestProxy[]): string {
    const hosts = proxies.map(({ host, port }) => `${host}:${port}`).join(',');
    return `etcd://${hosts}?${this.#query}`;
  }

  get strand(): Strand | undefined {
    const network = this.#network;
    if (network === undefined) return undefined;
    return async (proxies, forMs, choice) => {
      const { leader, follower } = await this.#choose(choice);
      const index = this.#cluster.members.indexOf(follower);
      const others = proxies.filter((_proxy, i) => i !== index);
      this.#told.note(`it is left with ${follower.name}; ${leader.name} leads`);
      for (const proxy of others) proxy.cut();
      await waitUntil(() => (proxies[index]?.counters.open ?? 0) > 0, longestMoveMs);
      this.#part(follower);
      await pause(forMs);
      this.#heal(follower);
      await Promise.all(others.map((proxy) => proxy.pass()));
    };
  }

  /** As an operator does it: the key in the queue whose creation is the token. */
  async evict(token: bigint): Promise<void> {
    const answer = await this.#ask('get', '--prefix', `${election}/`, '--write-out=json');
    const { kvs = [] } = JSON.parse(answer ?? '{}') as { readonly kvs?: readonly StoredKey[] };
    const found = kvs.find(({ create_revision: revision }) => BigInt(revision) === token);
    this.#told.note(found === undefined ? `place ${token} is not there` : `place ${token} goes`);
    if (found === undefined) return;
    await this.#ask('del', Buffer.from(found.key, 'base64').toString());
  }

  /** As somebody does who has several addresses: a member may have no leader just now. */
  async #ask(...words: readonly string[]): Promise<string | undefined> {
    for (const member of this.#cluster.members) {
      try {
        return await member.etcdctl(...words);
      } catch {
        this.#told.note(`${member.name} does not answer`);
      }
    }
    return undefined;
  }

  async strike(fault: string, forMs: number, choice: number): Promise<void> {
    const { leader, follower } = await this.#choose(choice);
    this.#told.note(`${leader.name} leads, ${follower.name} is chosen`);
    const member = fault.endsWith('follower') ? follower : leader;
    switch (fault) {
      case 'kill leader':
      case 'kill follower':
        return this.#killed([member], forMs);
      case 'lose quorum':
        return this.#killed([leader, follower], forMs);
      case 'freeze leader':
      case 'freeze follower':
        this.#leave(member);
        await member.freeze();
        await pause(forMs);
        member.thaw();
        this.#away.delete(member);
        return undefined;
      case 'part leader':
      case 'part follower':
        this.#part(member);
        await pause(forMs);
        this.#heal(member);
        return undefined;
      default:
        throw new Error(`etcd has no fault ${fault}`);
    }
  }

  /** Resolves when all members know the leader. */
  async ready(): Promise<void> {
    try {
      await this.#cluster.start();
    } catch (error) {
      throw new StuckError(`the servers do not come back: ${(error as Error).message}`);
    }
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    await this.#watching;
    await Promise.all(this.#proxies.map((proxy) => proxy.close()));
    await this.#cluster.close();
  }

  get #query(): string {
    return `election-timeout=${electionTimeoutMs}ms${this.#parameters}`;
  }

  async #killed(members: readonly EtcdServer[], forMs: number): Promise<void> {
    for (const member of members) this.#leave(member);
    await Promise.all(members.map((member) => member.kill()));
    await pause(forMs);
    await Promise.all(members.map((member) => member.start()));
    for (const member of members) this.#away.delete(member);
  }

  #part(member: EtcdServer): void {
    this.#leave(member);
    const others = this.#cluster.members.filter((each) => each !== member);
    this.#network?.part(
      this.#seatOf(member),
      others.map((each) => this.#seatOf(each)),
      'both',
    );
  }

  #heal(member: EtcdServer): void {
    this.#network?.heal(this.#seatOf(member));
    this.#away.delete(member);
  }

  /** The same object each time: the network knows members by that. */
  #seatOf(member: EtcdServer): Member {
    const known = this.#seats.get(member);
    if (known !== undefined) return known;
    const id = this.#cluster.members.indexOf(member) + 1;
    const seat = { id, host: member.host, peerPorts: { peer: member.peerPort } };
    this.#seats.set(member, seat);
    return seat;
  }

  #leave(member: EtcdServer): void {
    this.#away.add(member);
    this.#told.struck();
    if (2 * this.#away.size >= this.#cluster.members.length) this.#told.quorum('down');
  }

  async #choose(
    choice: number,
  ): Promise<{ readonly leader: EtcdServer; readonly follower: EtcdServer }> {
    const startMs = performance.now();
    for (;;) {
      try {
        const leader = await this.#cluster.leader();
        const followers = this.#cluster.members.filter((member) => member !== leader);
        return { leader, follower: followers[choice < 0.5 ? 0 : 1] as EtcdServer };
      } catch (error) {
        if (performance.now() - startMs > patienceMs) throw new StuckError(String(error));
        await pause(lookEveryMs);
      }
    }
  }

  /** Looks from outside whether a majority serves. */
  async #watch(): Promise<void> {
    const { members } = this.#cluster;
    while (!this.#isClosing) {
      const before = new Set(this.#away);
      const present = members.filter((member) => !this.#away.has(member));
      const healthy = await Promise.all(present.map((member) => member.isHealthy()));
      // A server that was struck meanwhile may have answered before.
      const same = members.every((member) => before.has(member) === this.#away.has(member));
      if (same) {
        if (2 * present.length <= members.length) this.#told.quorum('down');
        else {
          const serving = healthy.filter(Boolean).length;
          this.#told.quorum(2 * serving > members.length ? 'up' : 'able');
        }
      }
      await pause(lookEveryMs);
    }
  }
}

interface StoredKey {
  /** In base64. */
  readonly key: string;
  readonly create_revision: number;
}

export interface EtcdStageOptions {
  /** Why members cannot be cut off from each other; undefined: they can. */
  readonly noNetwork: string | undefined;
  /** Further parameters of the store's URL. */
  readonly parameters: string;
}
