// Managers and clients that cannot reach ZooKeeper or some of the Redis servers, while others can.
import type { TestContext } from 'vitest';
import { describe, expect, test } from 'vitest';
import { decodeReport } from '../src/layout.ts';
import type { NodeStrategy } from '../src/manager/options.ts';
import type { NodeAddress } from '../src/node-address.ts';
import { missing, useZooKeeper } from './support/servers.ts';
import { Stage } from './support/stage.ts';
import { lasting, until } from './support/waiting.ts';

const zooKeeper = useZooKeeper();
/** No wait is longer than a test may take. */
const quick = { maxFailures: 2, checkEvery: '200ms' } as const;

describe.skipIf(missing !== undefined).concurrent('cut off from the primary', () => {
  const verdicts: readonly (readonly [NodeStrategy, number, number])[] = [
    ['majority', 3, 2],
    ['majority', 2, 2],
    ['consensus', 3, 3],
    ['single', 3, 1],
  ];
  test.for(verdicts)(
    'by %s of %d managers it is replaced when %d of them are',
    async ([nodeStrategy, count, needed], context) => {
      const stage = await Stage.open(context, zooKeeper.server);
      const [primary] = stage.set.servers;
      if (primary === undefined) throw new Error('no servers');
      const address = `127.0.0.1:${primary.port}`;
      const links = await Promise.all(
        Array.from({ length: count }, () => stage.redisLink(address)),
      );
      for (const [index, link] of links.entries()) {
        stage.manager(
          `manager-${index}`,
          { ...quick, nodeStrategy, requiredNodeManagers: count },
          { reach: (node) => (node === address ? `127.0.0.1:${link.port}` : node) },
        );
      }
      const first = await stage.published();
      expect(first.primary).toBe(address);
      const writer = await stage.writer();
      for (const [index, link] of links.slice(0, needed).entries()) {
        expect((await stage.record())?.term).toBe(first.term);
        link.silence();
        if (index + 1 === needed) break;
        await until('it reports that the node is unavailable', async () => {
          const path = `${stage.paths.reports}/manager-${index}`;
          return decodeReport(path, (await stage.zk.get(path)).text).unavailable.includes(address);
        });
        // Long enough for the decision that must not come.
        await lasting(1_000);
      }
      const next = await stage.published(undefined, first.term);
      expect(next.primary).not.toBe(address);
      await writer.writes('a write to the new primary', ({ node }) => node === next.primary);
      for (const link of links) await link.pass();
      await stage.formed();
      await stage.verdict(writer);
    },
  );

  test('managers replace it, and every acknowledgement to a client that still reaches it holds', async (context) => {
    const { stage, silence, heal, stale, informed } = await halfCutOff(context, {
      clientView: '3s',
    });
    const first = await stage.published();
    silence(first.primary);
    const next = await stage.published(undefined, first.term);
    await informed.writes('a write to the new primary', ({ node }) => node === next.primary);
    await heal();
    await stage.verdict(stale, informed);
  });

  test('a client that hears nothing of a requested failover gets no false acknowledgement', async (context) => {
    const { stage, heal, stale, informed } = await halfCutOff(context, { clientView: '3s' });
    const client = await stage.client();
    const { primary } = await client.manualFailover();
    await informed.writes('a write to the new primary', ({ node }) => node === primary);
    await heal();
    await stage.verdict(stale, informed);
  });

  test('a client whose write arrives there late gets no acknowledgement', async (context) => {
    const { stage, silence, heal, stale, informed, staleLink } = await halfCutOff(context, {});
    const first = await stage.published();
    const link = staleLink(first.primary);
    // The write is on its way to the primary. That is replaced meanwhile, and has never seen the
    // write.
    link?.holdRequests();
    await until('a write is held', () => (link?.counters.bytesHeld ?? 0) > 0);
    silence(first.primary);
    const next = await stage.published(undefined, first.term);
    await informed.writes('a write to the new primary', ({ node }) => node === next.primary);
    link?.letGo();
    await heal();
    await stage.verdict(stale, informed);
  });
});

/**
 * One client hears nothing more from ZooKeeper from the moment when the managers begin to move the
 * primary.
 */
