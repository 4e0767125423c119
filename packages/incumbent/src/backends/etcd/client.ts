/**
 * The part of a gRPC client that this backend needs. A `Client` of `@grpc/grpc-js` is one. It is
 * the caller's own, with any credentials and channel options. It is never closed here.
 */
export interface GrpcClient {
  makeUnaryRequest(
    method: string,
    serialize: (message: Uint8Array) => Uint8Array,
    deserialize: (bytes: Uint8Array) => Uint8Array,
    message: Uint8Array,
    options: GrpcCallOptions,
    callback: (error: GrpcError | null, response?: Uint8Array) => void,
  ): GrpcCall;
  makeUnaryRequest(
    method: string,
    serialize: (message: Uint8Array) => Uint8Array,
    deserialize: (bytes: Uint8Array) => Uint8Array,
    message: Uint8Array,
    metadata: GrpcMetadata,
    options: GrpcCallOptions,
    callback: (error: GrpcError | null, response?: Uint8Array) => void,
  ): GrpcCall;
  makeBidiStreamRequest(
    method: string,
    serialize: (message: Uint8Array) => Uint8Array,
    deserialize: (bytes: Uint8Array) => Uint8Array,
    options: GrpcCallOptions,
  ): GrpcStream;
  makeBidiStreamRequest(
    method: string,
    serialize: (message: Uint8Array) => Uint8Array,
    deserialize: (bytes: Uint8Array) => Uint8Array,
    metadata: GrpcMetadata,
    options: GrpcCallOptions,
  ): GrpcStream;
}

/** The options of a call. */
export interface GrpcCallOptions {
  /** Milliseconds since 1970. */
  readonly deadline?: number;
}

/** A call under way. */
export interface GrpcCall {
  cancel(): void;
}

/** A stream in both directions. */
export interface GrpcStream extends GrpcCall {
  write(message: Uint8Array): unknown;
  on(event: 'data', listener: (message: Uint8Array) => void): unknown;
  on(event: 'error', listener: (error: GrpcError) => void): unknown;
  on(event: 'end', listener: () => void): unknown;
}

/** Headers that go with a call: a `Metadata` of `@grpc/grpc-js`. */
export interface GrpcMetadata {
  set(key: string, value: string): void;
}

/** An error of gRPC. */
export interface GrpcError extends Error {
  /** One of `grpcCode`, or another one. */
  readonly code?: number;
  /** The message without the name of the code. */
  readonly details?: string;
}

export const grpcCode = {
  cancelled: 1,
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  permissionDenied: 7,
  resourceExhausted: 8,
  failedPrecondition: 9,
  outOfRange: 11,
  unimplemented: 12,
  unavailable: 14,
  unauthenticated: 16,
} as const;

export function codeOf(error: unknown): number | undefined {
  return (error as GrpcError | null | undefined)?.code;
}

export function detailsOf(error: unknown): string {
  const { details, message } = error as GrpcError;
  return details ?? message;
}
