/**
 * Reads and replaces one object by the caller's `Storage`, with one request each and without its
 * retries. The election itself tries again. A late retry would be a write that no candidate
 * expects any more.
 */
import { StoreUnavailableError } from '../../base/errors.ts';
import { unlessAborted } from '../../base/wait.ts';
import type {
  BucketLike,
  FileLike,
  ObjectMetadata,
  SinkLike,
  SourceLike,
  StorageLike,
} from './client.ts';
import { crc32cBase64 } from './crc32c.ts';
import { isAbsent } from './errors.ts';
import type { AclRule } from './options.ts';

export interface StoredObject {
  readonly bytes: Uint8Array;
  readonly generation: string;
  readonly metageneration: string;
  /**
   * When it was written, by the store's clock, in whole seconds. Undefined where the answer
   * does not say.
   */
  readonly writtenUnixMs: number | undefined;
}

export interface Answer<T> {
  readonly value: T;
  /**
   * When the store answered, by its own clock, in whole seconds. Undefined where it does not say.
   */
  readonly dateMs: number | undefined;
}

/** The answer of a GET is its body as well. */
interface HttpAnswer {
  readonly statusCode?: number;
  readonly statusMessage?: string;
  readonly headers?: Readonly<Record<string, unknown>>;
  once?(event: 'unpipe', listener: (connection: { destroy?(): void }) => void): unknown;
  destroy?(): void;
}

export class ObjectCalls {
  readonly #bucket: BucketLike;
  readonly #name: string;
  readonly #timeoutMs: number;

  /** @param timeoutMs after that the caller does not wait for an answer any more */
  constructor(storage: StorageLike, bucket: string, name: string, timeoutMs: number) {
    this.#bucket = storage.bucket(bucket);
    this.#name = name;
    this.#timeoutMs = timeoutMs;
  }

  /** @returns undefined in place of an object that is not there */
  async read(signal: AbortSignal): Promise<Answer<StoredObject | undefined>> {
    signal.throwIfAborted();
    // Not its createReadStream: that ends the process when the body of a refusal is cut off.
    const source = this.#file().requestStream({
      uri: '',
      qs: { alt: 'media' },
      headers: { 'Accept-Encoding': 'gzip', 'Cache-Control': 'no-store' },
    }) as SourceLike;
    let answer: HttpAnswer = {};
    source.on('response', (response: HttpAnswer) => {
      answer = response;
      if (signal.aborted) hangUp(answer);
    });
    let bytes: Uint8Array;
    try {
      bytes = await collect(source, signal);
    } catch (error) {
      if (signal.aborted) hangUp(answer);
      throw error;
    }
    const refusal = refusalIn(answer, bytes);
    if (refusal !== undefined) {
      if (isAbsent(refusal)) return { value: undefined, dateMs: timeIn(answer, 'date') };
      throw refusal;
    }
    checkIntegrity(bytes, header(answer, 'x-goog-hash'));
    const generation = header(answer, 'x-goog-generation');
    if (generation === undefined || !/^\d+$/.test(generation)) {
      throw new StoreUnavailableError(
        'the object was answered without its generation (x-goog-generation): is there a cache or a ' +
          'proxy before Cloud Storage?',
      );
    }
    const object: StoredObject = {
      bytes,
      generation,
      metageneration: header(answer, 'x-goog-metageneration') ?? '1',
      writtenUnixMs: timeIn(answer, 'last-modified'),
    };
    return { value: object, dateMs: timeIn(answer, 'date') };
  }

  /** For stores that do not tell the time of writing when they hand out the bytes. */
  async metadata(signal: AbortSignal): Promise<ObjectMetadata> {
    signal.throwIfAborted();
    const answer = await unlessAborted(this.#file().getMetadata(), signal);
    return ((Array.isArray(answer) ? answer[0] : answer) ?? {}) as ObjectMetadata;
  }

  /** Replaces the object if it still has this generation. '0': if it is not there. */
  async write(
    bytes: Uint8Array,
    generation: string,
    acl: readonly AclRule[],
    signal: AbortSignal,
  ): Promise<Answer<ObjectMetadata>> {
    signal.throwIfAborted();
    const file = this.#file();
    const sink = file.createWriteStream({
      resumable: false,
      // The client would delete an object that does not match, whichever program it belongs to by
      // then. The server checks instead.
      validation: false,
      preconditionOpts: { ifGenerationMatch: generation },
      metadata: {
        contentType: 'application/x-protobuf',
        // Otherwise caches keep a publicly readable object for an hour.
        cacheControl: 'no-store',
        crc32c: crc32cBase64(bytes),
        ...(acl.length === 0 ? {} : { acl }),
      },
    }) as SinkLike;
    let answer: HttpAnswer = {};
    sink.on('response', (response: HttpAnswer) => {
      answer = response;
    });
    await finish(sink, bytes, signal);
    return { value: (file.metadata ?? {}) as ObjectMetadata, dateMs: timeIn(answer, 'date') };
  }

  #file(): FileLike {
    const file = this.#bucket.file(this.#name);
    file.interceptors?.push({
      request: (request) => ({
        ...request,
        timeout: (request as { timeout?: number }).timeout ?? this.#timeoutMs,
        maxRetries: 0,
      }),
    });
    return file;
  }
}

