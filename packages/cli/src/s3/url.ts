/** `s3://` URLs: a bucket, a folder in it, and which endpoint where it is not AWS. */
import type { S3Options } from 'incumbent/s3';
import type { OpenStore } from '../context.ts';
import type { BucketNames } from '../url/bucket.ts';
import {
  endpoint,
  prefixOf,
  refuseUnusedStep,
  showBucketUrl,
  splitBucketUrl,
} from '../url/bucket.ts';
import { refuser } from '../url/parts.ts';
import { given, readQuery } from '../url/query.ts';
import { choice, duration, flag, quote, word } from '../url/values.ts';

/** The parts of an `s3:` URL. */
export interface S3Location {
  readonly bucket: string;
  /** The beginning of the names of objects: empty, or with a slash at its end. */
  readonly prefix: string;
  /** Undefined: AWS. */
  readonly endpoint: string | undefined;
  /** Undefined: where the SDK finds one. */
  readonly region: string | undefined;
  /** Of the shared configuration of AWS. */
  readonly profile: string | undefined;
  /** The bucket in the path, not in the host name. */
  readonly pathStyle: boolean;
  /** Checksums only where S3 requires them, for endpoints that know none. */
  readonly fewChecksums: boolean;
  /** PEM file of the authorities to trust. */
  readonly tlsCa: string | undefined;
  /** Handed on to the library. */
  readonly options: Pick<S3Options, 'etagQuotes' | 'age' | 'clockStep'>;
  /** In its plain form. */
  readonly url: string;
  readonly origin: OpenStore['origin'];
}

const form = 's3://bucket/folder or s3://bucket/folder?endpoint=https://host:9000&region=NAME';

const names: BucketNames = {
  allowed: /^[A-Za-z0-9][A-Za-z0-9._-]{1,254}$/,
  letters: 'a to z, 0 to 9, "-" and "."',
  instead:
    'credentials come from where the AWS SDK looks for them (environment, profile=NAME, role), a host ' +
    'is given as endpoint=https://host:port',
};

const table = {
  endpoint: {
    read: endpoint('https://host:9000', 'credentials come from where the AWS SDK looks'),
  },
  region: { read: word },
  profile: { read: word },
  'path-style': { read: flag },
  checksums: { read: choice('supported', 'required') },
  'tls-ca': { read: word },
  'etag-quotes': { read: choice('auto', 'quoted', 'unquoted') },
  age: { read: choice('on', 'off') },
  'clock-step': { read: duration },
};

export const s3Parameters: readonly string[] = Object.keys(table);

/** @throws CommandError that names the part that cannot be used */
export function parseS3Url(text: string, origin: '--store' | 'INCUMBENT_STORE'): S3Location {
  const refuse = refuser('S3', origin, form);
  const { bucket, folder, query } = splitBucketUrl(text, names, refuse);
  if (folder.split('/').some((part) => part === '.' || part === '..')) {
    refuse(
      `has ${quote(folder)} for a folder: "." and ".." are names like any other in S3, and refused`,
    );
  }
  const prefix = prefixOf(folder);
  const { values, shown } = readQuery(table, query, refuse);
  const [at, age, clockStep] = [values.endpoint?.[0], values.age?.[0], values['clock-step']?.[0]];
  refuseUnusedStep(age, clockStep, refuse);
  const tlsCa = values['tls-ca']?.[0];
  if (tlsCa !== undefined && at?.startsWith('http:') === true) {
    refuse('has the parameter tls-ca, which is for TLS: write endpoint=https://…');
  }
  return {
    bucket,
    prefix,
    endpoint: at,
    region: values.region?.[0],
    profile: values.profile?.[0],
    pathStyle: values['path-style']?.[0] ?? at !== undefined,
    fewChecksums: values.checksums?.[0] === 'required',
    tlsCa,
    options: {
      ...given('etagQuotes', values['etag-quotes']?.[0]),
      ...given('age', age),
      ...given('clockStep', clockStep),
    },
    url: showBucketUrl('s3', bucket, prefix, shown),
    origin,
  };
}
