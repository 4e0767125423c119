/// <reference lib="esnext.disposable" preserve="true" />
import { checkOptions, namesOf } from '@incumbent/zookeeper/internal';
import type { TestCertificates } from './certificates.ts';
import { startEnsemble } from './ensemble.ts';
import type { ServerOptions, WaitOptions } from './options.ts';
import { serverNames } from './options.ts';
import type { TestServer } from './server.ts';
import { startServer } from './server.ts';
import { configOf, readZooCfg } from './zoo-cfg.ts';

export interface ZooKeeperOptions extends Omit<ServerOptions, 'config'> {
  /** How many servers, 1 to 9. Default: as many as vote in the `zoo.cfg` of `config`, else 1. */
  readonly servers?: number;
  /**
   * A whole `zoo.cfg`, such as the one you run in production: its path (a string or URL), or its text
   * (a string with a "=" or a line break). The servers get its settings, and ZooKeeper's defaults for
   * all others. The other options win over it.
   *
   * These settings are left out, because each test has its own: directories, ports, addresses,
   * certificates, the admin server and metrics. Observers are not started. Rejects with a TypeError
   * that names the line when a line cannot be understood, or asks for quorums with groups or weights.
   *
   * Or an object: further lines for our own `zoo.cfg`. They win over ours.
   */
  readonly config?: string | URL | Readonly<Record<string, string | number | boolean>>;
}

/** One real ZooKeeper server, or several that are one ensemble. */
export interface TestZooKeeper extends AsyncDisposable {
  /** `zk://127.0.0.1:port,…`, with all servers: give it to `connect()`. */
  readonly connectionString: string;
  /** `zks://127.0.0.1:port,…`, with all servers. Undefined without the option `tls`. */
  readonly secureConnectionString: string | undefined;
  /** The CA that a client trusts, and a certificate that it shows. Undefined without `tls`. */
  readonly certificates: TestCertificates | undefined;
  /** The version that the first server reports, such as `3.8.0`. */
  readonly version: string;
  /** You can kill, stop, freeze, thaw and restart each of them. */
  readonly servers: readonly TestServer[];
  /**
   * The server that leads now, or the only server. Waits for an election, and rejects with
   * `TIMED_OUT` when it takes too long.
   */
  leader(options?: WaitOptions): Promise<TestServer>;
  /** Kills all processes and removes their files, but for a `dataDirectory` of yours. Idempotent. */
  close(): Promise<void>;
}

const names = [
  ...serverNames,
  ...namesOf<Omit<ZooKeeperOptions, keyof ServerOptions>>({ servers: true }),
];

/**
 * Starts ZooKeeper for a test: a real server, or an ensemble, on free ports of 127.0.0.1 in a fresh
 * temporary directory. Resolves when it serves. The servers end with this process, however it ends.
 *
 * ```ts
 * await using zookeeper = await startZooKeeper({ servers: 3 });
 * const client = await connect(zookeeper.connectionString);
 * await (await zookeeper.leader()).kill();
 * ```
 *
 * It rejects, and leaves nothing behind:
 *
 * - with ServerUnavailableError when Java, ZooKeeper's jars or the wanted version are not on this
 *   machine. The message says what to install. `serverAvailable(options)` asks beforehand, so that
 *   you can skip a test.
 * - with ServerStartError when a server ends, or does not serve within `startTimeoutMs`. The message
 *   has the end of the server's output.
 * - with the reason of `signal` when that aborts.
 */
export async function startZooKeeper(options: ZooKeeperOptions = {}): Promise<TestZooKeeper> {
  checkOptions('startZooKeeper', options, names);
  const { servers, config, ...given } = options;
  let count = servers ?? 1;
  let serverOptions: ServerOptions = given;
  if (typeof config === 'string' || config instanceof URL) {
    const file = await readZooCfg(config);
    count = servers ?? file.servers ?? 1;
    serverOptions = { ...given, config: configOf(file, given) };
  } else if (config !== undefined) {
    if (typeof config !== 'object' || config === null || Array.isArray(config)) {
      throw new TypeError(
        `config must be a path, a URL or the text of a zoo.cfg, or an object of settings, not ${
          Array.isArray(config) ? 'an array' : String(config)
        }`,
      );
    }
    serverOptions = { ...given, config };
  }
  const started =
    count === 1 ? await startServer(serverOptions) : await startEnsemble(count, serverOptions);
  try {
    return await asZooKeeper(started);
  } catch (error) {
    await started.close();
    throw error;
  }
}

async function asZooKeeper(
  started: TestServer | Awaited<ReturnType<typeof startEnsemble>>,
): Promise<TestZooKeeper> {
  const servers = 'members' in started ? started.members : [started];
  const answer = await (servers[0] as TestServer).fourLetterWord('srvr');
  return {
    connectionString: started.connectionString,
    secureConnectionString: started.secureConnectionString,
    certificates: started.certificates,
    version: /^Zookeeper version: ([\d.]+)/m.exec(answer)?.[1] ?? 'unknown',
    servers,
    leader: async (wait) => ('members' in started ? started.leader(wait) : started),
    close: () => started.close(),
    [Symbol.asyncDispose]: () => started.close(),
  };
}
