import { ElectionError, StoreUnavailableError, StoreUnsuitableError } from '../../base/errors.ts';

/** An election reads and writes its object. A listing lists the objects of the bucket. */
export type Verb = 'read' | 'write' | 'list';

/** As much of an error of `@google-cloud/storage` as we look at. */
interface ApiErrorLike {
  /** The status of the answer, or the system's error code of the connection. */
  readonly code?: unknown;
  readonly message?: unknown;
  readonly errors?: readonly { readonly reason?: unknown; readonly message?: unknown }[];
}

const rights: Readonly<Record<Verb, string>> = {
  read: 'storage.objects.get',
  write: 'storage.objects.create and storage.objects.delete (replacing an object takes both)',
  list: 'storage.objects.list and storage.objects.get',
};

/**
 * Makes errors of refusals. An operation that has worked once may work again. Rights take a while
 * to spread, and an operator may restore a right that was taken away. So waiting is hopeless only
 * where the operation never was allowed.
 */
export class Refusals {
  readonly #bucket: string;
  readonly #allowed = new Set<Verb>();

  constructor(bucket: string) {
    this.#bucket = bucket;
  }

  allowed(verb: Verb): void {
    this.#allowed.add(verb);
  }

  error(verb: Verb, error: unknown): Error {
    if (error instanceof ElectionError) return error;
    const status = statusOf(error);
    const message = messageOf(error);
    const objects = verb === 'list' ? 'objects' : 'an object';
    const what = `Cloud Storage refused to ${verb} ${objects} of the bucket "${this.#bucket}"`;
    if (status === undefined) return this.#withoutAnswer(verb, message, error);
    const refused = `${what} (${status}): ${message}`;
    if (status === 429 || status === 408 || status >= 500 || isRateLimit(error)) {
      return new StoreUnavailableError(refused, { cause: error });
    }
    if (status === 400 && /crc32c|checksum|md5/i.test(message)) {
      return new StoreUnavailableError(`${refused}; it was damaged on its way`, { cause: error });
    }
    return this.#unlessAllowed(verb, refused + this.#wayOut(verb, status, message));
  }

  #wayOut(verb: Verb, status: number, message: string): string {
    if (/retention|hold/i.test(message) && status === 403) {
      return (
        '; an election is one object that is replaced every few seconds: use a bucket without ' +
        'retention policy and holds'
      );
    }
    switch (status) {
      case 400:
        return /uniform bucket-level access|legacy acl/i.test(message)
          ? '; the bucket has uniform access: give nobody rights by acl or readers, but by IAM'
          : '';
      case 401:
        return '; the credentials are missing, have expired or are for something else';
      case 403:
        return (
          `; the account needs ${rights[verb]}: the role roles/storage.objectUser on the bucket has ` +
          'these'
        );
      case 404:
        return '; make the bucket, or give another one';
      default:
        return '';
    }
  }

  /** The network failed, or the credentials before it. */
  #withoutAnswer(verb: Verb, message: string, error: unknown): Error {
    if (/default credentials|invalid_grant|private key|PEM routines/i.test(message)) {
      return this.#unlessAllowed(
        verb,
        `there are no credentials for the bucket "${this.#bucket}": ${message}; run ` +
          '`gcloud auth application-default login`, or give `new Storage()` a keyFilename',
      );
    }
    return new StoreUnavailableError(
      `Cloud Storage was not reached for the bucket "${this.#bucket}": ${message}`,
      { cause: error },
    );
  }

  #unlessAllowed(verb: Verb, message: string): Error {
    if (!this.#allowed.has(verb)) return new StoreUnsuitableError(message);
    return new StoreUnavailableError(`${message} (it was allowed before)`);
  }
}

/** The status of the answer. Undefined: there was none. */
export function statusOf(error: unknown): number | undefined {
  const { code } = (error ?? {}) as ApiErrorLike;
  const status = typeof code === 'string' && /^\d{3}$/.test(code) ? Number(code) : code;
  return typeof status === 'number' && status >= 100 && status < 600 ? status : undefined;
}

/** True when the object is not there. False when its bucket is not. */
export function isAbsent(error: unknown): boolean {
  if (statusOf(error) !== 404) return false;
  const message = messageOf(error);
  return /no such object/i.test(message) || !/bucket/i.test(message);
}

/** True when the object was not in the state that the write demanded. */
export function isConflict(error: unknown): boolean {
  const status = statusOf(error);
  return status === 412 || status === 409;
}

function isRateLimit(error: unknown): boolean {
  const { errors } = (error ?? {}) as ApiErrorLike;
  return Array.isArray(errors) && errors.some(({ reason }) => /rateLimit/i.test(String(reason)));
}

/** In one line, because a proxy may answer with a page. */
function messageOf(error: unknown): string {
  const { message } = (error ?? {}) as ApiErrorLike;
  const text = typeof message === 'string' && message !== '' ? message : String(error);
  return text.replace(/\s+/g, ' ').trim().slice(0, 300);
}
