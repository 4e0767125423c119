import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startServer } from '@incumbent/zookeeper-testing';
import { describe, expect, it } from 'vitest';
import type { Scope } from '../support/scope.ts';
import { needServers, scoped } from '../support/scope.ts';
import { nextState, recordStates, settling, until } from '../support/waiting.ts';

describe.concurrent('a server that lags behind', () => {
  needServers();

  it(
    'is not accepted while the session lives: no read goes back, and the server ahead is found again',
    scoped(async (scope) => {
      const { newer, older, client } = await split(scope, 20_000);
      await client.set('/node', 'new');
      const { lastZxid } = client;
      const session = client.session?.id;
      const [suspended, connected] = [
        nextState(client, 'suspended'),
        nextState(client, 'connected'),
      ];
      const states = recordStates(client);
      newer.refuse();
      await suspended;
      await older.pass();
      const get = settling(client.get('/node'));
      // It knows the session, and would serve a client that claims to have seen nothing.
      await until('it was asked and has refused, twice', () => older.counters.connections >= 2);
      expect(states).toEqual(['suspended']);
      expect(client.lastZxid).toBe(lastZxid);
      await newer.pass();
      await connected;
      const { value } = await get;
      expect(value?.text).toBe('new');
      expect(value?.zxid).toBeGreaterThanOrEqual(lastZxid);
      expect(client.session).toMatchObject({ id: session, server: `${newer.host}:${newer.port}` });
    }),
  );

  it(
    'and when only it is left, calls settle at the expiry of the session, never with the older view',
    scoped(async (scope) => {
      const { newer, older, client } = await split(scope, 2_000);
      await client.set('/node', 'new');
      const { lastZxid } = client;
      const [suspended, expired] = [nextState(client, 'suspended'), nextState(client, 'expired')];
      newer.refuse();
      await suspended;
      await older.pass();
      const get = settling(client.get('/node', { timeoutMs: 60_000 }));
      await expired;
      expect((await get).error?.code).toBe('SESSION_EXPIRED');
      expect(client.lastZxid).toBe(lastZxid);
    }),
  );
});

/**
 * Two servers with the same session and node, each behind a proxy, and a client that is connected
 * to one of them. The other one will see nothing new.
 */
async function split(scope: Scope, sessionTimeoutMs: number) {
  const folder = await mkdtemp(join(tmpdir(), 'zookeeper-older-view-'));
  scope.finally(() => rm(folder, { recursive: true, force: true }));
  const [newData, oldData] = [join(folder, 'new'), join(folder, 'old')];
  const server = scope.later(await startServer({ dataDirectory: newData }));
  const newer = await scope.proxy(server);
  const older = await scope.proxy(server);
  older.refuse();
  const url = `zk://${newer.host}:${newer.port},${older.host}:${older.port}`;
  const first = await scope.connect(url, { sessionTimeoutMs: 30_000 });
  await first.create('/node', 'old');
  const session = first.exportSession()!;
  await first.close({ keepSession: true });
  // No client asks while they start: a server that sets itself up leaves connections unanswered.
  newer.refuse();
  await server.kill();
  await cp(newData, oldData, { recursive: true });
  const [lagging] = await Promise.all([startServer({ dataDirectory: oldData }), server.restart()]);
  scope.later(lagging);
  older.switchTo(lagging);
  await newer.pass();
  const client = await scope.connect(url, { session, sessionTimeoutMs });
  return { newer, older, client };
}
