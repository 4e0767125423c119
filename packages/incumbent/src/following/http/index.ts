/**
 * Elections over HTTP.
 *
 * - `toLeader`: clients that always reach the leader.
 * - `leaderOnly`: servers of which only the leader serves.
 * - `carryToken`, `requireToken`: tokens on the writes of leaders.
 */
export { NoLeaderError } from '../../base/errors.ts';
export { electionHeader, proxiedHeader, refusedHeader, tokenHeader } from '../headers.ts';
export type { AddressOf } from '../index.ts';
export { type CarryTokenOptions, carryToken } from './carry-token.ts';
export {
  type DrainOptions,
  type LeaderOnly,
  type LeaderOnlyOptions,
  leaderOnly,
  type ProxyOptions,
} from './leader-only.ts';
export type { FastifyHook, HttpRequest, HttpResponse, Middleware, Next } from './node-http.ts';
export {
  type RequireToken,
  type RequireTokenOptions,
  requireToken,
  tokenOf,
} from './require-token.ts';
export { type LeaderInterceptor, type ToLeaderOptions, toLeader } from './to-leader.ts';
export { memoryOfTokens, type TokenMemory } from './token-memory.ts';
export type {
  Dispatch,
  DispatchController,
  DispatchHandler,
  DispatchOptions,
  Interceptor,
  UndiciHeaders,
} from './undici.ts';
