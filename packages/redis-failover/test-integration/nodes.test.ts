/** Connections to a real Redis, and what a watcher sees of it. */

import { mkdtemp, rm } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RedisServer } from '@incumbent/servers';
import { startRedis, startSentinel } from '@incumbent/servers';
import type { TestCertificates, TestProxy } from '@incumbent/zookeeper-testing';
import { createCertificates, freePorts, startProxy } from '@incumbent/zookeeper-testing';
import type { TestContext } from 'vitest';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { NodeSight, NodeWatcherOptions } from '../src/manager/node-watcher.ts';
import { NodeWatcher } from '../src/manager/node-watcher.ts';
import { NodeConnection } from '../src/redis/node-connection.ts';
import { addressOf } from './support/redis-set.ts';
import { missing } from './support/servers.ts';
import { until } from './support/waiting.ts';

/** Long enough for a machine that is suspended now and then. */
const patient = { timeoutMs: 20_000 };
/** For a node that never answers. */
const brief = { timeoutMs: 200 };

/** The servers, connections and watchers of one test. */
class Stage {
  readonly onTestFinished: TestContext['onTestFinished'];

  constructor({ onTestFinished }: TestContext) {
    this.onTestFinished = onTestFinished;
  }

  async redis(options: Parameters<typeof startRedis>[0] = {}): Promise<RedisServer> {
    const server = await startRedis(options);
    this.onTestFinished(() => server.close());
    return server;
  }

  async open(
    address: string,
    options: Parameters<typeof NodeConnection.open>[1] = patient,
  ): Promise<NodeConnection> {
    const connection = await NodeConnection.open(address, options);
    this.onTestFinished(() => connection.close());
    return connection;
  }

  watch(address: string, options: Partial<NodeWatcherOptions> = {}): Watched {
    const watched = new Watched(address, options);
    this.onTestFinished(() => watched.watcher.close());
    return watched;
  }

  /** Listens as something else than Redis. @returns its address */
  async listen(onSocket: (socket: Socket) => void): Promise<string> {
    const server = createServer(onSocket);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    this.onTestFinished(() => {
      server.close();
    });
    return addressOf(server.address() as { readonly port: number });
  }
}

/** How often a command was called, by the server's own count. */
async function calls(server: RedisServer, command: string): Promise<number> {
  const stats = String(await server.command('INFO', 'commandstats'));
  return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
}

/** How many connections have that name, without the one that asks. */
async function connected(server: RedisServer, name: string): Promise<number> {
  const list = String(await server.command('CLIENT', 'LIST'));
  return list.split('\n').filter((line) => line.includes(` name=${name} `)).length;
}

