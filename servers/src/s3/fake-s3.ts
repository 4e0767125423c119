/**
 * A stand-in for S3 in this process: objects by path-style requests, signed and with checksums, as
 * `@aws-sdk/client-s3` sends them. It refuses the parts of a request that it does not check, and
 * keeps them in `unexpected`.
 */
import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import type { TestCertificates } from '@incumbent/zookeeper-testing';
import { createCertificates } from '@incumbent/zookeeper-testing';
import { bytesOf, reset, strike } from '../http-stand-in.ts';
import { makeServerDirectory } from '../local-server.ts';
import type { LoggedObjectRequest } from '../object-stand-in.ts';
import { exchangeOf, ObjectStandIn } from '../object-stand-in.ts';
import type { S3Action, S3Credentials } from './accounts.ts';
import { S3Accounts } from './accounts.ts';
import type { Dialect } from './bucket.ts';
import { awsDialect, Bucket } from './bucket.ts';
import { requireKnown, unknownIn } from './known.ts';
import { escapeXml, noSuchBucket, Refusal } from './refusal.ts';
import type { Target } from './target.ts';
import { targetOf } from './target.ts';

export interface FakeS3Options {
  /** Default `elections`. */
  readonly buckets?: readonly string[];
  /** Default AWS's. */
  readonly dialect?: Partial<Dialect>;
  /** HTTPS, with certificates of its own. */
  readonly tls?: boolean;
}

/** The account that may do everything. */
export const ownerCredentials: S3Credentials = {
  accessKeyId: 'OWNER',
  secretAccessKey: 'the-secret-of-the-owner',
};

/** A request as it came, and how it was answered; 0: not at all. */
export interface LoggedS3Request extends LoggedObjectRequest {
  /** `get`, `put`, `head`, `delete`, `list`, `versioning`, or `other`. */
  readonly verb: string;
  readonly body: string;
}

export class FakeS3 extends ObjectStandIn<Bucket, LoggedS3Request> {
  /** Parts of requests that nobody here has looked at. */
  readonly unexpected: string[] = [];
  readonly certificates: TestCertificates | undefined;
  dialect: Dialect;
  versioning = false;
  /** How many are being served. */
  openRequests = 0;
  readonly #accounts = new S3Accounts();
  readonly #directory: string | undefined;

  private constructor(
    options: FakeS3Options,
    directory: string | undefined,
    certificates: TestCertificates | undefined,
  ) {
    const tls = certificates && {
      key: certificates.server.key.text,
      cert: certificates.server.certificate.text,
    };
    super(tls);
    for (const name of options.buckets ?? ['elections']) this.buckets.set(name, new Bucket());
    this.dialect = { ...awsDialect, ...options.dialect };
    this.#directory = directory;
    this.certificates = certificates;
    this.allow(ownerCredentials);
  }

  static async start(options: FakeS3Options = {}): Promise<FakeS3> {
    const directory = options.tls === true ? await makeServerDirectory('s3') : undefined;
    const certificates =
      directory === undefined ? undefined : await createCertificates(join(directory, 'tls'));
    const server = new FakeS3(options, directory, certificates);
    await server.listen();
    return server;
  }

  /** @param actions all of them, unless they are named */
  allow(credentials: S3Credentials, actions?: readonly S3Action[]): void {
    this.#accounts.set(credentials, actions);
  }

  override async close(): Promise<void> {
    await super.close();
    if (this.#directory !== undefined) await rm(this.#directory, { recursive: true, force: true });
  }

  protected async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://localhost');
    const target = targetOf(request, url);
    let body: Buffer = Buffer.alloc(0);
    const requestId = randomBytes(8).toString('hex').toUpperCase();
    this.openRequests += 1;
    response.on('close', () => {
      this.openRequests -= 1;
      this.requests.push({
        ...target,
        ...exchangeOf(request, response),
        body: body.toString(),
      });
    });
    let reply = (status: number, headers: Record<string, string>, sent: Buffer | string) => {
      response.sendDate = false;
      if (!this.hidesDate) response.setHeader('date', new Date(this.nowMs).toUTCString());
      response
        .writeHead(status, {
          'x-amz-request-id': requestId,
          server: 'stand-in',
          ...(status === 204 ? {} : { 'content-length': String(Buffer.byteLength(sent)) }),
          ...headers,
        })
        .end(request.method === 'HEAD' ? undefined : sent);
    };
    try {
      body = await bytesOf(request);
      const action = this.faults.take({ verb: target.verb, name: target.name, user: undefined });
      if (action?.kind === 'drop-reply') reply = () => reset(request.socket);
      if (action !== undefined && !(await strike(action, request, response))) return;
      this.unexpected.push(...unknownIn(target, request, url));
      requireKnown(target, request, url);
      const isThere = this.buckets.get(target.bucket)?.find(target.name ?? '') !== undefined;
      this.#accounts.require(target, request, body, { isThere, nowMs: this.nowMs });
      const [status, headers, sent] = this.#answer(target, request, url, body);
      reply(status, headers, sent);
    } catch (error) {
      if (response.headersSent) return;
      const refusal =
        error instanceof Refusal
          ? error
          : new Refusal(500, 'InternalError', (error as Error).message);
      const headers = { 'content-type': 'application/xml' };
      reply(refusal.status, headers, refusal.body(target.name, requestId));
    }
  }

