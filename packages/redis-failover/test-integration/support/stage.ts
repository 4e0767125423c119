/** A set of Redis servers, its managers, its clients and its znodes, for one test. */
import { randomUUID } from 'node:crypto';
import type { ZooKeeper } from '@incumbent/zookeeper';
import { connect, NoNodeError } from '@incumbent/zookeeper';
import type { TestProxy, TestServer } from '@incumbent/zookeeper-testing';
import { startProxy } from '@incumbent/zookeeper-testing';
import { Redis } from 'ioredis';
import type { RedisClientOptions } from 'redis';
import { createClient } from 'redis';
import type { TestContext } from 'vitest';
import type { ClientHooks } from '../../src/client/failover.ts';
import { RedisFailover } from '../../src/client/failover.ts';
import { ioredis } from '../../src/client/ioredis.ts';
import { nodeRedis } from '../../src/client/node-redis.ts';
import type { Nodes, Paths, PrimaryRecord } from '../../src/layout.ts';
import { decodeNodes, decodePrimary, pathsBelow } from '../../src/layout.ts';
import type { ManagerHooks } from '../../src/manager/hooks.ts';
import { NodeManager } from '../../src/manager/node-manager.ts';
import type { ManagerOptions } from '../../src/manager/options.ts';
import type { NodeAddress } from '../../src/node-address.ts';
import { judge } from './judge.ts';
import type { ManagerProcessPlan } from './manager-process.ts';
import { ManagerProcess } from './manager-process.ts';
import type { RedisSetOptions } from './redis-set.ts';
import { RedisSet } from './redis-set.ts';
import { plain, Story } from './told.ts';
import { until } from './waiting.ts';
import type { NodeRedis, Write } from './writer.ts';
import { Writer, writeByIoredis, writeByNodeRedis } from './writer.ts';

/** The proxies between a client and the servers. */
export interface ClientLinks {
  readonly zooKeeper?: TestProxy;
  readonly redis?: Readonly<Record<NodeAddress, TestProxy>>;
}

export interface OwnManager {
  readonly manager: NodeManager;
  readonly story: Story;
  /** Ends it as an operator would. Resolves when it has ended. */
  stop(): Promise<void>;
}

type ManagerSettings = Partial<Omit<ManagerOptions, 'onEvent'>>;
type Ends = Pick<TestContext, 'onTestFinished' | 'onTestFailed'>;

type BrokenRules = NonNullable<ManagerHooks['broken'] & ClientHooks['broken']>;

/**
 * Rules that all managers and clients break, to see which tests notice:
 * `INCUMBENT_REDIS_BROKEN=no-view-wait npx vitest run --project integration …` must fail.
 */
const broken = (process.env['INCUMBENT_REDIS_BROKEN'] ?? '')
  .split(',')
  .filter((rule) => rule !== '') as readonly string[] as BrokenRules;

export class Stage {
  readonly set: RedisSet;
  readonly root: string;
  readonly paths: Paths;
  /** A ZooKeeper client of the test's own, which no fault touches. */
  readonly zk: ZooKeeper;
  readonly #zooKeeper: TestServer;
  readonly #access: { readonly password?: string };
  readonly #closers: (() => unknown)[] = [];
  readonly #stories: (() => string)[] = [];
  #writers = 0;
  /** The latest record from the watch, which costs no request. */
  #told: PrimaryRecord | undefined;
  readonly #primaries = new Map<number, NodeAddress>();

  static async open(
    { onTestFinished, onTestFailed }: Ends,
    zooKeeper: TestServer,
    options: RedisSetOptions = {},
  ): Promise<Stage> {
    const set = await RedisSet.start(options);
    let stage: Stage | undefined;
    onTestFinished(async () => {
      await stage?.close();
      await set[Symbol.asyncDispose]();
    });
    const zk = await connect(zooKeeper.connectionString);
    stage = new Stage(set, zooKeeper, zk, options.password);
    onTestFailed(({ task }) => console.error(`failed: ${task.name}\n${stage?.text() ?? ''}`));
    return stage;
  }

