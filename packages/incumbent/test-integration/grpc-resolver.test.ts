/** Real channels of both versions of grpc-js, real servers on loopback. */
import { describe, expect, test } from 'vitest';
import { memory } from '../src/backends/memory/index.ts';
import { createElection } from '../src/index.ts';
import { SimulatedClock, SimulatedLeaseStore } from '../src/testing/index.ts';
import { candidate, FakeElection, ledBy, unknown, vacant } from '../test/support/fake-election.ts';
import type { LedgerServer } from './support/grpc-ledger.ts';
import { read, versions } from './support/grpc-ledger.ts';
import { eventually, GrpcStage } from './support/grpc-stage.ts';

const nobody = (name: string) => `nobody leads election "${name}" at the moment`;

/** A leader and its address, in one word. */
const at = (id: string, server: LedgerServer, metadata = {}) =>
  candidate(id, { addresses: [server.address], metadata });

const retrying = {
  methodConfig: [
    {
      name: [{ service: 'test.Ledger' }],
      retryPolicy: {
        maxAttempts: 3,
        initialBackoff: '0.01s',
        maxBackoff: '0.1s',
        backoffMultiplier: 1,
        retryableStatusCodes: ['UNAVAILABLE'],
      },
    },
  ],
};

describe.concurrent.each(versions)('a channel of grpc-js %s', (_version, grpc) => {
  const { DEADLINE_EXCEEDED, OK, UNAVAILABLE } = grpc.status;

  test('follows from nobody to the first leader, and to the next (V17)', async (context) => {
    const stage = new GrpcStage(context, grpc);
    const name = 'switch';
    const backend = memory();
    const [a, b] = [await stage.server('a'), await stage.server('b')];
    const standFor = (id: string, { address }: LedgerServer) =>
      stage.election({ name, backend, candidate: { id, addresses: [address] } });
    stage.resolve(stage.election({ name, backend }));
    const client = stage.client(`leaderelection:///${name}`);
    const first = await read(grpc, client);
    expect(first.status).toMatchObject({ code: UNAVAILABLE, details: nobody(name) });
    const waiting = read(grpc, client, { waitForReady: true });
    const termA = await standFor('a', a).campaign();
    expect((await waiting).value).toBe('a');
    expect((await read(grpc, client)).value).toBe('a');
    const next = standFor('b', b).campaign();
    await termA[Symbol.asyncDispose]();
    const termB = await next;
    await eventually(async () => expect((await read(grpc, client)).value).toBe('b'));
    // a is still there, and would answer.
    const { count } = a.served;
    for (let i = 0; i < 10; i += 1) expect((await read(grpc, client)).value).toBe('b');
    await termB[Symbol.asyncDispose]();
    await eventually(async () => {
      expect((await read(grpc, client)).status.details).toBe(nobody(name));
    });
    expect(a.served.count).toBe(count);
  });

  test('lets go of a leader that is reachable, once it is known not to lead', async (context) => {
    const stage = new GrpcStage(context, grpc);
    const fake = new FakeElection('let-go');
    // Takes calls, and answers none: frozen.
    const frozen = await stage.server('a', () => {});
    const b = await stage.server('b');
    const gone = await stage.server('gone');
    await gone.close();
    stage.resolve(fake.election);
    const client = stage.client(`incumbent:///${fake.name}`);
    fake.show(ledBy(at('a', frozen), 1n));
    const lost = read(grpc, client, { deadlineMs: 3_600_000 });
    await eventually(() => expect(frozen.served.count).toBe(1));
    fake.show(vacant(1n));
    await eventually(async () => {
      const { status } = await read(grpc, client, { deadlineMs: 500 });
      expect(status.details).toBe(nobody(fake.name));
    });
    fake.show(ledBy(at('a', frozen), 2n));
    const { count } = frozen.served;
    const lostToo = read(grpc, client, { waitForReady: true, deadlineMs: 3_600_000 });
    await eventually(() => expect(frozen.served.count).toBe(count + 1));
    // From one to the next at once, of whom the first address cannot be reached.
    const two = candidate('b', { addresses: [gone.address, b.address] });
    fake.show(ledBy(two, 3n));
    await eventually(async () => {
      expect((await read(grpc, client, { deadlineMs: 500 })).value).toBe('b');
    });
    const served = frozen.served.count;
    for (let i = 0; i < 10; i += 1) expect((await read(grpc, client)).value).toBe('b');
    expect(frozen.served.count).toBe(served);
    // Calls under way stay where they are: their outcome cannot be known.
    await frozen.close();
    expect([(await lost).status.code, (await lostToo).status.code]).not.toContain(OK);
  });

  test('has its service config from what the leader published (VB11)', async (context) => {
    const stage = new GrpcStage(context, grpc);
    const name = 'config';
    const backend = memory();
    const failures = { left: 0 };
    const own = { methodConfig: [{ name: [{}], timeout: '0.01s' }] };
    const a = await stage.server('a', (_call, reply) => {
      setTimeout(() => {
        failures.left -= 1;
        if (failures.left >= 0) reply({ code: UNAVAILABLE, details: 'try again' });
        else reply(null, 'a');
      }, 30);
    });
    const metadata = { connectionParameters: JSON.stringify(retrying) };
    const leader = stage.election({
      name,
      backend,
      candidate: { id: 'a', addresses: [a.address], metadata },
    });
    stage.resolve(stage.election({ name, backend }));
    const client = stage.client(`incumbent:///${name}`, {
      'grpc.service_config': JSON.stringify(own),
    });
    const deaf = stage.client(`incumbent:///${name}`, {
      'grpc.service_config_disable_resolution': 1,
    });
    const term = await leader.campaign();
    // Until the leader is seen, the channel's own config counts, and that leaves no time.
    await eventually(async () => expect((await read(grpc, client)).value).toBe('a'));
    failures.left = 2;
    expect((await read(grpc, client)).value).toBe('a');
    failures.left = 1;
    expect((await read(grpc, deaf, { waitForReady: true })).status.details).toBe('try again');
    // Parameters that are not published any more do not count any more.
    failures.left = 0;
    await term.proclaim({ metadata: {} });
    await eventually(async () => {
      expect((await read(grpc, client)).status.code).toBe(DEADLINE_EXCEEDED);
    });
    await term[Symbol.asyncDispose]();
  });

  test.for([
    ['no JSON', { connectionParameters: '{' }],
    ['no service config', { connectionParameters: '{"methodConfig":[{}]}' }],
    ['no text', { 'connectionParameters;base64': 'gICA' }],
  ] as const)(
    'goes on without connection parameters that are %s',
    async ([what, metadata], context) => {
      const stage = new GrpcStage(context, grpc);
      const fake = new FakeElection(`broken: ${what}`);
      const told: string[] = [];
      const onTrouble = (about: string, error: unknown) => {
        told.push(`${about}: ${(error as Error).message}`);
        throw new Error('a listener that throws');
      };
      stage.resolve(fake.election, { onTrouble });
      const a = await stage.server('a');
      const target = `incumbent:///${encodeURIComponent(fake.name)}`;
      const clients = [stage.client(target), stage.client(target), stage.client(target)];
      fake.show(ledBy(at('a', a, metadata), 1n));
      for (const client of clients) {
        expect((await read(grpc, client, { waitForReady: true })).value).toBe('a');
      }
      expect(told).toEqual([
        expect.stringMatching(
          /^reading the connection parameters of leader "a" as a service config: ./,
        ),
      ]);
    },
  );

  test('goes to the addresses that addressesOf chooses, and reports others', async (context) => {
    const stage = new GrpcStage(context, grpc);
    const fake = new FakeElection('addresses');
    const told: string[] = [];
    const a = await stage.server('a');
    let choose = (addresses: readonly string[]): readonly string[] => addresses;
    stage.resolve(fake.election, {
      addressesOf: (leader) => choose(leader.addresses),
      onTrouble: (what, error) => told.push(`${what}: ${(error as Error).message}`),
    });
    const client = stage.client(`incumbent:///${fake.name}`);
    const show = (token: bigint, addresses: readonly string[]) =>
      fake.show(ledBy(candidate('a', { addresses }), token));
    show(1n, ['http://127.0.0.1:1', a.address]);
    expect((await read(grpc, client, { waitForReady: true })).value).toBe('a');
    expect(told).toEqual([
      expect.stringMatching(/"a": "http:\/\/127\.0\.0\.1:1": gRPC takes "host:/),
    ]);
    show(2n, []);
    await eventually(async () => {
      expect((await read(grpc, client)).status).toMatchObject({
        code: UNAVAILABLE,
        details: '"a", term 2 leads election "addresses" and has published no address for gRPC',
      });
    });
    choose = () => {
      throw new Error('none is good enough');
    };
    show(3n, [a.address]);
    await eventually(async () => {
      expect((await read(grpc, client)).status.details).toMatch(/term 3 leads .* no address/);
    });
    expect(told.at(-1)).toMatch(/^choosing among .* "a": none is good enough/);
    choose = ([url = '']) => [new URL(url).host];
    show(4n, [`grpc://${a.address}`]);
    expect((await read(grpc, client, { waitForReady: true })).value).toBe('a');
  });

  test('stays with the last leader while the store cannot be read', async (context) => {
    const stage = new GrpcStage(context, grpc);
    const name = 'outage';
    const clock = new SimulatedClock();
    const store = new SimulatedLeaseStore({ clock });
    const [leaders, ours] = [store.connect(), store.connect()];
    const a = await stage.server('a');
    const leader = createElection({
      name,
      backend: leaders.backend,
      clock,
      candidate: { id: 'a', addresses: [a.address] },
    });
    const watcher = createElection({ name, backend: ours.backend, clock });
    const strict = createElection({ name, backend: ours.backend, clock });
    stage.resolve({ keep: watcher });
    stage.resolve({ strict }, { whileUnknown: 'refuse' });
    const client = stage.client('incumbent:///keep');
    const careful = stage.client('incumbent:///strict');
    // Nothing was ever seen, so the leader is not known.
    ours.outage = 'refuses';
    for (const each of [client, careful]) {
      const { status } = await read(grpc, each);
      expect(status.code).toBe(UNAVAILABLE);
      expect(status.details).toMatch(/^nobody knows who leads election "outage": the store cannot/);
    }
    const waiting = read(grpc, client, { waitForReady: true });
    ours.outage = 'none';
    const term = await leader.campaign();
    await clock.advance('1m');
    expect((await waiting).value).toBe('a');
    expect((await read(grpc, careful, { waitForReady: true })).value).toBe('a');
    // Away for us, and not for the leader, for many leases.
    ours.outage = 'refuses';
    await clock.advance('10m');
    expect(term.isLeading()).toBe(true);
    await eventually(async () => {
      expect((await read(grpc, careful)).status.details).toMatch(
        /cannot be read .*leader seen is "a"/,
      );
    });
    expect((await read(grpc, client)).value).toBe('a');
    // Meanwhile another candidate leads. We learn it when the store is back.
    const b = await stage.server('b');
    await term.proclaim({ addresses: [b.address] }).catch(() => {});
    await clock.advance('1m');
    expect((await read(grpc, client)).value).toBe('a');
    ours.outage = 'none';
    await clock.advance('1m');
    await eventually(async () => expect((await read(grpc, client)).value).toBe('b'));
    expect((await read(grpc, careful, { waitForReady: true })).value).toBe('b');
    const ending = term[Symbol.asyncDispose]();
    await clock.advance('1m');
    await ending;
    const closed = Promise.all([leader.close(), watcher.close(), strict.close()]);
    await clock.advance('1m');
    await closed;
  });

  test('a term is over by the clock of the election, not by that of the machine (VB15)', async (context) => {
    const stage = new GrpcStage(context, grpc);
    const name = 'clocks';
    const backend = memory();
    // The leader's clock stands still, so it renews nothing: as if it were dead.
    const [dead, clock] = [new SimulatedClock(), new SimulatedClock()];
    const a = await stage.server('a');
    const leader = createElection({
      name,
      backend,
      clock: dead,
      candidate: { id: 'a', addresses: [a.address] },
    });
    const watcher = createElection({ name, backend, clock });
    stage.resolve(watcher);
    const client = stage.client(`incumbent:///${name}`);
    await leader.campaign();
    expect((await read(grpc, client, { waitForReady: true })).value).toBe('a');
    await clock.advance(watcher.timing.leaseMs - 1000);
    expect((await read(grpc, client)).value).toBe('a');
    await clock.advance(5000);
    await eventually(async () => {
      expect((await read(grpc, client)).status.details).toBe(nobody(name));
    });
    await watcher.close();
    expect((await read(grpc, client)).status.details).toBe(
      `the handle on election "${name}" was closed`,
    );
  });

  test('looks at the store when the leader cannot be reached (V17, ResolveNow)', async (context) => {
    const stage = new GrpcStage(context, grpc);
    const fake = new FakeElection('look');
    const [a, b] = [await stage.server('a'), await stage.server('b')];
    stage.resolve(fake.election);
    const client = stage.client(`incumbent:///${fake.name}`);
    fake.show(ledBy(at('a', a), 1n));
    expect((await read(grpc, client, { waitForReady: true })).value).toBe('a');
    expect(fake.looks).toBe(0);
    // The observation would not tell for a long time: an object store is asked rarely.
    fake.look = async () => ledBy(at('b', b), 2n);
    await a.close();
    expect((await read(grpc, client, { waitForReady: true })).value).toBe('b');
    expect(fake.looks).toBeGreaterThanOrEqual(1);
  });

  test('looks at the store when the leader refuses', async (context) => {
    const stage = new GrpcStage(context, grpc);
    const fake = new FakeElection('refused');
    const a = await stage.server('a', (_call, reply) =>
      reply({ code: UNAVAILABLE, details: 'not me' }),
    );
    const b = await stage.server('b');
    stage.resolve(fake.election);
    const client = stage.client(`incumbent:///${fake.name}`);
    fake.look = async () => ledBy(at('b', b), 2n);
    fake.show(ledBy(at('a', a), 1n));
    await eventually(async () => {
      expect((await read(grpc, client, { waitForReady: true })).value).toBe('b');
    });
    expect(fake.looks).toBeGreaterThanOrEqual(1);
  });

  test('tries at once a leader of a new term that is where the last one was', async (context) => {
    const stage = new GrpcStage(context, grpc);
    const fake = new FakeElection('restarted');
    fake.look = async () => vacant();
    const gone = await stage.server('a');
    await gone.close();
    stage.resolve(fake.election);
    // gRPC doubles this wait each time, up to two minutes.
    const client = stage.client(`incumbent:///${fake.name}`, {
      'grpc.initial_reconnect_backoff_ms': 3_600_000,
      'grpc.max_reconnect_backoff_ms': 3_600_000,
    });
    fake.show(ledBy(at('a', gone), 1n));
    expect((await read(grpc, client)).status.details).toMatch(/ECONNREFUSED/);
    await stage.server('a', undefined, gone.address);
    fake.show(ledBy(at('a', gone), 2n));
    expect((await read(grpc, client, { waitForReady: true })).value).toBe('a');
  });

  test('neither spins nor gives up while nobody can be reached', async (context) => {
    const stage = new GrpcStage(context, grpc);
    const fake = new FakeElection('patience');
    const gone = await stage.server('a');
    await gone.close();
    fake.look = async () => vacant();
    stage.resolve(fake.election);
    const client = stage.client(`incumbent:///${fake.name}`, {
      'grpc.initial_reconnect_backoff_ms': 20,
      'grpc.max_reconnect_backoff_ms': 20,
    });
    for (const view of [vacant(), ledBy(candidate('x'), 1n), unknown, ledBy(at('a', gone), 2n)]) {
      fake.show(view);
      // Deadlines need timers: where the resolver spins, they never come.
      const { status } = await read(grpc, client, { waitForReady: true, deadlineMs: 150 });
      expect(status.code).toBe(DEADLINE_EXCEEDED);
      expect((await read(grpc, client)).status.code).toBe(UNAVAILABLE);
    }
    expect(fake.looks).toBeLessThan(10);
    const back = await stage.server('a', undefined, gone.address);
    expect((await read(grpc, client, { waitForReady: true })).value).toBe('a');
    expect(back.served.count).toBe(1);
  });

  test('observes once for all channels, and not for idle or closed ones', async (context) => {
    const stage = new GrpcStage(context, grpc);
    const fake = new FakeElection('once');
    const a = await stage.server('a');
    const handle = stage.resolve({ once: fake.election, 'once more': fake.election });
    fake.show(ledBy(at('a', a), 1n));
    const target = `incumbent:///${fake.name}`;
    const clients = Array.from({ length: 20 }, (_, i) =>
      stage.client(i % 2 === 0 ? target : 'incumbent:///once%20more'),
    );
    expect(fake.begun, 'a channel that makes no call costs nothing').toBe(0);
    for (const client of clients) expect((await read(grpc, client)).value).toBe('a');
    expect([fake.begun, fake.open]).toEqual([1, 1]);
    for (const client of clients) client.close();
    await eventually(() => expect(fake.open).toBe(0));
    const idle = stage.client(target, { 'grpc.client_idle_timeout_ms': 1000 });
    expect((await read(grpc, idle)).value).toBe('a');
    await eventually(() => expect(fake.open).toBe(0));
    fake.show(ledBy(at('a', a), 2n));
    expect((await read(grpc, idle)).value).toBe('a');
    expect(fake.begun).toBe(3);
    handle.close();
    await eventually(() => expect(fake.open).toBe(0));
    const { status } = await read(grpc, idle);
    expect(status).toMatchObject({
      code: UNAVAILABLE,
      details: `the resolver of election "once" was closed`,
    });
  });

  test('has the policy of its service config among the addresses of the leader', async (context) => {
    const stage = new GrpcStage(context, grpc);
    const fake = new FakeElection('policy');
    const [a, b, c] = [await stage.server('a'), await stage.server('b'), await stage.server('c')];
    stage.resolve(fake.election);
    const client = stage.client(`incumbent:///${fake.name}`);
    const connectionParameters = (policy: string) => ({
      connectionParameters: JSON.stringify({
        loadBalancingConfig: [{ none: {} }, { [policy]: {} }],
      }),
    });
    fake.show(ledBy(at('a', a, connectionParameters('round_robin')), 1n));
    expect((await read(grpc, client, { waitForReady: true })).value).toBe('a');
    fake.show(ledBy(at('b', b, connectionParameters('round_robin')), 2n));
    await eventually(async () => expect((await read(grpc, client)).value).toBe('b'));
    fake.show(ledBy(at('b', b, connectionParameters('pick_first')), 2n));
    expect((await read(grpc, client)).value).toBe('b');
    fake.show(ledBy(at('c', c, connectionParameters('of nobody')), 3n));
    await eventually(async () => expect((await read(grpc, client)).value).toBe('c'));
  });
});
