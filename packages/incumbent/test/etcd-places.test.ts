import { describe, expect, it, onTestFinished } from 'vitest';
import { EtcdCalls } from '../src/backends/etcd/calls.ts';
import { grpcCode } from '../src/backends/etcd/client.ts';
import { electionKeys, encodeCandidate, encodeKey } from '../src/backends/etcd/keys.ts';
import type { KeyValue, ResponseHeader, TxnRequest } from '../src/backends/etcd/messages.ts';
import { leaseGrant, range, txn, watch } from '../src/backends/etcd/methods.ts';
import type { EtcdPlace } from '../src/backends/etcd/session.ts';
import { EtcdSession } from '../src/backends/etcd/session.ts';
import { EtcdStore } from '../src/backends/etcd/store.ts';
import type { Instant } from '../src/base/clock.ts';
import { readClocks } from '../src/base/clock.ts';
import { Confirmations } from '../src/mechanisms/queue/confirmations.ts';
import { SimulatedClock } from '../src/testing/index.ts';
import { FakeGrpc, grpcError } from './support/fake-grpc.ts';

const entryOf = (guid: string) => ({
  guid,
  candidate: { id: 'a', incarnation: 'i', addresses: [], metadata: {} },
});

/** A server that grants lease 7, on which nothing is found, and answers transactions as told. */
function stand(onTxn: (request: TxnRequest, answer: (bytes: Uint8Array) => void) => void) {
  const clock = new SimulatedClock();
  const server = new FakeGrpc();
  server.onCall = ({ path, request, answer }) => {
    if (path === leaseGrant.path) answer(null, leaseGrant.response.encode({ id: 7n, ttl: 9n }));
    else if (path === range.path) answer(null, range.response.encode({}));
    else if (path === txn.path) onTxn(txn.request.decode(request), (bytes) => answer(null, bytes));
  };
  const calls = new EtcdCalls([server], undefined);
  const session = new EtcdSession({ calls, clock, ttlMs: 9_000, onTrouble: () => {} });
  return { clock, server, session, store: new EtcdStore(session, electionKeys('', 'a')) };
}

function keyValue(key: string): KeyValue {
  const revisions = { createRevision: 800n, modRevision: 800n, version: 1n };
  return { key: encodeKey(key), ...revisions, value: new Uint8Array(), lease: 7n };
}

interface TxnAnswer {
  readonly header: ResponseHeader;
  readonly succeeded: boolean;
  readonly responses: readonly { readonly range?: { readonly kvs: readonly KeyValue[] } }[];
}

function encodeTxn({ header, succeeded, responses }: TxnAnswer): Uint8Array {
  const empty = range.response.decode(range.response.encode({}));
  const filled = responses.map((each) =>
    each.range ? { range: { ...empty, ...each.range } } : {},
  );
  return txn.response.encode({ header, succeeded, responses: filled as never });
}

function watchWarnings(): () => Promise<readonly string[]> {
  const names: string[] = [];
  const onWarning = ({ name }: Error) => void names.push(name);
  process.on('warning', onWarning);
  onTestFinished(() => void process.off('warning', onWarning));
  return async () => {
    // Node tells them in a later turn.
    await new Promise((resolve) => setImmediate(resolve));
    return names;
  };
}

