import type { Clock } from '@incumbent/zookeeper';
import { ZooKeeper } from '@incumbent/zookeeper';
import type { Duration } from 'incumbent';
import { InvalidOptionError, parseDuration } from 'incumbent';
import { defaultRoot } from '../layout.ts';
import type { ChangeListener } from './change-teller.ts';
import type { Driver } from './driver.ts';
import { show } from './show.ts';

/** Options of `RedisFailover.connect`. A duration is a number of ms, or a text such as `'2s'`. */
export interface RedisFailoverOptions<Client extends object> {
  /**
   * The ZooKeeper servers: `zk://h1:2181,h2:2181/chroot`. Or a client of yours, which then stays
   * open after `close`.
   */
  readonly zookeeper: string | ZooKeeper;
  /** The path below which the managers keep their znodes (default `/redis_failover`). */
  readonly root?: string | undefined;
  /** The Redis client to use: `nodeRedis(createClient, options)` or `ioredis(Redis, options)`. */
  readonly redis: Driver<Client>;
  /**
   * Where commands go that Redis calls read-only. `replicas` (default): to a random replica, and to
   * the primary if no replica answers. Replicas lag behind. `primary`: to the primary, like all
   * other commands.
   */
  readonly reads?: 'replicas' | 'primary' | undefined;
  /** How long a call may take, with all waiting and all attempts. Default 10 s, at least 1 ms. */
  readonly maxWait?: Duration | undefined;
  /**
   * How long making a connection to a node may take, with the login. Default 2 s, at least 1 ms.
   */
  readonly connectTimeout?: Duration | undefined;
  /**
   * How long one command may go unanswered. Its connection is closed then. Default 5 s, at least 1
   * ms.
   */
  readonly commandTimeout?: Duration | undefined;
  /**
   * `true` (default): the client sends a write, and counts a reply, only if ZooKeeper has confirmed
   * the primary. With `false` the client goes on with the last known primary while ZooKeeper is
   * away. If the primary is moved meanwhile, writes to the old one are lost.
   */
  readonly safeMode?: boolean | undefined;
  /**
   * `true` (default): on each new connection the client asks whether the node is what ZooKeeper
   * says. It asks for the role by ROLE, and for the primary's process by INFO. A primary that was
   * started anew may have lost data. The client writes to it only when a manager has looked at it.
   * With `false` it asks for neither.
   */
  readonly verifyRole?: boolean | undefined;
  /**
   * `true`: a write that may have been applied is sent again, and so may be applied twice. With
   * `false` (default) the call rejects with OutcomeUnknownError.
   */
  readonly retryAmbiguous?: boolean | undefined;
  /** Called after every change, from the start; see `RedisFailover.onChange`. */
  readonly onChange?: ChangeListener | undefined;
  /** Makes `connect` give up when it aborts. It has no effect afterwards. */
  readonly signal?: AbortSignal | undefined;
  /** A source of time, for tests. Default: the machine's clocks. */
  readonly clock?: Clock | undefined;
}

const known: Readonly<Record<keyof RedisFailoverOptions<object>, true>> = {
  zookeeper: true,
  root: true,
  redis: true,
  reads: true,
  maxWait: true,
  connectTimeout: true,
  commandTimeout: true,
  safeMode: true,
  verifyRole: true,
  retryAmbiguous: true,
  onChange: true,
  signal: true,
  clock: true,
};

/** Names that the Ruby gem and other libraries use, and what to use here. */
const otherNames: Readonly<Record<string, string>> = {
  zk: 'zookeeper',
  zkservers: 'zookeeper, such as "zk://h1:2181,h2:2181"',
  znode_path: 'root, with a slash before it',
  master_only: "reads: 'primary'",
  safe_mode: 'safeMode',
  verify_role: 'verifyRole',
  retry_failure: 'maxWait: how long reads, and commands that were not sent yet, are tried again',
  max_retries: 'maxWait',
  password: 'an option of nodeRedis() or ioredis()',
  db: 'an option of ioredis(), or database of nodeRedis()',
  namespace: 'keyPrefix of nodeRedis() or ioredis(), with a colon at its end: "app:" for "app"',
  logger: 'onChange',
};

export interface ResolvedOptions<Client extends object> {
  readonly zookeeper: string | ZooKeeper;
  readonly root: string;
  readonly redis: Driver<Client>;
  readonly reads: 'replicas' | 'primary';
  readonly maxWaitMs: number;
  readonly connectTimeoutMs: number;
  readonly commandTimeoutMs: number;
  readonly safeMode: boolean;
  readonly verifyRole: boolean;
  readonly retryAmbiguous: boolean;
}

/** @throws InvalidOptionError, which names the option, its value, the rule and what to do */
export function resolveClientOptions<Client extends object>(
  options: RedisFailoverOptions<Client>,
): ResolvedOptions<Client> {
  if (typeof options !== 'object' || options === null) {
    throw new InvalidOptionError(
      `RedisFailover.connect takes options such as { zookeeper: "zk://h1:2181", redis: nodeRedis(createClient) }, not ${show(options)}`,
    );
  }
  for (const name of Object.keys(options)) {
    if (Object.hasOwn(known, name)) continue;
    const instead = otherNames[name];
    const way =
      instead === undefined ? `it knows ${Object.keys(known).join(', ')}` : `that is ${instead}`;
    throw new InvalidOptionError(`RedisFailover.connect has no option "${name}"; ${way}`);
  }
  const { zookeeper, root = defaultRoot, redis, reads = 'replicas', onChange } = options;
  if (!(zookeeper instanceof ZooKeeper) && (typeof zookeeper !== 'string' || zookeeper === '')) {
    throw new InvalidOptionError(
      `zookeeper is a connection string such as "zk://h1:2181,h2:2181/chroot" or a client of ` +
        `@incumbent/zookeeper, not ${show(zookeeper)}`,
    );
  }
  if (typeof root !== 'string' || !/^(\/[^/\s]+)+$/.test(root)) {
    throw new InvalidOptionError(
      `root is a path in ZooKeeper such as "/redis_failover", not ${show(root)}`,
    );
  }
  if (typeof redis?.open !== 'function') {
    throw new InvalidOptionError(
      `redis is made by nodeRedis(createClient) or ioredis(Redis), and not ${show(redis)}`,
    );
  }
  if (reads !== 'replicas' && reads !== 'primary') {
    throw new InvalidOptionError(`reads is 'replicas' or 'primary', not ${show(reads)}`);
  }
  if (onChange !== undefined && typeof onChange !== 'function') {
    throw new InvalidOptionError(`onChange is a function, not ${show(onChange)}`);
  }
  const flag = (name: 'safeMode' | 'verifyRole' | 'retryAmbiguous', standard: boolean) => {
    const value = options[name] ?? standard;
    if (typeof value === 'boolean') return value;
    throw new InvalidOptionError(`${name} is true or false, not ${show(value)}`);
  };
  const timeout = (name: 'maxWait' | 'connectTimeout' | 'commandTimeout', standard: string) => {
    const ms = parseDuration(name, options[name] ?? standard);
    if (ms >= 1) return ms;
    throw new InvalidOptionError(`${name} is at least 1 ms, not ${show(options[name])}`);
  };
  return {
    zookeeper,
    root,
    redis,
    reads,
    maxWaitMs: timeout('maxWait', '10s'),
    connectTimeoutMs: timeout('connectTimeout', '2s'),
    commandTimeoutMs: timeout('commandTimeout', '5s'),
    safeMode: flag('safeMode', true),
    verifyRole: flag('verifyRole', true),
    retryAmbiguous: flag('retryAmbiguous', false),
  };
}
