/** `gs://` URLs: a bucket, a folder in it, and how it is reached where the defaults will not do. */
import type { GcsOptions } from 'incumbent/gcs';
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
import { choice, duration, wholeNumber, word } from '../url/values.ts';

/** The parts of a `gs:` URL. */
export interface GcsLocation {
  readonly bucket: string;
  /** The beginning of the names of objects: empty, or with a slash at its end. */
  readonly prefix: string;
  /** Of a stand-in, which is asked without credentials; undefined: Google's. */
  readonly endpoint: string | undefined;
  /** Undefined: where the client library finds one. */
  readonly project: string | undefined;
  /** The key file of a service account; undefined: the client library looks for credentials. */
  readonly keyFile: string | undefined;
  /** Handed on to the library. */
  readonly options: Pick<GcsOptions, 'age' | 'clockStep' | 'maxClockSkew' | 'maxWritesPerSecond'>;
  /** In its plain form. */
  readonly url: string;
  readonly origin: OpenStore['origin'];
}

const form = 'gs://bucket/folder';

const names: BucketNames = {
  allowed: /^[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]$/,
  letters: 'a to z, 0 to 9, "-", "_" and "."',
  instead: 'credentials come from where the client library looks for them, or by key-file=/PATH',
};

const table = {
  endpoint: { read: endpoint('http://localhost:4443', undefined) },
  project: { read: word },
  'key-file': { read: word },
  age: { read: choice('on', 'off') },
  'clock-step': { read: duration },
  'max-clock-skew': { read: duration },
  'writes-per-second': { read: wholeNumber(1, 1_000) },
};

export const gcsParameters: readonly string[] = Object.keys(table);

/** @throws CommandError that names the part that cannot be used */
export function parseGcsUrl(text: string, origin: '--store' | 'INCUMBENT_STORE'): GcsLocation {
  const refuse = refuser('Cloud Storage', origin, form);
  const { bucket, folder, query } = splitBucketUrl(text, names, refuse);
  const prefix = prefixOf(folder);
  const { values, shown } = readQuery(table, query, refuse);
  const [at, keyFile] = [values.endpoint?.[0], values['key-file']?.[0]];
  const [age, clockStep] = [values.age?.[0], values['clock-step']?.[0]];
  refuseUnusedStep(age, clockStep, refuse);
  if (at !== undefined && keyFile !== undefined) {
    refuse('has the parameters endpoint and key-file: a stand-in is asked without credentials');
  }
  return {
    bucket,
    prefix,
    endpoint: at,
    project: values.project?.[0],
    keyFile,
    options: {
      ...given('age', age),
      ...given('clockStep', clockStep),
      ...given('maxClockSkew', values['max-clock-skew']?.[0]),
      ...given('maxWritesPerSecond', values['writes-per-second']?.[0]),
    },
    url: showBucketUrl('gs', bucket, prefix, shown),
    origin,
  };
}
