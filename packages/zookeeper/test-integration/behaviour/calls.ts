import { expect, it } from 'vitest';
import {
  ConnectError,
  createClient,
  NodeExistsError,
  QueueFullError,
  RequestTimeoutError,
} from '../../src/index.ts';
import type { World } from './world.ts';
import { refusal, soon } from './world.ts';

/** Rules for every call: order, limits, cancelling. */
export function calls(world: World): void {
  it('answers a thousand mixed calls in their order', async () => {
    const client = await world.client();
    await client.create('/n', '');
    const settled: number[] = [];
    const zxids: bigint[] = [];
    const all = Array.from({ length: 1_000 }, (_, i) => {
      const done = () => void settled.push(i);
      switch (i % 5) {
        case 0:
          return client.create(`/n/${i}`, String(i)).finally(done);
        case 1:
          return client.get(`/n/${i - 1}`).finally(done);
        case 2:
          return client.create(`/n/${i - 2}`).finally(done);
        case 3:
          return client.set('/n', String(i)).finally(done);
        default:
          return client.getChildren('/n').finally(done);
      }
    });
    const outcomes = await Promise.allSettled(all);
    expect(settled).toEqual(outcomes.map((_, i) => i));
    outcomes.forEach((outcome, i) => {
      if (i % 5 === 2) {
        expect(outcome).toMatchObject({ status: 'rejected' });
        expect((outcome as PromiseRejectedResult).reason).toBeInstanceOf(NodeExistsError);
        return;
      }
      expect(outcome).toMatchObject({ status: 'fulfilled' });
      const { value } = outcome as PromiseFulfilledResult<{ zxid: bigint }>;
      zxids.push(value.zxid);
      if (i % 5 === 1) expect(value).toMatchObject({ text: String(i - 1) });
      if (i % 5 === 3) expect(value).toMatchObject({ stat: { version: (i + 2) / 5 } });
      if (i % 5 === 4) expect(value).toMatchObject({ stat: { numChildren: (i + 1) / 5 } });
    });
    expect(zxids).toEqual([...zxids].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0)));
  });

  it('counts what it has done', async () => {
    const client = await world.client();
    await client.create('/n');
    await client.get('/none').catch(() => undefined);
    const { requests, succeeded, failed, outstanding } = client.counters;
    expect(requests).toBe(succeeded + failed + outstanding);
    expect(failed).toBe(1);
    expect(outstanding).toBe(0);
    expect(client.counters.connects).toBe(1);
  });

  it('goes on when what it calls throws', async () => {
    const client = await world.client();
    const heard: string[] = [];
    const fail = () => {
      throw new Error('from a callback');
    };
    client.onState(fail);
    client.onState(({ state }) => heard.push(state));
    await client.ensurePath('/tree/a');
    const deletion = client.deleteRecursive('/tree', { onProgress: fail });
    await expect(deletion).rejects.toThrow('from a callback');
    expect(await client.exists('/')).toBe(true);
    await client.close();
    expect(heard).toEqual(['closed']);
  });

  it('an aborted signal sends nothing', async () => {
    const client = await world.client();
    const reason = new Error('never mind');
    const signal = AbortSignal.abort(reason);
    await expect(client.create('/n', null, { signal })).rejects.toBe(reason);
    await expect(client.get('/n', { signal })).rejects.toBe(reason);
    await expect(client.watch('/n', { signal })).rejects.toBe(reason);
    await expect(client.addWatch('/n', { signal })).rejects.toBe(reason);
    await expect(client.transaction().create('/n').commit({ signal })).rejects.toBe(reason);
    await expect(client.confirm(['/'], { signal })).rejects.toBe(reason);
    await expect(client.ensurePath('/n', { signal })).rejects.toBe(reason);
    await expect(client.deleteRecursive('/', { signal })).rejects.toBe(reason);
    await expect(client.connected({ signal })).rejects.toBe(reason);
    expect(await client.exists('/n')).toBe(false);
  });

  it('a call is given up while its reply is awaited, and the others are not', async () => {
    const client = await world.client();
    await client.create('/n', 'x');
    const reason = new Error('never mind');
    const stop = new AbortController();
    const before = client.get('/n');
    const aborted = client.get('/n', { signal: stop.signal });
    const after = client.get('/n');
    stop.abort(reason);
    await expect(aborted).rejects.toBe(reason);
    expect((await before).text).toBe('x');
    expect((await after).text).toBe('x');
    expect((await client.get('/n', { signal: new AbortController().signal })).text).toBe('x');
  });

  it('a call that cannot be sent ends at its bound, surely without effect', async () => {
    const client = world.later(createClient('zk://127.0.0.1:9', { requestTimeoutMs: 300 }));
    await refusal(client.create('/n', null, { timeoutMs: 50 }), RequestTimeoutError, {
      code: 'REQUEST_TIMEOUT',
      maybeApplied: false,
      retryable: true,
      path: '/n',
      operation: 'create2',
    });
    await refusal(client.get('/n'), RequestTimeoutError, { maybeApplied: false });
    await refusal(client.connected({ timeoutMs: 50 }), ConnectError);
    const reason = new Error('never mind');
    const stop = new AbortController();
    const aborted = client.get('/n', { signal: stop.signal });
    stop.abort(reason);
    await expect(aborted).rejects.toBe(reason);
  });

  it('a call to a server that went silent ends at its bound, perhaps with effect', async () => {
    const [client, proxy] = await world.behindProxy();
    await client.create('/n');
    proxy.silence();
    const write = refusal(client.set('/n', 'x', { timeoutMs: 200 }), RequestTimeoutError, {
      maybeApplied: true,
    });
    const read = refusal(client.get('/n', { timeoutMs: 200 }), RequestTimeoutError, {
      maybeApplied: false,
    });
    await soon(Promise.all([write, read]), 'the bounds');
    proxy.cut();
    await proxy.pass();
    await client.sync('/', { timeoutMs: 10_000 }).catch(() => client.sync('/'));
    expect((await client.get('/n')).text).toMatch(/^x?$/);
  });

  it('refuses calls beyond the bound of its queue', async () => {
    const client = world.later(
      createClient('zk://127.0.0.1:9', { maxQueuedRequests: 10, requestTimeoutMs: 200 }),
    );
    const waiting = Array.from({ length: 10 }, () => client.get('/n'));
    await refusal(client.get('/n'), QueueFullError, {
      code: 'QUEUE_FULL',
      path: '/n',
      retryable: true,
    });
    const outcomes = await Promise.allSettled(waiting);
    for (const outcome of outcomes) {
      expect((outcome as PromiseRejectedResult).reason).toBeInstanceOf(RequestTimeoutError);
    }
    const small = world.later(
      createClient('zk://127.0.0.1:9', { maxQueuedBytes: 1_000, requestTimeoutMs: 200 }),
    );
    await refusal(small.set('/n', new Uint8Array(2_000)), QueueFullError);
  });

  it('keeps at most so many requests on their way, and all are answered', async () => {
    const client = await world.client({ maxInFlight: 3 });
    await client.create('/n');
    const all = Array.from({ length: 100 }, (_, i) => client.set('/n', String(i)));
    expect(client.counters.inFlight).toBeLessThanOrEqual(3);
    const replies = await Promise.all(all);
    expect(replies.map(({ stat }) => stat.version)).toEqual(replies.map((_, i) => i + 1));
  });
}