  #answer(
    { verb, bucket: bucketName, name }: Target,
    request: IncomingMessage,
    { searchParams }: URL,
    body: Buffer,
  ): [number, Record<string, string>, Buffer | string] {
    const bucket = this.buckets.get(bucketName);
    if (bucket === undefined) throw noSuchBucket();
    const { headers } = request;
    switch (verb) {
      case 'get':
      case 'head': {
        if (name === undefined) return [200, {}, ''];
        const { bytes, etag, writtenMs, contentType, checksums } = bucket.get(name);
        return [
          200,
          {
            etag,
            'last-modified': new Date(writtenMs).toUTCString(),
            'content-type': contentType,
            'accept-ranges': 'bytes',
            ...(headers['x-amz-checksum-mode'] === 'ENABLED' ? checksums : {}),
          },
          bytes,
        ];
      }
      case 'put': {
        const { etag, checksums } = bucket.put(
          name ?? '',
          body,
          {
            writtenMs: this.nowMs,
            contentType: headers['content-type'] ?? 'binary/octet-stream',
            checksums: checkedSums(request, body),
          },
          { ifMatch: headers['if-match'], ifNoneMatch: headers['if-none-match'] },
          this.dialect,
        );
        return [200, { etag, ...checksums }, ''];
      }
      case 'delete':
        bucket.delete(name ?? '');
        return [204, {}, ''];
      case 'list': {
        const prefix = searchParams.get('prefix') ?? '';
        const after = searchParams.get('continuation-token');
        const found = bucket.keys
          .filter((key) => key.startsWith(prefix))
          .sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
        const begin = after === null ? 0 : found.indexOf(fromToken(after)) + 1;
        const most = Math.min(Number(searchParams.get('max-keys') ?? 1_000), 1_000);
        const shown = listing(bucketName, found.slice(begin), most);
        return [200, { 'content-type': 'application/xml' }, shown];
      }
      case 'versioning': {
        const status = this.versioning ? '<Status>Enabled</Status>' : '';
        const xml = `<VersioningConfiguration>${status}</VersioningConfiguration>`;
        return [200, { 'content-type': 'application/xml' }, xml];
      }
      default:
        throw new Refusal(405, 'MethodNotAllowed', 'The specified method is not allowed');
    }
  }
}

/** @throws Refusal for a checksum that is not that of the body */
function checkedSums({ headers }: IncomingMessage, body: Buffer): Record<string, string> {
  const given = headers['x-amz-checksum-crc32'];
  if (given === undefined) return {};
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(body));
  const own = sum.toString('base64');
  if (given !== own) {
    throw new Refusal(
      400,
      'BadDigest',
      'The CRC32 you specified did not match the calculated one.',
    );
  }
  return { 'x-amz-checksum-crc32': own, 'x-amz-checksum-type': 'FULL_OBJECT' };
}

function listing(bucket: string, keys: readonly string[], most: number): string {
  const shown = keys
    .slice(0, most)
    .map((key) => `<Contents><Key>${escapeXml(key)}</Key></Contents>`);
  const next =
    keys.length > most
      ? `<NextContinuationToken>${tokenOf(keys[most - 1] ?? '')}</NextContinuationToken>`
      : '';
  return (
    '<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">' +
    `<Name>${bucket}</Name><KeyCount>${shown.length}</KeyCount><MaxKeys>${most}</MaxKeys>` +
    `<IsTruncated>${keys.length > most}</IsTruncated>${next}${shown.join('')}</ListBucketResult>`
  );
}

/** Opaque to clients. */
function tokenOf(key: string): string {
  return Buffer.from(key).toString('base64url');
}

function fromToken(token: string): string {
  return Buffer.from(token, 'base64url').toString();
}
