import { setMaxListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import { EtcdCalls } from '../src/backends/etcd/calls.ts';
import { grpcCode } from '../src/backends/etcd/client.ts';
import { ClientClosedError, storeError } from '../src/backends/etcd/errors.ts';
import { authenticate, leaseKeepAlive, status } from '../src/backends/etcd/methods.ts';
import { MalformedMessageError } from '../src/backends/protobuf.ts';
import {
  InvalidOptionError,
  OperationTimeoutError,
  StoreUnavailableError,
  StoreUnsuitableError,
} from '../src/index.ts';
import { FakeGrpc, FakeMetadata, grpcError } from './support/fake-grpc.ts';

// One for all: none is ever aborted.
const never = new AbortController().signal;
setMaxListeners(0, never);
const statusOf = (version: string) => status.response.encode({ version });
/** Waits until a call has reached the client. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

function three() {
  const clients = [new FakeGrpc(), new FakeGrpc(), new FakeGrpc()] as const;
  const calls = new EtcdCalls(clients, undefined);
  const ask = async (signal = never) => {
    const from = clients.map((client) => client.calls.length);
    const answer = calls.call(status, {}, signal);
    answer.catch(() => {});
    await settled();
    const asked = clients.findIndex((client, index) => client.calls.length > (from[index] ?? 0));
    return { answer, asked, call: clients[asked]?.calls.at(-1) };
  };
  return { clients, calls, ask };
}

describe('a call to etcd', () => {
  it('has a deadline, and goes to the same member again', async () => {
    const { ask } = three();
    for (const version of ['1', '2']) {
      const { answer, asked, call } = await ask();
      expect(asked).toBe(0);
      expect(call?.options.deadline).toBeGreaterThan(Date.now());
      expect(call?.options.deadline).toBeLessThanOrEqual(Date.now() + 10_000);
      call?.answer(null, statusOf(version));
      expect(await answer).toMatchObject({ version });
    }
  });

  it.each([
    ['is not there', grpcError(grpcCode.unavailable, 'No connection established')],
    ['does not answer', grpcError(grpcCode.deadlineExceeded, 'Deadline exceeded')],
    ['knows no leader', grpcError(grpcCode.unavailable, 'etcdserver: no leader')],
  ])('goes to the next member after one that %s', async (_, error) => {
    const { ask } = three();
    for (const expected of [0, 1, 2, 0]) {
      const { answer, asked, call } = await ask();
      expect(asked).toBe(expected);
      call?.answer(error);
      await expect(answer).rejects.toBe(error);
    }
  });

  it('goes to the next member when the caller has waited for too long', async () => {
    const { ask } = three();
    const patience = new AbortController();
    const { answer, call } = await ask(patience.signal);
    const tooLong = new OperationTimeoutError('confirming', 100);
    patience.abort(tooLong);
    await expect(answer).rejects.toBe(tooLong);
    expect(call?.isCancelled).toBe(true);
    expect((await ask()).asked).toBe(1);
    // A caller who only does not want it any more has nothing against the member.
    const stop = new AbortController();
    await ask(stop.signal);
    stop.abort(new Error('closing'));
    expect((await ask()).asked).toBe(1);
  });

  it('stays with a member that refuses what all would refuse', async () => {
    const { ask } = three();
    (await ask()).call?.answer(
      grpcError(grpcCode.permissionDenied, 'etcdserver: permission denied'),
    );
    (await ask()).call?.answer(
      grpcError(grpcCode.invalidArgument, 'etcdserver: key is not provided'),
    );
    expect((await ask()).asked).toBe(0);
  });

  it('goes around clients that were closed, and says so when no other is left', async () => {
    const { clients, calls, ask } = three();
    clients[0].isClosed = true;
    expect((await ask()).asked).toBe(1);
    clients[1].isClosed = true;
    expect((await ask()).asked).toBe(2);
    expect(calls.isClosed).toBe(false);
    clients[2].isClosed = true;
    await expect((await ask()).answer).rejects.toThrow(ClientClosedError);
    expect(calls.isClosed).toBe(true);
    const listener = { onMessage: () => {}, onEnd: () => {} };
    await expect(calls.open(leaseKeepAlive, listener, never)).rejects.toThrow(ClientClosedError);
  });

  it('rejects when the answer is no message', async () => {
    const { ask } = three();
    const { answer, call } = await ask();
    call?.answer(null, Uint8Array.of(0x12, 0x05));
    await expect(answer).rejects.toThrow('fewer are there');
  });
});

describe('a stream to etcd', () => {
  it('ends, once, with an error or with a message that is none', async () => {
    const client = new FakeGrpc();
    const calls = new EtcdCalls([client], undefined);
    const ends: unknown[] = [];
    const listener = { onMessage: () => {}, onEnd: (error: unknown) => void ends.push(error) };
    const lost = grpcError(grpcCode.unavailable, 'lost');
    await calls.open(leaseKeepAlive, listener, never);
    client.streams[0]?.fail(lost);
    client.streams[0]?.fail(lost);
    expect(ends).toEqual([lost]);
    await calls.open(leaseKeepAlive, listener, never);
    client.streams[1]?.sendBytes(Uint8Array.of(0x12, 0x05));
    expect(ends[1]).toBeInstanceOf(MalformedMessageError);
    expect(client.streams[1]?.isCancelled).toBe(true);
    const third = await calls.open(leaseKeepAlive, listener, never);
    third.cancel();
    client.streams[2]?.fail(grpcError(grpcCode.cancelled, 'cancelled'));
    third.write({ id: 1n });
    expect(client.streams[2]?.written).toEqual([]);
    expect(ends).toHaveLength(2);
  });
});

describe('a call as a user of etcd', () => {
  function asJoe() {
    const client = new FakeGrpc();
    const auth = { user: 'joe', password: 'pass', Metadata: FakeMetadata };
    return { client, calls: new EtcdCalls([client], auth) };
  }

  it('asks for a token once, and for another one when that is refused', async () => {
    const { client, calls } = asJoe();
    let tokens = 0;
    client.onCall = ({ path, request, metadata, answer }) => {
      if (path === authenticate.path) {
        expect(authenticate.request.decode(request)).toEqual({ name: 'joe', password: 'pass' });
        tokens += 1;
        answer(null, authenticate.response.encode({ token: `token-${tokens}` }));
      } else if (metadata?.values.get('token') === 'token-1' && tokens === 1 && calls.wasReached) {
        answer(null, statusOf(String(metadata.values.get('token'))));
      } else if (metadata?.values.get('token') === 'token-2') {
        answer(null, statusOf('token-2'));
      } else {
        answer(grpcError(grpcCode.unauthenticated, 'etcdserver: invalid auth token'));
      }
    };
    const [one, two] = await Promise.all([
      calls.call(status, {}, never),
      calls.call(status, {}, never),
    ]);
    expect([one.version, two.version, tokens]).toEqual(['token-1', 'token-1', 1]);
    // The server was started again: it knows no token any more.
    client.onCall = ((before) => (call) => {
      if (call.metadata?.values.get('token') === 'token-1') {
        call.answer(grpcError(grpcCode.unauthenticated, 'etcdserver: invalid auth token'));
      } else {
        before(call);
      }
    })(client.onCall);
    expect((await calls.call(status, {}, never)).version).toBe('token-2');
    expect(tokens).toBe(2);
  });

  it('does without a token where the cluster knows no users', async () => {
    const { client, calls } = asJoe();
    client.onCall = ({ path, metadata, answer }) => {
      if (path === authenticate.path) {
        answer(grpcError(grpcCode.failedPrecondition, 'etcdserver: authentication is not enabled'));
      } else {
        expect(metadata).toBeUndefined();
        answer(null, statusOf('3'));
      }
    };
    expect((await calls.call(status, {}, never)).version).toBe('3');
  });

  it('asks for a token when the cluster has begun to know users', async () => {
    const { client, calls } = asJoe();
    let isEnabled = false;
    const wantsUser = grpcError(grpcCode.invalidArgument, 'etcdserver: user name is empty');
    client.onCall = ({ path, metadata, answer }) => {
      if (path !== authenticate.path) {
        if (isEnabled && metadata === undefined) answer(wantsUser);
        else answer(null, statusOf(metadata?.values.get('token') ?? 'nobody'));
      } else if (isEnabled) {
        answer(null, authenticate.response.encode({ token: 'token-1' }));
      } else {
        answer(grpcError(grpcCode.failedPrecondition, 'etcdserver: authentication is not enabled'));
      }
    };
    expect((await calls.call(status, {}, never)).version).toBe('nobody');
    isEnabled = true;
    expect((await calls.call(status, {}, never)).version).toBe('token-1');
    // While this member knows it, and the one that is asked for a token does not.
    const lagging = new EtcdCalls([client], {
      user: 'joe',
      password: 'pass',
      Metadata: FakeMetadata,
    });
    client.onCall = ((before) => (call) => {
      if (call.path !== authenticate.path) return before(call);
      const details = 'etcdserver: authentication is not enabled';
      call.answer(grpcError(grpcCode.failedPrecondition, details));
    })(client.onCall);
    await expect(lagging.call(status, {}, never)).rejects.toThrow(StoreUnavailableError);
  });

  it('asks another member for a token when one stands still, before leases are over', async () => {
    const clients = [new FakeGrpc(), new FakeGrpc()] as const;
    const auth = { user: 'joe', password: 'pass', Metadata: FakeMetadata };
    const calls = new EtcdCalls(clients, auth);
    const answer = calls.call(status, {}, never);
    await settled();
    const [asked] = clients[0].calls;
    expect(asked?.options.deadline).toBeLessThanOrEqual(Date.now() + 3_000);
    asked?.answer(grpcError(grpcCode.deadlineExceeded, 'Deadline exceeded'));
    await expect(answer).rejects.toMatchObject({ code: grpcCode.deadlineExceeded });
    void calls.call(status, {}, never);
    await settled();
    expect(clients[1].calls.map(({ path }) => path)).toEqual([authenticate.path]);
  });

  it('asks for one token when many were refused', async () => {
    const { client, calls } = asJoe();
    let tokens = 0;
    const held: (() => void)[] = [];
    client.onCall = ({ path, metadata, answer }) => {
      if (path === authenticate.path) {
        tokens += 1;
        answer(null, authenticate.response.encode({ token: `token-${tokens}` }));
      } else if (metadata?.values.get('token') === 'token-1') {
        held.push(() =>
          answer(grpcError(grpcCode.unauthenticated, 'etcdserver: invalid auth token')),
        );
      } else {
        answer(null, statusOf('new'));
      }
    };
    const answers = Array.from({ length: 20 }, () => calls.call(status, {}, never));
    await settled();
    // One after the other: the first ones have another token by then.
    for (const refuse of held) {
      refuse();
      await settled();
    }
    expect(new Set((await Promise.all(answers)).map(({ version }) => version))).toEqual(
      new Set(['new']),
    );
    expect(tokens).toBe(2);
  });

  it('says that the password is wrong, and asks again the next time', async () => {
    const { client, calls } = asJoe();
    const wrong = grpcError(
      grpcCode.invalidArgument,
      'etcdserver: authentication failed, invalid user ID or password',
    );
    client.onCall = ({ answer }) => answer(wrong);
    await expect(calls.call(status, {}, never)).rejects.toBe(wrong);
    await expect(calls.call(status, {}, never)).rejects.toBe(wrong);
    expect(client.calls.map(({ path }) => path)).toEqual([authenticate.path, authenticate.path]);
  });
});

describe('etcd’s answers, as errors of ours', () => {
  const incurable: readonly (readonly [number, string, string])[] = [
    [grpcCode.permissionDenied, 'etcdserver: permission denied', 'docs/stores/etcd.md'],
    [grpcCode.unauthenticated, 'etcdserver: invalid auth token', '`auth`'],
    [grpcCode.invalidArgument, 'etcdserver: user name is empty', 'client certificate'],
    [grpcCode.invalidArgument, 'etcdserver: authentication failed, invalid user ID', '`auth`'],
    [grpcCode.invalidArgument, 'etcdserver: request is too large', 'make metadata'],
    [grpcCode.invalidArgument, 'etcdserver: too many operations in txn request', '--max-txn-ops'],
    [grpcCode.unimplemented, 'unknown service etcdserverpb.KV', 'API v3'],
    [grpcCode.unavailable, 'Last error: Error: self-signed certificate', 'TLS'],
    [grpcCode.unavailable, "Hostname/IP does not match certificate's altnames", 'TLS'],
    [grpcCode.unavailable, 'SSL routines:ssl3_get_record:wrong version number', 'TLS'],
  ];
  it.each(incurable)('%i %s: waiting does not help', (code, details, advice) => {
    const error = storeError(grpcError(code, details), 'confirming', false);
    expect(error).toBeInstanceOf(StoreUnsuitableError);
    expect((error as Error).message).toContain(details.slice(0, 30));
    expect((error as Error).message).toContain(advice);
  });

  it.each([
    [grpcCode.unavailable, 'connect ECONNREFUSED'],
    [grpcCode.unavailable, 'etcdserver: request timed out'],
    [grpcCode.deadlineExceeded, 'Deadline exceeded'],
    [8, 'etcdserver: mvcc: database space exceeded'],
    [13, 'Received RST_STREAM'],
    [2, 'unknown'],
  ])('%i %s: may be better later', (code, details) => {
    const error = storeError(grpcError(code, details), 'confirming', false);
    expect(error).toBeInstanceOf(StoreUnavailableError);
    expect(error).toMatchObject({ retryable: true });
  });

  it('a handshake that fails after others have worked may work again', () => {
    const error = grpcError(grpcCode.unavailable, 'certificate has expired');
    expect(storeError(error, 'confirming', false)).toBeInstanceOf(StoreUnsuitableError);
    expect(storeError(error, 'confirming', true)).toBeInstanceOf(StoreUnavailableError);
  });

  it('leaves errors alone that are none of etcd’s', () => {
    const ours = new InvalidOptionError('x');
    const other = new TypeError('x');
    expect(storeError(ours, 'confirming', true)).toBe(ours);
    expect(storeError(other, 'confirming', true)).toBe(other);
  });
});
