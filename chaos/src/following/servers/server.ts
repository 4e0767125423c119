import type { Election, Term } from 'incumbent';
import type { Answer } from '../calls.ts';

/** What a service does over one transport. */
export interface Server {
  /** Resolves when it listens no more and all connections are closed. */
  close(): Promise<void>;
}

/** What a server serves. */
export interface Service {
  readonly election: Election;
  /** The last one that this process held: whether it still does is for the term to say. */
  readonly term: () => Term | undefined;
  /** Has its effect at once, within this call: whoever asked whether we lead asked just before. */
  readonly serve: () => Omit<Answer, 'number'>;
  /** undefined: it serves whether it leads or not. */
  readonly checks: boolean;
}