async function halfCutOff(context: TestContext, settings: { readonly clientView?: string }) {
  const stage = await Stage.open(context, zooKeeper.server);
  const linksToAll = async () => {
    const links = stage.set.addresses.map(
      async (address) => [address, await stage.redisLink(address)] as const,
    );
    return Object.fromEntries(await Promise.all(links));
  };
  const [managersLinks, staleLinks] = [await linksToAll(), await linksToAll()];
  const zooKeeperLink = await stage.zooKeeperLink();
  let isBegun = false;
  stage.manager('manager', settings, {
    reach: (node) => `127.0.0.1:${managersLinks[node]?.port}`,
    async onStep(step) {
      if (isBegun && step === 'before revoke') zooKeeperLink.silence();
      // No other node has the writes that a primary takes meanwhile if it was not paused.
      if (isBegun && step === 'before redirect') await lasting(300);
    },
  });
  await stage.published();
  // Without a pause, because the writes between two steps of a move are the ones that matter.
  const stale = await stage.writer({ zooKeeper: zooKeeperLink, redis: staleLinks }, 0);
  const informed = await stage.writer();
  for (const writer of [stale, informed]) await writer.writes();
  isBegun = true;
  return {
    ...{ stage, stale, informed },
    /** From here on the managers do not reach this node. */
    silence: (node: NodeAddress | null) => managersLinks[node ?? '']?.silence(),
    staleLink: (node: NodeAddress | null) => staleLinks[node ?? ''],
    /** All reach each other again, and write. */
    async heal() {
      for (const link of Object.values(managersLinks)) await link.pass();
      await zooKeeperLink.pass();
      await stage.formed();
      for (const writer of [stale, informed]) await writer.writes();
    },
  };
}

describe.skipIf(missing !== undefined).concurrent('cut off from ZooKeeper', () => {
  test('the elected manager does nothing, and another one takes over', async (context) => {
    const stage = await Stage.open(context, zooKeeper.server);
    const link = await stage.zooKeeperLink();
    const cut = stage.manager('cut', { zookeeper: link.connectionString });
    await cut.story.told('elected');
    const first = await stage.published();
    stage.manager('other');
    const writer = await stage.writer();
    await writer.writes();
    link.silence();
    await stage.set.at(first.primary as NodeAddress).kill();
    const next = await stage.published(undefined, first.term);
    expect(next.manager).toBe('other');
    await writer.writes('a write to the new primary', ({ node }) => node === next.primary);
    await link.pass();
    await cut.story.told('ousted');
    expect(cut.story.all('moved')).toEqual([]);
    await until('it reports again', async () => stage.zk.exists(`${stage.paths.reports}/cut`));
    await stage.formed();
    await stage.verdict(writer);
  });

  test('a manager whose session has expired reports and decides again', async (context) => {
    const stage = await Stage.open(context, zooKeeper.server);
    const link = await stage.zooKeeperLink();
    const only = stage.manager('only', { zookeeper: link.connectionString });
    const first = await stage.published();
    link.silence();
    await until('its session is over', async () => {
      return !(await stage.zk.exists(`${stage.paths.reports}/only`));
    });
    await stage.set.at(first.primary as NodeAddress).kill();
    await link.pass();
    const next = await stage.published(undefined, first.term);
    expect(next.manager).toBe('only');
    expect(only.story.all('elected').length).toBeGreaterThan(1);
    expect(BigInt(next.token)).toBeGreaterThan(BigInt(first.token));
    expect(await stage.zk.exists(`${stage.paths.reports}/only`)).toBe(true);
  });

  test('all managers do nothing, and do it when it is back', async (context) => {
    const stage = await Stage.open(context, zooKeeper.server);
    const link = await stage.zooKeeperLink();
    const managers = ['one', 'two'].map((id) =>
      stage.manager(id, { ...quick, zookeeper: link.connectionString }),
    );
    const first = await stage.published();
    const writer = await stage.writer();
    await writer.writes();
    link.cut();
    await stage.set.at(first.primary as NodeAddress).kill();
    for (const { story } of managers) {
      await story.told('sight', ({ sight }) => sight.state === 'unavailable');
    }
    expect(await stage.set.roles()).toMatchObject(
      Object.fromEntries(stage.set.addresses.slice(1).map((address) => [address, 'replica'])),
    );
    await link.pass();
    const next = await stage.published(undefined, first.term);
    await writer.writes('a write to the new primary', ({ node }) => node === next.primary);
    await stage.verdict(writer);
  });

  test('of too few managers nothing is done', async (context) => {
    const stage = await Stage.open(context, zooKeeper.server);
    const settings = { ...quick, requiredNodeManagers: 2 };
    const one = stage.manager('one', settings);
    await one.story.told('trouble', ({ trouble }) => trouble.code === 'TOO_FEW_MANAGERS');
    expect(await stage.nodes()).toBeUndefined();
    const two = stage.manager('two', settings);
    const first = await stage.published();
    await two.stop();
    await stage.set.at(first.primary as NodeAddress).kill();
    await one.story.told('sight', ({ sight }) => sight.state === 'unavailable');
    // Long enough for the decision that must not come.
    await lasting(1_000);
    const { term, primary, former } = first;
    expect(await stage.reign()).toEqual({ term, primary, former });
    expect(one.manager.status.trouble?.code).toBe('TOO_FEW_MANAGERS');
    stage.manager('three', settings);
    const next = await stage.published(undefined, first.term);
    expect(next.primary).not.toBe(first.primary);
  });
});
