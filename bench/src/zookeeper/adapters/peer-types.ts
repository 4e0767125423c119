/**
 * The parts of the peers that we use. They are installed apart, and bring no types of their own.
 */
import { createRequire } from 'node:module';

// So that it is the same place from `src/` and from `dist/`.
export const peersDirectory: URL = new URL('../../../zookeeper/peers/', import.meta.url);

export function requirePeer<T>(name: string): T {
  return createRequire(new URL('package.json', peersDirectory))(name) as T;
}

type Callback<T = unknown> = (error: Error | null, value?: T) => void;

/** Of node-zookeeper-client. */
export interface NzcModule {
  createClient(connectionString: string, options?: { sessionTimeout?: number }): NzcClient;
}

export interface NzcClient {
  once(event: 'connected', listener: () => void): this;
  on(event: 'disconnected', listener: () => void): this;
  connect(): void;
  close(): void;
  addAuthInfo(scheme: string, auth: Buffer): void;
  getData(path: string, callback: Callback<Buffer>): void;
  getData(path: string, watcher: () => void, callback: Callback<Buffer>): void;
  setData(path: string, data: Buffer, callback: Callback): void;
  create(path: string, data: Buffer, callback: Callback): void;
}

/** Of zookeeper. */
export type NativeModule = new () => NativeClient;

export interface NativeClient {
  once(event: 'connect' | 'close', listener: () => void): this;
  init(config: {
    connect: string;
    timeout: number;
    debug_level: number;
    host_order_deterministic: boolean;
  }): this;
  close(): void;
  add_auth(scheme: string, auth: string, callback: NativeCallback): void;
  a_get(path: string, watch: boolean, callback: NativeCallback): void;
  aw_get(path: string, watcher: () => void, callback: NativeCallback): void;
  a_set(path: string, data: Buffer, version: number, callback: NativeCallback): void;
  a_create(path: string, data: Buffer, flags: number, callback: NativeCallback): void;
}

export type NativeCallback = (rc: number, error: string, ...rest: readonly unknown[]) => void;
