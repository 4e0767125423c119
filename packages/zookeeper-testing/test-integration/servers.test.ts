import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { connect as connectTls } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  ServerStartError,
  ServerUnavailableError,
  serverAvailable,
  startServer,
  TestServerError,
} from '../src/index.ts';
import * as ports from '../src/server/ports.ts';
import { BareSession, closing, needServers, until } from './server-support.ts';

const open = closing();

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

/** A dead process counts as dead, even if its parent has not asked for its end yet (Z). */
function isAlive(pid: number): boolean {
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' });
  return /^[^Z\s]/.test(stdout.trim());
}

/** A folder for temporary ones, in which no other process makes any. */
function ownTemporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'zookeeper-own-'));
  vi.stubEnv('TMPDIR', folder);
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

describe('a standalone server', () => {
  needServers();

  it('serves, and keeps its data and its ports through kill, stop and restart', async () => {
    const server = open(await startServer());
    expect(await server.fourLetterWord('srvr')).toContain('Mode: standalone');
    expect(server.connectionString).toBe(`zk://127.0.0.1:${server.port}`);
    expect(server.secureConnectionString).toBeUndefined();
    const session = open(await BareSession.open(server));
    await session.create('/kept', 'as it was');

    const { pid } = server;
    await server.kill();
    expect(server.state).toBe('stopped');
    expect(isAlive(pid)).toBe(false);
    await expect(server.fourLetterWord('srvr')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    await expect(session.get('/kept')).rejects.toThrow();

    await server.restart();
    expect(server.pid).not.toBe(pid);
    expect(await open(await BareSession.open(server)).get('/kept')).toBe('as it was');

    await server.stop();
    expect(server.state).toBe('stopped');
    await server.restart();
    expect(await open(await BareSession.open(server)).get('/kept')).toBe('as it was');
  });

  it('gives sessions the timeouts of the options', async () => {
    const server = open(
      await startServer({
        tickTimeMs: 100,
        minSessionTimeoutMs: 300,
        maxSessionTimeoutMs: 7000,
        config: { maxClientCnxns: 17 },
        systemProperties: { 'jute.maxbuffer': 4096 },
      }),
    );
    const configuration = await server.fourLetterWord('conf');
    expect(configuration).toContain('tickTime=100\n');
    expect(configuration).toContain('minSessionTimeout=300\n');
    expect(configuration).toContain('maxClientCnxns=17\n');
    expect(await server.fourLetterWord('envi')).toContain('java.version');
    const session = open(await BareSession.open(server));
    expect(session.session?.timeoutMs).toBe(7000); // asked for 30 000
    await expect(session.create('/large', 'x'.repeat(8192))).rejects.toThrow();
  });

  it('is silent while frozen, and answers after the thaw what was asked before', async () => {
    const server = open(await startServer());
    const session = open(await BareSession.open(server));
    await session.create('/node', 'data');
    await server.freeze();
    expect(server.state).toBe('frozen');
    await expect(server.fourLetterWord('srvr', { timeoutMs: 100 })).rejects.toMatchObject({
      code: 'TIMED_OUT',
    });
    const reply = session.get('/node');
    server.thaw();
    expect(server.state).toBe('running');
    expect(await reply).toBe('data');
    await server.freeze();
    await server.stop();
    expect(server.state).toBe('stopped');
    await expect(server.freeze()).rejects.toThrow(TestServerError);
  });

  it('starts again although it was killed while it began a transaction log', async () => {
    const dataDirectory = join(ownTemporaryFolder(), 'data');
    const server = open(await startServer({ dataDirectory }));
    await open(await BareSession.open(server)).create('/kept', 'as it was');
    await server.kill();
    writeFileSync(join(dataDirectory, 'version-2/log.7fffffff'), '');
    await server.restart();
    expect(await open(await BareSession.open(server)).get('/kept')).toBe('as it was');
  });

  it('leaves neither process nor file when it is closed, also while frozen', async () => {
    const folder = ownTemporaryFolder();
    const server = await startServer();
    const session = open(await BareSession.open(server));
    await session.create('/node', 'data');
    const { pid } = server;
    await server.freeze();
    await Promise.all([server.close(), server.close()]);
    expect(isAlive(pid)).toBe(false);
    expect(readdirSync(folder)).toEqual([]);
    expect(server.log()).toContain('standalone mode');
    await expect(server.restart()).rejects.toMatchObject({ code: 'NOT_RUNNING' });
  });

  it('keeps a data directory that was given', async () => {
    const dataDirectory = mkdtempSync(join(tmpdir(), 'zookeeper-kept-'));
    try {
      const first = open(await startServer({ dataDirectory }));
      await open(await BareSession.open(first)).create('/node', 'kept');
      await first.close();
      const second = open(await startServer({ dataDirectory }));
      expect(await open(await BareSession.open(second)).get('/node')).toBe('kept');
      await second.close();
      expect(existsSync(join(dataDirectory, 'version-2'))).toBe(true);
    } finally {
      rmSync(dataDirectory, { recursive: true });
    }
  });

  it('runs the jars of an unpacked distribution', async (context) => {
    // Debian's files in the layout of a distribution.
    const jars = '/usr/share/java';
    if (!existsSync(jars)) return context.skip(`there is no ${jars} to make one of`);
    const home = mkdtempSync(join(tmpdir(), 'zookeeper-home-'));
    mkdirSync(join(home, 'lib'));
    symlinkSync(join(jars, 'zookeeper.jar'), join(home, 'lib', 'zookeeper-3.8.0.jar'));
    symlinkSync(join(jars, 'slf4j-simple.jar'), join(home, 'lib', 'slf4j-simple.jar'));
    try {
      vi.stubEnv('ZOOKEEPER_HOME', home);
      const server = open(await startServer());
      expect(await server.fourLetterWord('envi')).toContain(`${home}/lib/zookeeper-3.8.0.jar`);
    } finally {
      rmSync(home, { recursive: true });
    }
  });
});

describe('TLS', () => {
  needServers();

  it('is there beside the plain port, with a certificate that the authority signed', async () => {
    const server = open(await startServer({ tls: {} }));
    expect(server.secureConnectionString).toBe(`zks://127.0.0.1:${server.securePort}`);
    const target = { host: server.host, port: server.securePort! };
    const ca = server.certificates!.ca.text;
    const secure = open(await BareSession.open(target, { tls: { ca } }));
    await secure.create('/node', 'over TLS');
    expect(await open(await BareSession.open(server)).get('/node')).toBe('over TLS');
    await expect(BareSession.open(target, { tls: {} })).rejects.toThrow(/certificate/);
  });

  it('asks the client for a certificate with clientAuth need', async () => {
    const server = open(await startServer({ tls: { clientAuth: 'need' } }));
    const target = { host: server.host, port: server.securePort! };
    const { ca, client } = server.certificates!;
    const tls = { ca: ca.text, cert: client.certificate.text, key: client.key.text };
    await open(await BareSession.open(target, { tls })).create('/node', 'x');
    const stranger = connectTls({ ...target, ca: ca.text });
    const end = await new Promise<string>((resolve) => {
      stranger.on('error', (error) => resolve(error.message));
      stranger.on('close', () => resolve('closed'));
      // With TLS 1.3 the refusal follows the handshake.
      stranger.resume();
    });
    expect(end).toMatch(/closed|alert|reset|disconnected/i);
    expect(await server.fourLetterWord('srvr')).toContain('Mode: standalone');
  });
});

describe('SASL', () => {
  needServers();

  it('starts with users, whatever is in their passwords', async () => {
    const users = { alice: 'secret', 'bob-2': 'a"b\\c' };
    const server = open(await startServer({ sasl: { users, required: true } }));
    const session = open(await BareSession.open(server));
    // Not authenticated: the server refuses with "session closed: SASL required".
    await expect(session.create('/node', 'x')).rejects.toThrow('-124');
  });

  it('refuses a name that the configuration cannot hold', async () => {
    const folder = ownTemporaryFolder();
    await expect(startServer({ sasl: { users: { 'a b': 'x' } } })).rejects.toThrow(TypeError);
    expect(readdirSync(folder)).toEqual([]);
  });
});

describe('a start that fails', () => {
  needServers();

  it('ends with the output of the server, and leaves nothing', async () => {
    const folder = ownTemporaryFolder();
    const start = startServer({ config: { tickTime: 'soon' } });
    await expect(start).rejects.toThrow(ServerStartError);
    await expect(start).rejects.toThrow(/ended with exit code 2; its output ends with:.*soon/s);
    expect(readdirSync(folder)).toEqual([]);
  });

  it('gives up after startTimeoutMs', async () => {
    const folder = ownTemporaryFolder();
    const start = startServer({ startTimeoutMs: 1 });
    await expect(start).rejects.toThrow(/not serving after 1 ms/);
    expect(readdirSync(folder)).toEqual([]);
  });

  it('gives up when its signal says so, and leaves nothing', async () => {
    const folder = ownTemporaryFolder();
    const controller = new AbortController();
    const start = startServer({ signal: controller.signal });
    // As soon as the process has begun.
    const log = () =>
      readdirSync(folder).some((name) => existsSync(join(folder, name, 'server.log')));
    await Promise.all([
      expect(start).rejects.toThrow('no longer wanted'),
      until('the server was spawned', log).then(() => {
        controller.abort(new Error('no longer wanted'));
      }),
    ]);
    expect(readdirSync(folder)).toEqual([]);
  });

  it('takes other ports when another process was quicker', async () => {
    const squatter = createServer();
    await new Promise<void>((resolve) => squatter.listen(0, '127.0.0.1', resolve));
    const taken = (squatter.address() as { port: number }).port;
    const choose = vi.spyOn(ports, 'freePorts').mockResolvedValueOnce([taken, taken]);
    try {
      const server = open(await startServer());
      expect(choose).toHaveBeenCalledTimes(2);
      expect(server.port).not.toBe(taken);
    } finally {
      squatter.close();
    }
  });

  it('is not fooled by another ZooKeeper server on its port', async () => {
    const other = open(await startServer());
    const choose = vi.spyOn(ports, 'freePorts').mockResolvedValueOnce([other.port, 0]);
    const server = open(await startServer());
    expect(choose).toHaveBeenCalledTimes(2);
    expect(server.port).not.toBe(other.port);
  });
});

describe('a machine without what it takes', () => {
  it('says what to install when there is no Java', async () => {
    vi.stubEnv('PATH', '/nonexistent');
    vi.stubEnv('JAVA_HOME', '');
    expect(serverAvailable()).toMatch(/needs Java.*apt-get install.*zookeeper/);
    const start = startServer();
    await expect(start).rejects.toThrow(ServerUnavailableError);
    await expect(start).rejects.toMatchObject({
      name: 'ServerUnavailableError',
      code: 'SERVER_UNAVAILABLE',
    });
  });

  it('names the option or variable that leads nowhere', () => {
    expect(serverAvailable({ javaPath: '/nonexistent/java' })).toContain('/nonexistent/java');
    const javaPath = process.execPath; // any program: nothing is started
    expect(serverAvailable({ javaPath, zookeeperHome: '/nonexistent' })).toMatch(
      /option zookeeperHome is \/nonexistent, but/,
    );
    vi.stubEnv('ZOOKEEPER_HOME', '/nonexistent');
    expect(serverAvailable({ javaPath })).toMatch(/ZOOKEEPER_HOME is \/nonexistent, but/);
  });

  it('misses openssl only for TLS', () => {
    vi.stubEnv('PATH', '/nonexistent');
    const javaPath = process.execPath;
    expect(serverAvailable({ javaPath, tls: {} })).toContain('openssl');
    expect(serverAvailable({ javaPath }) ?? '').not.toContain('openssl');
  });
});

describe('the end of the process that started a server', () => {
  needServers();

  const child = fileURLToPath(new URL('server-child.mjs', import.meta.url));

  // A frozen server ends by SIGKILL alone, and no process is left to thaw it.
  it.each(['exit', 'throw', 'SIGTERM', 'SIGKILL'])(
    'ends the server with it, also a frozen one: %s',
    async (how) => {
      const folder = ownTemporaryFolder();
      const parent = spawn(process.execPath, [child, how], { stdio: ['ignore', 'pipe', 'ignore'] });
      const [line] = (await once(parent.stdout, 'data')) as [Uint8Array];
      const { pid } = JSON.parse(new TextDecoder().decode(line)) as { pid: number };
      if (how === 'SIGTERM' || how === 'SIGKILL') {
        expect(isAlive(pid)).toBe(true);
        parent.kill(how);
      }
      await until('the server is gone', () => !isAlive(pid));
      await until('its files are gone', () => readdirSync(folder).length === 0);
    },
  );
});
