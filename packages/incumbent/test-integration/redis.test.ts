/** Faults of a server, a client or a key, and the fate of an election then. */
import { rm } from 'node:fs/promises';
import type { RedisServer } from '@incumbent/servers';
import { makeServerDirectory, startRedis, waitFor } from '@incumbent/servers';
import { createCertificates } from '@incumbent/zookeeper-testing';
import { Redis } from 'ioredis';
import { createClient, RESP_TYPES } from 'redis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openRedis } from '../src/backends/redis/open.ts';
import { StoreUnavailableError } from '../src/base/errors.ts';
import { vacantRecord } from '../test/support/vacant-record.ts';
import {
  fieldOf,
  hasSeenLeader,
  keyOf,
  libraries,
  lossOf,
  missing,
  openClient,
  Stage,
  scopeOf,
  troublesOf,
} from './support/redis.ts';

/** The rights that docs/stores/redis.md lists. */
const rights =
  '+eval +evalsha +info +time +exists +hget +hmget +hset +hdel +hgetall +pttl +pexpire +publish ' +
  '+subscribe +unsubscribe';

/** For single questions: a machine that stalls may take its time to answer. */
const patient = { lease: 30_000 };

let server: RedisServer;

beforeAll(async () => {
  if (missing === undefined) server = await startRedis();
});

afterAll(() => server?.close());

describe.skipIf(missing !== undefined).concurrent('keys that are not ours', () => {
  const cases: readonly (readonly [string, readonly string[], string])[] = [
    ['a list', ['LPUSH', 'x'], 'another type'],
    ['a string', ['SET', 'x'], 'another type'],
    ['a hash of somebody else', ['HSET', 'name', 'x'], 'somebody else'],
  ];
  for (const [what, [command = '', ...rest], why] of cases) {
    test(`${what} is left as it is`, async (context) => {
      const stage = new Stage(context);
      const key = keyOf(stage.name);
      await server.command(command, key, ...rest);
      const before = await server.command('DUMP', key);
      const election = stage.election('a', await stage.client('redis', server));
      await expect(election.campaign()).rejects.toMatchObject({
        code: 'RECORD_DAMAGED',
        message: expect.stringContaining(why),
      });
      expect(await server.command('DUMP', key)).toBe(before);
    });
  }

  test('neither is a record that is damaged, newer, or of another election', async (context) => {
    for (const [record, code] of [
      ['{', 'RECORD_DAMAGED'],
      ['{"format":1}', 'RECORD_DAMAGED'],
      ['{"format":999}', 'RECORD_TOO_NEW'],
    ] as const) {
      const stage = new Stage(context);
      const client = await stage.client('ioredis', server);
      await stage.election('a', client, {}, patient).leader();
      await server.command('HSET', keyOf(stage.name), 'record', record);
      const election = stage.election('b', client);
      await expect(election.campaign()).rejects.toMatchObject({ code });
      expect(await fieldOf(server, stage.name, 'record')).toBe(record);
    }
    const [one, other] = [new Stage(context), new Stage(context)];
    const client = await one.client('redis', server);
    const term = await one.lead(one.election('a', client));
    const record = await fieldOf(server, one.name, 'record');
    await other.election('a', client, {}, patient).leader();
    await server.command('HSET', keyOf(other.name), 'record', record);
    await expect(other.election('b', client).campaign()).rejects.toMatchObject({
      code: 'RECORD_DAMAGED',
      message: expect.stringContaining('belongs to the election'),
    });
    await term[Symbol.asyncDispose]();
  });
});

