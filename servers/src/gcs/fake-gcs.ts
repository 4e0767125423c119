/**
 * A stand-in for Google Cloud Storage in this process. It serves objects by the JSON API, with
 * preconditions, checksums and access rules, as `@google-cloud/storage` and Go's client ask for
 * them. Go's client reads by the XML API, `GET /bucket/object`: that is here too. It tells time by
 * a clock of its own.
 */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { bytesOf, reset, strike } from '../http-stand-in.ts';
import type { LoggedObjectRequest } from '../object-stand-in.ts';
import { exchangeOf, ObjectStandIn } from '../object-stand-in.ts';
import type { Conditions, GcsObject, GivenMetadata } from './bucket.ts';
import { GcsBucket, md5Of } from './bucket.ts';
import { crc32cOf } from './crc32c.ts';
import { uploadIn } from './multipart.ts';
import { forbidden, invalid, noSuchBucket, Refusal } from './refusal.ts';

export interface FakeGcsOptions {
  /** Default `elections`. */
  readonly buckets?: readonly string[];
}

/** A request as it came, and how it was answered; 0: not at all. */
export interface LoggedGcsRequest extends LoggedObjectRequest {
  /** `read`, `metadata`, `write`, `start` (an upload), `patch`, `delete`, `acl`, `list`, `bucket`, … */
  readonly verb: string;
  readonly body: Buffer;
}

interface Target {
  readonly verb: string;
  readonly bucket: string;
  readonly name: string | undefined;
  /** By the XML API. */
  readonly isXml?: boolean;
}

interface Reply {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: Buffer | object;
}

/** Of each verb: what the account must be allowed. */
const permissions: Readonly<Record<string, string>> = {
  read: 'storage.objects.get',
  metadata: 'storage.objects.get',
  write: 'storage.objects.create',
  start: 'storage.objects.create',
  patch: 'storage.objects.update',
  delete: 'storage.objects.delete',
  acl: 'storage.objects.getIamPolicy',
  list: 'storage.objects.list',
  bucket: 'storage.buckets.get',
};

export class FakeGcs extends ObjectStandIn<GcsBucket, LoggedGcsRequest> {
  /** The permissions of the account; undefined: all. */
  allowed: Set<string> | undefined;
  /** It stands still, at this time and `clockAheadMs`. */
  clockStandsAtMs: number | undefined;
  /** Media without `Last-Modified`. */
  hidesLastModified = false;
  /** So many uploads come twice, as by somebody on the way who tries again: the second answer counts. */
  repeatedWrites = 0;
  /** So many times the bytes are damaged on their way out. */
  damagedReads = 0;
  readonly #uploads = new Map<string, { readonly url: URL; readonly metadata: GivenMetadata }>();

  private constructor({ buckets = ['elections'] }: FakeGcsOptions) {
    super();
    for (const name of buckets) this.buckets.set(name, new GcsBucket(name));
  }

  static async start(options: FakeGcsOptions = {}): Promise<FakeGcs> {
    const server = new FakeGcs(options);
    await server.listen();
    return server;
  }

  override get nowMs(): number {
    return (this.clockStandsAtMs ?? Date.now()) + this.clockAheadMs;
  }

  protected async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://localhost');
    const target = targetOf(request.method ?? 'GET', url);
    const { verb, bucket, name } = target;
    let body: Buffer = Buffer.alloc(0);
    response.on('close', () => {
      this.requests.push({
        ...{ verb, bucket, name },
        ...exchangeOf(request, response),
        body,
      });
    });
    let reply = (answer: Reply) => this.#reply(response, answer);
    try {
      body = await bytesOf(request);
      const action = this.faults.take({ verb, name, user: undefined });
      if (action?.kind === 'drop-reply') reply = () => reset(request.socket);
      if (action !== undefined && !(await strike(action, request, response))) return;
      this.#requireAllowed(target);
      if (target.verb === 'write' && this.repeatedWrites > 0) {
        this.repeatedWrites -= 1;
        this.#answer(target, request, url, body);
      }
      reply(this.#answer(target, request, url, body));
    } catch (error) {
      if (response.headersSent) return;
      const refusal =
        error instanceof Refusal
          ? error
          : new Refusal(500, 'backendError', (error as Error).message);
      reply({ status: refusal.status, ...explain(refusal, target) });
    }
  }

