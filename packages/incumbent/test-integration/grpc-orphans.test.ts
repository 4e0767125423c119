/** A connection that nobody wants any more: grpc-js by itself would make it, and close it never. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { freePorts } from '../../zookeeper/src/testing/index.ts';
import { candidate, FakeElection, ledBy, vacant } from '../test/support/fake-election.ts';
import { read, versions } from './support/grpc-ledger.ts';
import { GrpcStage } from './support/grpc-stage.ts';

const backoffMs = 100;

describe.concurrent.each(versions)('a channel of grpc-js %s', (version, grpc) => {
  test.for(['another leads', 'nobody leads', 'it is closed'] as const)(
    'that waits to connect to a leader that is down does not do so when %s',
    async (what, context) => {
      const stage = new GrpcStage(context, grpc);
      const name = `orphan ${version} ${what}`;
      const [port = 0] = await freePorts(1);
      const election = new FakeElection(name);
      election.look = async () => vacant();
      stage.resolve(election.election);
      const client = stage.client(`incumbent:///${encodeURIComponent(name)}`, {
        'grpc.initial_reconnect_backoff_ms': backoffMs,
        'grpc.max_reconnect_backoff_ms': backoffMs,
      });
      election.show(ledBy(candidate('down', { addresses: [`127.0.0.1:${port}`] }), 1n));
      expect((await read(grpc, client)).status.code).toBe(grpc.status.UNAVAILABLE);
      const { address } = await stage.server('next');
      const next = candidate('next', { addresses: [address] });
      if (what === 'another leads') election.show(ledBy(next, 2n));
      if (what === 'nobody leads') election.show(vacant(1n));
      if (what === 'another leads') {
        expect((await read(grpc, client, { waitForReady: true })).value).toBe('next');
      }
      // It sweeps what nobody uses, which grpc-js does every ten seconds besides.
      client.close();
      // What it has begun is refused. Then who was down is there again.
      await sleep(backoffMs / 5);
      const server = createServer().listen(port, '127.0.0.1');
      await once(server, 'listening');
      context.onTestFinished(() => void server.close());
      await sleep(4 * backoffMs);
      const open = await new Promise<number>((resolve, reject) => {
        server.getConnections((error, count) => (error === null ? resolve(count) : reject(error)));
      });
      expect(open).toBe(0);
    },
  );
});
