import { WrongElectionError } from './benchmark.ts';

/** Watches that the terms of one election follow each other. Times are monotonic ms. */
export class TermLog {
  readonly #election: string;
  #token = 0n;
  #untilMs = Number.NEGATIVE_INFINITY;

  constructor(election: string) {
    this.#election = election;
  }

  /** @throws WrongElectionError when another one leads, or the token has not risen */
  begins(token: bigint, atMs: number): void {
    if (token <= this.#token) {
      throw new WrongElectionError(
        `${this.#election}: term ${token} began after term ${this.#token}: tokens must rise`,
      );
    }
    if (atMs <= this.#untilMs) {
      const earlyMs = this.#untilMs - atMs;
      const when =
        earlyMs === Number.POSITIVE_INFINITY
          ? `while term ${this.#token} led`
          : `${earlyMs.toFixed(3)} ms before the end of term ${this.#token}`;
      throw new WrongElectionError(`${this.#election}: term ${token} began ${when}: two leaders`);
    }
    this.#token = token;
    this.#untilMs = Number.POSITIVE_INFINITY;
  }

  /** The present term cannot act any more from then on, or is known to have led until then. */
  ends(atMs: number): void {
    this.#untilMs = atMs;
  }
}
