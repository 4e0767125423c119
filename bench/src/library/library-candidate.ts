import { jitter, sleep } from '../clock.ts';
import type { Surroundings } from '../surroundings.ts';
import { WorkerProcess } from './worker-process.ts';
import type {
  CandidateArgument,
  FromCandidate,
  ToCandidate,
} from './workers/candidate-messages.ts';

/** `workers/candidate.ts` as we see it. */
export type LibraryCandidate = WorkerProcess<FromCandidate, ToCandidate>;

/** Until a follower has read the record, watches the directory, and is bored. */
const settleMs = 300;

export function startCandidate(
  surroundings: Surroundings,
  argument: CandidateArgument,
): LibraryCandidate {
  const candidate: LibraryCandidate = new WorkerProcess(surroundings, 'candidate', argument);
  candidate.order({ do: 'campaign' });
  return candidate;
}

/** A leader, and a follower that has settled. */
export async function startPair(
  surroundings: Surroundings,
  argument: CandidateArgument,
): Promise<{
  leader: LibraryCandidate;
  follower: LibraryCandidate;
  /** Of the leader. */
  first: Extract<FromCandidate, { say: 'leading' }>;
}> {
  const leader = startCandidate(surroundings, argument);
  const first = await leader.next('leading');
  const follower = startCandidate(surroundings, argument);
  await settled(follower);
  return { leader, follower, first };
}

/** @param phaseMs length of the longest cycle that the moment must not be bound to */
export async function settled(follower: LibraryCandidate, phaseMs = 100): Promise<void> {
  await follower.next('waiting');
  await sleep(settleMs + jitter(phaseMs));
}
