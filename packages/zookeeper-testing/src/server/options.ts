import { checkOptions, namesOf } from '@incumbent/zookeeper/internal';

/** Where Java and ZooKeeper are. */
export interface InstallationOptions {
  /** An unpacked binary distribution (with `lib/*.jar`). Default: `ZOOKEEPER_HOME` of the
   *  environment, else the jars of Debian's packages. */
  readonly zookeeperHome?: string;
  /** The version that is needed, such as `3.8` or `3.8.4`. Default: any. */
  readonly version?: string;
  /** The `java` program. Default: `$JAVA_HOME/bin/java`, else the first `java` of `PATH`. */
  readonly javaPath?: string;
}

export interface ServerTlsOptions {
  /** Whether a client shows a certificate: `none` (default) is never asked for one, `want` may,
   *  `need` must. */
  readonly clientAuth?: 'none' | 'want' | 'need';
}

export interface ServerSaslOptions {
  /** Passwords by user, for DIGEST-MD5. A name consists of letters, digits, `_`, `-` and `.`. */
  readonly users: Readonly<Record<string, string>>;
  /** Refuse sessions that do not authenticate by SASL (default false). */
  readonly required?: boolean;
}

export interface ServerOptions extends InstallationOptions {
  /** ZooKeeper's unit of time in ms (default 200): sessions expire up to one tick late. */
  readonly tickTimeMs?: number;
  /** Shorter session timeouts are raised to this, in ms (default 400). */
  readonly minSessionTimeoutMs?: number;
  /** Longer session timeouts are cut to this, in ms (default 60 000). */
  readonly maxSessionTimeoutMs?: number;
  /** Further lines of `zoo.cfg`; they win over ours. */
  readonly config?: Readonly<Record<string, string | number | boolean>>;
  /** Further `-Dname=value`; they win over ours. `{'jute.maxbuffer': 4096}`. */
  readonly systemProperties?: Readonly<Record<string, string | number | boolean>>;
  /** Listen for TLS too, with a certificate authority made for this server by `openssl`. */
  readonly tls?: ServerTlsOptions;
  readonly sasl?: ServerSaslOptions;
  /** A member of an ensemble that has lost its quorum serves reads to clients that ask for it
   *  (default false). Sessions there need `localSessions` too. */
  readonly readOnlyMode?: boolean;
  /** Sessions live on one server until they need the quorum (default false). */
  readonly localSessions?: boolean;
  /** ZooKeeper's data goes here and outlives `close()`. Default: a temporary directory that does
   *  not. An ensemble keeps one folder for each member in it. */
  readonly dataDirectory?: string;
  /** Heap of the Java process in MiB (default 64). */
  readonly heapMb?: number;
  /** How long it may take to serve, in ms (default 60 000). Counts for `restart()` too. */
  readonly startTimeoutMs?: number;
  /** Gives up the start, and leaves nothing behind. */
  readonly signal?: AbortSignal;
}

/** Where one member of an ensemble runs. */
export interface MemberSeat {
  /** Its address, for clients and for the other members. */
  readonly host: string;
  /**
   * The command that starts its process, such as `['nsenter', '--net=/run/netns/one']`. It has to
   * become that process, because signals go to its number.
   */
  readonly command?: readonly string[];
}

export interface EnsembleOptions extends ServerOptions {
  /** Of each member, in order: to put them on machines, or network namespaces, of their own. Default:
   *  all on 127.0.0.1. */
  readonly seats?: readonly MemberSeat[];
  /**
   * Members come and go at runtime (`reconfig`); default false. ZooKeeper keeps that right for an
   * administrator, so this option also turns **all** checks of access control lists off.
   */
  readonly reconfiguration?: boolean;
}

export const serverNames: readonly string[] = namesOf<ServerOptions>({
  ...{ zookeeperHome: true, version: true, javaPath: true },
  ...{ tickTimeMs: true, minSessionTimeoutMs: true },
  ...{ maxSessionTimeoutMs: true, config: true, systemProperties: true, tls: true, sasl: true },
  ...{ readOnlyMode: true, localSessions: true, dataDirectory: true, heapMb: true },
  ...{ startTimeoutMs: true, signal: true },
});
const ensembleNames = [
  ...serverNames,
  ...namesOf<Omit<EnsembleOptions, keyof ServerOptions>>({ seats: true, reconfiguration: true }),
];
const tlsNames = namesOf<ServerTlsOptions>({ clientAuth: true });
const saslNames = namesOf<ServerSaslOptions>({ users: true, required: true });

/** @throws InvalidArgumentError for options that would be ignored */
export function checkServerOptions(of: string, options: EnsembleOptions): void {
  checkOptions(of, options, of === 'startEnsemble' ? ensembleNames : serverNames);
  if (options.tls !== undefined) checkOptions(`tls of ${of}`, options.tls, tlsNames);
  if (options.sasl !== undefined) checkOptions(`sasl of ${of}`, options.sasl, saslNames);
}

export interface WaitOptions {
  /** Bound in ms (default 30 000); beyond it the call rejects with `TIMED_OUT`. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}
