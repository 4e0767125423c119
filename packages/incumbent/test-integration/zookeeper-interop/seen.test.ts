import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { ZooKeeperPeer as Layout } from '@incumbent/servers/interop';
import { zooKeeperLayouts as layouts, Member, peerCommand } from '@incumbent/servers/interop';
import type { TestContext } from 'vitest';
import { describe, it, vi } from 'vitest';
import { FencedLog } from '../../../cli/src/trial/index.ts';
import type { View } from '../../src/index.ts';
import { ElectionEndedError } from '../../src/index.ts';
import { OurCandidate, sessionMs } from './support/our-candidate.ts';
import { placesOf, watchersOf } from './support/places.ts';
import { requirePeer, useStage } from './support/stage.ts';

const stage = useStage({ peers: ['curator-latch'] });
const patiently = { timeout: 30_000, interval: 10 };

const uuid = '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}';
/** As the other libraries write them, and as we must. */
const names: Readonly<Record<Layout, RegExp>> = {
  kazoo: /^[0-9a-f]{32}__lock__\d{10}$/,
  'curator-latch': new RegExp(`^_c_${uuid}-latch-\\d{10}$`),
  'curator-selector': new RegExp(`^_c_${uuid}-lock-\\d{10}$`),
};
const everybody = [{ perms: 31, scheme: 'world', id: 'anyone' }];

/** One election, whose members are known by how they are called: `ours-1`, `theirs-2`. */
function hold(layout: Layout, context: TestContext) {
  requirePeer(context, layout);
  const { address, directory, server } = stage();
  const path = `/seen/${layout}-${randomUUID()}`;
  const log = new FencedLog(join(directory, `${path.slice(6)}.log`));
  context.onTestFinished(() => log.close());
  const dispose = <T extends AsyncDisposable>(member: T): T => {
    context.onTestFinished(() => member[Symbol.asyncDispose]());
    return member;
  };
  return {
    path,
    log,
    server,
    ours: async (id: string) => dispose(await OurCandidate.connect({ address, layout, path, id })),
    theirs: async (id: string) =>
      dispose(
        await Member.start(peerCommand(layout, directory), {
          ...{ address, path, id, sessionMs },
          log: log.path,
        }),
      ),
    /** Waits until one of theirs has begun to work. @returns its token */
    theirsLead: async (id: string): Promise<bigint> =>
      vi.waitFor(() => {
        context.expect(log.judge.newest?.candidate).toBe(id);
        return log.judge.newest?.token as bigint;
      }, patiently),
  };
}

