/** Access rules. */
import type { IncomingMessage } from 'node:http';
import { accessDenied, Refusal } from './refusal.ts';
import { sha256, signatureOf } from './signature.ts';
import type { Target } from './target.ts';

export interface S3Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

export type S3Action = 's3:GetObject' | 's3:PutObject' | 's3:DeleteObject' | 's3:ListBucket';

interface User {
  readonly secretAccessKey: string;
  /** Undefined: all of them. */
  readonly actions: readonly S3Action[] | undefined;
}

/** As S3 has it: a quarter of an hour. */
const mostSkewMs = 900_000;

export class S3Accounts {
  readonly #users = new Map<string, User>();

  set({ accessKeyId, secretAccessKey }: S3Credentials, actions?: readonly S3Action[]): void {
    this.#users.set(accessKeyId, { secretAccessKey, actions });
  }

  /** @throws Refusal for whoever did not sign this, or may not do it */
  require(
    { verb, name }: Target,
    request: IncomingMessage,
    body: Buffer,
    { isThere, nowMs }: { readonly isThere: boolean; readonly nowMs: number },
  ): void {
    const user = this.#signerOf(request, body, nowMs);
    const mayDo = (action: S3Action) => user.actions?.includes(action) !== false;
    const isReplacing = request.headers['if-match'] !== undefined;
    const needed: Readonly<Record<string, readonly S3Action[]>> = {
      get: ['s3:GetObject'],
      head: ['s3:GetObject'],
      // A client must be able to read the object that it compares.
      put: isReplacing ? ['s3:PutObject', 's3:GetObject'] : ['s3:PutObject'],
      delete: ['s3:DeleteObject'],
    };
    if (!(needed[verb] ?? ['s3:ListBucket' as const]).every(mayDo)) throw accessDenied();
    // A client that may not list does not learn that an object is missing.
    const isRead = (verb === 'get' || verb === 'head') && name !== undefined;
    if (isRead && !isThere && !mayDo('s3:ListBucket')) throw accessDenied();
  }

  #signerOf(request: IncomingMessage, body: Buffer, nowMs: number): User {
    const signed = signatureOf(request);
    if (signed === undefined) throw accessDenied();
    const user = this.#users.get(signed.accessKey);
    if (user === undefined) {
      const why = 'The AWS Access Key Id you provided does not exist in our records.';
      throw new Refusal(403, 'InvalidAccessKeyId', why);
    }
    if (!signed.isSignedBy(user.secretAccessKey)) {
      const why =
        'The request signature we calculated does not match the signature you provided. Check your key and signing method.';
      throw new Refusal(403, 'SignatureDoesNotMatch', why);
    }
    if (Math.abs(signed.sentMs - nowMs) > mostSkewMs) {
      const why = 'The difference between the request time and the current time is too large.';
      throw new Refusal(403, 'RequestTimeTooSkewed', why);
    }
    if (request.headers['x-amz-content-sha256'] !== sha256(body)) {
      const why = "The provided 'x-amz-content-sha256' header does not match what was computed.";
      throw new Refusal(400, 'XAmzContentSHA256Mismatch', why);
    }
    return user;
  }
}
