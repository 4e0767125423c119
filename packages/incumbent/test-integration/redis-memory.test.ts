/** Redis forgets data, and elections cope with it. */
import type { RedisServer } from '@incumbent/servers';
import { startRedis, waitFor } from '@incumbent/servers';
import { startProxy } from '@incumbent/zookeeper-testing';
import { describe, expect, test } from 'vitest';
import {
  fieldOf,
  hasLooked,
  hasSeenLeader,
  keyOf,
  libraries,
  lossOf,
  missing,
  openClient,
  Stage,
} from './support/redis.ts';

/** For single questions: a machine that stalls may take its time to answer. */
const patient = { lease: 30_000 };

/** Its record was missing, or a machine that stalls did not let it look in time. */
const losses = ['record-gone', 'renewal-failed', 'stalled'];

describe.skipIf(missing !== undefined).concurrent('a Redis that forgets', () => {
  for (const library of libraries) {
    test(`started again empty, it is led by one at a time, with rising tokens (${library})`, async (context) => {
      const stage = new Stage(context);
      const server = stage.keep(await startRedis());
      const a = stage.election('a', await stage.client(library, server));
      const b = stage.election('b', await stage.client(library, server));
      const first = await stage.lead(a);
      await hasSeenLeader(b);
      const second = stage.lead(b);
      await server.kill();
      await server.start();
      // Its record is gone, or it could not be asked for too long.
      expect(losses).toContain(await lossOf(first));
      expect((await second).token).toBeGreaterThan(first.token);
      stage.expectNoOverlap();
    });
  }

  test('flushed, it is led by one at a time, with rising tokens', async (context) => {
    const stage = new Stage(context);
    const server = stage.keep(await startRedis());
    const a = stage.election('a', await stage.client('redis', server));
    const b = stage.election('b', await stage.client('ioredis', server));
    const first = await stage.lead(a);
    await hasSeenLeader(b);
    const second = stage.lead(b);
    for (let times = 0; times < 3; times += 1) await server.command('FLUSHALL');
    expect(losses).toContain(await lossOf(first));
    expect((await second).token).toBeGreaterThan(first.token);
    stage.expectNoOverlap();
  });

  test('started again empty, it has its tokens from the candidate that knows the highest', async (context) => {
    const stage = new Stage(context);
    const server = stage.keep(await startRedis());
    const first = await stage.lead(stage.election('a', await stage.client('redis', server)));
    // It only looks, and has seen the first term. No other candidate has seen the second one.
    const watcher = stage.election('w', await stage.client('redis', server));
    await hasSeenLeader(watcher);
    await first[Symbol.asyncDispose]();
    const proxy = stage.keep(await startProxy(server));
    const second = await stage.lead(stage.election('b', await stage.client('redis', proxy)));
    proxy.silence();
    await server.kill();
    await server.start();
    await waitFor('the watcher has told', async () => (await watcher.leader()) !== undefined);
    const third = stage.lead(stage.election('c', await stage.client('ioredis', server)));
    expect((await third).token).toBeGreaterThan(second.token);
    stage.expectNoOverlap();
  });

  for (const clock of ['right', 'set back'] as const) {
    test(`gone back twice to the same record, it gives no token twice (its clock is ${clock})`, async (context) => {
      const stage = new Stage(context);
      const server = stage.keep(await startRedis());
      /** No later leader knows anything of it. */
      const turn = async (id: string, before?: () => Promise<unknown>) => {
        const { client, close } = await openClient('redis', server);
        const election = stage.election(id, client);
        await hasLooked(election);
        await before?.();
        const term = await stage.lead(election);
        await term[Symbol.asyncDispose]();
        await election.close();
        close();
        return term.token;
      };
      const restart = async () => {
        await server.kill();
        await server.start();
      };
      const first = await turn('a');
      if (clock === 'set back') {
        await server.command('HSET', keyOf(stage.name), 'token', `${first}000`);
      }
      await server.command('SAVE');
      await restart();
      // The second life is on the disk, and its win is not.
      const second = await turn('b', () => server.command('SAVE'));
      await restart();
      const third = await turn('c');
      if (clock === 'set back') {
        // Two of three may be equal, once in thousands of runs.
        await restart();
        expect(new Set([second, third, await turn('d')]).size).toBeGreaterThan(1);
        return;
      }
      expect(third).toBeGreaterThan(second);
      await server.command('FLUSHALL');
      expect(await turn('d')).toBeGreaterThan(third);
    });
  }

  test('its life has begun now, if the clock was set back since it began', async (context) => {
    const stage = new Stage(context);
    const server = stage.keep(await startRedis());
    const watcher = stage.election('w', await stage.client('redis', server));
    await hasLooked(watcher);
    await server.command('HINCRBY', keyOf(stage.name), 'bornAt', 3_600_000);
    await hasLooked(watcher);
    const bornAt = Number(await fieldOf(server, stage.name, 'bornAt'));
    expect(bornAt).toBeLessThanOrEqual(Date.now());
  });

  test('gone back to an older record of the one who leads, it is led on', async (context) => {
    const stage = new Stage(context);
    const server = stage.keep(await startRedis());
    // Long enough to outlast the restart.
    const lease = { lease: 6_000 };
    const a = stage.election('a', await stage.client('redis', server), {}, lease);
    const b = stage.election('b', await stage.client('redis', server), {}, lease);
    const first = await stage.lead(a);
    const waiting = new AbortController();
    const second = b.campaign({ signal: waiting.signal });
    second.catch(() => {});
    await server.command('SAVE');
    const saved = await fieldOf(server, stage.name, 'version');
    await waitFor('confirmations that will be lost', async () => {
      const version = await fieldOf(server, stage.name, 'version');
      return version !== saved && first.isLeading();
    });
    const life = await fieldOf(server, stage.name, 'life');
    await server.kill();
    await server.start();
    await waitFor('the leader has confirmed', async () => {
      return (await fieldOf(server, stage.name, 'life')) !== life && first.isLeading();
    });
    waiting.abort(new Error('enough'));
    await expect(second).rejects.toThrow('enough');
    expect(first.isLeading()).toBe(true);
    stage.expectNoOverlap();
  });

  test('gone back to a seat that was vacant, it is not led by two', async (context) => {
    const stage = new Stage(context);
    const server = stage.keep(await startRedis());
    const a = stage.election('a', await stage.client('redis', server));
    const first = await stage.lead(a);
    await first[Symbol.asyncDispose]();
    await server.command('SAVE');
    // Cut off from the server that comes back: it is not told that its term was lost.
    const proxy = stage.keep(await startProxy(server));
    const b = stage.election('b', await stage.client('redis', proxy));
    const second = await stage.lead(b);
    proxy.silence();
    await server.kill();
    await server.start();
    expect(await fieldOf(server, stage.name, 'token')).toBe(`${first.token}`);
    // It has never heard of the second term.
    const c = stage.election('c', await stage.client('ioredis', server));
    const third = await stage.lead(c);
    expect(third.token).toBeGreaterThan(second.token);
    stage.expectNoOverlap();
  });

  test('a write that was decided before it was flushed is not applied after it', async (context) => {
    const stage = new Stage(context);
    const server = stage.keep(await startRedis());
    const proxy = stage.keep(await startProxy(server));
    const lease = { lease: 6_000 };
    const a = stage.election('a', await stage.client('redis', proxy), {}, lease);
    const b = stage.election('b', await stage.client('ioredis', server), {}, lease);
    const c = stage.election('c', await stage.client('redis', server), {}, lease);
    const held = new Promise<void>((resolve) => {
      proxy.onRequest((chunk) => {
        if (!Buffer.from(chunk).includes('"nonce":')) return;
        proxy.holdRequests();
        resolve();
      });
    });
    const giveUp = new AbortController();
    const late = a.campaign({ signal: giveUp.signal }).then((term) => {
      stage.watch.add(term, () => Number.POSITIVE_INFINITY);
      return term[Symbol.asyncDispose]();
    });
    late.catch(() => {});
    await held;
    // Both have waited for the same lease.
    const term = await stage.lead(b);
    await server.command('FLUSHALL');
    await c.leader();
    proxy.letGo();
    await waitFor('the late write has come', async () => proxy.counters.bytesHeld === 0);
    await lossOf(term);
    giveUp.abort(new Error('enough'));
    await expect(late).rejects.toThrow('enough');
    stage.expectNoOverlap();
  });
});

