/** The parts that we need of users' clients. We import neither library, not even its types. */

interface Emitter {
  on(event: string, listener: (...args: unknown[]) => void): unknown;
}

/** `createClient()` of the package `redis`, version 5 or newer. */
export interface NodeRedisClient extends Emitter {
  readonly isOpen: boolean;
  sendCommand(args: string[], options?: CommandOptions): Promise<unknown>;
  duplicate(): NodeRedisSubscriber;
}

/** `createClientPool()` of the package `redis`. */
export interface NodeRedisPool {
  readonly isOpen: boolean;
  readonly totalClients: number;
  sendCommand(args: string[], options?: CommandOptions): Promise<unknown>;
  execute<T>(job: (client: NodeRedisClient) => T): Promise<Awaited<T>>;
}

/** `createCluster()` of the package `redis`. */
export interface NodeRedisCluster extends Emitter {
  readonly isOpen: boolean;
  readonly masters: readonly unknown[];
  getSlotRandomNode(slot: number): unknown;
  nodeClient(
    master: unknown,
  ): Promise<Pick<NodeRedisClient, 'sendCommand'>> | Pick<NodeRedisClient, 'sendCommand'>;
  sendCommand(
    firstKey: string | undefined,
    isReadonly: boolean | undefined,
    args: string[],
    options?: CommandOptions,
  ): Promise<unknown>;
  duplicate(): NodeRedisSubscriber;
}

/** `createSentinel()` of the package `redis`, version 5 or newer. */
export interface NodeRedisSentinel extends Emitter {
  readonly isOpen: boolean;
  getSentinelNode(): unknown;
  sendCommand(
    isReadonly: boolean | undefined,
    args: string[],
    options?: CommandOptions,
  ): Promise<unknown>;
  use<T>(job: (client: Pick<NodeRedisSentinel, 'sendCommand'>) => Promise<T>): Promise<T>;
  duplicate(): NodeRedisSubscriber;
}

/** The options of `sendCommand` of the package `redis`. */
export interface CommandOptions {
  readonly abortSignal?: AbortSignal;
}

/** Common to all copies that `duplicate` of the package `redis` makes. */
export interface NodeRedisSubscriber extends Emitter {
  connect(): Promise<unknown>;
  subscribe(channel: string, listener: (message: string) => void): Promise<void>;
  destroy(): unknown;
  unref?(): void;
}

/** `new Redis()` of the package `ioredis`, version 5 or newer, also with Sentinels. */
export interface IoRedisClient extends Emitter {
  readonly status: string;
  readonly isCluster: boolean;
  call(command: string, ...args: string[]): Promise<unknown>;
  duplicate(override?: object): IoRedisSubscriber;
}

/** `new Cluster()` of the package `ioredis`. */
export interface IoRedisCluster extends Emitter {
  readonly status: string;
  readonly isCluster: boolean;
  call(command: string, ...args: string[]): Promise<unknown>;
  nodes(role?: 'master'): readonly unknown[];
  duplicate(nodes?: never[], override?: object): IoRedisSubscriber;
}

/** A copy of a client of `ioredis`, for listening. */
export interface IoRedisSubscriber extends Emitter {
  connect(): Promise<unknown>;
  subscribe(...channels: string[]): Promise<unknown>;
  disconnect(): void;
}

/** Any client that `redis()` takes. Its owner connects and closes it. */
export type RedisClient =
  | NodeRedisClient
  | NodeRedisPool
  | NodeRedisCluster
  | NodeRedisSentinel
  | IoRedisClient
  | IoRedisCluster;
