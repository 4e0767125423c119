/** URLs of object stores: a bucket, a folder in it, parameters. Credentials do not belong there. */
import type { Refuse } from './values.ts';
import { quote } from './values.ts';

export interface BucketNames {
  readonly allowed: RegExp;
  /** Which letters they have, for people. */
  readonly letters: string;
  /** The advice for a URL with a user or a port. */
  readonly instead: string;
}

export interface BucketUrl {
  readonly bucket: string;
  /** Decoded, without its last slash; empty: the bucket itself. */
  readonly folder: string;
  readonly query: string;
}

/** Reads `scheme://bucket/folder?query`. */
export function splitBucketUrl(text: string, names: BucketNames, refuse: Refuse): BucketUrl {
  const [, rest] = /^[a-z0-9]+:\/\/(.*)$/is.exec(text) ?? [];
  if (rest === undefined) return refuse('has no "//" behind its scheme');
  if (rest.includes('#')) refuse('has a "#": in a name or a value write %23');
  const [place, query] = halves(rest, '?');
  const [bucket, path] = halves(place, '/');
  // Of `user:secret@bucket` nothing is shown.
  if (/[@:]/.test(bucket)) refuse(`has a user or a port: ${names.instead}`);
  if (bucket === '') refuse('has no bucket');
  if (!names.allowed.test(bucket)) {
    refuse(`has ${quote(bucket)} for a bucket, which has ${names.letters}`);
  }
  return { bucket, folder: decoded(path, refuse).replace(/\/$/, ''), query };
}

function halves(text: string, mark: string): [before: string, behind: string] {
  const at = text.indexOf(mark);
  return at === -1 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}

function decoded(path: string, refuse: Refuse): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return refuse('has a "%" without two hex digits in its folder; write %25 for "%"');
  }
}

/** The beginning of the names of objects in a folder. */
export function prefixOf(folder: string): string {
  return folder === '' ? '' : `${folder}/`;
}

/** @param shown the query, without secrets */
export function showBucketUrl(
  scheme: string,
  bucket: string,
  prefix: string,
  shown: string,
): string {
  const path = prefix.split('/').map(encodeURIComponent).join('/');
  return `${scheme}://${bucket}/${path}${shown === '' ? '' : `?${shown}`}`;
}

/**
 * Reads the parameter that says where a store is that is not the provider's own.
 * @param example a right one
 * @param instead what to do instead of naming a user in it
 */
export function endpoint(
  example: string,
  instead: string | undefined,
): (text: string, refuse: Refuse) => string {
  return (text, refuse) => {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (url === undefined || !/^https?:$/.test(url.protocol)) {
      return refuse(`is a URL such as ${example}, not ${quote(text.replace(/^.*@/s, ''))}`);
    }
    if (url.username !== '' || url.password !== '') {
      refuse(`has a user or a password in it${instead === undefined ? '' : `: ${instead}`}`);
    }
    if (url.search !== '' || url.hash !== '') return refuse('has a "?" or "#" in it');
    return url.href.replace(/\/$/, '');
  };
}

/** Where no clock counts, a step of it is refused. */
export function refuseUnusedStep(
  age: string | undefined,
  clockStep: string | undefined,
  refuse: Refuse,
): void {
  if (age === 'off' && clockStep !== undefined) {
    refuse('has the parameter clock-step, which means nothing with age=off');
  }
}
