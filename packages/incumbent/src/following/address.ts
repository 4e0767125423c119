/** The address of a leader, read from the addresses that its candidate published. */
import type { CandidateInfo } from '../base/candidate.ts';
import { describeValue } from '../base/candidate.ts';
import { InvalidOptionError } from '../base/errors.ts';

/** Picks one of a leader's addresses. Undefined: none of them. */
export type AddressOf = (leader: CandidateInfo) => string | undefined;

export interface Address {
  /** Lower case, without the colon. Undefined for `host:port`. */
  readonly scheme: string | undefined;
  /** An IPv6 address stands without brackets. */
  readonly host: string;
  readonly port: number | undefined;
}

/**
 * Reads `10.0.0.7:50051`, `[2001:db8::7]:50051`, `host:8080` or `https://host:8443`. Others write
 * the record. So a text with credentials, a path or a query is no address.
 */
export function parseAddress(text: string): Address | undefined {
  const match = /^(?:([a-z][a-z\d+.-]*):\/\/)?([^/?#@\\\s]+)\/?$/i.exec(text);
  if (match === null) return undefined;
  const [, scheme, authority = ''] = match;
  const parts = /^(?:\[([\da-f:.]+)\]|([^[\]:]+))(?::(\d{1,5}))?$/i.exec(authority);
  const host = parts?.[1] ?? parts?.[2];
  if (host === undefined) return undefined;
  const port = parts?.[3] === undefined ? undefined : Number(parts[3]);
  if (port !== undefined && (port < 1 || port > 65_535)) return undefined;
  if (scheme === undefined && port === undefined) return undefined;
  return { scheme: scheme?.toLowerCase(), host, port };
}

/** @throws InvalidOptionError */
export function checkAddressOf(addressOf: unknown): void {
  if (addressOf !== undefined && typeof addressOf !== 'function') {
    throw new InvalidOptionError(
      `addressOf must be a function of the leader, not ${describeValue(addressOf)}`,
    );
  }
}
