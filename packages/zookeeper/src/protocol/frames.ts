/**
 * Frames: an int32 length, and that many bytes. Splits a stream of chunks into frames without
 * looking into them. A frame that lies completely in one chunk is not copied.
 */
import { MalformedError } from './jute.ts';

/**
 * Receives the content of one frame, `bytes[start..end)`. The bytes are valid only during the call.
 */
export type FrameHandler = (bytes: Uint8Array, start: number, end: number) => void;

export class FrameSplitter {
  readonly #maxFrameBytes: number;
  readonly #onFrame: FrameHandler;
  /** The part of a length prefix that has arrived, if it came in pieces. */
  readonly #prefix = new Uint8Array(4);
  #prefixLength = 0;
  /** A frame of which a part has arrived. */
  #partial: Uint8Array | undefined;
  #partialLength = 0;
  #ended = false;

  /** @param maxFrameBytes a longer frame is refused before anything is allocated for it */
  constructor(maxFrameBytes: number, onFrame: FrameHandler) {
    this.#maxFrameBytes = maxFrameBytes;
    this.#onFrame = onFrame;
  }

  /** Whether the stream is inside a frame. */
  get midFrame(): boolean {
    return this.#prefixLength > 0 || this.#partial !== undefined;
  }

  /** After this no frame is given out, even from the chunk that is being split. */
  end(): void {
    this.#ended = true;
  }

  /**
   * Takes the next bytes of the stream, and gives out every frame that is now complete.
   * @param length only so many bytes at the beginning of `chunk` count (default: all)
   * @throws MalformedError for a length that is negative or above the limit
   */
  push(chunk: Uint8Array, length: number = chunk.length): void {
    let offset = 0;
    while (offset < length && !this.#ended) {
      if (this.#partial !== undefined) {
        offset += this.#fill(chunk, offset, length);
        continue;
      }
      if (this.#prefixLength > 0 || length - offset < 4) {
        const byte = chunk[offset] as number;
        this.#prefix[this.#prefixLength] = byte;
        this.#prefixLength += 1;
        offset += 1;
        if (this.#prefixLength === 4) {
          this.#prefixLength = 0;
          this.#begin(this.#checked(lengthAt(this.#prefix, 0)));
        }
        continue;
      }
      const frameLength = this.#checked(lengthAt(chunk, offset));
      offset += 4;
      if (length - offset >= frameLength) {
        this.#onFrame(chunk, offset, offset + frameLength);
        offset += frameLength;
      } else {
        this.#begin(frameLength);
      }
    }
  }

  #begin(frameLength: number): void {
    if (frameLength === 0) {
      this.#onFrame(this.#prefix, 0, 0);
      return;
    }
    this.#partial = new Uint8Array(frameLength);
    this.#partialLength = 0;
  }

  /** Copies the bytes that belong to the partial frame. @returns their number */
  #fill(chunk: Uint8Array, offset: number, length: number): number {
    const partial = this.#partial as Uint8Array;
    const taken = Math.min(partial.length - this.#partialLength, length - offset);
    partial.set(chunk.subarray(offset, offset + taken), this.#partialLength);
    this.#partialLength += taken;
    if (this.#partialLength === partial.length) {
      this.#partial = undefined;
      this.#onFrame(partial, 0, partial.length);
    }
    return taken;
  }

  #checked(frameLength: number): number {
    if (frameLength < 0 || frameLength > this.#maxFrameBytes) {
      throw new MalformedError(
        `a frame of ${frameLength} bytes; the limit is ${this.#maxFrameBytes} (maxFrameBytes)`,
      );
    }
    return frameLength;
  }
}

function lengthAt(bytes: Uint8Array, at: number): number {
  return (
    ((bytes[at] as number) << 24) |
    ((bytes[at + 1] as number) << 16) |
    ((bytes[at + 2] as number) << 8) |
    (bytes[at + 3] as number)
  );
}
