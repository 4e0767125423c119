/** Objects of one bucket. Each call is done in one step: nobody comes between condition and write. */
import { createHash, randomInt } from 'node:crypto';
import { crc32cOf } from './crc32c.ts';
import { conditionNotMet, invalid, noSuchObject, Refusal } from './refusal.ts';

export interface AclEntry {
  readonly entity: string;
  readonly role: string;
}

export interface GcsObject {
  readonly name: string;
  readonly bytes: Buffer;
  readonly generation: string;
  readonly metageneration: number;
  readonly timeCreatedMs: number;
  readonly updatedMs: number;
  readonly contentType: string;
  readonly cacheControl: string | undefined;
  readonly acl: readonly AclEntry[];
}

export interface Conditions {
  readonly ifGenerationMatch?: string | undefined;
  readonly ifMetagenerationMatch?: string | undefined;
  /** Of a read: that very generation. */
  readonly generation?: string | undefined;
}

/** The metadata that come with the bytes, as JSON. */
export interface GivenMetadata {
  readonly contentType?: string;
  readonly cacheControl?: string;
  readonly crc32c?: string;
  readonly md5Hash?: string;
  readonly acl?: readonly AclEntry[];
}

export class GcsBucket {
  readonly name: string;
  versioning = false;
  /** Nothing can be replaced or deleted before it is so old. */
  retentionSeconds: number | undefined;
  uniformAccess = false;
  /** How long what was replaced is kept; Cloud Storage does so for 7 days unless it is told not to. */
  softDeleteSeconds = 0;
  readonly #objects = new Map<string, GcsObject>();
  readonly #generations = new Set<string>();

  constructor(name: string) {
    this.name = name;
  }

  get names(): readonly string[] {
    return [...this.#objects.keys()].sort();
  }

  find(name: string): GcsObject | undefined {
    return this.#objects.get(name);
  }

  get(name: string, conditions: Conditions = {}): GcsObject {
    const found = this.find(name);
    const { generation = found?.generation } = conditions;
    if (found === undefined || generation !== found.generation) {
      throw noSuchObject(this.name, name);
    }
    this.#require(name, conditions);
    return found;
  }

  put(
    name: string,
    bytes: Buffer,
    given: GivenMetadata,
    nowMs: number,
    conditions: Conditions = {},
  ): GcsObject {
    if (given.acl !== undefined && this.uniformAccess) {
      throw invalid(
        'Cannot insert legacy ACL for an object when uniform bucket-level access is enabled. Read ' +
          'more at https://cloud.google.com/storage/docs/uniform-bucket-level-access',
      );
    }
    checkSums(bytes, given);
    this.#require(name, conditions);
    this.#requireOldEnough(name, nowMs);
    const object: GcsObject = {
      name,
      bytes,
      generation: this.#newGeneration(),
      metageneration: 1,
      timeCreatedMs: nowMs,
      updatedMs: nowMs,
      contentType: given.contentType ?? 'application/octet-stream',
      cacheControl: given.cacheControl,
      acl: given.acl ?? [],
    };
    this.#objects.set(name, object);
    return object;
  }

  /** The metadata alone: the generation stays. */
  patch(name: string, given: GivenMetadata, nowMs: number, conditions: Conditions): GcsObject {
    this.#require(name, conditions);
    const present = this.get(name);
    const { contentType = present.contentType, cacheControl = present.cacheControl } = given;
    const changed: GcsObject = {
      ...present,
      contentType,
      cacheControl,
      acl: given.acl ?? present.acl,
      metageneration: present.metageneration + 1,
      updatedMs: nowMs,
    };
    this.#objects.set(name, changed);
    return changed;
  }

  delete(name: string, conditions: Conditions = {}): void {
    this.#require(name, conditions);
    this.get(name);
    this.#objects.delete(name);
  }

  #require(name: string, { ifGenerationMatch, ifMetagenerationMatch }: Conditions): void {
    const present = this.find(name);
    const generation = present?.generation ?? '0';
    if (ifGenerationMatch !== undefined && ifGenerationMatch !== generation) {
      throw conditionNotMet();
    }
    if (ifMetagenerationMatch === undefined) return;
    if (ifMetagenerationMatch !== String(present?.metageneration)) throw conditionNotMet();
  }

  #requireOldEnough(name: string, nowMs: number): void {
    const present = this.find(name);
    if (present === undefined || this.retentionSeconds === undefined) return;
    const untilMs = present.timeCreatedMs + this.retentionSeconds * 1_000;
    if (nowMs >= untilMs) return;
    throw new Refusal(
      403,
      'retentionPolicyNotMet',
      `Object '${this.name}/${name}' is subject to bucket's retention policy or object retention ` +
        `and cannot be deleted or overwritten until ${new Date(untilMs).toISOString()}`,
    );
  }

  /** Nobody has promised that generations rise. */
  #newGeneration(): string {
    for (;;) {
      const generation = String(1_700_000_000_000_000 + randomInt(2 ** 40));
      if (this.#generations.has(generation)) continue;
      this.#generations.add(generation);
      return generation;
    }
  }
}

export function md5Of(bytes: Buffer): string {
  return createHash('md5').update(bytes).digest('base64');
}

function checkSums(bytes: Buffer, { crc32c, md5Hash }: GivenMetadata): void {
  const found = { CRC32C: crc32cOf(bytes), MD5: md5Of(bytes) };
  for (const [kind, given] of [['CRC32C', crc32c] as const, ['MD5', md5Hash] as const]) {
    if (given === undefined || given === found[kind]) continue;
    throw invalid(`Provided ${kind} "${given}" doesn't match calculated ${kind} "${found[kind]}".`);
  }
}
