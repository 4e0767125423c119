/// <reference lib="esnext.disposable" preserve="true" />
import { checkOptions, namesOf } from '@incumbent/zookeeper/internal';
import type { TestCertificates } from './certificates.ts';
import { startEnsemble } from './ensemble.ts';
import type { ServerOptions, WaitOptions } from './options.ts';
import { serverNames } from './options.ts';
import type { TestServer } from './server.ts';
import { startServer } from './server.ts';
import { configOf, readZooCfg } from './zoo-cfg.ts';

export interface ZooKeeperOptions extends ServerOptions {
  /** How many servers, 1 to 9. Default: those of `zooCfg` that vote, else 1. */
  readonly servers?: number;
  /**
   * Path of a `zoo.cfg`: the servers have its settings. Directories, ports, addresses, certificates,
   * the admin server and metrics are left out, because a test has its own. A setting that is not in
   * the file has ZooKeeper's default. The other options win over the file.
   */
  readonly zooCfg?: string | URL;
}

/** One real ZooKeeper server, or several that are one ensemble. */
export interface TestZooKeeper extends AsyncDisposable {
  /** `zk://127.0.0.1:port,…`, with all servers. */
  readonly connectionString: string;
  /** `zks://` with all servers; undefined without the option `tls`. */
  readonly secureConnectionString: string | undefined;
  /** A client trusts and shows them; undefined without the option `tls`. */
  readonly certificates: TestCertificates | undefined;
  /** As the servers say, such as `3.8.0`. */
  readonly version: string;
  /** Each can be killed, stopped, frozen and restarted. */
  readonly servers: readonly TestServer[];
  /** The only server, or the one that leads now. Waits for it, and rejects with `TIMED_OUT`. */
  leader(options?: WaitOptions): Promise<TestServer>;
  /** Kills all processes and removes their files, except a `dataDirectory` that was given. Idempotent. */
  close(): Promise<void>;
}

const names = [
  ...serverNames,
  ...namesOf<Omit<ZooKeeperOptions, keyof ServerOptions>>({ servers: true, zooCfg: true }),
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
 * Rejects with ServerUnavailableError when Java, ZooKeeper's jars or the wanted version are not on
 * this machine: the message says what to install. Rejects with ServerStartError (and the tail of the
 * output) when a server ends or does not serve within `startTimeoutMs`, and with the reason of
 * `signal`. Nothing is left behind then. `serverAvailable(options)` asks beforehand, to skip a test.
 */
export async function startZooKeeper(options: ZooKeeperOptions = {}): Promise<TestZooKeeper> {
  checkOptions('startZooKeeper', options, names);
  const { servers, zooCfg, ...given } = options;
  const file = zooCfg === undefined ? undefined : await readZooCfg(zooCfg);
  const count = servers ?? file?.servers ?? 1;
  const serverOptions = file === undefined ? given : { ...given, config: configOf(file, given) };
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
