import type { TestProxy } from '@incumbent/zookeeper-testing';
import { serverAvailable, startProxy } from '@incumbent/zookeeper-testing';
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { ZooKeeper } from '../../../zookeeper/src/index.ts';
import { connect } from '../../../zookeeper/src/index.ts';
import type { ZooKeeperLayout } from '../../src/backends/zookeeper/index.ts';
import { zookeeper } from '../../src/backends/zookeeper/index.ts';
import type { Backend } from '../../src/testing/index.ts';
import { electionScenarios, runConformance } from '../../src/testing/index.ts';

// Beside busy programs an answer of the ensemble may take seconds.
const sessionTimeoutMs = 10_000;
const reason = serverAvailable();
if (reason !== undefined && process.env['CI'] === 'true') throw new Error(reason);

const layouts: readonly ZooKeeperLayout[] = [
  'incumbent',
  'golea',
  'curator-latch',
  'curator-selector',
  'kazoo',
  'recipe',
  'hadoop',
  'node',
];

/** Where a proxy can lead, and where clients connect. */
export interface Stand {
  readonly connectionString: string;
  readonly target: { readonly port: number };
  close(): Promise<void>;
}

/** Scenarios that a layout cannot pass, with the reason. */
const exceptions: readonly (readonly [ZooKeeperLayout, RegExp, string])[] = [
  [
    'golea',
    /handed over/,
    'a place of GoLea does not say whose it is, so nobody can be asked to yield',
  ],
  [
    'golea',
    /observer/,
    'a first place counts as a foreign leader until the record names it: seen twice',
  ],
  [
    'golea',
    /seen as ready/,
    'a first place counts as a foreign leader, which is ready, until the record names it',
  ],
];

/** The scenarios of elections in every layout. A stand has a file of its own, so that they run side by side. */
export function describeElections(name: string, start: () => Promise<Stand>): void {
  describe.skipIf(reason !== undefined)(`elections on ${name}`, () => {
    let stand: Stand;
    let shared: ZooKeeper;
    const clients: ZooKeeper[] = [];
    const proxies: TestProxy[] = [];
    const silences = new Map<Backend, TestProxy>();

    beforeAll(async () => {
      stand = await start();
      shared = await connect(stand.connectionString, { sessionTimeoutMs });
      clients.push(shared);
    });

    afterAll(async () => {
      await Promise.all(clients.map((client) => client.close()));
      for (const each of proxies) await each.close();
      await stand?.close();
    });

    for (const layout of layouts) {
      // Elections mostly wait: all layouts at once.
      describe.concurrent(layout, () => {
        const options = { layout, root: `/${layout}`, create: true, tickTime: 200 } as const;
        const open = async (scenario: string): Promise<Backend> => {
          if (!scenario.includes('falls silent')) return zookeeper(shared, options);
          // A candidate that is to fall silent has a session of its own.
          const proxy = await startProxy(stand.target);
          proxies.push(proxy);
          const client = await connect(proxy.connectionString, {
            sessionTimeoutMs,
          });
          clients.push(client);
          const backend = zookeeper(client, options);
          silences.set(backend, proxy);
          return backend;
        };
        for (const scenario of electionScenarios) {
          // Of a lock only the holder is known.
          if ((layout === 'hadoop' || layout === 'node') && scenario.needs === 'lists') continue;
          if (exceptions.some(([of, which]) => of === layout && which.test(scenario.name)))
            continue;
          test.concurrent(scenario.name, async ({ expect }) => {
            const [result] = await runConformance<Backend>([scenario], {
              open: () => open(scenario.name),
              silence: (backend) => silences.get(backend)?.silence(),
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
}
