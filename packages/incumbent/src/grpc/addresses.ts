/** From the addresses a leader has published to what gRPC connects to. */
import { isIPv6 } from 'node:net';
import type { SubchannelAddress } from './module.ts';

/** What gRPC takes where no port is given. */
const defaultPort = 443;

/**
 * `10.0.0.7:50051`, `[2001:db8::7]:50051`, `ledger.internal:50051`, `unix:/run/ledger.sock`; without a
 * port 443, as everywhere in gRPC. @returns undefined for anything else, such as a URL
 */
export function parseAddress(address: string): SubchannelAddress | undefined {
  if (address.startsWith('unix:')) {
    const path = address.slice('unix:'.length).replace(/^\/\/(?=\/)/, '');
    return path === '' ? undefined : { path };
  }
  if (isIPv6(address)) return { host: address, port: defaultPort };
  const match = /^(?:\[([^\]]+)\]|([^\s:/?#@[\]]+))(?::(\d{1,5}))?$/.exec(address);
  if (match === null) return undefined;
  const [, bracketed, name, digits] = match;
  if (bracketed !== undefined && !isIPv6(bracketed)) return undefined;
  const port = digits === undefined ? defaultPort : Number(digits);
  const host = bracketed ?? name;
  return host === undefined || port < 1 || port > 65_535 ? undefined : { host, port };
}
