import { describe, expect, it } from 'vitest';
import { EtcdCalls } from '../src/backends/etcd/calls.ts';
import { electionKeys, encodeCandidate, encodeKey } from '../src/backends/etcd/keys.ts';
import type { TxnRequest } from '../src/backends/etcd/messages.ts';
import { leaseGrant, range, txn, watch } from '../src/backends/etcd/methods.ts';
import { EtcdSession } from '../src/backends/etcd/session.ts';
import { EtcdStore } from '../src/backends/etcd/store.ts';
import { SimulatedClock } from '../src/testing/index.ts';
import { FakeGrpc } from './support/fake-grpc.ts';

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

describe('a place in etcd', () => {
  it.each<readonly [string, unknown]>([
    ['nothing', null],
    ['an error', new Error('enough')],
    ['what looks like an answer', { cause: { code: 5 } }],
  ])('whose put was given up with %s is watched for, for it may land', async (_, reason) => {
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
