// Lessons from kazoo, go-zookeeper, Curator and zookeeper-cpp. See
// docs/evidence/zookeeper-features.md.
import type { FakeRequest } from '@incumbent/zookeeper-testing';
import { describe, expect, it } from 'vitest';
import type { StateChange, ZooKeeperError } from '../../src/index.ts';
import { acl, createClient } from '../../src/index.ts';
import { scoped } from '../support/scope.ts';
import { nextState, recordStates, soon, until } from '../support/waiting.ts';
import { ManualClock, reconnect, setWatches, startFake } from './support.ts';

const patient = { sessionTimeoutMs: 30_000, requestTimeoutMs: 60_000 };

describe.concurrent('other clients', () => {
  it(
    'kazoo: a listener may call the client and wait for it, in every state',
    scoped(async (scope) => {
      const fake = await startFake(scope);
      const client = scope.create(fake.connectionString, patient);
      const answers: Promise<string>[] = [];
      const heard: string[] = [];
      client.onState(({ state }) => {
        heard.push(state);
        const call = async () => {
          const outcome = await client.get('/').then(
            () => 'answered',
            (error: { code: string }) => error.code,
          );
          if (state === 'connected') await client.watch('/');
          return `${state}: ${outcome}`;
        };
        answers.push(call());
      });
      await client.connected();
      const watch = await client.watch('/');
      const fromWatch = watch.changed.then(() => client.get('/'));
      await client.set('/', 'x');
      expect((await soon(fromWatch, 'a call from a watch')).text).toBe('x');
      await reconnect(fake, client);
      await soon(Promise.all(answers), 'the answers so far');
      const [expired, connected] = [nextState(client, 'expired'), nextState(client, 'connected')];
      fake.expireSession(client.session!.id);
      await expired;
      await connected;
      await soon(Promise.all(answers), 'all answers');
      await client.close();
      expect(heard).toEqual([
        ...['connected', 'suspended', 'connected'],
        ...['suspended', 'expired', 'connected', 'closed'],
      ]);
      expect(await Promise.all(answers)).toEqual([
        'connected: answered',
        'suspended: answered',
        'connected: answered',
        // The session of this call turned out to be gone, and the call was never sent.
        'suspended: SESSION_EXPIRED',
        'expired: answered',
        'connected: answered',
        'closed: CLOSED',
      ]);
    }),
  );

  it(
    'kazoo: a listener that closes the client, or a signal that aborts in one, blocks nobody',
    scoped(async (scope) => {
      const fake = await startFake(scope);
      const client = await scope.connect(fake.connectionString, patient);
      const stop = new AbortController();
      const reason = new Error('enough');
      const calls: Promise<unknown>[] = [];
      client.onState(({ state }) => {
        if (state !== 'suspended') return;
        const [aborted, waiting] = [client.get('/', { signal: stop.signal }), client.get('/')];
        calls.push(
          expect(aborted).rejects.toBe(reason),
          expect(waiting).rejects.toMatchObject({ code: 'CLOSED' }),
          soon(client.close(), 'close'),
        );
        stop.abort(reason);
      });
      await fake.refuse();
      fake.dropConnections();
      await until('the listener has run', () => calls.length === 3);
      await Promise.all(calls);
      expect(client.state).toBe('closed');
    }),
  );

  it(
    'go-zookeeper: a refused SetWatches ends the connection, and the next one restores the watches',
    scoped(async (scope) => {
      const fake = await startFake(scope);
      const client = await scope.connect(fake.connectionString, patient);
      const watch = await client.watch('/a');
      const refused = fake.faults.next({ opcode: setWatches }, { type: 'errorCode', code: -1 });
      const { connects } = client.counters;
      fake.dropConnections();
      await refused.struck;
      await until('it tried again', () => client.counters.connects >= connects + 2);
      await client.connected();
      const other = await scope.connect(fake.connectionString, patient);
      await other.create('/a');
      expect(await soon(watch.changed, 'the creation')).toMatchObject({ type: 'created' });
    }),
  );

  // The handshake, the watches, and the request behind them: lost before or after the server sees
  // them.
  const breaks = ['connect', 'setWatches', 'getData'].flatMap((opcode) =>
    (['dropBefore', 'dropAfter', 'halfFrame'] as const).map((action) => ({ opcode, action })),
  );
  it.each(breaks)(
    'go-zookeeper: no change is missed when the way back breaks: $opcode, $action',
    ({ opcode, action }) =>
      scoped(async (scope) => {
        const fake = await startFake(scope);
        const second = await fake.addServer();
        const [first] = fake.servers;
        const client = await scope.connect(first!.connectionString, patient);
        const other = await scope.connect(second.connectionString, patient);
        for (const path of ['/a', '/b']) await other.create(path);
        const [before, after] = [await client.watch('/a'), await client.watch('/b')];
        const predicate = ({ port }: FakeRequest) => port === first!.port;
        const struck = fake.faults.next({ opcode, predicate }, action);
        const suspended = nextState(client, 'suspended');
        await first!.refuse();
        first!.dropConnections();
        await suspended;
        const get = client.get('/').catch(() => undefined);
        await other.set('/a', 'meanwhile');
        await first!.listen();
        await struck.struck;
        await other.set('/b', 'meanwhile');
        expect(await soon(before.changed, 'the first change')).toMatchObject({ type: 'changed' });
        expect(await soon(after.changed, 'the second change')).toMatchObject({ type: 'changed' });
        await get;
      })(),
  );

  it(
    'Curator: all listeners hear all changes in the same order, also if one of them causes the next',
    scoped(async (scope) => {
      const fake = await startFake(scope);
      const client = scope.later(createClient(fake.connectionString, patient));
      const [first, second]: [StateChange[], StateChange[]] = [[], []];
      let depth = 0;
      client.onState((change) => {
        depth += 1;
        expect(depth).toBe(1);
        first.push(change);
        // Ends the client while the other listeners have not heard of this change yet.
        if (change.state === 'expired') void client.close();
        depth -= 1;
      });
      client.onState((change) => {
        depth += 1;
        expect(depth).toBe(1);
        second.push(change);
        depth -= 1;
      });
      await client.connected();
      await reconnect(fake, client);
      const closed = nextState(client, 'closed');
      fake.expireSession(client.session!.id);
      await closed;
      const names = ['connected', 'suspended', 'connected', 'suspended', 'expired', 'closed'];
      expect(first.map(({ state }) => state)).toEqual(names);
      expect(second).toEqual(first);
      for (const [i, { previous, atMs }] of first.slice(1).entries()) {
        expect(previous).toBe(first[i]!.state);
        expect(atMs).toBeGreaterThanOrEqual(first[i]!.atMs);
      }
    }),
  );

  it(
    'Curator: a node of the session before is not taken for one of ours, while the servers still have it',
    scoped(async (scope) => {
      const fake = await startFake(scope);
      const clock = new ManualClock();
      const client = await scope.connect(fake.connectionString, {
        sessionTimeoutMs: 10_000,
        clock,
      });
      const before = client.session!.id;
      const guid = '0123456789abcdef0123456789abcdef';
      const mode = { ephemeral: true, sequential: true, protected: guid };
      await client.create('/latch');
      const old = await client.create('/latch/n-', null, mode);
      await client.create('/held', null, { ephemeral: true });
      const states = recordStates(client);

      // By our clock the session is over. The servers' clock stands still, so they have not
      // noticed.
      fake.silence();
      clock.advance(10_000);
      await until('it has expired', () => client.state === 'expired');
      fake.dropConnections();
      const connected = nextState(client, 'connected');
      fake.unsilence();
      await until('it is back', () => {
        clock.advance(100);
        return client.state === 'connected';
      });
      await connected;
      expect(states.slice(-2)).toEqual(['expired', 'connected']);
      expect(client.session!.id).not.toBe(before);

      expect((await client.stat('/held')).stat?.ephemeralOwner).toBe(before);
      await expect(client.create('/held', null, { ephemeral: true })).rejects.toMatchObject({
        code: 'NODE_EXISTS',
      });
      expect((await client.getEphemerals()).paths).toEqual([]);
      // It is unknown whether the node was made. One with its guid exists, but it is not ours.
      fake.faults.next('create2', 'dropBefore');
      let outcome: unknown;
      void client.create('/latch/n-', null, mode).then(
        ({ path }) => {
          outcome = path;
        },
        ({ code }: ZooKeeperError) => {
          outcome = code;
        },
      );
      await until('the create settles', () => {
        if (client.state === 'suspended') clock.advance(50);
        return outcome !== undefined;
      });
      expect(outcome).not.toBe(old.path);
      const own = (await client.getEphemerals()).paths;
      expect(own).not.toContain(old.path);
      // Made anew, or refused with nothing made.
      expect(own.length === 0 ? 'SESSION_EXPIRED' : own[0]).toBe(outcome);
      expect(client.session!.id).not.toBe(before);

      fake.expireSession(before);
      expect(await client.exists(old.path)).toBe(false);
      expect(client.state).toBe('connected');
    }),
  );

  it(
    'zookeeper-cpp: no bound is read and then ignored: of connecting, of a call, of closing',
    scoped(async (scope) => {
      const fake = await startFake(scope);
      const clock = new ManualClock();
      const bounds = { connectTimeoutMs: 700, requestTimeoutMs: 500, closeTimeoutMs: 300 };
      const client = scope.create(fake.connectionString, {
        sessionTimeoutMs: 20_000,
        ...bounds,
        clock,
      });
      fake.silence();
      const settled: string[] = [];
      const note = (name: string, promise: Promise<unknown>) => {
        const done = () => void settled.push(name);
        promise.then(done, done);
      };
      note('connected', client.connected());
      note('get', client.get('/'));
      for (const [ms, expected] of [
        [499, []],
        [1, ['get']],
        [199, ['get']],
        [1, ['get', 'connected']],
      ] as const) {
        clock.advance(ms);
        await new Promise((resolve) => setImmediate(resolve));
        expect(settled).toEqual(expected);
      }
      fake.unsilence();
      await until('it is connected', () => {
        clock.advance(10);
        return client.state === 'connected';
      });
      fake.silence();
      note('close', client.close());
      clock.advance(299);
      await new Promise((resolve) => setImmediate(resolve));
      expect(settled).not.toContain('close');
      clock.advance(1);
      await until('it is closed', () => settled.includes('close'));
    }),
  );

  it(
    'zookeeper-cpp: a Stat says whose ephemeral node it is, and 0 for all others',
    scoped(async (scope) => {
      const fake = await startFake(scope);
      const client = await scope.connect(fake.connectionString, patient);
      const kinds = [
        await client.create('/plain'),
        await client.create('/plain/n-', null, { sequential: true, acl: [acl.world()] }),
        await client.create('/container', null, { container: true }),
        await client.create('/own', null, { ephemeral: true }),
        await client.create('/own-', null, { ephemeral: true, sequential: true }),
      ];
      const own = client.session?.id;
      expect(kinds.map(({ stat }) => stat?.ephemeralOwner)).toEqual([0n, 0n, 0n, own, own]);
    }),
  );
});
