import { describe, expect, test } from 'vitest';
import type { NodeAddress } from '../src/node-address.ts';
import { missing, useZooKeeper } from './support/servers.ts';
import { Stage } from './support/stage.ts';
import { until } from './support/waiting.ts';

const zooKeeper = useZooKeeper();

describe.skipIf(missing !== undefined).concurrent('the primary', () => {
  test('is replaced when it is killed, and comes back as a replica', async (context) => {
    const stage = await Stage.open(context, zooKeeper.server, { minReplicasToWrite: 1 });
    stage.manager('one');
    stage.manager('two');
    const first = await stage.published();
    const writers = [await stage.writer(), await stage.ioredisWriter()];
    for (const writer of writers) await writer.writes();

    const killed = stage.set.at(first.primary as NodeAddress);
    await killed.kill();
    const second = await stage.published(undefined, first.term);
    expect(second.primary).not.toBe(first.primary);
    for (const writer of writers) await writer.writes('a write to the new primary', isAt(second));

    await killed.start();
    await stage.formed();
    await until('it is listed as a replica', async () => {
      const nodes = await stage.nodes();
      return nodes?.slaves.length === 2 && nodes.unavailable.length === 0;
    });
    for (const writer of writers) await stage.verdict(writer);
  });

  test('is replaced five times in a row, and no acknowledged write is lost', async (context) => {
    const stage = await Stage.open(context, zooKeeper.server, { minReplicasToWrite: 1 });
    stage.manager('one');
    stage.manager('two');
    const writer = await stage.writer();
    for (let round = 1; round <= 5; round += 1) {
      const { primary, term } = await stage.formed();
      await writer.writes();
      const killed = stage.set.at(primary as NodeAddress);
      await killed.kill();
      await writer.writes('a write in a newer term', (each) => (each.term ?? 0) > term);
      await killed.start();
    }
    await stage.formed();
    await stage.verdict(writer);
  });

  test('is replaced when it stands still, and is a replica when it goes on', async (context) => {
    const stage = await Stage.open(context, zooKeeper.server);
    stage.manager('one');
    stage.manager('two');
    const first = await stage.published();
    const writer = await stage.writer();
    await writer.writes();

    const frozen = stage.set.at(first.primary as NodeAddress);
    await frozen.freeze();
    const second = await stage.published(undefined, first.term);
    await writer.writes('a write to the new primary', isAt(second));
    // Now it executes what clients had sent to it.
    frozen.thaw();
    await stage.formed();
    await writer.writes();
    await stage.verdict(writer);
  });

  test('is never a replica that is behind another one', async (context) => {
    const stage = await Stage.open(context, zooKeeper.server);
    stage.manager('one');
    const { primary, term } = await stage.published();
    const writer = await stage.writer();
    const [behind, good] = stage.set.except(primary as NodeAddress);
    if (behind === undefined || good === undefined) throw new Error('two replicas');
    // It runs and answers, and can no longer log in to the primary.
    await behind.command('CONFIG', 'SET', 'masterauth', 'unknown there');
    await behind.command('CLIENT', 'KILL', 'TYPE', 'master');
    await until('it is behind', async () => {
      const offset = async (server: typeof good) =>
        Number(/slave_repl_offset:(\d+)/.exec(String(await server.command('INFO')))?.[1]);
      return (await offset(behind)) < (await offset(good));
    });
    await writer.writes();
    await stage.set.at(primary as NodeAddress).kill();
    const next = await stage.published(undefined, term);
    expect(next.primary).toBe(`127.0.0.1:${good.port}`);
    await writer.writes('a write to the new primary', isAt(next));
    await behind.command('CONFIG', 'SET', 'masterauth', '');
    await stage.formed();
    await stage.verdict(writer);
  });

  test('is never a replica that is still being filled', async (context) => {
    const stage = await Stage.open(context, zooKeeper.server);
    const [primary, filling, good] = stage.set.servers;
    if (primary === undefined || filling === undefined || good === undefined) throw new Error();
    // The copy must not continue partially after a restart.
    await primary.command('CONFIG', 'SET', 'repl-backlog-size', 16_384);
    await primary.command(
      'EVAL',
      "for i = 1, 1000 do redis.call('SET', 'key-' .. i, string.rep('x', 1000)) end",
      0,
    );
    await good.linked();
    stage.manager('one');
    const { term } = await stage.published();
    const writer = await stage.writer();
    // At 20 ms a key the copy takes longer than the test.
    await primary.command('CONFIG', 'SET', 'rdb-key-save-delay', 20_000);
    await filling.kill();
    await filling.start();
    await filling.command('CONFIG', 'SET', 'replica-serve-stale-data', 'no');
    await until('it is being filled', async () =>
      String(await filling.command('INFO', 'replication')).includes('master_sync_in_progress:1'),
    );
    await until('clients are not sent there', async () =>
      (await stage.nodes())?.unavailable.includes(`127.0.0.1:${filling.port}`),
    );
    await writer.writes();
    await primary.freeze();
    const next = await stage.published(undefined, term);
    expect(next.primary).toBe(`127.0.0.1:${good.port}`);
    await primary.command('CONFIG', 'SET', 'rdb-key-save-delay', 0).catch(() => {});
    primary.thaw();
    await stage.formed();
    await stage.verdict(writer);
  });
});

function isAt({ primary, term }: { primary: NodeAddress | null; term: number }) {
  return (write: { node: NodeAddress; term: number | undefined }) =>
    write.node === primary && write.term === term;
}
