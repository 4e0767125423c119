/**
 * The parts of `@aws-sdk/client-s3`, version 3, that we need. We do not import it, not even its
 * types: the commands are handed in with the client.
 */

/** `S3Client` or `S3`. Its owner makes and destroys it. */
export interface S3ClientLike {
  send(command: never, options?: { readonly abortSignal?: AbortSignal }): Promise<unknown>;
}

/** The classes of these names. */
export interface S3Commands {
  readonly GetObjectCommand: new (input: ObjectName) => S3Command;
  readonly PutObjectCommand: new (input: PutInput) => S3Command;
  /** Needed to list elections, and for nothing else. */
  readonly ListObjectsV2Command?: new (
    input: ListInput,
  ) => S3Command;
}

export interface ListInput {
  Bucket: string;
  Prefix: string;
  ContinuationToken?: string;
}

export interface ObjectName {
  Bucket: string;
  Key: string;
}

export interface PutInput extends ObjectName {
  Body: string;
  ContentType: string;
  IfMatch?: string;
  IfNoneMatch?: string;
}

/** Every command has a stack of its own. Middleware on it does not change the client. */
export interface S3Command {
  readonly middlewareStack: { add(middleware: never, options: never): void };
}

/** The part that is looked at. */
export interface GetOutput {
  readonly Body?: {
    transformToString(encoding?: string): Promise<string>;
    /** With a stream of Node. */
    destroy?(): unknown;
    /** With a stream of the web. */
    cancel?(): Promise<unknown>;
  };
  readonly ContentLength?: number;
  readonly ETag?: string;
  readonly LastModified?: Date;
}

export interface ListOutput {
  readonly Contents?: readonly { readonly Key?: string; readonly Size?: number }[];
  readonly IsTruncated?: boolean;
  readonly NextContinuationToken?: string;
}

export interface PutOutput {
  readonly ETag?: string;
}

/** An error of the SDK: from the endpoint, the network, or itself. */
export interface S3Failure {
  /** The endpoint's `<Code>`, or the kind of error. */
  readonly name?: unknown;
  readonly message?: unknown;
  /** The operating system's code. */
  readonly code?: unknown;
  readonly $metadata?: { readonly httpStatusCode?: unknown };
}

/** The status of the answer. Undefined: there was none. */
export function statusOf(error: unknown): number | undefined {
  const status = (error as S3Failure | null | undefined)?.$metadata?.httpStatusCode;
  return typeof status === 'number' ? status : undefined;
}

export function nameOf(error: unknown): string {
  const name = (error as S3Failure | null | undefined)?.name;
  return typeof name === 'string' ? name : '';
}
