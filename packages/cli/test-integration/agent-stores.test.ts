// `incumbent agent` on stores with servers: agents killed and frozen, failovers; at length, what happens
// to services and to fencing too, which is played on the file store always.
import { postgresAvailable, startPostgres } from '@incumbent/servers';
import { serverAvailable, startServer } from '@incumbent/zookeeper-testing';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { fencingFailsOnce, serviceHangs, serviceIsKilled } from './support/agent-scenarios.ts';
import type { NodeSettings, ServiceNode } from './support/agents.ts';
import { cluster, failOver, failovers, isAtLength, takesOver, test } from './support/agents.ts';
import { checkOneAtATime, isAlive } from './support/run-process.ts';

const stores = [
  {
    name: 'PostgreSQL',
    missing: postgresAvailable(),
    async open() {
      const server = await startPostgres();
      return { url: server.url, close: () => server.close() };
    },
  },
  {
    name: 'ZooKeeper',
    missing: serverAvailable({}),
    async open() {
      const server = await startServer();
      return { url: server.connectionString, close: () => server.close() };
    },
  },
];

describe.each(stores)('on $name', ({ missing, open }) => {
  if (missing !== undefined && process.env['CI'] === 'true') throw new Error(missing);
  const it = test.skipIf(missing !== undefined);
  let store: Awaited<ReturnType<typeof open>>;
  beforeAll(async () => {
    if (missing === undefined) store = await open();
  });
  afterAll(async () => {
    await store?.close();
  });
  const place = (election: string): NodeSettings => ({ store: store.url, election, lease: '15s' });

  it.for(['SIGKILL', 'SIGSTOP'] as const)(
    'an agent gets %s: its service is fenced, and then another one is active',
    async (signal, { lab }) => {
      const [a, b] = (await cluster(lab, ['a', 'b'], place(signal))) as [ServiceNode, ServiceNode];
      await takesOver(b, `agent gets ${signal}`, 'agentLostMs', () => a.agent.kill(signal));
      expect(isAlive(a.pid)).toBe(false);
      checkOneAtATime(lab.stamps());
    },
  );

  const atLength = test.skipIf(missing !== undefined || !isAtLength);
  atLength('a service is killed: another one is active', ({ lab }) =>
    serviceIsKilled(lab, place('service-killed')),
  );
  atLength('a service hangs: it is fenced before another one is active', ({ lab }) =>
    serviceHangs(lab, place('service-hangs')),
  );
  atLength('fencing fails once: nobody becomes active before it has succeeded', ({ lab }) =>
    fencingFailsOnce(lab, place('fencing')),
  );

  it(`failover is asked for ${failovers} times among three`, async ({ lab }) => {
    const settings = { ...place('three'), lease: '40s' };
    const nodes = await cluster(lab, ['a', 'b', 'c'], settings);
    await failOver(lab, nodes, failovers, ['-e', 'three', '--store', store.url]);
    checkOneAtATime(lab.stamps());
  });
});
