/** Ceph's S3 gateway (RGW) with the least that it needs: a monitor, and one OSD that keeps all in memory. */
import { spawn, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { freePorts } from '@incumbent/zookeeper-testing';
import { LocalServer, makeServerDirectory, waitFor } from './local-server.ts';
import type { S3Credentials } from './s3/index.ts';

const programs = ['ceph', 'ceph-authtool', 'ceph-mon', 'ceph-osd', 'monmaptool', 'radosgw'];

/** Why no Ceph can be started here; undefined when it can. */
export function cephAvailable(): string | undefined {
  const missing = programs.filter((name) => spawnSync(name, ['--version']).status !== 0);
  if (missing.length === 0) return undefined;
  return `${missing.join(', ')} not installed (apt-get install ceph-mon ceph-osd radosgw)`;
}

export class CephGateway implements AsyncDisposable {
  readonly port: number;
  readonly credentials: S3Credentials;
  /** `ceph version 16.2.15 …` */
  readonly version: string;
  readonly #directory: string;
  readonly #servers: readonly LocalServer[];

  constructor(
    port: number,
    credentials: S3Credentials,
    directory: string,
    servers: readonly LocalServer[],
  ) {
    this.port = port;
    this.credentials = credentials;
    this.#directory = directory;
    this.#servers = servers;
    this.version = spawnSync('radosgw', ['--version'], { encoding: 'utf8' }).stdout.trim();
  }

  /** For `endpoint` of a client. */
  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async close(): Promise<void> {
    for (const server of this.#servers) await server.close();
    await rm(this.#directory, { recursive: true, force: true, maxRetries: 3 });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** Takes about 15 s, and its first requests take some more. */
export async function startCephGateway(): Promise<CephGateway> {
  const directory = await makeServerDirectory('ceph');
  const [monitorPort = 0, port = 0] = await freePorts(2);
  const at = (...parts: string[]) => join(directory, ...parts);
  const [cluster, osd] = [randomUUID(), randomUUID()];
  const credentials = { accessKeyId: 'AK', secretAccessKey: 'the-secret-key' };
  for (const name of ['mon', 'osd', 'rgw']) await mkdir(at(name, 'data'), { recursive: true });
  const [keyring, map, configuration] = [at('keyring'), at('map'), at('ceph.conf')];
  await writeFile(configuration, configurationOf({ at, cluster, keyring, monitorPort, port }));
  const withConfiguration = ['-c', configuration];
  const servers: LocalServer[] = [];
  const start = async (
    program: string,
    args: readonly string[],
    home: string,
    isReady: () => Promise<boolean>,
  ) => {
    const server = new LocalServer({
      program,
      arguments: [...withConfiguration, ...args, '-f'],
      directory: at(home),
      isReady,
    });
    servers.unshift(server);
    await server.start();
  };
  const gateway = new CephGateway(port, credentials, directory, servers);
  try {
    await run(
      'ceph-authtool',
      '--create-keyring',
      keyring,
      '--gen-key',
      '-n',
      'mon.',
      '--cap',
      'mon',
      'allow *',
    );
    for (const [name, ...capabilities] of [
      ['client.admin', 'mon', 'allow *', 'osd', 'allow *'],
      ['client.rgw', 'mon', 'allow rw', 'osd', 'allow rwx'],
      ['osd.0', 'mon', 'allow profile osd', 'osd', 'allow *'],
    ] as const) {
      const [monitor, monitorRight, disk, diskRight] = capabilities;
      const rights = ['--cap', monitor, monitorRight, '--cap', disk, diskRight];
      await run('ceph-authtool', keyring, '--gen-key', '-n', name, ...rights);
    }
    const address = `[v2:127.0.0.1:${monitorPort}]`;
    await run('monmaptool', '--create', '--addv', 'a', address, '--fsid', cluster, map);
    const inMonitor = ['--mkfs', '-i', 'a', '--monmap', map, '--keyring', keyring];
    await run('ceph-mon', ...withConfiguration, ...inMonitor);
    await start('ceph-mon', ['-i', 'a'], 'mon', () => listens(monitorPort));
    const ceph = (...words: string[]) =>
      run('ceph', ...withConfiguration, '--connect-timeout', '30', ...words);
    await ceph('osd', 'create', osd, '0');
    await run('ceph-osd', ...withConfiguration, '-i', '0', '--mkfs', '--osd-uuid', osd);
    const isUp = async () => / 1 up/.test(await ceph('osd', 'stat'));
    await start('ceph-osd', ['-i', '0'], 'osd', isUp);
    await start('radosgw', ['-n', 'client.rgw'], 'rgw', () => listens(port));
    const { accessKeyId, secretAccessKey } = credentials;
    const keys = [`--access-key=${accessKeyId}`, `--secret-key=${secretAccessKey}`];
    const user = ['user', 'create', '--uid=t', '--display-name=t', ...keys];
    await run('radosgw-admin', ...withConfiguration, ...user);
    await waitFor('the gateway answers', async () => (await fetch(gateway.url)).ok);
    return gateway;
  } catch (error) {
    await gateway.close();
    throw error;
  }
}

interface Plan {
  readonly at: (...parts: string[]) => string;
  readonly cluster: string;
  readonly keyring: string;
  readonly monitorPort: number;
  readonly port: number;
}

function configurationOf({ at, cluster, keyring, monitorPort, port }: Plan): string {
  return `${[
    '[global]',
    `fsid = ${cluster}`,
    `keyring = ${keyring}`,
    `mon host = [v2:127.0.0.1:${monitorPort}/0]`,
    'ms bind msgr1 = false',
    'public addr = 127.0.0.1',
    'cluster addr = 127.0.0.1',
    'auth allow insecure global id reclaim = false',
    'osd pool default size = 1',
    'osd pool default min size = 1',
    'osd pool default pg num = 1',
    'osd pool default pg autoscale mode = off',
    'osd crush chooseleaf type = 0',
    'osd objectstore = memstore',
    `mon data = ${at('mon', 'data')}`,
    `osd data = ${at('osd', 'data')}`,
    `rgw data = ${at('rgw', 'data')}`,
    `run dir = ${at()}`,
    `admin socket = ${at('$name.asok')}`,
    `log file = ${at('$name.log')}`,
    `pid file = ${at('$name.pid')}`,
    'mon data avail crit = 1',
    `rgw frontends = beast endpoint=127.0.0.1:${port}`,
  ].join('\n')}\n`;
}

/** Runs a program to its end. @returns its output @throws with what it said */
async function run(program: string, ...args: readonly string[]): Promise<string> {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      output += text;
    });
  }
  const [code] = await once(child, 'close');
  if (code === 0) return output;
  throw new Error(`${program} ${args.join(' ')} failed (${code}): ${output.slice(0, 2_000)}`);
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const end = (isThere: boolean) => {
      socket.destroy();
      resolve(isThere);
    };
    socket.on('connect', () => end(true)).on('error', () => end(false));
  });
}
