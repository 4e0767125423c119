// Defects of zookeeper 7.3.0 (native). The numbers are those of
// docs/evidence/zookeeper-features.md.
import { describe, expect, it } from 'vitest';
import type { PersistentEvent } from '../../src/index.ts';
import { scoped } from '../support/scope.ts';
import { soon, until } from '../support/waiting.ts';
import { ManualClock, reconnect, startFake, startRelay } from './support.ts';

const patient = { sessionTimeoutMs: 30_000, requestTimeoutMs: 60_000 };

describe.concurrent('zookeeper (native)', () => {
  it.each([
    [1_000_000, 1_000],
    [5_000, 1],
  ])('ZKN 3: a reply of %i bytes in pieces of %i does not end the session', (length, pieceBytes) =>
    scoped(async (scope) => {
      const fake = await startFake(scope);
      const writer = await scope.connect(fake.connectionString, patient);
      const data = new Uint8Array(length).map((_, i) => i % 251);
      await writer.create('/large', data);
      const relay = scope.later(await startRelay(fake, { pieceBytes }));
      const client = await scope.connect(`zk://${relay.host}:${relay.port}`, patient);
      const session = client.session?.id;
      const [large, small] = await Promise.all([client.get('/large'), client.get('/')]);
      expect(Buffer.compare(large.data!, data)).toBe(0);
      expect(small.data).toHaveLength(0);
      expect(client.session?.id).toBe(session);
      expect(client.counters).toMatchObject({ connects: 1, expirations: 0 });
    })(),
  );

  it(
    'ZKN 3: a reply that takes longer than silence may last is no silence',
    scoped(async (scope) => {
      const fake = await startFake(scope);
      const writer = await scope.connect(fake.connectionString, patient);
      await writer.create('/large', new Uint8Array(40_000));
      const clock = new ManualClock();
      let pass: (() => void) | undefined;
      const beforePiece = () =>
        new Promise<void>((resolve) => {
          pass = resolve;
        });
      const relay = scope.later(await startRelay(fake, { pieceBytes: 5_000, beforePiece }));
      const client = scope.create(`zk://${relay.host}:${relay.port}`, {
        sessionTimeoutMs: 10_000,
        clock,
      });
      const connected = client.connected();
      const nextPiece = async () => {
        await until('a piece waits', () => pass !== undefined);
        const { bytesReceived } = client.counters;
        pass?.();
        pass = undefined;
        await until('it has arrived', () => client.counters.bytesReceived > bytesReceived);
      };
      await nextPiece();
      await connected;
      const get = client.get('/large');
      // A little more than 40,000 bytes: nine pieces, in 0.9 T. A server counts as silent after 0.6
      // T.
      for (let piece = 1; piece <= 9; piece += 1) {
        clock.advance(1_000);
        await nextPiece();
      }
      expect((await soon(get, 'the reply')).data).toHaveLength(40_000);
      expect(client.state).toBe('connected');
      expect(client.counters.connects).toBe(1);
      // Its clock stands still, so it would wait for a reply to its closeSession for ever.
      await client.close({ keepSession: true });
    }),
  );

  it(
    'ZKN 4: a watch is told of changes alone, not of what happens to the connection',
    scoped(async (scope) => {
      const fake = await startFake(scope);
      const client = await scope.connect(fake.connectionString, patient);
      const told: string[] = [];
      const [data, absent, list] = [
        await client.watch('/'),
        await client.watch('/absent'),
        await client.watchChildren('/'),
      ];
      for (const { changed } of [data, absent, list]) {
        void changed.then(({ type }) => told.push(type));
      }
      const events: PersistentEvent[] = [];
      const lasting = await client.addWatch('/kept');
      void (async () => {
        for await (const event of lasting) events.push(event);
      })(); // ends with the client
      for (let round = 0; round < 3; round += 1) {
        await reconnect(fake, client);
        await client.sync();
      }
      expect(told).toEqual([]);
      // A gap is no change, and is not reported as one.
      expect(new Set(events.map(({ type }) => type))).toEqual(new Set(['gap']));
      await client.create('/absent');
      await client.set('/', 'x');
      await until('all are told', () => told.length === 3);
      expect(told.sort()).toEqual(['changed', 'children-changed', 'created']);
    }),
  );
});
