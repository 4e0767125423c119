import type { HintConnection } from '../hint-hub.ts';

/** Sends one command, the first word of `args`. */
export type Send = (args: readonly string[]) => Promise<unknown>;

/** The two client libraries, seen alike. */
export interface RedisDriver {
  /** Where it leads, for people, without secrets. */
  readonly description: string;
  /** What the client's owner wants before every key, and has not: we write it ourselves. */
  readonly ownPrefix: string;
  /** What the client writes before every key by itself. */
  readonly clientPrefix: string;
  /** @param key decides which node of a cluster it is sent to; one of the command's keys */
  send(key: string, args: readonly string[], signal?: AbortSignal): Promise<unknown>;
  /**
   * All that `job` sends goes to one server, and over one connection unless the client reconnects
   * meanwhile. Undefined for a cluster, where a command without a key goes to any node.
   */
  readonly together: (<T>(job: (send: Send) => Promise<T>) => Promise<T>) | undefined;
  /** Subscribes on a connection of its own: a copy of the client, made as the client was. */
  subscribe(
    channel: string,
    onMessage: (message: string) => void,
    onLost: (error?: unknown) => void,
  ): Promise<HintConnection>;
}
