import { readFile } from 'node:fs/promises';
import type { ServerOptions } from './options.ts';

type Settings = Readonly<Record<string, string | number | boolean>>;

export interface ZooCfg {
  /** How many servers of it vote; undefined: it has no `server.N` line. */
  readonly servers: number | undefined;
  readonly settings: Settings;
}

/** Left out, because a test has its own: places, ports, certificates, and the answers it asks for. */
const replaced =
  /^(?:dataDir|dataLogDir|clientPort|clientPortAddress|secureClientPort|secureClientPortAddress|serverCnxnFactory|portUnification|dynamicConfigFile|standaloneEnabled|peerType|sslQuorum|4lw\.commands\.whitelist|server\.\d+|(?:admin|metricsProvider|ssl|quorum)\..*)$/;
const hierarchical = /^(?:group|weight)\.\d+$/;

/** Those of ZooKeeper where the file says nothing. */
const defaults: Settings = {
  tickTime: 3000,
  minSessionTimeout: -1,
  maxSessionTimeout: -1,
  maxClientCnxns: 60,
  extendedTypesEnabled: false,
};

/** @throws the error of the file system; TypeError for what it cannot be started with */
export async function readZooCfg(path: string | URL): Promise<ZooCfg> {
  return parseZooCfg(await readFile(path, 'utf8'), String(path));
}

/**
 * Reads the lines of a `zoo.cfg`, which is a properties file of Java.
 * @param name of the file, for errors
 */
export function parseZooCfg(text: string, name: string): ZooCfg {
  const settings: Record<string, string> = {};
  let servers = 0;
  for (const line of text.replaceAll(/\\\r?\n[ \t]*/g, '').split(/\r?\n/)) {
    const match = /^\s*([^#!\s=:][^\s=:]*)\s*[=:\s]\s*(.*?)\s*$/.exec(line);
    if (match === null) continue;
    const [, key, value] = match as unknown as [string, string, string];
    if (hierarchical.test(key)) {
      throw new TypeError(`${name} has ${key}: quorums with groups or weights cannot be started`);
    }
    if (/^server\.\d+$/.test(key) && !/:observer\b/.test(value)) servers += 1;
    if (!replaced.test(key)) settings[key] = value;
  }
  return { servers: servers === 0 ? undefined : servers, settings };
}

/** The option `config` that says all this. The options themselves win over the file. */
export function configOf({ settings }: ZooCfg, options: ServerOptions): Settings {
  const { tickTimeMs, minSessionTimeoutMs, maxSessionTimeoutMs, localSessions } = options;
  return {
    ...defaults,
    ...settings,
    ...(tickTimeMs !== undefined && { tickTime: tickTimeMs }),
    ...(minSessionTimeoutMs !== undefined && { minSessionTimeout: minSessionTimeoutMs }),
    ...(maxSessionTimeoutMs !== undefined && { maxSessionTimeout: maxSessionTimeoutMs }),
    ...(localSessions !== undefined && { localSessionsEnabled: localSessions }),
    ...options.config,
  };
}
