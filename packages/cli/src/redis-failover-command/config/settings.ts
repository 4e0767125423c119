/**
 * Every setting, once: its flag, its key in a configuration file, its variable, and its meaning.
 */
import { Option } from 'commander';

export type Kind = 'text' | 'choice' | 'count' | 'duration' | 'list' | 'switch';

export type SettingKey =
  | 'zookeeper'
  | 'chroot'
  | 'root'
  | 'username'
  | 'password_file'
  | 'password'
  | 'tls'
  | 'tls_ca'
  | 'tls_cert'
  | 'tls_key'
  | 'tls_servername'
  | 'zookeeper_tls_ca'
  | 'zookeeper_tls_cert'
  | 'zookeeper_tls_key'
  | 'zookeeper_tls_servername'
  | 'nodes'
  | 'max_failures'
  | 'check_every'
  | 'node_timeout'
  | 'node_strategy'
  | 'failover_strategy'
  | 'required_node_managers'
  | 'client_view'
  | 'session_timeout'
  | 'rejoin'
  | 'id'
  | 'listen'
  | 'log_level'
  | 'log_format';

export interface Setting {
  /** In a configuration file. */
  readonly key: SettingKey;
  /** The Ruby gem's name, and other names that a file may use. */
  readonly alsoKeys?: readonly string[];
  /** Absent: not on the command line. */
  readonly flag?: string;
  readonly short?: string;
  readonly alsoFlags?: readonly string[];
  readonly variable?: string;
  readonly kind: Kind;
  /** The placeholder of the value in the help. */
  readonly value?: string;
  readonly about: string;
  readonly byDefault?: string;
  readonly choices?: readonly string[];
}

/** For every command: where to look, and how to log in to the Redis servers. */
export const commonSettings: readonly Setting[] = [
  {
    key: 'zookeeper',
    alsoKeys: ['zkservers'],
    flag: 'zookeeper',
    short: 'z',
    alsoFlags: ['zkservers'],
    variable: 'INCUMBENT_REDIS_ZOOKEEPER',
    kind: 'list',
    value: '<servers>',
    about: 'host:port,host:port or zk://host:port,host:port/chroot',
  },
  {
    key: 'chroot',
    flag: 'chroot',
    alsoFlags: ['with-chroot'],
    kind: 'text',
    value: '<path>',
    about: 'the node of ZooKeeper below which everything is, where --zookeeper names none',
  },
  {
    key: 'root',
    alsoKeys: ['znode_path'],
    flag: 'root',
    alsoFlags: ['znode-path'],
    variable: 'INCUMBENT_REDIS_ROOT',
    kind: 'text',
    value: '<path>',
    about: 'the node of this set of Redis servers',
    byDefault: '/redis_failover',
  },
  {
    key: 'username',
    flag: 'username',
    variable: 'INCUMBENT_REDIS_USERNAME',
    kind: 'text',
    value: '<name>',
    about: 'user of the Redis servers',
    byDefault: "Redis's own default user",
  },
  {
    key: 'password_file',
    flag: 'password-file',
    kind: 'text',
    value: '<file>',
    about: 'its password, on the first line; else INCUMBENT_REDIS_PASSWORD',
  },
  {
    key: 'password',
    variable: 'INCUMBENT_REDIS_PASSWORD',
    kind: 'text',
    about: 'the password itself',
  },
  { key: 'tls', flag: 'tls', kind: 'switch', about: 'speak TLS with the Redis servers' },
  ...tlsSettings('tls', 'tls', 'for the Redis servers'),
  ...tlsSettings('zookeeper_tls', 'zookeeper-tls', 'for ZooKeeper (zks://)'),
];

