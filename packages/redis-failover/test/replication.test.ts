/** INFO of several versions of Redis, and what is read from it. */
import { describe, expect, test } from 'vitest';
import { NodeCommandError, NodeRefusedError, NodeUnreachableError } from '../src/redis/errors.ts';
import type { Ask } from '../src/redis/replication.ts';
import { parseInfo, readReplication } from '../src/redis/replication.ts';

const address = '10.0.0.7:6379';
const [history, former, none] = ['a'.repeat(40), 'b'.repeat(40), '0'.repeat(40)];

function info(fields: Readonly<Record<string, string | number>>): string {
  const all = { redis_mode: 'standalone', run_id: 'c'.repeat(40), loading: 0, ...fields };
  const lines = Object.entries(all).map(([name, value]) => `${name}:${value}`);
  return ['# Everything', ...lines, '', '# Keyspace', 'db0:keys=1,expires=0', ''].join('\r\n');
}

const primary = {
  role: 'master',
  connected_slaves: 2,
  slave0: 'ip=10.0.0.8,port=6379,state=online,offset=5000,lag=0',
  master_replid: history,
  master_replid2: none,
  master_repl_offset: 5000,
  second_repl_offset: -1,
};

const replica = {
  role: 'slave',
  master_host: '10.0.0.8',
  master_port: 6379,
  master_link_status: 'up',
  master_sync_in_progress: 0,
  slave_repl_offset: 4900,
  slave_priority: 50,
  connected_slaves: 0,
  master_replid: history,
  master_replid2: former,
  master_repl_offset: 5000,
  second_repl_offset: 4001,
};

/** A node that answers INFO and CONFIG GET. */
function node(text: string, settings: Readonly<Record<string, string>> = {}): Ask {
  return async ([command, , name = '']) => {
    if (command === 'INFO') return text;
    return settings[name] === undefined ? [] : [name, settings[name]];
  };
}

