import type { CandidateInfo, Snapshot } from 'incumbent';
import type { Followed } from '../follow/store-follower.ts';
import { isLedOnce, tokenOf } from '../output/describe.ts';
import { asCandidatesSee, whyVacant } from '../output/vacancy.ts';
import type { ShownCandidate, ShownElection } from './shown.ts';

/** @param candidateLeaseMs the default lease of candidates on this store */
export function shownElection(
  store: number,
  summary: Followed,
  election: string,
  candidateLeaseMs: number,
): ShownElection {
  const { view, history, drains, request, leaseMs = null, waiting } = summary;
  const isKnown = view.state === 'led' || isLedOnce(view);
  return {
    store,
    election,
    state: view.state,
    ready: view.ready !== false,
    leader: view.leader === undefined ? null : shownCandidate(view.leader),
    token: tokenOf(view)?.toString() ?? null,
    // After an unclean end nobody knows since when.
    sinceUnixMs: isKnown && !summary.holderGone ? view.sinceUnixMs : null,
    waiting: waiting?.map(shownCandidate) ?? null,
    drains: drains.map(({ id, untilUnixMs }) => ({ id, untilUnixMs })),
    request: request === undefined ? null : requestWords(request),
    why: whyOf(summary, candidateLeaseMs),
    leaseMs,
    history: history.map(({ token, id, fromUnixMs, toUnixMs, why }) => ({
      ...{ token: token.toString(), id, fromUnixMs, toUnixMs, why },
    })),
  };
}

function whyOf(snapshot: Snapshot, candidateLeaseMs: number): string | null {
  const { view } = snapshot;
  if (view.state === 'unknown') return view.error?.message ?? 'it cannot be read';
  if (view.state !== 'vacant') return null;
  const nowUnixMs = Date.now();
  const seen = asCandidatesSee(snapshot, candidateLeaseMs, candidateLeaseMs, nowUnixMs);
  return whyVacant(seen, nowUnixMs) ?? null;
}

function requestWords(request: NonNullable<Snapshot['request']>): string {
  return request.kind === 'transfer' ? `hand over to ${request.to}` : 'give the seat up';
}

function shownCandidate({ id, addresses, metadata }: CandidateInfo): ShownCandidate {
  return { id, addresses, metadata };
}
