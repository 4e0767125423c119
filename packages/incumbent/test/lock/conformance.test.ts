import { connect } from '@incumbent/zookeeper';
import { FakeZooKeeper } from '@incumbent/zookeeper/testing';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { zookeeper } from '../../src/backends/zookeeper/index.ts';
import type { Backend } from '../../src/testing/index.ts';
import { electionScenarios, runConformance } from '../../src/testing/index.ts';

const leaseMs = 1_500;
let fake: FakeZooKeeper;
const clients: AsyncDisposable[] = [];

beforeAll(async () => {
  fake = await FakeZooKeeper.start({ tickTimeMs: 200, realTime: true });
});

afterAll(async () => {
  for (const client of clients) await client[Symbol.asyncDispose]();
  await fake.close();
});

async function backend(): Promise<Backend> {
  const client = await connect(fake.connectionString, { sessionTimeout: leaseMs });
  clients.push(client);
  return zookeeper(client, { layout: 'hadoop', root: '/hadoop-ha', tickTime: 200 });
}

describe('an election in the layout of Hadoop, every candidate on a client of its own', () => {
  for (const scenario of electionScenarios) {
    if (scenario.needs === 'lists') continue;
    test.concurrent(scenario.name, async ({ expect }) => {
      const [result] = await runConformance<Backend>([scenario], {
        open: () => backend(),
        capabilities: { hints: true },
        leaseMs,
      });
      expect(result?.reason).toBeUndefined();
    });
  }
});
