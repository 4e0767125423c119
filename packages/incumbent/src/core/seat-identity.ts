import type { SeatWrite } from './contest.ts';

/**
 * By what a process that outlives this one knows our seat in the record, and gives it back when it
 * has seen us die (`giveBackSeat` of `incumbent/backend`). Plain JSON.
 */
export interface SeatIdentity {
  /** The id of the candidate. */
  readonly id: string;
  /** The incarnation of the candidate: one for all terms of a campaign. */
  readonly incarnation: string;
  /** The token of the term, as a decimal text. */
  readonly token: string;
  /** The number of the seat, where the election has several. */
  readonly seat?: number;
  /** The last writes of the record that were sent for this term, or are about to be sent. */
  readonly nonces: readonly string[];
}

/**
 * How many writes a witness is told. The write that stands in the record is forgotten only after so
 * many without an answer. Then the witness leaves the seat to run out.
 */
const mostNonces = 32;

/** Tells a listener what a witness has to know of the present seat, before it can matter. */
export class SeatTeller {
  readonly #candidate: Pick<SeatIdentity, 'id' | 'incarnation'>;
  readonly #listener: (seat: SeatIdentity | undefined) => void;
  readonly #onError: (error: unknown) => void;
  #seat: SeatIdentity | undefined;

  constructor(
    { id, incarnation }: Pick<SeatIdentity, 'id' | 'incarnation'>,
    listener: (seat: SeatIdentity | undefined) => void,
    onError: (error: unknown) => void,
  ) {
    this.#candidate = { id, incarnation };
    this.#listener = listener;
    this.#onError = onError;
  }

  onWrite({ token: written, nonce, seat }: SeatWrite): void {
    const token = written.toString();
    const known = this.#seat;
    const before = known?.token === token && known.seat === seat ? known.nonces : [];
    this.#seat = {
      ...{ ...this.#candidate, token, nonces: [...before, nonce].slice(-mostNonces) },
      ...(seat !== undefined && { seat }),
    };
    this.#tell();
  }

  /** The seat was given back, or left to run out, or never won. */
  onOver(): void {
    if (this.#seat === undefined) return;
    this.#seat = undefined;
    this.#tell();
  }

  #tell(): void {
    try {
      this.#listener(this.#seat);
    } catch (error) {
      this.#onError(error);
    }
  }
}
