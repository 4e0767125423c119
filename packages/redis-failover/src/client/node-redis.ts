import { InvalidOptionError } from 'incumbent';
import type { HostAndPort } from '../node-address.ts';
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

/** The part of a client of the package `redis` (4, 5 or 6) that this package uses. */
export interface NodeRedisClient {
  connect(): Promise<unknown>;
  sendCommand(parts: string[]): Promise<unknown>;
  // biome-ignore lint/suspicious/noExplicitAny: the options of one version or another
  duplicate(options: any): NodeRedisClient;
  readonly options?: { readonly scripts?: object | undefined } | undefined;
  readonly isReady: boolean;
  // biome-ignore lint/suspicious/noExplicitAny: each event has listeners of its own
  on(event: string, listener: (...values: any[]) => void): unknown;
}

const ofClient: Refusals = {
  ...refuseTargets('url'),
  disableOfflineQueue: `commands are never kept back for a connection that is not there; ${noResend}`,
  legacyMode: 'it has no promises; call the methods of `redis` instead',
  readonly: "it is for Redis Cluster; reads: 'replicas' is what spreads reads here",
  clientSideCache: 'its contents outlive the connection that keeps it true',
  emitInvalidate: 'a routed client has no connection whose keys could be tracked; use dedicated()',
  maintNotifications: `it moves a connection to another server; ${noReconnect}`,
};
const ofSocket: Refusals = {
  ...refuseTargets('host', 'port', 'path'),
  reconnectStrategy: noReconnect,
};
const allowed = {
  disableOfflineQueue: [true],
  legacyMode: [false],
  readonly: [false],
  emitInvalidate: [false],
  maintNotifications: ['disabled'],
  reconnectStrategy: [false],
} as const;

/**
 * Makes connections with the package `redis`: `nodeRedis(createClient, { password })`. For modules,
 * functions and scripts pass a function:
 * `nodeRedis((options) => createClient({ ...options, scripts }))`.
 * @param options of `createClient`, without those that say where to connect and when to reconnect
 * @throws InvalidOptionError for an option that the failover client decides itself
 */
export function nodeRedis<Client extends NodeRedisClient>(
  // biome-ignore lint/suspicious/noExplicitAny: the options of one version or another
  createClient: (options: any) => Client,
  options: object = {},
): Driver<Client> {
  if (typeof createClient !== 'function') {
    throw new InvalidOptionError(
      `nodeRedis takes createClient of the package redis, not ${show(createClient)}`,
    );
  }
  checkObject('nodeRedis', options);
  refuseOptions('nodeRedis', options, ofClient, allowed);
  const { socket = {} } = options as { readonly socket?: object };
  checkObject('nodeRedis socket', socket);
  refuseOptions('nodeRedis', socket, ofSocket, allowed);
  const model = createClient({
    // A copy, because createClient writes into its argument.
    ...options,
    socket: { ...socket, reconnectStrategy: false },
    disableOfflineQueue: true,
    maintNotifications: 'disabled',
  });
  if (typeof model?.duplicate !== 'function' || !('isReady' in model)) {
    throw new InvalidOptionError(
      'nodeRedis takes a function that makes a client of one server, such as createClient of the ' +
        'package redis: not a cluster, a pool or a Sentinel',
    );
  }
  if ('keyPrefix' in options && !('_keyPrefix' in model)) {
    throw new InvalidOptionError(
      `nodeRedis: this version of the package redis ignores keyPrefix ${show(options.keyPrefix)}, so other ` +
        'keys would be written: take redis 6.1 or newer, or ioredis',
    );
  }
  const create = (address: HostAndPort): Client => {
    // createClient makes a class with all commands at each call, which blocks the process for a
    // while.
    const client = model.duplicate({ socket: { ...socket, ...address, reconnectStrategy: false } });
    // Without a listener an error would end the process. The caller that waits for a reply gets it
    // anyway.
    client.on('error', () => {});
    return client as Client;
  };
  const { scripts = {} } = model.options ?? {};
  return {
    name: 'node-redis',
    model,
    own: new Set(Object.keys(scripts)),
    open: (address) => connectionOf(create(address)),
  };
}

function connectionOf<Client extends NodeRedisClient>(client: Client): DriverConnection<Client> {
  let closed = false;
  // A socket that was still connecting when the client was closed comes up all the same.
  client.on('connect', () => {
    if (closed) destroy(client);
  });
  return {
    client,
    get isOpen() {
      return !closed && client.isReady;
    },
    async connect() {
      await client.connect();
    },
    command: (parts) => client.sendCommand([...parts]),
    close() {
      if (closed) return;
      closed = true;
      destroy(client);
    },
    onClose(listener) {
      client.on('error', listener);
      client.on('end', listener);
    },
  };
}

/**
 * Version 5 has `destroy`, earlier versions have `disconnect`. Both reject commands that are not
 * answered, and throw if the client is closed already.
 */
function destroy(client: object): void {
  const { destroy: end, disconnect } = client as {
    readonly destroy?: () => void;
    readonly disconnect?: () => Promise<void>;
  };
  try {
    if (end !== undefined) end.call(client);
    else void disconnect?.call(client).catch(() => {}); // The client was closed already.
  } catch {
    // The client was closed already.
  }
}
