/** PostgreSQL servers: alone, with a hot standby, restarted in recovery. */
import { execFile, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { chmod, chown, copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { TestCertificates } from '@incumbent/zookeeper-testing';
import { freePorts, isStopped } from '@incumbent/zookeeper-testing';
import type { LocalServerPlan } from './local-server.ts';
import { LocalServer, makeServerDirectory, waitFor } from './local-server.ts';

const run = promisify(execFile);

/** Where Debian's packages put the server's programs, by release. */
const installations = '/usr/lib/postgresql';

export interface PostgresOptions {
  /** Default: a free one. */
  readonly port?: number;
  /** Default false: quick, and lost with the machine only, not with the server. */
  readonly fsync?: boolean;
  /** TLS is offered beside plain connections. */
  readonly tls?: TestCertificates;
  /** Any others, such as `{ max_connections: 20 }`. */
  readonly settings?: Readonly<Record<string, string | number>>;
}

/** Why no PostgreSQL can be started here; undefined when it can. */
export function postgresAvailable(): string | undefined {
  return findPrograms() === undefined
    ? 'PostgreSQL is not installed (apt-get install postgresql)'
    : undefined;
}

/**
 * A server whose superuser is `postgres`, without a password. `kill` and `start` keep its data. The
 * processes that serve its connections are killed, frozen and thawed with it.
 */
export class PostgresServer extends LocalServer {
  readonly port: number;
  readonly #directory: string;

  constructor(plan: LocalServerPlan, port: number) {
    super(plan);
    this.port = port;
    this.#directory = plan.directory;
  }

  /** `postgres://postgres@127.0.0.1:port/postgres`. */
  get url(): string {
    return `postgres://postgres@127.0.0.1:${this.port}/postgres`;
  }

  /** The output of `psql` for it, without headings. Rejects with what the server says. */
  async sql(text: string): Promise<string> {
    const { stdout } = await run(program('psql'), [
      ...['-X', '-q', '-A', '-t', '-v', 'ON_ERROR_STOP=1', '-d', this.url, '-c', text],
    ]);
    return stdout.trim();
  }

  override async kill(): Promise<void> {
    const { pid } = this;
    const serving = pid === undefined ? [] : childrenOf(pid);
    await super.kill();
    for (const each of serving) signal(each, 'SIGKILL');
    // Until the last is gone nobody may start on this directory.
    await waitFor('the processes are gone', async () => serving.every((each) => !isAlive(each)));
  }

  /** In order, without waiting for those who are connected. */
  override async stop(): Promise<void> {
    this.thaw();
    const { pid } = this;
    if (pid !== undefined) signal(pid, 'SIGINT');
    try {
      await waitFor('the server has stopped', async () => this.pid === undefined);
    } catch (error) {
      const log = await readFile(this.logPath, 'utf8');
      throw new Error(`${(error as Error).message}\n${log.slice(-2_000)}`, { cause: error });
    }
    await super.stop();
  }

  /** The server and all that it serves connections with. */
  override async freeze(): Promise<void> {
    const { pid } = this;
    await super.freeze();
    if (pid === undefined) return;
    const serving = childrenOf(pid);
    for (const each of serving) signal(each, 'SIGSTOP');
    await waitFor('its processes stand still', async () =>
      serving.every((each) => !isAlive(each) || isStopped(each)),
    );
  }

  override thaw(): void {
    const { pid } = this;
    if (pid !== undefined) for (const each of childrenOf(pid)) signal(each, 'SIGCONT');
    super.thaw();
  }

  /** Stops it and starts it in recovery: read-only, until `promote`. */
  async restartInRecovery(): Promise<void> {
    await this.stop();
    const mark = join(this.#directory, 'data', 'standby.signal');
    await writeFile(mark, '');
    const user = serverUser();
    if (user !== undefined) await chown(mark, user.uid, user.gid);
    await this.start();
  }

  /** Ends recovery; resolves when it takes writes. */
  async promote(): Promise<void> {
    await this.sql('select pg_promote(true, 30)');
    await waitFor('it takes writes', async () => (await this.isInRecovery()) === false);
  }

  async isInRecovery(): Promise<boolean> {
    return (await this.sql('select pg_is_in_recovery()')) === 't';
  }
}

export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const directory = await makeServerDirectory('postgres');
  const user = serverUser();
  if (user !== undefined) await chown(directory, user.uid, user.gid);
  await run(
    program('initdb'),
    [
      ...['-D', join(directory, 'data'), '-U', 'postgres', '-A', 'trust'],
      ...['-N', '-E', 'UTF8', '--no-locale'],
    ],
    { cwd: directory, ...user },
  );
  return startOn(directory, options);
}

/** A hot standby of `primary`: read-only, and follows it. */
export async function startPostgresStandby(
  primary: PostgresServer,
  options: PostgresOptions = {},
): Promise<PostgresServer> {
  const directory = await makeServerDirectory('postgres');
  const user = serverUser();
  if (user !== undefined) await chown(directory, user.uid, user.gid);
  await run(
    program('pg_basebackup'),
    [
      ...['-d', primary.url, '-D', join(directory, 'data')],
      ...['-R', '-X', 'stream', '-c', 'fast', '-N'],
    ],
    { cwd: directory, ...user },
  );
  return startOn(directory, options);
}

async function startOn(directory: string, options: PostgresOptions): Promise<PostgresServer> {
  const port = options.port ?? ((await freePorts(1))[0] as number);
  const settings = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: directory,
    shared_buffers: '16MB',
    fsync: options.fsync === true ? 'on' : 'off',
    ...(options.tls === undefined ? {} : await tlsSettings(directory, options.tls)),
    ...options.settings,
  };
  const user = serverUser();
  const server = new PostgresServer(
    {
      program: program('postgres'),
      directory,
      ...(user === undefined ? {} : { user }),
      arguments: [
        ...['-D', join(directory, 'data'), '-p', `${port}`],
        ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
      ],
      isReady: async () => {
        await run(program('pg_isready'), ['-q', '-h', '127.0.0.1', '-p', `${port}`]);
        return true;
      },
    },
    port,
  );
  await server.start();
  return server;
}

/** The server takes a key only if it is its own and nobody else can read it. */
async function tlsSettings(
  directory: string,
  { server }: TestCertificates,
): Promise<Record<string, string>> {
  const target = join(directory, 'tls');
  await rm(target, { recursive: true, force: true });
  await mkdir(target);
  const files = { certificate: join(target, 'server.pem'), key: join(target, 'server.key') };
  await copyFile(server.certificate.path, files.certificate);
  await copyFile(server.key.path, files.key);
  await chmod(files.key, 0o600);
  const user = serverUser();
  for (const path of user === undefined ? [] : [target, files.certificate, files.key]) {
    await chown(path, user?.uid as number, user?.gid as number);
  }
  return { ssl: 'on', ssl_cert_file: files.certificate, ssl_key_file: files.key };
}

/** It refuses to run as root: then as the user that its package has made. */
export function serverUser(): { readonly uid: number; readonly gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const id = (kind: string) =>
    Number(spawnSync('id', [kind, 'postgres'], { encoding: 'utf8' }).stdout);
  return { uid: id('-u'), gid: id('-g') };
}

function program(name: string): string {
  const directory = findPrograms();
  if (directory === undefined) throw new Error(postgresAvailable());
  return join(directory, name);
}

/** The directory of the newest release. */
function findPrograms(): string | undefined {
  if (!existsSync(installations)) return undefined;
  return readdirSync(installations)
    .sort((a, b) => Number(b) - Number(a))
    .map((release) => join(installations, release, 'bin'))
    .find((directory) => existsSync(join(directory, 'postgres')));
}

function childrenOf(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
      .split(' ')
      .filter((word) => word.trim() !== '')
      .map(Number);
  } catch {
    return []; // it has just ended
  }
}

function signal(pid: number, name: 'SIGINT' | 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): void {
  try {
    process.kill(pid, name);
  } catch {
    // it has just ended
  }
}

/** A zombie whose parent was killed is nobody's any more. */
function isAlive(pid: number): boolean {
  try {
    return !/^ Z/.test(readFileSync(`/proc/${pid}/stat`, 'latin1').replace(/^.*\)/s, ''));
  } catch {
    return false;
  }
}