  private constructor(
    set: RedisSet,
    zooKeeper: TestServer,
    zk: ZooKeeper,
    password: string | undefined,
  ) {
    this.set = set;
    this.zk = zk;
    this.root = `/set-${randomUUID()}`;
    this.paths = pathsBelow(this.root);
    this.#zooKeeper = zooKeeper;
    this.#access = password === undefined ? {} : { password };
    this.#closers.push(() => zk.close());
    this.#followTerms();
  }

  // Managers ---------------------------------------------------------------------------------------

  /** The default options of every manager and client of this set. */
  options(settings: ManagerSettings = {}): Omit<ManagerOptions, 'onEvent'> {
    return {
      nodes: this.set.addresses,
      zookeeper: this.#zooKeeper.connectionString,
      root: this.root,
      // The servers' grant decides. A successor waits for that time.
      sessionTimeout: '4s',
      // A primary that was frozen executes what was sent to it when it goes on. No other node has
      // that, so it would be set aside. Tests of that case say `proven`.
      rejoin: 'always',
      ...this.#access,
      ...settings,
    };
  }

  /** Starts a manager in this process. */
  manager(id: string, settings: ManagerSettings = {}, hooks: ManagerHooks = {}): OwnManager {
    const story = new Story(id);
    const manager = new NodeManager(
      { ...this.options({ id, ...settings }), onEvent: (event) => story.add(plain(event)) },
      { broken, ...hooks },
    );
    const end = new AbortController();
    // The test gets the error.
    const ended = manager.run(end.signal).catch((error: Error) => {
      story.add({ type: 'failed', message: error.stack });
    });
    const stop = async () => {
      end.abort();
      await ended;
    };
    this.#closers.push(stop);
    this.#stories.push(() => story.text());
    return { manager, story, stop };
  }

  /** Starts a manager in a process of its own. */
  async managerProcess(
    id: string,
    plan: Partial<Omit<ManagerProcessPlan, 'options'>> & {
      readonly options?: ManagerSettings;
    } = {},
  ): Promise<ManagerProcess> {
    const { options = {}, ...more } = plan;
    const process = await ManagerProcess.start({
      ...more,
      broken: [...broken, ...(plan.broken ?? [])],
      options: this.options({ id, ...options }),
    });
    this.#closers.push(() => process[Symbol.asyncDispose]());
    this.#stories.push(() => process.story.text());
    return process;
  }

  /** Resolves when the znodes name a primary, or the given one. */
  async published(primary?: NodeAddress, aboveTerm = 0): Promise<PrimaryRecord> {
    return until(
      `${primary ?? 'some node'} is published as the primary in a term above ${aboveTerm}`,
      async () => {
        const told = this.#told;
        if (told === undefined || told.primary === null || told.term <= aboveTerm) return;
        if (primary !== undefined && told.primary !== primary) return;
        const nodes = await this.nodes();
        return nodes?.master === told.primary && told;
      },
      () => this.text(),
    );
  }

  /** Resolves when the published primary is one, and all others that run follow it. */
  async formed(): Promise<PrimaryRecord> {
    let seen = '';
    return until(
      'the primary is as published, and all others that run follow it',
      async () => {
        const record = this.#told;
        if (record === undefined || record.primary === null) return;
        const found = await this.set.formation(record.primary);
        seen = JSON.stringify({ record, found });
        return found === 'formed' && record;
      },
      () => `${seen}\n${this.text()}`,
    );
  }

  // Clients ----------------------------------------------------------------------------------------

