// One node, and clients that reach it by different paths: a chroot in one, a longer root in the other.

import { FakeZooKeeper } from '@incumbent/zookeeper-testing';
import { describe, it } from 'vitest';
import type { ZooKeeper } from '../../zookeeper/src/index.ts';
import { connect } from '../../zookeeper/src/index.ts';
import type { ZooKeeperLayout } from '../src/backends/zookeeper/index.ts';
import { zookeeper } from '../src/backends/zookeeper/index.ts';
import { createElection } from '../src/index.ts';

async function stand(layout: ZooKeeperLayout) {
  const cleanUps: (() => Promise<unknown>)[] = [];
  const fake = await FakeZooKeeper.start({ tickTimeMs: 200, realTime: true });
  cleanUps.push(() => fake.close());
  const client = async (chroot: string): Promise<ZooKeeper> => {
    const made = await connect(`${fake.connectionString}${chroot}`, { sessionTimeout: 4_000 });
    cleanUps.push(() => made.close());
    return made;
  };
  // In the layout `node` the node itself is the leader's.
  await (await client('')).ensurePath(layout === 'node' ? '/app/inc' : '/app/inc/e');
  const candidate = async (id: string, chroot: string, root: string) => {
    const backend = zookeeper(await client(chroot), { layout, root, tickTime: 200 });
    const election = createElection({ name: 'e', backend, candidate: { id } });
    cleanUps.push(() => election.close());
    return election;
  };
  return {
    inside: await candidate('inside', '/app', '/inc'),
    outside: await candidate('outside', '', '/app/inc'),
    [Symbol.asyncDispose]: async () => {
      for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
    },
  };
}

const layouts = ['incumbent', 'recipe', 'golea', 'hadoop', 'node'] as const;

describe.concurrent.each(layouts)('the layout %s, spelled in two ways', (layout) => {
  it('shows, asks and follows the leader, whose place the other client spells differently', async ({
    expect,
  }) => {
    await using arena = await stand(layout);
    const { inside, outside } = arena;
    const first = await inside.campaign();
    const led = { state: 'led', token: first.token, leader: { id: 'inside' } };
    expect(await outside.leader()).toMatchObject(led);
    await first.proclaim({ addresses: ['10.0.0.1:80'] });
    expect(await outside.leader()).toMatchObject({ leader: { addresses: ['10.0.0.1:80'] } });
    // A writer with another spelling: the leader goes on knowing itself.
    await outside.drain('nobody', new Date(Date.now() + 60_000));
    await first.proclaim({ addresses: ['10.0.0.2:80'] });
    expect(first.isLeading()).toBe(true);
    const next = outside.campaign();
    expect((await outside.vacate()).changed).toBe(true);
    await new Promise<void>((resolve) => {
      if (first.signal.aborted) resolve();
      else first.signal.addEventListener('abort', () => resolve());
    });
    await first[Symbol.asyncDispose]();
    expect(await first.ended).toMatchObject({ reason: 'vacated', released: true });
    const second = await next;
    expect(second.predecessor).toMatchObject({ id: 'inside', clean: true, token: first.token });
    await second[Symbol.asyncDispose]();
  });
});
