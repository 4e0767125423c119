import { describe } from 'vitest';
import { activeDataOf } from '../../src/backends/zookeeper/index.ts';
import type { UncleanLeader, View } from '../../src/record/record.ts';
import {
  aborted,
  background,
  breadcrumbPath,
  end,
  inArena,
  lockPath,
  parent,
  until,
} from './support.ts';

/** Hadoop's members and ours, one after the other. */
describe('while one of theirs is active', () => {
  inArena(
    'it is seen to lead, with its data, once it has written its breadcrumb',
    async ({ arena, expect }) => {
      const nn2 = await arena.hadoop('nn-2');
      const { election } = await arena.member('a');
      const views: View[] = [];
      const stop = new AbortController();
      const watching = background(
        (async () => {
          for await (const view of election.observe({ signal: stop.signal })) views.push(view);
        })(),
      );
      await until('vacant', () => views.at(-1)?.state === 'vacant');
      await nn2.takeLock();
      expect((await election.leader()).state, 'before it is active').toBe('vacant');
      await nn2.writeBreadcrumb();
      await until('led', () => views.at(-1)?.state === 'led');
      const { leader, token } = views.at(-1) as View;
      expect(leader?.id).toBe('nn-2');
      expect(Buffer.from(activeDataOf(leader as UncleanLeader) ?? []).toString()).toBe('nn-2');
      expect(token).toBe(arena.fake.tree().get(lockPath)?.stat.czxid);
      await nn2.crash();
      await until('vacant', () => views.at(-1)?.state === 'vacant');
      stop.abort();
      await watching;
      expect(views.map(({ state }) => state)).toEqual(['vacant', 'led', 'vacant']);
    },
  );

  inArena('what it cannot be told is refused by name', async ({ arena, expect }) => {
    const nn2 = await arena.hadoop('nn-2');
    await nn2.becomeActive();
    const { election } = await arena.member('a');
    for (const refused of [
      () => election.vacate(),
      () => election.transfer('a'),
      () => election.end(),
    ]) {
      await expect(refused()).rejects.toMatchObject({
        code: 'REFUSED',
        message: expect.stringContaining('"nn-2"'),
      });
    }
    await expect(election.candidates()).rejects.toMatchObject({ code: 'MISUSE' });
    expect(arena.data(lockPath)).toBe('nn-2');
    expect(arena.data(parent)).toBe('');
  });

  inArena(
    'force deletes its lock, and the next of ours waits for it and fences it',
    async ({ arena, expect }) => {
      const nn2 = await arena.hadoop('nn-2');
      await nn2.becomeActive();
      const { election } = await arena.member('a');
      const fenced: string[] = [];
      const following = background(
        election.campaign({ onUnclean: ({ id }) => void fenced.push(id) }),
      );
      const operator = await arena.member('operator');
      expect(await operator.election.vacate({ force: true })).toMatchObject({ changed: true });
      const term = await following;
      expect(fenced).toEqual(['nn-2']);
      await end(term);
    },
  );

  inArena('a drain does not make its breadcrumb one of ours', async ({ arena, expect }) => {
    const { election: a, client } = await arena.member('a');
    const first = await a.campaign();
    arena.fake.expireSession(client.session?.id as bigint);
    await end(first);
    // One of ours ended unclean. One of theirs has fenced it and leads. The record
    // still names ours.
    const nn2 = await arena.hadoop('nn-2');
    expect(await nn2.becomeActive()).toBe('a');
    const { election: b } = await arena.member('b');
    await b.drain('z', new Date(Date.now() + 3_600_000));
    expect(await b.leader()).toMatchObject({ state: 'led', leader: { id: 'nn-2' } });
    await nn2.crash();
    const fenced: string[] = [];
    const term = await b.campaign({ onUnclean: ({ id }) => void fenced.push(id) });
    expect(fenced).toEqual(['nn-2']);
    expect(term.predecessor).toMatchObject({ id: 'nn-2', clean: false });
    expect((await b.history()).map(({ id, why }) => [id, why])).toEqual([
      ['a', 'unclean'],
      ['nn-2', 'unclean'],
    ]);
    await end(term);
  });

  inArena('a drain after its end does not either', async ({ arena, expect }) => {
    const nn2 = await arena.hadoop('nn-2');
    await nn2.becomeActive();
    await nn2.crash();
    const { election: a } = await arena.member('a');
    await a.drain('z', new Date(Date.now() + 3_600_000));
    const fenced: string[] = [];
    const term = await a.campaign({ onUnclean: ({ id }) => void fenced.push(id) });
    expect(fenced).toEqual(['nn-2']);
    await end(term);
  });
});

