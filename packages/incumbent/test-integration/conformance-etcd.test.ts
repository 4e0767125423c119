import { Client, credentials } from '@grpc/grpc-js';
import { etcdAvailable, startEtcd, startEtcdCluster } from '@incumbent/servers';
import type { TestProxy } from '@incumbent/zookeeper-testing';
import { startProxy } from '@incumbent/zookeeper-testing';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { etcd } from '../src/backends/etcd/index.ts';
import type { Backend } from '../src/testing/index.ts';
import { electionScenarios, runConformance } from '../src/testing/index.ts';

// Beside other programs an etcd may take seconds for a write.
const ttlMs = 10_000;
const reason = etcdAvailable();
if (reason !== undefined && process.env['CI'] === 'true') throw new Error(reason);

/** Where clients connect. */
interface Stand {
  readonly ports: readonly number[];
  /** As the servers have it. */
  readonly electionTimeout: number;
  close(): Promise<void>;
}

const stands: readonly (readonly [string, () => Promise<Stand>])[] = [
  ['a server', startOne],
  ['a cluster of three', startThree],
];

async function startOne(): Promise<Stand> {
  const server = await startEtcd();
  return { ports: [server.port], electionTimeout: 100, close: () => server.close() };
}

async function startThree(): Promise<Stand> {
  const cluster = await startEtcdCluster(3);
  const ports = cluster.members.map(({ port }) => port);
  return { ports, electionTimeout: 500, close: () => cluster.close() };
}

// Elections mostly wait: all at once, on both.
describe.skipIf(reason !== undefined)('elections on etcd', () => {
  for (const [name, start] of stands) {
    describe.concurrent(`of ${name}`, () => {
      let stand: Stand;
      const clients: Client[] = [];
      const proxies: TestProxy[] = [];
      const silences = new Map<Backend, readonly TestProxy[]>();

      beforeAll(async () => {
        stand = await start();
      });

      afterAll(async () => {
        for (const client of clients) client.close();
        for (const proxy of proxies) await proxy.close();
        await stand?.close();
      });

      const connect = (port: number): Client => {
        const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), {
          // A channel of its own, which can be silenced alone.
          'grpc.use_local_subchannel_pool': 1,
        });
        clients.push(client);
        return client;
      };

      const open = async (scenario: string): Promise<Backend> => {
        const options = { ttl: ttlMs, electionTimeout: stand.electionTimeout };
        if (!scenario.includes('falls silent')) return etcd(stand.ports.map(connect), options);
        const own = await Promise.all(stand.ports.map((port) => startProxy({ port })));
        proxies.push(...own);
        const backend = etcd(
          own.map(({ port }) => connect(port)),
          options,
        );
        silences.set(backend, own);
        return backend;
      };

      for (const scenario of electionScenarios) {
        test.concurrent(scenario.name, async ({ expect }) => {
          const [result] = await runConformance<Backend>([scenario], {
            open: () => open(scenario.name),
            silence: (backend) => {
              for (const proxy of silences.get(backend) ?? []) proxy.silence();
            },
            capabilities: { hints: true, lists: true },
            leaseMs: ttlMs,
          });
          expect(result?.reason).toBeUndefined();
        });
      }
    });
  }
});
