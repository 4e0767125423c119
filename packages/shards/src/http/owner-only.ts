import { InvalidOptionError } from 'incumbent';
import type { HttpRequest, LeaderOnly, LeaderOnlyOptions, Middleware } from 'incumbent/http';
import { leaderOnly } from 'incumbent/http';
import { describeValue } from 'incumbent/internal';
import type { Shards } from '../create-shards.ts';
import { electionOf } from '../following.ts';
import { leaderTermOf } from '../leader-term.ts';

/** The options of `ownerOnly`: those of `leaderOnly`, but the shards instead of an election and a term. */
export interface OwnerOnlyOptions<Shard extends string | number>
  extends Omit<LeaderOnlyOptions, 'election' | 'term'> {
  /** The shards that this process takes part in. The handle stays the caller's. */
  readonly shards: Shards<Shard>;
  /** The shard of a request, from its path or its headers. */
  readonly shardOf: (request: HttpRequest) => Shard;
}

/** A middleware: `app.use(only)`, or `only(request, response, () => …)` with plain `node:http`. */
export interface OwnerOnly extends Middleware {
  /** No owner is known any more. A second call does nothing. */
  close(): void;
}

/**
 * Lets only the owner of a shard serve the requests for it, under the rules of `leaderOnly`: the others
 * redirect, pass on or refuse.
 * @throws InvalidOptionError
 */
export function ownerOnly<Shard extends string | number>(
  options: OwnerOnlyOptions<Shard>,
): OwnerOnly {
  const { shards, shardOf, ...others } = options ?? {};
  if (typeof shardOf !== 'function') {
    throw new InvalidOptionError(`shardOf must be a function, not ${describeValue(shardOf)}`);
  }
  const gates = new Map<Shard, LeaderOnly>();
  const gateOf = (shard: Shard): LeaderOnly => {
    let gate = gates.get(shard);
    if (gate === undefined) {
      const election = electionOf(shards, shard);
      const term = () => {
        const own = shards.term(shard);
        return own && leaderTermOf(own);
      };
      gate = leaderOnly({ ...others, election, term });
      gates.set(shard, gate);
    }
    return gate;
  };
  const middleware: Middleware = (request, response, next) => {
    gateOf(shardOf(request))(request, response, next);
  };
  return Object.assign(middleware, {
    close() {
      for (const gate of gates.values()) gate.close();
    },
  });
}
