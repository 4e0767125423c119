/** `gs://` URLs: a bucket, a folder in it, and how it is reached where the defaults will not do. */
import type { GcsOptions } from 'incumbent/gcs';
import type { OpenStore } from '../context.ts';
import { refuser } from '../url/parts.ts';
import { given, readQuery } from '../url/query.ts';
import type { Refuse } from '../url/values.ts';
import { choice, duration, quote, wholeNumber, word } from '../url/values.ts';

/** What a `gs:` URL says. */
export interface GcsLocation {
  readonly bucket: string;
  /** What the names of objects begin with: empty, or with a slash at its end. */
  readonly prefix: string;
  /** Of a stand-in, which is asked without credentials; undefined: Google's. */
  readonly endpoint: string | undefined;
  /** Undefined: where the client library finds one. */
  readonly project: string | undefined;
  /** Of a service account; undefined: wherever the client library looks. */
  readonly keyFile: string | undefined;
  /** Handed on to the library. */
  readonly options: Pick<GcsOptions, 'age' | 'clockStep' | 'maxClockSkew' | 'maxWritesPerSecond'>;
  /** In its plain form. */
  readonly url: string;
  readonly origin: OpenStore['origin'];
}

const form = 'gs://bucket/folder';

const table = {
  endpoint: { read: endpoint },
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
  const [, rest] = /^gs:\/\/(.*)$/is.exec(text) ?? [];
  if (rest === undefined) return refuse('has no "//" behind its scheme');
  if (rest.includes('#')) refuse('has a "#": in a name or a value write %23');
  const mark = rest.indexOf('?');
  const place = mark === -1 ? rest : rest.slice(0, mark);
  const slash = place.indexOf('/');
  const bucket = slash === -1 ? place : place.slice(0, slash);
  // Of `user:secret@bucket` nothing is shown.
  if (/[@:]/.test(bucket)) {
    refuse(
      'has a user or a port: credentials come from where the client library looks for them, or by ' +
        'key-file=/PATH',
    );
  }
  if (bucket === '') refuse('has no bucket');
  if (!/^[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]$/.test(bucket)) {
    refuse(`has ${quote(bucket)} for a bucket, which has a to z, 0 to 9, "-", "_" and "."`);
  }
  const prefix = prefixOf(slash === -1 ? '' : place.slice(slash + 1), refuse);
  const { values, shown } = readQuery(table, mark === -1 ? '' : rest.slice(mark + 1), refuse);
  const [at, keyFile] = [values.endpoint?.[0], values['key-file']?.[0]];
  const [age, clockStep] = [values.age?.[0], values['clock-step']?.[0]];
  if (age === 'off' && clockStep !== undefined) {
    refuse('has the parameter clock-step, which means nothing with age=off');
  }
  if (at !== undefined && keyFile !== undefined) {
    refuse('has the parameters endpoint and key-file: a stand-in is asked without credentials');
  }
  const path = prefix.split('/').map(encodeURIComponent).join('/');
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
    url: `gs://${bucket}/${path}${shown === '' ? '' : `?${shown}`}`,
    origin,
  };
}

/** A folder, whether or not it was written with its last slash. */
function prefixOf(path: string, refuse: Refuse): string {
  let decoded = '';
  try {
    decoded = decodeURIComponent(path);
  } catch {
    refuse('has a "%" without two hex digits in its folder; write %25 for "%"');
  }
  const folder = decoded.replace(/\/$/, '');
  return folder === '' ? '' : `${folder}/`;
}

function endpoint(text: string, refuse: Refuse): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    return refuse(
      `is a URL such as http://localhost:4443, not ${quote(text.replace(/^.*@/s, ''))}`,
    );
  }
  if (url.username !== '' || url.password !== '') return refuse('has a user or a password in it');
  if (url.search !== '' || url.hash !== '') return refuse('has a "?" or "#" in it');
  return url.href.replace(/\/$/, '');
}
