/** A server interceptor: whoever does not lead serves nothing. */

import { describeValue } from '../../base/candidate.ts';
import { checkNames } from '../../base/check-names.ts';
import { InvalidOptionError } from '../../base/errors.ts';
import { publish } from '../../core/diagnostics.ts';
import type { Term } from '../../core/term.ts';
import type { GuardedMethod, Policy, Responder } from './guarded-call.ts';
import { GuardedCall } from './guarded-call.ts';
import type { GrpcModule } from './module.ts';
import { anyModule } from './module.ts';

/** Methods as `/package.Service/Method`, or whole services as `package.Service`; or a function. */
export type MethodSelection = readonly string[] | ((path: string) => boolean);

export interface RequireLeadershipOptions {
  /** The election that the server's term is of, for messages and `incumbent-election`. */
  readonly election: { readonly name: string };
  /**
   * The present term of this process; undefined, or one that has ended, while it does not lead. One
   * of another election, or a function that throws, counts as none and is told on the diagnostics
   * channel `incumbent:trouble`.
   */
  readonly term: () => Term | undefined;
  /**
   * Methods that everybody serves. Always among them: gRPC's own services for health, reflection and
   * channelz.
   */
  readonly exempt?: MethodSelection;
  /**
   * Methods that may be done twice. A call of one of these that had begun when the term was lost
   * fails with `UNAVAILABLE`, so that a retry policy repeats it at the next leader, instead of
   * `ABORTED`. Default: none.
   */
  readonly repeatable?: MethodSelection;
}

/** As in grpc-js: what it is called with differs between versions, so the module tells. */
export type ServerInterceptorOf<Module extends GrpcModule> = (
  method: GuardedMethod,
  call: ConstructorParameters<Module['ServerInterceptingCall']>[0],
) => InstanceType<Module['ServerInterceptingCall']>;

const alwaysExempt: readonly string[] = [
  'grpc.health.v1.Health',
  'grpc.reflection.v1.ServerReflection',
  'grpc.reflection.v1alpha.ServerReflection',
  'grpc.channelz.v1.Channelz',
];

/**
 * Refuses calls while this process does not lead:
 *
 * ```ts
 * let term: Term | undefined;
 * const server = new grpc.Server({
 *   interceptors: [requireLeadership(grpc, { election, term: () => term })],
 * });
 * ```
 *
 * A call is checked when it arrives, before each of its messages reaches the handler, and before
 * anything leaves: the term that accepted it must be believed by both clocks at each of these moments.
 * A call that the handler has not seen fails with `UNAVAILABLE` and has `incumbent-refused` in its
 * metadata: it is safe to repeat. One that it has seen fails with `ABORTED` (or as `repeatable` says), even if the handler has finished: whether
 * it took effect is not known to whoever called. A term that is told to stop takes no more calls; its
 * streams end at once, its other calls when they are done or the belief is over.
 *
 * Responses have `incumbent-token` and `incumbent-election` in their metadata. A call that carries a
 * higher `incumbent-token` of this election (`carryKnownToken`) is refused: its sender knows of a
 * newer leader.
 *
 * Not promised: that the term still holds when the answer arrives, or that what a handler does to
 * other resources is undone. Hand `term.token` to those.
 * @throws InvalidOptionError
 */
export function requireLeadership<Module extends GrpcModule>(
  module: Module,
  options: RequireLeadershipOptions,
): ServerInterceptorOf<Module> {
  const grpc = anyModule(module);
  checkOptions(options);
  const isExempt = selector(options.election.name, options.exempt, alwaysExempt);
  const policy: Policy = {
    grpc,
    election: options.election.name,
    term: options.term,
    isRepeatable: selector(options.election.name, options.repeatable, []),
  };
  const ServerInterceptingCall = module.ServerInterceptingCall as unknown as new (
    call: unknown,
    responder?: Responder,
  ) => InstanceType<Module['ServerInterceptingCall']>;
  return (method, call) =>
    isExempt(method.path)
      ? new ServerInterceptingCall(call)
      : new ServerInterceptingCall(call, new GuardedCall(policy, method, call).responder);
}

/** A function of the user's that throws selects nothing: then nobody serves it but the leader, once. */
function selector(
  election: string,
  chosen: MethodSelection | undefined,
  always: readonly string[],
): (path: string) => boolean {
  const names = new Set([...always, ...(typeof chosen === 'function' ? [] : (chosen ?? []))]);
  return (path) => {
    if (names.has(path) || names.has(path.split('/')[1] ?? '')) return true;
    if (typeof chosen !== 'function') return false;
    try {
      return chosen(path);
    } catch (error) {
      const what = `selecting ${path}`;
      publish('incumbent:trouble', { election, candidate: '' }, { what, error });
      return false;
    }
  };
}

const optionNames: Record<keyof RequireLeadershipOptions, true> = {
  election: true,
  term: true,
  exempt: true,
  repeatable: true,
};

function checkOptions(options: RequireLeadershipOptions): void {
  checkNames('requireLeadership', options, optionNames);
  const { election, term } = options;
  if (typeof election?.name !== 'string' || election.name === '') {
    throw new InvalidOptionError(
      `election must be what createElection returns, not ${describeValue(election)}`,
    );
  }
  if (typeof term !== 'function') {
    throw new InvalidOptionError(
      `term must be a function that returns the present term, not ${describeValue(term)}`,
    );
  }
  for (const name of ['exempt', 'repeatable'] as const) checkSelection(name, options[name]);
}

function checkSelection(option: string, selection: unknown): void {
  if (selection === undefined || typeof selection === 'function') return;
  const list: unknown = selection;
  if (!Array.isArray(list)) {
    throw new InvalidOptionError(
      `${option} is a list of methods or a function, not ${describeValue(list)}`,
    );
  }
  for (const method of list as readonly unknown[]) {
    if (typeof method !== 'string' || !/^(\/[^/\s]+\/[^/\s]+|[^/\s]+)$/.test(method)) {
      throw new InvalidOptionError(
        `${option}: methods are written "/package.Service/Method" or "package.Service", not ` +
          describeValue(method),
      );
    }
  }
}