describe.skipIf(missing !== undefined).concurrent('rights', () => {
  async function user(
    name: string,
    granted: string,
  ): Promise<{ username: string; password: string }> {
    const words = granted.split(' ').filter((word) => word !== '');
    await server.command(
      'ACL',
      'SETUSER',
      name,
      'reset',
      'on',
      '>secret',
      '-@all',
      '+@connection',
      ...words,
    );
    return { username: name, password: 'secret' };
  }

  for (const library of libraries) {
    test(`the listed ones are enough (${library})`, async (context) => {
      const stage = new Stage(context);
      const login = await user(`all-${library}`, `${rights} ~incumbent:* &incumbent:*`);
      const open = async () => stage.keep(await openClient(library, server, login)).client;
      const troubles = troublesOf(stage.name, context);
      const a = stage.election('a', await open());
      const b = stage.election('b', await open());
      const first = await stage.lead(a);
      const waiting = stage.lead(b);
      // Alone, where the machine stood still for so long that b was elected.
      const ids = async () => (await a.candidates()).map(({ id }) => id);
      await waitFor('b is listed', async () => (await ids()).includes('b'));
      await first[Symbol.asyncDispose]();
      const second = await waiting;
      expect(await second.guard.superseded()).toBe(false);
      // Only a machine that stalls may give reason to complain.
      expect(troubles.join()).not.toMatch(/refuses|incumbent:news/);
    });

    test(`without those for channels, waiting candidates poll (${library})`, async (context) => {
      const stage = new Stage(context);
      const login = await user(`deaf-${library}`, `${rights} ~incumbent:* resetchannels`);
      const open = async () => stage.keep(await openClient(library, server, login)).client;
      const troubles = troublesOf(stage.name, context);
      const first = await stage.lead(stage.election('a', await open()));
      const waiting = stage.lead(stage.election('b', await open()));
      await first[Symbol.asyncDispose]();
      await waiting;
      expect(troubles.join()).toContain('incumbent:news');
      stage.expectNoOverlap();
    });
  }

  test('without one of the others, or for other keys, it says so', async (context) => {
    for (const [name, granted] of [
      ['no-info', `${rights.replace('+info', '')} ~incumbent:* &*`],
      ['no-scripts', `+info ~incumbent:* &*`],
      ['other-keys', `${rights} ~other:* &*`],
      ['read-only', `+eval +evalsha +info +time +exists +hget +hmget ~incumbent:* &*`],
    ] as const) {
      const stage = new Stage(context);
      const client = stage.keep(
        await openClient('redis', server, await user(name, granted)),
      ).client;
      await expect(stage.election('a', client).campaign(), name).rejects.toMatchObject({
        code: 'STORE_UNSUITABLE',
        message: expect.stringContaining('docs/stores/redis.md'),
      });
    }
  });

  test('a waiting candidate goes on waiting while they are taken away', async (context) => {
    const stage = new Stage(context);
    const login = await user('waiting', `${rights} ~incumbent:* &incumbent:*`);
    const waiting = stage.election(
      'b',
      stage.keep(await openClient('ioredis', server, login)).client,
      { listen: false },
      { pollEvery: 100 },
    );
    // Otherwise a waiting candidate may be elected while this machine stands still.
    const leader = stage.election('a', await stage.client('redis', server), {}, patient);
    const first = await stage.lead(leader);
    await hasSeenLeader(waiting);
    const second = stage.lead(waiting);
    // Until it is awaited, a refusal must not end the process.
    second.catch(() => {});
    await waitFor('it waits', async () => (await waiting.candidates()).length === 2);
    const troubles = troublesOf(stage.name, context);
    await server.command('ACL', 'SETUSER', 'waiting', '-@all');
    await waitFor('it was refused', async () => troubles.join().includes('allowed before'));
    await server.command('ACL', 'SETUSER', 'waiting', ...rights.split(' '));
    await first[Symbol.asyncDispose]();
    await second;
    stage.expectNoOverlap();
  });

  test('a user that may only read sees the leader', async (context) => {
    const stage = new Stage(context);
    const watcher = stage.election(
      'watcher',
      stage.keep(
        await openClient(
          'ioredis',
          server,
          await user('watcher', '+eval +evalsha +info +time +exists +hmget ~incumbent:* &*'),
        ),
      ).client,
      {},
      patient,
    );
    expect(await watcher.leader()).toMatchObject({ state: 'vacant' });
    const term = await stage.lead(stage.election('a', await stage.client('redis', server)));
    expect(await watcher.leader()).toMatchObject({ state: 'led', leader: { id: 'a' } });
    await term[Symbol.asyncDispose]();
  });

  test('a wrong password is told, and so is a missing one', async (context) => {
    const guarded = await startRedis();
    const stage = new Stage(context);
    stage.keep(guarded);
    const client = await stage.client('redis', guarded);
    await guarded.command('CONFIG', 'SET', 'requirepass', 'secret');
    const late = stage.keep(await openClient('ioredis', guarded)).client;
    await expect(stage.election('a', late).campaign()).rejects.toMatchObject({
      code: 'STORE_UNSUITABLE',
      message: expect.stringContaining('log in'),
    });
    // A client that is logged in leads, though its copy cannot log in any more.
    const troubles = troublesOf(stage.name, context);
    const term = await stage.lead(stage.election('b', client));
    await waitFor('the copy was refused', async () => troubles.join().includes('NOAUTH'));
    expect(term.isLeading()).toBe(true);
  });
});

