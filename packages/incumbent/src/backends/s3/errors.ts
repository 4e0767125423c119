import { ElectionError, StoreUnavailableError, StoreUnsuitableError } from '../../base/errors.ts';
import type { S3Failure } from './client.ts';
import { nameOf, statusOf } from './client.ts';

/** An election reads and writes its object. A listing lists the objects of the bucket. */
export type Right = 'read' | 'write' | 'list';

/**
 * True when the condition of a write was not met. Another candidate has written. Or an earlier
 * attempt of the SDK has done this very write, and its answer was lost.
 * @param isReplacing true: the object to replace may be gone, and then some endpoints answer 404
 */
export function isConflict(error: unknown, isReplacing: boolean): boolean {
  const status = statusOf(error);
  if (status === 412 || status === 409) return true;
  return status === 404 && isReplacing && nameOf(error) !== 'NoSuchBucket';
}

/**
 * Only an answer that names the missing key counts. A proxy's page is no proof that there
 * is no record.
 */
export function isMissing(error: unknown): boolean {
  return statusOf(error) === 404 && nameOf(error) === 'NoSuchKey';
}

/** Codes of the endpoint about our identity: the same for every object. */
const identityCodes = new Set([
  'InvalidAccessKeyId',
  'SignatureDoesNotMatch',
  'InvalidToken',
  'ExpiredToken',
  'ExpiredTokenException',
  'TokenRefreshRequired',
  'InvalidSecurity',
  'AuthorizationHeaderMalformed',
]);

/** Codes of the SDK from before anything was sent. */
const ownCodes = /^(?:CredentialsProviderError|TokenProviderError)$/;

/** Codes of Node and OpenSSL: this is not the intended endpoint, or not by this protocol. */
const tlsCodes = /^(?:ERR_TLS|ERR_SSL|EPROTO|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|HPE_INVALID)/;

/**
 * Makes errors from those of the SDK. A call that has worked once may work again. Credentials are
 * renewed, policies are corrected, and an endpoint that has just started does not know its buckets.
 * So waiting is hopeless only where a call never was allowed.
 */
export class Refusals {
  readonly #bucket: string;
  readonly #allowed = new Set<Right>();

  constructor(bucket: string) {
    this.#bucket = bucket;
  }

  allowed(right: Right): void {
    this.#allowed.add(right);
  }

  /** @param key the name of the object, or the prefix of a listing */
  error(right: Right, key: string, error: unknown): unknown {
    if (error instanceof ElectionError) return error;
    const status = statusOf(error);
    const name = nameOf(error);
    const objects = right === 'list' ? `the objects "${key}…"` : `the object "${key}"`;
    const what = `S3 refused to ${right} ${objects} of the bucket "${this.#bucket}"`;
    const said = describe(error);
    const refuse = (wayOut: string) =>
      this.#unlessAllowed(right, `${what}: ${said}; ${wayOut}`, error);
    // A connection that broke off in the middle of an answer gives no status that counts.
    if (status === undefined || brokeOff(error)) return this.#unanswered(right, error, said);
    if (identityCodes.has(name)) {
      return refuse('look at the credentials and the region of the client');
    }
    if (name === 'NoSuchBucket') return refuse('make the bucket, or name another one');
    // The SDK adds checksums of its own accord, and some endpoints refuse headers that they
    // do not know.
    if ((status === 400 || status === 501) && /checksum|sha256/i.test(said)) {
      return refuse(fewChecksums);
    }
    switch (status) {
      case 401:
      case 403:
        if (name === 'RequestTimeTooSkewed') break;
        return refuse(rights[right]);
      case 301:
      case 307:
        return refuse('the bucket is in another region: give the client that one');
      case 404:
        return refuse('look whether the endpoint is one of S3');
      case 405:
      case 501:
        return refuse('this endpoint cannot do what elections need: conditional writes');
      case 400:
      case 411:
      case 413:
      case 415:
        return refuse(`look whether the endpoint is one of S3; ${fewChecksums}`);
      default:
    }
    return new StoreUnavailableError(`${what}: ${said}`, { cause: error });
  }

  /** The network failed, or the SDK itself. */
  #unanswered(right: Right, error: unknown, said: string): ElectionError {
    const what = `S3 cannot be asked to ${right} in the bucket "${this.#bucket}": ${said}`;
    const code = (error as S3Failure | null | undefined)?.code;
    if (ownCodes.test(nameOf(error)) || /region is missing/i.test(said)) {
      return this.#unlessAllowed(right, `${what}; give the client credentials and a region`, error);
    }
    if (nameOf(error) === 'InvalidBucketName' || code === 'ERR_INVALID_URL') {
      return this.#unlessAllowed(
        right,
        `${what}; look at the name of the bucket, and at the endpoint of the client, which begins with ` +
          'https:// or http://',
        error,
      );
    }
    if (typeof code === 'string' && tlsCodes.test(code)) {
      return this.#unlessAllowed(
        right,
        `${what}; look at the endpoint of the client, and whom it trusts (NODE_EXTRA_CA_CERTS)`,
        error,
      );
    }
    return new StoreUnavailableError(what, { cause: error });
  }

  #unlessAllowed(right: Right, message: string, cause: unknown): ElectionError {
    if (!this.#allowed.has(right)) return new StoreUnsuitableError(message);
    return new StoreUnavailableError(`${message} (it was allowed before)`, { cause });
  }
}

/**
 * True when the connection broke off. These are Node's own codes. Errors of the SDK
 * have only names.
 */
function brokeOff(error: unknown): boolean {
  const code = (error as S3Failure | null | undefined)?.code;
  return typeof code === 'string' && /^(?:ECONN|EPIPE|ETIMEDOUT|ERR_STREAM)/.test(code);
}

const fewChecksums =
  "an endpoint that does not know the SDK's checksums wants requestChecksumCalculation: " +
  "'WHEN_REQUIRED' in the client's options";
const readRights =
  'the right s3:GetObject is needed, and s3:ListBucket on the bucket, without which S3 says of an ' +
  'object that is not there that it may not be read';
const rights: Readonly<Record<Right, string>> = {
  read: readRights,
  write: 'the rights s3:PutObject and s3:GetObject are needed (docs/stores/s3.md)',
  list: 'to list elections, the rights s3:ListBucket on the bucket and s3:GetObject are needed',
};

/** `SlowDown (503): Please reduce your request rate` */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const inner = error instanceof AggregateError ? error.errors.map(describe) : [];
  const message = [...new Set([error.message, ...inner])]
    .filter((text) => text !== '')
    .join(', ')
    .replace(/\.$/, '');
  const status = statusOf(error);
  const { code } = error as S3Failure;
  const name = error.name === 'Error' && typeof code === 'string' ? code : error.name;
  return `${name}${status === undefined ? '' : ` (${status})`}${message === '' ? '' : `: ${message}`}`;
}
