import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ZooKeeper } from '../../zookeeper/src/index.ts';
import { connect } from '../../zookeeper/src/index.ts';
import type { TestEnsemble, TestServer } from '../../zookeeper/src/testing/index.ts';
import { serverAvailable, startEnsemble, startServer } from '../../zookeeper/src/testing/index.ts';
import type { ZooKeeperLayout } from '../src/backends/zookeeper/index.ts';
import { zookeeper } from '../src/backends/zookeeper/index.ts';
import type { Backend } from '../src/testing/index.ts';
import { electionScenarios, runConformance } from '../src/testing/index.ts';

const sessionTimeoutMs = 2_000;
const reason = serverAvailable();
if (reason !== undefined && process.env['CI'] === 'true') throw new Error(reason);

const layouts: readonly Exclude<ZooKeeperLayout, 'hadoop'>[] = [
  'incumbent',
  'golea',
  'curator-latch',
  'curator-selector',
  'kazoo',
  'recipe',
];

describe.skipIf(reason !== undefined)('elections on ZooKeeper', () => {
  let server: TestServer;
  let client: ZooKeeper;

  beforeAll(async () => {
    server = await startServer({ tickTimeMs: 200 });
    client = await connect(server.connectionString, { sessionTimeout: sessionTimeoutMs });
  });

  afterAll(async () => {
    await client.close();
    await server.close();
  });

  for (const layout of layouts) {
    describe(layout, () => {
      for (const scenario of electionScenarios) {
        test.concurrent(scenario.name, async ({ expect }) => {
          const [result] = await runConformance<Backend>([scenario], {
            open: () =>
              zookeeper(client, { layout, root: `/${layout}`, create: true, tickTime: 200 }),
            capabilities: { hints: true, lists: true },
            leaseMs: sessionTimeoutMs,
            prefix: layout,
          });
          expect(result?.reason).toBeUndefined();
        });
      }
    });
  }
});
