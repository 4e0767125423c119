import { timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';

/** The part of a request that decides whether it is answered. */
export interface Asked {
  readonly method?: string | undefined;
  readonly headers: IncomingHttpHeaders;
}

export interface Refusal {
  readonly status: number;
  /** For people: the rule, and the way out. */
  readonly text: string;
}

/** The header that carries the token. A page of another origin cannot set it. */
export const tokenHeader = 'x-incumbent-token';

/**
 * Whether a page that was loaded from us may be what asks. A name that somebody else's DNS leads to this
 * machine (rebinding) is none of ours.
 * @param names further names of this machine
 */
export function whyNotOurs(
  { headers }: Asked,
  names: ReadonlySet<string> = new Set(),
): Refusal | undefined {
  const host = headers.host ?? '';
  const name = host
    .replace(/:\d+$/, '')
    .replace(/^\[|\]$/g, '')
    .toLowerCase();
  if (name === 'localhost' || isIP(name) !== 0 || names.has(name)) return undefined;
  return {
    status: 421,
    text: `"${name}" is not a name of this page: open it by its IP address, or as localhost`,
  };
}

/** @param credentials `USER:PASSWORD`; undefined: everybody is known */
export function whyNotKnown(
  { headers }: Asked,
  credentials: string | undefined,
): Refusal | undefined {
  if (credentials === undefined) return undefined;
  const [kind, given = ''] = (headers.authorization ?? '').split(' ');
  const isKnown =
    kind?.toLowerCase() === 'basic' && isSame(Buffer.from(given, 'base64').toString(), credentials);
  return isKnown ? undefined : { status: 401, text: 'the name or the password is wrong' };
}

/**
 * Whether the request may change anything: it comes from our own page, and knows the token that the
 * command has printed.
 */
export function whyNotSteered(asked: Asked, scheme: string, token: string): Refusal | undefined {
  const { headers, method } = asked;
  if (method !== 'POST') return { status: 405, text: 'only POST' };
  const { origin, host } = headers;
  const site = headers['sec-fetch-site'];
  const isForeign =
    (origin !== undefined && origin !== `${scheme}://${host}`) ||
    (site !== undefined && site !== 'same-origin');
  if (isForeign) return { status: 403, text: 'a page of another origin may not steer' };
  if (!headers['content-type']?.startsWith('application/json')) {
    return { status: 415, text: 'content-type must be application/json' };
  }
  const given = headers[tokenHeader];
  if (typeof given !== 'string' || !isSame(given, token)) {
    return {
      status: 403,
      text: 'steering needs the token: open the page by the address that the command has printed',
    };
  }
  return undefined;
}

function isSame(given: string, wanted: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(wanted)];
  return a.length === b.length && timingSafeEqual(a, b);
}
