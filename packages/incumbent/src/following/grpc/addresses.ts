/** From the addresses a leader has published to what gRPC connects to. */
import { isIPv6 } from 'node:net';
import { parseAddress } from '../index.ts';
import type { SubchannelAddress } from './module.ts';

/** What gRPC takes where no port is given. */
const defaultPort = 443;

/**
 * `10.0.0.7:50051`, `[2001:db8::7]:50051`, `ledger.internal:50051`, `unix:/run/ledger.sock`; without a
 * port 443, as everywhere in gRPC. @returns undefined for anything else, such as a URL
 */
export function parseEndpoint(text: string): SubchannelAddress | undefined {
  if (text.startsWith('unix:')) {
    const path = text.slice('unix:'.length).replace(/^\/\/(?=\/)/, '');
    return path === '' ? undefined : { path };
  }
  if (isIPv6(text)) return { host: text, port: defaultPort };
  const { scheme, host, port } = parseAddress(text) ?? parseAddress(`${text}:${defaultPort}`) ?? {};
  if (scheme !== undefined || host === undefined || port === undefined) return undefined;
  return { host, port };
}
