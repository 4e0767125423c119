import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import type { ClientOptions } from '@incumbent/zookeeper';
import { parseConnectionString } from '@incumbent/zookeeper';
import type { Duration } from 'incumbent';
import { formatDuration, InvalidOptionError, parseDuration } from 'incumbent';
import { defaultRoot } from '../layout.ts';
import type { NodeAddress } from '../node-address.ts';
import { formatNodeAddress, parseNodeAddress } from '../node-address.ts';
import type { NodeAccess } from '../redis/node-connection.ts';
import type { ManagerEvent } from './events.ts';

/**
 * How the reports of several managers make one verdict on a node. `majority`: it is down if more
 * managers say so than not; a tie counts as up. `consensus`: it is down if all say so. `single`: it
 * is down if any of them says so. A manager that does not report on the node does not count.
 */
export type NodeStrategy = 'majority' | 'consensus' | 'single';

/**
 * Options of a NodeManager. A duration is a number of ms, or a text such as `'500ms'` or `'2s'`.
 */
export interface ManagerOptions extends NodeAccess {
  /**
   * Every Redis of the set as `host:port`, exactly as clients and replicas reach it. Give all
   * managers the same nodes, spelt alike.
   */
  readonly nodes: readonly string[];
  /** The ZooKeeper servers: `zk://host:port,host:port/chroot`, or without the scheme. */
  readonly zookeeper: string;
  /** The login to ZooKeeper and its TLS, as `connect` of `@incumbent/zookeeper` takes them. */
  readonly zookeeperOptions?: Pick<ClientOptions, 'auth' | 'sasl' | 'tls'>;
  /**
   * The path of the node below which everything is kept. Default `/redis_failover`, as in the Ruby
   * gem.
   */
  readonly root?: string;
  /**
   * Unique among the managers: 1 to 100 letters, digits and the characters . _ @ -. Default: host
   * name, process id and eight random digits.
   */
  readonly id?: string;
  /** A node counts as down after so many bad checks in a row, 1 to 100. Default 3. */
  readonly maxFailures?: number;
  /**
   * From the start of one check of a node to the start of the next: 10 ms to 1 min. Default 500 ms.
   */
  readonly checkEvery?: Duration;
  /**
   * How long connecting to a node may take, and each of its answers: 10 ms to 1 min. Default 500
   * ms.
   */
  readonly nodeTimeout?: Duration;
  /** How several managers' reports make one verdict. Default `majority`. */
  readonly nodeStrategy?: NodeStrategy;
  /**
   * How the node to promote is chosen. `latency` is the only strategy, and the default. The replica
   * with the most data wins. Among equals the order is: seen by most managers, lowest
   * `replica-priority`, lowest mean latency.
   */
  readonly failoverStrategy?: 'latency';
  /**
   * The elected manager does nothing unless so many managers report on every node, 1 to 100.
   * Default 1.
   */
  readonly requiredNodeManagers?: number;
  /**
   * The timeout of the session with ZooKeeper, and so the time until another manager replaces one
   * that died: 1 s to 1 h. Default 6 s. The server may grant another one.
   */
  readonly sessionTimeout?: Duration;
  /**
   * How long a client relies on a primary that it cannot confirm with ZooKeeper. A failover from a
   * primary that does not answer waits for that time: 100 ms to 1 min. Default 1 s. The value is
   * kept in ZooKeeper, and never lowered there.
   */
  readonly clientView?: Duration;
  /**
   * Decides about a node that comes back with data. `proven` (default): it copies the primary only
   * if the primary has all that the node may have. Otherwise it is set aside until an operator
   * decides. `always`: it copies the primary in any case, and data that only it had are thrown
   * away. Right for caches.
   */
  readonly rejoin?: 'proven' | 'always';
  /** Called with everything that happens. An error that it throws is ignored. */
  readonly onEvent?: (event: ManagerEvent) => void;
}

export interface ResolvedOptions {
  readonly nodes: readonly NodeAddress[];
  readonly zookeeper: string;
  readonly zookeeperOptions: Pick<ClientOptions, 'auth' | 'sasl' | 'tls'>;
  readonly root: string;
  readonly id: string;
  readonly access: NodeAccess;
  readonly maxFailures: number;
  readonly checkEveryMs: number;
  readonly nodeTimeoutMs: number;
  readonly nodeStrategy: NodeStrategy;
  readonly requiredNodeManagers: number;
  readonly sessionTimeoutMs: number;
  readonly clientViewMs: number;
  readonly rejoin: 'proven' | 'always';
  readonly onEvent: (event: ManagerEvent) => void;
}

const names: Readonly<Record<keyof ManagerOptions, true>> = {
  nodes: true,
  zookeeper: true,
  zookeeperOptions: true,
  root: true,
  id: true,
  username: true,
  password: true,
  tls: true,
  maxFailures: true,
  checkEvery: true,
  nodeTimeout: true,
  nodeStrategy: true,
  failoverStrategy: true,
  requiredNodeManagers: true,
  sessionTimeout: true,
  clientView: true,
  rejoin: true,
  onEvent: true,
};

