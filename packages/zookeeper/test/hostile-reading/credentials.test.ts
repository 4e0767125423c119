import { FakeZooKeeper } from '@incumbent/zookeeper-testing';
import { describe, expect, it } from 'vitest';
import { createClient, InvalidArgumentError, RequestTimeoutError } from '../../src/index.ts';
import { TestClock } from './clock.ts';
import { closeAfterEach } from './closing.ts';
import { ScriptedServer } from './scripted-server.ts';

const later = closeAfterEach();

async function away() {
  const fake = later(await FakeZooKeeper.start());
  await fake.refuse();
  const clock = new TestClock();
  const client = later(
    createClient(fake.connectionString, { clock, requestTimeoutMs: 300 }),
    clock,
  );
  const auths = () => fake.requests.filter(({ opcode }) => opcode === 'auth');
  return { fake, clock, client, auths };
}

describe('addAuth', () => {
  it('ends after the bound of a request, and the credentials are kept', async () => {
    const { fake, clock, client, auths } = await away();
    const added = client.addAuth('digest', 'joe:secret');
    await expect(clock.runUntilSettled(added)).rejects.toBeInstanceOf(RequestTimeoutError);
    await fake.listen();
    await clock.runUntil('it is connected', () => client.state === 'connected');
    expect(auths()).toHaveLength(1);
  });

  it('ends after a bound of its own, and with its signal', async () => {
    const { clock, client } = await away();
    const startMs = clock.monotonicMs();
    const bounded = client.addAuth('digest', 'joe:secret', { timeoutMs: 50 });
    await expect(clock.runUntilSettled(bounded)).rejects.toBeInstanceOf(RequestTimeoutError);
    expect(clock.monotonicMs() - startMs).toBeLessThan(200);
    const abort = new AbortController();
    const aborted = client.addAuth('digest', 'joe:secret', { signal: abort.signal });
    abort.abort(new Error('enough'));
    await expect(aborted).rejects.toThrow('enough');
  });

  it('of the same credentials twice while away resolves twice', async () => {
    const { fake, clock, client } = await away();
    const both = Promise.all([
      client.addAuth('digest', 'joe:secret', { timeoutMs: 5_000 }),
      client.addAuth('digest', 'joe:secret', { timeoutMs: 5_000 }),
    ]);
    await fake.listen();
    await clock.runUntilSettled(both);
  });

  it('of the same credentials again does not make the next handshake longer', async () => {
    const { fake, clock, client, auths } = await away();
    await fake.listen();
    await clock.runUntil('it is connected', () => client.state === 'connected');
    for (let i = 0; i < 3; i += 1) await client.addAuth('digest', 'joe:secret');
    await client.addAuth('digest', 'ann:secret');
    const before = auths().length;
    fake.dropConnections();
    await clock.runUntil('it is away', () => client.state === 'suspended');
    await clock.runUntil('it is connected', () => client.state === 'connected');
    expect(auths().length - before).toBe(2);
  });
});

describe('connected()', () => {
  it.each([Number.POSITIVE_INFINITY, Number.NaN, 2 ** 40, -1])(
    'refuses a bound of %d, which no timer can keep',
    async (timeoutMs) => {
      const { clock, client } = await away();
      const waits = clock.runUntilSettled(client.connected({ timeoutMs }));
      await expect(waits).rejects.toBeInstanceOf(InvalidArgumentError);
    },
  );
});

describe('a server that answers pings and no authentication', () => {
  it.each([
    ['credentials', { auth: [{ scheme: 'digest', credentials: 'joe:secret' }] }],
    ['SASL', { sasl: { username: 'joe', password: 'secret' } }],
  ])('is left for another one, with %s', async (_, options) => {
    const server = later(
      await ScriptedServer.start({
        onRequest: (request, peer) => request.name === 'ping' && peer.answerUsual(request),
      }),
    );
    const clock = new TestClock();
    const client = later(createClient(server.connectionString, { clock, ...options }), clock);
    await clock.runUntil('it tries again', () => server.peers.length > 1);
    expect(client.state).toBe('connecting');
  });
});

it('takes an answer to authentication that a server on Netty gives before the handshake’s', async () => {
  let accept = () => {};
  const server = later(
    await ScriptedServer.start({
      onConnect: (_request, peer) => {
        accept = () => peer.accept();
      },
      onRequest: (request, peer) => {
        peer.answerUsual(request);
        if (request.name === 'auth') accept();
      },
    }),
  );
  const auth = [{ scheme: 'digest', credentials: 'joe:secret' }];
  const client = later(createClient(server.connectionString, { auth }));
  await client.connected();
  expect(server.peers).toHaveLength(1);
  expect(server.names).toEqual(['auth']);
});

it('connected() in a listener of auth-failed says that the credentials were refused', async () => {
  const fake = later(await FakeZooKeeper.start());
  const credentials = [{ scheme: 'nonsense', credentials: 'x' }];
  const client = later(createClient(fake.connectionString, { auth: credentials }));
  const refusal = new Promise((resolve) => {
    client.onState(({ state }) => {
      if (state === 'auth-failed') client.connected().then(resolve, resolve);
    });
  });
  expect(await refusal).toMatchObject({ code: 'AUTH_FAILED' });
});
