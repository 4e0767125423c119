/** What this backend needs of a `Storage` of `@google-cloud/storage` 7 or 8. */

export interface StorageLike {
  bucket(name: string): BucketLike;
}

export interface BucketLike {
  file(name: string): FileLike;
}

export interface FileLike {
  /** What the server last said of the object, such as after an upload. */
  readonly metadata: unknown;
  /** Of requests for this one `File`, which is ours: nothing of the caller's client is changed. */
  readonly interceptors?: { push(interceptor: RequestInterceptor): unknown };
  /**
   * A GET of the object itself, a `SourceLike`; its answer, whatever it is, comes by the event
   * `response`. Not told apart here: how the types of Node's streams write listeners down changes.
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
  /** When this version was written, or its metadata; RFC 3339. */
  readonly updated?: string;
}
