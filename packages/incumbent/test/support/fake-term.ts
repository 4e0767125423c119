import type { Term, TermOutcome } from '../../src/core/term.ts';

/** A term as those see it who only look whether it holds: the test says. */
export class FakeTerm {
  readonly token: bigint;
  readonly election: string;
  readonly ended: Promise<TermOutcome>;
  isBelieved = true;
  isReady = true;
  readonly #stop = new AbortController();
  #resolveEnded: ((outcome: TermOutcome) => void) | undefined;

  constructor(token: bigint, election: string) {
    this.token = token;
    this.election = election;
    this.ended = new Promise((resolve) => {
      this.#resolveEnded = resolve;
    });
  }

  get term(): Term {
    return this as unknown as Term;
  }

  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  isLeading(): boolean {
    return this.isBelieved;
  }

  remaining(): number {
    return this.isBelieved ? 20 : 0;
  }

  /** The work is told to stop. It may still be believed. */
  stop(): void {
    this.#stop.abort();
  }

  /** The seat was given back. */
  end(): void {
    this.stop();
    this.isBelieved = false;
    this.#resolveEnded?.({ reason: 'resigned', released: true, overrunMs: 0 });
  }
}
