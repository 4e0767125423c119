import type { Election } from 'incumbent';
import type { Answer, Question } from '../calls.ts';
import type { Way } from '../messages.ts';

/** One way to call the leader. */
export interface OpenWay extends Way {
  /** Settles within `callMs`. */
  call(question: Question): Promise<Answer>;
  close(): Promise<void>;
}

/** The options with which a way is opened. */
export interface Caller {
  readonly election: Election;
  readonly callMs: number;
  /** The HTTP servers of all services, as origins. */
  readonly entries: readonly string[];
}
