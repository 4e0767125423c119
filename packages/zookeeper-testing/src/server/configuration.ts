import { mkdir, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import type { TestCertificates } from './certificates.ts';
import type { Installation } from './installation.ts';
import type { EnsembleOptions, ServerSaslOptions } from './options.ts';

/** The configuration of one server. */
export interface ServerPlan {
  readonly options: EnsembleOptions;
  readonly installation: Installation;
  /** Its own: configuration, log and, unless `dataDirectory` says otherwise, the data. */
  readonly directory: string;
  readonly dataDirectory: string;
  /** A directory to remove if this process dies before the server. */
  readonly temporaryDirectory: string;
  readonly host: string;
  readonly port: number;
  readonly securePort: number | undefined;
  readonly certificates: TestCertificates | undefined;
  /** The command that starts the process. */
  readonly command: readonly string[];
  /** Only in an ensemble. */
  readonly membership: Membership | undefined;
}

export interface Membership {
  readonly id: number;
  /** The `server.N=` lines of all members, this one among them. */
  readonly lines: readonly string[];
}

type Settings = Record<string, string | number | boolean>;

/** Writes the files of a server, once: a reconfiguration makes the server change them itself. */
export async function writeConfiguration(plan: ServerPlan): Promise<void> {
  const { directory, membership, options } = plan;
  await mkdir(directory, { recursive: true });
  await mkdir(plan.dataDirectory, { recursive: true });
  const lines = Object.entries(settings(plan)).map(([key, value]) => `${key}=${value}`);
  if (membership !== undefined) {
    await writeFile(join(plan.dataDirectory, 'myid'), `${membership.id}\n`);
    if (options.reconfiguration === true) {
      await writeFile(join(directory, 'members.cfg'), `${membership.lines.join('\n')}\n`);
    } else {
      lines.push(...membership.lines);
    }
  }
  await writeFile(join(directory, 'zoo.cfg'), `${lines.join('\n')}\n`);
  // Distributions bring one of these loggers; each finds its file on the class path.
  await writeFile(join(directory, 'logback.xml'), logback);
  await writeFile(join(directory, 'log4j.properties'), log4j);
  if (options.sasl !== undefined) {
    await writeFile(join(directory, 'jaas.conf'), jaas(options.sasl), { mode: 0o600 });
  }
}

/** The arguments of `java`. */
export function javaArguments(plan: ServerPlan): string[] {
  const { options, directory } = plan;
  const properties: Settings = {
    // No test needs the data after a crash of the machine, and fsync is most of a write's time.
    'zookeeper.forceSync': 'no',
    'zookeeper.preAllocSize': 1024,
    // Read from here only; a line in zoo.cfg is ignored.
    'znode.container.checkIntervalMs': 500,
    'org.slf4j.simpleLogger.defaultLogLevel': 'warn',
    ...(options.readOnlyMode === true && { 'readonlymode.enabled': true }),
    ...(options.sasl && { 'java.security.auth.login.config': join(directory, 'jaas.conf') }),
    ...options.systemProperties,
  };
  return [
    `-Xmx${options.heapMb ?? 64}m`,
    // Quicker to start and lighter beside other processes; slower only under long load.
    '-XX:+UseSerialGC',
    '-XX:TieredStopAtLevel=1',
    ...Object.entries(properties).map(([key, value]) => `-D${key}=${value}`),
    '-cp',
    [directory, ...plan.installation.jars].join(delimiter),
    'org.apache.zookeeper.server.quorum.QuorumPeerMain',
    join(directory, 'zoo.cfg'),
  ];
}

function settings(plan: ServerPlan): Settings {
  const { options, membership } = plan;
  return {
    dataDir: plan.dataDirectory,
    tickTime: options.tickTimeMs ?? 200,
    minSessionTimeout: options.minSessionTimeoutMs ?? 400,
    maxSessionTimeout: options.maxSessionTimeoutMs ?? 60_000,
    maxClientCnxns: 0,
    'admin.enableServer': false,
    '4lw.commands.whitelist': '*',
    extendedTypesEnabled: true,
    ...(options.localSessions === true && { localSessionsEnabled: true }),
    ...(membership === undefined
      ? { clientPort: plan.port, clientPortAddress: plan.host }
      : // A single member leads too, as it must for others to join it.
        { initLimit: 50, syncLimit: 5, standaloneEnabled: false }),
    ...(membership !== undefined &&
      options.reconfiguration === true && {
        reconfigEnabled: true,
        skipACL: 'yes',
        dynamicConfigFile: join(plan.directory, 'members.cfg'),
      }),
    ...tlsSettings(plan),
    ...saslSettings(options.sasl),
    ...options.config,
  };
}

function tlsSettings({ options, certificates, securePort, host }: ServerPlan): Settings {
  if (certificates === undefined || securePort === undefined) return {};
  return {
    serverCnxnFactory: 'org.apache.zookeeper.server.NettyServerCnxnFactory',
    secureClientPort: securePort,
    secureClientPortAddress: host,
    'ssl.keyStore.location': certificates.server.both.path,
    'ssl.keyStore.type': 'PEM',
    'ssl.trustStore.location': certificates.ca.path,
    'ssl.trustStore.type': 'PEM',
    'ssl.clientAuth': options.tls?.clientAuth ?? 'none',
  };
}

function saslSettings(sasl: ServerSaslOptions | undefined): Settings {
  if (sasl === undefined) return {};
  return {
    'authProvider.1': 'org.apache.zookeeper.server.auth.SASLAuthenticationProvider',
    ...(sasl.required === true && {
      'enforce.auth.enabled': true,
      'enforce.auth.schemes': 'sasl',
    }),
  };
}

/** `Server { <module> required user_<name>="<password>" …; };` */
function jaas({ users }: ServerSaslOptions): string {
  const entries = Object.entries(users).map(([name, password]) => {
    if (!/^[\w.-]+$/.test(name)) {
      throw new TypeError(`"${name}" is no name for a user: use letters, digits, "_", "-" and "."`);
    }
    return `  user_${name}="${password.replace(/["\\]/g, '\\$&')}"`;
  });
  const module = 'org.apache.zookeeper.server.auth.DigestLoginModule required';
  return `Server {\n  ${module}\n${entries.join('\n')};\n};\n`;
}

const logback = `<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{HH:mm:ss.SSS} %p %c{0} - %m%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="out"/></root>
</configuration>
`;

const log4j = `log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{HH:mm:ss.SSS} %p %c{1} - %m%n
`;
