import { afterAll, beforeAll, describe, test } from 'vitest';
import { connect } from '../../zookeeper/src/index.ts';
import type { TestServer } from '../../zookeeper/src/testing/index.ts';
import { startProxy, startServer } from '../../zookeeper/src/testing/index.ts';
import { zookeeper } from '../src/backends/zookeeper/index.ts';
import { faultScenarios, runFaultScenario } from './support/fault-scenarios.ts';
import type { FaultStand } from './support/fault-trial.ts';
import { missing } from './support/zookeeper.ts';

const sessionTimeoutMs = 1_500;

/** Operations that take a number in the log of the store: create, delete, setData, multi. */
const writing: readonly number[] = [1, 2, 5, 14, 15];

describe.skipIf(missing !== undefined)(
  'elections on ZooKeeper, through a network that fails',
  () => {
    let server: TestServer;
    beforeAll(async () => {
      server = await startServer({ tickTimeMs: 100 });
    });
    afterAll(async () => server?.close());

    const stand: FaultStand = {
      timing: {},
      winsInOneWrite: false,
      isWrite: (chunk) => operationsIn(chunk).some((operation) => writing.includes(operation)),
      async connect() {
        const proxy = await startProxy(server);
        const client = await connect(proxy.connectionString, { sessionTimeout: sessionTimeoutMs });
        return { backend: zookeeper(client), proxy, close: () => client.close() };
      },
    };

    faultScenarios.forEach((scenario, index) => {
      test.concurrent(scenario.name, async ({ expect }) => {
        expect(await runFaultScenario(scenario, stand, `faults-${index}`)).toEqual([]);
      });
    });
  },
);

/** The operations of a chunk of whole frames. */
function operationsIn(chunk: Uint8Array): readonly number[] {
  const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length);
  const operations: number[] = [];
  for (let at = 0; at + 12 <= bytes.length; at += 4 + bytes.readInt32BE(at)) {
    operations.push(bytes.readInt32BE(at + 8));
  }
  return operations;
}
