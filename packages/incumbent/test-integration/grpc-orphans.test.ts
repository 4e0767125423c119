/**
 * Connections that no channel wants any more. grpc-js by itself would make them, and
 * never close them.
 */
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePorts } from '@incumbent/zookeeper-testing';
import type { TestContext } from 'vitest';
import { describe, expect, test } from 'vitest';
import { candidate, FakeElection, ledBy, vacant } from '../test/support/fake-election.ts';
import { read, versions } from './support/grpc-ledger.ts';
import { eventually, GrpcStage } from './support/grpc-stage.ts';

type Ending = 'another leads' | 'nobody leads' | 'it is closed';

const host = '127.0.0.1';

describe.concurrent.each(versions)(
  'a channel of grpc-js %s that cannot connect',
  (version, grpc) => {
    interface Scene {
      /** Lets go of the leader that is down, and of everything that gRPC keeps. */
      readonly leave: (ending: Ending) => Promise<void>;
      /** The leader is there again. */
      readonly comeBack: () => Promise<void>;
      /** Connections to the leader since then, and before the one that this makes. */
      readonly connections: () => Promise<number>;
      /** Resolves when there is one. */
      readonly connected: () => Promise<void>;
    }

    /** @returns when the leader was found to be down */
    async function start(
      context: TestContext,
      name: string,
      backoffMs: number,
      policy = 'pick_first',
    ): Promise<Scene> {
      const stage = new GrpcStage(context, grpc);
      const [port = 0] = await freePorts(1);
      const fake = new FakeElection(`${name} ${version}`);
      fake.look = async () => vacant();
      stage.resolve(fake.election);
      const client = stage.client(`incumbent:///${encodeURIComponent(fake.name)}`, {
        'grpc.initial_reconnect_backoff_ms': backoffMs,
        'grpc.max_reconnect_backoff_ms': backoffMs,
      });
      const connectionParameters = JSON.stringify({ loadBalancingConfig: [{ [policy]: {} }] });
      const metadata = { connectionParameters };
      const down = candidate('down', { addresses: [`${host}:${port}`], metadata });
      fake.show(ledBy(down, 1n));
      expect((await read(grpc, client)).status.details).toMatch(/ECONNREFUSED/);
      const next = await stage.server('next');
      const ports: unknown[] = [];
      const server = createServer((socket) => {
        ports.push(socket.remotePort);
        stage.keep(() => socket.destroy());
        socket.on('error', () => {});
      });
      return {
        async leave(ending) {
          if (ending === 'nobody leads') {
            fake.show(vacant(1n));
            await eventually(async () => {
              expect((await read(grpc, client)).status.details).toMatch(/^nobody leads/);
            });
          }
          if (ending === 'another leads') {
            fake.show(ledBy(candidate('next', { addresses: [next.address] }), 2n));
            expect((await read(grpc, client, { waitForReady: true })).value).toBe('next');
          }
          // Sweeps what no channel uses, as gRPC does every ten seconds besides.
          client.close();
        },
        async comeBack() {
          await once(server.listen(port, host), 'listening');
          stage.keep(() => server.close());
        },
        async connections() {
          const ours = connect(port, host);
          stage.keep(() => ours.destroy());
          await once(ours, 'connect');
          // They are taken in the order in which they were made.
          while (!ports.includes(ours.localPort)) await once(server, 'connection');
          return ports.length - 1;
        },
        async connected() {
          if (ports.length === 0) await once(server, 'connection');
        },
      };
    }

    const endings = ['another leads', 'nobody leads', 'it is closed'] as const;

    test.for(endings)('does not do so later when %s', async (ending, context) => {
      const backoffMs = 300;
      const { leave, comeBack, connections } = await start(context, `later: ${ending}`, backoffMs);
      await leave(ending);
      await comeBack();
      // Timers fire in their order, however late, and this one is the last.
      await sleep(2 * backoffMs);
      expect(await connections()).toBe(0);
    });

    test.for(endings)('does not try once more when %s', async (ending, context) => {
      const { leave, comeBack, connections } = await start(context, `again: ${ending}`, 3_600_000);
      // Such an attempt would keep the process for minutes where it is not answered.
      await comeBack();
      await leave(ending);
      await new Promise(setImmediate);
      expect(await connections()).toBe(0);
    });

    test.for(['pick_first', 'round_robin'])(
      'does so when it may, by %s',
      async (policy, context) => {
        const { comeBack, connected } = await start(context, `stays: ${policy}`, 100, policy);
        await comeBack();
        await connected();
      },
    );
  },
);
