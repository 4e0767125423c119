import { readFile } from 'node:fs/promises';
import type { ServerOptions } from './options.ts';

type Settings = Readonly<Record<string, string | number | boolean>>;

export interface ZooCfg {
  /** How many of its servers vote. Undefined: it has no `server.N` line. */
  readonly servers: number | undefined;
  readonly settings: Settings;
}

/** A test has its own places, ports and certificates, and its own ways to ask the servers. */
const replaced =
  /^(?:dataDir|dataLogDir|clientPort|clientPortAddress|secureClientPort|secureClientPortAddress|serverCnxnFactory|portUnification|dynamicConfigFile|standaloneEnabled|peerType|sslQuorum|4lw\.commands\.whitelist|server\.\d+|(?:admin|metricsProvider|ssl|quorum)\..*)$/;
const hierarchical = /^(?:group|weight)\.\d+$/;

/** ZooKeeper's defaults, for settings that the file does not name. Those of `startServer` differ. */
const defaults: Settings = {
  tickTime: 3000,
  minSessionTimeout: -1,
  maxSessionTimeout: -1,
  maxClientCnxns: 60,
  extendedTypesEnabled: false,
};

/** Settings that ZooKeeper reads as whole numbers. It does not start with another value. */
const numbers: ReadonlySet<string> = new Set([
  ...['tickTime', 'initLimit', 'syncLimit', 'maxClientCnxns', 'clientPort', 'secureClientPort'],
  ...['minSessionTimeout', 'maxSessionTimeout', 'electionAlg', 'connectToLearnerMasterLimit'],
  ...['autopurge.snapRetainCount', 'autopurge.purgeInterval', 'observerMasterPort'],
]);
/** Settings that ZooKeeper reads as `true` or `false`. It does not start with another value. */
const switches: ReadonlySet<string> = new Set([
  ...['localSessionsEnabled', 'localSessionsUpgradingEnabled', 'standaloneEnabled'],
  ...['reconfigEnabled', 'sslQuorum', 'portUnification', 'quorumListenOnAllIPs'],
]);

/**
 * Reads the text of a `zoo.cfg`, or the file of a path or URL. A string with a "=" or a line break
 * is a text.
 * @throws the error of the file system; TypeError for a line that cannot be started
 */
export async function readZooCfg(config: string | URL): Promise<ZooCfg> {
  if (typeof config === 'string' && /[=\n]/.test(config)) return parseZooCfg(config, 'config');
  const name = config instanceof URL ? config.pathname : config;
  try {
    return parseZooCfg(await readFile(config, 'utf8'), name);
  } catch (cause) {
    if (!(cause instanceof Error && 'code' in cause && cause.code === 'ENOENT')) throw cause;
    throw new TypeError(
      `config: there is no file ${JSON.stringify(name)}. The text of a zoo.cfg has a "=" or more ` +
        'than one line',
      { cause },
    );
  }
}

/**
 * Reads the lines of a `zoo.cfg`, which is a properties file of Java. The last line of a name wins.
 * @param name of the file, for errors
 * @throws TypeError with the line that cannot be started
 */
export function parseZooCfg(text: string, name: string): ZooCfg {
  const settings: Record<string, string> = {};
  const servers = new Map<string, { readonly line: number; readonly votes: boolean }>();
  for (const { content, line } of linesOf(text)) {
    const refuse: (why: string) => never = (why) => {
      throw new TypeError(`${name}, line ${line}: ${JSON.stringify(content)}: ${why}`);
    };
    const [, key = '', separator = '', value = ''] =
      /^([^\s=:]*)(\s*[=:]\s*|\s+)?(.*)$/.exec(content) ?? [];
    if (key === '') refuse('there is no name in front of the "="');
    if (separator === '') refuse(`there is no value: write ${key}=VALUE, or "#" in front`);
    if (hierarchical.test(key)) refuse('quorums with groups or weights cannot be started');
    if (numbers.has(key) && !/^-?\d+$/.test(value)) refuse(`${key} must be a whole number`);
    if (switches.has(key) && !/^(?:true|false)$/i.test(value)) {
      refuse(`${key} must be true or false`);
    }
    if (key.startsWith('server.')) {
      const before = servers.get(key);
      if (before !== undefined) refuse(`${key} is in line ${before.line} already`);
      if (!/^server\.\d+$/.test(key)) refuse('write server.N, and N is a number');
      if (!/^(?:\[[^\]]+\]|[^\s:;|[\]]+):\d+:\d+/.test(value)) {
        refuse(`a server is written as ${key}=HOST:PORT:PORT`);
      }
      servers.set(key, { line, votes: !/:observer\b/.test(value) });
    }
    if (!replaced.test(key)) settings[key] = value;
  }
  const voters = [...servers.values()].filter(({ votes }) => votes).length;
  return { servers: voters === 0 ? undefined : voters, settings };
}

/**
 * The lines that set something, each with the number at which it begins. A backslash at the end of
 * a line goes on in the next one. A comment does not.
 */
function* linesOf(
  text: string,
): Generator<{ readonly content: string; readonly line: number }, void, void> {
  let begun: { content: string; readonly line: number } | undefined;
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const part = raw.trimStart();
    if (begun === undefined && (part === '' || /^[#!]/.test(part))) continue;
    begun ??= { content: '', line: index + 1 };
    // An even number of backslashes stands for half as many.
    const goesOn = /(?<!\\)(?:\\\\)*\\$/.test(part);
    begun.content += goesOn ? part.slice(0, -1) : part;
    if (goesOn) continue;
    yield { content: begun.content.trimEnd(), line: begun.line };
    begun = undefined;
  }
  if (begun !== undefined) yield { content: begun.content.trimEnd(), line: begun.line };
}

/** The option `config` for `startServer`. The other options win over the `zoo.cfg`. */
export function configOf({ settings }: ZooCfg, options: ServerOptions): Settings {
  const { tickTimeMs, minSessionTimeoutMs, maxSessionTimeoutMs, localSessions } = options;
  return {
    ...defaults,
    ...settings,
    ...(tickTimeMs !== undefined && { tickTime: tickTimeMs }),
    ...(minSessionTimeoutMs !== undefined && { minSessionTimeout: minSessionTimeoutMs }),
    ...(maxSessionTimeoutMs !== undefined && { maxSessionTimeout: maxSessionTimeoutMs }),
    ...(localSessions !== undefined && { localSessionsEnabled: localSessions }),
  };
}