describe.skipIf(missing !== undefined).concurrent('a Redis that forgets nothing', () => {
  test('makes nobody wait when it was started again, if it is said to be durable', async (context) => {
    const stage = new Stage(context);
    const server = stage.keep(await startRedis({ appendFsync: 'always' }));
    const first = await stage.lead(stage.election('a', await stage.client('redis', server)));
    await first[Symbol.asyncDispose]();
    await server.kill();
    await server.start();
    const client = await stage.client('ioredis', server);
    const doubtful = stage.election('b', client, {}, patient);
    await expect(doubtful.campaign({ wait: 0, settle: false })).rejects.toMatchObject({
      why: { kind: 'settling' },
    });
    const trusting = stage.election('c', client, { durable: true }, patient);
    const term = await trusting.campaign({ wait: 0 });
    expect(term.token).toBeGreaterThan(first.token);
    await term[Symbol.asyncDispose]();
    // Nor is the very first term waited for.
    const other = new Stage(context).election('d', client, { durable: true }, patient);
    await (await other.campaign({ wait: 0 }))[Symbol.asyncDispose]();
  });
});

describe.skipIf(missing !== undefined).concurrent('tokens', () => {
  test('begin above the floor', async (context) => {
    const stage = new Stage(context);
    const server = stage.keep(await startRedis());
    const client = await stage.client('redis', server);
    const term = await stage.lead(stage.election('a', client, { tokenFloor: 2n ** 80n }));
    expect(term.token).toBeGreaterThan(2n ** 80n);
    await term[Symbol.asyncDispose]();
    const next = await stage.lead(stage.election('b', client, { tokenFloor: 5n }));
    expect(next.token).toBeGreaterThan(term.token);
  });
});

