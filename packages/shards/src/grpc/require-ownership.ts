/** A server interceptor: only the owner of a shard serves the calls for it. */
import { InvalidOptionError } from 'incumbent';
import type { GrpcModule, RequireLeadershipOptions, ServerInterceptorOf } from 'incumbent/grpc';
import { callsEnded as callsOfLeaderEnded, guardCalls } from 'incumbent/grpc';
import { checkNames, describeValue } from 'incumbent/internal';
import type { Shards } from '../create-shards.ts';
import { electionOf, shardOfText } from '../following.ts';
import { leaderTermOf } from '../leader-term.ts';
import type { ShardTerm } from '../shard-term.ts';
import { shardHeader } from './to-owner.ts';

/** A call, as far as it has arrived when its shard is asked for. */
export interface CallOfShard<Module extends GrpcModule> {
  /** Such as `/billing.Ledger/Post`. */
  readonly path: string;
  readonly metadata: InstanceType<Module['Metadata']>;
}

/** The options of `requireOwnership`: those of `requireLeadership`, but the shards instead of a term. */
export interface RequireOwnershipOptions<Module extends GrpcModule, Shard extends string | number>
  extends Pick<RequireLeadershipOptions, 'exempt' | 'repeatable'> {
  /** The shards that this process takes part in. The handle stays the caller's. */
  readonly shards: Shards<Shard>;
  /**
   * The shard of a call. Default: the one in `incumbent-shard`, which the clients of `toOwner` send. An
   * error that it throws is told to the caller, as `INVALID_ARGUMENT`.
   */
  readonly shardOf?: (call: CallOfShard<Module>) => Shard;
}

const optionNames: Record<keyof RequireOwnershipOptions<GrpcModule, string>, true> = {
  ...{ shards: true, shardOf: true, exempt: true, repeatable: true },
};

/**
 * Refuses calls for shards that this process does not own, under the rules of `requireLeadership`:
 *
 * ```ts
 * const server = new grpc.Server({ interceptors: [requireOwnership(grpc, { shards })] });
 * ```
 *
 * The term that accepted a call must be believed until its answer leaves. A call that names no shard, or
 * one that there is not, fails with `INVALID_ARGUMENT`.
 *
 * Not promised: that the message of a call is about the shard in its metadata. A handler that takes the
 * shard from the message asks `shards.term(shard)` itself.
 * @throws InvalidOptionError
 */
export function requireOwnership<Module extends GrpcModule, Shard extends string | number>(
  module: Module,
  options: RequireOwnershipOptions<Module, Shard>,
): ServerInterceptorOf<Module> {
  checkNames('requireOwnership', options, optionNames);
  const { shards, shardOf = inMetadata(shards) } = options;
  if (typeof shardOf !== 'function') {
    throw new InvalidOptionError(`shardOf must be a function, not ${describeValue(shardOf)}`);
  }
  return guardCalls(module, shards.name, options, (path, metadata) => {
    const shard = shardOf({ path, metadata });
    const election = electionOf(shards, shard);
    const term = () => {
      const own = shards.term(shard);
      return own && leaderTermOf(own);
    };
    return { election, term };
  });
}

function inMetadata<Shard extends string | number>(shards: Shards<Shard>) {
  return ({ metadata }: CallOfShard<GrpcModule>): Shard => {
    const [text] = (metadata as { get(key: string): readonly unknown[] }).get(shardHeader);
    if (text === undefined) {
      throw new InvalidOptionError(
        `the call names no shard of "${shards.name}": send it in "${shardHeader}"`,
      );
    }
    return shardOfText(shards, decodeURIComponent(String(text))) as Shard;
  };
}

/**
 * Resolves when each call that was accepted in this term has its answer or its refusal. Await it in the
 * work, once `term.signal` has aborted: then the shard moves after that.
 */
export function callsEnded(term: ShardTerm): Promise<void> {
  return callsOfLeaderEnded(leaderTermOf(term));
}
