import { withJson } from '../base/json.ts';
import type { NotElectedReason } from '../base/not-elected.ts';
import type { QueuePosition } from './contest.ts';

/** The state of a candidacy. Reported at every change, in order. */
export interface CandidateStatus {
  /** The candidate's place in the queue. Where the store has no queue, the candidate's id. */
  readonly candidateId: string;
  /** `none`: not in line. It has left, it stays out, or its term has ended. */
  readonly role: 'leader' | 'follower' | 'none';
  /** The place before its own, while it follows. */
  readonly following: string | undefined;
  /** The place that it followed before that. */
  readonly wasFollowing: string | undefined;
  /** Why it waits, and until when where that is known. `describeNotElected` says it in words. */
  readonly waitingFor?: NotElectedReason;
  /** The error that ended the candidacy or the term, if there was one. */
  readonly error?: unknown;
}

/**
 * Reasons for which a candidate is out of line, by its own or an operator's will. With any other
 * reason it is in line.
 */
const staysOut: ReadonlySet<NotElectedReason['kind']> = new Set([
  'drained',
  'aside',
  'unhealthy',
  'lost',
]);

/** Remembers the last status for the next one, and reports nothing twice. */
export class StatusTeller {
  readonly #tell: (status: CandidateStatus) => void;
  readonly #onTrouble: (error: unknown) => void;
  #last: CandidateStatus;

  /** @param tell its errors go to `onTrouble` and no further */
  constructor(
    id: string,
    tell: (status: CandidateStatus) => void,
    onTrouble: (error: unknown) => void,
  ) {
    this.#tell = tell;
    this.#onTrouble = onTrouble;
    this.#last = { candidateId: id, role: 'none', following: undefined, wasFollowing: undefined };
  }

  /** @param why when it differs from the reason before */
  follows({ place, following }: QueuePosition, why: NotElectedReason | undefined): void {
    const last = this.#last;
    const isSame = last.candidateId === place && last.following === following;
    if (isSame && last.role === 'follower' && why === undefined) return;
    // The first in line follows no place, and does not lead yet.
    const wasFollowing = isSame
      ? last.wasFollowing
      : last.candidateId === place
        ? last.following
        : undefined;
    const waitingFor = why ?? (following === undefined ? undefined : last.waitingFor);
    this.#say({
      candidateId: place,
      role: 'follower',
      following,
      wasFollowing,
      ...(waitingFor === undefined ? {} : { waitingFor }),
    });
  }

  /** @param why differs from the reason before */
  waits(why: NotElectedReason): void {
    const { candidateId, following, wasFollowing } = this.#last;
    const role = staysOut.has(why.kind) ? 'none' : 'follower';
    this.#say({ candidateId, role, following, wasFollowing, waitingFor: why });
  }

  leads(): void {
    const { candidateId, following } = this.#last;
    this.#say({ candidateId, role: 'leader', following: undefined, wasFollowing: following });
  }

  isOut(error?: unknown): void {
    const { candidateId, role } = this.#last;
    if (role === 'none' && error === undefined) return;
    const rest = error === undefined ? {} : { error };
    this.#say({
      candidateId,
      role: 'none',
      following: undefined,
      wasFollowing: undefined,
      ...rest,
    });
  }

  #say(status: CandidateStatus): void {
    this.#last = status;
    try {
      this.#tell(withJson(status));
    } catch (error) {
      this.#onTrouble(error);
    }
  }
}
