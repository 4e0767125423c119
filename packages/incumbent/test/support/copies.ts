import type { CandidateInfo } from '../../src/base/candidate.ts';
import type { Backend } from '../../src/core/contest.ts';

/** The common values of copies of one process: they were drawn before the copy was made. */
export interface Drawn {
  readonly incarnation?: string;
  /** The first of all unique ids. In a queue, that of the place. */
  readonly guid?: string;
}

/** The backend as each copy of one process has it. */
export function inCopies<Guard>(backend: Backend<Guard>, drawn: Drawn): Backend<Guard> {
  const { incarnation } = drawn;
  const copied = (candidate: CandidateInfo): CandidateInfo =>
    incarnation === undefined ? candidate : { ...candidate, incarnation };
  return {
    ...backend,
    open(scope) {
      let { guid } = drawn;
      const uniqueId = () => {
        const id = guid ?? scope.uniqueId();
        guid = undefined;
        return id;
      };
      const opened = backend.open({ ...scope, uniqueId });
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
