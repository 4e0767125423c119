import { describe } from 'vitest';
import { acl, permissions } from '../../../zookeeper/src/index.ts';
import {
  ActiveNotFoundError,
  clearParentNode,
  ensureParentNode,
  getActiveData,
  parentNodeExists,
} from '../../src/backends/zookeeper/index.ts';
import { breadcrumbPath, end, inArena, lockPath, parent, root } from './support.ts';

describe('H11: the data of the active member', () => {
  inArena('is what it has written', async ({ arena, expect }) => {
    const bytes = Uint8Array.of(1, 2, 3);
    const { election, client } = await arena.member('a', { zookeeper: { activeData: bytes } });
    const term = await election.campaign();
    expect(await getActiveData(client, parent)).toEqual(bytes);
    await end(term);
  });

  inArena('is an error when nobody is active', async ({ arena, expect }) => {
    const client = await arena.client();
    const error = await getActiveData(client, parent).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ActiveNotFoundError);
    expect(error).toMatchObject({ name: 'ActiveNotFoundError', code: 'NOT_ELECTED' });
  });
});

describe('H12: the parent node', () => {
  inArena('is there or not', async ({ arena, expect }) => {
    const client = await arena.client();
    expect(await parentNodeExists(client, parent)).toBe(false);
    await ensureParentNode(client, parent);
    expect(await parentNodeExists(client, parent)).toBe(true);
    expect(arena.data(parent)).toBe('');
  });

  inArena('is made with an ACL, which also nodes get that are there', async ({ arena, expect }) => {
    const client = await arena.client();
    await client.create(root);
    const wanted = [acl.world(permissions.all), acl.ip('127.0.0.1', permissions.read)];
    await ensureParentNode(client, parent, { acl: wanted });
    expect(arena.fake.tree().get(root)?.acl).toEqual(wanted);
    expect(arena.fake.tree().get(parent)?.acl).toEqual(wanted);
    await ensureParentNode(client, parent, { acl: [...wanted].reverse() });
    const writes = arena.fake.requests.filter(({ opcode }) => opcode === 'setAcl');
    expect(writes, 'the same list in another order is no change').toHaveLength(1);
  });

  inArena('without one, nodes that are there keep theirs', async ({ arena, expect }) => {
    const client = await arena.client();
    const guarded = [acl.ip('127.0.0.1')];
    await client.create(root, null, { acl: guarded });
    await ensureParentNode(client, parent);
    expect(arena.fake.tree().get(root)?.acl).toEqual(guarded);
  });

  inArena('with create: false has to be there', async ({ arena, expect }) => {
    const { election } = await arena.member('a', { zookeeper: { create: false } });
    await expect(election.campaign()).rejects.toMatchObject({
      code: 'STORE_UNSUITABLE',
      message: expect.stringContaining(parent),
    });
    await expect(election.init()).rejects.toMatchObject({ code: 'STORE_UNSUITABLE' });
    await ensureParentNode(await arena.client(), parent);
    await end(await election.campaign());
  });

  inArena('is cleared with all that is below it', async ({ arena, expect }) => {
    const client = await arena.client();
    await ensureParentNode(client, parent);
    await client.ensurePath(`${parent}/x/y`);
    expect(await clearParentNode(client, parent)).toBe(true);
    expect([...arena.fake.tree().keys()].filter((path) => path.startsWith(root))).toEqual([root]);
    expect(await clearParentNode(client, parent)).toBe(false);
  });

  inArena('is not cleared while somebody is active, whoever asks', async ({ arena, expect }) => {
    const { election, client } = await arena.member('a');
    const term = await election.campaign();
    for (const force of [false, true]) {
      for (const one of [client, await arena.client()]) {
        await expect(clearParentNode(one, parent, { force })).rejects.toMatchObject({
          code: 'REFUSED',
        });
      }
    }
    expect(term.isLeading()).toBe(true);
    expect(arena.data(lockPath)).toBe('a');
    await end(term);
  });

  inArena(
    'is not cleared while somebody may have to be fenced, unless by force',
    async ({ arena, expect }) => {
      const nn2 = await arena.hadoop('nn-2');
      await nn2.becomeActive();
      await nn2.crash();
      const client = await arena.client();
      await expect(clearParentNode(client, parent)).rejects.toMatchObject({
        code: 'REFUSED',
        message: expect.stringContaining('"nn-2"'),
      });
      expect(arena.data(lockPath), 'nothing is left behind').toBeUndefined();
      expect(arena.data(breadcrumbPath)).toBe('nn-2');
      expect(await clearParentNode(client, parent, { force: true })).toBe(true);
      expect(await parentNodeExists(client, parent)).toBe(false);
    },
  );

  inArena('whose lock could not be given back can be cleared later', async ({ arena, expect }) => {
    const client = await arena.client();
    await client.ensurePath(`${parent}/x`);
    const { faults } = arena.fake;
    const noAuth = { type: 'errorCode', code: -102 } as const;
    faults.next({ opcode: ['delete', 'multi'], times: 1_000 }, noAuth);
    await expect(clearParentNode(client, parent)).rejects.toMatchObject({
      message: expect.stringContaining(lockPath),
    });
    faults.clear();
    await client.delete(lockPath);
    expect(await clearParentNode(client, parent)).toBe(true);
  });

  inArena('nobody becomes active while it is cleared', async ({ arena, expect }) => {
    const client = await arena.client();
    await client.ensurePath(`${parent}/x`);
    const fault = arena.fake.faults.next({ opcode: 'delete', path: `${parent}/x` }, 'delay');
    const clearing = clearParentNode(client, parent);
    await fault.struck;
    const { election } = await arena.member('a');
    await expect(election.campaign({ wait: 0 })).rejects.toMatchObject({ code: 'NOT_ELECTED' });
    fault.release();
    expect(await clearing).toBe(true);
    await end(await election.campaign());
  });

  inArena('a lock whose making was not answered is given back', async ({ arena, expect }) => {
    const client = await arena.client();
    await ensureParentNode(client, parent);
    arena.fake.faults.next({ opcode: 'create2', path: lockPath }, 'dropAfter');
    await expect(clearParentNode(client, parent)).rejects.toMatchObject({ retryable: true });
    expect(arena.data(lockPath)).toBeUndefined();
    expect(await clearParentNode(client, parent)).toBe(true);
  });

  inArena('is not cleared by a client without a session', async ({ arena, expect }) => {
    const client = await arena.client();
    await client.close();
    await expect(clearParentNode(client, parent)).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringContaining('closed'),
    });
  });

  inArena('the paths are checked', async ({ arena, expect }) => {
    const client = await arena.client();
    for (const path of ['', '/', 'relative', '/a//b', '/a/', '/zookeeper/x', 7 as never]) {
      await expect(parentNodeExists(client, path)).rejects.toMatchObject({
        code: 'INVALID_OPTION',
      });
    }
  });
});