  #reply(response: ServerResponse, { status, headers = {}, body }: Reply): void {
    const bytes = Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body));
    response.sendDate = false;
    if (!this.hidesDate) response.setHeader('date', new Date(this.nowMs).toUTCString());
    response
      .writeHead(status, {
        server: 'stand-in',
        'content-type': 'application/json; charset=UTF-8',
        ...(status === 204 ? {} : { 'content-length': String(bytes.length) }),
        ...headers,
      })
      .end(status === 204 ? undefined : bytes);
  }

  #answer(
    { verb, bucket: bucketName, name = '' }: Target,
    request: IncomingMessage,
    url: URL,
    body: Buffer,
  ): Reply {
    const bucket = this.buckets.get(bucketName);
    if (bucket === undefined) throw noSuchBucket();
    const { searchParams } = url;
    const conditions = conditionsIn(searchParams, request);
    switch (verb) {
      case 'read':
        return this.#media(bucket.get(name, conditions), request.headers.range);
      case 'metadata':
        return { status: 200, body: resourceOf(bucket, bucket.get(name, conditions)) };
      case 'write':
        return this.#write(bucket, request, url, body);
      case 'start': {
        const id = randomUUID();
        this.#uploads.set(id, { url, metadata: parse(body) as GivenMetadata });
        const location = `${this.url}/upload/storage/v1/b/${bucketName}/o?uploadType=resumable&upload_id=${id}`;
        return { status: 200, headers: { location }, body: Buffer.alloc(0) };
      }
      case 'patch': {
        const changed = bucket.patch(name, parse(body) as GivenMetadata, this.nowMs, conditions);
        return { status: 200, body: resourceOf(bucket, changed) };
      }
      case 'delete':
        bucket.delete(name, conditions);
        return { status: 204, body: Buffer.alloc(0) };
      case 'acl': {
        const { acl } = bucket.get(name);
        if (request.method === 'GET') return { status: 200, body: { items: acl } };
        const rule = parse(body) as { entity: string; role: string };
        bucket.patch(name, { acl: [...acl, rule] }, this.nowMs, {});
        return { status: 200, body: rule };
      }
      case 'list': {
        const prefix = searchParams.get('prefix') ?? '';
        const names = bucket.names
          .filter((each) => each.startsWith(prefix))
          .sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
        const after = searchParams.get('pageToken');
        const begin =
          after === null ? 0 : names.indexOf(Buffer.from(after, 'base64').toString()) + 1;
        const most = Math.min(Number(searchParams.get('maxResults') ?? 1_000), 1_000);
        const shown = names.slice(begin, begin + most);
        const isLast = begin + most >= names.length;
        const nextPageToken = Buffer.from(shown.at(-1) ?? '').toString('base64');
        const items = shown.map((each) => resourceOf(bucket, bucket.get(each)));
        const next = isLast ? {} : { nextPageToken };
        return { status: 200, body: { kind: 'storage#objects', items, ...next } };
      }
      case 'bucket':
        return { status: 200, body: bucketResource(bucket) };
      case 'test-permissions': {
        const asked = searchParams.getAll('permissions');
        const granted = asked.filter((each) => this.allowed?.has(each) !== false);
        return { status: 200, body: { permissions: granted } };
      }
      default:
        throw new Refusal(404, 'notFound', 'Not Found');
    }
  }

  #write(bucket: GcsBucket, request: IncomingMessage, url: URL, body: Buffer): Reply {
    const begun = this.#uploads.get(url.searchParams.get('upload_id') ?? '');
    const upload =
      begun === undefined
        ? uploadIn(request.headers['content-type'] ?? '', body)
        : { metadata: begun.metadata, bytes: body };
    const { searchParams } = begun?.url ?? url;
    const given = (upload.metadata ?? {}) as GivenMetadata & { readonly name?: string };
    const name = searchParams.get('name') ?? given.name ?? '';
    if (name === '') throw invalid('Required object name');
    if (bucket.find(name) !== undefined) this.#require('storage.objects.delete');
    const { nowMs } = this;
    const conditions = conditionsIn(searchParams, request);
    const written = bucket.put(name, upload.bytes, given, nowMs, conditions);
    return { status: 200, body: resourceOf(bucket, written) };
  }

  #media(object: GcsObject, range: string | undefined): Reply {
    const [start, end] = rangeIn(range, object.bytes.length);
    const bytes = Buffer.from(object.bytes.subarray(start, end));
    const isPart = bytes.length < object.bytes.length;
    if (this.damagedReads > 0 && bytes.length > 0) {
      this.damagedReads -= 1;
      bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] as number) ^ 1;
    }
    return {
      status: isPart ? 206 : 200,
      headers: {
        'content-type': object.contentType,
        ...(isPart ? { 'content-range': `bytes ${start}-${end - 1}/${object.bytes.length}` } : {}),
        'accept-ranges': 'bytes',
        'cache-control': object.cacheControl ?? 'private, max-age=0',
        'x-goog-generation': object.generation,
        'x-goog-metageneration': String(object.metageneration),
        'x-goog-hash': `crc32c=${crc32cOf(object.bytes)},md5=${md5Of(object.bytes)}`,
        'x-goog-stored-content-encoding': 'identity',
        'x-goog-stored-content-length': String(object.bytes.length),
        ...(this.hidesLastModified
          ? {}
          : { 'last-modified': new Date(object.updatedMs).toUTCString() }),
      },
      body: bytes,
    };
  }

  #requireAllowed({ verb }: Target): void {
    const permission = permissions[verb];
    if (permission !== undefined) this.#require(permission);
  }

  #require(permission: string): void {
    if (this.allowed?.has(permission) === false) throw forbidden(permission);
  }
}

