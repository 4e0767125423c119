// Defects of node-zookeeper-client 1.1.3. The numbers are those of
// docs/evidence/zookeeper-features.md.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { describe, expect, it } from 'vitest';
import type { ZooKeeper } from '../../src/index.ts';
import { acl, ConnectError, connect } from '../../src/index.ts';
import { TestClock } from '../../test/hostile-reading/clock.ts';
import { refusedConnect } from '../support/refused-connect.ts';
import { scoped } from '../support/scope.ts';
import { nextState, refusal, settling, soon } from '../support/waiting.ts';
import { reconnect, setWatches, sinceHandshake, startFake } from './support.ts';

const patient = { sessionTimeoutMs: 30_000, requestTimeoutMs: 60_000 };

describe.concurrent('node-zookeeper-client', () => {
  it(
    'NZC 3: every error code from -1 to -130 fails its call alone, and the client goes on',
    scoped(async (scope) => {
      const fake = await startFake(scope);
      const client = await scope.connect(fake.connectionString, patient);
      for (let code = -1; code >= -130; code -= 1) {
        fake.faults.next('getData', { type: 'errorCode', code });
        expect(await refusal(client.get('/'))).toMatchObject({ serverCode: code, path: '/' });
        expect((await client.get('/')).stat.version).toBe(0);
      }
      // -118 means that the session has moved, -12 and -112 that it is gone. Only then the client
      // connects again.
      const { connects, expirations, failed, outstanding } = client.counters;
      expect({ connects, expirations }).toEqual({ connects: 4, expirations: 2 });
      expect({ failed, outstanding }).toEqual({ failed: 130, outstanding: 0 });
    }),
  );

  it(
    'NZC 6: a server that drops every connection after the handshake is asked at growing intervals',
    scoped(async (scope) => {
      const fake = await startFake(scope);
      const clock = new TestClock();
      const client = await scope.connect(fake.connectionString, { ...patient, clock });
      const watch = await client.watch('/a');
      const drops = fake.faults.next({ opcode: setWatches, times: 1_000 }, 'dropBefore');
      const attemptsMs: number[] = [];
      const onAttempt = (message: unknown) => {
        const { server } = message as { server: string };
        if (server === `127.0.0.1:${fake.port}`) attemptsMs.push(clock.monotonicMs());
      };
      subscribe('incumbent:zookeeper:attempt', onAttempt);
      scope.finally(() => void unsubscribe('incumbent:zookeeper:attempt', onAttempt));
      fake.dropConnections();
      await clock.runUntil('five attempts', () => attemptsMs.length >= 5, 1);
      const pausesMs = attemptsMs.slice(1).map((ms, i) => ms - attemptsMs[i]!);
      // 0.1 s, half as much again each time, less up to a quarter.
      for (const [i, ms] of pausesMs.slice(0, 4).entries()) {
        expect(ms).toBeGreaterThanOrEqual(0.75 * 100 * 1.5 ** i);
      }
      drops.cancel();
      fake.faults.clear();
      const isBack = () => fake.watches(client.session?.id).length === 1;
      await clock.runUntil('it is back', isBack);
      const other = await scope.connect(fake.connectionString, patient);
      await other.create('/a');
      expect((await soon(watch.changed, 'the creation is told')).type).toBe('created');
    }),
  );

  it.each(['the session expires', 'the client is closed'])(
    'NZC 7: whatever waits is settled when %s',
    (end) =>
      scoped(async (scope) => {
        const fake = await startFake(scope);
        const client = await scope.connect(fake.connectionString, {
          ...patient,
          closeTimeoutMs: 50,
        });
        const suspended = nextState(client, 'suspended');
        await fake.refuse();
        fake.dropConnections();
        await suspended;
        const calls = everyCall(client).map((call) => settling(call));
        expect(client.counters.queued).toBe(calls.length);
        if (end === 'the client is closed') {
          await client.close();
        } else {
          fake.expireSession(client.session!.id);
          const expired = nextState(client, 'expired');
          await fake.listen();
          await expired;
        }
        const code = end === 'the client is closed' ? 'CLOSED' : 'SESSION_EXPIRED';
        for (const call of calls) expect((await call).error).toMatchObject({ code });
        expect(client.counters).toMatchObject({ outstanding: 0, queued: 0, queuedBytes: 0 });
        // None of it is sent later either.
        if (end === 'the session expires') await client.connected();
        const sent = fake.requests.map(({ opcode }) => opcode);
        expect(sent.filter((name) => name !== 'connect')).toEqual([]);
      })(),
  );

  it(
    'NZC 9: credentials and watches are sent once, in front of what waits, also after failed handshakes',
    scoped(async (scope) => {
      const fake = await startFake(scope);
      const client = await scope.connect(fake.connectionString, {
        ...patient,
        auth: [{ scheme: 'digest', credentials: 'joe:secret' }],
      });
      await client.create('/private', 'x', { acl: [acl.digest('joe', 'secret')] });
      await client.watch('/absent');
      const tree = await client.addWatch('/', { recursive: true });
      for (const action of ['dropBefore', 'dropAfter'] as const) {
        const failures = fake.faults.next({ opcode: 'connect', times: 2 }, action);
        const suspended = nextState(client, 'suspended');
        fake.dropConnections();
        await suspended;
        const calls = [
          client.get('/private'),
          client.set('/private', 'y'),
          client.get('/private'),
        ].map((call) => settling<unknown>(call));
        for (const call of calls) expect((await call).error).toBeUndefined();
        expect(failures.hits).toBe(2);
        expect(sinceHandshake(fake)).toEqual([
          ...['connect', 'auth', ...setWatches],
          ...['getData', 'setData', 'getData'],
        ]);
      }
      tree.close();
    }),
  );

  it(
    'NZC 11: a write whose reply is lost is not sent twice; the call says that it may have happened',
    scoped(async (scope) => {
      const fake = await startFake(scope);
      const client = await scope.connect(fake.connectionString, patient);
      await client.create('/queue');
      await client.create('/gone');
      const writes: [string, () => Promise<unknown>][] = [
        ['create2', () => client.create('/queue/n-', null, { sequential: true })],
        ['create2', () => client.create('/queue/m-', null, { sequential: true, ephemeral: true })],
        ['setData', () => client.set('/queue', 'x')],
        ['setAcl', () => client.setAcl('/queue', [acl.world()])],
        ['delete', () => client.delete('/gone')],
        ['multi', () => client.transaction().create('/of-a-transaction').commit()],
      ];
      for (const [opcode, write] of writes) {
        const before = sent(opcode);
        fake.faults.next(opcode, 'dropAfter');
        const error = await refusal(write());
        expect(error).toMatchObject({ code: 'CONNECTION_LOSS', maybeApplied: true });
        await client.connected();
        await client.sync();
        expect(sent(opcode)).toBe(before + 1);
      }
      expect((await client.getChildren('/queue')).children).toHaveLength(2);
      expect((await client.get('/queue')).stat).toMatchObject({ version: 1, aversion: 1 });
      expect(await client.exists('/gone')).toBe(false);

      function sent(name: string): number {
        return fake.requests.filter(({ opcode }) => opcode === name).length;
      }
    }),
  );

  it(
    'NZC 12, ZKN 7: connect() says which servers it could not reach, and why',
    scoped(async (scope) => {
      const fake = await startFake(scope);
      const address = `127.0.0.1:${fake.port}`;
      const clock = new TestClock();
      fake.silence();
      const mute = await clock.runUntilSettled(refusal(connect(fake.connectionString, { clock })));
      fake.unsilence();
      fake.faults.closeOnConnect(1_000);
      const closing = await refusedConnect(fake.connectionString);
      fake.faults.clear();
      await fake.refuse();
      const refusing = await refusedConnect(fake.connectionString);
      for (const error of [mute, closing, refusing]) {
        expect(error).toBeInstanceOf(ConnectError);
        expect(error.message).toContain(address);
        expect(error.retryable).toBe(true);
      }
      expect((refusing.cause as { code?: string }).code).toBe('ECONNREFUSED');
      expect(refusing.message).toContain('ECONNREFUSED');
      expect(closing.message).toMatch(/closed the connection|ECONNRESET/);
    }),
  );

  it(
    'NZC 13: xids of requests begin at 1 and rise by 1, over connections too',
    scoped(async (scope) => {
      const fake = await startFake(scope);
      const client = await scope.connect(fake.connectionString, {
        ...patient,
        auth: [{ scheme: 'digest', credentials: 'joe:secret' }],
      });
      for (let round = 0; round < 3; round += 1) {
        await Promise.all([client.get('/'), client.create(`/n${round}`), client.watch('/')]);
        await reconnect(fake, client);
      }
      const special = ['connect', 'auth', 'ping', ...setWatches];
      const requests = fake.requests.filter(({ opcode }) => !special.includes(opcode));
      expect(requests.map(({ xid }) => xid)).toEqual(requests.map((_, i) => i + 1));
      expect(requests).toHaveLength(9);
    }),
  );

  it(
    'NZC 14: fifty watches of a path, fifty listeners and one signal for fifty calls warn of no leak',
    scoped(async (scope) => {
      const fake = await startFake(scope);
      const warnings: string[] = [];
      const onWarning = ({ name }: Error) => warnings.push(name);
      process.on('warning', onWarning);
      scope.finally(() => void process.off('warning', onWarning));
      const client = await scope.connect(fake.connectionString, patient);
      const { signal } = new AbortController();
      const fifty = Array.from({ length: 50 }, (_, i) => i);
      for (const _ of fifty) client.onState(() => {});
      const watches = await Promise.all(fifty.map(() => client.watch('/', { signal })));
      await Promise.all(fifty.map((i) => client.create(`/n${i}`, null, { signal })));
      const followers = fifty.map(() => client.followChildren('/', { signal }));
      await Promise.all(followers.map((follower) => follower.next()));
      await reconnect(fake, client);
      await client.set('/', 'x');
      await soon(Promise.all(watches.map(({ changed }) => changed)), 'all are told');
      // A warning is emitted in the next turn.
      await new Promise((resolve) => setImmediate(resolve));
      expect(warnings).toEqual([]);
    }),
  );
});

/** One call of each kind of request. */
function everyCall(client: ZooKeeper): Promise<unknown>[] {
  return [
    client.create('/a'),
    client.create('/a', null, { protected: true }),
    client.get('/'),
    client.set('/', 'x'),
    client.delete('/a'),
    client.stat('/'),
    client.exists('/'),
    client.getChildren('/'),
    client.getEphemerals(),
    client.getAllChildrenNumber('/'),
    client.sync(),
    client.getAcl('/'),
    client.setAcl('/', [acl.world()]),
    client.whoAmI(),
    client.getConfig(),
    client.reconfig({ leaving: [1] }),
    client.transaction().check('/').commit(),
    client.multiRead([{ get: '/' }]),
    client.confirm(['/']),
    client.watch('/'),
    client.watchChildren('/'),
    client.addWatch('/'),
    client.checkWatches('/'),
    client.removeWatches('/'),
    client.ensurePath('/a'),
    client.deleteRecursive('/a'),
  ];
}