describe.skipIf(missing !== undefined).concurrent('clients', () => {
  for (const library of libraries) {
    test(`closed by its owner in mid-term, the term ends, and nothing is thrown (${library})`, async (context) => {
      const stage = new Stage(context);
      const opened = await openClient(library, server);
      const election = stage.election('a', opened.client);
      const first = await stage.lead(election);
      const troubles = troublesOf(stage.name, context);
      opened.close();
      await lossOf(first);
      expect(troubles.join()).toContain('must be connected');
      const b = stage.election('b', await stage.client(library, server));
      expect((await stage.lead(b)).token).toBeGreaterThan(first.token);
      stage.expectNoOverlap();
    });

    test(`the scripts may be flushed at any time (${library})`, async (context) => {
      const stage = new Stage(context);
      const first = await stage.lead(stage.election('a', await stage.client(library, server)));
      const waiting = stage.lead(stage.election('b', await stage.client(library, server)));
      const flushing = setInterval(() => void server.command('SCRIPT', 'FLUSH'), 20);
      context.onTestFinished(() => clearInterval(flushing));
      const version = await fieldOf(server, stage.name, 'version');
      await waitFor('a confirmation', async () => {
        return (await fieldOf(server, stage.name, 'version')) !== version;
      });
      await first[Symbol.asyncDispose]();
      expect((await waiting).token).toBeGreaterThan(first.token);
      clearInterval(flushing);
    });

    test(`never connected, the error says to connect it (${library})`, async (context) => {
      const stage = new Stage(context);
      const client =
        library === 'redis'
          ? createClient({ socket: { port: server.port } })
          : new Redis({ port: 1, retryStrategy: () => null, lazyConnect: true });
      client.on('error', () => {});
      const store = openRedis(client, { listen: false }).openStore(scopeOf(stage.name));
      await expect(store.read(new AbortController().signal)).rejects.toThrow(StoreUnavailableError);
      await expect(store.read(new AbortController().signal)).rejects.toThrow('must be connected');
    });
  }

  test('that were told to give bytes serve as well', async (context) => {
    const stage = new Stage(context);
    const client = createClient({
      socket: { host: '127.0.0.1', port: server.port },
      commandOptions: { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer } },
    });
    await client.connect();
    stage.keep({ close: () => client.destroy() });
    const first = await stage.lead(stage.election('a', client));
    const waiting = stage.lead(stage.election('b', client));
    expect(await first.guard.superseded()).toBe(false);
    await first[Symbol.asyncDispose]();
    expect((await waiting).token).toBeGreaterThan(first.token);
    expect(await first.guard.superseded()).toBe(true);
  });

  test('a command that is not yet sent is taken back', async (context) => {
    const stage = new Stage(context);
    const own = stage.keep(await startRedis());
    const client = createClient({ socket: { port: own.port } });
    client.on('error', () => {});
    await client.connect();
    stage.keep({ close: () => client.destroy() });
    const store = openRedis(client, {}).openStore(scopeOf(stage.name));
    const before = await store.read(new AbortController().signal);
    await own.kill();
    await waitFor('the client knows', async () => !client.isReady);
    const stop = new AbortController();
    const swap = store.swap(before.version, vacantRecord(stage.name, 'n'), stop.signal);
    stop.abort(new Error('stop'));
    await expect(swap).rejects.toThrow('stop');
  });
});