describe('one after the other', () => {
  inArena('theirs after ours: they fence whom the breadcrumb names', async ({ arena, expect }) => {
    const { election, client } = await arena.member('a');
    const term = await election.campaign();
    arena.fake.expireSession(client.session?.id as bigint);
    await end(term);
    const nn2 = await arena.hadoop('nn-2');
    expect(await nn2.becomeActive()).toBe('a');
    expect(arena.data(breadcrumbPath)).toBe('nn-2');
  });

  inArena(
    'ours after theirs that has fenced ours and quit: waited for, not fenced again',
    async ({ arena, expect }) => {
      const { election: a, client } = await arena.member('a');
      const first = await a.campaign();
      arena.fake.expireSession(client.session?.id as bigint);
      await end(first);
      const nn2 = await arena.hadoop('nn-2');
      await nn2.becomeActive();
      await nn2.quit();
      const { election: b } = await arena.member('b');
      const fenced: string[] = [];
      const from = performance.now();
      const term = await b.campaign({ onUnclean: ({ id }) => void fenced.push(id) });
      expect(performance.now() - from).toBeGreaterThanOrEqual(b.timing.beliefMs);
      expect(fenced).toEqual([]);
      await end(term);
    },
  );

  inArena(
    'a breadcrumb that one of theirs writes without the lock ends our term',
    async ({ arena, expect }) => {
      const { election } = await arena.member('a');
      const term = await election.campaign();
      const nn2 = await arena.hadoop('nn-2');
      await nn2.writeBreadcrumb();
      await aborted(term.signal);
      expect((await end(term)).reason).toBe('superseded');
      expect(arena.data(breadcrumbPath), 'whom the next one has to fence').toBe('nn-2');
      const fenced: string[] = [];
      const again = await election.campaign({ onUnclean: ({ id }) => void fenced.push(id) });
      expect(fenced).toEqual(['nn-2']);
      await end(again);
    },
  );

  inArena('and so does one that is written while we take over', async ({ arena, expect }) => {
    const nn2 = await arena.hadoop('nn-2');
    await nn2.takeLock();
    const { election: a } = await arena.member('a', { zookeeper: { predecessorWait: 'off' } });
    const operator = await arena.client();
    await nn2.writeBreadcrumb();
    await operator.delete(lockPath);
    const fenced: string[] = [];
    const term = await a.campaign({
      async onUnclean({ id }) {
        fenced.push(id);
        // It had begun before its lock was deleted.
        if (fenced.length === 1) await nn2.writeBreadcrumb();
      },
    });
    expect(fenced).toEqual(['nn-2', 'nn-2']);
    await end(term);
  });

  inArena('also when nobody had to be fenced before', async ({ arena, expect }) => {
    const { election: a } = await arena.member('a', { zookeeper: { delayAfterWin: 500 } });
    const nn2 = await arena.hadoop('nn-2');
    const fenced: string[] = [];
    const campaign = background(a.campaign({ onUnclean: ({ id }) => void fenced.push(id) }));
    await until('it has the lock', () => arena.data(lockPath) !== undefined);
    await nn2.writeBreadcrumb();
    const term = await campaign;
    expect(fenced).toEqual(['nn-2']);
    await end(term);
  });

  inArena(
    'the node of the election with data that is not ours is left alone',
    async ({ arena, expect }) => {
      const { election, client } = await arena.member('a');
      await client.ensurePath(parent);
      await client.set(parent, 'something else');
      await expect(election.campaign()).rejects.toMatchObject({
        code: 'STORE_UNSUITABLE',
        message: expect.stringContaining(parent),
      });
      expect(arena.data(parent)).toBe('something else');
      expect(arena.data(lockPath)).toBeUndefined();
    },
  );
});
