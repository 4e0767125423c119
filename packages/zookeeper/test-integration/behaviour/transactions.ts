import { expect, it } from 'vitest';
import {
  BadVersionError,
  InvalidArgumentError,
  NodeExistsError,
  NoNodeError,
  TransactionError,
} from '../../src/index.ts';
import type { World } from './world.ts';
import { monotonicMs, refusal } from './world.ts';

/** Several operations at once: multi, multiRead, confirm. */
export function transactions(world: World): void {
  it('commits all operations at once, with a result for each', async () => {
    const client = await world.client();
    const { zxid, results } = await client
      .transaction()
      .create('/n', 'a')
      .set('/n', 'b', 0)
      .check('/n', 1)
      .create('/n/s-', null, { sequential: true, ephemeral: true })
      .create('/n/gone')
      .delete('/n/gone', 0)
      .create('/n/container', null, { container: true })
      .create('/n/ttl', 'x', { ttlMs: 60_000 })
      .commit();
    expect(results.length).toBe(8);
    expect(results[0]).toMatchObject({ path: '/n' });
    expect(results[1]).toMatchObject({ stat: { version: 1, mzxid: zxid } });
    // In a multi the server gives a Stat only for the kinds of nodes that were added later.
    expect(results[3]).toMatchObject({ path: '/n/s-0000000000', stat: null });
    expect(results[6]).toMatchObject({ path: '/n/container', stat: { czxid: zxid } });
    expect(results[7]).toMatchObject({ path: '/n/ttl', stat: { czxid: zxid, dataLength: 1 } });
    const { stat: own } = await client.stat('/n/s-0000000000');
    expect(own).toMatchObject({ czxid: zxid, ephemeralOwner: client.session?.id });
    const { children, stat } = await client.getChildren('/n');
    expect([...children].sort()).toEqual(['container', 's-0000000000', 'ttl']);
    expect(stat.pzxid).toBe(zxid);
    expect((await client.get('/n')).text).toBe('b');
  });

  it('applies nothing when one operation fails, and says which', async () => {
    const client = await world.client();
    await client.create('/n', 'a');
    const error = await refusal(
      client.transaction().set('/n', 'b').create('/new').check('/n', 7).delete('/n').commit(),
      TransactionError,
      { code: 'TRANSACTION_FAILED', index: 2 },
    );
    expect(error.cause).toBeInstanceOf(BadVersionError);
    expect(error.cause).toMatchObject({ code: 'BAD_VERSION', path: '/n', index: 2 });
    // The message counts from one.
    expect(error.message).toMatch(/^operation 3 of 4 was refused, so none was applied: /);
    expect(error.outcomes).toEqual([
      ...['would-have-succeeded', 'would-have-succeeded', 'failed', 'not-tried'],
    ]);
    expect(await client.exists('/new')).toBe(false);
    expect((await client.get('/n')).stat.version).toBe(0);
  });

  it('checks version 0 as well', async () => {
    const client = await world.client();
    await client.create('/n');
    await client.set('/n', 'x');
    for (const transaction of [
      client.transaction().check('/n', 0).set('/n', 'y'),
      client.transaction().set('/n', 'y', 0),
      client.transaction().delete('/n', 0),
    ]) {
      const error = await refusal(transaction.commit(), TransactionError, { index: 0 });
      expect(error.cause).toBeInstanceOf(BadVersionError);
    }
    expect((await client.get('/n')).text).toBe('x');
  });

  it('names the failure of each kind', async () => {
    const client = await world.client();
    await client.create('/n');
    await client.create('/n/child');
    const cases = [
      [client.transaction().check('/n').create('/n'), 1, 'NODE_EXISTS', '/n'],
      [client.transaction().delete('/none').check('/n'), 0, 'NO_NODE', '/none'],
      [client.transaction().check('/n').check('/none'), 1, 'NO_NODE', '/none'],
      [client.transaction().delete('/n'), 0, 'NOT_EMPTY', '/n'],
      [client.transaction().create('/none/child'), 0, 'NO_NODE', '/none/child'],
    ] as const;
    for (const [transaction, index, code, path] of cases) {
      const error = await refusal(transaction.commit(), TransactionError, { index });
      expect(error.cause).toMatchObject({ code, path });
    }
  });

  it('reads several nodes at once, each with its own fate', async () => {
    const client = await world.client();
    await client.create('/a', 'x');
    await client.create('/a/b');
    const { results } = await client.multiRead([
      { get: '/a' },
      { get: '/none' },
      { children: '/a' },
      { children: '/none' },
    ]);
    expect(results.length).toBe(4);
    expect(results[0]).toMatchObject({ type: 'get', value: { text: 'x', stat: { version: 0 } } });
    expect(results[1]).toMatchObject({ type: 'error', error: { code: 'NO_NODE', path: '/none' } });
    expect(results[2]).toMatchObject({ children: ['b'] });
    expect(results[3]).toMatchObject({ error: { code: 'NO_NODE', path: '/none' } });
  });

  it('confirms that nodes are there, by a commit', async () => {
    const client = await world.client();
    const { zxid } = await client.create('/n');
    await client.create('/m');
    const before = monotonicMs();
    const wallBefore = Date.now();
    const confirmed = await client.confirm(['/n', { path: '/m', version: 0 }]);
    const after = monotonicMs();
    expect(confirmed.zxid).toBeGreaterThan(zxid);
    expect(confirmed.sentAt.monotonicMs).toBeGreaterThanOrEqual(before);
    expect(confirmed.sentAt.monotonicMs).toBeLessThanOrEqual(after);
    expect(confirmed.sentAt.wallMs).toBeGreaterThanOrEqual(wallBefore - 1);
    expect(confirmed.sentAt.wallMs).toBeLessThanOrEqual(Date.now() + 1);
    // It went through the quorum as a transaction of its own, and the next one comes after it.
    const next = await client.set('/n', '');
    expect(next.zxid).toBeGreaterThan(confirmed.zxid);
  });

  it('counts from when the request left, not from the reply', async () => {
    const client = await world.client();
    await client.create('/n');
    const confirmed = client.confirm(['/n']);
    const read = client.get('/n');
    await new Promise<void>((resolve) => process.nextTick(resolve));
    const handedOverMs = monotonicMs();
    // The reply cannot be read before this loop is over.
    while (monotonicMs() < handedOverMs + 30);
    for (const { sentAt } of [await confirmed, await read]) {
      expect(sentAt.monotonicMs).toBeLessThanOrEqual(handedOverMs);
      expect(Date.now() - sentAt.wallMs).toBeGreaterThanOrEqual(29);
    }
  });

  it('refuses to confirm what is not there, or not so', async () => {
    const client = await world.client();
    await client.create('/n');
    await client.set('/n', 'x');
    await refusal(client.confirm(['/n', '/none']), NoNodeError, {
      code: 'NO_NODE',
      path: '/none',
      index: 1,
    });
    await refusal(client.confirm([{ path: '/n', version: 0 }]), BadVersionError, {
      code: 'BAD_VERSION',
      path: '/n',
      index: 0,
    });
  });

  it('refuses what is no transaction', async () => {
    const client = await world.client();
    await refusal(client.transaction().commit(), InvalidArgumentError);
    await refusal(client.multiRead([]), InvalidArgumentError);
    await refusal(client.confirm([]), InvalidArgumentError);
    const transaction = client.transaction().create('/n');
    expect(() => transaction.create('relative')).toThrow(InvalidArgumentError);
    expect(() => transaction.set('/n', 7 as never)).toThrow(InvalidArgumentError);
    expect(() => transaction.check('/n', 0.5)).toThrow(InvalidArgumentError);
    await transaction.commit();
    await refusal(transaction.commit(), InvalidArgumentError);
    expect(() => transaction.create('/m')).toThrow(InvalidArgumentError);
    expect((await client.getChildren('/')).children).toEqual(['n']);
  });

  it('a transaction of two clients: one wins', async () => {
    const [client, other] = [await world.client(), await world.client()];
    const outcomes = await Promise.allSettled(
      [client, other].map((one) =>
        one.transaction().create('/lock', null, { ephemeral: true }).create('/won').commit(),
      ),
    );
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    const lost = outcomes.find(({ status }) => status === 'rejected') as PromiseRejectedResult;
    expect(lost.reason).toBeInstanceOf(TransactionError);
    expect((lost.reason as TransactionError).cause).toBeInstanceOf(NodeExistsError);
  });
}
