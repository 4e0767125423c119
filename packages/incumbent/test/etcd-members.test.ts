// What an operator asks while a member of the cluster is down, stands still, or only learns.
import { describe, expect, it } from 'vitest';
import { EtcdCalls } from '../src/backends/etcd/calls.ts';
import { grpcCode } from '../src/backends/etcd/client.ts';
import { etcd } from '../src/backends/etcd/index.ts';
import { electionKeys } from '../src/backends/etcd/keys.ts';
import type { TxnRequest } from '../src/backends/etcd/messages.ts';
import { leaseGrant, range, txn } from '../src/backends/etcd/methods.ts';
import { EtcdSession } from '../src/backends/etcd/session.ts';
import { EtcdStore } from '../src/backends/etcd/store.ts';
import type { Election } from '../src/index.ts';
import { createElection } from '../src/index.ts';
import { emptyQueueRecord } from '../src/queue/record.ts';
import { SimulatedClock } from '../src/testing/index.ts';
import { FakeGrpc, grpcError } from './support/fake-grpc.ts';

const never = new AbortController().signal;
const down = grpcError(grpcCode.unavailable, 'No connection established');
const learner = grpcError(grpcCode.unavailable, 'etcdserver: rpc not supported for learner');
const silent = grpcError(grpcCode.deadlineExceeded, 'Deadline exceeded');

/** A member on which nothing is found. */
function healthy(): FakeGrpc {
  const server = new FakeGrpc();
  const nothing = range.response.decode(range.response.encode({}));
  server.onCall = ({ path, request, answer }) => {
    if (path === range.path) return answer(null, range.response.encode({}));
    if (path === leaseGrant.path) {
      return answer(null, leaseGrant.response.encode({ id: 7n, ttl: 9n }));
    }
    expect(path).toBe(txn.path);
    const { success } = txn.request.decode(request);
    const responses = success.map(() => ({ range: nothing }));
    answer(null, txn.response.encode({ succeeded: true, responses: responses as never }));
  };
  return server;
}

function failing(error: typeof down): FakeGrpc {
  const server = new FakeGrpc();
  server.onCall = ({ answer }) => answer(error);
  return server;
}

const questions: readonly (readonly [string, (election: Election<unknown>) => Promise<unknown>])[] =
  [
    ['leader', (election) => election.leader()],
    ['history', (election) => election.history()],
    ['candidates', (election) => election.candidates()],
    ['vacate', (election) => election.vacate()],
  ];

describe.each([
  ['is down', down],
  ['only learns', learner],
  ['says nothing', silent],
])('when the first two members are of three, and each %s', (_, error) => {
  it.each(questions)('%s() is answered by the third', async (_name, ask) => {
    const clients = [failing(error), failing(error), healthy()] as const;
    const election = createElection<unknown>({ name: 'e', backend: etcd(clients) });
    await expect(ask(election)).resolves.toBeDefined();
    // Once is enough to know better.
    expect(clients[0].calls).toHaveLength(1);
    expect(clients[1].calls).toHaveLength(1);
    await election.close();
  });
});

it('a question that no member answers is asked of each of them once', async () => {
  const clients = [failing(down), failing(learner), failing(silent)] as const;
  const election = createElection<unknown>({ name: 'e', backend: etcd(clients) });
  await expect(election.leader()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  expect(clients.map(({ calls }) => calls.length)).toEqual([1, 1, 1]);
  await election.close();
});

it('members that may stand still have half of the time together, and the last one the rest', async () => {
  const clients = [failing(silent), failing(silent), healthy()] as const;
  const election = createElection<unknown>({
    name: 'e',
    backend: etcd(clients, { ttl: '20s' }),
  });
  const startMs = Date.now();
  await election.leader();
  const [first = 0, second = 0, last = 0] = clients.map(
    ({ calls }) => (calls[0]?.options.deadline ?? 0) - startMs,
  );
  // Of ten seconds, which is half of the TTL.
  expect(first).toBeGreaterThanOrEqual(2_500);
  expect(second).toBeGreaterThanOrEqual(2_500);
  expect(last).toBeGreaterThanOrEqual(10_000);
  expect(Math.max(first, second)).toBeLessThan(last);
  await election.close();
});

describe('a write whose outcome is unknown', () => {
  function stand(error: typeof down) {
    const clients = [new FakeGrpc(), healthy()] as const;
    const clock = new SimulatedClock();
    const calls = new EtcdCalls(clients, undefined);
    const session = new EtcdSession({ calls, clock, ttlMs: 9_000, onTrouble: () => {} });
    const answerNow = healthy().onCall;
    clients[0].onCall = (call) => {
      if (call.path === txn.path) call.answer(error);
      else answerNow?.(call);
    };
    const store = new EtcdStore(session, electionKeys('', 'e'));
    const sent = (index: 0 | 1): readonly TxnRequest[] =>
      (clients[index].calls ?? [])
        .filter(({ path }) => path === txn.path)
        .map(({ request }) => txn.request.decode(request));
    return { clients, session, store, sent };
  }
  const candidate = { id: 'a', incarnation: 'i', addresses: [], metadata: {} };
  const record = emptyQueueRecord('e', 'n');

  it.each<readonly [string, (store: EtcdStore, place: never) => Promise<unknown>]>([
    ['entering', (store) => store.enter({ guid: 'g', candidate }, never)],
    ['announcing', (store, place) => store.commit(place, record, 0n, never)],
    ['a clean end', (store, place) => store.release(place, record, 0n, never)],
    ['a request', (store) => store.amend({ record, version: 0n }, never)],
  ])('%s: no other member is asked, for it may land late', async (_, write) => {
    const { session, store, sent } = stand(silent);
    const lease = await session.leases.take('other/', 'g', never);
    const place = { name: 'e/7@5', key: 'e/7', token: 5n, session: lease, guid: 'g', before: '' };
    await expect(write(store, place as never)).rejects.toMatchObject({ retryable: true });
    expect(sent(0)).toHaveLength(1);
    expect(sent(1)).toHaveLength(0);
  });

  it('is asked of the next member where twice is once: the deletion of one creation', async () => {
    const { store, sent } = stand(silent);
    await store.remove('e/7@5', never);
    expect(sent(0)).toHaveLength(1);
    const [again] = sent(1);
    expect(again).toEqual(sent(0)[0]);
    expect(again?.compare).toMatchObject([{ createRevision: 5n }]);
  });
});
