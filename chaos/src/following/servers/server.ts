import type { Election, Term } from 'incumbent';
import type { Answer } from '../calls.ts';

/** The server of one transport of a service. */
export interface Server {
  /** Resolves when it listens no more and all connections are closed. */
  close(): Promise<void>;
}

/** The facts from which a server answers. */
export interface Service {
  readonly election: Election;
  /** The last one that this process held: whether it still does is for the term to say. */
  readonly term: () => Term | undefined;
  /** Has its effect at once, within this call: whoever asked whether we lead asked just before. */
  readonly serve: () => Omit<Answer, 'number'>;
  /** undefined: it serves whether it leads or not. */
  readonly checks: boolean;
}