  /** A client on node-redis. */
  async client(links: ClientLinks = {}): Promise<RedisFailover<NodeRedis>> {
    const { zooKeeper = this.#zooKeeper, redis = {} } = links;
    const linked = (options: RedisClientOptions): NodeRedis => {
      const client = createClient(options);
      const duplicate = client.duplicate.bind(client);
      // Each connection is a copy of the first client, which is never connected.
      return Object.assign(client, {
        duplicate(more: { readonly socket: { readonly host: string; readonly port: number } }) {
          const { host, port } = more.socket;
          const link = redis[`${host}:${port}`];
          return duplicate({ ...more, socket: { ...more.socket, port: link?.port ?? port } });
        },
      });
    };
    const failover = await RedisFailover.connect(
      {
        zookeeper: zooKeeper.connectionString,
        root: this.root,
        redis: nodeRedis(linked, this.#access),
      },
      { broken },
    );
    this.#closers.push(() => failover.close());
    return failover;
  }

  /** Writes from now on, until the test ends or stops it. */
  async writer(links: ClientLinks = {}, pauseMs?: number): Promise<Writer> {
    return this.#writer(writeByNodeRedis(await this.client(links)), pauseMs);
  }

  async ioredisWriter(): Promise<Writer> {
    const failover = await RedisFailover.connect({
      zookeeper: this.#zooKeeper.connectionString,
      root: this.root,
      redis: ioredis(Redis, this.#access),
    });
    this.#closers.push(() => failover.close());
    return this.#writer(writeByIoredis(failover));
  }

  #writer(write: Write, pauseMs?: number): Writer {
    this.#writers += 1;
    const writer = new Writer(write, this.#writers * 1_000_000, pauseMs);
    this.#closers.push(() => writer.stop());
    this.#stories.push(() => writer.text());
    return writer;
  }

  /** Stops the writers and judges every acknowledgement. @throws VerdictError */
  async verdict(...writers: readonly Writer[]): Promise<void> {
    await Promise.all(writers.map((writer) => writer.stop()));
    const { primary } = await this.published();
    const list = await this.set.command(primary as NodeAddress, 'LRANGE', Writer.key, 0, -1);
    judge({
      acknowledged: writers.flatMap(({ acknowledged }) => acknowledged),
      present: (list as readonly string[]).map(Number),
      primaries: this.#primaries,
    });
  }

  // Faults -----------------------------------------------------------------------------------------

  /** A proxy between one manager or client and ZooKeeper. */
  async zooKeeperLink(): Promise<TestProxy> {
    return this.#keep(await startProxy(this.#zooKeeper));
  }

  /** A proxy between one manager and a Redis, for `reach`. */
  async redisLink(address: NodeAddress): Promise<TestProxy> {
    return this.#keep(await startProxy(this.set.at(address)));
  }

  // The znodes, and the end -----------------------------------------------------------------------

  /** The record; undefined if there is no such node. */
  async record(): Promise<PrimaryRecord | undefined> {
    const text = await this.#text(this.paths.primary);
    return text === undefined ? undefined : decodePrimary(this.paths.primary, text);
  }

  /** The part of the record that changes only at a move. */
  async reign(): Promise<Pick<PrimaryRecord, 'term' | 'primary' | 'former'> | undefined> {
    const record = await this.record();
    if (record === undefined) return undefined;
    const { term, primary, former } = record;
    return { term, primary, former };
  }

  async nodes(): Promise<Nodes | undefined> {
    const text = await this.#text(this.paths.nodes);
    return text === undefined ? undefined : decodeNodes(this.paths.nodes, text);
  }

  text(): string {
    return this.#stories.map((story) => story()).join('\n');
  }

  /** Closes everything, the latest first. */
  async close(): Promise<void> {
    for (const close of this.#closers.splice(0).reverse()) await close();
  }

  #keep(proxy: TestProxy): TestProxy {
    this.#closers.push(() => proxy.close());
    return proxy;
  }

  async #text(path: string): Promise<string | undefined> {
    try {
      return (await this.zk.get(path)).text;
    } catch (error) {
      if (error instanceof NoNodeError) return undefined;
      throw error;
    }
  }

  /** Notes the primary of each term. A term may come and go unseen, like any change of a node. */
  #followTerms(): void {
    const stop = new AbortController();
    this.#closers.push(() => stop.abort());
    const follow = async () => {
      for await (const reply of this.zk.follow(this.paths.primary, { signal: stop.signal })) {
        if (reply === undefined) continue;
        this.#told = decodePrimary(this.paths.primary, reply.text);
        const { term, primary } = this.#told;
        if (primary !== null) this.#primaries.set(term, primary);
      }
    };
    follow().catch((error: unknown) => {
      if (!stop.signal.aborted) this.#stories.push(() => `terms are not followed: ${error}`);
    });
  }
}
