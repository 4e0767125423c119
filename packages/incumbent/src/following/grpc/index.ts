/**
 * Calls that find the leader, and servers that answer only while they lead. For `@grpc/grpc-js`
 * 1.13 and 1.14.
 */
export { callsEnded } from './calls-of-term.ts';
export { carryKnownToken, type InterceptorOf, markCalls } from './carry-known-token.ts';
export type { GrpcModule } from './module.ts';
export {
  type LeaderResolverHandle,
  type LeaderResolverOptions,
  registerLeaderResolver,
} from './register.ts';
export {
  guardCalls,
  type MethodSelection,
  type RequireLeadershipOptions,
  requireLeadership,
  type ServerInterceptorOf,
} from './require-leadership.ts';
