/**
 * Events for subscribers of `node:diagnostics_channel`. The library throws nothing from the
 * background: trouble ends in a reason, a view, and here. A subscriber that throws does not disturb
 * the election. Node reports its error as an uncaught exception.
 */
import { channel } from 'node:diagnostics_channel';
import { withJson } from '../base/json.ts';
import type { NotElectedReason } from '../base/not-elected.ts';
import type { EndReason } from '../base/reasons.ts';
import type { Predecessor } from './contest.ts';
import type { TermState } from './term.ts';

/**
 * Payloads by channel name. Every payload also has `election` and `candidate` (the id). All but
 * `incumbent:trouble` have `incarnation`, which tells the campaigns of one process apart. Those with
 * `token` have `seat`, as `term.seat`. Those of a campaign for several seats have `seats`, their number.
 * `JSON.stringify` writes tokens as decimal texts.
 */
export interface DiagnosticEvents {
  /** A campaign begins to try for the seat. */
  'incumbent:waiting': object;
  /** Why the candidate cannot have the seat. Published again when the reason changes. */
  'incumbent:waiting-for': { why: NotElectedReason };
  /** The seat was won. An unclean predecessor is fenced first. */
  'incumbent:won': {
    token: bigint;
    unfenced: readonly string[];
    predecessor: Predecessor | undefined;
  };
  /** The term begins: work may start. `beliefMs` is H, of which `remainingMs` are left. */
  'incumbent:leading': { token: bigint; remainingMs: number; beliefMs: number };
  /** Once a term: requests may go to this leader. With `ready: 'manual'` after `term.ready()`. */
  'incumbent:ready': { token: bigint };
  /** The state of the term has changed. */
  'incumbent:state': { token: bigint; state: TermState };
  /** A confirmation arrived, `elapsedMs` after it was sent. */
  'incumbent:confirmed': { token: bigint; elapsedMs: number; remainingMs: number };
  /** A confirmation failed or stayed unresolved. The term goes on until its belief ends. */
  'incumbent:unconfirmed': { token: bigint; remainingMs: number; error?: unknown };
  /** The term has ended, and its seat was given back or left to run out. */
  'incumbent:ended': {
    token: bigint;
    reason: EndReason;
    released: boolean;
    settled: boolean;
    error?: unknown;
  };
  /** Belief has ended and the work has not. Work of two leaders may run. Only tokens help now. */
  'incumbent:overrun': { token: bigint; reason: EndReason };
  /** Fencing an unclean predecessor failed. */
  'incumbent:takeover-failed': { token: bigint; error: unknown };
  /** The campaign is over: this candidate holds no seat and waits for none. */
  'incumbent:campaign-ended': object;
  /** The candidate has become healthy or unhealthy. Published after the first check, too. */
  'incumbent:health': { healthy: boolean; error?: unknown };
  /**
   * Trouble that no caller waits for: a store that cannot be read while waiting, a watch that
   * broke.
   */
  'incumbent:trouble': { what: string; error: unknown };
}

export interface DiagnosticSource {
  readonly election: string;
  readonly candidate: string;
  /** That of the campaign. Undefined for what no campaign has met. */
  readonly incarnation?: string;
  /** Of a term. */
  readonly seat?: number;
  /** Of a campaign for several seats: so many. */
  readonly seats?: number;
}

const channels = new Map<string, ReturnType<typeof channel>>();

export function publish<Name extends keyof DiagnosticEvents>(
  name: Name,
  source: DiagnosticSource,
  payload: DiagnosticEvents[Name],
): void {
  let target = channels.get(name);
  if (target === undefined) {
    target = channel(name);
    channels.set(name, target);
  }
  if (target.hasSubscribers) {
    const { election, candidate, incarnation, seat, seats } = source;
    const of = {
      ...(incarnation !== undefined && { incarnation }),
      ...(seat !== undefined && { seat }),
      ...(seats !== undefined && { seats }),
    };
    target.publish(withJson({ election, candidate, ...of, ...payload }));
  }
}
