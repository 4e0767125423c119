// Starts ZooKeeper from Debian's packages, for the capture alone.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { mkdir, mkdtemp, open, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const classPath = '/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar';
const running = new Map();
process.on('exit', () => {
  for (const [child, directory] of running) {
    child.kill('SIGKILL');
    rmSync(directory, { recursive: true });
  }
});

export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

/**
 * @param lines the lines of zoo.cfg besides the common part; `{directory}` stands for the server's
 *   own
 * @param options.jvm arguments of the JVM
 * @param options.files other files in the directory, by name
 * @param options.mode the mode in the answer to `srvr`, once the server is ready
 */
export async function startServer(lines, { port, jvm = [], files = {}, mode = 'standalone' } = {}) {
  const directory = await mkdtemp(join(tmpdir(), 'zookeeper-golden-'));
  await mkdir(join(directory, 'data'));
  const inDirectory = (text) => text.replaceAll('{directory}', directory);
  const configuration = [
    `dataDir=${directory}/data`,
    'tickTime=200',
    'minSessionTimeout=400',
    'maxSessionTimeout=60000',
    'maxClientCnxns=0',
    'admin.enableServer=false',
    '4lw.commands.whitelist=*',
    ...lines,
  ];
  await writeFile(join(directory, 'zoo.cfg'), `${inDirectory(configuration.join('\n'))}\n`);
  for (const [name, content] of Object.entries(files)) {
    await writeFile(join(directory, name), inDirectory(content));
  }
  const log = await open(join(directory, 'log'), 'w');
  const java = [
    ...['-Xmx64m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1'],
    '-Dzookeeper.preAllocSize=1024',
    '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn',
    ...jvm.map(inDirectory),
    ...['-cp', classPath, 'org.apache.zookeeper.server.quorum.QuorumPeerMain'],
    join(directory, 'zoo.cfg'),
  ];
  const child = spawn('java', java, { stdio: ['ignore', log.fd, log.fd] });
  running.set(child, directory);
  const gone = once(child, 'exit');
  await log.close();
  const version = await ready(port, mode, child);
  return {
    port,
    version,
    async stop() {
      child.kill('SIGKILL');
      await gone;
      running.delete(child);
      rmSync(directory, { recursive: true });
    },
  };
}

async function ready(port, mode, child) {
  for (let attempt = 0; attempt < 300; attempt += 1) {
    if (child.exitCode !== null) throw new Error(`the server ended with ${child.exitCode}`);
    const answer = await fourLetters(port, 'srvr');
    if (answer.includes(`Mode: ${mode}`)) return /version: ([\d.]+)/.exec(answer)[1];
    await delay(100);
  }
  throw new Error(`no server in mode ${mode} after 30 s`);
}

function fourLetters(port, word) {
  return new Promise((resolve) => {
    let answer = '';
    const socket = connect(port, '127.0.0.1', () => socket.end(word));
    socket.setTimeout(1_000, () => socket.destroy());
    socket.on('data', (chunk) => {
      answer += chunk;
    });
    socket.on('error', () => resolve(''));
    socket.on('close', () => resolve(answer));
  });
}
