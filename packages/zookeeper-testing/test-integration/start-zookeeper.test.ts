import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
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
    const config = await fileWith([
      ...['tickTime=250', 'initLimit=40', 'syncLimit=7', 'dataDir=/nonexistent', 'clientPort=2181'],
      ...['server.1=zk1:2888:3888', 'server.2=zk2:2888:3888', 'server.3=zk3:2888:3888'],
    ]);
    await using zookeeper = await startZooKeeper({ config, version: '3' });
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

  it('takes the text of a zoo.cfg too, or single settings', async () => {
    const config = 'tickTime=300\nclientPort=2181\nmaxClientCnxns=7\n';
    await using whole = await startZooKeeper({ config, heapMb: 48 });
    await using single = await startZooKeeper({ config: { maxClientCnxns: 8 } });
    const [one, other] = await Promise.all(
      [whole, single].map(async (each) => (await each.leader()).fourLetterWord('conf')),
    );
    expect(one).toContain('tickTime=300\n');
    expect(one).toContain('maxClientCnxns=7\n');
    expect(other).toContain('tickTime=200\n');
    expect(other).toContain('maxClientCnxns=8\n');
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

  it('names the line of a zoo.cfg that cannot be understood, and starts nothing', async () => {
    await expect(startZooKeeper({ config: 'tickTime=2000\ninitLimit=ten' })).rejects.toThrow(
      'config, line 2: "initLimit=ten": initLimit must be a whole number',
    );
    const path = await fileWith(['tickTime=2000', '', 'server.1=zk1']);
    await expect(startZooKeeper({ config: pathToFileURL(path) })).rejects.toThrow(
      `${path}, line 3: "server.1=zk1": a server is written as server.1=HOST:PORT:PORT`,
    );
    await expect(startZooKeeper({ config: 7 as never })).rejects.toThrow(
      'config must be a path, a URL or the text of a zoo.cfg, or an object of settings, not 7',
    );
  });

  it('refuses options that it does not have', async () => {
    const misspelt = { sevrers: 3 } as object;
    await expect(startZooKeeper(misspelt)).rejects.toThrow('did you mean servers?');
  });
});
