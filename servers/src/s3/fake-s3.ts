/**
 * A stand-in for S3 in this process: objects by path-style requests, signed and with checksums, as
 * `@aws-sdk/client-s3` sends them. What it does not check it refuses, and keeps in `unexpected`.
 */
import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import type { TestCertificates } from '@incumbent/zookeeper/testing';
import { createCertificates } from '@incumbent/zookeeper/testing';
import { bytesOf, HttpStandIn, reset, strike } from '../http-stand-in.ts';
import { Faults } from '../kubernetes/faults.ts';
import { makeServerDirectory } from '../local-server.ts';
import type { Dialect } from './bucket.ts';
import { awsDialect, Bucket } from './bucket.ts';
import { accessDenied, escapeXml, noSuchBucket, notImplemented, Refusal } from './refusal.ts';
import { sha256, signatureOf } from './signature.ts';

export interface FakeS3Options {
  /** Default `elections`. */
  readonly buckets?: readonly string[];
  /** Default AWS's. */
  readonly dialect?: Partial<Dialect>;
  /** HTTPS, with certificates of its own. */
  readonly tls?: boolean;
}

export interface S3Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

export type S3Action = 's3:GetObject' | 's3:PutObject' | 's3:DeleteObject' | 's3:ListBucket';

/** Who may do everything. */
export const ownerCredentials: S3Credentials = {
  accessKeyId: 'OWNER',
  secretAccessKey: 'the-secret-of-the-owner',
};

/** A request as it came, and how it was answered; 0: not at all. */
export interface LoggedS3Request {
  /** `get`, `put`, `head`, `delete`, `list`, `versioning`, or `other`. */
  readonly verb: string;
  readonly bucket: string;
  readonly name: string | undefined;
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly status: number;
}

/** Of each verb: the headers that mean something, besides those of every request. */
const knownHeaders: Readonly<Record<string, readonly string[]>> = {
  every: [
    ...['host', 'connection', 'authorization', 'user-agent', 'x-amz-user-agent', 'x-amz-date'],
    ...['x-amz-content-sha256', 'amz-sdk-invocation-id', 'amz-sdk-request'],
  ],
  get: ['x-amz-checksum-mode'],
  head: ['x-amz-checksum-mode'],
  put: [
    ...['content-type', 'content-length', 'if-match', 'if-none-match'],
    ...['x-amz-sdk-checksum-algorithm', 'x-amz-checksum-crc32', 'expect'],
  ],
};

/** Of each verb: parameters of the query that mean something. */
const knownQuery: Readonly<Record<string, readonly string[]>> = {
  every: ['x-id'],
  list: ['list-type', 'prefix', 'max-keys'],
  versioning: ['versioning'],
};

interface Target {
  readonly verb: string;
  readonly bucket: string;
  readonly name: string | undefined;
}

interface User {
  readonly secretAccessKey: string;
  /** Undefined: all of them. */
  readonly actions: readonly S3Action[] | undefined;
}

export class FakeS3 implements AsyncDisposable {
  readonly buckets: Map<string, Bucket> = new Map();
  readonly faults: Faults = new Faults();
  readonly requests: LoggedS3Request[] = [];
  /** What clients sent and nobody here has looked at. */
  readonly unexpected: string[] = [];
  readonly certificates: TestCertificates | undefined;
  dialect: Dialect;
  /** How far the server's clock is ahead. */
  clockAheadMs = 0;
  /** Tells no `Date`, as some proxies have it. */
  hidesDate = false;
  versioning = false;
  /** How many are being served. */
  openRequests = 0;
  readonly #users = new Map<string, User>();
  readonly #http: HttpStandIn;
  readonly #directory: string | undefined;

  private constructor(
    options: FakeS3Options,
    directory: string | undefined,
    certificates: TestCertificates | undefined,
  ) {
    for (const name of options.buckets ?? ['elections']) this.buckets.set(name, new Bucket());
    this.dialect = { ...awsDialect, ...options.dialect };
    this.#directory = directory;
    this.certificates = certificates;
    this.allow(ownerCredentials);
    const tls = certificates && {
      key: certificates.server.key.text,
      cert: certificates.server.certificate.text,
    };
    this.#http = new HttpStandIn((request, response) => void this.#serve(request, response), tls);
  }

  static async start(options: FakeS3Options = {}): Promise<FakeS3> {
    const directory = options.tls === true ? await makeServerDirectory('s3') : undefined;
    const certificates =
      directory === undefined ? undefined : await createCertificates(join(directory, 'tls'));
    const server = new FakeS3(options, directory, certificates);
    await server.listen();
    return server;
  }

  get port(): number {
    return this.#http.port;
  }

  /** For `endpoint` of a client. */
  get url(): string {
    return this.#http.url;
  }

  /** The default one. */
  get bucket(): Bucket {
    return this.buckets.values().next().value as Bucket;
  }

