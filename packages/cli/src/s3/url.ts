/** `s3://` URLs: a bucket, a folder in it, and which endpoint where it is not AWS. */
import type { S3Options } from 'incumbent/s3';
import type { OpenStore } from '../context.ts';
import { refuser } from '../url/parts.ts';
import { given, readQuery } from '../url/query.ts';
import { choice, duration, flag, quote, word } from '../url/values.ts';

/** What an `s3:` URL says. */
export interface S3Location {
  readonly bucket: string;
  /** What the names of objects begin with: empty, or with a slash at its end. */
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
  /** PEM file: whom to trust. */
  readonly tlsCa: string | undefined;
  /** Handed on to the library. */
  readonly options: Pick<S3Options, 'etagQuotes' | 'age' | 'clockStep'>;
  /** In its plain form. */
  readonly url: string;
  readonly origin: OpenStore['origin'];
}

const form = 's3://bucket/folder or s3://bucket/folder?endpoint=https://host:9000&region=NAME';

const table = {
  endpoint: { read: endpoint },
  region: { read: word },
  profile: { read: word },
  'path-style': { read: flag },
  checksums: { read: choice('supported', 'required') },
  'tls-ca': { read: word },
  'etag-quotes': { read: choice('auto', 'quoted', 'unquoted') },
  age: { read: choice('server', 'off') },
  'clock-step': { read: duration },
};

export const s3Parameters: readonly string[] = Object.keys(table);

/** @throws CommandError that names the part that cannot be used */
export function parseS3Url(text: string, origin: '--store' | 'INCUMBENT_STORE'): S3Location {
  const refuse = refuser('S3', origin, form);
  const [, rest] = /^s3:\/\/(.*)$/is.exec(text) ?? [];
  if (rest === undefined) return refuse('has no "//" behind its scheme');
  if (rest.includes('#')) refuse('has a "#": in a name or a value write %23');
  const mark = rest.indexOf('?');
  const place = mark === -1 ? rest : rest.slice(0, mark);
  const slash = place.indexOf('/');
  const bucket = slash === -1 ? place : place.slice(0, slash);
  // Of `user:secret@bucket` nothing is shown.
  if (/[@:]/.test(bucket)) {
    refuse(
      'has a user or a port: credentials come from where the AWS SDK looks for them (environment, ' +
        'profile=NAME, role), a host is given as endpoint=https://host:port',
    );
  }
  if (bucket === '') refuse('has no bucket');
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{1,254}$/.test(bucket)) {
    refuse(`has ${quote(bucket)} for a bucket, which has a to z, 0 to 9, "-" and "."`);
  }
  const prefix = prefixOf(slash === -1 ? '' : place.slice(slash + 1), refuse);
  const { values, shown } = readQuery(table, mark === -1 ? '' : rest.slice(mark + 1), refuse);
  const [at, age, clockStep] = [values.endpoint?.[0], values.age?.[0], values['clock-step']?.[0]];
  if (age === 'off' && clockStep !== undefined) {
    refuse('has the parameter clock-step, which means nothing with age=off');
  }
  const tlsCa = values['tls-ca']?.[0];
  if (tlsCa !== undefined && at?.startsWith('http:') === true) {
    refuse('has the parameter tls-ca, which is for TLS: write endpoint=https://…');
  }
  const path = prefix.split('/').map(encodeURIComponent).join('/');
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
    url: `s3://${bucket}/${path}${shown === '' ? '' : `?${shown}`}`,
    origin,
  };
}

/** A folder, whether or not it was written with its last slash. */
function prefixOf(path: string, refuse: (why: string) => never): string {
  let decoded = '';
  try {
    decoded = decodeURIComponent(path);
  } catch {
    refuse('has a "%" without two hex digits in its folder; write %25 for "%"');
  }
  const folder = decoded.replace(/\/$/, '');
  if (folder.split('/').some((part) => part === '.' || part === '..')) {
    refuse(
      `has ${quote(folder)} for a folder: "." and ".." are names like any other in S3, and refused`,
    );
  }
  return folder === '' ? '' : `${folder}/`;
}

function endpoint(text: string, refuse: (why: string) => never): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    return refuse(`is a URL such as https://host:9000, not ${quote(text.replace(/^.*@/s, ''))}`);
  }
  if (url.username !== '' || url.password !== '') {
    return refuse('has a user or a password in it: credentials come from where the AWS SDK looks');
  }
  if (url.search !== '' || url.hash !== '') return refuse('has a "?" or "#" in it');
  return url.href.replace(/\/$/, '');
}
