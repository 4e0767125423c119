/** Objects of one bucket. Each call is done in one step: nobody comes between condition and write. */
import { createHash } from 'node:crypto';
import { noSuchKey, preconditionFailed } from './refusal.ts';

export interface StoredObject {
  readonly bytes: Buffer;
  /** Quoted, as S3 tells it. */
  readonly etag: string;
  /** By the server's clock. */
  readonly writtenMs: number;
  readonly contentType: string;
  /** Of the checksum that came with it, by its header. */
  readonly checksums: Readonly<Record<string, string>>;
}

/** Where endpoints differ. */
export interface Dialect {
  /** Conditions that are taken for met. s3rver: both. */
  readonly ignores: readonly ('if-match' | 'if-none-match')[];
  /** Ceph RGW and DigitalOcean Spaces know an ETag only without its quotes. */
  readonly tags: 'either' | 'unquoted' | 'quoted';
  /**
   * The answer to `If-Match` on a missing key: 404 by AWS, 412 by Ceph RGW, 200 by MinIO of 2025.
   */
  readonly missing: 404 | 412 | 200;
}

export const awsDialect: Dialect = { ignores: [], tags: 'either', missing: 404 };
export const cephDialect: Dialect = { ignores: [], tags: 'unquoted', missing: 412 };

export interface Conditions {
  readonly ifMatch?: string | undefined;
  readonly ifNoneMatch?: string | undefined;
}

export class Bucket {
  readonly #objects = new Map<string, StoredObject>();

  get keys(): readonly string[] {
    return [...this.#objects.keys()].sort();
  }

  find(key: string): StoredObject | undefined {
    return this.#objects.get(key);
  }

  get(key: string): StoredObject {
    const found = this.find(key);
    if (found === undefined) throw noSuchKey();
    return found;
  }

  put(
    key: string,
    bytes: Buffer,
    rest: Pick<StoredObject, 'writtenMs' | 'contentType' | 'checksums'>,
    conditions: Conditions = {},
    dialect: Dialect = awsDialect,
  ): StoredObject {
    this.#require(key, conditions, dialect);
    const etag = `"${createHash('md5').update(bytes).digest('hex')}"`;
    const stored = { ...rest, bytes, etag };
    this.#objects.set(key, stored);
    return stored;
  }

  delete(key: string): void {
    this.#objects.delete(key);
  }

  #require(key: string, { ifMatch, ifNoneMatch }: Conditions, dialect: Dialect): void {
    const present = this.find(key);
    if (ifNoneMatch !== undefined && !dialect.ignores.includes('if-none-match')) {
      if (present !== undefined) throw preconditionFailed();
    }
    if (ifMatch === undefined || dialect.ignores.includes('if-match')) return;
    if (present === undefined) {
      if (dialect.missing === 200) return;
      throw dialect.missing === 404 ? noSuchKey() : preconditionFailed();
    }
    const bare = present.etag.replaceAll('"', '');
    const known = { either: [bare, present.etag], unquoted: [bare], quoted: [present.etag] };
    if (!known[dialect.tags].includes(ifMatch)) throw preconditionFailed();
  }
}
