import { InvalidOptionError } from 'incumbent';
import type { Driver, DriverConnection } from './driver.ts';
import type { Refusals } from './forced-options.ts';
import {
  checkObject,
  noReconnect,
  noResend,
  refuseOptions,
  refuseTargets,
} from './forced-options.ts';
import { show } from './show.ts';

/** The part of a client of the package `ioredis` (5 or 6) that this package uses. */
export interface IoredisClient {
  readonly status: string;
  connect(): Promise<void>;
  disconnect(reconnect?: boolean): void;
  call(command: string, ...parts: string[]): Promise<unknown>;
  // biome-ignore lint/suspicious/noExplicitAny: each event has listeners of its own
  on(event: string, listener: (...values: any[]) => void): unknown;
}

const refusals: Refusals = {
  ...refuseTargets('host', 'port', 'path', 'sentinels', 'Connector', 'natMap'),
  retryStrategy: noReconnect,
  reconnectOnError: noReconnect,
  autoResendUnfulfilledCommands: noResend,
  maxRetriesPerRequest: noResend,
  enableOfflineQueue: `commands are never kept back for a connection that is not there; ${noResend}`,
  lazyConnect: 'connections are made when they are needed',
  commandTimeout: 'give commandTimeout to RedisFailover.connect: it also ends the connection',
  readOnly: "it is for Redis Cluster; reads: 'replicas' is what spreads reads here",
  monitor: 'use dedicated(), and monitor() of the client that it gives',
};
const allowed = {
  retryStrategy: [null],
  reconnectOnError: [null],
  autoResendUnfulfilledCommands: [false],
  maxRetriesPerRequest: [0, null],
  enableOfflineQueue: [false],
  lazyConnect: [true],
  readOnly: [false],
  monitor: [false],
} as const;

/**
 * Makes connections with the package `ioredis`: `ioredis(Redis, { password })`.
 * @param options of `new Redis`, without those that say where to connect, and when to reconnect or
 *   resend
 * @throws InvalidOptionError for an option that the failover client decides itself
 */
export function ioredis<Client extends IoredisClient>(
  // biome-ignore lint/suspicious/noExplicitAny: the options of one version or another
  Redis: new (options: any) => Client,
  options: object = {},
): Driver<Client> {
  if (typeof Redis !== 'function') {
    throw new InvalidOptionError(
      `ioredis takes the class Redis of the package ioredis, not ${show(Redis)}`,
    );
  }
  checkObject('ioredis', options);
  refuseOptions('ioredis', options, refusals, allowed);
  const create = (address: object): Client => {
    const client = new Redis({
      ...options,
      ...address,
      lazyConnect: true,
      enableOfflineQueue: false,
      retryStrategy: () => null,
      reconnectOnError: null,
      autoResendUnfulfilledCommands: false,
      autoResubscribe: false,
      maxRetriesPerRequest: 0,
      // The check would wait for a node that loads its data. Meanwhile another node may be the
      // primary.
      enableReadyCheck: false,
    });
    return client;
  };
  const model = create({});
  if (typeof model.call !== 'function' || (model as { isCluster?: unknown }).isCluster === true) {
    throw new InvalidOptionError(
      'ioredis takes the class Redis of the package ioredis, which is a client of one server: not Cluster',
    );
  }
  const { scripts = {} } = options as { readonly scripts?: object };
  return {
    name: 'ioredis',
    model,
    // ioredis makes a second method for each script, which gives buffers.
    own: new Set(Object.keys(scripts).flatMap((name) => [name, `${name}Buffer`])),
    open: (address) => connectionOf(create(address)),
  };
}

function connectionOf<Client extends IoredisClient>(client: Client): DriverConnection<Client> {
  let closed = false;
  /** An error such as WRONGPASS. `connect` itself says only that the connection is closed. */
  let said: Error | undefined;
  client.on('error', (error: Error) => {
    said = error;
  });
  return {
    client,
    get isOpen() {
      return !closed && client.status === 'ready';
    },
    async connect() {
      try {
        await client.connect();
      } catch (error) {
        throw said ?? error;
      }
      // ioredis goes on if a SELECT of the handshake was refused, and would use another database.
      if (said !== undefined) throw said;
    },
    command: ([command = '', ...parts]) => client.call(command, ...parts),
    close() {
      if (closed) return;
      closed = true;
      client.disconnect();
    },
    onClose(listener) {
      client.on('close', listener);
      client.on('end', listener);
    },
  };
}
