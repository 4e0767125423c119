import { closeSync, openSync, readSync } from 'node:fs';
import type { WriteLine } from './messages.ts';

const pieceBytes = 1 << 16;

/** Reads what a client appends to its file. */
export class WriteLog {
  readonly path: string;
  readonly #file: number;
  readonly #piece = Buffer.alloc(pieceBytes);
  #atByte = 0;
  #rest = '';

  constructor(path: string) {
    this.path = path;
    closeSync(openSync(path, 'a'));
    this.#file = openSync(path, 'r');
  }

  /** The lines that came since. */
  *read(): Generator<WriteLine> {
    for (;;) {
      const count = readSync(this.#file, this.#piece, 0, pieceBytes, this.#atByte);
      if (count === 0) return;
      this.#atByte += count;
      const lines = (this.#rest + this.#piece.toString('latin1', 0, count)).split('\n');
      this.#rest = lines.pop() ?? '';
      for (const line of lines) yield JSON.parse(line) as WriteLine;
    }
  }

  close(): void {
    closeSync(this.#file);
  }
}
