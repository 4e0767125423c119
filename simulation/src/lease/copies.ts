import type { CandidateInfo } from 'incumbent';
import type { Backend } from 'incumbent/testing';

/**
 * The backend as copies of one process have it (a startup snapshot, CRIU, a clone of a machine).
 * All copies share what was drawn before they were made, and so the incarnation.
 */
export function inCopies<Guard>(backend: Backend<Guard>): Backend<Guard> {
  const copied = (candidate: CandidateInfo): CandidateInfo => ({
    ...candidate,
    incarnation: 'copied',
  });
  return {
    ...backend,
    open(scope) {
      const opened = backend.open(scope);
      const make = opened.contest.bind(opened);
      opened.contest = (candidate) => {
        const contest = make(copied(candidate));
        const present = contest.present.bind(contest);
        contest.present = (next) => present(copied(next));
        return contest;
      };
      return opened;
    },
  };
}
