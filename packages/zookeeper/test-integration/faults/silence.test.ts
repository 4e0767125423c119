import { describe, expect, it, vi } from 'vitest';
import { ConnectError, createClient, RequestTimeoutError } from '../../src/index.ts';
import { startServer } from '../../src/testing/index.ts';
import { TestChild } from '../support/child-process.ts';
import { needServers, scoped, sharedServer } from '../support/scope.ts';
import { startSilentHost } from '../support/silent-host.ts';
import { Stalls } from '../support/stalls.ts';
import {
  lasting,
  monotonicMs,
  nextState,
  recordStates,
  refusal,
  settling,
  soon,
  until,
} from '../support/waiting.ts';

/** Beyond every bound that is looked at: what settles earlier does so for another reason. */
const patient = { requestTimeoutMs: 60_000 };

describe.concurrent('when the other side says nothing', () => {
  needServers();
  const server = sharedServer();

  // At several moments between two pings; every promise must hold in each of them.
  it.each([0, 1, 130, 260, 390, 520])(
    'a black hole %i ms after a reply: suspended within 2/3 T, expired within T, then usable again',
    (waitMs) =>
      scoped(async (scope) => {
        const timeoutMs = 1_500;
        const stalls = scope.later(new Stalls());
        const { connectionString } = server();
        const observer = await scope.connect(connectionString, { sessionTimeout: 30_000 });
        const proxy = await scope.proxy(server());
        const client = await scope.connect(proxy.connectionString, {
          sessionTimeout: timeoutMs,
          ...patient,
        });
        const { path } = await client.create('/held-', null, { ephemeral: true, sequential: true });
        const held = await observer.watch(path);
        const states = recordStates(client);
        const [suspended, expired] = [nextState(client, 'suspended'), nextState(client, 'expired')];

        const last = await client.get(path);
        if (waitMs > 0) await lasting(waitMs);
        proxy.silence();
        const silentAtMs = monotonicMs();
        const pending = settling(client.get(path));

        const lost = await suspended;
        expect(await stalls.ranMs(silentAtMs, lost.atMs)).toBeLessThanOrEqual((timeoutMs * 2) / 3);
        const { error, atMs } = await pending;
        expect(error?.code).toBe('CONNECTION_LOSS');
        expect(await stalls.ranMs(silentAtMs, atMs)).toBeLessThanOrEqual((timeoutMs * 2) / 3);
        const queued = settling(client.get(path));

        // Without a wait that reply was the last thing that the server acknowledged.
        const acknowledgedMs = waitMs === 0 ? last.sentAt.monotonicMs : silentAtMs;
        const gone = await expired;
        expect(await stalls.ranMs(acknowledgedMs, gone.atMs)).toBeLessThanOrEqual(timeoutMs);
        expect((await queued).error?.code).toBe('SESSION_EXPIRED');

        // No earlier may others see it: by then another could hold what we held.
        expect((await soon(held.changed, 'the ephemeral node goes')).type).toBe('deleted');
        expect(client.state).toBe('expired');

        await proxy.pass();
        await client.connected({ timeoutMs: 30_000 });
        expect(states).toEqual(['suspended', 'expired', 'connected']);
        expect((await client.get('/')).zxid).toBeGreaterThan(0n);
      })(),
  );

  it(
    'an ephemeral node is never seen gone by others while its owner believes in its session',
    scoped(async (scope) => {
      const observer = await scope.connect(server().connectionString, { sessionTimeout: 30_000 });
      const proxy = await scope.proxy(server());
      const client = await scope.connect(proxy.connectionString, { sessionTimeout: 800 });
      for (let round = 0; round < 3; round += 1) {
        const { path } = await client.create('/own-', null, { ephemeral: true, sequential: true });
        const own = await observer.watch(path);
        // Judged when it is read: also if a busy machine has kept the timer from running.
        const atThatTime = own.changed.then(() => client.state);
        proxy.silence();
        expect(await soon(atThatTime, 'the node goes')).toBe('expired');
        await proxy.pass();
        await client.connected({ timeoutMs: 30_000 });
      }
    }),
  );

  it(
    'four of five hosts accept and say nothing: connected within one timeout',
    scoped(async (scope) => {
      // Long enough that the fifth of it that is left for the last host does for a busy machine.
      const timeoutMs = 10_000;
      const stalls = scope.later(new Stalls());
      const silent = await Promise.all([1, 2, 3, 4].map(() => startSilentHost()));
      for (const host of silent) scope.later(host);
      const hosts = [...silent.map(({ address }) => address), `127.0.0.1:${server().port}`];
      // The order of the hosts is drawn in the constructor; so drawn, they stay as they are.
      const random = vi.spyOn(Math, 'random').mockReturnValue(0.999);
      const startMs = monotonicMs();
      const client = createClient(`zk://${hosts.join(',')}`, { sessionTimeout: timeoutMs });
      random.mockRestore();
      scope.later(client);
      const { atMs } = await nextState(client, 'connected');
      expect(silent.map(({ accepted }) => accepted)).toEqual([1, 1, 1, 1]);
      expect(await stalls.ranMs(startMs, atMs)).toBeLessThanOrEqual(timeoutMs);
    }),
  );

  it.each(['zk', 'zks'])(
    'only a silent host (%s://): connect and calls fail within their bounds, and it goes on trying',
    (scheme) =>
      scoped(async (scope) => {
        const stalls = scope.later(new Stalls());
        const host = scope.later(await startSilentHost());
        const startMs = monotonicMs();
        const client = scope.create(`${scheme}://${host.address}`, { sessionTimeout: 1_000 });
        const get = settling(client.get('/'));
        const quick = settling(client.get('/', { timeoutMs: 300 }));
        const create = settling(client.create('/a', 'x'));
        const connected = settling(client.connected({ timeoutMs: 500 }));
        for (const [call, boundMs] of [
          [get, 1_000],
          [quick, 300],
          [create, 1_000],
          [connected, 500],
        ] as const) {
          const { error, atMs } = await call;
          expect(error).toBeInstanceOf(call === connected ? ConnectError : RequestTimeoutError);
          // 100 ms for timers, which are not exact: what is wanted is an end.
          expect(await stalls.ranMs(startMs, atMs)).toBeLessThanOrEqual(boundMs + 100);
        }
        expect((await create).error).toMatchObject({ maybeApplied: false });
        expect((await connected).error?.message).toContain(host.address);
        await until('the third attempt', () => host.accepted >= 3);
      })(),
  );

  it(
    'close() ends within a second while nothing answers, whatever the client was doing',
    scoped(async (scope) => {
      const stalls = scope.later(new Stalls());
      const host = scope.later(await startSilentHost());
      const options = { sessionTimeout: 6_000, ...patient };
      const never = scope.create(`zk://${host.address}`, options);
      const [mute, broken] = [await scope.proxy(server()), await scope.proxy(server())];
      const connected = await scope.connect(mute.connectionString, options);
      mute.silence();
      const suspended = await scope.connect(broken.connectionString, options);
      const lost = nextState(suspended, 'suspended');
      broken.cut();
      await lost;
      // It comes back into the silence: its connection is open and not answered.
      const { connections } = broken.counters;
      broken.silence();
      await until('it comes back', () => broken.counters.connections > connections);
      expect([never, connected, suspended].map(({ state }) => state)).toEqual([
        'connecting',
        'connected',
        'suspended',
      ]);
      for (const client of [never, connected, suspended]) {
        const call = settling(client.get('/'));
        const startMs = monotonicMs();
        await soon(client.close(), 'close');
        expect(await stalls.ranMs(startMs, monotonicMs())).toBeLessThanOrEqual(1_000);
        expect((await call).error?.code).toMatch(/^(CLOSED|CONNECTION_LOSS)$/);
        expect(client.state).toBe('closed');
      }
    }),
  );

  it(
    'a process that closes its client while nothing answers ends within a second',
    scoped(async (scope) => {
      const host = scope.later(await startSilentHost());
      const child = scope.later(new TestChild('closing-child.mjs', [`zk://${host.address}`]));
      expect(await soon(child.ended, 'the process ends by itself')).toBe(0);
      await until('it has said how it ended', () => child.said.length === 2);
      const [{ call }, { endedAfterMs }] = child.said as [
        { call: string },
        { endedAfterMs: number },
      ];
      expect(call).toBe('CLOSED');
      // By its own clock. What a busy machine takes of this second is not known here: nothing is to
      // be waited for, so all of it is reserve.
      expect(endedAfterMs).toBeLessThanOrEqual(1_000);
    }),
  );

  it(
    'a frozen server: suspended within 2/3 T, expired within T, a new session after the thaw',
    scoped(async (scope) => {
      const timeoutMs = 1_000;
      const stalls = scope.later(new Stalls());
      const frozen = scope.later(await startServer());
      const client = await scope.connect(frozen.connectionString, {
        sessionTimeout: timeoutMs,
        ...patient,
      });
      const { stat } = await client.create('/held', null, { ephemeral: true });
      const states = recordStates(client);
      const [suspended, expired] = [nextState(client, 'suspended'), nextState(client, 'expired')];
      const { sentAt } = await client.get('/held');
      await frozen.freeze();
      const write = settling(client.set('/held', 'while frozen'));
      expect(await stalls.ranMs(sentAt.monotonicMs, (await suspended).atMs)).toBeLessThanOrEqual(
        // The last reply came in later than it was asked for; 20 ms are ample for that.
        (timeoutMs * 2) / 3 + 20,
      );
      expect((await write).error).toMatchObject({ code: 'CONNECTION_LOSS', maybeApplied: true });
      expect(await stalls.ranMs(sentAt.monotonicMs, (await expired).atMs)).toBeLessThanOrEqual(
        timeoutMs,
      );
      frozen.thaw();
      await client.connected({ timeoutMs: 30_000 });
      expect(states).toEqual(['suspended', 'expired', 'connected']);
      expect(client.session?.id).not.toBe(stat?.ephemeralOwner);
      await until('the old session ends', async () => !(await client.exists('/held')));
    }),
  );

  it(
    'a frozen client: after the thaw it says expired before it believes anything of the old session',
    scoped(async (scope) => {
      const own = scope.later(await startServer());
      const observer = await scope.connect(own.connectionString, { sessionTimeout: 30_000 });
      await observer.create('/frozen');
      await observer.create('/frozen/watched');
      const child = scope.later(
        new TestChild('frozen-child.mjs', [own.connectionString, '/frozen']),
      );
      await child.says('ready');
      const held = await observer.watch('/frozen/held');
      // Its get is answered only when it stands still: the answer waits in its socket.
      await own.freeze();
      child.tell('get');
      await child.says('sent');
      await child.freeze();
      own.thaw();
      // So does the word that its node has changed.
      await observer.set('/frozen/watched', 'changed');
      expect((await soon(held.changed, 'its session ends')).type).toBe('deleted');
      const before = child.said.length;
      child.thaw();
      await child.says('get');
      await child.says('watch');
      await until('it is connected again', () => {
        return child.said.some(({ state }) => state === 'connected');
      });
      const after = child.said.slice(before);
      // First the state, whatever waits in the socket.
      const beforeExpired = after.slice(
        0,
        after.findIndex(({ state }) => state === 'expired'),
      );
      expect(beforeExpired.filter(({ state }) => state !== 'suspended')).toEqual([]);
      expect(after.filter((line) => 'get' in line)).toMatchObject([
        { get: expect.stringMatching(/^(SESSION_EXPIRED|CONNECTION_LOSS)$/) as string },
      ]);
      expect(after.filter((line) => 'watch' in line)).toEqual([{ watch: 'lost' }]);
      expect(after.at(-1)).toEqual({ state: 'connected' });
    }),
  );

  it(
    'connect() fails within its bound and says why',
    scoped(async (scope) => {
      const host = scope.later(await startSilentHost());
      const error = await refusal(
        scope.connect(`zk://${host.address}`, { sessionTimeout: 600, connectTimeoutMs: 700 }),
      );
      expect(error).toBeInstanceOf(ConnectError);
      expect(error.message).toContain(host.address);
      expect(error.message).toContain('said nothing');
    }),
  );
});
