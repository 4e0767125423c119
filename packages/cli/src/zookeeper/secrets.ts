import type { ClientOptions } from '@incumbent/zookeeper';
import type { Machine, SecretSource } from '../url/secrets.ts';
import { contentOf, unusable } from '../url/secrets.ts';
import { readTlsFiles } from '../url/tls.ts';
import type { ZooKeeperLocation } from './location.ts';

/**
 * Our credentials: from INCUMBENT_ZK_AUTH and INCUMBENT_ZK_SASL, as for `incumbent-zk`, and from
 * the URL. The URL's `sasl` wins. Errors hold no part of a secret.
 * @throws CommandError
 */
export async function readSecrets(
  { parameters, origin }: ZooKeeperLocation,
  machine: Machine,
): Promise<Pick<ClientOptions, 'auth' | 'sasl'>> {
  const { env } = machine;
  const auth = credentialsIn(env['INCUMBENT_ZK_AUTH'] ?? '', 'INCUMBENT_ZK_AUTH');
  for (const source of parameters.auth) {
    const [text, where] = await contentOf(source, `auth of ${origin}`, machine);
    auth.push(...credentialsIn(text, where));
  }
  const source: SecretSource | undefined =
    parameters.sasl ??
    (env['INCUMBENT_ZK_SASL'] ? { kind: 'env', name: 'INCUMBENT_ZK_SASL' } : undefined);
  if (source === undefined) return { auth };
  const [text, where] = await contentOf(source, `sasl of ${origin}`, machine);
  const line = text.replace(/\r?\n$/, '');
  const colon = line.indexOf(':');
  if (colon < 1 || line.includes('\n')) throw unusable(`${where} is not USER:PASSWORD`);
  return { auth, sasl: { username: line.slice(0, colon), password: line.slice(colon + 1) } };
}

/** @throws CommandError for a file that cannot be read */
export async function readTls(
  { scheme, parameters: { tls }, origin }: ZooKeeperLocation,
  machine: Machine,
): Promise<ClientOptions['tls']> {
  if (scheme === 'zk') return undefined;
  return readTlsFiles(tls, origin, machine, machine.env['INCUMBENT_ZK_TLS_PASSPHRASE']);
}

/** SCHEME:CREDENTIALS, one a line. */
function credentialsIn(
  text: string,
  where: string,
): { readonly scheme: string; readonly credentials: string }[] {
  const lines = text.split(/\r?\n/).filter((line) => line !== '');
  return lines.map((line) => {
    const colon = line.indexOf(':');
    if (colon < 1) {
      throw unusable(`${where} is not SCHEME:CREDENTIALS, such as digest:USER:PASSWORD`);
    }
    return { scheme: line.slice(0, colon), credentials: line.slice(colon + 1) };
  });
}
