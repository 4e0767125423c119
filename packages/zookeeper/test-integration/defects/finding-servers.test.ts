// Rows of docs/evidence/zookeeper-features.md about hosts, names, time and numbers.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { lookup } from 'node:dns/promises';
import { networkInterfaces } from 'node:os';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { connect } from '../../src/index.ts';
import { TestClock } from '../../test/hostile-reading/clock.ts';
import type { Scope } from '../support/scope.ts';
import { scoped } from '../support/scope.ts';
import { nextState, refusal, soon, until } from '../support/waiting.ts';
import { ManualClock, reconnect, startFake, startRelay } from './support.ts';

vi.mock('node:dns/promises', { spy: true });
afterEach(() => void vi.mocked(lookup).mockReset());

const patient = { sessionTimeoutMs: 30_000, requestTimeoutMs: 60_000 };
const here = { address: '127.0.0.1', family: 4 };
// An address of this machine at which nothing listens.
const elsewhere = { address: '127.0.0.9', family: 4 };

function answer(addresses: readonly (typeof here)[] | Error): void {
  vi.mocked(lookup).mockImplementation((async () => {
    if (addresses instanceof Error) throw addresses;
    return addresses;
  }) as never);
}

/** The servers of all attempts from now on, as `host:port`. */
function recordAttempts(scope: Scope): string[] {
  const servers: string[] = [];
  const onAttempt = (message: unknown) => servers.push((message as { server: string }).server);
  subscribe('incumbent:zookeeper:attempt', onAttempt);
  scope.finally(() => void unsubscribe('incumbent:zookeeper:attempt', onAttempt));
  return servers;
}

describe('several hosts', () => {
  it(
    'every round asks each of them once, in an order of its own',
    scoped(async (scope) => {
      const fakes = await Promise.all([1, 2, 3, 4, 5].map(() => startFake(scope)));
      for (const fake of fakes) fake.faults.closeOnConnect(1_000);
      const hosts = fakes.map(({ port }) => `127.0.0.1:${port}`);
      const attempts = recordAttempts(scope);
      const client = scope.create(`zk://${hosts.join(',')}`, patient);
      await until('four rounds', () => attempts.length >= 20);
      await client.close();
      const rounds = Array.from({ length: 4 }, (_, i) => attempts.slice(5 * i, 5 * i + 5));
      for (const round of rounds) expect([...round].sort()).toEqual([...hosts].sort());
      expect(new Set(rounds.map((round) => round.join())).size).toBeGreaterThan(1);
    }),
  );

  it(
    'the server that was lost is asked last, and the first that answers is taken',
    scoped(async (scope) => {
      const fake = await startFake(scope);
      for (let i = 0; i < 3; i += 1) await fake.addServer();
      const client = await scope.connect(fake.connectionString, patient);
      for (let round = 0; round < 4; round += 1) {
        const lost = client.session?.server;
        await reconnect(fake, client);
        expect(client.session?.server).not.toBe(lost);
      }
      expect(client.counters.attempts).toBe(5);
    }),
  );
});

describe('names', () => {
  it(
    'are asked again for every round, and after every lost connection',
    scoped(async (scope) => {
      const fake = await startFake(scope);
      answer([elsewhere]);
      const attempts = recordAttempts(scope);
      const client = scope.create(`zk://zookeeper.test:${fake.port}`, patient);
      await until('two rounds', () => attempts.length >= 2);
      answer([here]);
      await client.connected();
      // One lookup for every round.
      expect(lookup).toHaveBeenCalledTimes(attempts.length);
      expect(client.session?.server).toBe(`127.0.0.1:${fake.port}`);
      const before = vi.mocked(lookup).mock.calls.length;
      answer([elsewhere, here]);
      await reconnect(fake, client);
      expect(vi.mocked(lookup).mock.calls.length).toBeGreaterThan(before);
    }),
  );

  it(
    'keep the addresses that they had while they cannot be resolved',
    scoped(async (scope) => {
      const fake = await startFake(scope);
      answer([here]);
      const client = await scope.connect(`zk://zookeeper.test:${fake.port}`, patient);
      const session = client.session?.id;
      answer(new Error('the resolver is down'));
      await reconnect(fake, client);
      expect(client.session?.id).toBe(session);
    }),
  );

  it(
    'that cannot be resolved are named by the error of connect()',
    scoped(async () => {
      answer(Object.assign(new Error('getaddrinfo ENOTFOUND no.test'), { code: 'ENOTFOUND' }));
      const clock = new TestClock();
      const error = await clock.runUntilSettled(refusal(connect('zk://no.test:2181', { clock })));
      expect(error).toMatchObject({ code: 'CONNECT_TIMEOUT', cause: { code: 'ENOTFOUND' } });
      expect((error as Error).message).toContain('no.test');
    }),
  );

  it('an IPv6 literal is an address like any other', async (context) => {
    const addresses = Object.values(networkInterfaces()).flat();
    if (!addresses.some((one) => one?.address === '::1')) {
      context.skip('this machine has no IPv6 loopback address');
    }
    await scoped(async (scope) => {
      const fake = await startFake(scope);
      const relay = scope.later(await startRelay(fake, { host: '::1' }));
      const client = await scope.connect(`zk://[::1]:${relay.port}/app`, patient);
      await client.ensurePath('/');
      expect(client.session?.server).toBe(`[::1]:${relay.port}`);
      expect(fake.tree().has('/app')).toBe(true);
      await reconnect(fake, client);
      expect(await client.exists('/')).toBe(true);
    })();
  });
});

