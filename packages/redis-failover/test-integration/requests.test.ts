// Requested moves of the primary.
import type { TestContext } from 'vitest';
import { describe, expect, test } from 'vitest';
import { anyReplica } from '../src/layout.ts';
import type { HostAndPort, NodeAddress } from '../src/node-address.ts';
import { parseNodeAddress } from '../src/node-address.ts';
import { missing, useZooKeeper } from './support/servers.ts';
import { Stage } from './support/stage.ts';
import { lasting, until } from './support/waiting.ts';

const zooKeeper = useZooKeeper();

describe.skipIf(missing !== undefined).concurrent('a failover on request', () => {
  test('is acknowledged, and a writer loses nothing by it', async (context) => {
    const stage = await Stage.open(context, zooKeeper.server, { minReplicasToWrite: 1 });
    // A reply counts while the writer's view holds. With the default of 1 s a starved machine may
    // confirm its view too rarely, and the write would rightly be of unknown outcome.
    const settings = { clientView: '4s' } as const;
    stage.manager('one', settings);
    stage.manager('two', settings);
    const client = await stage.client();
    const writers = [await stage.writer(), await stage.ioredisWriter()];
    for (let round = 1; round <= 3; round += 1) {
      const { primary, term } = await stage.formed();
      for (const writer of writers) await writer.writes();
      const wanted = stage.set
        .except(primary as NodeAddress)
        .map(({ port }) => `127.0.0.1:${port}`);
      const target = wanted[round % wanted.length] as NodeAddress;
      const moved = await client.manualFailover(hostAndPort(target));
      expect(moved.primary).toBe(target);
      expect(moved.term).toBeGreaterThan(term);
      expect((await stage.record())?.primary).toBe(target);
      for (const writer of writers) {
        await writer.writes('a write to the new primary', ({ node }) => node === target);
      }
    }
    const { primary, term } = await stage.formed();
    const moved = await client.manualFailover();
    expect(moved.term).toBeGreaterThan(term);
    expect(moved.primary).not.toBe(primary);
    await stage.formed();
    await stage.verdict(...writers);
    // The primary answered all the time, so it has acknowledged all that it had executed.
    expect(writers.flatMap((writer) => writer.failures()).join('\n')).toBe('');
  });

  test('of a node that is not managed, or is down, is refused, and nothing changes', async (context) => {
    const stage = await Stage.open(context, zooKeeper.server);
    const { story } = stage.manager('one');
    const first = await stage.published();
    const client = await stage.client();
    await expect(client.manualFailover({ host: '127.0.0.1', port: 1 })).rejects.toMatchObject({
      code: 'REQUEST_REFUSED',
      message: expect.stringContaining('127.0.0.1:1'),
    });
    const [replica] = stage.set.except(first.primary as NodeAddress);
    await replica?.kill();
    const down = `127.0.0.1:${replica?.port}`;
    await story.told('judged', ({ node, state }) => node === down && state === 'unavailable');
    await expect(client.manualFailover(hostAndPort(down))).rejects.toMatchObject({
      code: 'REQUEST_REFUSED',
    });
    const { term, primary, former } = first;
    expect(await stage.reign()).toEqual({ term, primary, former });
  });

  test('of a node that is still copying waits for it, and says so', async (context) => {
    const { stage, client, first, second, copies } = await copying(context);
    const told: string[] = [];
    const asked = client.manualFailover(hostAndPort(second), {
      onProgress: (progress) => told.push(progress),
    });
    await until('it is told', () => told.length > 0);
    expect(told[0]).toMatch(new RegExp(`${second} is still copying the data`));
    expect(await stage.record()).toMatchObject({ primary: first });
    // A request for another node need not wait for that.
    await stage.set.command(first, 'SET', 'meanwhile', '1');
    await copies.end();
    expect(await asked).toMatchObject({ primary: second });
    expect(await stage.set.command(second, 'GET', 'meanwhile')).toBe('1');
  });

  test('of a node that is still copying when the time is up is refused, and the primary goes on', async (context) => {
    const { stage, client, first, second } = await copying(context);
    const { term } = await stage.published();
    const asked = client.manualFailover(hostAndPort(second), { timeout: '2s' });
    await expect(asked).rejects.toMatchObject({
      code: 'REQUEST_REFUSED',
      message: expect.stringMatching(/is still copying the data.*; nothing was changed within 2s/),
    });
    expect(await stage.record()).toMatchObject({ primary: first, term });
    expect((await stage.zk.getChildren(stage.paths.requests)).children).toEqual([]);
    await stage.set.command(first, 'SET', 'after', '1');
  });

  test('of who is the primary already changes nothing', async (context) => {
    const stage = await Stage.open(context, zooKeeper.server);
    stage.manager('one');
    const { primary, term } = await stage.published();
    const client = await stage.client();
    const answer = await client.manualFailover(hostAndPort(primary as NodeAddress));
    expect(answer).toEqual({ primary, term });
    expect((await stage.record())?.term).toBe(term);
  });

  test('that is made while no manager leads is carried out later, once', async (context) => {
    const stage = await Stage.open(context, zooKeeper.server);
    const before = stage.manager('before');
    const first = await stage.published();
    const client = await stage.client();
    await before.stop();
    const asked = client.manualFailover();
    await until('the request is there', async () => {
      return (await stage.zk.getChildren(stage.paths.requests)).children.length === 1;
    });
    const after = stage.manager('after');
    const { primary, term } = await asked;
    expect(primary).not.toBe(first.primary);
    expect(term).toBeGreaterThan(first.term);
    await stage.formed();
    expect((await stage.record())?.term).toBe(term);
    expect(after.story.all('moved').filter(({ reason }) => reason === 'request')).toHaveLength(1);
    expect((await stage.zk.getChildren(stage.paths.requests)).children).toEqual([]);
  });

  test('by `manual_failover` of the Ruby gem is carried out once, also later', async (context) => {
    const stage = await Stage.open(context, zooKeeper.server);
    const before = stage.manager('before');
    const first = await stage.published();
    const [target] = stage.set.except(first.primary as NodeAddress);
    const wanted = `127.0.0.1:${target?.port}`;
    await stage.zk.create(stage.paths.manualFailover, wanted);
    const second = await stage.published(wanted, first.term);
    await before.stop();
    await stage.zk.set(stage.paths.manualFailover, anyReplica);
    const after = stage.manager('after');
    const third = await stage.published(undefined, second.term);
    expect(third.primary).not.toBe(second.primary);
    await stage.formed();
    await after.stop();
    // The znode still holds the old request.
    const last = stage.manager('last');
    await last.story.told('elected');
    // Long enough for the move that must not come.
    await lasting(1_500);
    expect((await stage.record())?.term).toBe(third.term);
    expect(last.story.all('moved')).toEqual([]);
  });

  test('by `manual_failover` of an unknown node is not carried out, and told', async (context) => {
    const stage = await Stage.open(context, zooKeeper.server);
    const { story } = stage.manager('one');
    const first = await stage.published();
    await stage.zk.create(stage.paths.manualFailover, '10.0.0.99:6379');
    await story.told('trouble', ({ trouble }) => trouble.message.includes('10.0.0.99:6379'));
    await story.told('recovered');
    expect(await stage.record()).toMatchObject({ term: first.term, primary: first.primary });
    // Only that request was refused: the next one is served.
    await stage.zk.set(stage.paths.manualFailover, anyReplica);
    const next = await stage.published(undefined, first.term);
    expect(next.primary).not.toBe(first.primary);
  });
});