describe('replication', () => {
  test('of a primary', async () => {
    const settings = { 'replica-serve-stale-data': 'yes', 'min-replicas-to-write': '1' };
    expect(await readReplication(address, node(info(primary), settings))).toMatchObject({
      ...{ runId: 'c'.repeat(40), role: 'primary', primary: undefined, linkUp: true },
      ...{ replicationId: history, formerReplicationId: undefined, formerOffset: -1 },
      ...{ offset: 5000, syncing: false, loading: false, priority: 100 },
      ...{ servesStaleReads: true, connectedReplicas: 2, minReplicasToWrite: 1 },
    });
  });

  test('of a replica: its position is not what its link says', async () => {
    const settings = { 'replica-serve-stale-data': 'no', 'min-replicas-to-write': '0' };
    expect(await readReplication(address, node(info(replica), settings))).toMatchObject({
      ...{ role: 'replica', primary: '10.0.0.8:6379', linkUp: true, offset: 5000, priority: 50 },
      ...{ linkOffset: 4900, isAside: false, hasBacklog: false, isEmpty: false },
      ...{ replicationId: history, formerReplicationId: former, formerOffset: 4001 },
      ...{ servesStaleReads: false, minReplicasToWrite: 0 },
    });
  });

  test('of a replica that takes a whole copy, and of one that reads its disk', async () => {
    const down = { ...replica, master_link_status: 'down', master_sync_in_progress: 1 };
    expect(await readReplication(address, node(info(down)))).toMatchObject({
      ...{ linkUp: false, syncing: true, loading: false },
    });
    for (const loading of [{ loading: 1 }, { async_loading: 1 }]) {
      expect(await readReplication(address, node(info({ ...replica, ...loading })))).toMatchObject({
        loading: true,
      });
    }
  });

  test('of a replica that loads what it has copied, and of one that is far in its copy', async () => {
    const down = { ...replica, master_link_status: 'down', master_sync_in_progress: 1 };
    const emptied = { ...down, slave_repl_offset: 1, loading: 1 };
    expect(await readReplication(address, node(info(emptied)))).toMatchObject({ loadsCopy: true });
    for (const other of [
      { loading: 0 },
      { slave_repl_offset: 9 },
      { master_sync_in_progress: 0 },
    ]) {
      expect(await readReplication(address, node(info({ ...emptied, ...other })))).toMatchObject({
        loadsCopy: false,
      });
    }
    const percentOf = async (fields: Readonly<Record<string, number>>) =>
      (await readReplication(address, node(info({ ...down, ...fields })))).copiedPercent;
    expect(await percentOf({ master_sync_total_bytes: 900, master_sync_read_bytes: 360 })).toBe(40);
    expect(await percentOf({ master_sync_total_bytes: 900, master_sync_left_bytes: 90 })).toBe(90);
    // Without a disk the primary does not know how much it will be.
    expect(await percentOf({ master_sync_total_bytes: 0, master_sync_read_bytes: 77 })).toBe(
      undefined,
    );
    expect(await percentOf({ master_sync_in_progress: 0 })).toBe(undefined);
  });

  test('of a node that says next to nothing', async () => {
    const silent = await readReplication(address, node('role:master\r\n'));
    expect(silent).toEqual({
      ...{ runId: '', role: 'primary', replicationId: '', formerReplicationId: undefined },
      ...{ formerOffset: -1, offset: 0, linkOffset: undefined, hasBacklog: false, isEmpty: false },
      ...{ hasWritten: true, isAside: false, primary: undefined, linkUp: true, syncing: false },
      ...{ copiedPercent: undefined, loading: false, loadsCopy: false, servesStaleReads: true },
      ...{ priority: 100, connectedReplicas: 0, minReplicasToWrite: 0 },
    });
    expect(await readReplication(address, node('role:slave\nmaster_host:h\n'))).toMatchObject({
      ...{ role: 'replica', primary: 'h:0', linkOffset: 0, linkUp: false },
    });
  });

  test('of a node whose settings are answered oddly: the defaults are taken', async () => {
    for (const answer of ['yes', ['min-replicas-to-write'], ['min-replicas-to-write', 3]]) {
      const ask: Ask = async ([command]) => (command === 'INFO' ? info(primary) : answer);
      expect(await readReplication(address, ask)).toMatchObject({
        ...{ servesStaleReads: true, minReplicasToWrite: 0 },
      });
    }
  });

  test('how far a copy is, only where that can be', async () => {
    const syncing = { ...replica, master_sync_in_progress: 1 };
    const percentOf = async (fields: Readonly<Record<string, number>>) =>
      (await readReplication(address, node(info({ ...syncing, ...fields })))).copiedPercent;
    const total = { master_sync_total_bytes: 300 };
    expect(await percentOf({ ...total, master_sync_read_bytes: 0 })).toBe(0);
    expect(await percentOf({ ...total, master_sync_read_bytes: 300 })).toBe(100);
    expect(await percentOf({ ...total, master_sync_read_bytes: 299 })).toBe(99);
    expect(await percentOf({ ...total, master_sync_read_bytes: 301 })).toBe(undefined);
    expect(await percentOf({ ...total, master_sync_read_bytes: -1 })).toBe(undefined);
    expect(await percentOf(total)).toBe(undefined);
    expect(await percentOf({})).toBe(undefined);
    expect(await percentOf({ master_sync_total_bytes: 1, master_sync_read_bytes: 1 })).toBe(100);
  });

  test('of a node that is set aside', async () => {
    const aside = info({ ...replica, master_host: '127.0.0.1', master_port: 1 });
    expect(await readReplication(address, node(aside))).toMatchObject({
      ...{ role: 'replica', primary: '127.0.0.1:1', isAside: true, offset: 5000 },
    });
  });

  test('of one without a backlog', async () => {
    for (const [repl_backlog_active, hasBacklog] of [
      [1, true],
      [0, false],
    ] as const) {
      const text = info({ ...primary, repl_backlog_active });
      expect(await readReplication(address, node(text))).toMatchObject({ hasBacklog });
    }
  });

  test('of one without keys and functions', async () => {
    const without = (text: string) => text.replace('db0:keys=1,expires=0\r\n', '');
    const isEmpty = async (text: string) => (await readReplication(address, node(text))).isEmpty;
    expect(await isEmpty(without(info(primary)))).toBe(true);
    expect(await isEmpty(without(info({ ...primary, number_of_functions: 0 })))).toBe(true);
    expect(await isEmpty(without(info({ ...primary, number_of_functions: 1 })))).toBe(false);
    expect(await isEmpty(info(primary))).toBe(false);
    // A section that is missing does not say that there are no keys.
    expect(await isEmpty(without(info(primary)).replace('# Keyspace', ''))).toBe(false);
  });

  test.each([
    [
      'nothing since the start',
      { rdb_changes_since_last_save: 0, rdb_last_save_time: 1_000 },
      false,
    ],
    ['a change', { rdb_changes_since_last_save: 1, rdb_last_save_time: 1_000 }, true],
    ['a save', { rdb_changes_since_last_save: 0, rdb_last_save_time: 1_002 }, true],
    [
      'nothing since it was started, as Redis 7.0 counts',
      { rdb_changes_since_last_save: 0, rdb_last_save_time: 1_000, rdb_saves: 0 },
      false,
    ],
    [
      'something, and saved it in the second of its start',
      { rdb_changes_since_last_save: 0, rdb_last_save_time: 1_000, rdb_saves: 1 },
      true,
    ],
    [
      'something, and saved it before CONFIG RESETSTAT',
      { rdb_changes_since_last_save: 0, rdb_last_save_time: 1_030, rdb_saves: 0 },
      true,
    ],
    ['what no one can know', { rdb_changes_since_last_save: 0 }, true],
  ])('of one that has written %s', async (_, fields, hasWritten) => {
    const clock = { server_time_usec: 1_060_500_000, uptime_in_seconds: 60 };
    const text = info({ ...primary, ...clock, ...fields });
    expect(await readReplication(address, node(text))).toMatchObject({ hasWritten });
  });

  test('of a replica of an IPv6 address', async () => {
    const text = info({ ...replica, master_host: '2001:db8::8' });
    expect(await readReplication(address, node(text))).toMatchObject({
      primary: '[2001:db8::8]:6379',
    });
  });

  test('where CONFIG is unknown or forbidden, the defaults are taken', async () => {
    for (const error of [
      new NodeCommandError(address, 'CONFIG GET', "ERR unknown command 'CONFIG'"),
      new NodeRefusedError(address, 'it lacks rights', 'NOPERM'),
    ]) {
      const ask: Ask = async ([command]) => {
        if (command === 'CONFIG') throw error;
        return info(replica);
      };
      expect(await readReplication(address, ask)).toMatchObject({
        ...{ servesStaleReads: true, minReplicasToWrite: 0 },
      });
    }
  });

  test('a node that goes away meanwhile is no node with defaults', async () => {
    const error = new NodeUnreachableError(address, 'is gone');
    const ask: Ask = async ([command]) => {
      if (command === 'CONFIG') throw error;
      return info(replica);
    };
    await expect(readReplication(address, ask)).rejects.toBe(error);
  });

  test.each([
    ['a Sentinel', { redis_mode: 'sentinel' }, 'it is a Sentinel'],
    ['a node of a cluster', { ...primary, redis_mode: 'cluster' }, 'it is in cluster mode'],
    ['what is no Redis', {}, 'its INFO tells no role'],
  ])('%s is refused', async (_, fields, why) => {
    await expect(readReplication(address, node(info(fields)))).rejects.toMatchObject({
      code: 'NODE_REFUSED',
      address,
      message: expect.stringContaining(why),
    });
  });
});

test('values of an INFO may have colons', () => {
  const fields = parseInfo('executable:/opt/redis:7/redis-server\r\nempty:\r\n# a:b\r\n:x\r\n');
  expect([...fields]).toEqual([
    ['executable', '/opt/redis:7/redis-server'],
    ['empty', ''],
  ]);
});