describe('the session timeout', () => {
  it.each([
    ['more than the server grants', 60_000, 5_000],
    ['less than the server grants', 1, 1_000],
    ['what the server grants', 3_000, 3_000],
  ])('asked for %s: what was granted is what is shown', (_, asked, granted) =>
    scoped(async (scope) => {
      const fake = await startFake(scope, {
        minSessionTimeoutMs: 1_000,
        maxSessionTimeoutMs: 5_000,
      });
      const client = await scope.connect(fake.connectionString, { sessionTimeoutMs: asked });
      expect(client.session?.timeoutMs).toBe(granted);
      expect(client.exportSession()?.timeoutMs).toBe(granted);
    })(),
  );

  it(
    'a ping is sent when nothing was sent for a third of it, and none while requests are',
    scoped(async (scope) => {
      const fake = await startFake(scope);
      const clock = new ManualClock();
      const client = await scope.connect(fake.connectionString, { sessionTimeoutMs: 9_000, clock });
      for (let second = 0; second < 12; second += 1) {
        clock.advance(1_000);
        await client.get('/');
      }
      expect(client.counters.pings).toBe(0);
      clock.advance(2_990);
      expect(client.counters.pings).toBe(0);
      for (let pings = 1; pings <= 4; pings += 1) {
        clock.advance(pings === 1 ? 10 : 3_000);
        expect(client.counters.pings).toBe(pings);
        const { bytesReceived } = client.counters;
        await until('it is answered', () => client.counters.bytesReceived > bytesReceived);
      }
      expect(fake.requests.filter(({ opcode }) => opcode === 'ping')).toHaveLength(4);
      expect(client.state).toBe('connected');
    }),
  );
});

describe('64-bit values', () => {
  it(
    'are exact: zxids, session ids, owners and times',
    scoped(async (scope) => {
      const fake = await startFake(scope, { epoch: 0x7fff_fff0 });
      const client = await scope.connect(fake.connectionString, patient);
      const { id } = client.session!;
      expect(id).toBe(fake.sessions[0]!.id);
      expect(id).toBeGreaterThan(2n ** 53n);
      const { stat, zxid } = await client.create('/e', null, { ephemeral: true });
      expect(zxid).toBe(fake.lastZxid);
      expect(zxid).toBeGreaterThan(2n ** 62n);
      expect(BigInt(Number(zxid))).not.toBe(zxid);
      expect(stat).toMatchObject({ czxid: zxid, mzxid: zxid, pzxid: zxid, ephemeralOwner: id });
      expect(client.lastZxid).toBe(zxid);
      expect(client.exportSession()).toMatchObject({ id, lastZxid: zxid });
    }),
  );

  it(
    'find the way back: a zxid beyond 2^53 is told to the server to the last bit',
    scoped(async (scope) => {
      const fake = await startFake(scope, { epoch: 2 ** 22 });
      const second = await fake.addServer();
      const [first] = fake.servers;
      const client = await scope.connect(first!.connectionString, patient);
      const other = await scope.connect(second.connectionString, patient);
      await client.create('/n');
      // Near 2^54 only each fourth number is a double, and this one would be rounded up.
      while (client.lastZxid % 4n !== 3n) await client.set('/n', 'before');
      const session = client.session?.id;
      const { changed } = await client.watch('/n');
      let told = false;
      void changed.then(() => {
        told = true;
      });
      // Rounded up, it would be ahead of the servers: they would refuse us, and it would hide the
      // next change. Rounded down, the client would be told of changes that it has seen.
      const [suspended, connected] = [
        nextState(client, 'suspended'),
        nextState(client, 'connected'),
      ];
      first!.dropConnections();
      await suspended;
      await connected;
      await client.sync();
      expect(told).toBe(false);
      const away = nextState(client, 'suspended');
      await first!.refuse();
      first!.dropConnections();
      await away;
      await other.set('/n', 'x');
      await first!.listen();
      expect(await soon(changed, 'the change')).toMatchObject({ type: 'changed' });
      expect(client.session?.id).toBe(session);
      expect(client.counters.expirations).toBe(0);
    }),
  );
});
