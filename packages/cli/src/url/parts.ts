/**
 * A store's URL in its parts. Messages repeat no text that may belong to an unescaped password:
 * behind a "/", "?" or "#" in it, its rest looks like a path or a query.
 */
import { CommandError, exitCodes } from '../failure.ts';
import type { Refuse } from './values.ts';

export interface Host {
  readonly host: string;
  readonly port: number;
}

export interface UrlParts {
  /** In lower case. */
  readonly scheme: string;
  readonly user: string | undefined;
  readonly password: string | undefined;
  /** Still as it was written; `readHosts` reads it. */
  readonly authority: string;
  /** Decoded, without the slash before it; undefined: there is no path, or an empty one. */
  readonly path: string | undefined;
  readonly query: string;
}

/** @param form what a right one looks like */
export function refuser(kind: string, origin: '--store' | 'INCUMBENT_STORE', form: string): Refuse {
  return (why) => {
    throw new CommandError(
      'BAD_STORE_URL',
      exitCodes.usage,
      `the ${kind} URL of ${origin} ${why}; one looks like ${form}`,
    );
  };
}

/** Reads `scheme://user:password@authority/path?query`. */
export function splitUrl(text: string, refuse: Refuse): UrlParts {
  const [, scheme = '', rest = ''] = /^([a-z][a-z0-9+.-]*):\/\/(.*)$/is.exec(text) ?? [];
  if (scheme === '') refuse('has no "//" behind its scheme');
  if (rest.includes('#')) refuse('has a "#": in a password or a value write %23');
  const end = rest.search(/[/?]/);
  const front = end === -1 ? rest : rest.slice(0, end);
  const back = end === -1 ? '' : rest.slice(end);
  const mark = back.indexOf('?');
  const path = mark === -1 ? back : back.slice(0, mark);
  const query = mark === -1 ? '' : back.slice(mark + 1);
  const at = front.lastIndexOf('@');
  const firstName = /^[^=&]*/.exec(query)?.[0] ?? '';
  // Then the text in front is a user and the beginning of a password, not hosts with ports.
  const isCutOff = at === -1 && /:(?!\d{1,5}(?:,|$))/.test(front.replace(/\[[^\]]*\]/g, ''));
  if (path.includes('@') || firstName.includes('@') || (isCutOff && back.includes('@'))) {
    refuse(
      'has a "@" behind its first "/" or "?": in a password write %2F for "/" and %3F for "?", ' +
        'elsewhere %40 for "@"',
    );
  }
  const decode = (what: string, part: string): string => {
    try {
      return decodeURIComponent(part);
    } catch {
      return refuse(`has a "%" without two hex digits in its ${what}; write %25 for "%"`);
    }
  };
  const credentials = at === -1 ? undefined : front.slice(0, at);
  const colon = credentials?.indexOf(':') ?? -1;
  const user = colon === -1 ? credentials : credentials?.slice(0, colon);
  const password = colon === -1 ? undefined : credentials?.slice(colon + 1);
  const decodedPath = decode('path', path.slice(1));
  return {
    scheme: scheme.toLowerCase(),
    user: user ? decode('user', user) : undefined,
    password: password ? decode('password', password) : undefined,
    authority: front.slice(at + 1),
    path: decodedPath === '' ? undefined : decodedPath,
    query,
  };
}

/** Reads `h1:1,[::1]:2,h3`. @returns at least one, unless it is empty */
export function readHosts(authority: string, defaultPort: number, refuse: Refuse): readonly Host[] {
  if (authority === '') return [];
  return authority.split(',').map((part) => {
    if (part === '') refuse('has an empty host: a "," without a host on one side of it');
    if (/[&;=]/.test(part)) refuse('has parameters without a "?" in front of the first');
    const match = /^(?:\[([0-9a-f:.]+(?:%25[\w.-]+)?)\]|([^:[\]%]+))(?::(.*))?$/i.exec(part);
    if (match === null) {
      return refuse(
        `has a host that is none (an IPv6 address stands in brackets: [::1]:${defaultPort})`,
      );
    }
    const [, v6, name, portText] = match;
    const host = (v6?.replace('%25', '%') ?? name ?? '').toLowerCase();
    if (/[\s"'<>\\^`{|}]/.test(host)) refuse('has a host that is none');
    if (portText === undefined) return { host, port: defaultPort };
    const port = Number(portText);
    if (!/^\d{1,5}$/.test(portText) || port < 1 || port > 65_535) {
      // Of `joe:secret` without its host the second half is a password.
      refuse(
        `has no port behind "${host}:": a port is a number from 1 to 65535 (if these are a user and a ` +
          'password, write "@" and the host behind them)',
      );
    }
    return { host, port };
  });
}

export function showHost({ host, port }: Host): string {
  return `${host.includes(':') ? `[${host.replace('%', '%25')}]` : host}:${port}`;
}

/** `joe:***@`, or nothing. */
export function showUser({ user, password }: Pick<UrlParts, 'user' | 'password'>): string {
  if (user === undefined && password === undefined) return '';
  return `${encodeURIComponent(user ?? '')}${password === undefined ? '' : ':***'}@`;
}
