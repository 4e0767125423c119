import { startServer } from '@incumbent/zookeeper-testing';
import { describe, expect, it, vi } from 'vitest';
import type { ZooKeeper } from '../../src/index.ts';
import { ConnectError, connect, RequestTimeoutError } from '../../src/index.ts';
import { TestClock } from '../../test/hostile-reading/clock.ts';
import { TestChild } from '../support/child-process.ts';
import { needServers, scoped, sharedServer } from '../support/scope.ts';
import { startSilentHost } from '../support/silent-host.ts';
import { nextState, recordStates, refusal, settling, soon, until } from '../support/waiting.ts';

/**
 * Longer than every limit that is tested. A call that settles earlier does so for another reason.
 */
const patient = { requestTimeoutMs: 600_000 };
/**
 * By the clock of the client, which the test moves. The server has its own clock, and ends nothing.
 */
const timeoutMs = 30_000;

/**
 * Advances the time until the client is connected to a server that answers again. Each answer may
 * take a while.
 */
async function comesBack(client: ZooKeeper, clock: TestClock): Promise<void> {
  await clock.runUntil('it is connected again', () => client.state === 'connected', 20, 5);
}

describe.concurrent('when the other side says nothing', () => {
  needServers();
  const server = sharedServer();

  // Several moments between two pings, and one behind a ping. The promise must hold in each of
  // them.
  it.each([0, 0.001, 0.09, 0.17, 0.26, 0.35])(
    'a black hole %d T after a reply: suspended within 2/3 T, expired within T, then usable again',
    (wait) =>
      scoped(async (scope) => {
        const clock = new TestClock();
        const proxy = await scope.proxy(server());
        const client = await scope.connect(proxy.connectionString, {
          ...{ clock, sessionTimeoutMs: timeoutMs },
          ...patient,
        });
        const session = client.session?.id;
        const states = recordStates(client);
        const last = await client.get('/');
        const { pings, bytesReceived } = client.counters;
        await clock.advance(wait * timeoutMs, 250);
        if (client.counters.pings > pings) {
          await until('the ping is answered', () => client.counters.bytesReceived > bytesReceived);
        }
        proxy.silence();
        const silentAtMs = clock.monotonicMs();
        const pending = settling(client.get('/'));

        await clock.advance((timeoutMs * 2) / 3, 250);
        expect(client.state).toBe('suspended');
        expect(states).toEqual(['suspended']);
        expect((await pending).error?.code).toBe('CONNECTION_LOSS');
        const queued = settling(client.get('/'));

        // Without a ping that reply was the last thing that the server acknowledged.
        const acknowledgedMs = client.counters.pings > pings ? silentAtMs : last.sentAt.monotonicMs;
        await clock.advance(acknowledgedMs + timeoutMs - clock.monotonicMs(), 250);
        expect(states).toEqual(['suspended', 'expired']);
        expect((await queued).error?.code).toBe('SESSION_EXPIRED');

        await proxy.pass();
        await comesBack(client, clock);
        expect(states).toEqual(['suspended', 'expired', 'connected']);
        expect(client.session?.id).not.toBe(session);
        expect((await client.get('/')).zxid).toBeGreaterThan(0n);
      })(),
  );

  it(
    'an ephemeral node is never seen gone by others while its owner believes in its session',
    scoped(async (scope) => {
      const observer = await scope.connect(server().connectionString, { sessionTimeoutMs: 30_000 });
      const proxy = await scope.proxy(server());
      // By the real clocks of both sides. The timeout is long enough that a busy machine expires
      // nothing before.
      const client = await scope.connect(proxy.connectionString, { sessionTimeoutMs: 3_000 });
      for (let round = 0; round < 2; round += 1) {
        const { path } = await client.create('/own-', null, { ephemeral: true, sequential: true });
        const own = await observer.watch(path);
        // Judged when it is read, so it is right even if a busy machine has kept the timer from
        // running.
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
      const clock = new TestClock();
      const silent = await Promise.all([1, 2, 3, 4].map(() => startSilentHost()));
      for (const host of silent) scope.later(host);
      const hosts = [...silent.map(({ address }) => address), `127.0.0.1:${server().port}`];
      // The order of the hosts is drawn in the constructor. With this number they keep their order.
      const random = vi.spyOn(Math, 'random').mockReturnValue(0.999);
      const startMs = clock.monotonicMs();
      const options = { clock, sessionTimeoutMs: timeoutMs };
      const client = scope.create(`zk://${hosts.join(',')}`, options);
      random.mockRestore();
      const connected = nextState(client, 'connected');
      await clock.runUntil('the last one is tried', () => client.counters.attempts === 5, 100);
      // The time for its answer depends on this machine.
      const { atMs } = await connected;
      expect(silent.map(({ accepted }) => accepted)).toEqual([1, 1, 1, 1]);
      expect(atMs - startMs).toBeLessThanOrEqual(timeoutMs);
    }),
  );

  it.each(['zk', 'zks'])(
    'only a silent host (%s://): connect and calls fail at their bounds, and it goes on trying',
    (scheme) =>
      scoped(async (scope) => {
        const clock = new TestClock();
        const host = scope.later(await startSilentHost());
        const url = `${scheme}://${host.address}`;
        const client = scope.create(url, { clock, sessionTimeoutMs: 1_000 });
        const ended: string[] = [];
        const calls = Object.entries({
          get: client.get('/'),
          quick: client.get('/', { timeoutMs: 300 }),
          create: client.create('/a', 'x'),
          connected: client.connected({ timeoutMs: 500 }),
        }).map(([name, call]) =>
          refusal(call).then((error) => {
            ended.push(name);
            return error;
          }),
        );
        await clock.advance(280);
        expect(ended).toEqual([]);
        await clock.advance(20);
        expect(ended).toEqual(['quick']);
        await clock.advance(200);
        expect(ended).toEqual(['quick', 'connected']);
        await clock.advance(500);
        expect(ended).toEqual(['quick', 'connected', 'get', 'create']);
        const [get, quick, create, connected] = await Promise.all(calls);
        for (const error of [get, quick, create]) expect(error).toBeInstanceOf(RequestTimeoutError);
        expect(create).toMatchObject({ maybeApplied: false });
        expect(connected).toBeInstanceOf(ConnectError);
        expect(connected?.message).toContain(host.address);
        await clock.runUntil('the third attempt', () => host.accepted >= 3);
      })(),
  );

  it(
    'close() ends within a second while nothing answers, whatever the client was doing',
    scoped(async (scope) => {
      const clock = new TestClock();
      const host = scope.later(await startSilentHost());
      const options = { clock, sessionTimeoutMs: timeoutMs, ...patient };
      const never = scope.create(`zk://${host.address}`, options);
      const [mute, broken] = [await scope.proxy(server()), await scope.proxy(server())];
      const connected = await scope.connect(mute.connectionString, options);
      mute.silence();
      const suspended = await scope.connect(broken.connectionString, options);
      const lost = nextState(suspended, 'suspended');
      broken.cut();
      await lost;
      // It comes back into the silence: its connection is open, and not answered.
      const { connections } = broken.counters;
      broken.silence();
      await clock.runUntil('it comes back', () => broken.counters.connections > connections);
      expect([never, connected, suspended].map(({ state }) => state)).toEqual([
        'connecting',
        'connected',
        'suspended',
      ]);
      for (const client of [never, connected, suspended]) {
        const call = settling(client.get('/'));
        let isClosed = false;
        void client.close().then(() => {
          isClosed = true;
        });
        await clock.advance(1_000);
        expect(isClosed).toBe(true);
        expect((await call).error?.code).toMatch(/^(CLOSED|CONNECTION_LOSS)$/);
        expect(client.state).toBe('closed');
      }
    }),
  );

  it(
    'a process that has closed its client while nothing answers is kept by nothing, and ends',
    scoped(async (scope) => {
      const host = scope.later(await startSilentHost());
      const child = scope.later(new TestChild('closing-child.mjs', [`zk://${host.address}`]));
      expect(await soon(child.ended, 'the process ends by itself')).toBe(0);
      await until('it has said how it ended', () => child.said.length === 2);
      expect(child.said).toEqual([{ call: 'CLOSED' }, { timers: 0 }]);
    }),
  );

  it(
    'a frozen server: suspended within 2/3 T, expired within T, a new session after the thaw',
    scoped(async (scope) => {
      const clock = new TestClock();
      const frozen = scope.later(await startServer());
      const options = { clock, sessionTimeoutMs: timeoutMs, ...patient };
      const client = await scope.connect(frozen.connectionString, options);
      const { stat } = await client.create('/held', null, { ephemeral: true });
      const exported = client.exportSession()!;
      const states = recordStates(client);
      const { sentAt } = await client.get('/held');
      expect(sentAt.monotonicMs).toBe(clock.monotonicMs());
      await frozen.freeze();
      const write = settling(client.set('/held', 'while frozen'));
      await clock.advance((timeoutMs * 2) / 3, 250);
      expect(states).toEqual(['suspended']);
      expect((await write).error).toMatchObject({ code: 'CONNECTION_LOSS', maybeApplied: true });
      await clock.advance(timeoutMs / 3, 250);
      expect(states).toEqual(['suspended', 'expired']);
      frozen.thaw();
      await comesBack(client, clock);
      expect(states).toEqual(['suspended', 'expired', 'connected']);
      expect(client.session?.id).not.toBe(stat?.ephemeralOwner);
      // The server has known of the old one all the time. The client has given it up first.
      expect((await client.stat('/held')).stat?.ephemeralOwner).toBe(stat?.ephemeralOwner);
      const heir = await scope.connect(frozen.connectionString, { session: exported });
      await heir.close();
      await until('the old session ends', async () => !(await client.exists('/held')));
    }),
  );

  it(
    'a frozen client: after the thaw it says expired before it believes anything of the old session',
    scoped(async (scope) => {
      const own = scope.later(await startServer());
      const observer = await scope.connect(own.connectionString, { sessionTimeoutMs: 30_000 });
      await observer.create('/frozen');
      await observer.create('/frozen/watched');
      const child = scope.later(
        new TestChild('frozen-child.mjs', [own.connectionString, '/frozen']),
      );
      await child.says('ready');
      const held = await observer.watch('/frozen/held');
      // Its get is answered only when it is frozen, so the answer waits in its socket.
      await own.freeze();
      child.tell('get');
      await child.says('sent');
      await child.freeze();
      own.thaw();
      // So does the event of its node.
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
      const clock = new TestClock();
      const host = scope.later(await startSilentHost());
      const options = { clock, sessionTimeoutMs: 600, connectTimeoutMs: 700 };
      const connecting = refusal(connect(`zk://${host.address}`, options));
      const startMs = clock.monotonicMs();
      const error = await clock.runUntilSettled(connecting);
      expect(clock.monotonicMs() - startMs).toBe(700);
      expect(error).toBeInstanceOf(ConnectError);
      expect(error.message).toContain(host.address);
      expect(error.message).toContain('said nothing');
    }),
  );
});
