interface Stream {
  on(event: 'error', listener: (error: unknown) => void): unknown;
  destroy(): unknown;
}

/**
 * A body that comes in pieces, kept while it is small so that it can be sent again. Only one
 * attempt at a time reads it: a new reading ends the one before.
 */
export class ReplayBody implements AsyncIterable<unknown> {
  readonly #body: Partial<Stream>;
  readonly #source: AsyncIterator<unknown> | Iterator<unknown>;
  readonly #limitBytes: number;
  readonly #chunks: unknown[] = [];
  #bytes = 0;
  /** How many of the pieces at the beginning are not kept any more. */
  #dropped = 0;
  #pending: Promise<void> | undefined;
  #ended: { readonly error?: unknown } | undefined;
  #reading = 0;

  constructor(body: AsyncIterable<unknown> | Iterable<unknown>, limitBytes: number) {
    this.#source =
      Symbol.asyncIterator in body ? body[Symbol.asyncIterator]() : body[Symbol.iterator]();
    this.#limitBytes = limitBytes;
    this.#body = body as Partial<Stream>;
    // Otherwise a stream that fails before it is read would end the process.
    this.#body.on?.('error', (error) => {
      this.#ended ??= { error };
    });
  }

  /** False once more than the limit has been read. */
  get canReplay(): boolean {
    return this.#dropped === 0;
  }

  get isComplete(): boolean {
    return this.#ended !== undefined;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<unknown, void, void> {
    this.#reading += 1;
    const reading = this.#reading;
    for (let i = 0; ; i++) {
      while (i >= this.#dropped + this.#chunks.length && this.#ended === undefined) {
        this.#pending ??= this.#pull();
        await this.#pending;
        if (reading !== this.#reading) throw new Error('the body is read by another attempt');
      }
      if (i < this.#dropped + this.#chunks.length) {
        const chunk = this.#chunks[i - this.#dropped];
        if (this.#bytes > this.#limitBytes) this.#drop();
        yield chunk;
        if (reading !== this.#reading) throw new Error('the body is read by another attempt');
        continue;
      }
      if (this.#ended !== undefined && 'error' in this.#ended) throw this.#ended.error;
      return;
    }
  }

  /** No attempt will read any more. */
  async close(): Promise<void> {
    this.#reading += 1;
    if (this.#ended !== undefined) return;
    this.#ended = {};
    try {
      if (this.#body.destroy !== undefined) this.#body.destroy();
      else await this.#source.return?.();
    } catch {
      // The request's own failure has reached its caller already.
    }
  }

  #drop(): void {
    this.#dropped += this.#chunks.length;
    this.#chunks.length = 0;
    this.#bytes = Number.POSITIVE_INFINITY;
  }

  async #pull(): Promise<void> {
    try {
      const { done, value } = await this.#source.next();
      if (done === true) {
        this.#ended ??= {};
      } else {
        this.#chunks.push(value);
        this.#bytes += lengthOf(value);
      }
    } catch (error) {
      this.#ended ??= { error };
    } finally {
      this.#pending = undefined;
    }
  }
}

/** Bodies that undici can read any number of times are left to it. */
export function needsReplay(body: unknown): body is AsyncIterable<unknown> | Iterable<unknown> {
  if (typeof body !== 'object' || body === null) return false;
  if (ArrayBuffer.isView(body) || body instanceof ArrayBuffer) return false;
  const kind = (body as { [Symbol.toStringTag]?: unknown })[Symbol.toStringTag];
  if (kind === 'Blob' || kind === 'File' || kind === 'FormData') return false;
  return Symbol.asyncIterator in body || Symbol.iterator in body;
}

function lengthOf(chunk: unknown): number {
  if (typeof chunk === 'string') return 4 * chunk.length;
  return ArrayBuffer.isView(chunk) ? chunk.byteLength : Number.POSITIVE_INFINITY;
}