describe.skipIf(missing !== undefined).concurrent('a connection', () => {
  test('is named before anything else is sent, and gives what the server answers', async (context) => {
    const stage = new Stage(context);
    const server = await stage.redis();
    const connection = await stage.open(addressOf(server), {
      ...patient,
      name: 'incumbent-redis:7:m-1',
    });
    expect(await connected(server, 'incumbent-redis:7:m-1')).toBe(1);
    expect(await connection.command(['RPUSH', 'list', 'a', 'b'])).toBe(2);
    expect(await connection.command(['LRANGE', 'list', '0', '-1'])).toEqual(['a', 'b']);
    expect(await connection.command(['GET', 'nothing'])).toBeNull();
    await expect(connection.command(['GET', 'list'])).rejects.toMatchObject({
      code: 'NODE_COMMAND',
      reply: expect.stringContaining('WRONGTYPE'),
    });
    expect(connection.isOpen).toBe(true);
    connection.close();
    connection.close();
    expect(connection.isOpen).toBe(false);
    await expect(connection.command(['PING'])).rejects.toMatchObject({ code: 'NODE_UNREACHABLE' });
    await until('it is gone', async () => (await connected(server, 'incumbent-redis:7:m-1')) === 0);
  });

  test('a command without an answer in time closes it, and is never sent again', async (context) => {
    const stage = new Stage(context);
    const server = await stage.redis();
    const connection = await stage.open(addressOf(server));
    await server.freeze();
    const late = connection.command(['INCR', 'counter'], brief);
    await expect(late).rejects.toMatchObject({
      code: 'NODE_UNREACHABLE',
      message: expect.stringContaining('has not answered INCR within 200 ms'),
    });
    expect(connection.closed.aborted).toBe(true);
    server.thaw();
    // The server executes what was in its buffers once, and nothing comes after it.
    await until('the command is executed', async () => (await calls(server, 'incr')) === 1);
    await expect(connection.command(['PING'])).rejects.toMatchObject({ code: 'NODE_UNREACHABLE' });
    expect(await server.command('GET', 'counter')).toBe('1');
  });

  test('the death of the server rejects what waits, and nothing is opened again', async (context) => {
    const stage = new Stage(context);
    const server = await stage.redis();
    const connection = await stage.open(addressOf(server), { ...patient, name: 'once' });
    const waiting = connection.command(['BLPOP', 'nothing', '0']);
    const outcome = expect(waiting).rejects.toMatchObject({ code: 'NODE_UNREACHABLE' });
    await until('it waits', async () => (await calls(server, 'client\\|setname')) === 1);
    await server.kill();
    await outcome;
    expect(connection.isOpen).toBe(false);
    await server.start();
    expect(await connected(server, 'once')).toBe(0);
  });

  test('a server that stands still is not waited for longer than said, and no socket is left', async (context) => {
    const stage = new Stage(context);
    const server = await stage.redis();
    await server.freeze();
    await expect(stage.open(addressOf(server), { ...brief, name: 'late' })).rejects.toMatchObject({
      code: 'NODE_UNREACHABLE',
      message: expect.stringContaining('within 200 ms'),
    });
    server.thaw();
    await until('the server has dropped it', async () => (await connected(server, 'late')) === 0);
  });

  test('an abort ends connecting, a command, and the connection', async (context) => {
    const stage = new Stage(context);
    const silent = await stage.listen(() => {});
    const reason = new Error('enough');
    const first = new AbortController();
    const connecting = stage.open(silent, { ...patient, signal: first.signal });
    first.abort(reason);
    await expect(connecting).rejects.toBe(reason);

    const server = await stage.redis();
    const second = new AbortController();
    const connection = await stage.open(addressOf(server), { ...patient, signal: second.signal });
    const third = new AbortController();
    const command = connection.command(['BLPOP', 'nothing', '0'], { signal: third.signal });
    third.abort(reason);
    await expect(command).rejects.toBe(reason);
    const another = await stage.open(addressOf(server), { ...patient, signal: second.signal });
    second.abort(reason);
    expect(another.isOpen).toBe(false);
    await expect(stage.open(addressOf(server), { ...patient, signal: second.signal })).rejects.toBe(
      reason,
    );
  });

  test('a server that is no Redis, and a port at which nothing listens', async (context) => {
    const stage = new Stage(context);
    const web = await stage.listen((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    await expect(stage.open(web)).rejects.toMatchObject({ code: 'NODE_UNREACHABLE' });
    const server = await stage.redis();
    await server.kill();
    await expect(stage.open(addressOf(server))).rejects.toMatchObject({
      code: 'NODE_UNREACHABLE',
      message: expect.stringContaining('ECONNREFUSED'),
    });
    await expect(stage.open('no-such-host.invalid:6379')).rejects.toMatchObject({
      code: 'NODE_UNREACHABLE',
    });
    await expect(stage.open('localhost')).rejects.toMatchObject({ code: 'INVALID_OPTION' });
  });

  test('a refusal says why, and what to do about it', async (context) => {
    const stage = new Stage(context);
    const server = await stage.redis();
    const address = addressOf(server);
    await expect(stage.open(address, { ...patient, password: 'x' })).rejects.toMatchObject({
      code: 'NODE_REFUSED',
      message: expect.stringContaining('set requirepass there, or take it away here'),
    });
    await server.command('ACL', 'SETUSER', 'reader', 'on', '>r', '+client', '+get', '~*');
    await server.command('CONFIG', 'SET', 'requirepass', 'secret');
    await expect(stage.open(address)).rejects.toMatchObject({
      code: 'NODE_REFUSED',
      message: expect.stringContaining('it wants a password'),
    });
    const wrong = stage.open(address, { ...patient, password: 'not it' });
    await expect(wrong).rejects.toMatchObject({
      code: 'NODE_REFUSED',
      message: expect.stringContaining('the password is wrong'),
    });
    await expect(wrong).rejects.not.toMatchObject({ message: expect.stringContaining('not it') });
    const reader = await stage.open(address, { ...patient, username: 'reader', password: 'r' });
    await expect(reader.command(['REPLICAOF', 'NO', 'ONE'])).rejects.toMatchObject({
      code: 'NODE_REFUSED',
      message: expect.stringContaining('this user lacks rights there'),
    });
    const owner = await stage.open(address, { ...patient, password: 'secret' });
    expect(await owner.command(['PING'])).toBe('PONG');
  });
});

describe.skipIf(missing !== undefined)('over TLS', () => {
  let directory: string;
  let certificates: TestCertificates;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'incumbent-redis-failover-'));
    certificates = await createCertificates(directory);
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  test('the server is asked for its certificate', async (context) => {
    const stage = new Stage(context);
    const server = await stage.redis({ tls: certificates });
    const ca = certificates.ca.text;
    const connection = await stage.open(addressOf(server), { ...patient, tls: { ca } });
    expect(await connection.command(['PING'])).toBe('PONG');
    await expect(stage.open(addressOf(server), { ...patient, tls: true })).rejects.toMatchObject({
      code: 'NODE_UNREACHABLE',
      message: expect.stringContaining('certificate'),
    });
    const unsafe = { rejectUnauthorized: false };
    expect((await stage.open(addressOf(server), { ...patient, tls: unsafe })).isOpen).toBe(true);
    await server.freeze();
    await expect(stage.open(addressOf(server), { ...brief, tls: { ca } })).rejects.toMatchObject({
      code: 'NODE_UNREACHABLE',
    });
  });
});

