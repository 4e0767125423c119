import { RecordDamagedError, StoreUnsuitableError } from '../../base/errors.ts';
import type {
  GetOutput,
  ListOutput,
  ObjectName,
  PutInput,
  PutOutput,
  S3ClientLike,
  S3Command,
  S3Commands,
} from './client.ts';
import { statusOf } from './client.ts';
import type { Refusals } from './errors.ts';
import { isConflict, isMissing } from './errors.ts';
import type { TagForm } from './etag.ts';
import { bareTag, writeTag } from './etag.ts';

/** Far above any record. A foreign object may have terabytes. */
const mostBytes = 8 * 1_024 * 1_024;

export interface ListRequest {
  readonly Command: NonNullable<S3Commands['ListObjectsV2Command']>;
  readonly prefix: string;
  /** `next` of the page before. */
  readonly after: string | undefined;
}

/** An object as it was read. */
export interface Found {
  readonly text: string;
  /** The ETag, without quotes. */
  readonly tag: string;
  /** When it was written, in ms since 1970 by the endpoint's clock, which tells whole seconds. */
  readonly writtenMs: number | undefined;
  /** When it was sent, by the same clock. */
  readonly sentMs: number | undefined;
}

/** The condition for a write to be done. */
export type Condition = 'absent' | { readonly tag: string; readonly form: TagForm };

/** `busy`: refused as well, but because another write was under way (409). */
export type PutResult =
  | { readonly outcome: 'ok'; readonly tag: string }
  | { readonly outcome: 'refused' | 'busy' };

/**
 * The two calls on objects of one bucket, with errors of ours. One attempt each, as far as we know.
 */
export class Objects {
  readonly #client: S3ClientLike;
  readonly #bucket: string;
  readonly #commands: S3Commands;
  readonly #refusals: Refusals;

  constructor(client: S3ClientLike, bucket: string, commands: S3Commands, refusals: Refusals) {
    this.#client = client;
    this.#bucket = bucket;
    this.#commands = commands;
    this.#refusals = refusals;
  }

  /** @returns undefined when there is none */
  async get(key: string, signal: AbortSignal): Promise<Found | undefined> {
    signal.throwIfAborted();
    const command = new this.#commands.GetObjectCommand(this.#name(key));
    let sentMs: number | undefined;
    onDate(command, (date) => {
      sentMs = timeOf(date);
    });
    let output: GetOutput;
    let text: string | undefined;
    try {
      output = (await this.#send(command, signal)) as GetOutput;
      text = await textOf(output);
    } catch (error) {
      if (!isMissing(error)) throw this.#refusals.error('read', key, error);
      this.#refusals.allowed('read');
      return undefined;
    }
    this.#refusals.allowed('read');
    if (text === undefined) {
      const why = `it has ${output.ContentLength} bytes`;
      throw new RecordDamagedError(locationOf(this.#bucket, key), why);
    }
    return {
      text,
      tag: this.#tagOf(output, key),
      writtenMs: output.LastModified?.getTime(),
      sentMs,
    };
  }

  /** A page of the names that begin so. Larger objects than any record are left out. */
  async list(
    { Command, prefix, after }: ListRequest,
    signal: AbortSignal,
  ): Promise<{ readonly keys: readonly string[]; readonly next: string | undefined }> {
    signal.throwIfAborted();
    const command = new Command({
      ...{ Bucket: this.#bucket, Prefix: prefix },
      ...(after === undefined ? {} : { ContinuationToken: after }),
    });
    let output: ListOutput;
    try {
      output = (await this.#send(command, signal)) as ListOutput;
    } catch (error) {
      throw this.#refusals.error('list', prefix, error);
    }
    this.#refusals.allowed('list');
    const { Contents = [], IsTruncated, NextContinuationToken } = output;
    return {
      keys: Contents.flatMap(({ Key, Size = 0 }) =>
        Key === undefined || Size > mostBytes ? [] : Key,
      ),
      next: IsTruncated === true ? NextContinuationToken : undefined,
    };
  }

  async put(
    key: string,
    text: string,
    condition: Condition,
    signal: AbortSignal,
  ): Promise<PutResult> {
    signal.throwIfAborted();
    const input: PutInput = {
      ...this.#name(key),
      Body: text,
      ContentType: 'application/json',
      ...(condition === 'absent'
        ? { IfNoneMatch: '*' }
        : { IfMatch: writeTag(condition.tag, condition.form) }),
    };
    const command = new this.#commands.PutObjectCommand(input);
    let output: PutOutput;
    try {
      output = (await this.#send(command, signal)) as PutOutput;
    } catch (error) {
      if (!isConflict(error, condition !== 'absent')) {
        throw this.#refusals.error('write', key, error);
      }
      return { outcome: statusOf(error) === 409 ? 'busy' : 'refused' };
    }
    this.#refusals.allowed('write');
    return { outcome: 'ok', tag: this.#tagOf(output, key) };
  }

  #send(command: S3Command, signal: AbortSignal): Promise<unknown> {
    return this.#client.send(command as never, { abortSignal: signal });
  }

  #name(key: string): ObjectName {
    return { Bucket: this.#bucket, Key: key };
  }

  #tagOf({ ETag }: PutOutput, key: string): string {
    if (typeof ETag === 'string' && bareTag(ETag) !== '') return bareTag(ETag);
    throw new StoreUnsuitableError(
      `S3 told no ETag of the object "${key}" of the bucket "${this.#bucket}", and nothing else says ` +
        'which version it is: this endpoint cannot hold elections',
    );
  }
}

/** For errors. */
export function locationOf(bucket: string, key: string): string {
  return `the object "${key}" of the bucket "${bucket}"`;
}

/** @returns undefined when it is too large to be read */
async function textOf({ Body, ContentLength = 0 }: GetOutput): Promise<string | undefined> {
  if (ContentLength <= mostBytes) return (await Body?.transformToString('utf-8')) ?? '';
  // Otherwise the connection would wait for it to be read.
  Body?.destroy?.();
  await Body?.cancel?.();
  return undefined;
}

interface Answered {
  readonly response?: { readonly headers?: Readonly<Record<string, string | undefined>> };
}

type Handler = (request: unknown) => Promise<Answered>;

/**
 * Tells the `Date` of every answer to this command, because the SDK shows no headers. When it tries
 * several times, the last one counts.
 */
function onDate({ middlewareStack }: S3Command, tell: (date: string | undefined) => void): void {
  const listen = (next: Handler) => async (request: unknown) => {
    const answered = await next(request);
    tell(answered.response?.headers?.['date']);
    return answered;
  };
  const options = { step: 'deserialize', name: 'incumbentDate', override: true };
  middlewareStack.add(listen as never, options as never);
}

function timeOf(date: string | undefined): number | undefined {
  const ms = Date.parse(date ?? '');
  return Number.isNaN(ms) ? undefined : ms;
}
