import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from '@incumbent/zookeeper';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ServerUnavailableError, serverAvailable, startZooKeeper } from '../src/index.ts';
import { needServers } from './server-support.ts';

async function fileWith(lines: readonly string[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'zoo-cfg-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const path = join(folder, 'zoo.cfg');
  await writeFile(path, lines.join('\n'));
  return path;
}

describe('startZooKeeper', () => {
  needServers();

  it('starts one server, of which nothing is left after the block', async () => {
    let pid: number;
    {
      await using zookeeper = await startZooKeeper();
      expect(zookeeper.servers).toHaveLength(1);
      expect(zookeeper.version).toMatch(/^\d+\.\d+\.\d+$/);
      const server = await zookeeper.leader();
      expect(server).toBe(zookeeper.servers[0]);
      await using client = await connect(zookeeper.connectionString);
      await client.create('/a', 'x');
      await server.restart();
      expect((await client.get('/a')).text).toBe('x');
      pid = server.pid;
    }
    expect(existsSync(`/proc/${pid}/cmdline`)).toBe(false);
  });

  it('starts the ensemble of a zoo.cfg on ports of its own', async () => {
    const zooCfg = await fileWith([
      ...['tickTime=250', 'initLimit=40', 'syncLimit=7', 'dataDir=/nonexistent', 'clientPort=2181'],
      ...['server.1=zk1:2888:3888', 'server.2=zk2:2888:3888', 'server.3=zk3:2888:3888'],
    ]);
    await using zookeeper = await startZooKeeper({ zooCfg, version: '3' });
    expect(zookeeper.servers).toHaveLength(3);
    const leader = await zookeeper.leader();
    const configuration = await leader.fourLetterWord('conf');
    expect(configuration).toContain('tickTime=250\n');
    expect(configuration).toContain('syncLimit=7\n');
    // Of a tick, as ZooKeeper has it by default.
    expect(configuration).toContain('minSessionTimeout=500\n');
    await using client = await connect(zookeeper.connectionString);
    await client.create('/a', 'x');
    await leader.kill();
    expect(await zookeeper.leader()).not.toBe(leader);
    expect((await client.get('/a')).text).toBe('x');
  });

  it('says where another version comes from', async () => {
    const options = { version: '3.0' };
    const missing = startZooKeeper(options);
    await expect(missing).rejects.toThrow(ServerUnavailableError);
    await expect(missing).rejects.toThrow(/version 3\.0 .* is asked for, and .*\.jar is 3\.\d/);
    expect(serverAvailable(options)).toContain('ZOOKEEPER_HOME or the option zookeeperHome');
  });
});

describe('without ZooKeeper', () => {
  it('says what to install, and leaves nothing behind', async () => {
    const javaPath = process.execPath; // any program
    const missing = startZooKeeper({ javaPath, zookeeperHome: '/nonexistent' });
    await expect(missing).rejects.toMatchObject({ code: 'SERVER_UNAVAILABLE' });
    await expect(missing).rejects.toThrow(/unpacked binary distribution of ZooKeeper/);
  });

  it('refuses options that it does not have', async () => {
    const misspelt = { sevrers: 3 } as object;
    await expect(startZooKeeper(misspelt)).rejects.toThrow('did you mean servers?');
  });
});