function targetOf(method: string, { pathname, searchParams }: URL): Target {
  const upload = /^\/upload\/storage\/v1\/b\/([^/]+)\/o$/.exec(pathname);
  if (upload !== null) {
    const begins = searchParams.get('uploadType') === 'resumable' && method === 'POST';
    return {
      verb: begins ? 'start' : 'write',
      bucket: upload[1] as string,
      name: searchParams.get('name') ?? undefined,
    };
  }
  const path = /^\/storage\/v1\/b\/([^/]+)(?:\/(o|iam\/testPermissions)(?:\/([^/]+)(\/acl)?)?)?$/;
  const match = path.exec(pathname);
  if (match === null) return xmlTargetOf(method, pathname);
  const [, bucket = '', what, encoded, acl] = match;
  const name = encoded === undefined ? undefined : decodeURIComponent(encoded);
  if (what === undefined) return { verb: 'bucket', bucket, name };
  if (what !== 'o') return { verb: 'test-permissions', bucket, name };
  if (name === undefined) return { verb: method === 'GET' ? 'list' : 'other', bucket, name };
  if (acl !== undefined) return { verb: 'acl', bucket, name };
  const verbs: Readonly<Record<string, string>> = {
    GET: searchParams.get('alt') === 'media' ? 'read' : 'metadata',
    PATCH: 'patch',
    DELETE: 'delete',
  };
  return { verb: verbs[method] ?? 'other', bucket, name };
}

/** Of the XML API only what Go's client uses: `GET` and `HEAD` of an object. */
function xmlTargetOf(method: string, pathname: string): Target {
  const [, bucket = '', encoded] = /^\/([a-z0-9][^/]*)\/(.+)$/.exec(pathname) ?? [];
  const isReserved = ['storage', 'upload', 'batch', 'download'].includes(bucket);
  if (encoded === undefined || isReserved || !['GET', 'HEAD'].includes(method)) {
    return { verb: 'other', bucket: '', name: undefined };
  }
  return { verb: 'read', bucket, name: decodeURIComponent(encoded), isXml: true };
}

/** Those of the JSON API stand in the query, those of the XML API in headers. */
function conditionsIn(query: URLSearchParams, { headers }: IncomingMessage): Conditions {
  const header = (name: string) => headers[`x-goog-if-${name}-match`]?.toString();
  return {
    ifGenerationMatch: query.get('ifGenerationMatch') ?? header('generation'),
    ifMetagenerationMatch: query.get('ifMetagenerationMatch') ?? header('metageneration'),
    generation: query.get('generation') ?? undefined,
  };
}

/** A client that asks for bytes gets plain words, and by the XML API it gets XML. */
function explain(
  refusal: Refusal,
  { verb, isXml = false }: Target,
): Pick<Reply, 'headers' | 'body'> {
  if (isXml) {
    const headers = { 'content-type': 'application/xml; charset=UTF-8' };
    return { headers, body: Buffer.from(refusal.toXml()) };
  }
  if (verb !== 'read') return { body: refusal.toJSON() };
  const headers = { 'content-type': 'text/html; charset=UTF-8' };
  return { headers, body: Buffer.from(refusal.message) };
}

/** The bytes that a `Range` asks for, from the first to behind the last; all without one. */
function rangeIn(range: string | undefined, size: number): readonly [start: number, end: number] {
  const match = /^bytes=(\d*)-(\d*)$/.exec(range ?? '');
  const [, first = '', last = ''] = match ?? [];
  if (first === '' && last === '') return [0, size];
  const start = first === '' ? Math.max(size - Number(last), 0) : Number(first);
  const end = first === '' || last === '' ? size : Math.min(Number(last) + 1, size);
  if (start >= end) {
    throw new Refusal(
      416,
      'requestedRangeNotSatisfiable',
      'The requested range cannot be satisfied.',
    );
  }
  return [start, end];
}

function resourceOf(bucket: GcsBucket, object: GcsObject): object {
  const { name, bytes, generation, metageneration, contentType, cacheControl } = object;
  return {
    kind: 'storage#object',
    id: `${bucket.name}/${name}/${generation}`,
    name,
    bucket: bucket.name,
    generation,
    metageneration: String(metageneration),
    contentType,
    ...(cacheControl === undefined ? {} : { cacheControl }),
    size: String(bytes.length),
    md5Hash: md5Of(bytes),
    crc32c: crc32cOf(bytes),
    timeCreated: new Date(object.timeCreatedMs).toISOString(),
    updated: new Date(object.updatedMs).toISOString(),
  };
}

function bucketResource(bucket: GcsBucket): object {
  const { name, versioning, retentionSeconds, uniformAccess, softDeleteSeconds } = bucket;
  return {
    kind: 'storage#bucket',
    id: name,
    name,
    versioning: { enabled: versioning },
    ...(retentionSeconds === undefined
      ? {}
      : { retentionPolicy: { retentionPeriod: String(retentionSeconds) } }),
    softDeletePolicy: { retentionDurationSeconds: String(softDeleteSeconds) },
    iamConfiguration: { uniformBucketLevelAccess: { enabled: uniformAccess } },
  };
}

function parse(body: Buffer): unknown {
  return body.length === 0 ? {} : JSON.parse(body.toString());
}
