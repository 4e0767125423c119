import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { TestProxy } from '@incumbent/zookeeper-testing';
import { describe, expect, it } from 'vitest';
import type { Clock, NodeWatch, PersistentEvent, ZooKeeper } from '../../src/index.ts';
import { TestClock } from '../../test/hostile-reading/clock.ts';
import type { Scope } from '../support/scope.ts';
import { needServers, scoped, sharedServer } from '../support/scope.ts';
import {
  lasting,
  monotonicMs,
  nextState,
  recordStates,
  settling,
  soon,
  until,
} from '../support/waiting.ts';

const patient = { requestTimeoutMs: 60_000 };

describe.concurrent('when the connection is lost', () => {
  needServers();
  const server = sharedServer({ heapMb: 192 });

  it(
    'an outage of 1 s: the first attempt after it succeeds, and a change meanwhile is told',
    scoped(async (scope) => {
      const other = await scope.connect(server().connectionString, { sessionTimeoutMs: 30_000 });
      await Promise.all(
        Array.from({ length: 6 }, async () => {
          const { path } = await other.create('/outage-', 'before', { sequential: true });
          const proxy = await scope.proxy(server());
          const client = await scope.connect(proxy.connectionString, { sessionTimeoutMs: 10_000 });
          const watch = await client.watch(path);
          const session = client.session?.id;
          const attempts = recordAttempts(scope, proxy);
          proxy.refuse();
          await other.set(path, 'meanwhile');
          await lasting(1_000);
          const connected = nextState(client, 'connected');
          await proxy.pass();
          const before = attempts.length;
          await connected;
          // No attempt, except one that was under way. The pauses between two are in the unit tests
          // of `backoffMs`.
          expect(attempts.length - before).toBeLessThanOrEqual(1);
          expect(client.session?.id).toBe(session);
          expect(await soon(watch.changed, 'the change is told')).toMatchObject({
            type: 'changed',
            path,
          });
          expect((await client.get(path)).text).toBe('meanwhile');
        }),
      );
    }),
  );

  it(
    'refused for 10 s: few attempts with jitter, the first after it succeeds, 1,000 watches restored',
    scoped(async (scope) => {
      const other = await scope.connect(server().connectionString, { sessionTimeoutMs: 30_000 });
      await other.create('/refused');
      const paths = Array.from({ length: 1_000 }, (_, i) => `/refused/${i}`);
      await createAll(other, paths);
      const proxy = await scope.proxy(server());
      const clock = new TestClock();
      const options = { clock, sessionTimeoutMs: 30_000 };
      const client = await scope.connect(proxy.connectionString, options);
      const watches = await Promise.all(paths.map((path) => client.watch(path)));
      const attemptsMs = recordAttempts(scope, proxy, clock);
      const suspended = nextState(client, 'suspended');
      proxy.refuse();
      await suspended;
      await clock.advance(10_000, 10);
      // 0.1 s, half as much again each time up to 0.45 s, less up to a quarter: at most 34.
      expect(attemptsMs.length).toBeGreaterThan(10);
      expect(attemptsMs.length).toBeLessThanOrEqual(36);
      // Without jitter all later pauses would be equal, except for the grain of the clock.
      const pauses = attemptsMs.map((ms, i) => ms - (attemptsMs[i - 1] ?? 0)).slice(5);
      expect(Math.max(...pauses) - Math.min(...pauses)).toBeGreaterThan(20);

      const connected = nextState(client, 'connected');
      await proxy.pass();
      const before = attemptsMs.length;
      await clock.runUntil('the next attempt', () => attemptsMs.length > before, 10);
      await connected;
      expect(attemptsMs.length - before).toBe(1);
      await setAll(other, paths);
      const events = await soon(Promise.all(watches.map(({ changed }) => changed)), 'all are told');
      expect(events.filter(({ type }) => type !== 'changed')).toEqual([]);
    }),
  );

  it(
    'half a frame and then the end is like any cut, wherever the frame breaks',
    scoped(async (scope) => {
      const other = await scope.connect(server().connectionString, { sessionTimeoutMs: 30_000 });
      const { path } = await other.create('/half-', 'x'.repeat(500), { sequential: true });
      const proxy = await scope.proxy(server());
      const client = await scope.connect(proxy.connectionString, { sessionTimeoutMs: 20_000 });
      const session = client.session?.id;
      for (const bytes of [1, 3, 4, 5, 19, 20, 300]) {
        const [suspended, connected] = [
          nextState(client, 'suspended'),
          nextState(client, 'connected'),
        ];
        const calls = [client.get(path), client.get('/')].map((call) => settling(call));
        proxy.cutAfterBytes(bytes);
        await suspended;
        for (const call of calls) expect((await call).error?.code).toBe('CONNECTION_LOSS');
        await connected;
        expect((await client.get(path)).text).toHaveLength(500);
      }
      // In the answer to the handshake (41 bytes), too.
      for (const bytes of [2, 30]) {
        const [suspended, connected] = [
          nextState(client, 'suspended'),
          nextState(client, 'connected'),
        ];
        proxy.cut();
        await suspended;
        const { attempts } = client.counters;
        proxy.cutAfterBytes(bytes);
        await connected;
        expect(client.counters.attempts).toBeGreaterThanOrEqual(attempts + 1);
        expect((await client.get(path)).text).toHaveLength(500);
      }
      expect(client.session?.id).toBe(session);
    }),
  );

  it(
    'a get made while cut off settles when the session expires, and the client is usable again',
    scoped(async (scope) => {
      const proxy = await scope.proxy(server());
      const clock = new TestClock();
      const client = await scope.connect(proxy.connectionString, {
        ...{ clock, sessionTimeoutMs: 20_000 },
        ...patient,
      });
      const session = client.session?.id;
      const [suspended, expired] = [nextState(client, 'suspended'), nextState(client, 'expired')];
      proxy.refuse();
      await suspended;
      const get = settling(client.get('/'));
      await clock.advance(20_000, 250);
      const gone = await expired;
      expect((await get).error).toMatchObject({ code: 'SESSION_EXPIRED', cause: gone.error });
      expect(client.counters).toMatchObject({ outstanding: 0, queued: 0, queuedBytes: 0 });
      // A call that is made now waits for the next session.
      const next = settling(client.get('/'));
      await proxy.pass();
      expect((await clock.runUntilSettled(next)).error).toBeUndefined();
      expect(client.state).toBe('connected');
      expect(client.session?.id).not.toBe(session);
    }),
  );

  for (const verdict of ['by its own clock', 'by the word of the server'] as const) {
    it(
      `expired while away, ${verdict}: no write of the old session lands and all watches are told`,
      scoped(async (scope) => {
        const url = server().connectionString;
        const other = await scope.connect(url, { sessionTimeoutMs: 30_000 });
        const { path: folder } = await other.create('/expired-', null, { sequential: true });
        await other.create(`${folder}/node`, 'x');
        const proxy = await scope.proxy(server());
        const clock = new TestClock();
        const client = await scope.connect(`${proxy.connectionString}${folder}`, {
          ...{ clock, sessionTimeoutMs: 20_000 },
          ...patient,
        });
        const oneShots: NodeWatch<unknown>[] = [
          await client.watch('/node'),
          await client.watch('/absent'),
          await client.watchChildren('/'),
        ];
        const kept = takeAll(await client.addWatch('/node'));
        const tree = takeAll(await client.addWatch('/', { recursive: true }));
        const before = client.session;
        const exported = client.exportSession();
        const [suspended, expired] = [nextState(client, 'suspended'), nextState(client, 'expired')];
        const states = recordStates(client);

        proxy.refuse();
        await suspended;
        const writes = [
          client.create('/of-the-old-session', null, { ephemeral: true }),
          client.create('/protected', null, { ephemeral: true, protected: true }),
          client.set('/node', 'of the old session'),
          client.transaction().create('/in-a-transaction').commit(),
        ].map((call) => settling<unknown>(call));
        if (verdict === 'by the word of the server') {
          // Another client attaches to the session and ends it.
          const heir = await scope.connect(url, { session: exported!, sessionTimeoutMs: 20_000 });
          await heir.close();
          await proxy.pass();
          await clock.runUntil('a server says so', () => states.includes('expired'));
        } else {
          await clock.advance(20_000, 250);
        }
        await expired;
        for (const write of writes) expect((await write).error?.code).toBe('SESSION_EXPIRED');
        for (const { changed } of oneShots) {
          expect(await soon(changed, 'a watch is told')).toMatchObject({
            type: 'lost',
            reason: 'expired',
          });
        }

        await proxy.pass();
        await clock.runUntil('it is connected', () => client.state === 'connected', 20, 5);
        expect(states).toEqual(['suspended', 'expired', 'connected']);
        expect(client.session?.id).not.toBe(before?.id);
        await other.sync('/');
        expect((await other.getChildren(folder)).children).toEqual(['node']);
        expect((await other.get(`${folder}/node`)).text).toBe('x');

        // The persistent watches report the gap, and go on in the new session.
        await client.sync('/');
        await other.set(`${folder}/node`, 'after');
        const change = { type: 'changed', path: '/node' };
        await until('the change is told', () => kept.length >= 2 && tree.length >= 2);
        for (const events of [kept, tree]) {
          expect(events).toMatchObject([{ type: 'gap', reason: 'expired' }, change]);
        }
        expect((await client.getEphemerals()).paths).toEqual([]);
      }),
    );
  }

  it(
    '20,000 watches of 80-byte paths come back with one reconnect, and none is lost',
    scoped(async (scope) => {
      const options = { sessionTimeoutMs: 40_000, ...patient };
      const other = await scope.connect(server().connectionString, options);
      await other.create('/many');
      const paths = Array.from({ length: 20_000 }, (_, i) => {
        return `/many/${String(i).padStart(80 - '/many/'.length, '0')}`;
      });
      // Three of four exist (data watches), the fourth does not (exist watches).
      const isThere = (i: number) => i % 4 !== 3;
      await createAll(
        other,
        paths.filter((_, i) => isThere(i)),
      );
      const proxy = await scope.proxy(server());
      const client = await scope.connect(proxy.connectionString, options);
      const watches = await Promise.all(paths.map((path) => client.watch(path)));
      expect(client.counters.watches).toBe(20_000);
      const session = client.session?.id;
      const { connects } = client.counters;
      const changeOf = (indices: readonly number[]) => changeAll(other, paths, indices, isThere);
      const all = paths.map((_, i) => i);

      const [suspended, connected] = [
        nextState(client, 'suspended'),
        nextState(client, 'connected'),
      ];
      proxy.cut();
      await suspended;
      await changeOf(all.filter((i) => i % 10 < 2));
      const { attempts } = proxy.counters;
      await proxy.pass();
      await connected;
      // Calls are answered, although so many watches are sent before them.
      expect((await client.get(paths[0]!)).text).toBe('changed');
      await changeOf(all.filter((i) => i % 10 >= 2));
      const events = await soon(Promise.all(watches.map(({ changed }) => changed)), 'all are told');
      const wrong = events.filter(({ type }, i) => type !== (isThere(i) ? 'changed' : 'created'));
      expect(wrong).toEqual([]);
      expect(client.counters).toMatchObject({ connects: connects + 1, watches: 0 });
      expect(client.session?.id).toBe(session);
      expect(proxy.counters.connections).toBe(2);
      expect(attempts).toBeLessThan(40);
    }),
  );
});

