import { setMaxListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { EtcdCalls } from '../src/backends/etcd/calls.ts';
import { grpcCode } from '../src/backends/etcd/client.ts';
import type { LeaseEvent } from '../src/backends/etcd/leases.ts';
import { LeaseKeeper } from '../src/backends/etcd/leases.ts';
import { leaseGrant, leaseKeepAlive, leaseRevoke } from '../src/backends/etcd/methods.ts';
import { SimulatedClock } from '../src/testing/index.ts';
import type { FakeStream } from './support/fake-grpc.ts';
import { FakeGrpc, grpcError } from './support/fake-grpc.ts';

// One for all: none is ever aborted.
const never = new AbortController().signal;
setMaxListeners(0, never);
const ttlMs = 10_000;

/**
 * A keeper on servers that grant the wanted TTL and answer every keep-alive, unless told otherwise.
 */
function stand(members = 1, grantedMs = ttlMs) {
  const clock = new SimulatedClock();
  const clients = Array.from({ length: members }, () => new FakeGrpc());
  const granted: bigint[] = [];
  const revoked: bigint[] = [];
  for (const client of clients) {
    client.onCall = ({ path, request, answer }) => {
      if (path === leaseGrant.path) {
        const id = 1_000n + BigInt(granted.length);
        granted.push(id);
        answer(null, leaseGrant.response.encode({ id, ttl: BigInt(grantedMs / 1000) }));
      } else {
        revoked.push(leaseRevoke.request.decode(request).id);
        answer(null, leaseRevoke.response.encode({}));
      }
    };
  }
  const events: (readonly [LeaseEvent, number])[] = [];
  const troubles: string[] = [];
  const keeper = new LeaseKeeper(
    new EtcdCalls(clients, undefined),
    clock,
    ttlMs,
    (event) => events.push([event, clock.monotonicMs()]),
    (_, error) => void troubles.push(String(error)),
  );
  /** Streams that are open, the newest last. */
  const open = (): FakeStream[] =>
    clients.flatMap(({ streams }) => streams.filter(({ isCancelled }) => !isCancelled));
  let answers = true;
  const answered = new Map<FakeStream, number>();
  const answerAll = (ttl = BigInt(grantedMs / 1000)) => {
    for (const stream of open()) {
      for (const written of stream.written.slice(answered.get(stream) ?? 0)) {
        const { id } = leaseKeepAlive.request.decode(written);
        stream.send(leaseKeepAlive, { id, ttl });
      }
      answered.set(stream, stream.written.length);
    }
  };
  return {
    clock,
    clients,
    keeper,
    events,
    troubles,
    granted,
    revoked,
    open,
    answerAll,
    silence: () => {
      answers = false;
    },
    /** Time passes, in which servers answer within 100 ms. */
    async pass(ms: number): Promise<void> {
      for (let passed = 0; passed < ms; passed += 100) {
        await clock.advance(Math.min(100, ms - passed));
        if (answers) answerAll();
        await clock.advance(0);
      }
    },
  };
}

describe('leases on etcd', () => {
  it('EB1: are over when the TTL has passed since the last answered keep-alive was sent', async () => {
    const { keeper, pass, silence, clock, events, open } = stand();
    const lease = await keeper.take('a/', 'one', never);
    await pass(25_000);
    expect(lease.group.isOver).toBe(false);
    silence();
    const { aliveMs } = lease;
    expect(aliveMs).toBeGreaterThan(20_000);
    await pass(aliveMs + ttlMs - clock.monotonicMs() - 1);
    expect(lease.group.isOver).toBe(false);
    await pass(1);
    expect(lease.group.isOver).toBe(true);
    expect(events.at(-1)).toEqual(['over', aliveMs + ttlMs]);
    expect(open()).toEqual([]);
    expect(clock.pendingTimers).toBe(0);
  });

  it('EB1: count from the sending of a keep-alive, however late its answer', async () => {
    const { keeper, clock, answerAll } = stand();
    const lease = await keeper.take('a/', 'one', never);
    await clock.advance(1);
    const sentMs = clock.monotonicMs() - 1;
    await clock.advance(1_500);
    answerAll();
    expect(lease.aliveMs).toBe(sentMs);
  });

  it('are over at once when the server knows no such lease', async () => {
    const { keeper, pass, answerAll, clock, events } = stand();
    const lease = await keeper.take('a/', 'one', never);
    await pass(3_000);
    await clock.advance(2_000);
    answerAll(0n);
    expect(lease.group.isOver).toBe(true);
    expect(events).toEqual([['over', clock.monotonicMs()]]);
  });

  it('are kept through another member when one does not answer', async () => {
    const { keeper, pass, events, clients, clock, answerAll } = stand(2);
    const lease = await keeper.take('a/', 'one', never);
    await pass(3_000);
    expect([clients[0]?.streams.length, clients[1]?.streams.length]).toEqual([1, 0]);
    // The first one stands still.
    const frozen = clients[0]?.streams[0] as FakeStream;
    const silent = clients[0] as FakeGrpc;
    silent.onCall = undefined;
    for (let at = 0; at < 6_000 && clients[1]?.streams.length === 0; at += 100) {
      await clock.advance(100);
    }
    expect(frozen.isCancelled).toBe(true);
    await clock.advance(1);
    answerAll();
    await pass(30_000);
    expect(lease.group.isOver).toBe(false);
    expect(events).toEqual([]);
  });

  it('are in doubt when no member answers, until one does', async () => {
    const { keeper, pass, silence, answerAll, events, clients, clock } = stand(2);
    await keeper.take('a/', 'one', never);
    await pass(3_000);
    silence();
    for (let at = 0; at < 8_000 && !keeper.isSuspended; at += 100) await clock.advance(100);
    expect(clients.map(({ streams }) => streams.length)).toEqual([1, 1]);
    expect(events.map(([event]) => event)).toEqual(['suspended']);
    await clock.advance(500);
    answerAll();
    expect(events.map(([event]) => event)).toEqual(['suspended', 'restored']);
    expect(keeper.isSuspended).toBe(false);
  });

  it('open another stream when one breaks, and do so not too often', async () => {
    const { keeper, pass, clients, clock, events } = stand();
    await keeper.take('a/', 'one', never);
    await pass(1_000);
    const lost = grpcError(grpcCode.unavailable, 'lost');
    let breaks = 0;
    for (let at = 0; at < 5_000; at += 10) {
      const stream = clients[0]?.streams.at(-1) as FakeStream;
      if (!stream.isCancelled) {
        stream.fail(lost);
        breaks += 1;
      }
      await clock.advance(10);
    }
    expect(breaks).toBeGreaterThan(10);
    expect(breaks).toBeLessThanOrEqual(5_000 / 250 + 2);
    expect(events.map(([event]) => event)).toEqual(['suspended']);
  });

  it('are not given up for answers that are only not read yet', async () => {
    const { keeper, pass, clock, answerAll, events, clients } = stand();
    const lease = await keeper.take('a/', 'one', never);
    await pass(4_000);
    // A keep-alive goes out, and the process stands still with the answer in its socket.
    await clock.advance(2_000);
    clock.stall(5_000);
    await clock.advance(1);
    answerAll();
    await pass(10_000);
    expect(events).toEqual([]);
    expect(clients[0]?.streams).toHaveLength(1);
    expect(lease.group.isOver).toBe(false);
  });

  it('are one for all elections, and another for a second candidate of one', async () => {
    const { keeper, granted } = stand();
    const first = await Promise.all([
      keeper.take('a/', 'one', never),
      keeper.take('b/', 'two', never),
      keeper.take('c/', 'three', never),
    ]);
    expect(new Set(first).size).toBe(1);
    const again = await keeper.take('a/', 'one', never);
    expect(again).toBe(first[0]);
    const others = await Promise.all([
      keeper.take('a/', 'four', never),
      keeper.take('a/', 'five', never),
    ]);
    expect(new Set([again, ...others]).size).toBe(3);
    expect(granted).toHaveLength(3);
    keeper.free(again, 'a/');
    expect(await keeper.take('a/', 'six', never)).toBe(again);
  });

  it('die together, and are given back then', async () => {
    const { keeper, pass, clock, open, revoked, granted, events } = stand();
    const one = await keeper.take('a/', 'one', never);
    const two = await keeper.take('a/', 'two', never);
    await pass(1_000);
    await clock.advance(2_000);
    open()[0]?.send(leaseKeepAlive, { id: two.id, ttl: 0n });
    expect([one.group.isOver, two.group.isOver]).toEqual([true, true]);
    await clock.advance(0);
    expect(revoked).toEqual(granted);
    expect(events).toHaveLength(1);
    const next = await keeper.take('a/', 'one', never);
    expect(next.group.isOver).toBe(false);
    expect(next.id).not.toBe(one.id);
  });

  it('rest while nobody has a place, and are taken up again or replaced', async () => {
    const { keeper, pass, clock, open, revoked, granted, events } = stand();
    const lease = await keeper.take('a/', 'one', never);
    await pass(1_000);
    keeper.free(lease, 'a/');
    expect(open()).toEqual([]);
    expect(clock.pendingTimers).toBe(0);
    await clock.advance(1_000);
    expect(await keeper.take('a/', 'two', never)).toBe(lease);
    await pass(1_000);
    expect(open()).toHaveLength(1);
    keeper.free(lease, 'a/');
    // Too old to be relied upon.
    await clock.advance(5_000);
    const other = await keeper.take('a/', 'three', never);
    expect(other.id).not.toBe(lease.id);
    await clock.advance(0);
    expect([granted.length, revoked]).toEqual([2, [lease.id]]);
    expect(events.map(([event]) => event)).toEqual(['over']);
  });

  it('are revoked with their last place when a put may still land on them', async () => {
    const { keeper, pass, revoked, clock } = stand();
    const lease = await keeper.take('a/', 'one', never);
    await keeper.take('b/', 'two', never);
    await pass(1_000);
    keeper.withhold(lease, 'a/');
    expect(lease.group.isOver).toBe(false);
    expect(await keeper.take('a/', 'three', never)).not.toBe(lease);
    keeper.free(lease, 'b/');
    const [, second] = lease.group.leases;
    keeper.free(second as typeof lease, 'a/');
    await clock.advance(0);
    expect(lease.group.isOver).toBe(true);
    expect(revoked).toContain(lease.id);
  });

  it('say whether they were kept lately', async () => {
    const { keeper, pass, silence } = stand();
    const lease = await keeper.take('a/', 'one', never);
    await pass(20_000);
    expect(keeper.isFresh(lease)).toBe(true);
    silence();
    await pass(4_000);
    expect(keeper.isFresh(lease)).toBe(false);
  });

  it('were not kept lately after a suspension, also if the wall clock is set back then', async () => {
    const { clock, keeper, pass } = stand();
    const lease = await keeper.take('a/', 'one', never);
    await pass(20_000);
    clock.suspend(ttlMs / 2);
    expect(keeper.isFresh(lease)).toBe(false);
    clock.stepWall(-ttlMs / 2);
    expect(keeper.isFresh(lease)).toBe(false);
    // The next keep-alive says it again.
    await pass(ttlMs / 5);
    expect(keeper.isFresh(lease)).toBe(true);
  });

  it('last as long as the server has granted, and that is said', async () => {
    const { keeper, pass, silence, troubles, clock } = stand(1, 2 * ttlMs);
    const lease = await keeper.take('a/', 'one', never);
    expect(lease.ttlMs).toBe(2 * ttlMs);
    expect(troubles.join()).toContain('raised the TTL of 10000 ms to 20000 ms');
    await pass(1_000);
    silence();
    await pass(lease.aliveMs + 2 * ttlMs - clock.monotonicMs() - 1);
    expect(lease.group.isOver).toBe(false);
    await pass(1);
    expect(lease.group.isOver).toBe(true);
  });

  it('cannot be had on clients that were closed', async () => {
    const { keeper, clients, events, pass } = stand();
    const lease = await keeper.take('a/', 'one', never);
    await pass(1_000);
    for (const client of clients) client.isClosed = true;
    clients[0]?.streams[0]?.fail(grpcError(grpcCode.unavailable, 'closed'));
    await pass(1_000);
    expect(lease.group.isOver).toBe(true);
    expect(events.map(([event]) => event)).toEqual(['suspended', 'over']);
    await expect(keeper.take('a/', 'one', never)).rejects.toThrow('closed');
  });

  it('are asked for again, of another member, when a grant has no answer', async () => {
    const { keeper, clients, clock, granted } = stand(2);
    const [first] = clients as [FakeGrpc, FakeGrpc];
    first.onCall = undefined;
    const taken = keeper.take('a/', 'one', never);
    let error: unknown;
    taken.catch((reason: unknown) => {
      error = reason;
    });
    await clock.advance(ttlMs / 2);
    expect(error).toMatchObject({ retryable: true });
    expect(first.calls).toHaveLength(1);
    expect((await keeper.take('a/', 'one', never)).id).toBe(granted[0]);
  });

  it('are taken even where grants take long', async () => {
    const { keeper, clients, clock, events, revoked } = stand();
    const [client] = clients as [FakeGrpc];
    const answerNow = client.onCall;
    client.onCall = undefined;
    const taken = keeper.take('a/', 'one', never);
    let lease: unknown;
    void taken.then((found) => {
      lease = found;
    });
    await clock.advance(0.4 * ttlMs);
    for (const call of client.calls) answerNow?.(call);
    await clock.advance(0);
    expect(lease).toBeDefined();
    expect([events, revoked]).toEqual([[], []]);
  });

  it('are waited for no longer than the caller wants, and then serve the next one', async () => {
    const { keeper, clients, granted } = stand();
    const [client] = clients as [FakeGrpc];
    const answerNow = client.onCall;
    client.onCall = undefined;
    const stop = new AbortController();
    const taken = keeper.take('a/', 'one', stop.signal);
    stop.abort(new Error('enough'));
    await expect(taken).rejects.toThrow('enough');
    const next = keeper.take('a/', 'two', never);
    await new Promise((resolve) => setImmediate(resolve));
    for (const call of client.calls) answerNow?.(call);
    expect((await next).slots.get('a/')).toBe('two');
    expect(granted).toHaveLength(1);
  });
});