describe.skipIf(missing !== undefined).concurrent('what a node says of itself', () => {
  test('as a primary, as a replica, and after a promotion', async (context) => {
    const stage = new Stage(context);
    const stale = ['--replica-serve-stale-data', 'no', '--replica-priority', '7'];
    const primary = await stage.redis({ arguments: ['--min-replicas-to-write', '1'] });
    const replica = await stage.redis({ replicaOf: primary, arguments: stale });
    await until('the primary counts it', async () =>
      String(await primary.command('INFO', 'replication')).includes('min_slaves_good_slaves:1'),
    );
    await primary.command('SET', 'key', 'value');
    const [first, second] = [
      await stage.open(addressOf(primary)),
      await stage.open(addressOf(replica)),
    ];
    const before = await first.replication();
    expect(before).toMatchObject({
      ...{ role: 'primary', primary: undefined, linkUp: true, syncing: false, loading: false },
      ...{ formerReplicationId: undefined, formerOffset: -1, priority: 100 },
      ...{ connectedReplicas: 1, minReplicasToWrite: 1, servesStaleReads: true },
    });
    expect(before.offset).toBeGreaterThan(0);
    const following = await until('it has caught up', async () => {
      const replication = await second.replication();
      return replication.offset >= before.offset && replication;
    });
    expect(following).toMatchObject({
      ...{ role: 'replica', primary: addressOf(primary), linkUp: true, syncing: false },
      ...{ replicationId: before.replicationId, priority: 7, servesStaleReads: false },
      ...{ connectedReplicas: 0, minReplicasToWrite: 0 },
    });
    expect(following.runId).not.toBe(before.runId);

    await primary.kill();
    const alone = await until('the link is down', async () => {
      const replication = await second.replication();
      return !replication.linkUp && replication;
    });
    expect(alone.role).toBe('replica');
    await replica.promote();
    const promoted = await second.replication();
    expect(promoted).toMatchObject({
      ...{ role: 'primary', formerReplicationId: before.replicationId, linkUp: true },
      // The first byte of its own stream.
      formerOffset: alone.offset + 1,
    });
    expect(promoted.replicationId).not.toBe(before.replicationId);
  });

  test('where CONFIG is forbidden the defaults are taken', async (context) => {
    const stage = new Stage(context);
    const server = await stage.redis({ arguments: ['--rename-command', 'CONFIG', ''] });
    expect(await (await stage.open(addressOf(server))).replication()).toMatchObject({
      ...{ role: 'primary', servesStaleReads: true, minReplicasToWrite: 0 },
    });
    const other = await stage.redis();
    await other.command('ACL', 'SETUSER', 'm', 'on', '>m', '+@all', '-config', '~*');
    const connection = await stage.open(addressOf(other), {
      ...patient,
      username: 'm',
      password: 'm',
    });
    expect(await connection.replication()).toMatchObject({ servesStaleReads: true });
  });

  test('a Sentinel and a node of a cluster are refused', async (context) => {
    const stage = new Stage(context);
    const primary = await stage.redis();
    await stage.redis({ replicaOf: primary });
    const sentinel = await startSentinel({ primary });
    stage.onTestFinished(() => sentinel.close());
    await expect((await stage.open(addressOf(sentinel))).replication()).rejects.toMatchObject({
      code: 'NODE_REFUSED',
      message: expect.stringContaining('it is a Sentinel'),
    });
    const [bus] = await freePorts(1);
    const clustered = ['--cluster-enabled', 'yes', '--cluster-port', `${bus}`];
    const member = await stage.redis({ arguments: clustered });
    await expect((await stage.open(addressOf(member))).replication()).rejects.toMatchObject({
      code: 'NODE_REFUSED',
      message: expect.stringContaining('cluster mode'),
    });
  });
});

