/** The part of a `Storage` of `@google-cloud/storage` 7 or 8 that this backend needs. */

export interface StorageLike {
  bucket(name: string): BucketLike;
}

export interface BucketLike {
  file(name: string): FileLike;
  /** Needed to list elections, and for nothing else. Resolves with files, next query, answer. */
  getFiles?(query: object): Promise<unknown>;
}

export interface FileLike {
  /** The metadata that the server last told, such as after an upload. */
  readonly metadata: unknown;
  /** For requests on this one `File`, which is ours. Nothing of the caller's client is changed. */
  readonly interceptors?: { push(interceptor: RequestInterceptor): unknown };
  /**
   * A GET of the object itself, a `SourceLike`. Any answer comes by the event `response`. The
   * type is `unknown`, because the types of Node's streams describe listeners differently from
   * version to version.
   */
  requestStream(options: object): unknown;
  /** A `SinkLike`. */
  createWriteStream(options: object): unknown;
  getMetadata(): Promise<unknown>;
}

export interface RequestInterceptor {
  request(request: object): object;
}

export interface SourceLike {
  on(event: string, listener: (...values: never[]) => void): unknown;
}

export interface SinkLike extends SourceLike {
  end(bytes: Uint8Array): unknown;
}

/** As much of an object's metadata as we look at. */
export interface ObjectMetadata {
  readonly generation?: string | number;
  readonly metageneration?: string | number;
  /** When this version or its metadata was written, by RFC 3339. */
  readonly updated?: string;
}
