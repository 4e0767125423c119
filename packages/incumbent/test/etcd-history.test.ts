import { describe, expect, it } from 'vitest';
import { EtcdCalls } from '../src/backends/etcd/calls.ts';
import { nobodyBetween } from '../src/backends/etcd/history.ts';
import { electionKeys, encodeKey } from '../src/backends/etcd/keys.ts';
import { eventType, rangeRequest } from '../src/backends/etcd/messages.ts';
import { range, watch } from '../src/backends/etcd/methods.ts';
import { EtcdSession } from '../src/backends/etcd/session.ts';
import { SimulatedClock } from '../src/testing/index.ts';
import { FakeGrpc } from './support/fake-grpc.ts';

/** The place `a/1` of revision 5 was given up at 7, and ours is of revision 9. */
function stand(ttlMs = 9_000) {
  const clock = new SimulatedClock();
  const server = new FakeGrpc();
  const calls = new EtcdCalls([server], undefined);
  const session = new EtcdSession({ calls, clock, ttlMs, onTrouble: () => {} });
  const { watches } = session;
  const first = watches.first.bind(watches);
  let watched = 0;
  watches.first = (spec) => {
    watched += 1;
    // All of it runs in microtasks: nothing else could end it.
    if (watched > 10) throw new Error('asked again and again');
    return first(spec);
  };
  const answerRange = (onAnswered: () => void) => {
    server.onCall = ({ path, request, answer }) => {
      expect(path).toBe(range.path);
      const { rangeEnd } = rangeRequest.decode(request);
      const kvs = rangeEnd.length > 0 ? [] : [place('a/1', 5n)];
      answer(null, range.response.encode({ kvs }));
      onAnswered();
    };
  };
  const proof = nobodyBetween(session, electionKeys('', 'a'), {
    previous: 'a/1@5',
    recordRevision: 7n,
    createRevision: 9n,
    signal: new AbortController().signal,
  });
  return { clock, server, proof, answerRange, watched: () => watched };
}

function place(key: string, createRevision: bigint) {
  return {
    key: encodeKey(key),
    createRevision,
    modRevision: createRevision,
    version: 1n,
    value: new Uint8Array(),
    lease: 0n,
  };
}

describe('the candidate between two places', () => {
  it('is nobody, when the first that was put is ours', async () => {
    const { clock, server, proof, answerRange, watched } = stand();
    answerRange(() => {});
    await clock.advance(0);
    const put = (key: string, revision: bigint) =>
      server.streams[0]?.send(watch, {
        watchId: BigInt(watched()),
        events: [{ type: eventType.put, kv: place(key, revision) }],
      });
    put('a/below/1', 8n);
    await clock.advance(0);
    expect(watched()).toBe(2);
    server.streams.at(-1)?.send(watch, {
      watchId: 2n,
      events: [{ type: eventType.put, kv: place('a/2', 9n) }],
    });
    expect(await proof).toBe(true);
  });

  it('is not known when the clients are closed meanwhile, and nobody asks again', async () => {
    const { server, proof, answerRange, watched } = stand();
    let answered = 0;
    answerRange(() => {
      answered += 1;
      server.isClosed = answered === 2;
    });
    expect(await proof).toBe(false);
    expect(watched()).toBe(1);
  });

  it('is not known when no server tells it soon, and sooner where leases are short', async () => {
    for (const [ttlMs, timeoutMs] of [
      [1_000, 125],
      [60_000, 500],
    ] as const) {
      const { clock, proof } = stand(ttlMs);
      let isProved: boolean | undefined;
      void proof.then((answer) => {
        isProved = answer;
      });
      await clock.advance(timeoutMs - 1);
      expect(isProved).toBeUndefined();
      await clock.advance(1);
      expect(isProved).toBe(false);
    }
  });

  it('is not known when it is compacted meanwhile, and nobody asks again', async () => {
    const { clock, server, proof, answerRange, watched } = stand();
    answerRange(() => {});
    await clock.advance(0);
    server.streams[0]?.send(watch, {
      watchId: 1n,
      created: true,
      canceled: true,
      compactRevision: 9n,
    });
    await clock.advance(0);
    expect(watched()).toBe(1);
    expect(await proof).toBe(false);
  });
});
