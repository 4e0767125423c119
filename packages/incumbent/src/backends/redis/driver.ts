import type { HintConnection } from '../hint-hub.ts';

/** Sends one command, the first word of `args`. */
export type Send = (args: readonly string[]) => Promise<unknown>;

/** The common face of the two client libraries. */
export interface RedisDriver {
  /** The server that it leads to, for people, without secrets. */
  readonly description: string;
  /**
   * The prefix that the client's owner wants, but that the client does not write. We
   * write it ourselves.
   */
  readonly ownPrefix: string;
  /** The prefix that the client writes before every key by itself. */
  readonly clientPrefix: string;
  /**
   * @param key one of the command's keys. It decides which node of a cluster the command is sent to
   */
  send(key: string, args: readonly string[], signal?: AbortSignal): Promise<unknown>;
  /**
   * Sends all commands of `job` to one server, and over one connection unless the client reconnects
   * meanwhile. Undefined for a cluster, where a command without a key goes to any node.
   */
  readonly together: (<T>(job: (send: Send) => Promise<T>) => Promise<T>) | undefined;
  /** One for each server that holds data: one, but on a cluster. For commands without a key. */
  primaries(): Promise<readonly Send[]>;
  /** Subscribes on a connection of its own: a copy of the client, made as the client was. */
  subscribe(
    channel: string,
    onMessage: (message: string) => void,
    onLost: (error?: unknown) => void,
  ): Promise<HintConnection>;
}
