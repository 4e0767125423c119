import { ClosedError, InvalidOptionError } from 'incumbent';
import type {
  GrpcModule,
  InterceptorOf,
  LeaderResolverHandle,
  LeaderResolverOptions,
} from 'incumbent/grpc';
import { carryKnownToken, markCalls, registerLeaderResolver } from 'incumbent/grpc';
import { describeValue } from 'incumbent/internal';
import type { Shards } from '../create-shards.ts';
import { electionOf } from '../following.ts';

/** The shard of a call, percent-encoded. */
export const shardHeader = 'incumbent-shard';

/** The client of one shard is to be made with these. */
export interface OwnerClientOptions<Module extends GrpcModule> {
  /**
   * Make calls carry the shard, and the token of its newest known term: a server can tell that it owns the
   * shard, and in no older term.
   */
  readonly interceptors: readonly InterceptorOf<Module>[];
}

/** The options of `toOwner`: those of `registerLeaderResolver`, but a client instead of elections. */
export interface ToOwnerOptions<Module extends GrpcModule, Client>
  extends Omit<LeaderResolverOptions, 'elections'> {
  /**
   * Makes the client of one shard, once: `(target, options) => new LedgerClient(target, credentials,
   * options)`. An error that it throws is that of `of`.
   */
  readonly client: (target: string, options: OwnerClientOptions<Module>) => Client;
}

/** Clients by shards. */
export interface OwnerClients<Shard extends string | number, Client> {
  /**
   * The client whose calls reach the owner of the shard. It is the same one each time.
   * @throws InvalidOptionError for a shard that is not in the list; ClosedError
   */
  of(shard: Shard): Client;
  /** Closes all clients, and ends following. A second call does nothing. */
  close(): void;
  [Symbol.dispose](): void;
}

/**
 * Clients that call the process that owns a shard, under the rules of `registerLeaderResolver`. The channel
 * of each shard lets go of an owner as soon as the shard has moved. Channels to one process share its
 * connection.
 *
 * ```ts
 * const owners = toOwner(grpc, shards, {
 *   client: (target, options) => new LedgerClient(target, credentials, options),
 * });
 * owners.of(17).post(entry, callback); // to the owner of shard 17
 * ```
 *
 * Not promised: that the called server still owns the shard. Let it use `requireOwnership`.
 * @throws InvalidOptionError
 */
export function toOwner<
  Module extends GrpcModule,
  Shard extends string | number,
  Client extends { close(): void },
>(
  module: Module,
  shards: Shards<Shard>,
  options: ToOwnerOptions<Module, Client>,
): OwnerClients<Shard, Client> {
  const { client: open, ...others } = options ?? {};
  if (typeof open !== 'function') {
    throw new InvalidOptionError(
      `client must be a function that makes the client of a shard, not ${describeValue(open)}`,
    );
  }
  const clients = new Map<
    Shard,
    { readonly client: Client; readonly resolver: LeaderResolverHandle }
  >();
  let isClosed = false;
  const close = () => {
    isClosed = true;
    for (const { client, resolver } of clients.values()) {
      client.close();
      resolver.close();
    }
    clients.clear();
  };
  return {
    of(shard) {
      if (isClosed) throw new ClosedError(shards.name);
      const known = clients.get(shard);
      if (known !== undefined) return known.client;
      const election = electionOf(shards, shard);
      const text = encodeURIComponent(String(shard));
      const carryShard = markCalls(module, (metadata) => metadata.set(shardHeader, text));
      const name = `${shards.name}/${shard}`;
      const resolver = registerLeaderResolver(module, {
        ...others,
        elections: { [name]: election },
      });
      try {
        const client = open(`incumbent:///${encodeURIComponent(name)}`, {
          interceptors: [carryKnownToken(module, election), carryShard],
        });
        clients.set(shard, { client, resolver });
        return client;
      } catch (error) {
        resolver.close();
        throw error;
      }
    },
    close,
    [Symbol.dispose]: close,
  };
}
