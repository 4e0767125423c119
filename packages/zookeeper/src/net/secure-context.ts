import { isIP } from 'node:net';
import type { ConnectionOptions, SecureContext } from 'node:tls';
import { createSecureContext } from 'node:tls';
import { checkOptions, describe, namesOf } from '../arguments.ts';
import { InvalidArgumentError } from '../errors.ts';
import type { CheckedTls, TlsOptions } from './tls-options.ts';

const names = namesOf<TlsOptions>({
  ...{ ca: true, cert: true, key: true, passphrase: true, servername: true },
  ...{ rejectUnauthorized: true },
});

/** @throws InvalidArgumentError if a key or certificate cannot be used */
export function checkTls(tls: TlsOptions): CheckedTls {
  checkOptions('tls', tls ?? null, names);
  const { ca, cert, key, passphrase, servername, rejectUnauthorized = true } = tls;
  if (servername !== undefined && (typeof servername !== 'string' || servername === '')) {
    throw new InvalidArgumentError(`tls.servername is a host name, not ${describe(servername)}`);
  }
  if (typeof rejectUnauthorized !== 'boolean') {
    throw new InvalidArgumentError(
      `tls.rejectUnauthorized is true or false, not ${describe(rejectUnauthorized)}`,
    );
  }
  try {
    const context = createSecureContext({
      ca: ca === undefined ? undefined : [ca].flat().map((pem) => toPem(pem)),
      cert: cert === undefined ? undefined : toPem(cert),
      key: key === undefined ? undefined : toPem(key),
      passphrase,
    });
    return { context, servername, rejectUnauthorized, hasCertificate: cert !== undefined };
  } catch (error) {
    const why = (error as Error).message;
    throw new InvalidArgumentError(
      `tls: the ca, cert or key cannot be used (${why}); they are the contents of PEM files`,
      { cause: error },
    );
  }
}

/** @param name the host's name in the connection string: its certificate must be made out to it */
export function connectionOptions(
  { context, servername, rejectUnauthorized }: CheckedTls,
  name: string,
): ConnectionOptions {
  // The handshake allows no address as a name, but a certificate may be made out to an address.
  const serverName = servername ?? (isIP(name) === 0 ? name : undefined);
  return {
    secureContext: context as SecureContext,
    rejectUnauthorized,
    ...(serverName === undefined ? {} : { servername: serverName }),
  };
}

function toPem(content: string | Uint8Array): string {
  return typeof content === 'string' ? content : Buffer.from(content).toString('utf8');
}
