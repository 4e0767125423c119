import { expect, it } from 'vitest';
import {
  BadVersionError,
  InvalidArgumentError,
  NodeExistsError,
  NoNodeError,
  NotEmptyError,
  PacketTooLargeError,
  RefusedError,
} from '../../src/index.ts';
import type { World } from './world.ts';
import { refusal, soon } from './world.ts';

/** Creating, reading, changing and deleting nodes. */
export function nodes(world: World): void {
  it('creates every kind of node', async () => {
    const client = await world.client();
    const session = client.session?.id;

    const persistent = await client.create('/persistent', 'x');
    expect(persistent.path).toBe('/persistent');
    expect(persistent.stat).toMatchObject({ version: 0, dataLength: 1, ephemeralOwner: 0n });
    expect(persistent.stat?.czxid).toBe(persistent.zxid);

    const ephemeral = await client.create('/ephemeral', 'x', { ephemeral: true });
    expect(ephemeral.stat?.ephemeralOwner).toBe(session);

    const sequential = await client.create('/s-', 'x', { sequential: true });
    expect(sequential.path).toBe('/s-0000000002');
    const both = await client.create('/s-', 'x', { sequential: true, ephemeral: true });
    expect(both.path).toBe('/s-0000000003');
    expect(both.stat?.ephemeralOwner).toBe(session);

    const container = await client.create('/container', 'x', { container: true });
    expect(container.stat).toMatchObject({ version: 0, ephemeralOwner: 0n });
    const ttl = await client.create('/ttl', 'x', { ttlMs: 60_000 });
    expect(ttl.stat).toMatchObject({ version: 0, ephemeralOwner: 0n });
    const ttlSequential = await client.create('/s-', 'x', { ttlMs: 60_000, sequential: true });
    expect(ttlSequential.path).toBe('/s-0000000006');

    const { children, stat } = await client.getChildren('/');
    expect([...children].sort()).toEqual([
      ...['container', 'ephemeral', 'persistent'],
      ...['s-0000000002', 's-0000000003', 's-0000000006', 'ttl'],
    ]);
    expect(stat.numChildren).toBe(7);
    expect(stat.cversion).toBe(7);
    expect(stat.pzxid).toBe(ttlSequential.zxid);
  });

  it('gives a sequence number once, whatever the prefix', async () => {
    const client = await world.client();
    const first = await client.create('/a-', null, { sequential: true });
    await client.delete(first.path);
    const paths = await Promise.all(
      ['a-', 'b-', ''].map((name) => client.create(`/${name}`, null, { sequential: true })),
    );
    expect(paths.map(({ path }) => path)).toEqual([
      '/a-0000000001',
      '/b-0000000002',
      '/0000000003',
    ]);
  });

  it('refuses kinds that exclude each other', async () => {
    const client = await world.client();
    for (const options of [
      { container: true, ephemeral: true },
      { container: true, sequential: true },
      { container: true, ttlMs: 1 },
      { ttlMs: 1, ephemeral: true },
      { ttlMs: 0 },
      { ttlMs: -1 },
      { ttlMs: 1.5 },
      { ttlMs: Number.NaN },
      { ttlMs: 2 ** 40 },
    ]) {
      await refusal(client.create('/n', null, options), InvalidArgumentError, {
        code: 'INVALID_ARGUMENT',
      });
    }
    expect(await client.exists('/n')).toBe(false);
  });

  it('a container goes after its last child, a node with a TTL after its time', async () => {
    const client = await world.client();
    await client.create('/container', null, { container: true });
    await client.create('/container/child');
    await client.create('/ttl', null, { ttlMs: 100 });
    const container = await client.watch('/container');
    const ttl = await client.watch('/ttl');
    await client.delete('/container/child');
    // Some ticks of the fake server, but not enough for a session to expire.
    await world.servers.elapse(5_000);
    expect(await soon(container.changed, 'the end of the container')).toMatchObject({
      type: 'deleted',
      path: '/container',
    });
    // On a busy machine it has gone before it is watched.
    if (ttl.value === undefined) return;
    expect(await soon(ttl.changed, 'the end of the ttl')).toMatchObject({ type: 'deleted' });
  });

  it('keeps data as they are: null, empty, text, bytes', async () => {
    const client = await world.client();
    await client.create('/null', null);
    await client.create('/nothing');
    await client.create('/empty', '');
    await client.create('/text', 'grüße, 🐘');
    const all = Uint8Array.from({ length: 256 }, (_, i) => i);
    await client.create('/bytes', all.subarray(1, 255));
    const [none, nothing, empty, text, bytes] = await Promise.all(
      ['/null', '/nothing', '/empty', '/text', '/bytes'].map((path) => client.get(path)),
    );
    expect(none?.data).toBe(null);
    expect(none?.text).toBe('');
    expect(nothing?.data).toBe(null);
    expect(empty?.data).toBeInstanceOf(Uint8Array);
    expect(empty?.data?.length).toBe(0);
    expect(text?.text).toBe('grüße, 🐘');
    expect(Array.from(bytes?.data ?? [])).toEqual(Array.from(all.subarray(1, 255)));
    expect(bytes?.stat.dataLength).toBe(254);

    for (const data of [null, '', 'text', new Uint8Array([0, 255])]) {
      await client.set('/bytes', data);
      const read = await client.get('/bytes');
      const expected = typeof data === 'string' ? new TextEncoder().encode(data) : data;
      expect(read.data && Array.from(read.data)).toEqual(expected && Array.from(expected));
    }
  });

  it('takes data up to the limit of the server, and refuses the rest alone', async () => {
    const client = await world.client();
    const large = new Uint8Array(1_048_000).fill(7);
    await client.create('/large', large);
    const first = await client.get('/large');
    await client.set('/large', new Uint8Array(1_048_000).fill(8));
    const second = await client.get('/large');
    // A later read does not overwrite the data of an earlier one.
    expect(Buffer.compare(first.data as Uint8Array, large)).toBe(0);
    expect(second.data?.every((byte) => byte === 8)).toBe(true);

    const session = client.session?.id;
    await refusal(client.set('/large', new Uint8Array(1_048_576)), PacketTooLargeError, {
      code: 'PACKET_TOO_LARGE',
      path: '/large',
      operation: 'setData',
    });
    expect((await client.stat('/large')).stat?.version).toBe(1);
    expect(client.session?.id).toBe(session);
  });

  it('refuses what is not data', async () => {
    const client = await world.client();
    for (const data of [7, {}, [1], true]) {
      await refusal(client.create('/n', data as never), InvalidArgumentError);
      await refusal(client.set('/n', data as never), InvalidArgumentError);
    }
  });

  it('compares versions', async () => {
    const client = await world.client();
    await client.create('/n', '0');
    const one = await client.set('/n', '1', { version: 0 });
    expect(one.stat).toMatchObject({ version: 1, mzxid: one.zxid, dataLength: 1 });
    const error = await refusal(client.set('/n', '2', { version: 0 }), BadVersionError, {
      code: 'BAD_VERSION',
      path: '/n',
      operation: 'setData',
      retryable: false,
    });
    expect(error.zxid).toBeGreaterThan(one.zxid);
    expect((await client.get('/n')).text).toBe('1');
    expect((await client.set('/n', '2')).stat.version).toBe(2);
    await refusal(client.delete('/n', { version: 1 }), BadVersionError, { path: '/n' });
    await client.delete('/n', { version: 2 });
    expect(await client.exists('/n')).toBe(false);
    for (const version of [-(2 ** 31) - 1, 2 ** 31, 1.5, Number.NaN]) {
      await refusal(client.set('/n', '', { version }), InvalidArgumentError);
      await refusal(client.delete('/n', { version }), InvalidArgumentError);
    }
  });

  it('says what it refuses, with code, path, operation and transaction', async () => {
    const client = await world.client();
    const folder = await client.create('/folder');
    await client.create('/folder/child');
    await client.create('/ephemeral', null, { ephemeral: true });
    const absent = [
      [client.get('/none'), 'getData'],
      [client.set('/none', ''), 'setData'],
      [client.delete('/none'), 'delete'],
      [client.getAcl('/none'), 'getAcl'],
      [client.watchChildren('/none'), 'getChildren2'],
      [client.getChildren('/none'), 'getChildren2'],
      [client.create('/none', null).then(() => client.create('/none/a/b')), 'create2'],
    ] as const;
    for (const [call, operation] of absent) {
      const path = operation === 'create2' ? '/none/a/b' : '/none';
      const error = await refusal(call, NoNodeError, { code: 'NO_NODE', path, operation });
      expect(error.zxid).toBeGreaterThanOrEqual(folder.zxid);
      expect(error.serverCode).toBe(-101);
      expect(error.message).toContain(path);
    }
    await refusal(client.create('/folder'), NodeExistsError, {
      code: 'NODE_EXISTS',
      path: '/folder',
      operation: 'create2',
    });
    await refusal(client.delete('/folder'), NotEmptyError, { code: 'NOT_EMPTY', path: '/folder' });
    await refusal(client.create('/ephemeral/child'), RefusedError, {
      code: 'NO_CHILDREN_FOR_EPHEMERALS',
      path: '/ephemeral/child',
    });
  });

  it('tells an absent node by null, not by an error', async () => {
    const client = await world.client();
    const absent = await client.stat('/n');
    expect(absent.stat).toBe(null);
    expect(absent.zxid).toBeGreaterThan(0n);
    expect(await client.exists('/n')).toBe(false);
    const { stat } = await client.create('/n', 'abc');
    expect((await client.stat('/n')).stat).toEqual(stat);
    expect(await client.exists('/n')).toBe(true);
  });

  it('gives a node that is created again a new identity', async () => {
    const client = await world.client();
    const first = await client.create('/n');
    await client.set('/n', 'x');
    await client.delete('/n');
    const second = await client.create('/n');
    expect(second.stat?.version).toBe(0);
    expect(second.stat?.czxid).toBeGreaterThan(first.stat?.czxid as bigint);
    const { ctime = 0, mtime = 0 } = second.stat ?? {};
    expect(ctime).toBeGreaterThan(0);
    expect(mtime).toBe(ctime);
  });

  it('refuses paths that are none, before anything is sent', async () => {
    const client = await world.client();
    const { replies } = client.counters;
    const bad = ['', 'relative', '/a/', '//', '/a//b', '/a/./b', '/a/../b', '/\0', '/\ud800', 7];
    for (const path of bad as string[]) {
      await refusal(client.get(path), InvalidArgumentError);
      await refusal(client.create(path), InvalidArgumentError);
      await refusal(client.delete(path), InvalidArgumentError);
      await refusal(client.watch(path), InvalidArgumentError);
      await refusal(client.addWatch(path), InvalidArgumentError);
      await refusal(client.ensurePath(path), InvalidArgumentError);
    }
    expect(client.counters.replies).toBe(replies);
  });
}
