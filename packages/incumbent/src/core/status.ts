import { withJson } from '../base/json.ts';
import type { NotElectedReason } from '../base/not-elected.ts';
import type { QueuePosition } from './contest.ts';

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
  /** What it waits for, and until when where that is known: `describeNotElected` says it in words. */
  readonly waitingFor?: NotElectedReason;
  /** Why the candidacy or the term ended, where something went wrong. */
  readonly error?: unknown;
}

/** Of its own or an operator's will; whoever waits for anything else is in line. */
const staysOut: ReadonlySet<NotElectedReason['kind']> = new Set([
  'drained',
  'aside',
  'unhealthy',
  'lost',
]);

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

  /** @param why when it is another one than before */
  follows({ place, following }: QueuePosition, why: NotElectedReason | undefined): void {
    const last = this.#last;
    const isSame = last.candidateId === place && last.following === following;
    if (isSame && last.role === 'follower' && why === undefined) return;
    // The first in line follows nobody, and does not lead yet.
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

  /** @param why another one than before */
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
