/**
 * Frames: int32 length + that many bytes. Splits a stream of chunks into them without looking into
 * any. A frame that lies whole in one chunk is not copied.
 */
import { MalformedError } from './jute.ts';

/** Receives `bytes[start..end)`, one frame's content. The bytes are only valid during the call. */
export type FrameHandler = (bytes: Uint8Array, start: number, end: number) => void;

export class FrameSplitter {
  readonly #maxFrameBytes: number;
  readonly #onFrame: FrameHandler;
  /** The length prefix as far as it has arrived, where it came in pieces. */
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

  /** Whether the stream stands inside a frame. */
  get midFrame(): boolean {
    return this.#prefixLength > 0 || this.#partial !== undefined;
  }

  /** No frame is given out after this, also not from the chunk that is being split. */
  end(): void {
    this.#ended = true;
  }

  /**
   * Takes the next bytes of the stream and gives out every frame that is complete with them.
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

  /** Copies what belongs to the partial frame; returns how many bytes that were. */
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
