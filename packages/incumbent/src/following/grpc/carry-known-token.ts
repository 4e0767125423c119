/** A client interceptor: tells servers which term the caller knows of. */
import type { Election } from '../../core/election.ts';
import { electionHeader, tokenHeader, writeTokens } from '../headers.ts';
import { LeaderWatch } from '../index.ts';
import { tokensIn } from './guarded-call.ts';
import type { GrpcModule, Metadata } from './module.ts';
import { anyModule } from './module.ts';

/** As in grpc-js: what it is called with differs between versions, so the module tells. */
export type InterceptorOf<Module extends GrpcModule> = <Options>(
  options: Options,
  nextCall: (options: Options) => ConstructorParameters<Module['InterceptingCall']>[0],
) => InstanceType<Module['InterceptingCall']>;

/**
 * Calls carry the token of the newest term that this process knows of while a channel follows the
 * leader of `election`, so that a server with `requireLeadership` that has not noticed yet that its
 * term is over refuses them. Without such a channel nothing is carried.
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
  anyModule(module);
  const watch = LeaderWatch.of(election);
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
        const token = watch.sight?.token;
        if (token === undefined) return next(metadata, listener);
        // The caller's own may be used for other calls too.
        const marked = metadata.clone();
        // What others of this kind, for other elections, have put there stays.
        const all = new Map(tokensIn(metadata));
        const present = all.get(election.name);
        all.set(election.name, present !== undefined && present > token ? present : token);
        const { elections, tokens } = writeTokens(all);
        marked.set(electionHeader, elections);
        marked.set(tokenHeader, tokens);
        next(marked, listener);
      },
    });
}
