/** Turns the addresses of a leader into endpoints for gRPC. */
import { isIPv6 } from 'node:net';
import { parseAddress } from '../index.ts';
import type { SubchannelAddress } from './module.ts';

/** The port that gRPC uses where none is given. */
const defaultPort = 443;

/**
 * Reads `10.0.0.7:50051`, `[2001:db8::7]:50051`, `ledger.internal:50051` or
 * `unix:/run/ledger.sock`. Without a port it is 443, as everywhere in gRPC.
 * @returns undefined for anything else, such as a URL
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
