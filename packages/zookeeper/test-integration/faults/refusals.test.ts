import { startServer } from '@incumbent/zookeeper-testing';
import { describe, expect, it } from 'vitest';
import {
  AuthError,
  ConnectionLossError,
  NoNodeError,
  PacketTooLargeError,
  RefusedError,
  ServerError,
  SessionError,
  TransactionError,
} from '../../src/index.ts';
import { TestChild } from '../support/child-process.ts';
import { startErrorPatcher } from '../support/error-patcher.ts';
import { needServers, scoped, sharedServer } from '../support/scope.ts';
import { nextState, recordStates, refusal, settling, soon, until } from '../support/waiting.ts';

describe.concurrent('what a server refuses', () => {
  needServers();
  const server = sharedServer();

  it.each([
    [-118, 'SESSION_MOVED', SessionError, true],
    [-124, 'SASL_REQUIRED', AuthError, false],
    [-127, 'THROTTLED', RefusedError, true],
    [-122, 'SERVER_ERROR', ServerError, false],
    [-9_999, 'SERVER_ERROR', ServerError, false],
  ] as const)('error %i fails its call alone, with %s', (serverCode, code, kind, retryable) =>
    scoped(async (scope) => {
      const patcher = scope.later(await startErrorPatcher(server()));
      const client = await scope.connect(patcher.connectionString, { sessionTimeoutMs: 20_000 });
      const session = client.session?.id;
      patcher.failNext(serverCode);
      const calls = [client.get('/'), client.get('/zookeeper'), client.getChildren('/')];
      const [first, ...others] = calls.map((call) => settling<unknown>(call));
      const { error } = await first!;
      expect(error).toBeInstanceOf(kind);
      expect(error).toMatchObject({ code, serverCode, retryable, path: '/', operation: 'getData' });
      for (const other of others) {
        // A client that learns that the session has moved leaves that server, and loses its other
        // calls there.
        if (serverCode === -118) expect((await other).error?.code).toBe('CONNECTION_LOSS');
        else expect((await other).error).toBeUndefined();
      }
      await client.connected({ timeoutMs: 30_000 });
      expect((await client.get('/')).zxid).toBeGreaterThan(0n);
      expect(client.session?.id).toBe(session);
      expect(patcher.connections).toBe(serverCode === -118 ? 2 : 1);
    })(),
  );

  it(
    'a transaction that checks version 0 of a node at version 1 is refused',
    scoped(async (scope) => {
      const client = await scope.connect(server().connectionString, { sessionTimeoutMs: 20_000 });
      await client.create('/checked', 'a');
      expect((await client.set('/checked', 'b')).stat.version).toBe(1);
      const error = await refusal(
        client.transaction().create('/of-the-check').check('/checked', 0).commit(),
      );
      expect(error).toBeInstanceOf(TransactionError);
      expect(error).toMatchObject({ index: 1, path: '/checked', cause: { code: 'BAD_VERSION' } });
      const set = await refusal(client.transaction().set('/checked', 'c', 0).commit());
      expect(set).toMatchObject({ index: 0, cause: { code: 'BAD_VERSION' } });
      const remove = await refusal(client.transaction().delete('/checked', 0).commit());
      expect(remove).toMatchObject({ index: 0, cause: { code: 'BAD_VERSION' } });
      expect(await client.exists('/of-the-check')).toBe(false);
      expect((await client.get('/checked')).text).toBe('b');
    }),
  );

  it(
    'a packet above jute.maxbuffer fails alone and is not sent',
    scoped(async (scope) => {
      const client = await scope.connect(server().connectionString, { sessionTimeoutMs: 20_000 });
      const states = recordStates(client);
      const calls = [client.get('/'), client.create('/huge', new Uint8Array(1_048_576))];
      calls.push(client.get('/'));
      const [before, huge, after] = await Promise.all(calls.map((call) => settling<unknown>(call)));
      expect(huge?.error).toBeInstanceOf(PacketTooLargeError);
      expect(huge?.error).toMatchObject({ code: 'PACKET_TOO_LARGE', path: '/huge' });
      expect([before?.error, after?.error]).toEqual([undefined, undefined]);
      expect(states).toEqual([]);
      // The longest that the server takes.
      await client.create('/large', new Uint8Array(1_048_000));
      expect((await client.get('/large')).data).toHaveLength(1_048_000);
      await client.delete('/large');
    }),
  );

  it(
    'a packet above the limit of a server that takes less costs that call, not the session',
    scoped(async (scope) => {
      const small = scope.later(
        await startServer({ systemProperties: { 'jute.maxbuffer': 32_768 } }),
      );
      const client = await scope.connect(small.connectionString, { sessionTimeoutMs: 20_000 });
      const session = client.session?.id;
      await client.create('/node', 'x');
      const watch = await client.watch('/node');
      const connected = nextState(client, 'connected');
      const error = await refusal(client.set('/node', new Uint8Array(40_000)));
      expect(error).toBeInstanceOf(ConnectionLossError);
      await connected;
      expect(client.session?.id).toBe(session);
      expect((await client.get('/node')).text).toBe('x');
      await client.set('/node', 'y');
      expect(await soon(watch.changed, 'the watch is told')).toMatchObject({ type: 'changed' });
    }),
  );

  it(
    'watches come back to a server that takes little, when the client knows its limit',
    scoped(async (scope) => {
      const limit = 32_768;
      const small = scope.later(
        await startServer({ systemProperties: { 'jute.maxbuffer': limit } }),
      );
      const proxy = await scope.proxy(small);
      const other = await scope.connect(small.connectionString, { sessionTimeoutMs: 20_000 });
      const client = await scope.connect(proxy.connectionString, {
        sessionTimeoutMs: 20_000,
        maxRequestBytes: limit,
      });
      const paths = Array.from({ length: 1_000 }, (_, i) => `/${'w'.repeat(75)}${1_000 + i}`);
      const watches = await Promise.all(paths.map((path) => client.watch(path)));
      const connected = nextState(client, 'connected');
      proxy.cut();
      await proxy.pass();
      await connected;
      await Promise.all(paths.map((path) => other.create(path)));
      const events = await soon(Promise.all(watches.map(({ changed }) => changed)), 'all are told');
      expect(events.filter(({ type }) => type === 'created')).toHaveLength(paths.length);
      expect(client.counters.connects).toBe(2);
    }),
  );

  it(
    'connect() rejects when the credentials are refused',
    scoped(async (scope) => {
      const auth = [{ scheme: 'no-such-scheme', credentials: 'joe' }];
      const error = await refusal(scope.connect(server().connectionString, { auth }));
      expect(error).toMatchObject({ code: 'AUTH_FAILED' });
    }),
  );

  it(
    'a reply above the limit of the client costs that call, not the session',
    scoped(async (scope) => {
      const client = await scope.connect(server().connectionString, {
        sessionTimeoutMs: 20_000,
        maxReplyBytes: 10_000,
      });
      const session = client.session?.id;
      await client.create('/too-long', new Uint8Array(20_000));
      const connected = nextState(client, 'connected');
      const error = await refusal(client.get('/too-long'));
      expect(error).toMatchObject({ code: 'CONNECTION_LOSS', cause: { code: 'PROTOCOL' } });
      await connected;
      expect(client.session?.id).toBe(session);
      expect((await client.stat('/too-long')).stat?.dataLength).toBe(20_000);
    }),
  );

  it(
    'in a chroot that is not there calls say NoNode, until ensurePath("/") has made it',
    scoped(async (scope) => {
      const url = `${server().connectionString}/no/such/chroot`;
      const client = await scope.connect(url, { sessionTimeoutMs: 20_000 });
      for (const call of [client.create('/a'), client.get('/'), client.getChildren('/')]) {
        const error = await refusal(call);
        expect(error).toBeInstanceOf(NoNodeError);
        expect(error.message).toContain('there is no such node');
        expect(error.message).not.toContain('/no/such');
      }
      expect(await client.exists('/')).toBe(false);
      await client.ensurePath('/');
      expect((await client.create('/a', 'x')).path).toBe('/a');
      expect((await client.getChildren('/')).children).toEqual(['a']);
    }),
  );

  it(
    'refused credentials end the client: auth-failed, calls reject, nothing is tried again',
    scoped(async (scope) => {
      const proxy = await scope.proxy(server());
      const client = scope.create(proxy.connectionString, {
        sessionTimeoutMs: 20_000,
        auth: [{ scheme: 'no-such-scheme', credentials: 'joe' }],
      });
      const failed = nextState(client, 'auth-failed');
      const get = refusal(client.get('/'));
      expect((await failed).error).toBeInstanceOf(AuthError);
      expect(await refusal(client.connected())).toMatchObject({ code: 'AUTH_FAILED' });
      expect(await get).toMatchObject({ code: 'AUTH_FAILED' });
      for (const call of [client.get('/'), client.create('/a'), client.addAuth('digest', 'a:b')]) {
        const error = await refusal(call);
        expect(error).toBeInstanceOf(AuthError);
        expect(error).toMatchObject({ code: 'AUTH_FAILED' });
      }
      await until('the connection ends', () => proxy.counters.open === 0);
      expect(proxy.counters.connections).toBe(1);
      await client.close();
      expect(client.counters).toMatchObject({ attempts: 1, outstanding: 0 });
    }),
  );

  it(
    'a process whose client was refused does not spin, and ends by itself',
    scoped(async (scope) => {
      const child = scope.later(new TestChild('auth-child.mjs', [server().connectionString]));
      expect(await soon(child.ended, 'the process ends by itself')).toBe(0);
      await until('it has said how it ended', () => child.said.length > 0);
      const [{ ended }] = child.said as [{ ended: { states: string[]; attempts: number } }];
      expect(ended.states.at(-1)).toBe('auth-failed');
      expect(ended.attempts).toBe(1);
    }),
  );

  it(
    'refused credentials that were added later end the client too',
    scoped(async (scope) => {
      const client = await scope.connect(server().connectionString, { sessionTimeoutMs: 20_000 });
      const failed = nextState(client, 'auth-failed');
      const error = await refusal(client.addAuth('no-such-scheme', 'joe'));
      expect(error).toMatchObject({ code: 'AUTH_FAILED' });
      await failed;
      expect(await refusal(client.get('/'))).toMatchObject({ code: 'AUTH_FAILED' });
    }),
  );
});