/** A watcher, with everything that it has reported. */
class Watched {
  readonly told: NodeSight[] = [];
  readonly watcher: NodeWatcher;

  constructor(address: string, options: Partial<NodeWatcherOptions> = {}) {
    const settings = { maxFailures: 3, checkEveryMs: 50, timeoutMs: 1_000, name: 'watch' };
    this.watcher = new NodeWatcher(address, { ...settings, ...options }, (sight) => {
      this.told.push(sight);
    });
  }

  get sight(): NodeSight {
    return this.watcher.sight;
  }

  /** The reported states and failures, in order and without repetitions. */
  get story(): readonly string[] {
    const all = this.told.map(({ state, failures }) => `${state} ${failures}`);
    return all.filter((each, index) => each !== all[index - 1]);
  }

  becomes(state: NodeSight['state']): Promise<unknown> {
    return until(
      `it is ${state}`,
      () => this.sight.state === state,
      () => this.story.join(', '),
    );
  }
}

describe.skipIf(missing !== undefined).concurrent('a watcher', () => {
  test('a death is seen at once, is down after three failures, and up again after one success', async (context) => {
    const stage = new Stage(context);
    const server = await stage.redis();
    const watched = stage.watch(addressOf(server));
    expect(watched.sight).toMatchObject({ state: 'unknown', failures: 0, latencyMs: undefined });
    await watched.becomes('available');
    expect(watched.sight.latencyMs).toBeGreaterThan(0);
    await server.kill();
    await watched.becomes('unavailable');
    expect(watched.sight).toMatchObject({ failures: 3, error: { code: 'NODE_UNREACHABLE' } });
    await server.start();
    await watched.becomes('available');
    expect(watched.sight).toMatchObject({ failures: 0, error: undefined });
    expect(watched.story).toEqual([
      ...['available 0', 'available 1', 'available 2', 'unavailable 3', 'available 0'],
    ]);
  });

  test('between two checks a death is seen by the blocking call', async (context) => {
    const stage = new Stage(context);
    const server = await stage.redis();
    // The next check would be in a day.
    const watched = stage.watch(addressOf(server), {
      checkEveryMs: 24 * 3_600_000,
      maxFailures: 1,
    });
    await watched.becomes('available');
    await until('it blocks', async () =>
      String(await server.command('CLIENT', 'LIST')).includes('cmd=xread'),
    );
    await server.kill();
    await watched.becomes('unavailable');
  });

  test('a server that stands still is down, and up when it goes on', async (context) => {
    const stage = new Stage(context);
    const server = await stage.redis();
    const watched = stage.watch(addressOf(server), { timeoutMs: 300 });
    await watched.becomes('available');
    await server.freeze();
    await watched.becomes('unavailable');
    expect(watched.sight.error).toMatchObject({
      code: 'NODE_UNREACHABLE',
      message: expect.stringContaining('within 300 ms'),
    });
    server.thaw();
    await watched.becomes('available');
    expect(watched.sight.failures).toBe(0);
  });

  test('a link that swallows everything is down, and up again when it carries', async (context) => {
    const stage = new Stage(context);
    const server = await stage.redis();
    const proxy: TestProxy = await startProxy({ host: '127.0.0.1', port: server.port });
    stage.onTestFinished(() => proxy.close());
    const watched = stage.watch(addressOf(server), {
      ...{ timeoutMs: 300, reach: addressOf(proxy) },
    });
    await watched.becomes('available');
    expect(watched.sight.address).toBe(addressOf(server));
    proxy.silence();
    await watched.becomes('unavailable');
    await proxy.pass();
    await watched.becomes('available');
  });

  test('a change of the role is told at once, and is no failure', async (context) => {
    const stage = new Stage(context);
    const [server, other] = [await stage.redis(), await stage.redis()];
    const watched = stage.watch(addressOf(server), { checkEveryMs: 24 * 3_600_000 });
    await watched.becomes('available');
    await until('it blocks', async () =>
      String(await server.command('CLIENT', 'LIST')).includes('cmd=xread'),
    );
    const before = watched.told.length;
    await server.command('REPLICAOF', '127.0.0.1', other.port);
    await until('it is told', () => watched.told.length > before);
    expect(watched.story).toEqual(['available 0']);
    // It blocks on a replica as well, which would refuse a BLPOP.
    stage.watch(addressOf(server));
    await until('it blocks again', async () =>
      String(await server.command('CLIENT', 'LIST')).includes('cmd=xread'),
    );
  });

  test('a replica that lost its primary is up, also when it refuses all reads', async (context) => {
    const stage = new Stage(context);
    const primary = await stage.redis();
    const replica = await stage.redis({
      ...{ replicaOf: primary, arguments: ['--replica-serve-stale-data', 'no'] },
    });
    await primary.kill();
    await until('it refuses', async () =>
      replica.command('GET', 'key').then(
        () => false,
        (error: Error) => error.message.startsWith('MASTERDOWN'),
      ),
    );
    const watched = stage.watch(addressOf(replica));
    await watched.becomes('available');
    expect(watched.sight.error).toBeUndefined();
  });

  test('its latency is told when it has become worse, and when it has become better', async (context) => {
    const stage = new Stage(context);
    let delayMs = 0;
    const asked = { ping: 0, block: 0 };
    // Answers everything after a while, even a blocking call.
    const address = await stage.listen((socket) => {
      socket.on('error', () => {});
      socket.on('data', (chunk) => {
        const commands = `${chunk}`.split('*').length - 1;
        if (`${chunk}`.includes('PING')) asked.ping += 1;
        if (`${chunk}`.includes('XREAD')) asked.block += 1;
        setTimeout(() => socket.write('+OK\r\n'.repeat(commands)), delayMs);
      });
    });
    const watched = stage.watch(address, { checkEveryMs: 10, timeoutMs: 20_000 });
    await watched.becomes('available');
    const told = () => watched.told.at(-1)?.latencyMs ?? 0;
    delayMs = 200;
    // The reported latency may be off by up to a half.
    await until('it is worse', () => told() > 100);
    delayMs = 0;
    await until('it is better', () => told() < 75);
    expect(watched.story).toEqual(['available 0']);
    // A call that does not block is made no more often than a check.
    const before = { ...asked };
    await until('it was checked again and again', () => asked.ping >= before.ping + 50);
    expect(asked.block - before.block).toBeLessThan(3 * (asked.ping - before.ping));
  });

  test('a wrong password is told as what it is, and does not make a node a dead one', async (context) => {
    const stage = new Stage(context);
    const server = await stage.redis();
    await server.command('CONFIG', 'SET', 'requirepass', 'secret');
    const watched = stage.watch(addressOf(server), { password: 'wrong' });
    await until('it is told', () => watched.sight.error !== undefined);
    expect(watched.sight).toMatchObject({
      ...{ state: 'available', failures: 0 },
      error: { code: 'NODE_REFUSED', message: expect.stringContaining('the password is wrong') },
    });
    const right = await stage.open(addressOf(server), { ...patient, password: 'secret' });
    await right.command(['CONFIG', 'SET', 'requirepass', 'wrong']);
    await until('it passes', () => watched.told.at(-1)?.error === undefined);
    expect(new Set(watched.story)).toEqual(new Set(['available 0']));
    await server.kill();
    await watched.becomes('unavailable');
  });

  test('closing its connections from outside does not make a node a dead one', async (context) => {
    const stage = new Stage(context);
    const server = await stage.redis();
    const watched = stage.watch(addressOf(server), { maxFailures: 2 });
    await watched.becomes('available');
    for (let round = 0; round < 5; round += 1) {
      const list = String(await server.command('CLIENT', 'LIST'));
      const ids = [...list.matchAll(/^id=(\d+) .* name=watch /gm)].map(([, id]) => id as string);
      for (const id of ids) await server.command('CLIENT', 'KILL', 'ID', id);
      await until('it is there again', async () => (await connected(server, 'watch')) >= 2);
    }
    expect(watched.told.map(({ state }) => state)).not.toContain('unavailable');
  });

  test('a node that is there again before the next check is told of: it may have lost its data', async (context) => {
    const stage = new Stage(context);
    const server = await stage.redis();
    const watched = stage.watch(addressOf(server), { checkEveryMs: 24 * 3_600_000 });
    await watched.becomes('available');
    await until('it blocks', async () =>
      String(await server.command('CLIENT', 'LIST')).includes('cmd=xread'),
    );
    const before = watched.told.length;
    // As after a restart that is over before a client has tried to connect.
    const list = String(await server.command('CLIENT', 'LIST'));
    const ids = [...list.matchAll(/^id=(\d+) .* name=watch /gm)].map(([, id]) => id as string);
    for (const id of ids) await server.command('CLIENT', 'KILL', 'ID', id);
    await until('it is told', () => watched.told.length > before);
    expect(watched.story).toEqual(['available 0']);
  });

  test('when it is closed, it is silent, and its connections are gone', async (context) => {
    const stage = new Stage(context);
    const server = await stage.redis();
    const watched = stage.watch(addressOf(server), { name: 'closed' });
    await watched.becomes('available');
    await until('both are there', async () => (await connected(server, 'closed')) === 2);
    watched.watcher.close();
    watched.watcher.close();
    const { length } = watched.told;
    await until('they are gone', async () => (await connected(server, 'closed')) === 0);
    await server.kill();
    await server.start();
    expect(await connected(server, 'closed')).toBe(0);
    expect(watched.told).toHaveLength(length);
  });
});
