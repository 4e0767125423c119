import type { Figure } from './figure.ts';
import type { Surroundings } from './surroundings.ts';

/** One thing that is measured, beside its peer, in several rounds. */
export interface Benchmark {
  /** For `--only`. */
  readonly name: string;
  readonly about: string;
  /** In how many of so many rounds it takes part. */
  roundsOf(rounds: number): number;
  /** Why it cannot be measured on this machine. */
  readonly cannotRun?: string | undefined;
  /** One round: leaves no process behind. @throws WrongElectionError, or what kept it from measuring */
  round(): Promise<void>;
  /** Of all rounds so far. */
  figures(): readonly Figure[];
  /** Parts that could not be measured, such as one of several peers. */
  troubles?(): readonly string[];
}

export type MakeBenchmark = (surroundings: Surroundings) => Benchmark;

/** The election itself was wrong. Worse than any figure. */
export class WrongElectionError extends Error {
  override readonly name: string = 'WrongElectionError';
}