describe.skipIf(missing !== undefined).concurrent('the clock of Redis', () => {
  /** As if it had been set forward by so many ms since. */
  async function step(server: RedisServer, name: string, ms: number): Promise<void> {
    for (const field of ['writtenAt', 'bornAt']) {
      await server.command('HINCRBY', keyOf(name), field, -ms);
    }
  }

  test('may step within its bound, and nobody leads too early', async (context) => {
    const stage = new Stage(context);
    const server = stage.keep(await startRedis());
    const proxy = stage.keep(await startProxy(server));
    const a = stage.election('a', await stage.client('redis', proxy));
    const first = await stage.lead(a);
    proxy.silence();
    await step(server, stage.name, 5_000);
    const b = stage.election('b', await stage.client('redis', server), { clockStep: '5s' });
    const second = await stage.lead(b);
    expect(second.token).toBeGreaterThan(first.token);
    stage.expectNoOverlap();
  });

  test('spares the wait for a leader that has died long ago', async (context) => {
    const stage = new Stage(context);
    const server = stage.keep(await startRedis());
    const proxy = stage.keep(await startProxy(server));
    const a = stage.election('a', await stage.client('redis', proxy));
    const first = await stage.lead(a);
    proxy.silence();
    await lossOf(first);
    await step(server, stage.name, 100_000);
    const client = await stage.client('redis', server);
    const off = stage.election('b', client, { age: 'off', clockStep: undefined as never }, patient);
    await expect(off.campaign({ wait: 0, settle: false })).rejects.toMatchObject({
      code: 'NOT_ELECTED',
    });
    const term = await stage.election('b', client, {}, patient).campaign({ wait: 0 });
    expect(term.token).toBeGreaterThan(first.token);
    await term[Symbol.asyncDispose]();
  });

  test('set back, it makes nobody wait for longer than one lease of its own time', async (context) => {
    const stage = new Stage(context);
    const server = stage.keep(await startRedis());
    const a = stage.election('a', await stage.client('redis', server));
    const first = await stage.lead(a);
    await step(server, stage.name, -3_600_000);
    await first[Symbol.asyncDispose]();
    const second = await stage.lead(stage.election('b', await stage.client('ioredis', server)));
    expect(second.token).toBeGreaterThan(first.token);
    stage.expectNoOverlap();
  });
});
