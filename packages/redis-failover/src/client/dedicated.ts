import type { NodeAddress } from '../node-address.ts';
import type { Connection } from './connection.ts';
import { NotSentError } from './errors.ts';

/**
 * A connection of one's own, to the primary of one term or to one replica. What is sent on it is sent at
 * once, and its replies are not judged: see `RedisFailover.write` for writes that are.
 */
export interface Dedicated<Client extends object> extends AsyncDisposable {
  readonly client: Client;
  readonly address: NodeAddress;
  /** Of the primary; undefined of a replica, and under Ruby managers. */
  readonly term: number | undefined;
  /** Aborts when the node is not any more what it was, or the client is closed; the connection is closed then. */
  readonly signal: AbortSignal;
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