describe('a place in etcd', () => {
  it.each<readonly [string, unknown]>([
    ['nothing', null],
    ['an error', new Error('enough')],
    ['what looks like an answer', { cause: { code: 5 } }],
  ])('with a put that was given up with %s is watched for, for it may land', async (_, reason) => {
    const { clock, server, session, store } = stand(() => {});
    // Another election keeps the lease.
    const other = await session.leases.take('b/', 'other', new AbortController().signal);
    const stop = new AbortController();
    const entering = store.enter(entryOf('g'), stop.signal);
    const refused = entering.then(
      () => 'entered',
      () => 'refused',
    );
    await clock.advance(0);
    stop.abort(reason);
    expect(await refused).toBe('refused');
    await store.leave(entryOf('g'), undefined, new AbortController().signal);
    await clock.advance(0);
    const watched = server.streams
      .filter(({ path }) => path === watch.path)
      .flatMap(({ written }) => written.map((bytes) => watch.request.decode(bytes).create?.key));
    expect(watched).toEqual([encodeKey('a/7')]);
    expect(other.group.isOver).toBe(false);
  });

  it('is confirmed with many others without a warning of Node', async () => {
    const warnings = watchWarnings();
    const { clock, server, session } = stand(() => {});
    const { signal } = new AbortController();
    const lease = await session.leases.take('b/', 'other', signal);
    server.onCall = ({ path, request, answer }) => {
      // One is not permitted: in halves, down to each by itself, and those have no answer.
      if (path === txn.path && txn.request.decode(request).compare.length > 1) {
        answer(grpcError(grpcCode.permissionDenied, 'etcdserver: permission denied'));
      }
    };
    const confirmations = Confirmations.of(session, clock);
    const before = readClocks(clock);
    const places = Array.from({ length: 20 }, (_, index): EtcdPlace => {
      const key = `b${index}/7`;
      return { name: `${key}@5`, key, token: 5n, session: lease, guid: 'g', before: '' };
    });
    for (const place of places) confirmations.add(place, before);
    await clock.advance(1);
    const isNewer = ({ monotonicMs }: Instant) => monotonicMs > before.monotonicMs;
    confirmations.confirm(places[0] as EtcdPlace, isNewer, 1_000, signal).catch(() => {});
    await clock.advance(0);
    expect(server.calls.filter(({ path }) => path === txn.path)).toHaveLength(39);
    expect(await warnings()).toEqual([]);
  });

  it('is given up with many others without a warning of Node', async () => {
    const warnings = watchWarnings();
    const { clock, server, session } = stand(() => {});
    await session.leases.take('b/', 'other', new AbortController().signal);
    const answerNow = server.onCall;
    const seen = new Set<string>();
    server.onCall = (call) => {
      const key = String(call.request);
      // Found empty when it is left. Looked for again, without an answer, because its put may land.
      if (call.path !== range.path || !seen.has(key)) answerNow?.(call);
      if (call.path === range.path) seen.add(key);
    };
    for (let index = 0; index < 20; index += 1) {
      const store = new EtcdStore(session, electionKeys('', `c${index}`));
      const stop = new AbortController();
      store.enter(entryOf('g'), stop.signal).catch(() => {});
      await clock.advance(0);
      stop.abort(new Error('enough'));
      await clock.advance(0);
      await store.leave(entryOf('g'), undefined, new AbortController().signal);
      await clock.advance(0);
    }
    expect(server.calls.filter(({ path }) => path === range.path)).toHaveLength(40);
    expect(await warnings()).toEqual([]);
  });

  it.each([
    ['a/7@5', 'ns/', 'ns/a/7@5'],
    ['ns/a/7@5', '', 'a/7@5'],
    ['a/7@5', '', 'a/7@5'],
    ['by hand', '', 'a/by hand'],
  ])('that a record names as %s is, below "%sa/", %s', (recorded, root, here) => {
    const { session } = stand(() => {});
    expect(new EtcdStore(session, electionKeys(root, 'a')).nameHere(recorded)).toBe(here);
  });

  // The place before decides whether the leader has to wait, because other members write no record.
  it.each<readonly [string, string | undefined, readonly boolean[]]>([
    ['the place that was announced last', 'a/6', [true, false]],
    ['somebody’s who was not announced', 'a/5', [false, true]],
    ['nobody’s', undefined, [false, false]],
    ['one of an election below this one', 'a/below/6', [false, false]],
  ])('that was put behind %s is known to be that', async (_, before, expected) => {
    const header = { clusterId: 1n, memberId: 1n, revision: 900n, raftTerm: 1n };
    const kvs = (before === undefined ? ['a/7'] : ['a/7', before]).map((key) => keyValue(key));
    const { store } = stand((_request, answer) =>
      answer(encodeTxn({ header, succeeded: true, responses: [{}, { range: { kvs } }] })),
    );
    const place = await store.enter(entryOf('g'), new AbortController().signal);
    expect(place.name).toBe('a/7@900');
    const follows = ['a/6@800', 'a/5@800'].map((name) => store.directlyFollows(place, name));
    expect(follows).toEqual(expected);
  });

  it('that an earlier attempt has made is behind somebody unknown, and never next to the last leader', async () => {
    const header = { clusterId: 1n, memberId: 1n, revision: 900n, raftTerm: 1n };
    const kvs = [{ ...keyValue('a/7'), value: encodeCandidate(entryOf('g')) }];
    const { store } = stand((_request, answer) =>
      answer(encodeTxn({ header, succeeded: false, responses: [{ range: { kvs } }] })),
    );
    const place = await store.enter(entryOf('g'), new AbortController().signal);
    expect(place.name).toBe('a/7@800');
    for (const name of ['a/6@700', 'a/6@799', '']) {
      expect(store.directlyFollows(place, name)).toBe(false);
    }
  });

  it('is made where an earlier one of ours was left behind on the same lease', async () => {
    const done: string[] = [];
    const { store } = stand(({ success }, answer) => {
      const [operation] = success;
      if (operation?.deleteRange !== undefined) {
        done.push('deleted');
        answer(txn.response.encode({ succeeded: true }));
        return;
      }
      const isFree = done.includes('deleted');
      done.push(isFree ? 'put' : 'refused');
      const left = {
        key: encodeKey('a/7'),
        createRevision: 800n,
        modRevision: 800n,
        version: 1n,
        value: encodeCandidate(entryOf('earlier')),
        lease: 7n,
      };
      const header = { clusterId: 1n, memberId: 1n, revision: 900n, raftTerm: 1n };
      const empty = range.response.decode(range.response.encode({}));
      answer(
        txn.response.encode(
          isFree
            ? { header, succeeded: true, responses: [] }
            : {
                header,
                succeeded: false,
                responses: [{ range: { ...empty, kvs: [left] } }] as never,
              },
        ),
      );
    });
    const place = await store.enter(entryOf('g'), new AbortController().signal);
    expect(place.name).toBe('a/7@900');
    expect(done).toEqual(['refused', 'deleted', 'put']);
  });
});
