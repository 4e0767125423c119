import { describeValue } from '../../base/candidate.ts';
import { checkNames } from '../../base/check-names.ts';
import type { Duration } from '../../base/duration.ts';
import { parseDuration } from '../../base/duration.ts';
import { InvalidOptionError } from '../../base/errors.ts';
import type { S3ClientLike, S3Commands } from './client.ts';
import type { TagForm } from './etag.ts';

/** The options of `s3`. */
export interface S3Options {
  /** The name of the bucket, or the ARN of an access point. */
  readonly bucket: string;
  /**
   * `{ GetObjectCommand, PutObjectCommand }` of the package that the client is from. With
   * `ListObjectsV2Command` too, `backend.elections()` lists the elections.
   */
  readonly commands: S3Commands;
  /** Prefix for the names of our objects, such as `elections/`. Default: none. */
  readonly prefix?: string;
  /** The name of the object that holds an election. Default: `prefix` and the election's name. */
  readonly objectName?: (election: string) => string;
  /**
   * Whether ETags in conditions are quoted. Default `auto`: the proof of the endpoint finds out.
   * Without a proof, `auto` is `quoted`.
   */
  readonly etagQuotes?: 'auto' | TagForm;
  /**
   * Proves once, before the first write, that the endpoint honours conditions. It uses the object
   * `<prefix>.incumbent-probe`, which stays there. Default true. An endpoint that ignores
   * conditions elects two leaders. So say false only where that was proved in another way, as by
   * `incumbent doctor`.
   */
  readonly probe?: boolean;
  /**
   * `on` (default): a record that is old by the endpoint's own clock is known to be old at the
   * first look. `off`: every candidate finds out by itself, by waiting one lease.
   */
  readonly age?: 'on' | 'off';
  /**
   * The most by which the endpoint's clock may be set forward during a lease, and by which the
   * clocks of its machines may differ. Default 2 s.
   */
  readonly clockStep?: Duration;
}

/** Names a term. S3 does not check tokens, so compare `token` where effects arrive. */
export interface S3Guard {
  /** The token of the term. */
  readonly token: bigint;
  readonly bucket: string;
  /** The name of the election's object. */
  readonly key: string;
}

export interface CheckedOptions {
  readonly bucket: string;
  readonly commands: S3Commands;
  /** Undefined: `objectName` names the objects. */
  readonly prefix: string | undefined;
  readonly probeKey: string;
  readonly proves: boolean;
  /** In the order in which they are tried. */
  readonly tagForms: readonly [TagForm, ...TagForm[]];
  readonly clockStepMs: number | undefined;
  keyOf(election: string): string;
}

const known: Readonly<Record<keyof S3Options, true>> = {
  bucket: true,
  commands: true,
  prefix: true,
  objectName: true,
  etagQuotes: true,
  probe: true,
  age: true,
  clockStep: true,
};

const mostKeyBytes = 1_024;

/** @throws InvalidOptionError */
export function checkClient(client: S3ClientLike): void {
  if (typeof (client as Partial<S3ClientLike> | null | undefined)?.send === 'function') return;
  throw new InvalidOptionError(
    `s3() takes an S3Client of @aws-sdk/client-s3, not ${describeValue(client)}`,
  );
}

/** @throws InvalidOptionError */
export function checkOptions(options: S3Options): CheckedOptions {
  checkNames('s3()', options, known, '{ bucket, commands }');
  const { bucket, commands, prefix = '', objectName, age = 'on', clockStep } = options;
  const { etagQuotes = 'auto', probe = true } = options;
  if (typeof bucket !== 'string' || bucket === '') {
    throw new InvalidOptionError(`bucket must be the name of one, not ${describeValue(bucket)}`);
  }
  // The name of an access point has both in it.
  if (/[/:]/.test(bucket) && !bucket.startsWith('arn:')) {
    throw new InvalidOptionError(
      `bucket ${describeValue(bucket)} is no name of a bucket: leave out "s3://", and give the rest of ` +
        'a path as prefix',
    );
  }
  checkCommands(commands);
  if (typeof prefix !== 'string') {
    throw new InvalidOptionError(`prefix must be a string, not ${describeValue(prefix)}`);
  }
  if (objectName !== undefined && typeof objectName !== 'function') {
    throw new InvalidOptionError(
      `objectName must be a function that names the object of an election, not ${describeValue(objectName)}`,
    );
  }
  if (etagQuotes !== 'auto' && etagQuotes !== 'quoted' && etagQuotes !== 'unquoted') {
    throw new InvalidOptionError(
      `etagQuotes must be "auto", "quoted" or "unquoted", not ${describeValue(etagQuotes)}`,
    );
  }
  if (typeof probe !== 'boolean') {
    throw new InvalidOptionError(`probe must be true or false, not ${describeValue(probe)}`);
  }
  if (age !== 'on' && age !== 'off') {
    throw new InvalidOptionError(`age must be "on" or "off", not ${describeValue(age)}`);
  }
  if (age === 'off' && clockStep !== undefined) {
    throw new InvalidOptionError('clockStep means nothing with age "off": leave one of them out');
  }
  const probeKey = checkKey(`${prefix}.incumbent-probe`, `prefix ${describeValue(prefix)}`);
  return {
    bucket,
    commands,
    prefix: objectName === undefined ? prefix : undefined,
    probeKey,
    proves: probe,
    tagForms: etagQuotes === 'auto' ? ['quoted', 'unquoted'] : [etagQuotes],
    clockStepMs: age === 'off' ? undefined : parseDuration('clockStep', clockStep ?? 2_000),
    keyOf(election) {
      const what = `the election ${describeValue(election)}`;
      const named: unknown = objectName === undefined ? prefix + election : objectName(election);
      const key = checkKey(named, objectName === undefined ? what : `objectName of ${what}`);
      if (key !== probeKey) return key;
      throw new InvalidOptionError(
        `${what} would be the object "${key}", on which the endpoint is proved: give it another name`,
      );
    },
  };
}

function checkCommands(commands: S3Commands): void {
  for (const name of ['GetObjectCommand', 'PutObjectCommand'] as const) {
    if (typeof (commands as Partial<S3Commands> | undefined)?.[name] === 'function') continue;
    throw new InvalidOptionError(
      `commands has no ${name}: give s3() what the client's own package has, ` +
        'commands: { GetObjectCommand, PutObjectCommand }',
    );
  }
}

/** @param whence the source of the key, for the error */
function checkKey(key: unknown, whence: string): string {
  const refuse = (why: string): never => {
    throw new InvalidOptionError(
      `${whence} makes ${describeValue(key)}, which cannot be the name of an object: ${why}`,
    );
  };
  if (typeof key !== 'string' || key === '') return refuse('it is a string that is not empty');
  const bytes = Buffer.byteLength(key);
  if (bytes > mostKeyBytes)
    return refuse(`it has ${bytes} bytes, at most ${mostKeyBytes} are taken`);
  // Clients and proxies take them for paths.
  if (key.split('/').some((part) => part === '.' || part === '..')) {
    return refuse('"." and ".." between slashes mean another object to some endpoints');
  }
  return key;
}