/** When clients began to connect to it, by their clock. */
function recordAttempts(
  scope: Scope,
  proxy: TestProxy,
  clock: Pick<Clock, 'monotonicMs'> = { monotonicMs },
): readonly number[] {
  const attemptsMs: number[] = [];
  const onAttempt = (message: unknown) => {
    const { server: tried } = message as { server: string };
    if (tried === `${proxy.host}:${proxy.port}`) attemptsMs.push(clock.monotonicMs());
  };
  subscribe('incumbent:zookeeper:attempt', onAttempt);
  scope.finally(() => void unsubscribe('incumbent:zookeeper:attempt', onAttempt));
  return attemptsMs;
}

async function createAll(client: ZooKeeper, paths: readonly string[]): Promise<void> {
  await inBatches(paths, async (batch) => {
    const transaction = client.transaction();
    for (const path of batch) transaction.create(path);
    await transaction.commit();
  });
}

async function setAll(client: ZooKeeper, paths: readonly string[]): Promise<void> {
  await inBatches(paths, async (batch) => {
    const transaction = client.transaction();
    for (const path of batch) transaction.set(path, 'changed');
    await transaction.commit();
  });
}

async function changeAll(
  client: ZooKeeper,
  paths: readonly string[],
  indices: readonly number[],
  isThere: (i: number) => boolean,
): Promise<void> {
  const pick = (there: boolean) =>
    indices.filter((i) => isThere(i) === there).map((i) => paths[i]!);
  await setAll(client, pick(true));
  await createAll(client, pick(false));
}

async function inBatches<T>(items: readonly T[], work: (batch: T[]) => Promise<void>) {
  for (let i = 0; i < items.length; i += 1_000) await work(items.slice(i, i + 1_000));
}

/** The events of a watch as they come. */
function takeAll(watch: AsyncIterable<PersistentEvent>): PersistentEvent[] {
  const events: PersistentEvent[] = [];
  void (async () => {
    for await (const event of watch) events.push(event);
  })(); // ends with the client
  return events;
}
