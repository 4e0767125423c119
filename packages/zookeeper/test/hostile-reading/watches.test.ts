import { FakeZooKeeper } from '@incumbent/zookeeper-testing';
import { describe, expect, it } from 'vitest';
import type { PersistentEvent, WatchEvent } from '../../src/index.ts';
import { connect, createClient } from '../../src/index.ts';
import { requests } from '../../src/protocol/requests.ts';
import { answerChallenge } from '../../src/session/sasl-digest-md5.ts';
import { WatchRegistry } from '../../src/session/watch-registry.ts';
import { TestClock, until } from './clock.ts';
import { closeAfterEach } from './closing.ts';
import type { Received } from './scripted-server.ts';
import { ScriptedServer } from './scripted-server.ts';

const later = closeAfterEach();

/** Two of them do not fit into one packet of SetWatches. */
const maxRequestBytes = 1_024;
const long = (name: string) => `/${name}-${'x'.repeat(600)}`;

describe('watches', () => {
  it('of the second packet of SetWatches survive a cut between the two', async () => {
    const fake = later(await FakeZooKeeper.start());
    const clock = new TestClock();
    const other = later(await connect(fake.connectionString));
    const client = later(createClient(fake.connectionString, { clock, maxRequestBytes }), clock);
    await client.connected();
    const own = client.session!.id;
    const [first, second] = [long('first'), long('second')];
    for (const path of [first, second]) await other.create(path);
    await client.watch(first);
    const { changed } = await client.watch(second);
    let event: WatchEvent | undefined;
    void changed.then((told) => {
      event = told;
    });
    // The second changes while the client is away.
    const mine = ({ sessionId }: { sessionId: bigint }) => sessionId === own;
    const barrier = fake.faults.next(
      { opcode: 'connect', predicate: mine, times: 1_000 },
      'dropBefore',
    );
    fake.faults.next({ opcode: 'sync', predicate: mine }, 'dropBefore');
    await expect(client.sync()).rejects.toMatchObject({ code: 'CONNECTION_LOSS' });
    await other.set(second, 'changed');
    // The first packet is answered, with a transaction that is later than the change.
    let packets = 0;
    const cut = fake.faults.next(
      { opcode: 'setWatches', predicate: (one) => mine(one) && ++packets === 2 },
      'dropBefore',
    );
    barrier.cancel();
    await clock.runUntil('it is cut between the two', () => cut.hits === 1);
    await clock.runUntil('the change is told', () => event !== undefined);
    expect(event).toMatchObject({ type: 'changed', path: second });
  });

  it('are restored as of what they were told, whatever replies come before, as with SASL', async () => {
    const user = { username: 'joe', password: 'secret' };
    const challenge = Buffer.from('realm="r",nonce="n",charset=utf-8,algorithm=md5-sess');
    let zxid = 100n;
    let cutAfterFirst = false;
    const tokens = ({ body }: Received) => Buffer.from(body.token).toString();
    const server = later(
      await ScriptedServer.start({
        onRequest: (request, peer) => {
          const { name, xid } = request;
          if (name === 'sasl') {
            const cnonce = /cnonce="([^"]*)"/.exec(tokens(request))?.[1];
            const token =
              cnonce === undefined
                ? challenge
                : Buffer.from(`rspauth=${answerChallenge(challenge, user, cnonce).expected}`);
            peer.replyWith(xid, zxid, requests.sasl.response, { token });
          } else if (name === 'exists' || name === 'getData') {
            peer.reply(xid, zxid, -101);
          } else if (name === 'setWatches' && cutAfterFirst) {
            cutAfterFirst = false;
            peer.reply(xid, zxid);
            peer.socket.end();
          } else {
            peer.answerUsual(request, zxid);
          }
        },
      }),
    );
    const clock = new TestClock();
    const client = later(
      createClient(server.connectionString, {
        ...{ clock, maxRequestBytes, sasl: user },
      }),
      clock,
    );
    await client.connected();
    await client.watch(long('first'));
    await client.watch(long('second'));
    expect(client.lastZxid).toBe(100n);
    zxid = 200n;
    cutAfterFirst = true;
    server.peers[0]!.socket.end();
    const restored = () => server.received.filter(({ name }) => name === 'setWatches');
    await clock.runUntil('they are restored', () => restored().some((one) => one.connection === 3));
    await clock.runUntil('it is connected', () => client.state === 'connected');
    const views = restored().map(({ connection, body }) => [connection, body.relativeZxid]);
    expect(views.filter(([connection]) => connection === 2)).toContainEqual([2, 100n]);
    expect(views.filter(([connection]) => connection === 3)).toEqual([
      [3, 100n],
      [3, 100n],
    ]);
  });

  it('are restored with a request that old servers know, unless there is a persistent one', async () => {
    const fake = later(await FakeZooKeeper.start());
    const clock = new TestClock();
    const client = later(createClient(fake.connectionString, { clock }), clock);
    await client.connected();
    await client.create('/a');
    await client.watch('/a');
    await client.watch('/absent');
    await client.watchChildren('/a');
    const reconnect = async () => {
      const { connects } = client.counters;
      const before = fake.requests.length;
      fake.dropConnections();
      await clock.runUntil('it is back', () => client.counters.connects > connects);
      await client.sync();
      const names = fake.requests.slice(before).map(({ opcode }) => opcode);
      return names.filter((name) => name.startsWith('setWatches'));
    };
    expect(await reconnect()).toEqual(['setWatches']);
    await client.addWatch('/b');
    expect((await reconnect()).sort()).toEqual(['setWatches', 'setWatches2']);
  });

  it.each(['data', 'children'] as const)(
    'end together: taking the %s half of a persistent one leaves no listener with the other half',
    async (half) => {
      const fake = later(await FakeZooKeeper.start());
      const client = later(await connect(fake.connectionString));
      await client.create('/w');
      const persistent = await client.addWatch('/w');
      const told: PersistentEvent[] = [];
      let ended = false;
      void (async () => {
        for await (const event of persistent) told.push(event);
        ended = true;
      })();
      await client.removeWatches('/w', half);
      await until('its iteration ends', () => ended);
      await client.sync();
      expect(fake.watches(client.session!.id)).toEqual([]);
      // No later one-shot relies on a watch that has gone.
      const { changed } = await client.watch('/w');
      const { changed: children } = await client.watchChildren('/w');
      await client.set('/w', 'changed');
      await client.create('/w/child');
      expect(await changed).toMatchObject({ type: 'changed' });
      expect(await children).toMatchObject({ type: 'children-changed' });
      expect(told).toEqual([]);
    },
  );

  it('that are asked for right behind a removal stay', async () => {
    const fake = later(await FakeZooKeeper.start());
    const client = later(await connect(fake.connectionString));
    await client.create('/w');
    const first = await client.addWatch('/w');
    const [, second] = await Promise.all([client.removeWatches('/w'), client.addWatch('/w')]);
    expect((await first[Symbol.asyncIterator]().next()).done).toBe(true);
    await client.set('/w', 'changed');
    const event = await second[Symbol.asyncIterator]().next();
    expect(event.value).toMatchObject({ type: 'changed', path: '/w' });
  });

  it('whose addWatch was given up do not stay on the server', async () => {
    const fake = later(await FakeZooKeeper.start());
    const client = later(await connect(fake.connectionString));
    const delayed = fake.faults.next('addWatch', 'delay');
    const abort = new AbortController();
    const adding = client.addWatch('/w', { signal: abort.signal });
    await delayed.struck;
    abort.abort(new Error('enough'));
    await expect(adding).rejects.toThrow('enough');
    delayed.release();
    await client.sync();
    expect(fake.watches(client.session!.id)).toEqual([]);
  });

  it('that ride on an addWatch which was given up are told, though another wants the path', () => {
    const told: string[] = [];
    const registry = new WatchRegistry(
      (path) => path,
      () => {},
    );
    const listener = () => ({ onEvent: () => {}, onGap: () => {}, onLost: () => {} });
    const first = listener();
    registry.addPersistent('/a', false, first);
    const read = registry.beginRead('data', '/a');
    registry.addPersistent('/a', false, listener());
    // The read was sent before the server has any watch.
    expect(registry.refusePersistent('/a', first)).toBe(false);
    registry.add('data', '/a', (event) => {
      told.push(event.type === 'lost' ? event.reason : event.type);
    });
    registry.endRead(read, true);
    expect(told).toEqual(['removed']);
  });
});
