import { describe, expect, it } from 'vitest';
import { EtcdCalls } from '../src/backends/etcd/calls.ts';
import { grpcCode } from '../src/backends/etcd/client.ts';
import { encodeKey } from '../src/backends/etcd/keys.ts';
import type { WatchResponse } from '../src/backends/etcd/messages.ts';
import { eventType } from '../src/backends/etcd/messages.ts';
import { authenticate, watch } from '../src/backends/etcd/methods.ts';
import { WatchHub } from '../src/backends/etcd/watches.ts';
import { SimulatedClock } from '../src/testing/index.ts';
import type { FakeStream } from './support/fake-grpc.ts';
import { FakeGrpc, FakeMetadata, grpcError } from './support/fake-grpc.ts';

const lost = grpcError(grpcCode.unavailable, 'lost');

function stand(members = 1, asUser = false) {
  const clock = new SimulatedClock();
  const clients = Array.from({ length: members }, () => new FakeGrpc());
  let tokens = 0;
  for (const client of clients) {
    client.onCall = ({ answer }) => {
      tokens += 1;
      answer(null, authenticate.response.encode({ token: `token-${tokens}` }));
    };
  }
  const auth = asUser ? { user: 'joe', password: 'pass', Metadata: FakeMetadata } : undefined;
  const told: string[] = [];
  const troubles: string[] = [];
  const hub = new WatchHub(
    new EtcdCalls(clients, auth),
    clock,
    (event) => told.push(event),
    (_, error) => void troubles.push(String(error)),
  );
  const results = new Map<string, unknown>();
  const first = (key: string, startRevision = 5n) => {
    const { events, cancel } = hub.first({ key: encodeKey(key), startRevision });
    void events.then((result) =>
      results.set(
        key,
        result?.map(({ kv }) => kv.modRevision),
      ),
    );
    return cancel;
  };
  return {
    clock,
    clients,
    told,
    troubles,
    hub,
    results,
    first,
    /** The newest stream that is open. */
    stream: () =>
      clients
        .flatMap(({ streams }) => streams.filter((each) => !each.isCancelled))
        .at(-1) as FakeStream,
    streams: () => clients.flatMap(({ streams }) => streams),
  };
}

/** The requests on a stream: `key@revision#id`, `-#id`. */
function asked(stream: FakeStream): readonly string[] {
  return stream.written.map((bytes) => {
    const { create, cancel } = watch.request.decode(bytes);
    if (create === undefined) return `-#${cancel?.watchId}`;
    return `${new TextDecoder().decode(create.key)}@${create.startRevision}#${create.watchId}`;
  });
}

function say(stream: FakeStream, watchId: bigint, response: Partial<WatchResponse>): void {
  stream.send(watch, { watchId, ...response });
}

const happened = (revision: bigint): Partial<WatchResponse> => ({
  events: [
    {
      type: eventType.put,
      kv: {
        key: new Uint8Array(),
        createRevision: 0n,
        modRevision: revision,
        version: 0n,
        value: new Uint8Array(),
        lease: 0n,
      },
    },
  ],
});

describe('watches on etcd', () => {
  it('are all on one stream, which is there while there are watchers', async () => {
    const { first, stream, streams, results, clock } = stand();
    first('a');
    const cancelB = first('b');
    await clock.advance(0);
    first('c');
    expect(asked(stream())).toEqual(['a@5#1', 'b@5#2', 'c@5#3']);
    for (const id of [1n, 2n, 3n]) say(stream(), id, { created: true });
    say(stream(), 1n, happened(7n));
    await clock.advance(0);
    expect([...results]).toEqual([['a', [7n]]]);
    cancelB();
    expect(asked(stream()).slice(3)).toEqual(['-#1', '-#2']);
    say(stream(), 2n, { canceled: true });
    say(stream(), 3n, happened(8n));
    await clock.advance(0);
    expect(results.get('c')).toEqual([8n]);
    expect(streams().every(({ isCancelled }) => isCancelled)).toBe(true);
    first('d');
    await clock.advance(0);
    expect(asked(stream())).toEqual(['d@5#4']);
  });

  it('go on from the same revisions when their stream breaks, and nobody is woken', async () => {
    const { first, stream, clock, results, clients } = stand(2);
    first('a', 5n);
    first('b', 6n);
    await clock.advance(0);
    clients[0]?.streams[0]?.fail(lost);
    await clock.advance(100);
    expect(results.size).toBe(0);
    expect(clients[1]?.streams).toHaveLength(1);
    expect(asked(stream())).toEqual(['a@5#1', 'b@6#2']);
    say(stream(), 2n, happened(9n));
    await clock.advance(0);
    expect(results.get('b')).toEqual([9n]);
  });

  it('say that no member answers, and when one does again, and try it less and less often', async () => {
    const { first, clock, told, hub, streams, stream, troubles } = stand(2);
    first('a');
    for (let at = 0; at < 20_000; at += 50) {
      (stream() as FakeStream | undefined)?.fail(lost);
      await clock.advance(50);
    }
    expect(told).toEqual(['suspended']);
    expect(hub.isBroken).toBe(true);
    expect(streams().length).toBeGreaterThan(5);
    expect(streams().length).toBeLessThan(20);
    expect(troubles.length).toBeGreaterThan(5);
    await clock.advance(2_000);
    say(stream(), 1n, { created: true });
    expect(told).toEqual(['suspended', 'restored']);
    expect(hub.isBroken).toBe(false);
  });

  it('say so when their first revision is forgotten', async () => {
    const { first, stream, clock, results } = stand();
    first('a');
    await clock.advance(0);
    say(stream(), 1n, { created: true, canceled: true, compactRevision: 9n });
    await clock.advance(0);
    expect([...results]).toEqual([['a', undefined]]);
  });

  it.each([1n, -1n])(
    'that are refused (as number %i) are not asked for again at once',
    async (id) => {
      const { first, stream, clock, results, troubles } = stand();
      first('a');
      await clock.advance(0);
      say(stream(), id, { created: true, canceled: true, cancelReason: 'permission denied' });
      await clock.advance(500);
      expect(results.size).toBe(0);
      expect(troubles.join()).toContain('permission denied');
      await clock.advance(500);
      expect([...results]).toEqual([['a', undefined]]);
    },
  );

  it('get a stream with another token when the server has forgotten that of theirs', async () => {
    const { first, stream, clock, results, streams } = stand(1, true);
    first('a');
    first('b');
    await clock.advance(0);
    say(stream(), 1n, { created: true, canceled: true, cancelReason: 'permission denied' });
    await clock.advance(1_000);
    expect(streams().map(({ token }) => token)).toEqual(['token-1', 'token-2']);
    // That one looks again, the other goes on where it was.
    expect([...results]).toEqual([['a', undefined]]);
    expect(asked(stream())).toEqual(['b@5#2']);
  });

  it('end when all clients were closed', async () => {
    const { first, clock, results, clients, told } = stand();
    first('a');
    await clock.advance(0);
    for (const client of clients) client.isClosed = true;
    clients[0]?.streams[0]?.fail(lost);
    await clock.advance(5_000);
    expect([...results]).toEqual([['a', undefined]]);
    expect(told).toEqual(['suspended']);
    expect(clock.pendingTimers).toBe(0);
  });
});
