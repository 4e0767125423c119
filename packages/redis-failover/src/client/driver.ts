import type { HostAndPort } from '../node-address.ts';

/** A client library for Redis, as the failover client uses it. Made by `nodeRedis` and `ioredis`. */
export interface Driver<Client extends object> {
  readonly name: 'node-redis' | 'ioredis';
  /** Never connected: says which methods there are. */
  readonly model: Client;
  /** Names of scripts and functions that the caller has added to it. */
  readonly own: ReadonlySet<string>;
  /** Connects to nothing yet. */
  open(address: HostAndPort): DriverConnection<Client>;
}

/** One connection: it never reconnects, queues nothing while it is not connected, resends nothing. */
export interface DriverConnection<Client extends object> {
  readonly client: Client;
  /** Whether a command that is called now is sent. */
  readonly isOpen: boolean;
  /** Connected, logged in. Rejects with what the library says. Bounded by the caller. */
  connect(): Promise<void>;
  command(parts: readonly string[]): Promise<unknown>;
  /** At once: what is in flight is rejected. Idempotent, never throws. */
  close(): void;
  onClose(listener: () => void): void;
}
