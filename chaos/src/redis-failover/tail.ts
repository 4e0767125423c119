import { closeSync, openSync, readSync } from 'node:fs';

const pieceBytes = 1 << 16;

/** Reads whole lines that others append to a file, which must be there. */
export class Tail {
  readonly #file: number;
  readonly #piece = Buffer.alloc(pieceBytes);
  #atByte = 0;
  #rest = '';

  constructor(path: string) {
    this.#file = openSync(path, 'r');
  }

  /** Those that came since. */
  *read(): Generator<string> {
    for (;;) {
      const count = readSync(this.#file, this.#piece, 0, pieceBytes, this.#atByte);
      if (count === 0) return;
      this.#atByte += count;
      const lines = (this.#rest + this.#piece.toString('latin1', 0, count)).split('\n');
      this.#rest = lines.pop() ?? '';
      yield* lines;
    }
  }

  close(): void {
    closeSync(this.#file);
  }
}
