import { describeValue } from '../../base/candidate.ts';
import { checkNames } from '../../base/check-names.ts';
import type { Duration } from '../../base/duration.ts';
import { formatDuration, parseDuration } from '../../base/duration.ts';
import { InvalidOptionError } from '../../base/errors.ts';

/** One rule of access control for an object. */
export interface AclRule {
  /** As Cloud Storage names them: `user-a@example.com`, `group-…`, `allAuthenticatedUsers`, … */
  readonly entity: string;
  readonly role: 'OWNER' | 'READER';
}

/** The options of `gcs`. */
export interface GcsOptions {
  /** The bucket's name, without `gs://`. */
  readonly bucket: string;
  /** Prefix for the names of objects. Default ''. */
  readonly prefix?: string;
  /** The name of the object that holds an election. Default: `prefix` and the election's name. */
  readonly objectName?: (election: string) => string;
  /**
   * Others that may read the elections, as entities of access control. They get rules with
   * the role READER.
   */
  readonly readers?: readonly string[];
  /**
   * Access rules that are set on every version of an object. The account that writes stays its
   * owner. Default: those of the bucket.
   */
  readonly acl?: readonly AclRule[];
  /**
   * How far the clock of a Go program on vimeo/leaderelection may be off the store's clock. Beyond
   * that, a leader of theirs and one of ours may lead at the same time. Longer than 0, default 5 s.
   */
  readonly maxClockSkew?: Duration;
  /**
   * How many writes of one object the store takes in a second. Default 1, which is what Cloud
   * Storage takes. Leases are then at least 5 s, and confirmations at least 1 s apart.
   */
  readonly maxWritesPerSecond?: number;
  /**
   * `on` (default): a candidate that starts beside a dead leader counts the lease from when
   * the record was written, by the store's own clock. `off`: it counts from when it has first
   * seen the record.
   */
  readonly age?: 'on' | 'off';
  /**
   * How far the store's clock may be set forward within a lease. It is taken off every age.
   * Default 2 s.
   */
  readonly clockStep?: Duration;
}

export interface CheckedOptions {
  readonly bucket: string;
  readonly acl: readonly AclRule[];
  readonly maxClockSkewMs: number;
  readonly maxWritesPerSecond: number;
  /** Undefined: ages are not told. */
  readonly clockStepMs: number | undefined;
}

/** Names a term. Cloud Storage does not check tokens, so compare `token` where effects arrive. */
export interface GcsGuard {
  /** The token of the term. */
  readonly token: bigint;
  readonly bucket: string;
  readonly objectName: string;
}

const known: Readonly<Record<keyof GcsOptions, true>> = {
  bucket: true,
  prefix: true,
  objectName: true,
  readers: true,
  acl: true,
  maxClockSkew: true,
  maxWritesPerSecond: true,
  age: true,
  clockStep: true,
};

export const defaultClockStepMs = 2_000;
/** Beyond that `minLease` is as short as anywhere. */
const mostWritesPerSecond = 1_000;

/** @throws InvalidOptionError */
export function checkOptions(options: GcsOptions): CheckedOptions {
  checkNames('gcs()', options, known, '{ bucket: "elections" }');
  const { bucket, prefix = '', objectName, age = 'on', clockStep } = options;
  checkBucket(bucket);
  if (typeof prefix !== 'string') {
    throw new InvalidOptionError(`prefix must be a string, not ${describeValue(prefix)}`);
  }
  if (objectName !== undefined && typeof objectName !== 'function') {
    throw new InvalidOptionError(
      `objectName must be a function that names the object of an election, not ${describeValue(objectName)}`,
    );
  }
  if (objectName !== undefined && prefix !== '') {
    throw new InvalidOptionError('objectName names the whole object: leave prefix out');
  }
  if (age !== 'on' && age !== 'off') {
    throw new InvalidOptionError(`age must be "on" or "off", not ${describeValue(age)}`);
  }
  if (age === 'off' && clockStep !== undefined) {
    throw new InvalidOptionError(
      'clockStep says how far ages are believed, and age is "off": leave one of them out',
    );
  }
  return {
    bucket,
    acl: checkAcl(options),
    maxClockSkewMs: checkSkew(options.maxClockSkew ?? 5_000),
    maxWritesPerSecond: checkRate(options.maxWritesPerSecond ?? 1),
    clockStepMs:
      age === 'off' ? undefined : parseDuration('clockStep', clockStep ?? defaultClockStepMs),
  };
}

/** @throws InvalidOptionError for a name that no bucket can have */
export function checkBucket(value: unknown): string {
  if (typeof value === 'string' && /^[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]$/.test(value)) return value;
  throw new InvalidOptionError(
    `bucket ${describeValue(value)} is no name of a bucket: 3 to 222 lower case letters, digits, ` +
      '"-", "_" and ".", which begin and end with a letter or digit, without "gs://"',
  );
}

/** @throws InvalidOptionError for a name that no object can have */
export function objectNameOf(
  election: string,
  { prefix = '', objectName }: Pick<GcsOptions, 'prefix' | 'objectName'>,
): string {
  const name: unknown = objectName === undefined ? prefix + election : objectName(election);
  const made =
    objectName === undefined ? `prefix and the election "${election}" make` : 'objectName made';
  if (typeof name !== 'string' || name === '') {
    throw new InvalidOptionError(
      `${made} ${describeValue(name)}, which is no name of an object: it must be a string that is ` +
        'not empty',
    );
  }
  const bytes = Buffer.byteLength(name);
  const isAllowed =
    bytes <= 1_024 &&
    !/[\r\n]|\p{Surrogate}/u.test(name) &&
    name !== '.' &&
    name !== '..' &&
    !name.startsWith('.well-known/acme-challenge/');
  if (isAllowed) return name;
  throw new InvalidOptionError(
    `${made} ${describeValue(name)} (${bytes} bytes), which no object may be called: at most 1024 ` +
      'bytes, no line breaks, not "." or "..", and not below ".well-known/acme-challenge/"',
  );
}

function checkAcl({ readers = [], acl = [] }: GcsOptions): readonly AclRule[] {
  if (!Array.isArray(readers)) {
    throw new InvalidOptionError(
      `readers must be a list of entities, not ${describeValue(readers)}`,
    );
  }
  if (!Array.isArray(acl)) {
    throw new InvalidOptionError(`acl must be a list of rules, not ${describeValue(acl)}`);
  }
  const rules = [...acl, ...readers.map((entity) => ({ entity, role: 'READER' as const }))];
  return rules.map((rule: AclRule) => {
    const { entity, role } = rule ?? {};
    if (typeof entity !== 'string' || entity === '') {
      throw new InvalidOptionError(
        `an entity of access control is a string such as "user-a@example.com" or ` +
          `"allAuthenticatedUsers", not ${describeValue(entity)}`,
      );
    }
    if (role !== 'OWNER' && role !== 'READER') {
      throw new InvalidOptionError(
        `the role of "${entity}" must be "OWNER" or "READER", not ${describeValue(role)}`,
      );
    }
    return { entity, role };
  });
}

function checkSkew(value: unknown): number {
  const ms = parseDuration('maxClockSkew', value);
  if (ms > 0) return ms;
  throw new InvalidOptionError(
    `maxClockSkew must be longer than 0, not ${formatDuration(ms)}: no two clocks are the same`,
  );
}

function checkRate(value: unknown): number {
  if (typeof value === 'number' && value > 0 && value <= mostWritesPerSecond) return value;
  throw new InvalidOptionError(
    `maxWritesPerSecond must be a number above 0 and up to ${mostWritesPerSecond}, not ${describeValue(value)}`,
  );
}