/** The second node copies the first one until it is told to end. */
async function copying(context: TestContext) {
  const stage = await Stage.open(context, zooKeeper.server, { replicas: 1 });
  stage.manager('one');
  await stage.formed();
  const [first, second] = stage.set.addresses as [NodeAddress, NodeAddress];
  const client = await stage.client();
  await stage.set.command(first, 'CONFIG', 'SET', 'repl-diskless-sync', 'no');
  await stage.set.command(first, 'CONFIG', 'SET', 'rdb-key-save-delay', 1_000_000);
  await stage.set.command(first, 'CONFIG', 'SET', 'repl-backlog-size', 16_384);
  await stage.set.command(second, 'CONFIG', 'SET', 'masterauth', 'wrong');
  await stage.set.command(second, 'CLIENT', 'KILL', 'TYPE', 'master');
  await stage.set.command(first, 'SET', 'big', 'x'.repeat(100_000));
  for (let i = 0; i < 60; i += 1) await stage.set.command(first, 'SET', `k${i}`, 'v');
  await stage.set.command(second, 'CONFIG', 'SET', 'masterauth', '');
  await until('it copies', async () => {
    const info = String(await stage.set.command(second, 'INFO', 'replication'));
    return info.includes('master_sync_in_progress:1');
  });
  const copies = {
    /** Ends the copy that takes a minute. The next one is quick. */
    async end() {
      await stage.set.command(first, 'CONFIG', 'SET', 'rdb-key-save-delay', 0);
      await stage.set.command(first, 'CLIENT', 'KILL', 'TYPE', 'replica');
    },
  };
  return { stage, client, first, second, copies };
}

function hostAndPort(address: NodeAddress): HostAndPort {
  return parseNodeAddress('a node of the test', address);
}
