import type { ConnectionOptions } from 'node:tls';
import type { Machine } from '../url/secrets.ts';
import { readText } from '../url/secrets.ts';
import type { PostgresLocation } from './url.ts';

/** How far the server's certificate is looked at. */
export type Verification = 'none' | 'chain' | 'full';

export interface PostgresTls {
  readonly verification: Verification;
  readonly options: ConnectionOptions;
}

/**
 * The meaning of `sslmode` and its files is libpq's: `require` checks no certificate, unless an
 * authority is named.
 * @returns undefined: no TLS
 * @throws CommandError for a file that cannot be read
 */
export async function readPostgresTls(
  { ssl: { mode, rootCert, cert, key }, origin, hosts }: PostgresLocation,
  { cwd }: Machine,
): Promise<PostgresTls | undefined> {
  if (mode === 'disable' || hosts.every(({ host }) => host.startsWith('/'))) return undefined;
  const read = async (path: string | undefined, name: string) =>
    path === undefined ? undefined : readText(path, cwd, `${name} of ${origin}`);
  const [ca, ownCert, ownKey] = await Promise.all([
    rootCert === 'system' ? undefined : read(rootCert, 'sslrootcert'),
    read(cert, 'sslcert'),
    read(key, 'sslkey'),
  ]);
  const verification = verificationOf(mode, rootCert);
  return {
    verification,
    options: {
      ...(ca === undefined ? {} : { ca }),
      ...(ownCert === undefined ? {} : { cert: ownCert }),
      ...(ownKey === undefined ? {} : { key: ownKey }),
      rejectUnauthorized: verification !== 'none',
      ...(verification === 'chain' ? { checkServerIdentity: () => undefined } : {}),
    },
  };
}

function verificationOf(
  mode: PostgresLocation['ssl']['mode'],
  rootCert: string | undefined,
): Verification {
  // Anybody can get a certificate of a public authority, so it proves nothing without the name.
  if (mode === 'verify-full' || (rootCert === 'system' && mode !== 'prefer')) return 'full';
  if (mode === 'verify-ca' || (mode === 'require' && rootCert !== undefined)) return 'chain';
  return 'none';
}
