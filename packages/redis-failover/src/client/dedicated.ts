import type { NodeAddress } from '../node-address.ts';
import type { Connection } from './connection.ts';
import { NotSentError } from './errors.ts';

/**
 * A connection of your own, to the primary of one term or to one replica. It is the driver's
 * client: commands are sent at once, and no reply is checked against the term. For writes with that
 * check see `RedisFailover.write`.
 */
export interface Dedicated<Client extends object> extends AsyncDisposable {
  /** The client of the driver, connected and logged in. Do not close it yourself: use `close`. */
  readonly client: Client;
  /** The node as `host:port`. */
  readonly address: NodeAddress;
  /** The term of the primary; undefined for a replica, and under managers of the Ruby gem. */
  readonly term: number | undefined;
  /**
   * Aborts, with an error as its reason, when the node loses its role, the connection breaks, or
   * the failover client is closed. The connection is closed then.
   */
  readonly signal: AbortSignal;
  /** Closes the connection. Idempotent. */
  close(): void;
}

export function dedicatedTo<Client extends object>(
  connection: Connection<Client>,
  term: number | undefined,
  stop: () => void,
  ended: AbortController,
): Dedicated<Client> {
  const close = () => {
    stop();
    connection.close();
    ended.abort(new NotSentError(`the connection to ${connection.address} has been closed`));
  };
  return {
    client: connection.client,
    address: connection.address,
    term,
    signal: ended.signal,
    close,
    async [Symbol.asyncDispose]() {
      close();
    },
  };
}
