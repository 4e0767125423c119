import { InvalidOptionError } from 'incumbent';
import type { Dispatch, DispatchOptions, LeaderInterceptor, ToLeaderOptions } from 'incumbent/http';
import { toLeader } from 'incumbent/http';
import { describeValue } from 'incumbent/internal';
import type { Shards } from '../create-shards.ts';
import { electionOf } from '../following.ts';

/** The options of `toOwner`: those of `toLeader`, and which shard a request is for. */
export interface ToOwnerOptions<Shard extends string | number> extends ToLeaderOptions {
  /** The shard of a request, from its path or its headers. An error that it throws rejects the request. */
  readonly shardOf: (request: DispatchOptions) => Shard;
}

/** An interceptor of undici that sends each request to the owner of its shard. */
export interface OwnerInterceptor {
  (dispatch: Dispatch): Dispatch;
  /** Waiting and later requests are rejected with a ClosedError. A second call does nothing. */
  close(): void;
}

/**
 * Sends each request to the process that owns its shard:
 * `new Agent().compose(toOwner(shards, { shardOf }))`. A request waits for an owner, and is sent again to
 * the next one, under the rules of `toLeader`. It carries the token of the shard.
 *
 * Watches the directory of the shards until this or the handle is closed. It does not keep the process
 * alive.
 * @throws InvalidOptionError
 */
export function toOwner<Shard extends string | number>(
  shards: Shards<Shard>,
  options: ToOwnerOptions<Shard>,
): OwnerInterceptor {
  const { shardOf, ...others } = options ?? {};
  if (typeof shardOf !== 'function') {
    throw new InvalidOptionError(`shardOf must be a function, not ${describeValue(shardOf)}`);
  }
  const routes = new Map<Shard, LeaderInterceptor>();
  let isClosed = false;
  const routeTo = (shard: Shard): LeaderInterceptor => {
    let route = routes.get(shard);
    if (route === undefined) {
      route = toLeader(electionOf(shards, shard), others);
      if (isClosed) route.close();
      routes.set(shard, route);
    }
    return route;
  };
  const interceptor = (dispatch: Dispatch): Dispatch =>
    // undici wants a function of two parameters.
    function toOwnerDispatch(request, handler) {
      return routeTo(shardOf(request))(dispatch)(request, handler);
    };
  return Object.assign(interceptor, {
    close() {
      isClosed = true;
      for (const route of routes.values()) route.close();
    },
  });
}
