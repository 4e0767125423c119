/** Why a term ended, as a list of all reasons. */
export const endReasons = [
  /** The leader gave this term up (`term.resign()`), and stays a candidate. */
  'resigned',
  /** The candidate was told to stop being one: its signal was aborted or its handle closed. */
  'withdrawn',
  /** The work returned. */
  'work-finished',
  /** The work threw an error of its own. */
  'work-failed',
  /** No confirmation arrived in time. */
  'renewal-failed',
  /** Another candidate holds the seat. */
  'superseded',
  /** The session with the store ended. */
  'session-expired',
  /** The store could not be reached, and the backend was told to step down then. */
  'disconnected',
  /** The record, or the place in the queue, was deleted. */
  'record-gone',
  /** An operator asked the leader to go, or drained it. */
  'vacated',
  /** The seat went to a named candidate. */
  'handed-over',
  /** The health check failed. */
  'unhealthy',
  /** The work did not say in time that it is ready (`readyTimeout`). */
  'not-ready',
  /** This process stood still for so long that its belief ended. */
  'stalled',
  /** The election was ended for everybody. */
  'election-ended',
  /** Fencing an unclean predecessor failed, so the term never began. */
  'takeover-failed',
] as const;

/** Why a term ended. `describeEnd` says it in words. */
export type EndReason = (typeof endReasons)[number];

const sentences: Record<EndReason, string> = {
  resigned: 'it resigned',
  withdrawn: 'the candidate withdrew',
  'work-finished': 'its work finished',
  'work-failed': 'its work failed',
  'renewal-failed': 'it could not be confirmed in time',
  superseded: 'another candidate holds the seat',
  'session-expired': 'the session with the store expired',
  disconnected: 'the store could not be reached',
  'record-gone': 'its record is gone from the store',
  vacated: 'an operator asked the leader to go',
  'handed-over': 'the seat was handed over',
  unhealthy: 'the health check failed',
  'not-ready': 'its work was not ready in time',
  stalled: 'this process stood still for too long',
  'election-ended': 'the election was ended for everybody',
  'takeover-failed': 'the previous leader could not be fenced',
};

/** The reason in words, for logs and operators: a clause such as "its work failed". */
export function describeEnd(reason: EndReason): string {
  return sentences[reason];
}

/** Ends that this process or an operator chose. The term is renewed until its work has settled. */
export function isVoluntary(reason: EndReason): boolean {
  return !(takesSeatAway(reason) || reason === 'renewal-failed' || reason === 'stalled');
}

/** Ends after which belief must be over at once: the seat is not ours any more. */
export function takesSeatAway(reason: EndReason): boolean {
  return reason === 'superseded' || reason === 'record-gone' || reason === 'session-expired';
}
