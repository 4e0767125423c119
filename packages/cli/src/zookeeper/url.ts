import { parseConnectionString } from '@incumbent/zookeeper';
import { CommandError, exitCodes } from '../failure.ts';
import type { ZooKeeperLocation } from './location.ts';
import { readParameters } from './parameters.ts';

const form = 'zk://h1:2181,h2:2181,h3:2181/chroot?timeout=10s';

/**
 * Reads `zk://h1:2181,h2:2181/chroot?timeout=10s&layout=…`; `zks://` is TLS.
 * @throws CommandError that names the part that cannot be used; never with any secret
 */
export function parseZooKeeperUrl(
  text: string,
  origin: '--store' | 'INCUMBENT_STORE',
): ZooKeeperLocation {
  const refuse: (why: string) => never = (why) => {
    throw new CommandError(
      'BAD_STORE_URL',
      exitCodes.usage,
      `the ZooKeeper URL of ${origin} ${why}; one looks like ${form}`,
    );
  };
  const [, scheme = '', rest = ''] = /^(zks?):\/\/(.*)$/is.exec(text) ?? [];
  if (scheme === '') refuse('has no "//" behind its scheme');
  if (rest.includes('#')) refuse('has a "#": in a value write %23');
  const mark = rest.indexOf('?');
  const place = mark === -1 ? rest : rest.slice(0, mark);
  const slash = place.indexOf('/');
  const [hostPart, path] = slash === -1 ? [place, ''] : [place.slice(0, slash), place.slice(slash)];
  if (hostPart.includes('@')) {
    refuse(
      'has a user ("@"): credentials come from the variable INCUMBENT_ZK_AUTH, or from ' +
        'auth=env:NAME or auth=file:/PATH',
    );
  }
  // Text that was meant as parameters may hold a password, and a chroot is shown.
  if (/[&;][a-z-]+=/i.test(place)) refuse('has parameters without a "?" in front of the first');
  if (/=/.test(hostPart)) refuse('has a "=" among its hosts');
  const { hosts, chroot } = parsePlace(`${scheme.toLowerCase()}://${place}`, refuse);
  const { parameters, shown } = readParameters(mark === -1 ? '' : rest.slice(mark + 1), refuse);
  const isTls = scheme.toLowerCase() === 'zks';
  const firstTls = Object.keys(parameters.tls)[0];
  if (!isTls && firstTls !== undefined) {
    refuse(`has the parameter tls-${firstTls}, which is for TLS: write zks://`);
  }
  const authority = hosts
    .map(({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`)
    .join(',');
  const shownPath = path === '' || chroot === '/' ? '' : encodePath(chroot);
  const connectionString = `${isTls ? 'zks' : 'zk'}://${authority}${shownPath}`;
  return {
    scheme: isTls ? 'zks' : 'zk',
    hosts,
    chroot,
    connectionString,
    parameters,
    url: `${connectionString}${shown === '' ? '' : `?${shown}`}`,
    origin,
  };
}

/** Hosts and chroot. Neither is secret, so what the client says of them may be repeated. */
function parsePlace(text: string, refuse: (why: string) => never) {
  try {
    return parseConnectionString(text);
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    // Without what it begins with and ends with, which ours has as well.
    return refuse(
      said
        .replace(/^the connection string ".*?" (?=has|names)/s, '')
        .replace(/; one looks like .*$/s, ''),
    );
  }
}

function encodePath(chroot: string): string {
  return encodeURI(chroot).replace(/[?#]/g, encodeURIComponent);
}
