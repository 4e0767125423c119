/** Where the set of servers is kept in ZooKeeper. */

import { defaultRoot } from '@incumbent/redis-failover/internal';
import type { ClientOptions, ConnectionString } from '@incumbent/zookeeper';
import { InvalidArgumentError, parseConnectionString } from '@incumbent/zookeeper';
import type { Environment } from '../context.ts';
import { SettingError } from '../failure.ts';
import { checked } from './checked.ts';
import type { Settings } from './collect.ts';
import type { Given } from './given.ts';
import { refuse } from './given.ts';
import { tlsFiles } from './tls.ts';

export interface Place {
  /** With the chroot, as the client takes it. */
  readonly zookeeper: string;
  readonly root: string;
  /** How to log in there. */
  readonly zookeeperOptions: Pick<ClientOptions, 'auth' | 'sasl' | 'tls'>;
}

/**
 * The login to ZooKeeper is in INCUMBENT_ZK_AUTH and INCUMBENT_ZK_SASL, as for `incumbent-zk`.
 * @throws SettingError, also for a file that cannot be read
 */
export async function placeOf(
  settings: Settings,
  { env, cwd }: { readonly env: Environment; readonly cwd: string },
): Promise<Place> {
  const given = settings.get('zookeeper');
  if (given === undefined) {
    throw new SettingError(
      'it is not said where ZooKeeper is: give --zookeeper HOST:PORT,HOST:PORT, ' +
        'INCUMBENT_REDIS_ZOOKEEPER, or zookeeper in a configuration file (--config)',
    );
  }
  const zookeeper = connectionString(given, settings.get('chroot'));
  const tls = await tlsFiles(settings, 'zookeeper_tls', cwd);
  if (tls !== undefined && !parse(given, zookeeper).tls) {
    refuse(given, 'is not zks://, and there are settings for the TLS of ZooKeeper');
  }
  const root = settings.get('root');
  return {
    zookeeper,
    root: root === undefined ? defaultRoot : (checked(root, 'root', String(root.value)) as string),
    zookeeperOptions: { ...credentialsOf(env), ...(tls === undefined ? {} : { tls }) },
  };
}

function credentialsOf(env: Environment): Pick<ClientOptions, 'auth' | 'sasl'> {
  const lines = (env['INCUMBENT_ZK_AUTH'] ?? '').split(/\r?\n/).filter((line) => line !== '');
  const auth = lines.map((line) => {
    const [scheme, credentials] = halves('INCUMBENT_ZK_AUTH', 'SCHEME:CREDENTIALS', line);
    return { scheme, credentials };
  });
  const login = env['INCUMBENT_ZK_SASL'];
  if (login === undefined || login === '') return { auth };
  const [username, password] = halves('INCUMBENT_ZK_SASL', 'USER:PASSWORD', login);
  return { auth, sasl: { username, password } };
}

/** The error has no part of a secret. */
function halves(variable: string, form: string, text: string): [before: string, after: string] {
  const colon = text.indexOf(':');
  if (colon < 1) throw new SettingError(`${variable} is not ${form}`);
  return [text.slice(0, colon), text.slice(colon + 1)];
}

function connectionString(given: Given, chroot: Given | undefined): string {
  const { value } = given;
  // A list in a file: each entry is a server.
  const text = Array.isArray(value) ? value.join(',') : String(value).trim();
  const parsed = parse(given, text);
  // The chroot of a file does not apply to servers that were given elsewhere with a chroot of their
  // own.
  if (chroot === undefined || (parsed.chroot !== '/' && chroot.rank < given.rank)) return text;
  if (parsed.chroot !== '/') {
    refuse(chroot, `is a second chroot: ${given.name} has ${parsed.chroot} already`);
  }
  const path = String(chroot.value);
  if (!path.startsWith('/'))
    refuse(chroot, `is the path of a node such as /redis, not ${JSON.stringify(path)}`);
  const [before, ...query] = text.split('?');
  const joined = [`${before?.replace(/\/$/, '')}${path}`, ...query].join('?');
  parse(chroot, joined);
  return joined;
}

function parse(given: Given, text: string): ConnectionString {
  try {
    return parseConnectionString(text);
  } catch (error) {
    if (!(error instanceof InvalidArgumentError)) throw error;
    return refuse(given, `cannot be used: ${error.message}`);
  }
}
