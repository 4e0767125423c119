import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { monotonicMs, sleep } from '../clock.ts';
import type { Surroundings } from '../surroundings.ts';

const readyWithinMs = 20_000;
/** For 20,000 nodes and watches, and for the creates of a round. */
const heapMiB = 512;

/** A real ZooKeeper server: that of `ZOOKEEPER_HOME`, or Debian's. */
export interface Server {
  readonly port: number;
  readonly version: string;
}

/** @returns the reason where there is none */
export function whyNoServer(): string | undefined {
  try {
    execFileSync('java', ['-version'], { stdio: 'ignore' });
  } catch {
    return 'there is no java';
  }
  if (classPath() === undefined) return 'there is no ZooKeeper: set ZOOKEEPER_HOME';
  return undefined;
}

export async function startServer(surroundings: Surroundings): Promise<Server> {
  const directory = surroundings.newDirectory();
  mkdirSync(join(directory, 'data'));
  const port = await freePort();
  const config = join(directory, 'zoo.cfg');
  writeFileSync(
    config,
    [
      `dataDir=${join(directory, 'data')}`,
      `clientPort=${port}`,
      'clientPortAddress=127.0.0.1',
      'tickTime=2000',
      'maxSessionTimeout=60000',
      'maxClientCnxns=0',
      'admin.enableServer=false',
      'snapCount=10000000',
    ].join('\n'),
  );
  const log = join(directory, 'log');
  const output = openSync(log, 'w');
  const server = spawn(
    'java',
    [
      ...[`-Xmx${heapMiB}m`, '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1'],
      ...['-Dzookeeper.preAllocSize=1024', '-Dzookeeper.forceSync=no'],
      ...['-Dorg.slf4j.simpleLogger.defaultLogLevel=warn', '-cp', classPath() ?? ''],
      ...['org.apache.zookeeper.server.quorum.QuorumPeerMain', config],
    ],
    { detached: true, stdio: ['ignore', output, output] },
  );
  server.on('error', () => {});
  surroundings.reaper.watch(server);
  const untilMs = monotonicMs() + readyWithinMs;
  for (;;) {
    const answer = await fourLetterWord(port, 'srvr');
    if (answer.includes('Mode:')) {
      return { port, version: /version: ([\d.]+)/.exec(answer)?.[1] ?? 'of unknown version' };
    }
    if (server.exitCode !== null || monotonicMs() > untilMs) {
      throw new Error(`the ZooKeeper server does not start:\n${readFileSync(log, 'utf8')}`);
    }
    await sleep(50);
  }
}

function classPath(): string | undefined {
  const home = process.env['ZOOKEEPER_HOME'];
  if (home !== undefined) return [join(home, 'lib/*'), join(home, '*')].join(':');
  const jars = ['zookeeper.jar', 'slf4j-simple.jar'].map((name) => `/usr/share/java/${name}`);
  return jars.every((jar) => existsSync(jar)) ? jars.join(':') : undefined;
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}

/** Empty where nobody answers. */
function fourLetterWord(port: number, word: string): Promise<string> {
  return new Promise((resolve) => {
    let answer = '';
    const socket = connect({ port, host: '127.0.0.1' });
    socket.setTimeout(1_000, () => socket.destroy());
    socket.on('connect', () => socket.write(word));
    socket.setEncoding('utf8').on('data', (text: string) => {
      answer += text;
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(answer));
  });
}