/** @throws InvalidOptionError */
export function resolveOptions(options: ManagerOptions): ResolvedOptions {
  for (const name of Object.keys(options)) {
    if (Object.hasOwn(names, name)) continue;
    const known = Object.keys(names).join(', ');
    throw new InvalidOptionError(`NodeManager has no option "${name}"; it knows ${known}`);
  }
  const { username, password, tls } = options;
  return {
    nodes: resolveNodes(options.nodes),
    zookeeper: resolveZooKeeper(options.zookeeper),
    zookeeperOptions: options.zookeeperOptions ?? {},
    root: resolveRoot(options.root ?? defaultRoot),
    id: resolveId(options.id),
    access: {
      ...(username === undefined ? {} : { username }),
      ...(password === undefined ? {} : { password }),
      ...(tls === undefined ? {} : { tls }),
    },
    maxFailures: count('maxFailures', options.maxFailures ?? 3, 100),
    checkEveryMs: span('checkEvery', options.checkEvery ?? 500, 10, 60_000),
    nodeTimeoutMs: span('nodeTimeout', options.nodeTimeout ?? 500, 10, 60_000),
    nodeStrategy: oneOf('nodeStrategy', options.nodeStrategy ?? 'majority', strategies),
    requiredNodeManagers: requireManagers(options),
    sessionTimeoutMs: span('sessionTimeout', options.sessionTimeout ?? 6_000, 1_000, 3_600_000),
    clientViewMs: span('clientView', options.clientView ?? 1_000, 100, 60_000),
    rejoin: oneOf('rejoin', options.rejoin ?? 'proven', ['proven', 'always'] as const),
    onEvent: options.onEvent ?? (() => {}),
  };
}

const strategies = ['majority', 'consensus', 'single'] as const;

function requireManagers(options: ManagerOptions): number {
  oneOf('failoverStrategy', options.failoverStrategy ?? 'latency', ['latency'] as const);
  return count('requiredNodeManagers', options.requiredNodeManagers ?? 1, 100);
}

function resolveNodes(nodes: unknown): readonly NodeAddress[] {
  if (!Array.isArray(nodes) || nodes.length === 0) {
    throw new InvalidOptionError(
      'nodes is a list of every Redis of the set, such as ["10.0.0.7:6379", "10.0.0.8:6379"], not ' +
        `${JSON.stringify(nodes)}`,
    );
  }
  const addresses = nodes.map((node, index) =>
    formatNodeAddress(parseNodeAddress(`nodes[${index}]`, node)),
  );
  const twice = addresses.find((address, index) => addresses.indexOf(address) !== index);
  if (twice !== undefined) {
    throw new InvalidOptionError(`nodes names ${twice} twice: each Redis stands there once`);
  }
  return addresses;
}

function resolveZooKeeper(value: unknown): string {
  if (typeof value !== 'string' || value === '') {
    throw new InvalidOptionError(
      'zookeeper is a connection string such as "zk1:2181,zk2:2181/chroot", not ' +
        `${JSON.stringify(value)}`,
    );
  }
  try {
    parseConnectionString(value);
  } catch (error) {
    throw new InvalidOptionError(`zookeeper: ${(error as Error).message}`);
  }
  return value;
}

function resolveRoot(root: unknown): string {
  if (typeof root !== 'string' || !/^(\/[^/\s]+)+$/.test(root) || /\/\.{1,2}(\/|$)/.test(root)) {
    throw new InvalidOptionError(
      `root is the path of a node such as ${defaultRoot}, without a slash at its end, not ` +
        `${JSON.stringify(root)}`,
    );
  }
  return root;
}

/**
 * The gem's id `<fqdn>-<pid>` is not unique in containers, in which every process has the same pid.
 */
function resolveId(id: unknown): string {
  if (id === undefined) return `${hostname()}-${process.pid}-${randomBytes(4).toString('hex')}`;
  // The id is part of the name of a Redis connection, which may have no spaces, and of the name of
  // a znode.
  if (typeof id !== 'string' || !/^[\w.@-]{1,100}$/.test(id)) {
    throw new InvalidOptionError(
      'id has 1 to 100 letters, digits, and of the signs only . _ @ -, not ' +
        `${JSON.stringify(id)}`,
    );
  }
  return id;
}

function count(name: string, value: unknown, most: number): number {
  if (!Number.isSafeInteger(value) || (value as number) < 1 || (value as number) > most) {
    throw new InvalidOptionError(
      `${name} is a whole number from 1 to ${most}, not ${JSON.stringify(value)}`,
    );
  }
  return value as number;
}

function span(name: string, value: Duration, leastMs: number, mostMs: number): number {
  const valueMs = parseDuration(name, value);
  if (valueMs < leastMs || valueMs > mostMs) {
    throw new InvalidOptionError(
      `${name} is from ${formatDuration(leastMs)} to ${formatDuration(mostMs)}, not ` +
        `${formatDuration(valueMs)}`,
    );
  }
  return valueMs;
}

function oneOf<Choice extends string>(
  name: string,
  value: unknown,
  choices: readonly Choice[],
): Choice {
  if (!choices.includes(value as Choice)) {
    throw new InvalidOptionError(
      `${name} is one of ${choices.join(', ')}, not ${JSON.stringify(value)}`,
    );
  }
  return value as Choice;
}
