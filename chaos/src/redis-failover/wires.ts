import type { TestProxy } from '@incumbent/zookeeper-testing';
import { startProxy } from '@incumbent/zookeeper-testing';

/** The network of one process: proxies of its own to the servers it talks to. */
export class Wires {
  readonly zookeeper: string;
  /** From the address of each Redis to the proxy before it; empty where there are none. */
  readonly reach: Readonly<Record<string, string>>;
  readonly #zookeeper: readonly TestProxy[];
  readonly #nodes: ReadonlyMap<string, TestProxy>;
  /** Those that hold still: another strike may have cut or healed one meanwhile. */
  readonly #holding = new Set<TestProxy>();

  private constructor(zookeeper: readonly TestProxy[], nodes: ReadonlyMap<string, TestProxy>) {
    this.#zookeeper = zookeeper;
    this.#nodes = nodes;
    this.zookeeper = `zk://${zookeeper.map(addressOf).join(',')}`;
    this.reach = Object.fromEntries([...nodes].map(([node, proxy]) => [node, addressOf(proxy)]));
  }

  static async lay(
    zookeeperPorts: readonly number[],
    nodes: readonly { readonly address: string; readonly port: number }[],
  ): Promise<Wires> {
    const [toZooKeeper, toNodes] = await Promise.all([
      Promise.all(zookeeperPorts.map((port) => startProxy({ port }))),
      Promise.all(
        nodes.map(async ({ address, port }) => [address, await startProxy({ port })] as const),
      ),
    ]);
    return new Wires(toZooKeeper, new Map(toNodes));
  }

  /** No word to or from ZooKeeper. */
  cutZooKeeper(): void {
    for (const proxy of this.#zookeeper) proxy.silence();
  }

  async healZooKeeper(): Promise<void> {
    await Promise.all(this.#zookeeper.map((proxy) => proxy.pass()));
  }

  /** No word to or from that Redis. @param aloud whether connections are reset, or nothing is heard */
  cutNode(address: string, aloud: boolean): void {
    const proxy = this.#nodes.get(address);
    if (proxy === undefined) return;
    this.#holding.delete(proxy);
    if (aloud) proxy.cut();
    else proxy.silence();
  }

  async healNode(address: string): Promise<void> {
    const proxy = this.#nodes.get(address);
    if (proxy === undefined) return;
    this.#holding.delete(proxy);
    await proxy.pass();
  }

  /** Commands to a Redis stay on their way, until `letGo`. */
  holdNodes(): void {
    for (const proxy of this.#nodes.values()) {
      proxy.holdRequests();
      this.#holding.add(proxy);
    }
  }

  letNodesGo(): void {
    for (const proxy of this.#holding) proxy.letGo();
    this.#holding.clear();
  }

  async heal(): Promise<void> {
    this.#holding.clear();
    const all = [...this.#zookeeper, ...this.#nodes.values()];
    await Promise.all(all.map((proxy) => proxy.pass()));
  }

  async close(): Promise<void> {
    const all = [...this.#zookeeper, ...this.#nodes.values()];
    await Promise.all(all.map((proxy) => proxy.close()));
  }
}

function addressOf({ host, port }: TestProxy): string {
  return `${host}:${port}`;
}
