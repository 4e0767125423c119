import type { HostAndPort } from '../node-address.ts';

/**
 * A client library for Redis, as the failover client uses it. Made by `nodeRedis` and `ioredis`.
 */
export interface Driver<Client extends object> {
  readonly name: 'node-redis' | 'ioredis';
  /** A client that is never connected. It tells which methods there are. */
  readonly model: Client;
  /** Names of the scripts and functions that the caller has added to the client. */
  readonly own: ReadonlySet<string>;
  /** Makes a client for one node. It is not connected yet. */
  open(address: HostAndPort): DriverConnection<Client>;
}

/**
 * One connection. It never reconnects, queues nothing while it is not connected, and sends nothing
 * twice.
 */
export interface DriverConnection<Client extends object> {
  readonly client: Client;
  /** Whether a command that is called now would be sent. */
  readonly isOpen: boolean;
  /** Connects and logs in. Rejects with the library's error. The caller limits its time. */
  connect(): Promise<void>;
  command(parts: readonly string[]): Promise<unknown>;
  /** Closes it at once: commands that are not answered reject. Idempotent, never throws. */
  close(): void;
  onClose(listener: () => void): void;
}