/** A refusal in the shape of the client's own errors. Undefined: the answer is the object. */
function refusalIn(answer: HttpAnswer, bytes: Uint8Array): Error | undefined {
  const { statusCode = 0, statusMessage = '' } = answer;
  if (statusCode >= 200 && statusCode < 300) return undefined;
  const text = new TextDecoder().decode(bytes);
  let told: object = {};
  try {
    told = (JSON.parse(text) as { readonly error?: object }).error ?? {};
  } catch {
    // A refused request for bytes is mostly answered in plain words, or by a proxy's page.
  }
  const refusal = new Error(text.trim() || statusMessage);
  return Object.assign(refusal, told, { code: statusCode });
}

/**
 * The caller does not wait for the rest of this answer, which might never come. So its connection
 * is closed. The client's streams would not do: they would close those of other calls with it.
 */
function hangUp(answer: HttpAnswer): void {
  answer.once?.('unpipe', (connection) => connection.destroy?.());
  answer.destroy?.();
}

function collect(source: SourceLike, signal: AbortSignal): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  source.on('data', (chunk: Uint8Array) => void chunks.push(chunk));
  const ended = new Promise<Uint8Array>((resolve, reject) => {
    source.on('end', () => resolve(new Uint8Array(Buffer.concat(chunks))));
    source.on('error', reject);
  });
  return unlessAborted(ended, signal);
}

function finish(sink: SinkLike, bytes: Uint8Array, signal: AbortSignal): Promise<void> {
  const finished = new Promise<void>((resolve, reject) => {
    sink.on('finish', () => resolve());
    sink.on('error', reject);
  });
  sink.end(bytes);
  return unlessAborted(finished, signal);
}

/** @param hashes `crc32c=…,md5=…`, or several headers of these */
function checkIntegrity(bytes: Uint8Array, hashes: string | undefined): void {
  const told = /crc32c=([A-Za-z0-9+/]{6}==)/.exec(hashes ?? '')?.[1];
  const found = crc32cBase64(bytes);
  if (told === undefined || told === found) return;
  throw new StoreUnavailableError(
    `the object arrived damaged: its CRC32C is ${found}, and ${told} was told`,
  );
}

function header({ headers }: HttpAnswer, name: string): string | undefined {
  const value = headers?.[name];
  if (Array.isArray(value)) return value.join(',');
  return typeof value === 'string' ? value : undefined;
}

function timeIn(answer: HttpAnswer, name: string): number | undefined {
  const ms = Date.parse(header(answer, name) ?? '');
  return Number.isFinite(ms) ? ms : undefined;
}