describe.skipIf(missing !== undefined).concurrent('TLS', () => {
  test('is spoken by the copy that listens as well; a client that is not trusted says why', async (context) => {
    const stage = new Stage(context);
    const directory = await makeServerDirectory('certificates');
    context.onTestFinished(() => rm(directory, { recursive: true, force: true }));
    const certificates = await createCertificates(directory);
    const secure = stage.keep(await startRedis({ tls: certificates }));
    const { port } = secure;
    const ca = certificates.ca.text;
    const node = createClient({ socket: { host: 'localhost', port, tls: true, ca } });
    await node.connect();
    stage.keep({ close: () => node.destroy() });
    const io = new Redis({ host: 'localhost', port, tls: { ca } });
    stage.keep({ close: () => io.disconnect() });
    const troubles = troublesOf(stage.name, context);
    const a = stage.election('a', node);
    expect(a.backend.description).toContain(`rediss://localhost:${port}`);
    const first = await stage.lead(a);
    const waiting = stage.lead(stage.election('b', io));
    await first[Symbol.asyncDispose]();
    await waiting;
    expect(troubles.join()).not.toContain('incumbent:news');

    const stranger = new Redis({ host: 'localhost', port, tls: {}, retryStrategy: () => null });
    stranger.on('error', () => {});
    stage.keep({ close: () => stranger.disconnect() });
    const other = new Stage(context);
    await expect(
      other.election('c', stranger, {}, patient).campaign({ wait: 0 }),
    ).rejects.toMatchObject({
      why: { kind: 'unreachable', cause: { code: 'STORE_UNAVAILABLE' } },
    });
  });
});

describe.skipIf(missing !== undefined)('who waits', () => {
  test('is told of news, and of nothing else', async (context) => {
    const own = await startRedis();
    const stage = new Stage(context);
    stage.keep(own);
    const published = async () => {
      const stats = String(await own.command('INFO', 'commandstats'));
      return Number(/cmdstat_publish:calls=(\d+)/.exec(stats)?.[1] ?? 0);
    };
    const first = await stage.lead(stage.election('a', await stage.client('redis', own)));
    const won = await published();
    for (let confirmations = 0; confirmations < 3; confirmations += 1) {
      const version = await fieldOf(own, stage.name, 'version');
      await waitFor('a confirmation', async () => {
        return (await fieldOf(own, stage.name, 'version')) !== version;
      });
    }
    expect(await published()).toBe(won);
    await first.proclaim({ metadata: { v: '2' } });
    expect(await published()).toBe(won + 1);
    await first[Symbol.asyncDispose]();
    expect(await published()).toBe(won + 2);
  });

  test('is told again after its connection for it was cut', async (context) => {
    const own = await startRedis();
    const stage = new Stage(context);
    stage.keep(own);
    const first = await stage.lead(stage.election('a', await stage.client('redis', own)));
    const waiting = stage.lead(stage.election('b', await stage.client('ioredis', own)));
    const listening = async () => {
      const [, count] = (await own.command('PUBSUB', 'NUMSUB', 'incumbent:news')) as [
        string,
        number,
      ];
      return count;
    };
    await waitFor('both listen', async () => (await listening()) === 2);
    await own.command('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await waitFor('both listen again', async () => (await listening()) === 2);
    await first[Symbol.asyncDispose]();
    await (await waiting)[Symbol.asyncDispose]();
    await waitFor('nobody listens any more', async () => (await listening()) === 0);
  });

  test('is listed as long as it looks, and not for ever after', async (context) => {
    const stage = new Stage(context);
    const { client } = stage.keep(await openClient('redis', server));
    const [dying, other] = [openRedis(client, {}), openRedis(client, {})].map((each) =>
      each.openStore(scopeOf(stage.name)),
    );
    if (dying === undefined || other === undefined) return;
    const { signal } = new AbortController();
    await dying.enlist({ id: 'x', incarnation: 'x1', addresses: [], metadata: {} });
    const key = `${keyOf(stage.name)}:candidates`;
    const left = Number(await server.command('PTTL', key));
    expect(left).toBeGreaterThan(0);
    // A look makes it live longer.
    await waitFor('time has passed', async () => Number(await server.command('PTTL', key)) < left);
    await dying.read(signal);
    expect((await other.list(signal)).map(({ id }) => id)).toEqual(['x']);
    await waitFor('it is listed no more', async () => (await other.list(signal)).length === 0);
    expect(await server.command('EXISTS', key)).toBe(0);
  });
});
