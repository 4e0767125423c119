import { InvalidOptionError } from 'incumbent';

/**
 * `host:port` as in every znode, such as `10.0.0.7:6379`. An IPv6 address has brackets:
 * `[::1]:6379`.
 */
export type NodeAddress = string;

/** Host and port of a Redis node. */
export interface HostAndPort {
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
}

/**
 * @param what names the value in the error, such as `nodes[1]`
 * @throws InvalidOptionError if the value is not `host:port` with a port from 1 to 65535
 */
export function parseNodeAddress(what: string, value: unknown): HostAndPort {
  const match =
    typeof value === 'string' ? /^(?:\[([^\]\s]+)\]|([^:\s[\]/@]+)):(\d{1,5})$/.exec(value) : null;
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  if (host === undefined || port < 1 || port > 65_535) {
    throw new InvalidOptionError(
      `${what} is not host:port with a port from 1 to 65535: ${JSON.stringify(value)}; ` +
        'write it as 10.0.0.7:6379, and an IPv6 address as [::1]:6379',
    );
  }
  return { host, port };
}

export function formatNodeAddress({ host, port }: HostAndPort): NodeAddress {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
