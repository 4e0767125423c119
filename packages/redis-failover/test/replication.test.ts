/** What servers of several versions say of themselves, and what is made of it. */
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
  // What it has received; it has applied less.
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

  test('of a replica: what it has applied counts', async () => {
    const settings = { 'replica-serve-stale-data': 'no', 'min-replicas-to-write': '0' };
    expect(await readReplication(address, node(info(replica), settings))).toMatchObject({
      ...{ role: 'replica', primary: '10.0.0.8:6379', linkUp: true, offset: 4900, priority: 50 },
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
