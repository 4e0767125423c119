import type { Standing } from './contest.ts';

/** What became of a candidacy: told at every change, the latest last. */
export interface CandidateStatus {
  /** Its place in the queue; where the store has no queue, the candidate's id. */
  readonly candidateId: string;
  /** `none`: not in line, because it has left, stays out, or its term has ended. */
  readonly role: 'leader' | 'follower' | 'none';
  /** The place before it, while it follows. */
  readonly following: string | undefined;
  /** What it followed before that. */
  readonly wasFollowing: string | undefined;
  /** Why the candidacy or the term ended, where something went wrong. */
  readonly error?: unknown;
}

/** Keeps what the next status needs to know of the last one, and tells nothing twice. */
export class StatusTeller {
  readonly #tell: (status: CandidateStatus) => void;
  readonly #onTrouble: (error: unknown) => void;
  #last: CandidateStatus;

  /** @param tell what it throws goes to `onTrouble` and no further */
  constructor(
    id: string,
    tell: (status: CandidateStatus) => void,
    onTrouble: (error: unknown) => void,
  ) {
    this.#tell = tell;
    this.#onTrouble = onTrouble;
    this.#last = { candidateId: id, role: 'none', following: undefined, wasFollowing: undefined };
  }

  follows({ place, following }: Standing): void {
    const last = this.#last;
    if (last.role === 'follower' && last.candidateId === place && last.following === following) {
      return;
    }
    // The first in line follows nobody, and does not lead yet.
    const wasFollowing = last.candidateId === place ? last.following : undefined;
    this.#say({ candidateId: place, role: 'follower', following, wasFollowing });
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
      this.#tell(status);
    } catch (error) {
      this.#onTrouble(error);
    }
  }
}
