/** A client interceptor that tells servers which term the caller knows of. */
import type { Election } from '../../core/election.ts';
import { electionHeader, tokenHeader, writeTokens } from '../headers.ts';
import { LeaderWatch } from '../index.ts';
import { tokensIn } from './guarded-call.ts';
import type { GrpcModule, Metadata } from './module.ts';
import { anyModule } from './module.ts';

/**
 * An interceptor of grpc-js. Its arguments differ between versions, so the types come
 * from the module.
 */
export type InterceptorOf<Module extends GrpcModule> = <Options>(
  options: Options,
  nextCall: (options: Options) => ConstructorParameters<Module['InterceptingCall']>[0],
) => InstanceType<Module['InterceptingCall']>;

/**
 * Makes calls carry the token of the newest term that this process knows of. A server with
 * `requireLeadership` may not have noticed yet that its term is over. It refuses such calls. The
 * process knows terms while a channel follows the leader of `election`. Without such a channel
 * nothing is carried.
 *
 * ```ts
 * new LedgerClient(target, credentials, { interceptors: [carryKnownToken(grpc, election)] });
 * ```
 *
 * A client may have several, for several elections.
 */
export function carryKnownToken<Module extends GrpcModule>(
  module: Module,
  election: Election,
): InterceptorOf<Module> {
  const watch = LeaderWatch.of(election);
  return markCalls(module, (metadata) => {
    const token = watch.sight?.token;
    if (token === undefined) return;
    // Tokens from other such interceptors, for other elections, stay.
    const all = new Map(tokensIn(metadata));
    const present = all.get(election.name);
    all.set(election.name, present !== undefined && present > token ? present : token);
    const { elections, tokens } = writeTokens(all);
    metadata.set(electionHeader, elections);
    metadata.set(tokenHeader, tokens);
  });
}

/**
 * For `@incumbent/shards`. A patch release may change it.
 * @param mark called with the metadata that the call is sent with
 * @throws InvalidOptionError
 */
export function markCalls<Module extends GrpcModule>(
  module: Module,
  mark: (metadata: Metadata) => void,
): InterceptorOf<Module> {
  anyModule(module);
  const InterceptingCall = module.InterceptingCall as unknown as new (
    call: unknown,
    requester: {
      start(
        metadata: Metadata,
        listener: unknown,
        next: (metadata: Metadata, listener: unknown) => void,
      ): void;
    },
  ) => InstanceType<Module['InterceptingCall']>;
  return (options, nextCall) =>
    new InterceptingCall(nextCall(options), {
      start(metadata, listener, next) {
        // The caller's own metadata may be used for other calls too.
        const marked = metadata.clone();
        mark(marked);
        next(marked, listener);
      },
    });
}
