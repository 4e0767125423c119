/** Bytes that have come, and were not understood yet. */
export class Pieces {
  #bytes: Buffer = Buffer.alloc(0);

  add(chunk: Buffer): void {
    this.#bytes = this.#bytes.length === 0 ? chunk : Buffer.concat([this.#bytes, chunk]);
  }

  get present(): Buffer {
    return this.#bytes;
  }

  drop(count: number): void {
    this.#bytes = this.#bytes.subarray(count);
  }
}