describe.for(layouts)('%s', (layout) => {
  it.concurrent('its members see us, and we see them: we came first', async (context) => {
    const { expect } = context;
    const { ours, theirs, theirsLead, path } = hold(layout, context);
    const [a, b] = await Promise.all([ours('ours-1'), theirs('theirs-2')]);
    const term = await a.campaign();
    await b.join();

    expect(await b.contenders()).toEqual({ leader: 'ours-1', ids: ['ours-1', 'theirs-2'] });
    expect(await a.ids()).toEqual(['ours-1', 'theirs-2']);
    const views: View[] = [];
    const observed = (async () => {
      for await (const view of a.election.observe()) {
        views.push(view);
        if (view.leader?.id === 'theirs-2') return;
      }
    })();
    await vi.waitFor(() => expect(views.at(-1)?.leader?.id).toBe('ours-1'), patiently);

    await term[Symbol.asyncDispose]();
    const token = await theirsLead('theirs-2');
    await observed;
    expect(views.at(-1)).toMatchObject({ state: 'led', token });
    expect(token).toBeGreaterThan(term.token);
    expect(await b.contenders()).toEqual({ leader: 'theirs-2', ids: ['theirs-2'] });
    const [place] = await placesOf(a.client, path);
    expect(place).toMatchObject({ data: 'theirs-2', czxid: token });
  });

  it.concurrent('its members see us, and we see them: they came first', async (context) => {
    const { expect } = context;
    const { ours, theirs, theirsLead } = hold(layout, context);
    const [a, b] = await Promise.all([theirs('theirs-1'), ours('ours-2')]);
    await a.join();
    const token = await theirsLead('theirs-1');
    const { term } = await b.join();

    expect(await a.contenders()).toEqual({ leader: 'theirs-1', ids: ['theirs-1', 'ours-2'] });
    expect(await b.ids()).toEqual(['theirs-1', 'ours-2']);
    expect(await b.election.leader()).toMatchObject({
      state: 'led',
      token,
      leader: { id: 'theirs-1' },
    });

    await a.resign();
    const won = await term;
    expect(won.token).toBeGreaterThan(token);
    expect(await b.election.leader()).toMatchObject({ state: 'led', leader: { id: 'ours-2' } });
    await a.join();
    expect(await a.contenders()).toEqual({ leader: 'ours-2', ids: ['ours-2', 'theirs-1'] });
  });

  it.concurrent('names, data and access are theirs, and an end of the election ends it for us alone', async (context) => {
    const { expect } = context;
    const { ours, theirs, theirsLead, path, log } = hold(layout, context);
    const [a, b, c] = await Promise.all([theirs('theirs-1'), ours('ours-2'), theirs('theirs-3')]);
    await a.join();
    const { term } = await b.join();
    await c.join();
    const token = await theirsLead('theirs-1');

    const places = await placesOf(b.client, path);
    expect(places.map(({ data }) => data)).toEqual(['theirs-1', 'ours-2', 'theirs-3']);
    expect(places.map(({ sequence }) => sequence)).toEqual([0, 1, 2]);
    for (const { name, acl } of places) {
      expect(name).toMatch(names[layout]);
      expect(acl).toEqual(everybody);
    }
    // Where theirs have random digits, ours have a mark.
    expect(places.map(({ name }) => name.includes('e1ec70'))).toEqual([false, true, false]);

    await b.election.end();
    await expect(term).rejects.toThrow(ElectionEndedError);
    // One of theirs whose place is deleted does not look, and would go on beside the next one.
    expect(await placesOf(b.client, path)).toEqual([places[0], places[2]]);
    log.read();
    expect(log.judge.terms.map((each) => each.token)).toEqual([token]);
  });

  it.concurrent('each follows the one before it, and a member that leaves elects no other', async (context) => {
    const { expect } = context;
    const { ours, theirs, theirsLead, path, log, server } = hold(layout, context);
    const [a, b, c, d] = await Promise.all([
      theirs('theirs-1'),
      ours('ours-2'),
      theirs('theirs-3'),
      ours('ours-4'),
    ]);
    await a.join();
    // Not places: they belong to another program that uses the election's node.
    await b.client.create(`${path}/zz-notes`, 'not a candidate');
    await b.client.create(`${path}/zz-`, '', { sequential: true });
    await b.join();
    await c.join();
    const { term } = await d.join();
    const token = await theirsLead('theirs-1');
    expect(await d.ids()).toEqual(['theirs-1', 'ours-2', 'theirs-3', 'ours-4']);

    /** Each waiting member is told of the end of the one before it, and of no other. */
    const eachFollows = async (ids: readonly string[]) => {
      const places = (await placesOf(d.client, path)).filter(({ data }) => data !== '');
      expect(places.map(({ data }) => data)).toEqual(ids);
      const sessions = new Set(places.map(({ session }) => session));
      for (const [index, { name, session }] of places.entries()) {
        const watchers = await watchersOf(server, `${path}/${name}`);
        // A watch cannot be taken back. A member that has left may be told once more, and
        // takes no notice.
        const others = watchers.filter((each) => each !== session && sessions.has(each));
        const next = places[index + 1]?.session;
        expect(others).toEqual(next === undefined ? [] : [next]);
      }
      expect(await watchersOf(server, path)).toEqual([]);
    };
    await vi.waitFor(() => eachFollows(['theirs-1', 'ours-2', 'theirs-3', 'ours-4']), patiently);
    await b.withdraw();
    await vi.waitFor(() => eachFollows(['theirs-1', 'theirs-3', 'ours-4']), patiently);
    await c.resign();
    await vi.waitFor(() => eachFollows(['theirs-1', 'ours-4']), patiently);
    log.read();
    expect(log.judge.terms.map((each) => each.token)).toEqual([token]);

    await a.resign();
    const won = await term;
    expect(won.isLeading()).toBe(true);
    expect(log.judge.terms).toHaveLength(1);
  });
});
