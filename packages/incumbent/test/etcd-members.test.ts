// An operator's questions while a member of the cluster is down, stands still, or only learns.
import { describe, expect, it } from 'vitest';
import { EtcdCalls } from '../src/backends/etcd/calls.ts';
import { grpcCode } from '../src/backends/etcd/client.ts';
import { etcd } from '../src/backends/etcd/index.ts';
import { electionKeys } from '../src/backends/etcd/keys.ts';
import type { TxnRequest } from '../src/backends/etcd/messages.ts';
import { leaseGrant, range, txn } from '../src/backends/etcd/methods.ts';
import { EtcdSession } from '../src/backends/etcd/session.ts';
import { EtcdStore } from '../src/backends/etcd/store.ts';
import { OperationTimeoutError } from '../src/base/errors.ts';
import type { Election } from '../src/index.ts';
import { createElection } from '../src/index.ts';
import { emptyQueueRecord } from '../src/record/queue-record.ts';
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

describe('a member that says nothing', () => {
  const nothing = range.response.encode({});

  /** Answers when it is told to. */
  function held() {
    const server = new FakeGrpc();
    const waiting: (() => void)[] = [];
    server.onCall = ({ answer }) => void waiting.push(() => answer(null, nothing));
    const answerAll = () => {
      for (const go of waiting.splice(0)) go();
    };
    return Object.assign(server, { answerAll });
  }

  const ask = (calls: EtcdCalls) => calls.call(range, {}, never, { mayRepeat: true });
  const asked = async (server: FakeGrpc) => {
    while (server.calls.length === 0) await new Promise((resolve) => setImmediate(resolve));
  };

  it('is not given up for the next one, which is asked beside it: its answer counts, too', async () => {
    const [first, second] = [held(), held()];
    const calls = new EtcdCalls([first, second], undefined, 2);
    let moves = 0;
    calls.onMoved(() => {
      moves += 1;
    });
    const answer = ask(calls);
    await asked(second);
    first.answerAll();
    await expect(answer).resolves.toBeDefined();
    // The streams stay where they are, and the member that was asked in vain is told to stop.
    expect([calls.current, moves]).toEqual([0, 0]);
    expect(second.calls[0]?.isCancelled).toBe(true);
  });

  it('is left for the one that answers', async () => {
    const [first, second, third] = [held(), held(), healthy()];
    const calls = new EtcdCalls([first, second, third], undefined, 2);
    await expect(ask(calls)).resolves.toBeDefined();
    expect(calls.current).toBe(2);
    await ask(calls);
    expect([first, second, third].map((server) => server.calls.length)).toEqual([1, 1, 2]);
  });

  it('and all others: the bound of the call ends it', async () => {
    const members = [held(), held()];
    const calls = new EtcdCalls(members, undefined, 2);
    const stop = new AbortController();
    const answer = calls.call(range, {}, stop.signal, { mayRepeat: true });
    await asked(members[1] as FakeGrpc);
    stop.abort(new OperationTimeoutError('reading', 2));
    await expect(answer).rejects.toThrow(OperationTimeoutError);
    expect(members.map((server) => server.calls[0]?.isCancelled)).toEqual([true, true]);
    expect(calls.current).toBe(1);
  });
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
