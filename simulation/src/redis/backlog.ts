import type { Entry } from './stream.ts';

/** `PROTO_REPLY_CHUNK_BYTES` of server.h. */
const leastBlockBytes = 16 * 1024;
/** `sizeof(replBufBlock)`. */
const blockHeaderBytes = 40;
/** `CONFIG_REPL_BACKLOG_MIN_SIZE`. */
const leastBacklogBytes = 16 * 1024;
/** `REPL_BACKLOG_TRIM_BLOCKS_PER_CALL`. */
const trimmedAtOnce = 64;

interface Block {
  readonly size: number;
  used: number;
  /** Replicas that still have to be sent from here on. */
  heldBy: number;
}

/** A place in the backlog from which a replica has not been sent anything yet. */
export interface Hold {
  release(): void;
}

/**
 * The end of the stream, for replicas that come back. It is kept in blocks and trimmed by whole ones,
 * so it is mostly longer than it is set to be (`incrementalTrimReplicationBacklog` of replication.c).
 */
export class Backlog {
  /** Its entries, with the offset of the byte after each. */
  readonly #entries: { readonly entry: Entry; readonly endOffset: number }[] = [];
  readonly #blocks: Block[] = [];
  #maxBytes: number;
  #length = 0;
  #endOffset: number;

  /** @param offset up to where the stream has gone */
  constructor(offset: number, maxBytes: number) {
    this.#endOffset = offset;
    this.#maxBytes = Math.max(leastBacklogBytes, maxBytes);
  }

  get length(): number {
    return this.#length;
  }

  get firstOffset(): number {
    return this.#endOffset - this.#length + 1;
  }

  /** @param pieces in which it is put in: a replica puts in what it was sent as one */
  feed(entry: Entry, pieces: readonly number[]): void {
    this.#endOffset += entry.bytes;
    this.#entries.push({ entry, endOffset: this.#endOffset });
    for (const piece of pieces) this.#put(piece);
    this.#forgetEntries();
  }

  resize(maxBytes: number): void {
    this.#maxBytes = Math.max(leastBacklogBytes, maxBytes);
    this.#trim();
    this.#forgetEntries();
  }

  /** Whether a replica that asks for this byte next can be given all from there. */
  has(offset: number): boolean {
    return offset >= this.firstOffset && offset <= this.firstOffset + this.#length;
  }

  /** The entries from this byte on. */
  from(offset: number): readonly Entry[] {
    const first = this.#entries.findIndex(({ endOffset }) => endOffset >= offset);
    return first < 0 ? [] : this.#entries.slice(first).map(({ entry }) => entry);
  }

  /** Keeps what comes from now on; undefined while there is nothing to hold on to. */
  hold(): Hold | undefined {
    let block: Block | undefined = this.#blocks.at(-1);
    if (block === undefined) return undefined;
    block.heldBy += 1;
    return {
      release: () => {
        if (block === undefined) return;
        block.heldBy -= 1;
        block = undefined;
        this.#trim();
        this.#forgetEntries();
      },
    };
  }

  #put(bytes: number): void {
    this.#length += bytes;
    const tail = this.#blocks.at(-1);
    const fits = tail === undefined ? 0 : Math.min(bytes, tail.size - tail.used);
    if (tail !== undefined) tail.used += fits;
    const rest = bytes - fits;
    if (rest > 0) {
      const asked = Math.max(leastBlockBytes, rest) + blockHeaderBytes;
      this.#blocks.push({ size: allocated(asked) - blockHeaderBytes, used: rest, heldBy: 0 });
    }
    this.#trim();
  }

  #trim(): void {
    for (let count = 0; count < trimmedAtOnce; count += 1) {
      const [first] = this.#blocks;
      if (first === undefined || this.#blocks.length === 1) break;
      if (this.#length <= this.#maxBytes || this.#length - first.size <= this.#maxBytes) break;
      if (first.heldBy > 0) break;
      this.#blocks.shift();
      this.#length -= first.size;
    }
  }

  #forgetEntries(): void {
    const { firstOffset } = this;
    const gone = this.#entries.findIndex(({ endOffset }) => endOffset >= firstOffset);
    this.#entries.splice(0, gone < 0 ? this.#entries.length : gone);
  }
}

/**
 * The size of jemalloc's block for so many bytes, from 16 KiB on: four sizes to each power of two.
 */
function allocated(bytes: number): number {
  const step = 2 ** Math.max(12, Math.ceil(Math.log2(bytes)) - 3);
  return Math.ceil(bytes / step) * step;
}
