/** The client's methods beside single commands, with the types of each library. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { RedisServer } from '@incumbent/servers';
import { connect } from '@incumbent/zookeeper';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import type { TestContext } from 'vitest';
import { describe, expect, test } from 'vitest';
import { classify } from '../src/client/commands.ts';
import type { Picture } from '../src/index.ts';
import { ioredis, nodeRedis, RedisFailover } from '../src/index.ts';
import { decodeRequest, encodeRequest, pathsBelow } from '../src/layout.ts';
import {
  addressOf,
  ClientStage,
  libraries,
  missing,
  useServers,
  watched,
} from './support/client-stage.ts';
import { until } from './support/waiting.ts';

describe.skipIf(missing !== undefined).concurrent('a client', () => {
  const servers = useServers(2);
  const both = () => servers.nodes as readonly [RedisServer, RedisServer];

  async function stageWithPrimary(context: TestContext) {
    const stage = await ClientStage.open(servers, context);
    await stage.publish(addressOf(both()[0]), [addressOf(both()[1])]);
    return stage;
  }

  async function onNodeRedis(context: TestContext) {
    const stage = await stageWithPrimary(context);
    const failover = await RedisFailover.connect({
      zookeeper: servers.zookeeper.connectionString,
      root: stage.root,
      redis: nodeRedis(createClient),
    });
    context.onTestFinished(() => failover.close());
    return { stage, failover, key: `${stage.root}:node` };
  }

  async function onIoredis(context: TestContext) {
    const stage = await stageWithPrimary(context);
    const failover = await RedisFailover.connect({
      zookeeper: servers.zookeeper.connectionString,
      root: stage.root,
      redis: ioredis(Redis),
      reads: 'primary',
    });
    context.onTestFinished(() => failover.close());
    return { stage, failover, key: `${stage.root}:io` };
  }

  test('sends to replicas what the server itself calls read-only, but cursors', async () => {
    type Info = readonly [string, number, string[], ...unknown[], Info[]];
    const flat = (list: readonly Info[]): Info[] =>
      list.flatMap((info) => {
        const inner = info.at(-1) as Info[];
        return Array.isArray(inner) && inner.length > 0 ? flat(inner) : [info];
      });
    const commands = flat((await both()[0].command('COMMAND')) as unknown as Info[]);
    expect(commands.length).toBeGreaterThan(300);
    const readOnly = commands
      .filter(([, , flags]) => flags.includes('readonly'))
      .map(([name]) => name);
    const routed = commands
      .map(([name]) => name)
      .filter((name) => classify(name, []).goesTo === 'any');
    const cursors = ['scan', 'hscan', 'sscan', 'zscan'];
    expect(routed.sort()).toEqual(readOnly.filter((name) => !cursors.includes(name)).sort());
  });

  test('runs transactions and pipelines of node-redis on the primary', async (context) => {
    const { failover, key } = await onNodeRedis(context);
    const { redis } = failover;
    expect(await redis.multi().set(key, '1').incr(key).get(key).exec()).toEqual(['OK', 2, '2']);
    expect(await redis.multi().incr(key).execAsPipeline()).toEqual([3]);
    expect(await redis.sendCommand(['INCR', key])).toBe(4);
    expect(await redis.hSet(`${key}:hash`, { a: '1', b: '2' })).toBe(2);
    const told = await failover.write(async (at, { term }) => {
      const [count] = await at.multi().incr(key).exec();
      return { count, term, replicas: await at.wait(1, 5_000) };
    });
    expect(told).toEqual({ count: 5, term: 1, replicas: 1 });
    expect(await redis.hGetAll(`${key}:hash`)).toEqual({ a: '1', b: '2' });
    const fields: string[] = [];
    for await (const page of redis.hScanIterator(`${key}:hash`)) {
      fields.push(...page.map(({ field }) => field));
    }
    expect(fields.sort()).toEqual(['a', 'b']);
    expect(await redis.withTypeMapping({}).get(`${key}:absent`)).toBe(null);
  });

  test('ends an iteration that meets another primary', async (context) => {
    const { stage, failover, key } = await onNodeRedis(context);
    const io = await onIoredis(context);
    const entries = Object.fromEntries(Array.from({ length: 2_000 }, (_, at) => [`f${at}`, 'v']));
    await failover.redis.hSet(`${key}:hash`, entries);
    const iterate = async () => {
      for await (const page of failover.redis.hScanIterator(`${key}:hash`, { COUNT: 10 })) {
        expect(page.length).toBeGreaterThan(0);
        if (failover.current.term !== 1) continue;
        await stage.publish(addressOf(both()[0]));
        await until('it knows', () => failover.current.term === 2);
      }
    };
    await expect(iterate()).rejects.toMatchObject({ code: 'ITERATION_BROKEN' });
    const stream = async () => {
      for await (const page of io.failover.redis.hscanStream(`${key}:hash`, { count: 10 })) {
        expect((page as unknown[]).length).toBeGreaterThan(0);
        if (io.failover.current.term !== 1) continue;
        await io.stage.publish(addressOf(both()[0]));
        await until('it knows', () => io.failover.current.term === 2);
      }
    };
    await expect(stream()).rejects.toMatchObject({ code: 'ITERATION_BROKEN' });
    let fields = 0;
    for await (const page of failover.redis.hScanIterator(`${key}:hash`)) fields += page.length;
    expect(fields).toBe(2_000);
  });

  test('runs transactions and pipelines of ioredis on the primary, and calls callbacks', async (context) => {
    const { failover, key } = await onIoredis(context);
    const { redis } = failover;
    expect(await redis.multi().set(key, '1').incr(key).exec()).toEqual([
      [null, 'OK'],
      [null, 2],
    ]);
    expect(await redis.pipeline().incr(key).get(key).exec()).toEqual([
      [null, 3],
      [null, '3'],
    ]);
    expect(await redis.multi([['incr', key]]).exec()).toEqual([[null, 4]]);
    expect(await redis.call('INCR', key)).toBe(5);
    expect(await redis.getBuffer(key)).toEqual(Buffer.from('5'));
    const answer = await new Promise((resolve, reject) => {
      void redis.get(key, (error, value) => (error ? reject(error) : resolve(value)));
    });
    expect(answer).toBe('5');
    const keys: string[] = [];
    for await (const page of redis.scanStream({ match: key })) keys.push(...(page as string[]));
    expect(keys).toEqual([key]);
    expect(() => redis.multi({ pipeline: false })).toThrow('keeps a transaction open');
  });

  test('refuses by name what needs a connection of one’s own', async (context) => {
    const { failover, key } = await onNodeRedis(context);
    const { redis } = failover;
    await expect(redis.blPop(key, 0)).rejects.toMatchObject({
      code: 'NOT_ROUTABLE',
      message: expect.stringContaining('blPop cannot be routed: it blocks all others'),
    });
    await expect(redis.subscribe('c', () => {})).rejects.toMatchObject({ code: 'NOT_ROUTABLE' });
    await expect(redis.multi().select(3).exec()).rejects.toMatchObject({ code: 'NOT_ROUTABLE' });
    expect(() => redis.on('error', () => {})).toThrow('failover.onChange()');
    expect(() => redis.destroy()).toThrow('failover.close()');
    const io = await onIoredis(context);
    await expect(io.failover.redis.subscribe('c')).rejects.toMatchObject({ code: 'NOT_ROUTABLE' });
    expect(() => io.failover.redis.disconnect()).toThrow('failover.close()');
    expect(() => io.failover.redis.defineCommand('x', { lua: '' })).toThrow('one connection');
    // Refused in every form, because on a shared connection it would change the commands of all
    // other callers.
    const refused = { code: 'NOT_ROUTABLE' };
    await expect(redis.sendCommand(['MULTI'])).rejects.toMatchObject(refused);
    const words = [Buffer.from('CLIENT'), Buffer.from('REPLY'), Buffer.from('OFF')];
    await expect(redis.sendCommand(words)).rejects.toMatchObject(refused);
    await expect(
      failover.write((at) => at.sendCommand(['CLIENT', 'UNPAUSE'])),
    ).rejects.toMatchObject(refused);
    const other = io.failover.redis;
    await expect(other.call('multi')).rejects.toMatchObject(refused);
    await expect(other.pipeline([['select', 3]]).exec()).rejects.toMatchObject(refused);
    await expect(other.multi([['client', 'reply', 'off']]).exec()).rejects.toMatchObject(refused);
    await expect(other.pipeline([['multi'], ['set', key, '1']]).exec()).rejects.toMatchObject(
      refused,
    );
    expect(await redis.set(key, '1')).toBe('OK');
    expect(await other.set(io.key, '1')).toBe('OK');
  });

  test('passes on what Redis answers, and what cannot be sent', async (context) => {
    const { failover, key } = await onNodeRedis(context);
    const { redis } = failover;
    await redis.set(key, 'text');
    await expect(redis.incr(key)).rejects.toThrow('value is not an integer');
    await expect(redis.set(key, undefined as never)).rejects.toBeInstanceOf(TypeError);
    await expect(failover.write(() => Promise.reject(new Error('mine')))).rejects.toThrow('mine');
    await redis.set(key, 'and goes on');
    const leaked = await failover.write((at) => ({ at }));
    await expect(leaked.at.get(key)).rejects.toMatchObject({ code: 'NOT_ROUTABLE' });
  });

  test('takes scripts of the caller for writes that may have begun', async (context) => {
    const stage = await stageWithPrimary(context);
    const lua = "redis.call('INCR', KEYS[1]); return redis.error_reply('TRYAGAIN later')";
    const failover = await RedisFailover.connect({
      zookeeper: servers.zookeeper.connectionString,
      root: stage.root,
      redis: ioredis(Redis, { scripts: { touch: { lua, numberOfKeys: 1 } } }),
    });
    context.onTestFinished(() => failover.close());
    await expect(failover.redis.touch(`${stage.root}:script`)).rejects.toThrow('TRYAGAIN');
    expect(await both()[0].command('GET', `${stage.root}:script`)).toBe('1');
  });

  test('ends a run of a write before the next begins', async (context) => {
    const stage = await ClientStage.open(servers, context);
    const lonely = await stage.redis();
    await stage.publish(addressOf(lonely));
    const failover = await RedisFailover.connect({
      zookeeper: servers.zookeeper.connectionString,
      root: stage.root,
      redis: nodeRedis(createClient),
    });
    context.onTestFinished(() => failover.close());
    await failover.redis.set('a', '0');
    await lonely.command('CONFIG', 'SET', 'min-replicas-to-write', 1);
    let runs = 0;
    const late: Promise<unknown>[] = [];
    const counted = await failover.write(async (redis) => {
      runs += 1;
      const refused = redis.set('a', '1');
      if (runs === 1) {
        // Goes on after the refusal, as the other half of a `Promise.all` does.
        const goesOn = refused
          .catch(() => undefined)
          .then(async () => {
            await new Promise((resolve) => setImmediate(resolve));
            await lonely.command('CONFIG', 'SET', 'min-replicas-to-write', 0);
            return redis.incr('late');
          });
        late.push(goesOn.catch((error: unknown) => error));
      }
      await refused;
      return redis.incr('n');
    });
    expect(counted).toBe(1);
    expect(runs).toBeGreaterThan(1);
    expect(await Promise.all(late)).toEqual([expect.objectContaining({ code: 'NOT_ROUTABLE' })]);
    expect(await lonely.command('GET', 'late')).toBe(null);
  });

  test('hears a signal while it waits for a primary', async (context) => {
    const { stage, failover, key } = await onNodeRedis(context);
    await stage.revoke(addressOf(both()[0]));
    await until('it knows', () => failover.current.primary === undefined);
    const abort = new AbortController();
    const waiting = watched(failover.redis.withAbortSignal(abort.signal).set(key, 'v'));
    const writing = watched(
      failover.write((redis) => redis.set(key, 'v'), { signal: abort.signal }),
    );
    abort.abort(new Error('not now'));
    await expect(waiting.promise).rejects.toThrow('not now');
    await expect(writing.promise).rejects.toThrow('not now');
  });

  test('gives a connection of one’s own for one term', async (context) => {
    const { stage, failover, key } = await onNodeRedis(context);
    const subscriber = await failover.dedicated('replica');
    expect(subscriber.address).toBe(addressOf(both()[1]));
    const heard = new Promise<string>((resolve) => {
      void subscriber.client.subscribe(key, resolve);
    });
    await until('it has subscribed', async () =>
      String(await both()[1].command('PUBSUB', 'NUMSUB', key)).endsWith('1'),
    );
    await failover.redis.publish(key, 'hello');
    expect(await heard).toBe('hello');
    await using queue = await failover.dedicated();
    expect(queue).toMatchObject({ term: 1, address: addressOf(both()[0]) });
    const popping = watched(queue.client.blPop(`${key}:list`, 0));
    await stage.publish(addressOf(both()[0]));
    await until('both are over', () => queue.signal.aborted && subscriber.signal.aborted);
    await expect(popping.promise).rejects.toThrow();
    await using again = await failover.dedicated('primary');
    await using killed = await failover.dedicated();
    await both()[0].command(
      'CLIENT',
      'KILL',
      'ID',
      String(await killed.client.sendCommand(['CLIENT', 'ID'])),
    );
    await until('it hears of the end of its connection', () => killed.signal.aborted);
    expect(again.term).toBe(2);
    expect(await again.client.ping()).toBe('PONG');
  });

  test('tells of changes, the latest only, and survives its listeners', async (context) => {
    const { stage, failover } = await onNodeRedis(context);
    const told: Picture[] = [];
    failover.onChange(() => {
      throw new Error('a listener threw');
    });
    failover.onChange(async () => {
      throw new Error('a listener rejected');
    });
    const stop = failover.onChange((picture) => told.push(picture));
    await stage.revoke(addressOf(both()[0]));
    await until('it was told', () => told.some(({ primary }) => primary === undefined));
    await stage.publish(addressOf(both()[0]), []);
    // The record is read first, and the replicas when `nodes` is read, too.
    await until('it was told of the next', () => told.at(-1)?.primary !== undefined);
    expect(told.at(-1)).toEqual({
      primary: addressOf(both()[0]),
      replicas: [],
      unavailable: [],
      term: 2,
    });
    stop();
    const before = told.length;
    await stage.publish(addressOf(both()[0]), [addressOf(both()[1])]);
    await until('the next is known', () => failover.current.term === 3);
    await new Promise((resolve) => setImmediate(resolve));
    expect(told.length).toBe(before);
  });

  test('says at once that a password is wrong, and logs in with the right one', async (context) => {
    const stage = await ClientStage.open(servers, context);
    const guarded = await stage.redis({ arguments: ['--requirepass', 'secret'] });
    await stage.publish(addressOf(guarded));
    for (const library of libraries) {
      const right = await stage.client(library, { driver: { password: 'secret' } });
      await right.redis.set('k', library);
      const wrong = await stage.client(library, { driver: { password: 'wrong' } });
      const refusal = {
        code: 'NODE_REFUSED',
        message: expect.stringContaining(addressOf(guarded)),
      };
      await expect(wrong.redis.set('k', 'v')).rejects.toMatchObject(refusal);
      await expect(wrong.redis.get('k')).rejects.toMatchObject(refusal);
      await expect(wrong.dedicated()).rejects.toMatchObject(refusal);
      const none = await stage.client(library);
      await expect(none.redis.set('k', 'v')).rejects.toMatchObject(refusal);
    }
  });

  for (const library of libraries) {
    test(`does not write to another database than it was told (${library})`, async (context) => {
      const stage = await stageWithPrimary(context);
      const driver = library === 'redis' ? { database: 99 } : { db: 99 };
      const failover = await stage.client(library, { driver, maxWait: '2s' });
      await expect(failover.redis.set(`${stage.root}:db`, 'v')).rejects.toMatchObject({
        code: 'NO_PRIMARY',
        message: expect.stringContaining('DB index is out of range'),
      });
      expect(await both()[0].command('GET', `${stage.root}:db`)).toBe(null);
    });

    test(`does not write to a node that is not what ZooKeeper says (${library})`, async (context) => {
      const stage = await ClientStage.open(servers, context);
      await stage.publish(addressOf(both()[1]), [addressOf(both()[0])]);
      const failover = await stage.client(library, { maxWait: '2s' });
      await expect(failover.redis.set('k', 'v')).rejects.toMatchObject({
        code: 'NO_PRIMARY',
        message: expect.stringContaining('is a primary, and it says itself: replica'),
        cause: expect.objectContaining({ code: 'WRONG_ROLE' }),
      });
    });

    test(`does not write to a primary that was started anew before a manager has looked at it (${library})`, async (context) => {
      const [primary, replica] = both();
      const stage = await ClientStage.open(servers, context);
      await stage.publish(addressOf(primary), [addressOf(replica)], { runId: 'of-before' });
      const failover = await stage.client(library, { maxWait: '1s' });
      const key = `${stage.root}:${library}`;
      await expect(failover.redis.set(key, '1')).rejects.toMatchObject({
        code: 'NO_PRIMARY',
        message: expect.stringContaining('was started anew, and no manager has said yet'),
        cause: expect.objectContaining({ code: 'WRONG_ROLE' }),
      });
      const unverified = await stage.client(library, { maxWait: '1s', verifyRole: false });
      await unverified.redis.set(key, '2');
      const waiting = (await stage.client(library)).redis.set(key, '3');
      const [, runId] =
        /^run_id:(\w+)/m.exec(String(await primary.command('INFO', 'server'))) ?? [];
      await stage.accept(addressOf(primary), runId ?? '');
      await waiting;
      await failover.redis.set(key, '4');
      expect(await primary.command('GET', key)).toBe('4');
    });

    test(`writes to a primary that was started anew while Ruby managers decide (${library})`, async (context) => {
      const [primary, replica] = both();
      const stage = await ClientStage.open(servers, context);
      await stage.publish(addressOf(primary), [addressOf(replica)], { runId: 'of-before' });
      const lock = `/_zklocking/${stage.root.replaceAll('/', '__')}__master_redis_node_manager_lock`;
      await stage.zk.ensurePath(lock);
      await stage.zk.create(`${lock}/ex`, '', { ephemeral: true, sequential: true });
      const failover = await stage.client(library, { maxWait: '2s' });
      const key = `${stage.root}:${library}`;
      await failover.redis.set(key, '1');
      expect(await primary.command('GET', key)).toBe('1');
    });

    test(`follows Ruby managers, which count no terms (${library})`, async (context) => {
      const [primary, replica] = both();
      const stage = await ClientStage.open(servers, context);
      await stage.publishAsRuby(addressOf(primary), [addressOf(replica)]);
      const failover = await stage.client(library);
      const key = `${stage.root}:${library}`;
      expect(failover.current).toMatchObject({ primary: addressOf(primary), term: undefined });
      await failover.redis.set(key, '1');
      const own = await stage.redis();
      const asking = failover.manualFailover({ host: '127.0.0.1', port: own.port });
      const { manualFailover } = pathsBelow(stage.root);
      await until('it is asked', () => stage.zk.exists(manualFailover));
      expect((await stage.zk.get(manualFailover)).text).toBe(addressOf(own));
      await stage.publishAsRuby(addressOf(own));
      expect(await asking).toEqual({ primary: addressOf(own), term: undefined });
      await failover.redis.set(key, '2');
      expect(await own.command('GET', key)).toBe('2');
    });
  }

  test('asks the managers for a failover, and tells what they answer', async (context) => {
    const { stage, failover } = await onNodeRedis(context);
    const { requests } = pathsBelow(stage.root);
    const next = async () => {
      const [child] = await until('a request', async () => {
        const names = await stage.zk.getChildren(requests).catch(() => undefined);
        return names !== undefined && names.children.length > 0 ? names.children : undefined;
      });
      const path = `${requests}/${child}`;
      const { text, stat } = await stage.zk.get(path);
      expect(stat.ephemeralOwner).not.toBe(0n);
      return { path, request: decodeRequest(path, text) };
    };
    const gone = () =>
      until(
        'it is taken away',
        async () => (await stage.zk.getChildren(requests)).children.length === 0,
      );
    const primary = addressOf(both()[1]);

    const granted = failover.manualFailover({ host: '127.0.0.1', port: both()[1].port });
    const first = await next();
    expect(first.request).toMatchObject({ node: primary });
    const done = { ...first.request, outcome: { done: true, primary, term: 7 } as const };
    await stage.zk.set(first.path, encodeRequest(done));
    expect(await granted).toEqual({ primary, term: 7 });
    await gone();

    const refused = watched(failover.manualFailover());
    const second = await next();
    expect(second.request).toMatchObject({ node: null });
    const not = {
      ...second.request,
      outcome: { done: false, error: 'nobody is in sync' } as const,
    };
    await stage.zk.set(second.path, encodeRequest(not));
    await expect(refused.promise).rejects.toMatchObject({
      code: 'REQUEST_REFUSED',
      message: 'nobody is in sync',
    });
    await gone();

    await expect(failover.manualFailover(undefined, { timeout: 200 })).rejects.toMatchObject({
      code: 'NO_MANAGER',
      message: expect.stringContaining('within 200ms, so it was withdrawn'),
    });
    await gone();

    const abort = new AbortController();
    const aborted = watched(failover.manualFailover(undefined, { signal: abort.signal }));
    await next();
    abort.abort(new Error('changed my mind'));
    await expect(aborted.promise).rejects.toThrow('changed my mind');
    await gone();

    for (const [target, message] of [
      [{ port: 6379 }, 'host is not properly specified: undefined'],
      [{ host: 'h' }, 'port is not properly specified: undefined'],
      [{ host: 'h', port: 0 }, 'port is not properly specified: 0'],
      ['h:1', 'takes { host, port }'],
    ] as const) {
      await expect(failover.manualFailover(target as never)).rejects.toMatchObject({
        code: 'INVALID_OPTION',
        message: expect.stringContaining(message),
      });
    }
  });

  test('rejects what waits when it is closed, and everything after', async (context) => {
    const { stage, failover, key } = await onNodeRedis(context);
    await stage.revoke(addressOf(both()[0]));
    await until('it knows', () => failover.current.primary === undefined);
    const waiting = watched(failover.redis.set(key, 'v'));
    const asking = watched(failover.manualFailover());
    await until('it has asked', async () => {
      const { requests } = pathsBelow(stage.root);
      return (await stage.zk.stat(requests)).stat?.numChildren === 1;
    });
    await failover.close();
    await failover.close();
    await expect(waiting.promise).rejects.toMatchObject({ code: 'CLOSED' });
    await expect(asking.promise).rejects.toBeInstanceOf(Error);
    await expect(failover.redis.get(key)).rejects.toMatchObject({ code: 'CLOSED' });
    await expect(failover.dedicated()).rejects.toMatchObject({ code: 'CLOSED' });
  });

  test('does not keep a process alive that has closed it', async (context) => {
    const stage = await stageWithPrimary(context);
    for (const library of libraries) {
      const script = fileURLToPath(new URL('./support/client-process.mjs', import.meta.url));
      const url = servers.zookeeper.connectionString;
      const { stdout } = await promisify(execFile)(
        process.execPath,
        [script, url, stage.root, library, `${stage.root}:${library}`],
        { timeout: 60_000 },
      );
      expect(stdout).toBe('closed true\n');
    }
  });

  test('says what is missing: a primary, the root, ZooKeeper', async (context) => {
    const stage = await ClientStage.open(servers, context);
    const failover = await stage.client('redis', { maxWait: '2s' });
    const nothing = expect(failover.redis.set('k', 'v')).rejects.toMatchObject({
      code: 'NO_PRIMARY',
      message: expect.stringContaining(`neither ${stage.root}/primary nor ${stage.root}/nodes`),
    });
    const proxy = await stage.proxy(servers.zookeeper);
    proxy.refuse();
    const away = expect(
      stage.client('redis', { zookeeper: proxy.connectionString, maxWait: '1s' }),
    ).rejects.toMatchObject({ code: 'NO_PRIMARY', message: expect.stringContaining('ZooKeeper') });
    const abort = new AbortController();
    const aborted = expect(
      stage.client('redis', { zookeeper: proxy.connectionString, signal: abort.signal }),
    ).rejects.toThrow('enough');
    abort.abort(new Error('enough'));
    await Promise.all([nothing, away, aborted]);
    await stage.publish(addressOf(both()[0]));
    await until('it knows the primary', () => failover.current.primary !== undefined);
    await stage.revoke(addressOf(both()[0]));
    await until('it knows that it moves', () => failover.current.primary === undefined);
    await expect(failover.redis.set('k', 'v')).rejects.toThrow(
      `the primary has been moving from ${addressOf(both()[0])} for`,
    );
  });

  test('keeps a client of ZooKeeper open that it was given', async (context) => {
    const stage = await stageWithPrimary(context);
    await using zk = await connect(servers.zookeeper.connectionString);
    const failover = await stage.client('ioredis', { zookeeper: zk });
    await failover.redis.set(`${stage.root}:given`, 'v');
    await failover.close();
    expect(zk.state).toBe('connected');
  });
});
