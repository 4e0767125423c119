import { grpcRequests } from './protocols/grpc.ts';
import { httpRequests } from './protocols/http.ts';
import { postgresRequests } from './protocols/postgres.ts';
import { redisRequests } from './protocols/redis.ts';

/** Reads one direction of one connection, chunk after chunk. */
export interface Reader {
  /**
   * @returns the names of the requests whose last byte is in `chunk`, and whether there was anything in it
   * but the upkeep of the connection. Throws for what is not its protocol.
   */
  read(chunk: Buffer): { readonly requests: readonly string[]; readonly speaks: boolean };
}

export interface Protocol {
  readonly toServer: () => Reader;
  readonly toClient: () => Reader;
}

/** Whatever the server says is an answer, or news. */
const anything = (): Reader => ({ read: () => ({ requests: [], speaks: true }) });

export type ProtocolName = 'postgres' | 'redis' | 'grpc' | 'http';

export const protocols: Readonly<Record<ProtocolName, Protocol>> = {
  /** Named by the type of message: `Q` (simple query) and `E` (execute). */
  postgres: { toServer: postgresRequests, toClient: anything },
  /** Named by the command, in capitals. */
  redis: { toServer: redisRequests, toClient: anything },
  /** `call` begins one, `message` goes on in one that is open. Pings and windows do not count. */
  grpc: { toServer: () => grpcRequests('client'), toClient: () => grpcRequests('server') },
  /** Named by the method, or `WATCH`. Not over TLS. */
  http: { toServer: httpRequests, toClient: anything },
};
