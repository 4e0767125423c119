import type { CandidateInfo } from '../../base/candidate.ts';
import type { Address, AddressOf } from '../index.ts';
import { parseAddress } from '../index.ts';

/**
 * The origin (`http://10.0.0.7:8080`) at which a leader is asked. It is the address that
 * `addressOf` picked, or else its first `http:` or `https:` URL, or else its first `host:port`.
 * Texts of a record are only ever read as scheme, host and port.
 * @param mustBeSecure refuses `http:` addresses
 * @param isSecure the scheme of a plain `host:port`
 */
export function originOf(
  leader: CandidateInfo,
  mustBeSecure: boolean,
  addressOf: AddressOf | undefined,
  isSecure: boolean = mustBeSecure,
): string | undefined {
  const read = (text: string) => originOfText(text, mustBeSecure, isSecure);
  if (addressOf !== undefined) {
    const picked = addressOf(leader);
    return picked === undefined ? undefined : read(picked);
  }
  const origins = leader.addresses.map(read);
  const url = origins.findIndex((origin, i) => origin !== undefined && /:\/\//.test(at(i)));
  return url === -1 ? origins.find((origin) => origin !== undefined) : origins[url];

  function at(i: number): string {
    return leader.addresses[i] ?? '';
  }
}

/** Why a leader without an origin cannot be asked. */
export function whyNoOrigin(
  leader: CandidateInfo,
  mustBeSecure: boolean,
  addressOf: AddressOf | undefined,
): string {
  const picked = addressOf?.(leader);
  const refused = addressOf === undefined ? leader.addresses : picked === undefined ? [] : [picked];
  const list = refused.map((text) => JSON.stringify(text)).join(', ');
  let hint = 'give its candidate `addresses`';
  if (list !== '') hint = `not ${list}, but host:port, or http(s):// and that, without a path`;
  else if (addressOf !== undefined) hint = '`addressOf` picked none';
  const how = mustBeSecure ? ' with https' : '';
  return `"${leader.id}" leads and publishes no address that can be used${how}: ${hint}`;
}

/** @returns undefined for a text that is no address of an HTTP server */
export function originOfText(
  text: string,
  mustBeSecure: boolean,
  isSecure: boolean = mustBeSecure,
): string | undefined {
  const address = parseAddress(text);
  if (address === undefined) return undefined;
  const { scheme = isSecure ? 'https' : 'http' } = address;
  if (scheme !== 'https' && (scheme !== 'http' || mustBeSecure)) return undefined;
  const url = `${scheme}://${hostOf(address)}${address.port === undefined ? '' : `:${address.port}`}`;
  return URL.canParse(url) ? new URL(url).origin : undefined;
}

function hostOf({ host }: Address): string {
  return host.includes(':') ? `[${host}]` : host;
}
