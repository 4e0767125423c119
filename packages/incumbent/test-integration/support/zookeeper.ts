import type { TestProxy, TestServer } from '@incumbent/zookeeper-testing';
import { serverAvailable, startProxy, startServer } from '@incumbent/zookeeper-testing';
import { afterAll, afterEach, beforeAll } from 'vitest';
import type { ZooKeeper } from '../../../zookeeper/src/index.ts';
import { connect } from '../../../zookeeper/src/index.ts';
import type { ZooKeeperOptions } from '../../src/backends/zookeeper/index.ts';
import { zookeeper } from '../../src/backends/zookeeper/index.ts';
import type { Election } from '../../src/core/election.ts';
import { createElection } from '../../src/core/election.ts';
import type { ElectionOptions } from '../../src/core/options.ts';

/** Why no server can be started. In CI that is a failure. */
export const missing: string | undefined = serverAvailable();
if (missing !== undefined && process.env['CI'] === 'true') throw new Error(missing);

/** Long enough for a loaded machine, short enough to be waited for. */
export const sessionTimeoutMs = 4_000;

/** One server for the file. Clients, proxies and elections for each test. */
export interface ZooKeeperStand {
  readonly server: TestServer;
  /** The election's name in this test. Its node is `/incumbent/<name>`. */
  readonly name: string;
  readonly node: string;
  client(through?: TestProxy): Promise<ZooKeeper>;
  proxy(): Promise<TestProxy>;
  election(
    client: ZooKeeper,
    id: string,
    options?: ZooKeeperOptions,
    more?: Partial<ElectionOptions<unknown>>,
  ): Election<unknown>;
}

export function useZooKeeper(): ZooKeeperStand {
  let server: TestServer | undefined;
  let tests = 0;
  const cleanUps: (() => Promise<unknown>)[] = [];
  beforeAll(async () => {
    if (missing === undefined) server = await startServer({ tickTimeMs: 200 });
  });
  afterEach(async () => {
    for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
    tests += 1;
  });
  afterAll(async () => server?.close());
  const stand: ZooKeeperStand = {
    get server() {
      return server as TestServer;
    },
    get name() {
      return `test-${tests}`;
    },
    get node() {
      return `/incumbent/${stand.name}`;
    },
    async client(through) {
      const url = (through ?? stand.server).connectionString;
      const client = await connect(url, { sessionTimeoutMs });
      cleanUps.push(() => client.close());
      return client;
    },
    async proxy() {
      const proxy = await startProxy(stand.server);
      cleanUps.push(() => proxy.close());
      return proxy;
    },
    election(client, id, options = {}, more = {}) {
      const election = createElection({
        name: stand.name,
        backend: zookeeper(client, options),
        candidate: { id },
        ...more,
      });
      cleanUps.push(() => election.close());
      return election;
    },
  };
  return stand;
}

/** Asks until the answer is true. The bound only turns a hang into a failure. */
export async function until(what: string, ask: () => boolean | Promise<boolean>): Promise<void> {
  const deadlineMs = performance.now() + 120_000;
  while (!(await ask())) {
    if (performance.now() > deadlineMs) throw new Error(`never: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** A server that runs is still to be asked: the names of all places, in order of their numbers. */
export async function placesOf(client: ZooKeeper, node: string): Promise<readonly string[]> {
  await client.sync(node);
  const { children } = await client.getChildren(node);
  return [...children].sort((a, b) => (a.slice(-10) < b.slice(-10) ? -1 : 1));
}