/** For `manage`, besides those above. */
export const managerSettings: readonly Setting[] = [
  {
    key: 'nodes',
    flag: 'nodes',
    short: 'n',
    kind: 'list',
    value: '<nodes>',
    about: 'every Redis of the set as host:port,host:port, just as clients and replicas reach it',
  },
  {
    key: 'max_failures',
    flag: 'max-failures',
    kind: 'count',
    value: '<n>',
    about: 'a node counts as down after so many failures in a row',
    byDefault: '3',
  },
  {
    key: 'check_every',
    flag: 'check-every',
    kind: 'duration',
    value: '<duration>',
    about: 'time between two looks at a node',
    byDefault: '500ms',
  },
  {
    key: 'node_timeout',
    flag: 'node-timeout',
    kind: 'duration',
    value: '<duration>',
    about: 'how long a node may take to answer',
    byDefault: '500ms',
  },
  {
    key: 'node_strategy',
    flag: 'node-strategy',
    kind: 'choice',
    value: '<name>',
    choices: ['majority', 'consensus', 'single'],
    about: 'a node is down when most, all or any of the managers say so',
    byDefault: 'majority',
  },
  {
    key: 'failover_strategy',
    flag: 'failover-strategy',
    kind: 'choice',
    value: '<name>',
    choices: ['latency'],
    about: 'which replica is promoted: the one with most of the data, then the quickest to answer',
    byDefault: 'latency',
  },
  {
    key: 'required_node_managers',
    flag: 'required-node-managers',
    kind: 'count',
    value: '<n>',
    about: 'do nothing unless so many managers report on every node',
    byDefault: '1',
  },
  {
    key: 'client_view',
    flag: 'client-view',
    kind: 'duration',
    value: '<duration>',
    about: 'how long clients go on without ZooKeeper; a failover waits it out',
    byDefault: '1s',
  },
  {
    key: 'rejoin',
    flag: 'rejoin',
    kind: 'choice',
    value: '<when>',
    choices: ['proven', 'always'],
    about:
      'a node that comes back copies the primary only when nothing is lost by that, or in any case',
    byDefault: 'proven',
  },
  {
    key: 'session_timeout',
    flag: 'session-timeout',
    kind: 'duration',
    value: '<duration>',
    about: 'of the session with ZooKeeper: how long a dead manager is waited for',
    byDefault: '6s',
  },
  {
    key: 'id',
    flag: 'id',
    kind: 'text',
    value: '<id>',
    about: 'name of this manager',
    byDefault: 'host, process id and random digits',
  },
  {
    key: 'listen',
    flag: 'listen',
    kind: 'text',
    value: '<host:port>',
    about: 'serve /healthz, /readyz and /metrics there',
    byDefault: 'not at all',
  },
  {
    key: 'log_level',
    flag: 'log-level',
    kind: 'choice',
    value: '<level>',
    choices: ['debug', 'info', 'warn', 'error'],
    about: 'what is logged',
    byDefault: 'info',
  },
  {
    key: 'log_format',
    flag: 'log-format',
    kind: 'choice',
    value: '<format>',
    choices: ['json', 'pretty'],
    about: 'one JSON object a line, or lines for people',
    byDefault: 'json; pretty on a terminal',
  },
];

export const allSettings: readonly Setting[] = [...commonSettings, ...managerSettings];

/** @param whom the server that each explanation names */
function tlsSettings(key: 'tls' | 'zookeeper_tls', flag: string, whom: string): readonly Setting[] {
  const file = { kind: 'text', value: '<file>' } as const;
  return [
    { ...file, key: `${key}_ca`, flag: `${flag}-ca`, about: `PEM of whom to trust, ${whom}` },
    { ...file, key: `${key}_cert`, flag: `${flag}-cert`, about: `PEM of our certificate, ${whom}` },
    { ...file, key: `${key}_key`, flag: `${flag}-key`, about: `PEM of its key, ${whom}` },
    {
      key: `${key}_servername`,
      flag: `${flag}-servername`,
      kind: 'text',
      value: '<name>',
      about: `the name that their certificates must have, ${whom}`,
    },
  ];
}

/** The options of the command line, the gem's names for them hidden. */
export function optionsOf(settings: readonly Setting[]): Option[] {
  return settings.flatMap((setting) =>
    flagsOf(setting).map((flag, index) => {
      const { kind, value = '', byDefault, about } = setting;
      const short = index === 0 && setting.short !== undefined ? `-${setting.short}, ` : '';
      const words = byDefault === undefined ? about : `${about} (default: ${byDefault})`;
      const option = new Option(`${short}--${flag}${kind === 'switch' ? '' : ` ${value}`}`, words);
      return index === 0 ? option : option.hideHelp();
    }),
  );
}

export function flagsOf({ flag, alsoFlags = [] }: Setting): readonly string[] {
  return flag === undefined ? [] : [flag, ...alsoFlags];
}

/** `required-node-managers` or `required_node_managers` as `requiredNodeManagers`. */
export function camelCase(name: string): string {
  return name.replace(/[-_]([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
