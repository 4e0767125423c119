/** When a reply counts: ZooKeeper is cut off, replies are late, the primary is moved meanwhile. */
import type { RedisServer } from '@incumbent/servers';
import { connect } from '@incumbent/zookeeper';
import type { TestProxy } from '@incumbent/zookeeper-testing';
import type { TestContext } from 'vitest';
import { describe, expect, test } from 'vitest';
import type { RedisFailover } from '../src/index.ts';
import type { CommonClient, Library } from './support/client-stage.ts';
import {
  addressOf,
  ClientStage,
  libraries,
  missing,
  useServers,
  watched,
} from './support/client-stage.ts';
import { lasting, until } from './support/waiting.ts';

const viewMs = 400;

describe.skipIf(missing !== undefined).concurrent('the view of a client', () => {
  const servers = useServers(2);
  const both = () => servers.nodes as readonly [RedisServer, RedisServer];

  interface Scene {
    readonly stage: ClientStage;
    readonly failover: RedisFailover<CommonClient>;
    readonly zookeeper: TestProxy;
    readonly redis: TestProxy;
    readonly key: string;
  }

  /** A client whose links to ZooKeeper and to the primary can be cut. */
  async function open(
    context: TestContext,
    library: Library,
    options: Parameters<ClientStage['client']>[1] = {},
  ): Promise<Scene> {
    const stage = await ClientStage.open(servers, context);
    const redis = await stage.proxy(both()[0]);
    const zookeeper = await stage.proxy(servers.zookeeper);
    await stage.publish(addressOf(redis), [], { viewMs });
    const failover = await stage.client(library, {
      zookeeper: zookeeper.connectionString,
      maxWait: '60s',
      commandTimeout: '30s',
      ...options,
    });
    const key = `${stage.root}:${library}`;
    await failover.redis.set(key, 'first');
    return { stage, failover, zookeeper, redis, key };
  }

  /** A write is executed, and its reply comes when the view is over. */
  async function lateReply({ failover, zookeeper, redis, key }: Scene) {
    redis.holdReplies();
    const writing = watched(failover.redis.set(key, 'second'));
    await until('it is executed', async () => (await both()[0].command('GET', key)) === 'second');
    zookeeper.silence();
    await until('the view has lapsed', () => !failover.redis.isReady);
    redis.letGo();
    await until('the reply has come', () => redis.counters.bytesHeld === 0);
    return writing;
  }

  for (const library of libraries) {
    test(`holds a late reply until ZooKeeper confirms that nothing has changed (${library})`, async (context) => {
      const scene = await open(context, library);
      const writing = await lateReply(scene);
      await lasting(100);
      expect(writing.settled).toBe(false);
      await scene.zookeeper.pass();
      expect(await writing.promise).toBe('OK');
    });

    test(`takes a late reply for nothing when the primary was moved (${library})`, async (context) => {
      const scene = await open(context, library);
      const { stage, zookeeper, redis } = scene;
      const writing = await lateReply(scene);
      await stage.revoke(addressOf(redis), { viewMs });
      await stage.publish(addressOf(both()[0]), [], { viewMs });
      await zookeeper.pass();
      await expect(writing.promise).rejects.toMatchObject({
        code: 'OUTCOME_UNKNOWN',
        term: 1,
        primary: addressOf(redis),
        message: expect.stringContaining('the primary was moved'),
      });
    });

    test(`takes it for nothing when it was moved and moved back (${library})`, async (context) => {
      const scene = await open(context, library);
      const { stage, failover, zookeeper, redis, key } = scene;
      const writing = await lateReply(scene);
      await stage.publish(addressOf(both()[1]), [], { viewMs });
      await stage.publish(addressOf(redis), [], { viewMs });
      await zookeeper.pass();
      await expect(writing.promise).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN', term: 1 });
      await failover.redis.set(key, 'third');
      expect(await both()[0].command('GET', key)).toBe('third');
    });

    test(`counts the reply that comes while the view holds, though it has begun to move (${library})`, async (context) => {
      const stage = await ClientStage.open(servers, context);
      const redis = await stage.proxy(both()[0]);
      const slow = { viewMs: 600_000 };
      await stage.publish(addressOf(redis), [], slow);
      const failover = await stage.client(library, { commandTimeout: '30s' });
      const key = `${stage.root}:moving`;
      await failover.redis.set(key, 'first');
      redis.holdReplies();
      const writing = watched(failover.redis.set(key, 'second'));
      await until('it is executed', async () => (await both()[0].command('GET', key)) === 'second');
      await stage.revoke(addressOf(redis), slow);
      await until('the client knows', () => failover.current.primary === undefined);
      const next = watched(failover.redis.set(key, 'third'));
      await lasting(50);
      expect([writing.settled, next.settled]).toEqual([false, false]);
      redis.letGo();
      expect(await writing.promise).toBe('OK');
      // A write that was not sent waits for the next primary.
      expect(await both()[0].command('GET', key)).toBe('second');
      await stage.publish(addressOf(redis), [], slow);
      expect(await next.promise).toBe('OK');
    });

    test(`does not wait for a primary that stands still when there is another (${library})`, async (context) => {
      const { stage, failover, redis, key } = await open(context, library);
      redis.holdReplies();
      const writing = watched(failover.redis.set(key, 'second'));
      await until('it is executed', async () => (await both()[0].command('GET', key)) === 'second');
      await stage.revoke(addressOf(redis), { viewMs });
      await stage.publish(addressOf(both()[0]), [], { viewMs });
      // `commandTimeout` is 30 s, and the node does not answer.
      await expect(writing.promise).rejects.toMatchObject({
        code: 'OUTCOME_UNKNOWN',
        term: 1,
        message: expect.stringContaining('before another was the primary'),
      });
    });

    test(`reads from replicas while the primary moves (${library})`, async (context) => {
      const [primary, replica] = both();
      const stage = await ClientStage.open(servers, context);
      await stage.publish(addressOf(primary), [addressOf(replica)]);
      const failover = await stage.client(library);
      await stage.revoke(addressOf(primary));
      await until('the client knows', () => failover.current.primary === undefined);
      expect(failover.current.replicas).toEqual([addressOf(replica)]);
      expect(await failover.redis.get('absent')).toBe(null);
    });

    test(`does not count a reply over a connection that is younger than its confirmation (${library})`, async (context) => {
      const stage = await ClientStage.open(servers, context);
      const old = await stage.redis();
      const zookeeper = await stage.proxy(servers.zookeeper);
      const long = { viewMs: 600_000 };
      await stage.publish(addressOf(old), [], long);
      const failover = await stage.client(library, {
        zookeeper: zookeeper.connectionString,
        maxWait: '60s',
      });
      await failover.redis.set('key', 'of term 1');
      zookeeper.silence();
      // A planned move, which waits for no view. Then the old primary is started anew, as a
      // primary.
      await stage.publish(addressOf(both()[0]), [], long);
      await old.kill();
      await old.start();
      const writing = watched(failover.redis.set('key', 'late').catch((error: unknown) => error));
      await until('it is executed', async () => (await old.command('GET', 'key')) === 'late');
      await lasting(100);
      expect(writing.settled).toBe(false);
      await zookeeper.pass();
      expect(await writing.promise).toMatchObject({ code: 'OUTCOME_UNKNOWN', term: 1 });
    });

    test(`sends nothing when it has lapsed, and says why (${library})`, async (context) => {
      const { failover, zookeeper, key } = await open(context, library, { maxWait: '5s' });
      zookeeper.silence();
      await until('the view has lapsed', () => !failover.redis.isReady);
      const refusal = {
        code: 'NO_PRIMARY',
        message: expect.stringMatching(/within 5s: ZooKeeper/),
      };
      // A primary that may have been replaced serves no reads either.
      await Promise.all([
        expect(failover.redis.set(key, 'second')).rejects.toMatchObject(refusal),
        expect(failover.redis.get(key)).rejects.toMatchObject(refusal),
      ]);
      expect(await both()[0].command('GET', key)).toBe('first');
    });

    test(`lets safeMode: false go on with the last primary (${library})`, async (context) => {
      const { stage, failover, zookeeper, redis, key } = await open(context, library, {
        safeMode: false,
      });
      zookeeper.silence();
      await lasting(viewMs);
      await failover.redis.set(key, 'second');
      expect(await failover.redis.get(key)).toBe('second');
      await stage.publish(addressOf(both()[0]), [], { viewMs });
      await zookeeper.pass();
      await until('it follows again', () => failover.current.term === 2);
      expect(failover.current.primary).not.toBe(addressOf(redis));
      await failover.redis.set(key, 'third');
    });
  }

  test('goes on over an expired session of a client that is its caller’s', async (context) => {
    const stage = await ClientStage.open(servers, context);
    const proxy = await stage.proxy(servers.zookeeper);
    const zk = await connect(proxy.connectionString, { sessionTimeoutMs: 1_000 });
    context.onTestFinished(() => zk.close());
    await stage.publish(addressOf(both()[0]), [], { viewMs });
    const failover = await stage.client('redis', { zookeeper: zk, maxWait: '60s' });
    proxy.refuse();
    await until('the session is over', () => zk.state === 'expired');
    const key = `${stage.root}:expired`;
    const writing = watched(failover.redis.set(key, 'first'));
    await stage.publish(addressOf(both()[0]), [addressOf(both()[1])], { viewMs });
    await proxy.pass();
    expect(await writing.promise).toBe('OK');
    expect(failover.current).toMatchObject({ term: 2, replicas: [addressOf(both()[1])] });
    await failover.close();
    expect(zk.state).toBe('connected');
  });
});
