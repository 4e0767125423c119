import { describe, expect, test } from 'vitest';
import { acl } from '../../../zookeeper/src/index.ts';
import { candidateOf } from '../../src/backends/zookeeper/hadoop-format.ts';
import { activeDataOf } from '../../src/backends/zookeeper/index.ts';
import { breadcrumbPath, end, inArena, lockPath, parent, root } from './support.ts';

describe('our nodes as Hadoop’s members see them', () => {
  inArena(
    'H1: an ephemeral lock and a persistent breadcrumb with the same bytes, and no other node',
    async ({ arena, expect }) => {
      const { election, client } = await arena.member('nn-1');
      const term = await election.campaign();
      const tree = arena.fake.tree();
      expect([...tree.keys()].filter((path) => path.startsWith(root)).sort()).toEqual([
        '/hadoop-ha',
        '/hadoop-ha/ns1',
        '/hadoop-ha/ns1/ActiveBreadCrumb',
        '/hadoop-ha/ns1/ActiveStandbyElectorLock',
      ]);
      expect(arena.data(lockPath)).toBe('nn-1');
      expect(arena.data(breadcrumbPath)).toBe('nn-1');
      expect(tree.get(lockPath)?.stat.ephemeralOwner).toBe(client.session?.id);
      expect(tree.get(breadcrumbPath)?.stat.ephemeralOwner).toBe(0n);
      expect(term.token).toBe(tree.get(lockPath)?.stat.czxid);
      expect(tree.get(lockPath)?.acl).toEqual([{ perms: 31, scheme: 'world', id: 'anyone' }]);
      expect(tree.get(breadcrumbPath)?.acl).toEqual(tree.get(lockPath)?.acl);
      await end(term);
    },
  );

  inArena('H4: activeData is written as it is', async ({ arena, expect }) => {
    // HDFS: ActiveNodeInfo {nameserviceId: "ns1", namenodeId: "nn1", hostname: "h", port: 8020}.
    const bytes = Buffer.from('0a036e733112036e6e311a016820d43e', 'hex');
    const { election } = await arena.member('nn-1', { zookeeper: { activeData: bytes } });
    const term = await election.campaign();
    expect(Buffer.from(arena.fake.tree().get(lockPath)?.data ?? [])).toEqual(bytes);
    expect(Buffer.from(arena.fake.tree().get(breadcrumbPath)?.data ?? [])).toEqual(bytes);
    await end(term);
  });

  inArena('H15: the ACL is on every node that is made', async ({ arena, expect }) => {
    const client = await arena.client();
    await client.addAuth('digest', 'hdfs:secret');
    const { election } = await arena.member('nn-1', { client, zookeeper: { acl: 'creator' } });
    const term = await election.campaign();
    const expected = [acl.digest('hdfs', 'secret')];
    for (const path of [root, parent, lockPath, breadcrumbPath]) {
      expect([path, arena.fake.tree().get(path)?.acl]).toEqual([path, expected]);
    }
    await end(term);
  });

  inArena(
    'H10: a clean end deletes breadcrumb and lock in one transaction',
    async ({ arena, expect }) => {
      const { election } = await arena.member('nn-1');
      const term = await election.campaign();
      const before = arena.fake.requests.length;
      expect(await end(term)).toMatchObject({ reason: 'resigned', released: true });
      expect(arena.data(lockPath)).toBeUndefined();
      expect(arena.data(breadcrumbPath)).toBeUndefined();
      const writes = arena.fake.requests
        .slice(before)
        .filter(({ opcode, paths }) => opcode === 'multi' && paths.includes(breadcrumbPath));
      expect(writes.map(({ paths }) => paths)).toEqual([[parent, breadcrumbPath, lockPath]]);
    },
  );

  inArena(
    'H7, HB3: the breadcrumb is replaced by its version, in a transaction with a check of the lock',
    async ({ arena, expect }) => {
      const nn2 = await arena.hadoop('nn-2');
      await nn2.becomeActive();
      await nn2.crash();
      const { election } = await arena.member('nn-1', { zookeeper: { predecessorWait: 'off' } });
      const before = arena.fake.requests.length;
      const term = await election.campaign();
      expect(arena.fake.tree().get(breadcrumbPath)?.stat.version).toBe(1);
      const writes = arena.fake.requests
        .slice(before)
        .filter(({ paths, opcode }) => paths.includes(breadcrumbPath) && !isRead(opcode));
      expect(writes.map(({ opcode, paths }) => [opcode, paths])).toEqual([
        ['multi', [lockPath, parent, breadcrumbPath]],
      ]);
      await end(term);
    },
  );

  inArena(
    'the parent node stays as it is for them: what stands in it is ours',
    async ({ arena, expect }) => {
      const { election } = await arena.member('nn-1');
      const term = await election.campaign();
      expect(arena.data(parent)).toMatch(/^\{"incumbent":"queue"/);
      const nn2 = await arena.hadoop('nn-2');
      await end(term);
      expect(await nn2.becomeActive()).toBeUndefined();
    },
  );
});

describe('their nodes as we see them', () => {
  const zxid = 0x2an;

  test('a text is the id', () => {
    expect(candidateOf({ data: Buffer.from('nn-2') }, zxid)).toMatchObject({
      id: 'nn-2',
      incarnation: '0x2a',
    });
  });

  test('of a message, its words; and its bytes stay with it', () => {
    const bytes = Buffer.from('0a036e733112036e6e311a07686f73742d3031', 'hex');
    const leader = candidateOf({ data: bytes }, zxid);
    expect(leader.id).toBe('ns1 nn1 host-01');
    expect(Buffer.from(activeDataOf(leader) ?? [])).toEqual(bytes);
  });

  test('other bytes as digits, none as unknown', () => {
    expect(candidateOf({ data: Buffer.from([0, 255]) }, zxid).id).toBe('0x00ff');
    expect(candidateOf({ data: null }, zxid).id).toBe('unknown');
    expect(candidateOf({ data: Buffer.alloc(5_000, 1) }, zxid).id).toHaveLength(102);
  });
});

function isRead(opcode: string): boolean {
  return opcode === 'getData' || opcode === 'exists';
}
