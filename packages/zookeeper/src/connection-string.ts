import { InvalidArgumentError } from './errors.ts';
import { checkPath } from './paths.ts';

/** Host and port of a server. */
export interface HostAndPort {
  /** A name or an address. An IPv6 address has no brackets here. */
  readonly host: string;
  readonly port: number;
}

/** The parts of a connection string. */
export interface ConnectionString {
  readonly hosts: readonly HostAndPort[];
  /** The path below which all paths of the client are; '/' for none. */
  readonly chroot: string;
  /** true for `zks://`. */
  readonly tls: boolean;
  /** The parameter `timeout`, in ms; undefined if it is absent. */
  readonly sessionTimeoutMs: number | undefined;
}

const defaultPort = 2181;
const form = 'zk://host1:2181,host2:2181/chroot?timeout=10s';

/**
 * Reads `zk://h1:2181,[::1]:2181/chroot?timeout=10s`. `zks://` means TLS. The scheme may be absent
 * (`h1:2181,h2:2181/chroot`, as other clients write it). So may the port: it is 2181 then.
 * @throws InvalidArgumentError that names the part that cannot be used
 */
export function parseConnectionString(text: string): ConnectionString {
  if (typeof text !== 'string') {
    throw new InvalidArgumentError(`a connection string is ${form}, not a ${typeof text}`);
  }
  const fail = (why: string): never => {
    throw new InvalidArgumentError(
      `the connection string ${JSON.stringify(text)} ${why}; one looks like ${form}`,
    );
  };
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(text);
  const name = scheme?.[1]?.toLowerCase() ?? 'zk';
  if (name !== 'zk' && name !== 'zks') fail(`has the scheme "${name}"; it is zk or zks (TLS)`);
  const rest = text.slice(scheme?.[0].length ?? 0);
  if (rest.includes('#')) fail('has a fragment ("#…")');
  const [beforeQuery, query, ...more] = rest.split('?') as [string, ...string[]];
  if (more.length > 0) fail('has two "?"');
  const slash = beforeQuery.indexOf('/');
  const authority = slash === -1 ? beforeQuery : beforeQuery.slice(0, slash);
  const rawChroot = slash === -1 ? '/' : beforeQuery.slice(slash);
  let chroot = rawChroot;
  try {
    chroot = decodeURI(rawChroot);
  } catch {
    fail(`has a chroot with a broken "%" escape`);
  }
  if (/,[^/]*(?::\d+)?\//.test(chroot) || /,[^/]*:\d+$/.test(chroot)) {
    fail('has hosts behind the chroot, which stands once and at the end');
  }
  if (chroot.length > 1 && chroot.endsWith('/')) chroot = chroot.slice(0, -1);
  try {
    checkPath(chroot);
  } catch (error) {
    fail(`has a chroot that cannot be: ${(error as Error).message}`);
  }
  if (authority.includes('@')) fail('has a user ("@"); credentials go into the option `auth`');
  if (authority === '') fail('names no host');
  const hosts = authority.split(',').map((part) => parseHost(part, fail));
  return { hosts, chroot, tls: name === 'zks', sessionTimeoutMs: parseQuery(query, fail) };
}

/** The hosts as they are written in a connection string; for messages. */
export function formatHosts(hosts: readonly HostAndPort[]): string {
  return hosts.map(formatHost).join(',');
}

export function formatHost({ host, port }: HostAndPort): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

function parseHost(part: string, fail: (why: string) => never): HostAndPort {
  const text = part.trim();
  if (text === '') fail('has an empty host');
  const match = /^(?:\[([0-9a-f:.%a-z]+)\]|([^\s[\]:]+))(?::(.*))?$/i.exec(text);
  if (match === null) {
    const hint = text.includes(':') ? ' (an IPv6 address stands in brackets: [::1]:2181)' : '';
    return fail(`has the host "${text}", which is none${hint}`);
  }
  const host = match[1] ?? (match[2] as string);
  const port = match[3] === undefined ? defaultPort : parsePort(match[3], text, fail);
  return { host, port };
}

function parsePort(digits: string, host: string, fail: (why: string) => never): number {
  const port = /^\d{1,5}$/.test(digits) ? Number(digits) : 0;
  if (port < 1 || port > 65_535)
    fail(`has the port "${digits}" in "${host}"; ports are 1 to 65535`);
  return port;
}

function parseQuery(query: string | undefined, fail: (why: string) => never): number | undefined {
  if (query === undefined || query === '') return undefined;
  let timeoutMs: number | undefined;
  for (const [key, value] of new URLSearchParams(query)) {
    if (key !== 'timeout') fail(`has the parameter "${key}"; the only one is timeout`);
    if (timeoutMs !== undefined) fail('has two timeouts');
    timeoutMs = parseDuration(value);
    if (timeoutMs === undefined) fail(`has the timeout "${value}"; write 10s, 1500ms or 2m`);
  }
  return timeoutMs;
}

/**
 * The milliseconds of `500ms`, `10s` or `2m`; undefined for anything else, even for a number
 * without a unit.
 */
export function parseDuration(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m)$/.exec(text.trim());
  if (match === null) return undefined;
  const factor = { ms: 1, s: 1000, m: 60_000 }[match[2] as 'ms'] as number;
  return Number(match[1]) * factor;
}
