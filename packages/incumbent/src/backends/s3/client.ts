/**
 * What we need of `@aws-sdk/client-s3`, version 3. We do not import it, not even its types: the
 * commands are handed in with the client.
 */

/** `S3Client` or `S3`. Who makes and destroys it is its owner. */
export interface S3ClientLike {
  send(command: never, options?: { readonly abortSignal?: AbortSignal }): Promise<unknown>;
}

/** The classes of that name. */
export interface S3Commands {
  readonly GetObjectCommand: new (input: ObjectName) => S3Command;
  readonly PutObjectCommand: new (input: PutInput) => S3Command;
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

/** Every command has a stack of its own, on which something may be put without changing the client. */
export interface S3Command {
  readonly middlewareStack: { add(middleware: never, options: never): void };
}

/** As far as it is looked at. */
export interface GetOutput {
  readonly Body?: {
    transformToString(encoding?: string): Promise<string>;
    /** Of a stream of Node. */
    destroy?(): unknown;
    /** Of a stream of the web. */
    cancel?(): Promise<unknown>;
  };
  readonly ContentLength?: number;
  readonly ETag?: string;
  readonly LastModified?: Date;
}

export interface PutOutput {
  readonly ETag?: string;
}

/** What the SDK rejects with: of the endpoint, of the network, or of itself. */
export interface S3Failure {
  /** The endpoint's `<Code>`, or the kind of error. */
  readonly name?: unknown;
  readonly message?: unknown;
  /** Of the operating system. */
  readonly code?: unknown;
  readonly $metadata?: { readonly httpStatusCode?: unknown };
}

/** Undefined: there was no answer. */
export function statusOf(error: unknown): number | undefined {
  const status = (error as S3Failure | null | undefined)?.$metadata?.httpStatusCode;
  return typeof status === 'number' ? status : undefined;
}

export function nameOf(error: unknown): string {
  const name = (error as S3Failure | null | undefined)?.name;
  return typeof name === 'string' ? name : '';
}
