/** A server interceptor: only the leader serves calls. */

import { describeValue } from '../../base/candidate.ts';
import { checkNames } from '../../base/check-names.ts';
import { InvalidOptionError } from '../../base/errors.ts';
import { publish } from '../../core/diagnostics.ts';
import type { Term } from '../../core/term.ts';
import type { CallSubject, GuardedMethod, Policy, Responder } from './guarded-call.ts';
import { GuardedCall } from './guarded-call.ts';
import type { GrpcModule } from './module.ts';
import { anyModule } from './module.ts';

/**
 * Methods as `/package.Service/Method`, or whole services as `package.Service`. Or a function
 * of the path.
 */
export type MethodSelection = readonly string[] | ((path: string) => boolean);

/** The options of `requireLeadership`. */
export interface RequireLeadershipOptions {
  /** The election of the server's term, for messages and `incumbent-election`. */
  readonly election: { readonly name: string };
  /**
   * The present term of this process. Undefined, or a term that has ended, while it does not lead.
   * A term of another election, or a function that throws, counts as none. It is reported on the
   * diagnostics channel `incumbent:trouble`.
   */
  readonly term: () => Term | undefined;
  /**
   * Methods that every process serves. Always among them: gRPC's own services for health,
   * reflection and channelz.
   */
  readonly exempt?: MethodSelection;
  /**
   * Methods that may be done twice. Such a call may have begun when the term is lost. It then
   * fails with `UNAVAILABLE` instead of `ABORTED`, so that a retry policy repeats it at the next
   * leader. Default: none.
   */
  readonly repeatable?: MethodSelection;
}

/**
 * An interceptor of grpc-js. Its arguments differ between versions, so the types come
 * from the module.
 */
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
 * Refuses calls while this process does not lead, or is not ready (`term.isReady`):
 *
 * ```ts
 * let term: Term | undefined;
 * const server = new grpc.Server({
 *   interceptors: [requireLeadership(grpc, { election, term: () => term })],
 * });
 * ```
 *
 * A call is checked when it arrives, before each of its messages reaches the handler, and
 * before anything leaves. The term that accepted it must be believed, by both clocks, at each
 * of these moments.
 *
 * A call that the handler has not seen fails with `UNAVAILABLE`, and has `incumbent-refused` in its
 * metadata. It is safe to repeat. A call that the handler has seen fails with `ABORTED` (or as
 * `repeatable` says), even if the handler has finished. The caller does not know whether it took
 * effect. A term that is told to stop accepts no more calls. Its streams end at once. Its other
 * calls end when they are done, or when the belief is over.
 *
 * Responses have `incumbent-token` and `incumbent-election` in their metadata. A call that carries
 * a higher `incumbent-token` of this election (`carryKnownToken`) is refused: its sender knows of
 * a newer leader.
 *
 * Not promised: that the term still holds when the answer arrives, or that a handler's effects on
 * other resources are undone. Hand `term.token` to those.
 * @throws InvalidOptionError
 */
export function requireLeadership<Module extends GrpcModule>(
  module: Module,
  options: RequireLeadershipOptions,
): ServerInterceptorOf<Module> {
  checkOptions(options);
  return guardCalls(module, options.election.name, options, () => options);
}

/**
 * For `@incumbent/shards`. A patch release may change it.
 * @param name for trouble
 * @param subjectOf an error that it throws is told to the caller, as `INVALID_ARGUMENT`
 * @throws InvalidOptionError
 */
export function guardCalls<Module extends GrpcModule>(
  module: Module,
  name: string,
  options: Pick<RequireLeadershipOptions, 'exempt' | 'repeatable'>,
  subjectOf: (path: string, metadata: InstanceType<Module['Metadata']>) => CallSubject,
): ServerInterceptorOf<Module> {
  const grpc = anyModule(module);
  for (const option of ['exempt', 'repeatable'] as const) checkSelection(option, options[option]);
  const isExempt = selector(name, options.exempt, alwaysExempt);
  const policy: Policy = {
    grpc,
    subjectOf: subjectOf as Policy['subjectOf'],
    isRepeatable: selector(name, options.repeatable, []),
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

/** A user's function that throws selects nothing. Then only the leader serves the method, once. */
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
