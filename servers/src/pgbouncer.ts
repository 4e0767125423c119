/** PgBouncer, a pooler in front of a PostgreSQL server. */
import { existsSync } from 'node:fs';
import { chown, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { freePorts } from '@incumbent/zookeeper-testing';
import type { LocalServerPlan } from './local-server.ts';
import { LocalServer, makeServerDirectory } from './local-server.ts';
import { serverUser } from './postgres.ts';

const program = '/usr/sbin/pgbouncer';

export interface PgBouncerOptions {
  readonly server: { readonly port: number };
  /** Default `transaction`. */
  readonly mode?: 'session' | 'transaction' | 'statement';
  /** Connections to the server, over all clients. Default 5. */
  readonly poolSize?: number;
}

/** Why no PgBouncer can be started here; undefined when it can. */
export function pgBouncerAvailable(): string | undefined {
  return existsSync(program) ? undefined : 'PgBouncer is not installed (apt-get install pgbouncer)';
}

export class PgBouncer extends LocalServer {
  readonly port: number;

  constructor(plan: LocalServerPlan, port: number) {
    super(plan);
    this.port = port;
  }

  /** `postgres://postgres@127.0.0.1:port/postgres`. */
  get url(): string {
    return `postgres://postgres@127.0.0.1:${this.port}/postgres`;
  }
}

export async function startPgBouncer(options: PgBouncerOptions): Promise<PgBouncer> {
  const { server, mode = 'transaction', poolSize = 5 } = options;
  const [port] = (await freePorts(1)) as [number];
  const directory = await makeServerDirectory('pgbouncer');
  const configuration = join(directory, 'pgbouncer.ini');
  await writeFile(
    configuration,
    [
      '[databases]',
      // With auth_type any everybody is this user.
      `* = host=127.0.0.1 port=${server.port} user=postgres`,
      '[pgbouncer]',
      'listen_addr = 127.0.0.1',
      `listen_port = ${port}`,
      'unix_socket_dir =',
      'auth_type = any',
      `pool_mode = ${mode}`,
      `default_pool_size = ${poolSize}`,
      'ignore_startup_parameters = extra_float_digits',
      '',
    ].join('\n'),
  );
  const user = serverUser();
  if (user !== undefined) await chown(directory, user.uid, user.gid);
  const bouncer = new PgBouncer(
    {
      program,
      directory,
      arguments: [configuration],
      ...(user === undefined ? {} : { user }),
      isReady: () => accepts(port),
    },
    port,
  );
  await bouncer.start();
  return bouncer;
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
  });
}