  get nowMs(): number {
    return Date.now() + this.clockAheadMs;
  }

  /** @param actions all of them, unless they are named */
  allow({ accessKeyId, secretAccessKey }: S3Credentials, actions?: readonly S3Action[]): void {
    this.#users.set(accessKeyId, { secretAccessKey, actions });
  }

  count(verb: string): number {
    return this.requests.filter((each) => each.verb === verb).length;
  }

  /** After `stop`: on the same port, with the same objects. */
  listen(): Promise<void> {
    return this.#http.listen();
  }

  /** As if killed: connections are reset, the objects stay. */
  stop(): Promise<void> {
    return this.#http.stop();
  }

  async close(): Promise<void> {
    await this.stop();
    if (this.#directory !== undefined) await rm(this.#directory, { recursive: true, force: true });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://localhost');
    const target = targetOf(request, url);
    let body: Buffer = Buffer.alloc(0);
    const requestId = randomBytes(8).toString('hex').toUpperCase();
    this.openRequests += 1;
    response.on('close', () => {
      this.openRequests -= 1;
      this.requests.push({
        ...target,
        method: request.method ?? '',
        url: request.url ?? '',
        headers: request.headers as Record<string, string>,
        body: body.toString(),
        status: response.headersSent ? response.statusCode : 0,
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
      this.#requireKnown(target, request, url);
      this.#requireAllowed(target, request, body);
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
        const found = bucket.keys.filter((key) => key.startsWith(prefix));
        const most = Number(searchParams.get('max-keys') ?? 1_000);
        return [200, { 'content-type': 'application/xml' }, listing(bucketName, found, most)];
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

  /** A client that comes to send something else must not be thought to be served. */
  #requireKnown({ verb }: Target, { headers }: IncomingMessage, { searchParams }: URL): void {
    const known = (table: typeof knownHeaders) => [
      ...(table['every'] ?? []),
      ...(table[verb] ?? []),
    ];
    const unknown = [
      ...Object.keys(headers).filter((name) => !known(knownHeaders).includes(name)),
      ...[...searchParams.keys()].filter((name) => !known(knownQuery).includes(name)),
    ];
    for (const name of unknown) this.unexpected.push(`${verb}: ${name}`);
    if (unknown.length > 0) throw notImplemented(unknown.join(', '));
    const { 'if-none-match': ifNoneMatch } = headers;
    if (ifNoneMatch !== undefined && ifNoneMatch !== '*') throw notImplemented('If-None-Match');
  }

  #requireAllowed({ verb, bucket, name }: Target, request: IncomingMessage, body: Buffer): void {
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
    if (Math.abs(signed.sentMs - this.nowMs) > 900_000) {
      const why = 'The difference between the request time and the current time is too large.';
      throw new Refusal(403, 'RequestTimeTooSkewed', why);
    }
    if (request.headers['x-amz-content-sha256'] !== sha256(body)) {
      const why = "The provided 'x-amz-content-sha256' header does not match what was computed.";
      throw new Refusal(400, 'XAmzContentSHA256Mismatch', why);
    }
    const mayDo = (action: S3Action) => user.actions?.includes(action) !== false;
    const needed: Readonly<Record<string, readonly S3Action[]>> = {
      get: ['s3:GetObject'],
      head: ['s3:GetObject'],
      // What is compared must be readable.
      put:
        request.headers['if-match'] === undefined
          ? ['s3:PutObject']
          : ['s3:PutObject', 's3:GetObject'],
      delete: ['s3:DeleteObject'],
    };
    if (!(needed[verb] ?? ['s3:ListBucket' as const]).every(mayDo)) throw accessDenied();
    // Who may not list is not told what is not there.
    const isThere = name === undefined || this.buckets.get(bucket)?.find(name) !== undefined;
    const isRead = verb === 'get' || verb === 'head';
    if (isRead && !isThere && !mayDo('s3:ListBucket')) throw accessDenied();
  }
}

function targetOf({ method = '' }: IncomingMessage, { pathname, searchParams }: URL): Target {
  const [, bucket = '', ...rest] = pathname.split('/');
  const name = rest.map(decodeURIComponent).join('/');
  if (name === '') {
    const verb =
      method === 'HEAD'
        ? 'head'
        : searchParams.has('versioning')
          ? 'versioning'
          : searchParams.get('list-type') === '2'
            ? 'list'
            : 'other';
    return { verb, bucket, name: undefined };
  }
  const verbs: Readonly<Record<string, string>> = {
    GET: 'get',
    PUT: 'put',
    HEAD: 'head',
    DELETE: 'delete',
  };
  return { verb: verbs[method] ?? 'other', bucket, name };
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
  return (
    '<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">' +
    `<Name>${bucket}</Name><KeyCount>${shown.length}</KeyCount><MaxKeys>${most}</MaxKeys>` +
    `<IsTruncated>${keys.length > most}</IsTruncated>${shown.join('')}</ListBucketResult>`
  );
}
